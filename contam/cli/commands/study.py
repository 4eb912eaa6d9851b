"""`contam study`: studies of what scores are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.cli import options, render
from contam.cli.options import option, pairs, split_names
from contam.cli.render import new_table
from contam.cli.results import tell_scored
from contam.cli.terminal import emit, page_width, visible
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from contam.study.model import Study

app = options.group(
    "study", "Study what scores are made of: memory, preparation, choice of tasks, calendar."
)

COLUMNS: Any = option(
    "[INPUT.]ROLE=NAME,...",
    "Columns of tables: model=..., score=..., n=...; INPUT. for one input alone.",
)
VERDICTS: Any = option("PATH", "Results of a scan, or labels, to study clean items by as well.")
POLICY: Any = option("NAME", "Policy of the verdicts, where they hold several.")
METRIC: Any = option("METRIC", "Metric of the logs, where they have several.")
DRAWS: Any = option("N", "Draws of a bootstrap.", 2_000, min=99)
SEED: Any = option("N", "Seed of all draws.", 0, min=0)

_MOST_ROWS = 20


def _study(
    name: str, **parsers: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., int]]:
    """A decorator that makes a command of a function that only declares the options of a study.

    name     of the study, whose function takes arguments of these names
    parsers  by option, what its text stands for

    Options that all studies have are added. The command runs the study, writes and shows it.
    """

    def decorated(declared: Callable[..., None]) -> Callable[..., int]:
        def run(
            *,
            out: str,
            overwrite: bool,
            as_json: bool,
            quiet: bool,
            **typed: Any,  # noqa: ANN401 - what the options are
        ) -> int:
            from contam.benchmark.mapping import parse_mapping
            from contam.study.by_name import run_options

            read = {"columns": parse_mapping, **parsers}
            given = {key: value for key, value in typed.items() if value is not None}
            given |= {key: read[key](value) for key, value in given.items() if key in read}
            return finish(
                run_options(name, given),
                out,
                options.OutputOptions(as_json=as_json, quiet=quiet, overwrite=overwrite),
            )

        taken = [inspect.signature(one, eval_str=True) for one in (declared, _shared)]
        params = [param for one in taken for param in one.parameters.values()]
        run.__name__, run.__doc__ = declared.__name__, declared.__doc__
        run.__annotations__ = {}
        # Typer makes the options of the signature.
        run.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
        return run

    return decorated


def _shared(
    *,
    out: str = options.OUT_FOLDER,
    overwrite: bool = options.OVERWRITE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """The options of every study."""


def finish(study: Study, out: str, output: options.OutputOptions) -> int:
    """Write a study and show it: exit code 4 if its verdicts do not cover the whole corpus."""
    from contam.study.model import SUMMARY, tree, write_study

    write_study(study, out, overwrite=output.overwrite)
    code = tell_scored(study.run, output)
    if output.as_json:
        render.emit_json({"out": out, **tree(study)})
    else:
        for text in (study.finding.found, study.finding.sure, study.finding.change):
            emit(_wrapped(text))
        render.emit_renderable("", _table(study))
        if (more := study.to_arrow().num_rows - _MOST_ROWS) > 0:
            emit(f"{counted(more, 'more row')} in {visible(next(iter(study.tables)))}.parquet\n")
        for refusal in study.refusals:
            emit(_wrapped(f"not estimated: {refusal.what}: {refusal.reason}"))
        emit(f"\nresults  {visible(out)}\nsummary  {visible(str(Path(out) / SUMMARY))}\n")
    return code


def _wrapped(text: str) -> str:
    """A paragraph in lines of the terminal's width; what would steer it made visible."""
    from textwrap import fill

    return fill(visible(text), page_width(), break_on_hyphens=False) + "\n"


def _table(study: Study) -> RenderableType:
    """The columns of the main table that a study shows; limits as one column."""
    from contam.study.model import shown

    rows = study.rows()
    names = study.shown_columns()
    texts = [name for name in names if any(isinstance(row[name], str) for row in rows)]
    # What is the same in every row, as where nothing was split, says nothing.
    texts = [name for name in texts if name == texts[0] or len({row[name] for row in rows}) > 1]
    kept = [name for name in names if name not in texts and not name.endswith("_high")]
    kept = [name for name in kept if not any(isinstance(row[name], str) for row in rows)]
    table = new_table(*texts, numbers=[_heading(name) for name in kept])
    for row in rows[:_MOST_ROWS]:
        numbers = [
            f"[{shown(row[name])}, {shown(row[_high(name)])}]"
            if name.endswith("_low") and row[name] is not None
            else shown(row[name], name)
            for name in kept
        ]
        table.add_row(*(visible(row[name]) for name in texts), *numbers)
    return table


def _high(name: str) -> str:
    return name.removesuffix("_low") + "_high"


def _heading(name: str) -> str:
    return "interval" if name.endswith("_low") else name.replace("_", " ")


