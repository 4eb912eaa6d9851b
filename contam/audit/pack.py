"""Run an audit from its spec to a published folder: check, combine, score, report, seal."""

from __future__ import annotations

import glob
import json
import time
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import contam
from contam.audit.calibration import (
    CALIBRATION,
    DECOYS,
    calibrated,
    q_values,
    search_decoys,
    wanted,
)
from contam.audit.checks import (
    Checker,
    StageCache,
    copy_tree,
    digest_of,
    log_files,
    read_items,
    without_times,
    write_result,
)
from contam.audit.cleaned import check_cleaned, facts_of
from contam.audit.combine import combine
from contam.audit.facts import SCORES, STUDIES, Facts, schema, write_facts
from contam.audit.rates import read_judged, reviewed, write_judged
from contam.audit.report.build import make_facts
from contam.audit.report.pages import make_pages
from contam.audit.report.render import write_exports, write_html, write_markdown
from contam.audit.sample import population, read_labels, write_labels
from contam.audit.spec import TOGETHER, note_sources, public, public_parameters
from contam.audit.verify import MANIFEST, TIMES, write_manifest, write_times
from contam.detect.accepted import find_accepted, read_accepted
from contam.detect.report import load_report
from contam.detect.show.reread import sources_file
from contam.extras import require
from contam.files.disk import output_errors
from contam.files.publish import publishing
from contam.files.single import fingerprint
from contam.study.by_name import BY_VERDICTS, paths_of, run_named
from contam.study.model import STUDY_FORMAT, TABLES, write_study
from contam.tables.score_schemas import RESCORE_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contam.audit.checks import Items
    from contam.audit.spec import AuditSpec
    from contam.detect.accepted import AcceptedRow
    from contam.detect.corpus import ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.report import Report

REPORT: Final = "report.json"
CHECKS: Final = "checks"
CLEANED: Final = "cleaned"
EXPORTS: Final = "exports"
LABELS: Final = "labels.jsonl"
JUDGED: Final = "judged.parquet"
ENTRIES: Final = (
    CLEANED,
    CHECKS,
    SCORES,
    STUDIES,
    DECOYS,
    CALIBRATION,
    LABELS,
    JUDGED,
    "audit.json",
    EXPORTS,
    "report.html",
    "report.md",
    REPORT,
    "schema",
    TIMES,
    MANIFEST,
)
"""What a pack may hold, the entry that marks it finished last."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A published audit: its folder, its facts, and which stages were not run again."""

    folder: Path
    facts: Facts
    digest: str
    reused: tuple[str, ...]


def run_audit(
    spec: AuditSpec,
    *,
    workers: int | None = None,
    division: Division | None = None,
    overwrite: bool = False,
    tell: Callable[[str], ScanProgress | None] = lambda _: None,
) -> Pack:
    """Make the pack of an audit in `spec.out`, whole or not at all.

    Stages that were finished before, here or in the pack that is replaced, are not run again when
    their inputs are the same; nor are parts of scans that the division keeps.

    tell  is told the name of each stage that begins; what it returns follows its progress

    Raises ContamError subclasses; unread shards do not raise, they are in `facts.coverage`.
    """
    require("audit")
    out = Path(spec.out)
    started = time.time()
    entries = _entries(spec)
    accepted = read_accepted(Path(spec.accept)) if spec.accept else ()
    labels = read_labels(spec.labels)
    judged = read_judged(spec.judged)
    with publishing(
        out, names=entries, last=MANIFEST, overwrite=overwrite, earlier=ENTRIES
    ) as draft:
        stage_cache = StageCache(out, tell)
        logs = log_files(spec)
        items = read_items(spec, stage_cache.folder, logs)
        check_cleaned(spec, stage_cache, CLEANED)
        checker = Checker(stage_cache, workers, division)
        verdicts = _check_all(spec, items, checker)
        note_sources(stage_cache.folder / CHECKS, spec.corpora)
        corpora = [corpus.name for corpus in spec.corpora]
        searched = search_decoys(spec, items, checker)
        scores = _score(spec, stage_cache, verdicts, logs) if spec.logs.paths else None
        studies = _studies(spec, stage_cache, verdicts, scores)
        # Only now, so that what was found is not held while more is searched.
        reports = {name: load_report(stage_cache.folder / CHECKS / name) for name in corpora}
        together = reports[corpora[0]]
        if len(corpora) > 1:
            together = load_report(stage_cache.folder / verdicts)
        calibration = None
        if searched:
            calibration = calibrated(spec, items, stage_cache, searched, (verdicts, together))
        review = reviewed(population(together), labels, judged) if labels or judged else None
        facts = make_facts(
            spec,
            items,
            reports,
            together,
            verdicts=verdicts,
            scores=scores,
            calibration=calibration,
            review=review,
        )
        facts = replace(
            facts,
            accepted=_accepted(spec, accepted, together),
            studies=studies,
            cleaned=tuple(
                facts_of(corpus.name, stage_cache.folder / CLEANED / corpus.name)
                for corpus in spec.corpora
                if corpus.cleaned
            ),
        )
        with output_errors(out):
            for name in stage_cache.keys:
                copy_tree(stage_cache.folder / name, draft / name)
            tell("report")
            write_facts(facts, draft / REPORT)
            write_markdown(draft / "report.md", facts)
            rows, pages = make_pages(together, items.released, q_values(draft))
            write_html(draft / "report.html", facts, rows, pages, draft)
            write_exports(draft / EXPORTS, facts, reports)
            if spec.labels:
                write_labels(draft / LABELS, labels, notes=not spec.no_text)
            if spec.judged:
                write_judged(draft / JUDGED, judged)
            inputs = public({**_inputs(spec, reports), "logs": logs}, spec)
            digest = _seal(draft, public_parameters(spec), facts, inputs)
            ran = {
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
                "seconds": round(time.time() - started, 3),
                "version": contam.__version__,
            }
            write_times(draft, {**stage_cache.times, "audit": ran, "stages": stage_cache.keys})
    with output_errors(out):
        sources_file(stage_cache.folder / CHECKS).replace(sources_file(out))
    stage_cache.remove()
    return Pack(out, facts, digest, tuple(stage_cache.reused))


