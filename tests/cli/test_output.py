"""What commands print and write: tables, and nothing over an input."""

import pytest

from contam.cli.render import coverage_lines, share, verdict_table
from contam.cli.terminal import laid_out, plain, visible


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 30_000, "<0.1 %"),
        (29_999, 30_000, ">99.9 %"), (1, 3, "33.3 %"), (0, 0, "-"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_none_or_all(part, whole, shown):
    assert share(part, whole) == shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_loses_no_number_and_is_whole_in_eighty_columns(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    labels = {"contaminated": 1_201, "suspect": 321, "clean": 100_025, "not_checkable": 4_400}
    text = laid_out([verdict_table({"brook_math": {"contam": labels}})])
    assert all(len(line) <= width for line in text.splitlines())
    row = text.splitlines()[-1].split()
    if width < 80:
        assert "…" not in text
    else:
        numbers = ["105,947", "1,201", "321", "100,025", "4,400", "1.4", "%"]
        assert row == ["brook_math", "contam", *numbers]


def test_a_total_ends_the_table_of_several_benchmarks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    labels = {"contaminated": 1, "suspect": 2, "clean": 3, "not_checkable": 4}
    counts = {"one": {"contam": labels, "palm-70": labels}, "two": {"contam": labels}}
    total, other = laid_out([verdict_table(counts)]).splitlines()[-2:]
    assert total.split() == ["total", "contam", "20", "2", "4", "6", "8", "30.0", "%"]
    assert other.split() == ["palm-70", "10", "1", "2", "3", "4", "30.0", "%"]
    assert "total" not in laid_out([verdict_table({"one": counts["one"]})])


def test_steering_characters_become_visible():
    assert visible("a\x1b[2Jb\r\u202ec\u2066\x07\x9b\nd\te") == (
        "a<U+001B>[2Jb<U+000D><U+202E>c<U+2066><U+0007><U+009B>\nd\te"
    )
    assert visible("Zoë 数学 🙂 👩‍🚀 עברית") == "Zoë 数学 🙂 👩‍🚀 עברית"
    assert plain("two\nlines\t ") == "two lines"


def test_many_failures_are_named_in_part_and_counted():
    coverage = {
        "shards_expected": 9, "shards_read": 2, "rows": 5, "n_bytes": 10,
        "shards_failed": [{"shard": f"s{i}", "reason": "gone"} for i in range(7)],
    }  # fmt: skip
    lines = list(coverage_lines(coverage))
    assert lines[1] == "NOT READ s0: gone"
    assert lines[-1] == "NOT READ 2 more shards, see run.json"
