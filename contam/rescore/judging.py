"""Choose what labels the items of logs: a scan's folder or a file of labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack

import numpy as np

from contam.benchmark.paths import BenchmarkFile
from contam.detect.given import IN_MEMORY, given_benchmark
from contam.detect.report import RUN_FILE, Report, load_report
from contam.detect.result import ScanResult
from contam.errors import Statement, UsageError
from contam.rescore.annotations import Annotations, Judging, annotate, read_annotations
from contam.rescore.field import smallest_beyond
from contam.rescore.join import Joiner, sources_of
from contam.rescore.panel import Split, flags_in
from contam.rescore.stats.gain import LEAST, smallest_gap, too_few
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore.logs.model import Log

    Verdicts: TypeAlias = str | Path | ScanResult | Report | Source
    from collections.abc import Iterator

    from contam.rescore import Row


_LEAVE_OPTIONS_OF_LABELS: Final = (
    "--threshold, --unlisted and --verdict-columns are for such a file; a scan's "
    "own verdicts have their thresholds"
)


class LabelOptions(TypedDict, total=False):
    """How a file of labels is read; a folder of results takes none of these.

    verdict_columns  role -> column, where the usual names do not fit
    threshold        the score from which on an item is contaminated
    unlisted         what items are that the file does not name: "clean" or "not_checkable"
    """

    verdict_columns: Mapping[str, str] | None
    threshold: float | None
    unlisted: str | None


def open_verdicts(given: Verdicts, **options: Unpack[LabelOptions]) -> Report | Annotations:
    """A result, a folder of one, a file of labels, or a table of them.

    Raises OutputError, LogError or UsageError.
    """
    of_labels = any(value is not None for value in options.values())
    if isinstance(given, ScanResult | Report):
        if of_labels:
            raise UsageError("a result has labels", hint=_LEAVE_OPTIONS_OF_LABELS)
        return given if isinstance(given, Report) else _report_of(given)
    path, data = (Path(given), None) if isinstance(given, str | Path) else _labels(given)
    if data is not None or path.is_file():
        # A table of a result folder says less than the folder, which is checked as a whole.
        if path.suffix == ".parquet" and (path.parent / RUN_FILE).is_file():
            hint = Statement("give its folder: {}", path.parent)
            raise UsageError("{} is a part of a result", path, hint=hint)
        return read_annotations(
            path,
            columns=options.get("verdict_columns"),
            threshold=options.get("threshold"),
            unlisted=options.get("unlisted"),
            data=data,
        )
    if of_labels and path.is_dir():
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


def policies_of(found: Report | Annotations, wanted: Sequence[str]) -> tuple[str, ...]:
    """The policies to judge by; UsageError for one that the verdicts do not hold."""
    if isinstance(found, Annotations):
        known = found.policies
    else:
        known = tuple(sorted(set(schemas.column(found.verdicts, "policy"))))
    for name in wanted:
        if name not in known:
            hint = Statement("they hold: {}", ", ".join(known))
            raise UsageError("the verdicts hold no policy {}", name, hint=hint)
    return tuple(wanted or known)


def one_policy(found: Report | Annotations, policy: str | None) -> str:
    """The policy to judge by where one is wanted: as named, or the only one there is."""
    chosen = policies_of(found, [policy] if policy else ())
    if len(chosen) != 1:
        hint = Statement("name one: they hold: {}", ", ".join(chosen))
        raise UsageError("the verdicts hold {} policies", len(chosen), hint=hint)
    return chosen[0]


def join_logs(
    found: Report | Annotations,
    logs: Sequence[Log],
    policies: Sequence[str],
    *,
    unlisted: str | None = None,
    allow_unmatched: bool = False,
    field: Sequence[Log] = (),
) -> Judging:
    """Find the items of every log among those judged. Raises LogError for another benchmark.

    field  logs, joined behind the others, that may hold items which were not judged
    """
    if isinstance(found, Annotations):
        return annotate(
            found, logs, policies, unlisted=unlisted, allow_unmatched=allow_unmatched, field=field
        )
    flags = flags_in(found)
    joiner = Joiner(found.items, sources_of(found.run))
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined=(
            *(joiner.join(log, allow_unmatched=allow_unmatched) for log in logs),
            *map(joiner.match, field),
        ),
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


def plan_rescore(
    verdicts: Verdicts, *, policies: Sequence[str] = (), least: int = LEAST
) -> list[Row]:
    """One row per benchmark and policy of a scan's result: what its counts can show.

    n_flagged, n_clean    items
    clusters_flagged, clusters_clean  passages or equal contents that they are of
    smallest_gap          flagged less clean, that a test of .05 finds in 80 % of cases, for a model
                          with half of the answers right
    smallest_gap_clusters the same where the answers to a passage are right or wrong together
    smallest_beyond       how far a gap must go beyond that of a field of many models
    note                  why nothing is tested, "" where it is

    The three are None without items of one side.

    Raises OutputError, and UsageError for labels in a file, which say nothing of other items.
    """
    found = open_verdicts(verdicts)
    if isinstance(found, Annotations):
        hint = "give the folder that `contam scan --out` or `contam query --out` wrote"
        raise UsageError("a plan needs verdicts of every item", hint=hint)
    flags = flags_in(found)
    names = np.array(schemas.column(found.items, "benchmark"), object)
    rows = []
    for benchmark in sorted(set(names.tolist())):
        for policy in policies_of(found, policies):
            own = flags[policy]
            split = Split.of(own.label)
            sides = [(names == benchmark) & side for side in (split.flagged, split.clean)]
            counts = [int(side.sum()) for side in sides]
            clusters = [len(np.unique(own.cluster[side])) for side in sides]
            short = zip(counts, ("flagged", "clean"), strict=True)
            rows.append(
                {
                    "benchmark": benchmark,
                    "policy": policy,
                    "n_flagged": counts[0],
                    "n_clean": counts[1],
                    "clusters_flagged": clusters[0],
                    "clusters_clean": clusters[1],
                    "smallest_gap": smallest_gap(*counts),
                    "smallest_gap_clusters": smallest_gap(*clusters),
                    "smallest_beyond": smallest_beyond(*counts),
                    "note": next(filter(None, (too_few(n, side, least) for n, side in short)), ""),
                }
            )
    return rows


SMALL: Final = 0.1
"""A gap that a benchmark should be able to show."""


def too_weak(rows: Sequence[Row]) -> Iterator[str]:
    """Which benchmarks cannot show a gap of `SMALL`, of rows of `plan_rescore`."""
    for row in rows:
        least, name = row["smallest_gap"], f"{row['benchmark']} by {row['policy']}"
        if row["note"]:
            yield f"{name}: no gap is tested: {row['note']}"
        elif least > SMALL:
            yield (
                f"{name}: with {row['n_flagged']:,} flagged items, only gaps of {least:.2f} or more"
                f" are likely to be found ({row['smallest_beyond']:.2f} beyond easier items)"
            )
