"""Run the notebooks anew, and keep what they print: `python -m tests.docs.notebooks`."""

import copy
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.waiting import HANG_S

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def kept(path):
    """The notebook as it is committed."""
    return nbformat.read(path, as_version=4)


def run(notebook):
    """The same notebook with what its cells give now, and nothing of the machine they ran on."""
    done = copy.deepcopy(notebook)
    metadata = copy.deepcopy(notebook.metadata)
    for cell in done.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        done, timeout=int(HANG_S), kernel_name="python3", resources={"metadata": {"path": FOLDER}}
    )
    client.execute()
    done.metadata = metadata
    for cell in done.cells:
        # When each cell ran.
        cell.metadata.pop("execution", None)
    return done


if __name__ == "__main__":
    for page in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(kept(page)), page)
        sys.stdout.write(f"{page.name}: run\n")
