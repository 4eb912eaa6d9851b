"""Give a plan to other processes, as files that they map into memory.

views.bin         how items are matched, without their texts: tokens and gram tables
tokenizer-N.json  copies of the tokenizer files, if any
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from contam.benchmark.item_table import ItemTable
from contam.detect.parts.mapped import MappedFile, write_tree
from contam.detect.plan import Plan
from contam.errors import OutputError, Place
from contam.files.single import fingerprint
from contam.text.bpe import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

_VIEWS: Final = "views.bin"


def write_plan(plan: Plan, folder: Path) -> None:
    """Write what a worker needs of a plan into a folder.

    Raises OSError, and OutputError for a tokenizer file that changed.
    """
    used = [one for view in plan.views for one in (view.tokenizer, view.reads_with) if one]
    distinct = {id(tokenizer): tokenizer for tokenizer in used}.values()
    known: dict[str, object] = {}
    for number, tokenizer in enumerate(distinct, 1):
        path = folder / f"tokenizer-{number}.json"
        shutil.copyfile(tokenizer.path, path)
        if fingerprint(path)["sha256"] != tokenizer.sha256:
            raise OutputError(
                "{}: changed after it was read", Place(tokenizer.path),
                hint="let nobody write to it meanwhile",
            )  # fmt: skip
        known[path.name] = tokenizer
    with (folder / _VIEWS).open("wb") as file:
        write_tree(file, (plan.parameters, plan.policies, plan.view_of, plan.views), known)


def open_plan(folder: Path) -> Plan:
    """The plan in a folder, without its items; afterwards the folder may be removed."""
    known = {path.name: load_tokenizer(str(path)) for path in folder.glob("tokenizer-*.json")}
    parameters, policies, view_of, views = MappedFile.tree(folder / _VIEWS, known)
    return Plan(
        parameters=parameters,
        benchmarks=(),
        items=ItemTable.of(()),
        policies=policies,
        views=views,
        view_of=view_of,
    )
