"""Frozen tokens and hashes: a change here is a new normaliser version, never a fix."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from contam.text.token_hash import token_hash
from tests.kernels.support import LOOKALIKES, NAMES
from tests.twins import tokens as twin

CASES = json.loads(Path(__file__).with_name("known_answers.json").read_text(encoding="utf-8"))


def answers(case: dict, unit: str) -> list[tuple[int, int, int]]:
    return [(int(digest, 16), start, end) for _, start, end, digest in case[unit]]


@pytest.mark.parametrize(
    ("token", "digest"),
    [
        (b"", 0x2E72_B464_3DEC_7BFB),
        (b"a", 0x3D7E_4D3B_1F1D_3D27),
        (b"abcdefgh", 0x5AC8_1B40_2908_9A46),
        (b"abcdefghi", 0xB528_5473_5112_21FA),
        ("中".encode(), 0xECFD_BC51_3CC8_756E),
    ],
)
def test_hash_values_are_frozen(token, digest):
    assert token_hash(token) == digest


def test_hashes_in_the_format_document_are_true(repository):
    page = (repository / "docs" / "normaliser.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| `([0-9a-f]{16})` \|$", page, re.MULTILINE)
    written = {cell: int(digest, 16) for cell, digest in rows}
    tokens = {"(none)": b"", "E4 B8 AD (中)": "中".encode()}
    assert len(written) == 5
    for cell, digest in written.items():
        assert token_hash(tokens.get(cell, cell.strip("`").encode())) == digest


def test_hash_is_never_zero_and_fills_64_bits():
    digests = [token_hash(str(number).encode()) for number in range(2000)]
    assert all(0 < digest < 2**64 for digest in digests)
    assert len(set(digests)) == len(digests)
    assert sum(digest >> 63 for digest in digests) > 900


def test_every_frozen_hash_is_the_hash_of_the_frozen_token():
    for case in CASES:
        for folded, _, _, digest in case["word"] + case.get("char", []):
            assert token_hash(folded.encode()) == twin.token_hash(folded) == int(digest, 16)


def test_twin_gives_the_frozen_tokens():
    for case in CASES:
        text = case["text"].encode()
        assert twin.word_tokens(text, NAMES, LOOKALIKES) == answers(case, "word"), case["name"]
        if "char" in case:
            assert twin.char_tokens(text, NAMES) == answers(case, "char"), case["name"]
