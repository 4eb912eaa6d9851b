"""Write a study as Parquet, JSON, Markdown and pictures, whole or not at all."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.detect.report import RUN_FILE
from contam.extras import require
from contam.files.publish import output_errors, publishing
from contam.files.single import fingerprint
from contam.rescore.export.summary import cell, table
from contam.rescore.run import earlier_outputs
from contam.study.model import shown
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    pictures = [f"{one.name}.svg" for one in study.pictures]
    names = [*(f"{name}.parquet" for name in study.tables), TABLES, SUMMARY, *pictures, RUN_FILE]
    earlier = earlier_outputs(Path(out), names)
    with (
        publishing(out, names=names, last=RUN_FILE, overwrite=overwrite, earlier=earlier) as folder,
        output_errors(Path(out)),
    ):
        for name, one in study.tables.items():
            schemas.write_parquet(one, folder / f"{name}.parquet")
        (folder / TABLES).write_text(json.dumps(tree(study), indent=1) + "\n", "ascii")
        (folder / SUMMARY).write_text(markdown(study), encoding="utf-8")
        save(study.pictures, folder)
        run = {
            **study.made(),
            "outputs": {name: fingerprint(folder / name) for name in names[:-1]},
            # The only section that differs between equal runs stands last.
            "timings": {"written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())},
        }
        (folder / RUN_FILE).write_text(json.dumps(run, indent=2) + "\n", "ascii")
    return Path(out)


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
