"""Choose what labels the items of logs: a scan's folder or a file of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from contam.benchmark.sources import BenchmarkFile
from contam.detect.given import IN_MEMORY, given_benchmark
from contam.detect.report import RUN_FILE, Report, load_report
from contam.detect.result import ScanResult
from contam.errors import Remedy, UsageError
from contam.rescore.annotated import Judging, annotate
from contam.rescore.annotations import Annotations, read_annotations
from contam.rescore.join import Joiner
from contam.rescore.panel import flags_in
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore.logs.model import Log

    Verdicts: TypeAlias = str | Path | ScanResult | Report | Source


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How a file of labels is read; a folder of results takes none of these.

    columns    role -> column, where the usual names do not fit
    threshold  the score from which on an item is contaminated
    unlisted   what items are that the file does not name: "clean" or "not_checkable"
    """

    columns: Mapping[str, str] | None = None
    threshold: float | None = None
    unlisted: str | None = None


def open_verdicts(given: Verdicts, options: FileOptions) -> Report | Annotations:
    """A result, a folder of one, a file of labels, or a table of them.

    Raises OutputError, LogError or UsageError.
    """
    if isinstance(given, ScanResult | Report):
        if options != FileOptions():
            raise UsageError("a result has labels", remedy=Remedy.LEAVE_OPTIONS_OF_LABELS)
        return given if isinstance(given, Report) else _report_of(given)
    if isinstance(given, str | Path):
        path, data = Path(given), None
    else:
        path, data = _labels(given)
    if data is not None or path.is_file():
        _refuse_part(path)
        return read_annotations(
            path,
            columns=options.columns,
            threshold=options.threshold,
            unlisted=options.unlisted,
            data=data,
        )
    if options != FileOptions() and path.is_dir():
        raise UsageError("{} is no file of labels", path, remedy=Remedy.LEAVE_OPTIONS_OF_LABELS)
    return load_report(path, remedy=Remedy.GIVE_RESULT_OR_LABELS)


def _report_of(result: ScanResult) -> Report:
    return Report(
        folder=Path(f"{IN_MEMORY}verdicts"),
        run=result.run,
        verdicts=result.verdicts,
        evidence=result.evidence,
        items=result.items,
    )


def _labels(given: Source) -> tuple[Path, bytes]:
    """The labels in one table of the caller, and what they are called."""
    found = given_benchmark(given, "labels")
    if len(found) != 1 or not isinstance(found[0], BenchmarkFile) or found[0].data is None:
        raise UsageError("verdicts are one result, one path or one table of labels")
    return found[0].path, found[0].data


def _refuse_part(path: Path) -> None:
    """A table of a result folder says less than the folder, which is checked as a whole."""
    if path.suffix == ".parquet" and (path.parent / RUN_FILE).is_file():
        raise UsageError(
            "{} is a part of a result", path, remedy=Remedy.GIVE_ITS_FOLDER(folder=path.parent)
        )


def policies_of(found: Report | Annotations, wanted: Sequence[str]) -> tuple[str, ...]:
    """The policies to judge by; UsageError for one that the verdicts do not hold."""
    known = found.policies if isinstance(found, Annotations) else _held(found)
    for name in wanted:
        if name not in known:
            raise UsageError(
                "the verdicts hold no policy {}", name,
                remedy=Remedy.CHOOSE_POLICY_OF_VERDICTS(known=", ".join(known)),
            )  # fmt: skip
    return tuple(wanted or known)


def _held(report: Report) -> tuple[str, ...]:
    return tuple(sorted(set(schemas.column(report.verdicts, "policy"))))


def join_logs(
    found: Report | Annotations,
    logs: Sequence[Log],
    policies: Sequence[str],
    options: FileOptions,
    *,
    allow_unmatched: bool = False,
) -> Judging:
    """Find the items of every log among those judged. Raises LogError for another benchmark."""
    if isinstance(found, Annotations):
        return annotate(
            found, logs, policies, unlisted=options.unlisted, allow_unmatched=allow_unmatched
        )
    flags = flags_in(found)
    joiner = Joiner(found.items)
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined={id(log): joiner.join(log, allow_unmatched=allow_unmatched) for log in logs},
        judged=joiner.judged,
        source=_source_of(found),
        coverage=found.run.get("coverage", {}),
    )


def _source_of(report: Report) -> dict[str, Any]:
    return {
        "folder": str(report.folder),
        "outputs": report.run.get("outputs", {}),
        "policies": {
            name: definition.get("fingerprint")
            for name, definition in report.run["parameters"]["policy_definitions"].items()
        },
    }
