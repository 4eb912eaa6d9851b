"""Hold the tables of a result, and write them into a folder with what else belongs to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contam.detect.report import RUN_FILE
from contam.files.disk import output_errors
from contam.files.publish import publishing
from contam.files.single import fingerprint, read_file
from contam.files.stores import place
from contam.tables import schemas
from contam.tables.frames import Frames, unknown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contam.rescore import Row
    from contam.tables.schemas import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables(Frames):
    """A result of several tables: Arrow tables by name, the main one first."""

    tables: Mapping[str, Table]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {table.num_rows}" for name, table in self.tables.items())
        return f"<{type(self).__name__}: rows of {sizes}>"

    def rows(self, table: str = "") -> list[Row]:
        """The rows of one table, the main one unless named, as dictionaries."""
        return schemas.rows(self.to_arrow(table))

    def to_arrow(self, table: str = "") -> Table:
        """One table, the main one unless named. Raises UsageError for an unknown name."""
        name = table or next(iter(self.tables))
        if name not in self.tables:
            raise unknown_table(name, self.tables)
        return self.tables[name]


def write_folder(
    out: str | Path,
    result: Tables,
    others: Sequence[str],
    write: Callable[[Path], None],
    run: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a result whole or not at all; run.json is last and has the digests of all files.

    others  names of the files that `write` makes beside the tables, in the folder it is given
    """
    target = place(out)
    names = [*(f"{name}.parquet" for name in result.tables), *others]
    earlier = _earlier(target, names)
    with (
        publishing(
            target,
            names=[*names, RUN_FILE],
            last=RUN_FILE,
            overwrite=overwrite,
            earlier=earlier,
        ) as folder,
        output_errors(target),
    ):
        for name, table in result.tables.items():
            schemas.write_parquet(table, folder / f"{name}.parquet")
        write(folder)
        whole = {**run, "outputs": {name: fingerprint(folder / name) for name in names}}
        # The only section that differs between equal runs stands last.
        whole["timings"] = whole.pop("timings")
        (folder / RUN_FILE).write_text(json.dumps(whole, indent=2) + "\n", "ascii")
    return target


def _earlier(out: Path, names: Sequence[str]) -> list[str]:
    """Further files of an earlier run in the folder: pictures depend on what was scored."""
    try:
        outputs = json.loads(read_file(out / RUN_FILE))["outputs"]
        return [name for name in outputs if name not in names]
    except (OSError, ValueError, KeyError, TypeError):
        return []
