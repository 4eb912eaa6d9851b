"""The notebooks give the outputs that they show, and say nothing of the machine that ran them."""

import re

import pytest

pytestmark = pytest.mark.docs

pytest.importorskip("nbclient", reason="pip install '.[docs]'")

from tests.docs import notebooks  # noqa: E402 - only where it can be run

#: Paths of a machine, written so that this file does not hold one either.
MACHINE = re.compile(r"(?<![\w.}~-])/(work|root|tmp|home|Users)/\w")
NAMES = sorted(path.name for path in notebooks.FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gives_what_it_shows(name):
    shown = notebooks.kept(notebooks.FOLDER / name)
    code = [cell for cell in shown.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs for cell in code)
    for cell, again in zip(shown.cells, notebooks.run(shown).cells, strict=True):
        assert cell == again, "`python -m tests.docs.notebooks` runs it and keeps the outputs"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_names_no_machine_and_no_time(name):
    text = (notebooks.FOLDER / name).read_text(encoding="utf-8")
    assert MACHINE.search(text) is None
    assert not re.search(r"0x[0-9a-f]{6,}|\d+(\.\d+)? (s|ms|seconds)\b", text)