def _entries(spec: AuditSpec) -> list[str]:
    """What the pack of this audit will hold."""
    there = {
        CLEANED: any(corpus.cleaned for corpus in spec.corpora),
        SCORES: spec.logs.paths,
        STUDIES: spec.studies,
        LABELS: spec.labels,
        JUDGED: spec.judged,
        DECOYS: wanted(spec),
        CALIBRATION: wanted(spec),
    }
    return [name for name in ENTRIES if there.get(name, True)]


def _check_all(spec: AuditSpec, items: Items, checker: Checker) -> str:
    """Search every corpus for every item; returns the stage whose verdicts count."""
    keys = {}
    stage_cache = checker.stage_cache
    for corpus in spec.corpora:
        name = f"{CHECKS}/{corpus.name}"
        keys[corpus.name] = checker.make_key(spec, corpus, items.benchmarks)
        checker.check(name, keys[corpus.name], spec, corpus, items.benchmarks)
    if len(keys) == 1:
        return name

    def together(draft: Path) -> dict[str, Any]:
        found = {key: load_report(stage_cache.folder / CHECKS / key) for key in keys}
        return write_result(combine(found), draft)

    name = f"{CHECKS}/{TOGETHER}"
    stage_cache.stage(name, digest_of(keys), together)
    return name


def _score(
    spec: AuditSpec,
    stage_cache: StageCache,
    verdicts: str,
    logs: Mapping[str, Any],
) -> Path:
    key = [
        RESCORE_FORMAT,
        stage_cache.keys[verdicts],
        asdict(spec.logs),
        spec.least,
        spec.permutations,
        spec.seed,
    ]
    make = partial(_rescore, spec, stage_cache.folder / verdicts, stage_cache.tell)
    return stage_cache.stage(SCORES, digest_of([*key, logs, public(logs, spec)]), make)


def _accepted(
    spec: AuditSpec, rows: Sequence[AcceptedRow], together: Report
) -> tuple[dict[str, Any], ...]:
    """The accepted rows, which the report lists; whether they have expired is asked by a gate."""
    found = find_accepted(rows, together).rows
    # A reason may be words of an item.
    return tuple({**row, "reason": ""} for row in found) if spec.no_text else found


def _seal(
    draft: Path, parameters: Mapping[str, Any], facts: Facts, inputs: Mapping[str, Any]
) -> str:
    """Write parameters and schema, and the manifest of all files."""
    (draft / "schema").mkdir()
    _write_json(draft / "schema" / "report.schema.json", schema())
    _write_json(draft / "audit.json", parameters)
    return write_manifest(
        draft,
        {
            "versions": facts.tool,
            "parameters": parameters,
            "policies": facts.policies,
            "inputs": inputs,
        },
    )


