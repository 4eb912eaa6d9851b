"""No kernel goes unproved: each is compared with a twin itself, or inside a larger one that is."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TWINS = TESTS.parent / "twins"
KERNELS = TESTS.parent.parent / "contam" / "kernels"
DECORATORS = {"kernel", "lean_kernel", "intrinsic"}

#: Where tests call kernels.
CALLERS = [*TESTS.glob("test_*.py"), TESTS / "evidence_support.py"]


def functions(folder: Path, pattern: str = "*.py") -> dict[str, ast.FunctionDef]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob(pattern)]
    return {
        node.name: node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def is_kernel(function: ast.FunctionDef) -> bool:
    names = {one.id for one in function.decorator_list if isinstance(one, ast.Name)}
    return bool(names & DECORATORS)


def called(node: ast.AST) -> set[str]:
    """Names of the functions called anywhere in a piece of code."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    names = {func.id for func in calls if isinstance(func, ast.Name)}
    return names | {func.attr for func in calls if isinstance(func, ast.Attribute)}


def kernels_called(tree: ast.AST) -> set[str]:
    """Kernels that a test file calls as its own or as those of the package, not a twin's namesake."""
    imports = [
        (node.module, alias)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contam.kernels")
        for alias in node.names
    ]
    modules = {alias.asname or alias.name for path, alias in imports if path == "contam.kernels"}
    by_name = {alias.asname or alias.name: alias.name for path, alias in imports if path}
    found = set()
    for call in (node.func for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call, ast.Name):
            found.add(by_name.get(call.id, call.id if call.id in wrappers() else ""))
        elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
            found |= {call.attr} & kernels().keys() if call.value.id in modules else set()
    return found & (kernels().keys() | wrappers().keys())


@cache
def kernels() -> dict[str, ast.FunctionDef]:
    return {name: node for name, node in functions(KERNELS).items() if is_kernel(node)}


@cache
def wrappers() -> dict[str, ast.FunctionDef]:
    return {n: node for n, node in functions(TESTS, "test_*.py").items() if is_kernel(node)}


def compared() -> set[str]:
    """Kernels that a test calls, directly or in a wrapper of its own."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in CALLERS]
    return {name for tree in trees for name in kernels_called(tree)}


def reached_from(name: str) -> set[str]:
    """Every kernel that runs when this one does."""
    known = {**kernels(), **wrappers()}
    seen, waiting = set(), [name]
    while waiting:
        here = called(known[waiting.pop()]) & known.keys()
        waiting += here - seen
        seen |= here
    return seen


def test_every_kernel_is_compared_with_a_twin_or_runs_inside_one_that_is():
    assert len(kernels()) > 50
    inside = set().union(*map(reached_from, compared()))
    assert kernels().keys() - compared() - inside == set()


@pytest.mark.parametrize("path", sorted(TWINS.glob("*.py")), ids=lambda path: path.stem)
def test_a_twin_is_a_stranger_to_the_code_it_judges(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    # A twin may lean on another twin, which is asked the same.
    modules -= {module for module in modules if (module or "").startswith("tests.twins.")}
    roots = {(module or ".").partition(".")[0] for module in modules}
    strangers = {
        "__future__", "re", "unicodedata", "functools", "itertools", "typing", "collections",
        "string",
    }  # fmt: skip
    assert roots <= strangers | {"math", "hashlib", "dataclasses", "bisect", "struct", "zlib"}
