"""`contam export`: write the clean items in the format of an evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.output_file import refuse_replacing
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.rescore.export.evaluator import LabelledLog

SPREAD_OPTIONS = ("--logs",)


def export(
    *,
    verdicts: Annotated[
        Path, typer.Option(metavar="DIR", help="Results of `contam scan` or `contam query`.")
    ],
    logs: Annotated[
        list[str],
        typer.Option(
            metavar="PATH...",
            help="Logs of lm-eval; one log with --inspect; any logs with --every-eval-ever.",
        ),
    ],
    lm_eval_samples: Annotated[
        bool,
        typer.Option(
            "--lm-eval-samples",
            help="Write the clean documents of each task, for lm-eval's --samples.",
        ),
    ] = False,
    inspect: Annotated[
        bool,
        typer.Option(
            "--inspect", help="Write the Inspect log with items that are not clean unscored."
        ),
    ] = False,
    every_eval_ever: Annotated[
        bool,
        typer.Option(
            "--every-eval-ever",
            help="Write a folder of logs in the format of Every Eval Ever, with labels and clean"
            " scores.",
        ),
    ] = False,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy to judge by. [default: the only one]")
    ] = None,
    columns: options.Columns = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="With --every-eval-ever: less of this metric is better. May be repeated.",
        ),
    ] = None,
    higher_is_better: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="With --every-eval-ever: more of this metric is better. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Output file or folder. [default: standard output]"),
    ] = None,
    allow_unmatched: options.AllowUnmatched = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace PATH if it exists.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No counts.")] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Export the clean items to the evaluator, so that its own code computes the clean score.

    Suspect and not checkable items are left out, like contaminated ones. Counts and the expected
    score are printed on standard error.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.cli.terminal import emit, talk
    from contam.files.single import write_file
    from contam.rescore.export import evaluator as library

    if lm_eval_samples + inspect + every_eval_ever != 1:
        raise UsageError(
            "export to what?",
            hint="give one of --lm-eval-samples, --inspect and --every-eval-ever",
        )
    if inspect and out is None:
        raise UsageError("--inspect writes a log", hint="name it with --out FILE.json")
    if (lower_is_better or higher_is_better) and not every_eval_ever:
        raise UsageError(
            "--lower-is-better and --higher-is-better are for --every-eval-ever",
            hint="the evaluators know their own metrics",
        )
    if every_eval_ever and out is None:
        raise UsageError("--every-eval-ever writes a folder", hint="name it with --out DIR")
    judged = library.judge(
        verdicts,
        logs,
        tool=None if every_eval_ever else "inspect" if inspect else "lm-eval",
        policy=policy,
        columns=parse_mapping(columns) if columns else None,
        allow_unmatched=allow_unmatched,
    )
    if inspect and len(judged) > 1:
        raise UsageError(f"{len(judged)} logs, and --inspect edits one", hint="name one log")
    if every_eval_ever and out is not None:
        files = library.every_eval_logs(
            judged,
            lower_is_better=lower_is_better or [],
            higher_is_better=higher_is_better or [],
        )
        _write_folder(files, out, overwrite=overwrite)
    else:
        found = library.inspect_log(judged[0]) if inspect else library.lm_eval_samples(judged)
        text = json.dumps(found) + "\n"
        if out is None:
            emit(text)
        else:
            refuse_replacing(out, [verdicts, *logs])
            write_file(out, text.encode(), overwrite=overwrite)
    if not quiet:
        for log in judged:
            for line in _summary_lines(log):
                talk(line)


def _write_folder(files: Mapping[str, bytes], out: Path, *, overwrite: bool) -> None:
    """Write files into a folder, whole or not at all."""
    from contam.files.publish import output_errors, publishing

    with (
        publishing(out, names=list(files), last=list(files)[-1], overwrite=overwrite) as folder,
        output_errors(out),
    ):
        for name, data in files.items():
            (folder / name).write_bytes(data)


def _summary_lines(log: LabelledLog) -> list[str]:
    from contam.cli.terminal import plain

    counts = log.counts
    left_out = ", ".join(f"{n:,} {name}" for name, n in counts.items() if name != "clean")
    who = f"{log.log.benchmark}, {log.log.model}"
    lines = [plain(f"{who}: {counts['clean']:,} clean by {log.policy}; left out: {left_out}")]
    for metric, (score, n_scored) in log.scores().items():
        lines.append("  " + plain(f"{metric}: {score:.6f} on {n_scored:,} clean items"))
    return lines
