"""Write a scan result to disk as a whole, and read it back only if it is unchanged."""

from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.detect.notebook import result_html, result_line
from contam.detect.result import VERDICTS, ScanTables, iter_verdicts, label_counts
from contam.errors import Hint, InternalError, OutputError, Public
from contam.files.addresses import Address
from contam.files.disk import output_errors
from contam.files.publish import publishing
from contam.files.single import fingerprint, read_file
from contam.files.stores import fetch, names_below, place
from contam.tables import schemas
from contam.tables.hit_table import HITS_FILE, write_hits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.detect.policies.verdict import Verdict
    from contam.detect.result import ScanResult
    from contam.tables.schemas import Table

_USE_VERSION_OF_RESULT: Final = "use the contam version named in its run.json, or scan again"


RUN_FILE: Final = "run.json"
TABLES: Final = {
    "verdicts.parquet": VERDICTS,
    "evidence.parquet": schemas.EVIDENCE,
    "items.parquet": schemas.ITEMS,
}
FILES: Final = (*TABLES, RUN_FILE)


#: The types of what coverage says: it may come from an upload, and whoever shows it relies on them.
_COVERAGE: Final[dict[str, type]] = {
    "shards_expected": int,
    "shards_read": int,
    "shards_failed": list,
    "complete": bool,
    "rows": int,
    "n_bytes": int,
    "by_shard": list,
}


@dataclass(kw_only=True)
class ReportDraft:
    """A result folder that does not exist yet: `write` fills it, leaving the block publishes."""

    out: Path
    folder: Path
    written: bool = field(default=False, init=False)

    def write(self, result: ScanResult) -> None:
        """Write the files. Raises OutputError when the disk refuses."""
        with output_errors(self.out):
            outputs = {}
            for name in TABLES:
                path = self.folder / name
                n_rows = result.write_table(Path(name).stem, path)
                outputs[name] = {"rows": n_rows, **fingerprint(path)}
            if result.hits is not None:
                path = self.folder / HITS_FILE
                outputs[HITS_FILE] = {"rows": write_hits(result.hits(), path), **fingerprint(path)}
            run = {
                "tool": "contam",
                "format": schemas.RESULT_FORMAT,
                **{key: value for key, value in result.run.items() if key != "timings"},
                "counts": result.counts(),
                "outputs": outputs,
                # The only section that differs between equal runs.
                "timings": result.run.get("timings", {}),
            }
            (self.folder / RUN_FILE).write_text(json.dumps(run, indent=2) + "\n", "ascii")
        self.written = True


@contextlib.contextmanager
def report_draft(
    out: str | Path, *, overwrite: bool = False, every_hit: bool = False
) -> Iterator[ReportDraft]:
    """Reserve `out` for a result; it appears when the block ends well and `write` was called.

    every_hit  whether the result will have the table of hits

    Raises OutputError at once when `out` cannot be written, holds a finished result and
    `overwrite` is not set, or holds other files.
    """
    target = place(out)
    hits = (HITS_FILE,)
    names, earlier = ((*hits, *FILES), ()) if every_hit else (FILES, hits)
    with publishing(
        target, names=names, last=RUN_FILE, overwrite=overwrite, earlier=earlier
    ) as folder:
        draft = ReportDraft(out=target, folder=folder)
        yield draft
        if not draft.written:
            raise InternalError("a result folder was reserved and nothing was written")


