"""Build the facts of a report from the results of all stages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contam.audit.chance.estimate import with_chance
from contam.audit.combine import merged_coverage
from contam.audit.facts import BenchmarkFacts, CorpusFacts, Facts
from contam.audit.report.headline import LIMITS, headline
from contam.audit.report.seen import refuse_unknown, seen_by_models
from contam.audit.report.tally import tally
from contam.audit.spec import TOGETHER
from contam.detect.report import RUN_FILE
from contam.tables import schemas, score_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.audit.checks import Items
    from contam.audit.facts import CleanedFacts
    from contam.audit.spec import AuditSpec, CorpusSpec
    from contam.audit.waivers.register import Waived
    from contam.detect.report import Report

    Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What is said of the verdicts by others than the policies.

    calibration  what decoys say of chance;  review  what readers said of single items
    waived       flags that a reviewer explained
    cleaned      what was taken out of corpora before
    studies      what studies found, as `contam.audit.studies` has it
    """

    calibration: dict[str, Any] | None
    review: dict[str, Any] | None
    waived: Waived
    cleaned: tuple[CleanedFacts, ...] = ()
    studies: tuple[dict[str, Any], ...] = ()


def make_facts(
    spec: AuditSpec,
    items: Items,
    reports: Mapping[str, Report],
    together: Report,
    *,
    verdicts: str,
    scores: Path | None,
    inputs: ReportInputs,
) -> Facts:
    """Everything that the reports of an audit say.

    reports   the result of each corpus;  together  the one whose verdicts count
    verdicts  where that one lies in the pack;  scores  folder of the re-scoring
    inputs    what others than the policies say
    """
    own = tally(together, TOGETHER, items.released, inputs.waived)
    tallies = {TOGETHER: with_chance(own, inputs.calibration)}
    if len(reports) > 1:
        tallies |= {
            name: tally(report, name, items.released, inputs.waived)
            for name, report in reports.items()
        }
    definitions = together.run["parameters"]["policy_definitions"]
    policies = together.run["parameters"]["policies"]
    benchmarks = tuple(
        BenchmarkFacts(
            name=benchmark.name,
            n_items=len(benchmark.items),
            n_skipped=len(benchmark.skipped),
            released=items.released.get(benchmark.name),
            policies=tuple(
                found[benchmark.name, policy] for policy in policies for found in tallies.values()
            ),
        )
        for benchmark in items.benchmarks
    )
    coverages = {name: report.run["coverage"] for name, report in reports.items()}
    coverage = {
        key: value for key, value in merged_coverage(coverages).items() if key != "by_corpus"
    }
    tables = _tables(scores)
    if scores is not None:
        refuse_unknown(spec, (row["model"] for row in tables["scores"]))
    left_out = _left_out(scores)
    whole = [row for row in tables["scores"] if row["subset_by"] == "all"]
    return Facts(
        title=spec.title,
        tool={**together.run["versions"], "normaliser": together.run["parameters"]["normaliser"]},
        headline=headline(benchmarks, coverage, policies[0], whole, n_left_out=len(left_out)),
        verdicts=verdicts,
        corpora=tuple(_corpus(corpus, reports[corpus.name]) for corpus in spec.corpora),
        benchmarks=benchmarks,
        scores=tuple(whole),
        rankings=tuple(tables["rankings"]),
        leads=tuple(row for row in tables["pairs"] if row["lead_full"]),
        ours=spec.logs.ours,
        calibration=inputs.calibration,
        review=inputs.review,
        waivers=inputs.waived.rows,
        coverage=coverage,
        policies=definitions,
        limits=LIMITS,
        least=spec.least,
        logs_left_out=left_out,
        cleaned=inputs.cleaned,
        studies=inputs.studies,
        models=seen_by_models(
            spec, reports, ((bench.name, policy) for bench in benchmarks for policy in policies)
        ),
    )


def _corpus(spec: CorpusSpec, report: Report) -> CorpusFacts:
    run = report.run
    index = run.get("index")
    return CorpusFacts(
        name=spec.name,
        stage=spec.stage,
        how="index" if spec.index else "scan",
        guarantee_tokens=index["guarantee_tokens"]
        if index
        else min(lane["min_run"] for lane in run["parameters"]["lanes"]),
        coverage={key: value for key, value in run["coverage"].items() if key != "by_shard"},
        notes=tuple(run["notes"]),
    )


def _left_out(scores: Path | None) -> tuple[dict[str, str], ...]:
    """The logs that the re-scoring skipped as damaged."""
    if scores is None:
        return ()
    run = json.loads((scores / RUN_FILE).read_bytes())
    return tuple(run["inputs"]["damaged"])


def _tables(scores: Path | None) -> dict[str, list[Row]]:
    kinds = {
        "scores": score_schemas.SCORES,
        "rankings": score_schemas.RANKINGS,
        "pairs": score_schemas.PAIRS,
    }
    if scores is None:
        return {name: [] for name in kinds}
    return {
        name: schemas.rows(schemas.read_parquet(scores / f"{name}.parquet", kind))
        for name, kind in kinds.items()
    }
