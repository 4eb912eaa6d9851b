"""No kernel goes unproved: each is compared with a twin itself, or inside a larger one that is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TWINS = TESTS.parent / "twins"
KERNELS = TESTS.parent.parent / "contam" / "kernels"
DECORATORS = {"kernel", "lean_kernel", "intrinsic"}

#: Kernels without a test of their own, by the tested kernel whose comparison runs through them.
COVERED_BY = {
    "read_marked": "tokenize",
    "letter_flags": "tokenize",
    "reads_as_latin": "tokenize",
    "read_slowly": "tokenize",
    "hash_single": "tokenize",
    "pass_mark": "tokenize",
    "put_places": "tokenize",
    "hash_words": "tokenize",
    "read_singles": "tokenize",
    "read_quickly": "tokenize",
    "is_before": "order_runs",
    "grown": "open_by_reach",
    "equal_tokens": "find_runs",
    "length_told": "find_runs",
    "add_run": "find_runs",
    "keep_of_gram": "cap_grams",
    "move_posting": "cap_grams",
    "least_of_block": "enter_windows",
    "question_coverage": "find_rivals",
    "matched_text": "find_rivals",
    "settle_document": "find_rivals",
}
#: Modules in which runs become evidence. Their twin is brute force over whole documents: what
#: `scan_batch` says must be true, and no run may be missing (test_document.py).
COVERED_MODULES = ("align", "pairs", "surroundings", "judge", "document")
#: `Matcher.match`, through which documents are matched in the tests, calls these.
THROUGH_THE_LIBRARY = {"scan_batch"}


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


def imported(node: ast.AST) -> set[str]:
    """What a test file takes from contam.kernels, and the names of its modules there."""
    return {
        alias.name
        for one in ast.walk(node)
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("contam.kernels")
        for alias in one.names
    }


kernels = {name: node for name, node in functions(KERNELS).items() if is_kernel(node)}
wrappers = {n: node for n, node in functions(TESTS, "test_*.py").items() if is_kernel(node)}


def compared() -> set[str]:
    """Kernels that a test calls, directly or in a wrapper of its own."""
    found = set(THROUGH_THE_LIBRARY)
    for path in TESTS.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if imported(tree):
            found |= called(tree) & (kernels.keys() | wrappers.keys())
    return found


def covered() -> dict[str, str]:
    """The list above, with the kernels of the covered modules that have no test of their own."""
    mine = {
        name
        for module in COVERED_MODULES
        for name, node in functions(KERNELS, f"{module}.py").items()
        if is_kernel(node)
    }
    return {**COVERED_BY, **dict.fromkeys(mine - compared(), "scan_batch")}


def reached_from(name: str) -> set[str]:
    """Every kernel that runs when this one does."""
    known = {**kernels, **wrappers}
    seen, waiting = set(), [name]
    while waiting:
        here = called(known[waiting.pop()]) & known.keys()
        waiting += here - seen
        seen |= here
    return seen


def test_every_kernel_is_compared_with_a_twin_or_said_to_be_covered():
    assert len(kernels) > 50
    assert kernels.keys() - compared() - covered().keys() == set()


def test_the_list_of_covered_kernels_names_kernels_without_a_test():
    assert COVERED_BY.keys() <= kernels.keys() - compared()
    assert set(COVERED_BY.values()) <= compared()


@pytest.mark.parametrize("name", sorted(covered()))
def test_a_covered_kernel_runs_inside_the_one_that_covers_it(name):
    assert name in reached_from(covered()[name])


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
        "__future__",
        "re",
        "unicodedata",
        "functools",
        "itertools",
        "typing",
        "collections",
    }
    assert roots <= strangers | {"math", "hashlib", "dataclasses", "bisect", "struct", "zlib"}
