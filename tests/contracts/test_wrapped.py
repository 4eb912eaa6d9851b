"""Prose of the documentation is wrapped, and wrapping changes nothing else."""

from __future__ import annotations

import pytest

from tests.contracts import wrapped


@pytest.mark.parametrize("path", list(wrapped.pages()), ids=lambda path: path.name)
def test_no_line_of_prose_is_longer_than_it_must_be(path):
    text = path.read_text(encoding="utf-8")
    assert wrapped.long_lines(text) == [], "`python -m tests.contracts.wrapped` wraps the prose"
    again = wrapped.wrapped(text)
    assert again.split() == text.split()
    assert wrapped.wrapped(again) == again


def test_what_would_begin_a_list_or_break_a_link_is_not_cut_off():
    words = "word " * 22
    for kept in ("exits 4. then", "a - b", "run `make a b c`", "see [a b c](d.md)", "at > 3"):
        text = f"{words}{'x' * 3} {kept} {words}\n"
        done = wrapped.wrapped(text)
        assert wrapped.wrapped(done) == done
        assert done.split() == text.split()
        assert all(len(line) <= wrapped.WIDTH for line in done.splitlines())
        assert not [line for line in done.splitlines() if line.startswith(("4.", "- ", "> "))]
    assert "`make a b c`" in wrapped.wrapped(f"{words}{'x' * 3} `make a b c`\n")


def test_tables_code_and_lists_stay_what_they_are():
    long = "word " * 40
    text = f"# {long}\n\n| {long} |\n\n```text\n{long}\n```\n\n    {long}\n\n- one {long}\n  two\n- three\n"
    done = wrapped.wrapped(text)
    before, items = text.split("- one", maxsplit=1)[0], done.split("- one")
    assert items[0] == before
    assert items[1].endswith("two\n- three\n")
    assert all(line.startswith(("- ", "  ")) for line in ("- one" + items[1]).splitlines())