@app.command("fresh", short_help="Compare an original test set with a fresh one.")
@_study(
    "fresh", easier=lambda given: pairs("--easier", given, "top=top.csv"), references=split_names
)
def fresh(
    *,
    original: list[str] = option(
        "PATH...",
        "Scores on the original set: a table with model, n and correct or score, or logs.",
        ...,
    ),
    fresh: list[str] = option("PATH...", "Scores on the fresh set, the same way.", ...),
    easier: list[str] | None = option(
        "NAME=PATH...", "Further fresh sets, of items that people agree on more."
    ),
    columns: list[str] | None = COLUMNS,
    verdicts: str | None = VERDICTS,
    policy: str | None = POLICY,
    metric: str | None = METRIC,
    references: list[str] | None = option(
        "MODEL,...", "Models that cannot have seen the original set.", None, "--reference"
    ),
    margin: float = option("SHARE", "How far apart equally hard sets may be.", 0.05),
    chance: float = option("SHARE", "Score of a guess on both sets.", 0.0),
    least: int = option("N", "Clean items without which nothing is said of them.", 50, min=1),
    draws: int = DRAWS,
    seed: int = SEED,
) -> None:
    """Compare scores on an original test set with scores on a fresh one.

    Gaps with intervals, lines over models on two scales, models that fall further than the line of
    the others, and what is shown of the two sets being equally hard. Writes tables, summary.md,
    pictures and run.json to DIR, all or nothing.

    Examples:
        contam study fresh --original old.csv --fresh new.csv --out study
        contam study fresh --original old.csv --fresh new.csv --reference model-a --out study
    """


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no number", hint="--knots 22,23 --chance mmlu=0.25,gsm8k=0"
        ) from error


def _knots(text: str) -> list[float]:
    first, _, second = text.partition(",")
    return [_number(first), _number(second)]


def _chance(given: list[str]) -> dict[str, float]:
    """Task -> score of a guess; that of all others is under no name."""
    pairs = (text.rpartition("=") for text in split_names(given))
    return {task: _number(share) for task, _, share in pairs}


@app.command("preparation", short_help="Ask what of a lead is preparation for the test.")
@_study("preparation", chance=_chance, knots=_knots, lower_is_better=split_names)
def preparation(
    *,
    scores: str = option(
        "PATH", "Table of model, score, group and compute, perhaps of task and tuned score.", ...
    ),
    columns: list[str] | None = COLUMNS,
    chance: list[str] | None = option("[TASK=]SHARE,...", "Score of a guess. [default: 0]"),
    knots: str = option(
        "A,B", "Where segments of compute meet, in powers of ten of operations.", "22,23"
    ),
    lower_is_better: list[str] | None = option(
        "TASK,...", "Less is better on these tasks; only ranks use them."
    ),
    draws: int = DRAWS,
    seed: int = SEED,
) -> None:
    """Ask what of a group's lead at equal compute is preparation for the test.

    Fits score against compute with an effect of the group, before and after the same fine-tuning
    of every model, and says how far tasks rank models alike before and after. Writes tables,
    summary.md, pictures and run.json to DIR, all or nothing.

    Examples:
        contam study preparation --scores scores.csv --out study
        contam study preparation --scores scores.csv --chance mmlu=0.25 --out study
    """


@app.command("board", short_help="Rank models on many tasks, and see how easily it moves.")
@_study("board")
def board(
    *,
    scores: Path | None = option(
        "FILE",
        "Scores of models on tasks: a row for each model and a column for each task, or"
        " columns model, task and score (CSV, JSON lines, Parquet).",
    ),
    clean: Path | None = option("FILE", "The same scores on clean items."),
    rescored: Path | None = option(
        "DIR", "Results of `contam rescore`, all and clean, instead of --scores and --clean."
    ),
    policy: str | None = POLICY,
    tasks: list[str] | None = option(
        "NAME...", "Tasks to use. [default: all columns but the model]", None, "--task"
    ),
    lower_is_better: list[str] | None = option(
        "TASK...", "Tasks on which a lower score is better."
    ),
    higher_is_better: list[str] | None = option(
        "TASK...", "Tasks whose names sound otherwise, and are not."
    ),
    columns: list[str] | None = COLUMNS,
    seed: int = option("N", "Seed of the searches.", 0, min=0),
) -> None:
    """Ask how a board ranks its models, and how easily that order moves.

    Aggregates, diversity, sensitivity to weights and to weak models, and what flags change.

    Examples:
        contam study board --scores board.csv --out study
        contam study board --rescored scores --out study
    """


def _last_days(given: list[str]) -> dict[str, str] | str:
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return pairs("--cutoff", split_names(given), "heron-8b=2023-09-30", at_last=True)


@app.command("time", short_help="See whether scores fall where a model's data end.")
@_study("time", cutoffs=_last_days, references=split_names, strata=split_names)
def time(
    *,
    logs: list[str] = option(
        "PATH...",
        "Scores of each item: what `contam rescore` takes as logs, of one benchmark.",
        ...,
    ),
    dates: Path | None = option(
        "FILE",
        "Table of the items with the date each came out, and their strata; or released:"
        " the months in which the logs' benchmarks came out. [default: the table of --logs]",
    ),
    cutoffs: list[str] | None = option(
        "FILE|MODEL=DATE,...",
        "Last day of a model's training data, or a table with columns model and cutoff.",
        None,
        "--cutoff",
    ),
    references: list[str] | None = option(
        "MODEL,...",
        "Models that cannot have seen the items: theirs is taken off.",
        None,
        "--reference",
    ),
    strata: list[str] | None = option(
        "COLUMN,...",
        "Columns of the dates to compare like with like by. [default: platform,"
        " difficulty, where they are there]",
    ),
    window: str = option("NAME", "month, quarter, half-year or year.", "quarter"),
    verdicts: str | None = VERDICTS,
    policy: str | None = POLICY,
    metric: str | None = METRIC,
    columns: list[str] | None = COLUMNS,
    least: int = option("N", "Items needed on either side of a cutoff.", 50, min=2),
    permutations: int = option("N", "Draws of the search for a cutoff.", 2_000, min=99),
    seed: int = SEED,
) -> None:
    """Ask whether scores fall where a model's training data end.

    Drops at known cutoffs, a search for unknown ones, and with the verdicts of a scan the gain by
    the date of documents.

    Examples:
        contam study time --logs runs --dates released --out study
        contam study time --logs scores.csv --cutoff model-a=2024-06-01 --out study
    """
