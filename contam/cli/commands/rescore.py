"""`contam rescore`: what models score without the flagged items."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from contam.cli import options, render
from contam.cli.options import flag, option, pairs, split_names
from contam.cli.render import new_table
from contam.cli.results import refuse_beside, tell_scored
from contam.cli.terminal import emit, visible
from contam.errors import UsageError
from contam.files.stores import place

if TYPE_CHECKING:
    from rich.console import RenderableType

    from contam.rescore.run import Rescore


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """How a file of labels is read, where verdicts are not a result of contam."""

    threshold: float | None = option(
        "SCORE", "FILE has scores: items with at least this score are contaminated, others clean."
    )
    unlisted: str | None = option(
        "LABEL",
        "Label of items that are not in FILE: `clean` if FILE lists every"
        " contaminated item, else `not_checkable`.",
    )
    verdict_columns: list[str] | None = option(
        "ROLE=NAME,...",
        "Columns of FILE: id=..., label=..., score=..., question=..., benchmark=...",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """Which metrics are shown, and which way they count."""

    metric: list[str] | None = option(
        "[BENCHMARK=]METRIC",
        "Main metric of a benchmark whose logs have several: used to aggregate"
        " benchmarks, and shown in plots. May be repeated.",
    )
    all_metrics: bool = flag("--all-metrics", "Show every metric, not only the main ones.")
    lower_is_better: list[str] | None = option(
        "METRIC", "Less of this metric is better. May be repeated."
    )
    higher_is_better: list[str] | None = option(
        "METRIC", "More of this metric is better. May be repeated."
    )
    mixed_setups: bool = flag(
        "--mixed-setups",
        "Rank runs together even if their examples, prompts or task versions differ.",
    )


#: What goes with a plan, which reads no logs.
_WITH_PLAN: Final = frozenset(("verdicts", "plan", "policy", "least", "as_json", "quiet"))


@options.shared
def rescore(
    *,
    context: typer.Context,
    verdicts: Path = option(
        "DIR|FILE",
        "Results of `contam scan` or `contam query`, or a file of labels: your own"
        " annotations (CSV, JSON lines, Parquet), decon's report, a published list.",
        ...,
    ),
    logs: list[str] | None = option(
        "PATH...",
        "Evaluation logs with per-item results: files or folders of lm-evaluation-harness,"
        " Inspect, HELM, lighteval, OpenAI evals, human-eval, EvalPlus, SWE-bench, OLMES,"
        " OpenCompass, Every Eval Ever, or plain tables. Required, unless --plan is given.",
    ),
    out: str | None = options.OPTIONAL_OUT,
    plan: bool = flag(
        "--plan", "Print the smallest gap each benchmark can show, and score nothing."
    ),
    policy: list[str] | None = option(
        "NAME,...", "Policies to judge by. [default: all in the verdicts]"
    ),
    reference: list[str] | None = option(
        "MODEL,...",
        "Models that cannot have seen the corpus: gains are compared with theirs alone.",
    ),
    field: list[str] | None = option(
        "PATH...",
        "Logs of other models with per-item results, public ones for example, that show"
        " how hard the flagged items are: gains are compared with theirs.",
    ),
    reference_benchmark: list[str] | None = option(
        "BENCHMARK=OTHER,...",
        "Compare a benchmark with another one in the logs that no model can have seen"
        " (a rephrasing, a retro-holdout).",
    ),
    columns: list[str] | None = options.COLUMNS,
    benchmark_as: list[str] | None = option(
        "OLD=NEW,...",
        "Benchmark OLD of the logs is NEW of the verdicts: needed where bare numbers alone"
        " join them.",
    ),
    least: int = option("N", "Items that a subset needs for an estimate.", 50, min=1),
    permutations: int = option(
        "N", "Draws of a permutation test; more follow if p is small.", 10_000, min=99
    ),
    seed: int = option("N", "Seed of all draws.", 0, min=0),
    allow_unmatched: bool = options.ALLOW_UNMATCHED,
    allow_partial: bool = flag(
        "--allow-partial",
        "Go on even if a log without a reported number to check lacks scores for over"
        " 1 % of a benchmark.",
    ),
    separate_runs: bool = flag("--separate-runs", "Treat two runs of one model as two models."),
    labels: LabelOptions,
    metrics: MetricOptions,
    skip_damaged: bool = flag(
        "--skip-damaged",
        "Go on without logs that are cut off, cancelled or damaged; they are listed in the"
        " notes, the summary and run.json.",
    ),
    output: options.OutputOptions,
) -> int:
    """Score models with and without the flagged items: gains, intervals, rankings.

    Writes Parquet tables, summary.md, plots and run.json to DIR, all or nothing.

    Examples:
        contam rescore --verdicts results --logs runs --out scores
        contam rescore --verdicts labels.csv --unlisted clean --logs runs --out scores
    """
    from contam.rescore.logs.read import offering
    from contam.rescore.panel import RescoreSettings
    from contam.rescore.run import rescore as run_rescore
    from contam.rescore.run import write_rescore

    if plan:
        hint = "leave it out: nothing is scored"
        refuse_beside(context, _WITH_PLAN, "--plan", hint)
        return _plan(verdicts, split_names(policy or []), least, output)
    if not logs or out is None:
        missing = "--logs" if not logs else "--out"
        raise UsageError(f"{missing} is needed", hint="only --plan goes without --logs and --out")
    with offering("--skip-damaged goes on without such logs"):
        result = run_rescore(
            verdicts,
            logs,
            policies=split_names(policy or []),
            columns=options.mapping_of(columns),
            benchmark_as=options.mapping_of(benchmark_as),
            allow_unmatched=allow_unmatched,
            allow_partial=allow_partial,
            separate_runs=separate_runs,
            skip_damaged=skip_damaged,
            field=field or (),
            threshold=labels.threshold,
            unlisted=labels.unlisted,
            verdict_columns=options.mapping_of(labels.verdict_columns),
            settings=RescoreSettings(
                least=least,
                permutations=permutations,
                seed=seed,
                references=tuple(split_names(reference or [])),
                reference_benchmarks=_benchmark_pairs(reference_benchmark or []),
                metrics=tuple(metrics.metric or []),
                lower_is_better=tuple(metrics.lower_is_better or []),
                higher_is_better=tuple(metrics.higher_is_better or []),
                all_metrics=metrics.all_metrics,
                mixed_setups=metrics.mixed_setups,
            ),
        )
    write_rescore(result, out, overwrite=output.overwrite)
    code = tell_scored(result.run, output)
    if output.as_json:
        trees = {name: result.rows(name) for name in result.tables}
        render.emit_json({"out": out, "run": result.run, **trees})
    else:
        render.emit_renderable(*_tables(result))
        emit(f"\nresults  {visible(out)}\nsummary  {visible(str(place(out) / 'summary.md'))}\n")
    return code


def _plan(verdicts: Path, policies: list[str], least: int, output: options.OutputOptions) -> int:
    from contam.rescore.judging import plan_rescore
    from contam.rescore.summary import figure

    rows = plan_rescore(verdicts, policies=policies, least=least)
    if output.as_json:
        render.emit_json({"plan": rows})
        return 0
    table = new_table(
        *("benchmark", "policy"),
        numbers=("flagged", "clean", "smallest gap", "by passages", "beyond field"),
    )
    for row in rows:
        table.add_row(
            *(visible(row[name]) for name in ("benchmark", "policy")),
            *(f"{row[name]:,}" for name in ("n_flagged", "n_clean")),
            *(
                figure(row[name], 3)
                for name in ("smallest_gap", "smallest_gap_clusters", "smallest_beyond")
            ),
        )
    notes = (
        f"{row['benchmark']}, {row['policy']}: not tested: {row['note']}"
        for row in rows
        if row["note"]
    )
    render.emit_renderable(table, "", *map(visible, notes))
    return 0


def _benchmark_pairs(given: list[str]) -> tuple[tuple[str, str], ...]:
    """`a=b,c=d`, each benchmark once. Raises UsageError for another form."""
    option = "--reference-benchmark"
    found = pairs(option, split_names(given), "gsm8k=gsm8k_rephrased")
    if alike := [name for name, other in found.items() if name == other]:
        raise UsageError(
            f"{option} {alike[0]}={alike[0]} names one benchmark twice",
            hint="give the benchmark and another one that is like it",
        )
    return tuple(found.items())


def _tables(result: Rescore) -> list[RenderableType]:
    """A table for each benchmark and metric shown, and what is not estimated."""
    from contam.rescore import summary
    from contam.rescore.summary import is_shown

    blocks: list[RenderableType] = []
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    others: dict[str, dict[str, None]] = {}
    for row in result.rows("scores"):
        if row["subset_by"] not in ("all", "group"):
            continue
        if is_shown(row, result.run):
            groups.setdefault((row["benchmark"], row["metric"]), []).append(row)
        else:
            others.setdefault(row["benchmark"], {}).setdefault(row["metric"])
    for (benchmark, metric), rows in groups.items():
        way = "" if rows[0]["higher_is_better"] else " (lower is better)"
        blocks += ["", visible(f"{benchmark}, {metric}{way}")]
        blocks += [visible(said) for said in summary.beyond_words(rows)]
        blocks.append(_table(rows))
        if beyond := summary.beyond_rows(rows):
            table = new_table(*summary.BEYOND[:2], numbers=summary.BEYOND[2:])
            for cells in beyond:
                table.add_row(*map(visible, cells))
            blocks += ["", table]
        said = (*summary.smallest_words(rows), *summary.run_words(rows, result.run["runs"]))
        blocks += map(visible, said)
        models_of: dict[str, list[str]] = {}
        for row in rows:
            for note in filter(None, row["note"].split("; ")):
                models_of.setdefault(note, []).append(row["model"])
        for note, models in models_of.items():
            who = "all" if len(models) == len(rows) else ", ".join(dict.fromkeys(models))
            blocks.append(visible(f"{note} ({who})"))
    for benchmark, metrics in others.items():
        blocks.append(visible(f"{benchmark}, not shown: {', '.join(metrics)} (--all-metrics)"))
    return blocks


def _table(rows: list[dict[str, Any]]) -> RenderableType:
    """The scores; where a page has no room, without the gain and the p that is not corrected."""
    from contam.rescore.summary import figure, limits, small

    columns = {
        "flagged": [f"{row['n_flagged']:,} / {row['n']:,}" for row in rows],
        **{
            name: [figure(row[name], 3) for row in rows]
            for name in ("full", "clean", "gain", "gap")
        },
        "interval": [limits(row["gap_low"], row["gap_high"]) for row in rows],
        "p": [small(row["gap_p"]) for row in rows],
        "p Holm": [small(row["gap_p_holm"]) for row in rows],
    }
    names = [(visible(row["model"]), visible(row["policy"])) for row in rows]
    for left_out in ((), ("gain", "p")):
        shown = [name for name in columns if name not in left_out]
        table = new_table("model", "policy", numbers=shown)
        for cells in zip(
            *zip(*names, strict=True), *(columns[name] for name in shown), strict=True
        ):
            table.add_row(*cells)
        if render.fits(table):
            break
    return table
