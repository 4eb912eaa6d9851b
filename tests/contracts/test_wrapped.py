"""Prose of the documentation is wrapped, and its pictures are what their script draws."""

import subprocess
import sys

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


PICTURES = "docs/pictures"


@pytest.mark.slow
def test_the_pictures_are_current(repository, tmp_path):
    script = repository / PICTURES / "make_pictures.py"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = {path.name: path.read_text() for path in (repository / PICTURES).glob("*.svg")}
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert kept == drawn, "`make pictures` draws them again"
    for text in drawn.values():
        # A picture of a page that opens offline fetches nothing.
        assert "href" not in text
        assert "<title>" in text


def test_the_readme_shows_the_pictures(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    for path in (repository / PICTURES).glob("*.svg"):
        assert f"]({PICTURES}/{path.name})" in text
