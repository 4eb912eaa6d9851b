"""No kernel goes unproved: each is compared with a twin itself, or inside a larger one that is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TWINS = TESTS.parent / "twins"
KERNELS = TESTS.parent.parent / "contam" / "kernels"
DECORATORS = {"kernel", "lean_kernel", "intrinsic"}

#: Kernels without a test of their own, by the tested kernel that they alone give their result to:
#: it could not equal its twin if they did not.
COVERED_BY = {
    "read_marked": "tokenize",
    "letter_flags": "tokenize",
    "reads_as_latin": "tokenize",
    "read_slowly": "tokenize",
    "hash_single": "tokenize",
    "pass_mark": "tokenize",
    "put_starts": "tokenize",
    "put_ends": "tokenize",
    "read_singles": "tokenize",
    "read_quickly": "tokenize",
    "prefetch": "find_hits",
    "bits_of": "find_hits",
    "passes_filter": "find_hits",
    "tag_of": "find_hits",
    "bit_of": "renumbered_shares",
    "slot_of": "find_hits",
    "place_of": "find_hits",
    "hash_short_grams": "hash_grams",
    "is_before": "order_runs",
    "grown": "open_by_reach",
    "equal_tokens": "find_runs",
    "known_length": "find_runs",
    "noted_run": "note_longest",
    "add_run": "find_runs",
    "keep_of_gram": "cap_grams",
    "move_posting": "cap_grams",
    "least_of_block": "enter_windows",
    "question_coverage": "find_competing_items",
    "matched_text": "find_competing_items",
    "find_in_document": "find_competing_items",
    "find_tag": "tokenize",
    "has_mark": "tokenize",
    "add_stretch": "align_place",
    "extend_chain": "align_place",
    "align_part": "scan_batch",
    "score_item": "scan_batch",
    "add_filled": "scan_batch",
    "add_stem": "scan_batch",
    "add_answer": "scan_batch",
    "add_surroundings": "scan_batch",
    "look_up": "scan_batch",
    "scan_document": "scan_batch",
    "add_document": "scan_batch",
    "start_batch": "scan_batch",
    "with_more_scratch": "scan_batch",
    "new_text_scratch": "scan_batch",
    "filter_shift": "enter_words",
    "find_rare_words": "find_windows",
    "make_places": "find_windows",
    "note_stretches": "find_windows",
    "find_own_words": "find_windows",
    "best_window": "find_windows",
    "enough_of": "find_windows",
    "add_windows": "find_windows",
}
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
            found.add(by_name.get(call.id, call.id if call.id in wrappers else ""))
        elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
            found |= {call.attr} & kernels.keys() if call.value.id in modules else set()
    return found & (kernels.keys() | wrappers.keys())


kernels = {name: node for name, node in functions(KERNELS).items() if is_kernel(node)}
wrappers = {n: node for n, node in functions(TESTS, "test_*.py").items() if is_kernel(node)}


def compared() -> set[str]:
    """Kernels that a test calls, directly or in a wrapper of its own."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in CALLERS]
    return {name for tree in trees for name in kernels_called(tree)}


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
    assert kernels.keys() - compared() - COVERED_BY.keys() == set()


def test_the_list_of_covered_kernels_names_kernels_without_a_test():
    assert COVERED_BY.keys() <= kernels.keys() - compared()
    assert set(COVERED_BY.values()) <= compared()


@pytest.mark.parametrize("name", sorted(COVERED_BY))
def test_a_covered_kernel_runs_inside_the_one_that_covers_it(name):
    assert name in reached_from(COVERED_BY[name])


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
        "string",
    }
    assert roots <= strangers | {"math", "hashlib", "dataclasses", "bisect", "struct", "zlib"}
