"""Every number that can decide a verdict of `contam` has a name, and its fingerprint holds it."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import contam
from contam.detect.policies.contam_definition import CONTAM, matching_constants
from contam.errors import PolicyError
from contam.kernels import constants
from contam.text import common_words

HOME = Path(contam.__file__).parent
#: Modules between the tokens of an item and its label.
DECISIVE = (
    "kernels/align.py", "kernels/fill.py", "kernels/score_item.py", "kernels/match_facts.py",
    "kernels/match_rows.py", "kernels/runs.py",
    "detect/match/variants.py", "detect/match/grams.py",
    "detect/policies/contam_default.py", "detect/policies/contam_definition.py",
)  # fmt: skip
#: Nothing, one, both, the next but one; in whole numbers the parts of an item and their bits, and
#: the values of a byte.
PLAIN = {int: {-1, 0, 1, 2, 3, 4, 256}, float: {0.0, 1.0, 2.0}}


def unnamed_numbers(source: str) -> list[tuple[int, float]]:
    """(line, value) of every number that is neither plain nor the value of a name of the module or of a field of a class."""
    tree = ast.parse(source)
    fields = [field for one in tree.body if isinstance(one, ast.ClassDef) for field in one.body]
    named = {
        inner
        for statement in [*tree.body, *fields]
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for inner in ast.walk(statement)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and type(node.value) in PLAIN
        and node.value not in PLAIN[type(node.value)]
        and node not in named
    ]


@pytest.mark.parametrize("module", DECISIVE)
def test_no_number_that_decides_is_without_a_name(module):
    assert unnamed_numbers((HOME / module).read_text(encoding="utf-8")) == []


#: What is named in those modules and decides nothing: layouts, buffers, bits and figures of hashes.
LAYOUT = {
    "ANSWER", "AS_LETTER", "AS_NUMBER", "BLOCK_CHAIN", "BLOCK_COLUMNS", "BLOCK_DOC", "BLOCK_ITEM", "BLOCK_LENGTH",
    "CHOICES", "FEW_BLOCKS", "FEW_MATCHES", "FEW_PIECES", "FEW_RUNS", "NO_LIMIT", "MATCH_ALIGNED",
    "MATCH_ANSWER", "MATCH_COLUMNS", "MATCH_COVERED", "MATCH_DOC", "MATCH_EXACT", "MATCH_ITEM",
    "MATCH_LONGEST", "MATCH_PLACES", "MATCH_RUNS", "MATCH_SPLIT", "PASSAGE", "PIECE_ALIGNMENT",
    "PIECE_COLUMNS", "PIECE_DOC", "PIECE_ITEM", "PIECE_LENGTH", "PIECE_MATCH", "PIECE_PART",
    "QUESTION", "REAL_COLUMNS", "REAL_COVERAGE", "RUN_COLUMNS", "RUN_DOC",
    "RUN_ITEM", "RUN_LENGTH", "RUN_PART", "RUN_STEPS", "TOO_LONG", "_AT_ONCE", "_BITS", "_BITS_A_BYTE", "_BUCKETS",
    "_BUCKET_SHIFT", "_FETCHED", "_FILTERED", "_FILTERED_HEADS", "_FRONT_WORDS", "_HALF_BITS", "_IN_BYTE", "_IN_WORD", "_LEAST_FILTER_BITS", "_LEAST_SLOTS", "_LETTERS",
    "_LETTER_BYTES", "_LOW_HALF", "_MANY_GRAMS", "_MOST_DROP", "_MOST_PASSES", "_MOST_SHARES", "_MOST_TOKENS", "_NOTHING", "_NO_RUN", "_NO_WORD", "_NUMBER", "_PIECE", "_SKIP_DOC", "_SKIP_ITEM",
    "_SLOTS_FOR_FOUR", "_SORTED_AT_ONCE",
}  # fmt: skip


def numbers_by_name(source: str) -> set[str]:
    """Names of a module whose values are made of numbers."""
    found = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {
                name.id
                for target in targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            }
            values = ast.walk(statement.value)
            if any(
                isinstance(value, ast.Constant) and type(value.value) in PLAIN for value in values
            ):
                found |= names
    return found


def test_what_decides_is_named_where_the_fingerprint_looks():
    found = set()
    for module in DECISIVE:
        found |= numbers_by_name((HOME / module).read_text(encoding="utf-8"))
    assert found <= LAYOUT | {"CONTAM"}


@pytest.mark.parametrize("name", [name for name, _ in CONTAM.constants])
def test_any_other_constant_is_another_fingerprint(name, monkeypatch):
    home = constants if hasattr(constants, name) else common_words
    monkeypatch.setattr(home, name, 1 + getattr(home, name))
    if home is common_words:
        monkeypatch.setattr(f"contam.detect.policies.contam_definition.{name}", getattr(home, name))
    other = replace(CONTAM, constants=matching_constants())
    assert other.constants != CONTAM.constants
    assert other.fingerprint() != CONTAM.fingerprint()


@pytest.mark.parametrize("name", [name for name, _ in CONTAM.parameters])
def test_any_other_parameter_is_another_fingerprint_and_is_read(name):
    changed = CONTAM.with_changes({"id": "mine", "parameters": {name: CONTAM.number(name) + 1}})
    assert changed.fingerprint() != CONTAM.fingerprint()
    source = (HOME / "detect/policies/contam_default.py").read_text(encoding="utf-8")
    assert f"numbers.{name}" in source


def test_a_file_cannot_change_what_is_compiled():
    tree = CONTAM.to_dict()
    assert CONTAM.with_changes({"id": "same", "constants": tree["constants"]}).constants
    with pytest.raises(PolicyError, match="constants"):
        CONTAM.with_changes({"id": "mine", "constants": {**tree["constants"], "CLOSE": 4}})