def write_report(result: ScanResult, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write a finished scan into the folder `out`, whole or not at all; returns the folder."""
    every_hit = result.hits is not None
    with report_draft(out, overwrite=overwrite, every_hit=every_hit) as draft:
        draft.write(result)
    return place(out)


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(ScanTables):
    """A result folder, read and checked. Iterating gives a `Verdict` per item and policy.

    verdicts, evidence, items   Arrow tables, see `contam.tables.schemas`
    run                         the content of run.json
    """

    folder: Path
    run: dict[str, Any]
    verdicts: Table
    evidence: Table
    items: Table

    def __iter__(self) -> Iterator[Verdict]:
        return iter_verdicts(self.verdicts)

    def __len__(self) -> int:
        return int(self.verdicts.num_rows)

    def __repr__(self) -> str:
        counts = label_counts(self.verdicts)
        return result_line(type(self).__name__, counts, self.run["coverage"])

    def _repr_html_(self) -> str:
        counts = label_counts(self.verdicts)
        return result_html(counts, self.run["coverage"], self.run.get("notes", ()))


def load_report(
    folder: str | Path,
    *,
    hint: Hint = "give the folder that `contam scan --out` or `contam query --out` wrote",
) -> Report:
    """Read a result folder.

    hint  what to give instead of a path that is no result folder

    Raises OutputError when it is not there, not finished, written in another format, or when a
    table in it is missing, cut short or changed, or lacks a column that every version writes.
    Optional columns that it lacks are null. What run.json says is checked by nothing.
    """
    folder = place(folder)
    if not (names_below(folder) if isinstance(folder, Address) else folder.is_dir()):
        is_file = not isinstance(folder, Address) and folder.exists()
        fact = "is a file, not a folder" if is_file else "does not exist"
        refused = OutputError("{} {}", folder, Public(fact), hint=hint)
        raise refused if is_file else refused.of_call()
    run = _read_run(folder, hint)
    with contextlib.ExitStack() as stack:
        files = folder
        if isinstance(folder, Address):
            files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="contam-result-")))
        verdicts, evidence, items = (_read_table(folder, name, run, files) for name in TABLES)
    return Report(folder=folder, run=run, verdicts=verdicts, evidence=evidence, items=items)


def _read_run(folder: Path, hint: Hint) -> dict[str, Any]:
    path = folder / RUN_FILE
    try:
        run = json.loads(read_file(path))
    except FileNotFoundError as error:
        raise OutputError(
            "{} holds no finished result: there is no {}", folder, Public(RUN_FILE), hint=hint
        ) from error
    except OSError as error:
        raise OutputError("cannot read {}: {}", path, Public(error.strerror)) from error
    except ValueError as error:
        raise damaged(path) from error
    if not isinstance(run, dict) or run.get("tool") != "contam":
        raise OutputError("{} was not written by contam", path, hint=hint)
    outputs = run.get("outputs")
    if isinstance(outputs, dict) and outputs and outputs.keys().isdisjoint(TABLES):
        raise OutputError("{} holds no verdicts, but another result of contam", folder, hint=hint)
    if run.get("format") != schemas.RESULT_FORMAT:
        raise OutputError(
            "{} is a result of format {}; this contam reads format {}", folder, run.get("format"),
            Public(schemas.RESULT_FORMAT), hint=_USE_VERSION_OF_RESULT,
        )  # fmt: skip
    if not _is_sound(run):
        raise damaged(path)
    return run


def _is_sound(run: dict[str, Any]) -> bool:
    """Whether the sections that every reader goes by are what they should be."""
    parameters, coverage = run.get("parameters"), run.get("coverage")
    if not isinstance(parameters, dict) or not isinstance(coverage, dict):
        return False
    failed = coverage.get("shards_failed", [])
    return all(
        isinstance(coverage.get(name, kind()), kind) for name, kind in _COVERAGE.items()
    ) and all(isinstance(shard, dict) and {"shard", "reason"} <= shard.keys() for shard in failed)


def _read_table(folder: Path, name: str, run: dict[str, Any], files: Path) -> Table:
    """A table of a result; one in a store is copied to the folder `files` first."""
    path = folder / name
    try:
        expected = run["outputs"][name]
        if isinstance(path, Address):
            fetch(path, files / name)
        found = fingerprint(files / name)
        if {key: expected[key] for key in found} != found:
            raise damaged(path)
        return schemas.read_parquet(files / name, TABLES[name])
    except FileNotFoundError as error:
        raise OutputError(
            "{} is not whole: there is no {}", folder, name, hint="scan again"
        ) from error
    except OSError as error:
        raise OutputError("cannot read {}: {}", path, Public(error.strerror or error)) from error
    except schemas.ColumnsError as error:
        raise OutputError("{} {}", path, error, hint=_USE_VERSION_OF_RESULT) from error
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path) from error


def damaged(path: Path) -> OutputError:
    """The error for a file of a result that is not what was written."""
    return OutputError(
        "{} was cut short or changed since the scan", path, hint="scan again with --overwrite"
    )
