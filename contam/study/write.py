"""Write a study as Parquet, JSON, Markdown and pictures, whole or not at all."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from contam.extras import require
from contam.rescore.export.folder import write_folder
from contam.rescore.export.summary import cell, table
from contam.study.model import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.study.model import Study

SUMMARY: Final = "summary.md"
TABLES: Final = "study.json"
_MOST_ROWS: Final = 50


def write_study(study: Study, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write tables, summary and pictures into a folder; run.json is last and has their digests.

    Raises OutputError, and MissingExtraError without matplotlib.
    """
    require("scores", "matplotlib")
    from contam.study.pictures import save

    def write(folder: Path) -> None:
        (folder / TABLES).write_text(json.dumps(tree(study), indent=1) + "\n", "ascii")
        (folder / SUMMARY).write_text(markdown(study), encoding="utf-8")
        save(study.pictures, folder)

    others = [TABLES, SUMMARY, *(f"{one.name}.svg" for one in study.pictures)]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = {**study.made(), "timings": {"written": now}}
    return write_folder(out, study, others, write, run, overwrite=overwrite)


def tree(study: Study) -> dict[str, Any]:
    """The study as JSON can say it: finding, refusals, tables as rows, how it was made."""
    return {
        "study": study.name,
        "finding": asdict(study.finding),
        "refused": [asdict(one) for one in study.refusals],
        "tables": {name: [_plain(row) for row in study.rows(name)] for name in study.tables},
        "run": study.made(),
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinite number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def markdown(study: Study) -> str:
    """The summary: finding, refusals, pictures, the first rows of every table."""
    found = study.finding
    lines = [
        *(f"# Study: {study.name}", "", cell(found.found), ""),
        *(f"**How sure:** {cell(found.sure)}", ""),
        *(f"**What would change it:** {cell(found.change)}", ""),
    ]
    if study.refusals:
        reasons = (f"- {cell(one.what)}: {cell(one.reason)}" for one in study.refusals)
        lines += ["## Not estimated", "", *reasons, ""]
    for picture in study.pictures:
        lines += [f"![{cell(picture.caption)}]({picture.name}.svg)", ""]
    for name in study.tables:
        rows = study.rows(name)
        lines += [f"## {name}", ""]
        head = study.tables[name].column_names
        body = [[shown(value, key) for key, value in row.items()] for row in rows[:_MOST_ROWS]]
        lines += table(head, body)
        if len(rows) > _MOST_ROWS:
            lines += [f"{len(rows) - _MOST_ROWS:,} more rows in `{name}.parquet`", ""]
    if notes := study.run.get("notes"):
        lines += ["## Notes", "", *(f"- {cell(note)}" for note in notes), ""]
    return "\n".join(lines)