def _rescore(
    spec: AuditSpec, verdicts: Path, tell: Callable[[str], object], draft: Path
) -> dict[str, Any]:
    """Score the logs by the verdicts into a folder; returns its timings."""
    from contam.rescore.judging import plan_rescore, too_weak
    from contam.rescore.logs.read import offering
    from contam.rescore.panel import RescoreSettings
    from contam.rescore.run import rescore, write_rescore

    report = load_report(verdicts)
    for said in too_weak(plan_rescore(report, least=spec.least)):
        tell(said)
    # The names under [logs] are those of the call, or of its settings.
    asked = asdict(spec.logs)
    logs, _ = list(asked.pop("paths")), asked.pop("ours")
    asked |= {name: asked[name] or None for name in ("columns", "benchmark_as")}
    known = {setting.name for setting in fields(RescoreSettings)}
    settings = {name: asked.pop(name) for name in known.intersection(asked)}
    settings |= {"least": spec.least, "permutations": spec.permutations, "seed": spec.seed}
    with offering("skip_damaged = true under [logs] goes on without such logs"):
        result = rescore(report, logs, settings=RescoreSettings(**settings), **asked)
    # The pack names its own folder; where it was made says nothing.
    result.run["inputs"]["verdicts"]["folder"] = verdicts.relative_to(
        verdicts.parents[1]
    ).as_posix()
    run, summary = public([result.run, result.summary], spec)
    write_rescore(replace(result, run=run, summary=summary), draft)
    return without_times(draft)


def _studies(
    spec: AuditSpec,
    stage_cache: StageCache,
    verdicts: str,
    scores: Path | None,
) -> tuple[dict[str, Any], ...]:
    """Run the studies of an audit, each a stage; returns what the report says of them.

    verdicts  the stage whose verdicts count;  scores  folder of the re-scoring, where there is one
    """
    found = []
    for name, options in spec.studies.items():
        stage = f"{STUDIES}/{name}"
        own = options.get(BY_VERDICTS) or not [*paths_of(name, options)]
        key = [
            STUDY_FORMAT, name, options, _study_files(name, options),
            spec.policies, spec.seed, spec.least,
            [stage_cache.keys.get(key) for key in (verdicts, SCORES)] if own else None,
        ]  # fmt: skip
        make = partial(_study, name, spec, stage_cache.folder / verdicts, scores)
        folder = stage_cache.stage(stage, digest_of(key), make)
        tree = json.loads((folder / TABLES).read_bytes())
        found.append(
            {
                "name": name,
                "finding": tree["finding"],
                "refused": tree["refused"],
                "pictures": [path.stem for path in sorted(folder.glob("*.svg"))],
                "notes": tree["run"].get("notes", []),
            }
        )
    return tuple(found)


def _study_files(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Every file that a study reads, by digest."""
    found: dict[str, Any] = {}
    for given in paths_of(name, options):
        path = Path(given)
        below = [path] if path.exists() else map(Path, sorted(glob.glob(given, recursive=True)))  # noqa: PTH207 - takes absolute patterns
        for one in below:
            files = sorted(one.rglob("*")) if one.is_dir() else [one]
            found |= {str(file): fingerprint(file) for file in files if file.is_file()}
    return found


def _study(
    name: str, spec: AuditSpec, verdicts: Path, scores: Path | None, draft: Path
) -> dict[str, Any]:
    """Run a study into a folder; returns its timings."""
    study = run_named(
        name,
        spec.studies[name],
        verdicts=verdicts,
        policy=spec.policies[0],
        rescored=scores,
        seed=spec.seed,
        least=spec.least,
    )
    write_study(replace(study, run=public(dict(study.run), spec)), draft)
    return without_times(draft)


def _inputs(spec: AuditSpec, reports: Mapping[str, Report]) -> dict[str, Any]:
    """Every file an audit read, by digest; a shard by what the scan knows of it."""
    first = next(iter(reports.values()))
    named = [spec.accept] if spec.accept else []
    return {
        "corpora": {name: report.run["inputs"]["shards"] for name, report in reports.items()},
        "benchmarks": first.run["inputs"]["benchmarks"],
        "reviews": {path: fingerprint(Path(path)) for path in (*named, *spec.labels, *spec.judged)},
    }


def _write_json(path: Path, tree: object) -> None:
    path.write_text(json.dumps(tree, indent=1, sort_keys=True) + "\n", "ascii")
