"""Run the stages that estimate chance: search for decoys, and compare."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contam.audit.chance.decoys import MAKER, make_decoys
from contam.audit.chance.estimate import VERSION, estimate
from contam.audit.checks import digest_of, make_key
from contam.audit.combine import combine
from contam.detect.report import load_report
from contam.files.publish import output_errors
from contam.tables import schemas

if TYPE_CHECKING:
    from pathlib import Path

    from contam.audit.chance.decoys import Decoys
    from contam.audit.checks import Checker, Items
    from contam.audit.spec import AuditSpec
    from contam.audit.stage_cache import AuditProgress, StageCache
    from contam.detect.report import Report

DECOYS: Final = "decoys"
CALIBRATION: Final = "calibration"
TABLE: Final = "calibration.parquet"
SUMMARY: Final = "calibration.json"


def wanted(spec: AuditSpec) -> bool:
    """Whether the audit has decoys, made or given."""
    return bool(spec.decoys) or any(benchmark.decoys for benchmark in spec.benchmarks)


@dataclass(frozen=True, slots=True)
class Searched:
    """Decoys, and the stages that say what was found of them, by the corpus's name."""

    decoys: tuple[Decoys, ...]
    stages: dict[str, str]


def search_decoys(spec: AuditSpec, items: Items, checker: Checker) -> Searched | None:
    """Look for the audit's decoys in every corpus; None when it has none.

    Decoys are searched for by themselves, so that no verdict depends on them.
    """
    if not wanted(spec):
        return None
    decoys = [
        make_decoys(benchmark, draw=draw, seed=spec.seed)
        for benchmark in items.benchmarks
        for draw in range(1, spec.decoys + 1)
    ]
    searched = [decoy.benchmark for decoy in decoys if decoy.benchmark.items] + list(items.natural)
    stages = {}
    for corpus in spec.corpora:
        # Nobody reads the texts of decoys, and they must not be taken for the benchmark's.
        hidden = replace(spec, no_text=True)
        key = make_key(hidden, corpus, searched, checker.names)
        name = stages[corpus.name] = f"{DECOYS}/{corpus.name}"
        made_so = digest_of([key, MAKER, [decoy.digest() for decoy in decoys]])
        checker.check(name, made_so, hidden, corpus, searched)
    return Searched(tuple(decoys), stages)


def calibrated(
    spec: AuditSpec,
    items: Items,
    stage_cache: StageCache,
    searched: Searched,
    counted: tuple[str, Report],
    talk: AuditProgress,
) -> dict[str, Any]:
    """What decoys say of the audit's flags.

    counted  the stage whose verdicts count, and what it says
    """
    verdicts, report = counted

    def make(draft: Path) -> dict[str, Any]:
        talk.stage(CALIBRATION)
        natural = [benchmark.name for benchmark in items.natural]
        found = {
            name: load_report(stage_cache.folder / stage) for name, stage in searched.stages.items()
        }
        per_corpus = combine(found) if len(found) > 1 else next(iter(found.values()))
        chance = estimate(report, per_corpus, searched.decoys, natural)
        summary = {
            "seed": spec.seed,
            "decoys_per_item": spec.decoys,
            "maker": MAKER,
            "without_decoy": {
                decoy.benchmark.name: decoy.n_items - len(decoy.kinds) for decoy in searched.decoys
            },
            "policies": chance.rows,
        }
        with output_errors(draft):
            draft.mkdir(parents=True)
            table = schemas.table_of(chance.columns, schemas.CALIBRATION)
            schemas.write_parquet(table, draft / TABLE)
            (draft / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n", "ascii")
        return {}

    keys = [
        stage_cache.keys[verdicts],
        *(stage_cache.keys[stage] for stage in searched.stages.values()),
    ]
    folder = stage_cache.stage(CALIBRATION, digest_of([keys, VERSION]), make)
    summary: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
    return summary
