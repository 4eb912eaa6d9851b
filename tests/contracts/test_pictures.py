"""The pictures of the README are what their script draws from bench_fixtures."""

from __future__ import annotations

import subprocess
import sys

PICTURES = "docs/pictures"


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
