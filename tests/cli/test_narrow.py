"""What a terminal of any width shows of a table: every name and every number, and none cut."""

from __future__ import annotations

import re

import pytest

from contam.cli import render
from contam.cli.sheet import Sheet, Title
from contam.cli.terminal import laid_out

WIDTHS = (40, 60, 72, 80, 92, 120)
NAMES = ("brook_math", "open/long-named_benchmark.of-words:test-and-validation-together-2024")
POLICIES = ("contam", "gpt3-13gram", "igmini-50")
COUNTS = {
    name: {
        policy: {
            "contaminated": 1_201 + at, "suspect": 321 + at, "clean": 100_025 - at,
            "not_checkable": 4_400 + at,
        }
        for at, policy in enumerate(POLICIES)
    }
    for name in NAMES
}  # fmt: skip


def printed(monkeypatch, width, *renderables):
    monkeypatch.setenv("COLUMNS", str(width))
    text = laid_out(renderables)
    assert all(len(line) <= width for line in text.splitlines())
    return text


def unbroken(text):
    """The text with lines joined: what was folded in the middle of a word is whole again."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_verdicts_name_benchmark_policy_and_every_count_at_any_width(monkeypatch, width):
    text = printed(monkeypatch, width, render.verdict_table(COUNTS))
    for name, policies in COUNTS.items():
        assert name in unbroken(text)
        for policy, labels in policies.items():
            assert policy in text.split()
            assert all(f"{count:,}" in text.split() for count in labels.values())
    for heading in ("benchmark", "policy", "items", "contaminated", "suspect", "clean", "flagged"):
        assert heading in text.split()


def test_eighty_columns_hold_a_table_of_verdicts(monkeypatch):
    few = {"brook_math": {"contam": COUNTS["brook_math"]["contam"]}}
    lines = printed(monkeypatch, 80, render.verdict_table(few)).splitlines()
    assert lines[-1].split() == [
        "brook_math", "contam", "105,947", "1,201", "321", "100,025", "4,400", "1.4", "%",
    ]  # fmt: skip


def test_each_record_names_what_it_is_about_where_no_table_fits(monkeypatch):
    few = {"brook_math": {name: COUNTS["brook_math"][name] for name in POLICIES[:2]}}
    assert printed(monkeypatch, 60, render.verdict_table(few)).splitlines() == [
        "benchmark brook_math  policy contam",
        "  items 105,947  contaminated 1,201  suspect 321",
        "  clean 100,025  not checkable 4,400  flagged 1.4 %",
        "benchmark brook_math  policy gpt3-13gram",
        "  items 105,949  contaminated 1,202  suspect 322",
        "  clean 100,024  not checkable 4,401  flagged 1.4 %",
    ]


def test_a_number_that_there_is_none_of_is_left_out_of_a_record(monkeypatch):
    sheet = Sheet(("model",), ("full", "clean"))
    sheet.add(["a-model-of-a-long-name"], ["0.5", ""])
    text = printed(monkeypatch, 30, sheet)
    assert text.splitlines() == ["model a-model-of-a-long-name", "  full 0.5"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_title_of_an_item_is_never_cut(monkeypatch, width):
    name = f"{NAMES[1]}/test/q-17"
    assert name in unbroken(printed(monkeypatch, width, Title(name)))
    assert "─" in printed(monkeypatch, width, Title("brook_math/q1"))
