"""`contam export`: write the clean items in the format of an evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.results import refuse_inside
from contam.cli.terminal import emit, plain, talk

if TYPE_CHECKING:
    from contam.rescore.export.evaluator import LabelledLog


def export(
    *,
    verdicts: Annotated[
        Path, typer.Option(metavar="DIR", help="Results of `contam scan` or `contam query`.")
    ],
    logs: Annotated[
        list[str],
        typer.Option(metavar="PATH...", help="Logs of lm-eval, with their results files."),
    ],
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy to judge by. [default: the only one]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Output file. [default: standard output]"),
    ] = None,
    allow_unmatched: options.AllowUnmatched = False,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the clean documents of each task as lm-eval's --samples takes them.

    So lm-eval computes the clean score with its own code. Suspect and not checkable items are left
    out, like contaminated ones. Counts and the expected score are printed on standard error.

    Examples:
        contam export --verdicts results --logs runs
        contam export --verdicts results --logs runs --out clean.json
    """
    from contam.files.single import write_file
    from contam.rescore.export.evaluator import judge, lm_eval_samples

    judged = judge(verdicts, logs, tool="lm-eval", policy=policy, allow_unmatched=allow_unmatched)
    text = json.dumps(lm_eval_samples(judged)) + "\n"
    if out is None:
        emit(text)
    else:
        refuse_inside(out)
        write_file(out, text.encode(), overwrite=overwrite)
    if not quiet:
        for log in judged:
            for line in _summary_lines(log):
                talk(line)


def _summary_lines(log: LabelledLog) -> list[str]:
    counts = log.counts
    left_out = ", ".join(f"{n:,} {name}" for name, n in counts.items() if name != "clean")
    who = f"{log.log.benchmark}, {log.log.model}"
    lines = [plain(f"{who}: {counts['clean']:,} clean by {log.policy}; left out: {left_out}")]
    for metric, (score, n_scored) in log.scores().items():
        lines.append("  " + plain(f"{metric}: {score:.6f} on {n_scored:,} clean items"))
    return lines
