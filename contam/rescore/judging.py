"""Choose what labels the items of logs: a scan's folder or a file of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from contam.benchmark.sources import BenchmarkFile
from contam.detect.given import IN_MEMORY, given_benchmark
from contam.detect.report import RUN_FILE, Report, load_report
from contam.detect.result import ScanResult
from contam.errors import Statement, UsageError
from contam.rescore.annotated import Judging, annotate
from contam.rescore.annotations import Annotations, read_annotations
from contam.rescore.join import Joiner, sources_of
from contam.rescore.panel import flags_in
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore.logs.model import Log

    Verdicts: TypeAlias = str | Path | ScanResult | Report | Source

_LEAVE_OPTIONS_OF_LABELS: Final = (
    "--threshold, --unlisted and --verdict-columns are for such a file; a scan's "
    "own verdicts have their thresholds"
)


class LabelOptions(TypedDict, total=False):
    """The same, by keyword; see `FileOptions`."""

    verdict_columns: Mapping[str, str] | None
    threshold: float | None
    unlisted: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How a file of labels is read; a folder of results takes none of these.

    verdict_columns  role -> column, where the usual names do not fit
    threshold        the score from which on an item is contaminated
    unlisted         what items are that the file does not name: "clean" or "not_checkable"
    """

    verdict_columns: Mapping[str, str] | None = None
    threshold: float | None = None
    unlisted: str | None = None


def open_verdicts(given: Verdicts, options: FileOptions) -> Report | Annotations:
    """A result, a folder of one, a file of labels, or a table of them.

    Raises OutputError, LogError or UsageError.
    """
    if isinstance(given, ScanResult | Report):
        if options != FileOptions():
            raise UsageError("a result has labels", hint=_LEAVE_OPTIONS_OF_LABELS)
        return given if isinstance(given, Report) else _report_of(given)
    if isinstance(given, str | Path):
        path, data = Path(given), None
    else:
        path, data = _labels(given)
    if data is not None or path.is_file():
        _refuse_part(path)
        return read_annotations(
            path,
            columns=options.verdict_columns,
            threshold=options.threshold,
            unlisted=options.unlisted,
            data=data,
        )
    if options != FileOptions() and path.is_dir():
        raise UsageError("{} is no file of labels", path, hint=_LEAVE_OPTIONS_OF_LABELS)
    return load_report(
        path,
        hint=(
            "give the folder that `contam scan --out` or `contam query --out` wrote, or a "
            "file of labels (CSV, TSV, JSONL, JSON, Parquet)"
        ),
    )


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
            "{} is a part of a result", path, hint=Statement("give its folder: {}", path.parent)
        )


def policies_of(found: Report | Annotations, wanted: Sequence[str]) -> tuple[str, ...]:
    """The policies to judge by; UsageError for one that the verdicts do not hold."""
    known = found.policies if isinstance(found, Annotations) else _held(found)
    for name in wanted:
        if name not in known:
            raise UsageError(
                "the verdicts hold no policy {}", name,
                hint=Statement("they hold: {}", ", ".join(known)),
            )  # fmt: skip
    return tuple(wanted or known)


def one_policy(found: Report | Annotations, policy: str | None) -> str:
    """The policy to judge by where one is wanted: as named, or the only one there is."""
    chosen = policies_of(found, [policy] if policy else ())
    if len(chosen) != 1:
        raise UsageError(
            "the verdicts hold {} policies", len(chosen),
            hint=Statement("name one: they hold: {}", ", ".join(chosen)),
        )  # fmt: skip
    return chosen[0]


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
    joiner = Joiner(found.items, sources_of(found.run))
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined=tuple(joiner.join(log, allow_unmatched=allow_unmatched) for log in logs),
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
