"""A typed project that uses contam is checked against contam's own types."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROJECT = """
import contam
from contam.client import Client

result = contam.scan("corpus", "items.jsonl", policies=["contam"])
reveal_type(result.complete)
wrong: int = contam.scan("corpus", "items.jsonl", workers="two")
Client(nobody=1)
"""


@pytest.mark.slow
def test_what_contam_gives_and_takes_has_types(tmp_path):
    (tmp_path / "project.py").write_text(PROJECT)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "project.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = [line.split(": ", 1) for line in checked.stdout.splitlines()]
    lines = [int(place.split(":")[1]) for place, _ in found if place.startswith("project.py:")]
    assert sorted(set(lines)) == [6, 7, 8], checked.stdout + checked.stderr
    assert 'Revealed type is "bool"' in checked.stdout.replace("builtins.", "")
