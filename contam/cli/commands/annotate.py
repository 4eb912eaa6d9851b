"""`contam annotate` and `contam export`: clean scores for evaluators, and clean items."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from contam.cli import options, render
from contam.cli.commands.query import Watcher
from contam.cli.options import argument, option, split_names
from contam.cli.results import write_text
from contam.cli.terminal import emit, plain, talk, visible
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.client.annotate import Written
    from contam.rescore.evaluator import LabelledLog


@options.shared
def annotate(
    *,
    paths: list[str] = argument(
        "PATH...", "Logs of lm-eval (--log_samples) or Inspect: files or folders."
    ),
    server: str | None = option(
        "URL", "Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]"
    ),
    verdicts: Path | None = option(
        "DIR", "Use the results of `contam scan` or `contam query` instead of a service."
    ),
    out: Path | None = option("DIR", "Save the service's verdicts here, for `contam show`."),
    index: list[str] | None = options.SERVED,
    policy: str | None = option("NAME", "Policy to judge by. [default: contam, or the only one]"),
    allow_missing: bool = options.ALLOW_MISSING,
    allow_unmatched: bool = options.ALLOW_UNMATCHED,
    output: options.OutputOptions,
) -> int:
    """Write clean scores beside those of lm-eval and Inspect, whose own files are not changed.

    lm-eval: `clean_results_TIME.json` beside `results_TIME.json`. Inspect: an edited copy of each
    log, under its name, in a folder `LOGS-clean` beside the folder of logs.

    Examples:
        contam annotate runs --verdicts results
        contam annotate runs --server http://127.0.0.1:8000
    """
    if verdicts is None:
        server = server or os.environ.get("CONTAM_SERVER")
    if (server is None) == (verdicts is None):
        raise UsageError("give exactly one of --server and --verdicts")
    if server is None and (index or allow_missing or out):
        raise UsageError("--index, --allow-missing and --out are for a service")
    from contam.client import Client
    from contam.client.annotate import annotate as write_scores

    with ExitStack() as opened:
        written = write_scores(
            paths,
            opened.enter_context(Client(server)) if server is not None else None,
            verdicts=verdicts or out,
            policy=policy,
            allow_unmatched=allow_unmatched,
            overwrite=output.overwrite,
            watcher=None if output.quiet else Watcher(),
            note=lambda said: None if output.quiet else talk(f"note: {plain(said)}"),
            index=split_names(index) if index else None,
            allow_missing=allow_missing,
        )
    _print(written, as_json=output.as_json)
    return 0


def _print(written: list[Written], *, as_json: bool) -> None:
    from contam.detect.labels import SHOWN
    from contam.rescore.summary import figure

    rows = [row for file in written for row in file.scores()]
    notes = list(dict.fromkeys(note for file in written for note in file.notes))
    if as_json:
        files = [str(file.out) for file in written]
        render.emit_json({"files": files, "scores": rows, "notes": notes})
        return
    labels = [label.replace("_", " ") for label in SHOWN]
    heads = ("n", *labels, "full", "clean score")
    table = render.new_table("model", "benchmark", "metric", numbers=heads)
    for row in rows:
        table.add_row(
            *(visible(row[name]) for name in ("model", "benchmark", "metric")),
            f"{row['n']:,}",
            *(f"{row['items'][label]:,}" for label in SHOWN),
            figure(row["full"]),
            figure(row["clean"]),
        )
    render.emit_renderable(table)
    # Not through the table's console, which would break a long path in two.
    emit("".join(f"{visible(note)}\n" for note in notes))
    emit("\n" + "".join(f"clean scores  {visible(str(file.out))}\n" for file in written))


def export(
    *,
    verdicts: Path = option("DIR", "Results of `contam scan` or `contam query`.", ...),
    logs: list[str] = option("PATH...", "Logs of lm-eval, with their results files.", ...),
    policy: str | None = option("NAME", "Policy to judge by. [default: the only one]"),
    out: Path | None = option("PATH", "Output file. [default: standard output]"),
    allow_unmatched: bool = options.ALLOW_UNMATCHED,
    overwrite: bool = options.OVERWRITE,
    quiet: bool = options.QUIET,
) -> None:
    """Write the clean documents of each task as lm-eval's --samples takes them.

    So lm-eval computes the clean score with its own code. Suspect and not checkable items are left
    out, like contaminated ones. Counts and the expected score are printed on standard error.

    Examples:
        contam export --verdicts results --logs runs
        contam export --verdicts results --logs runs --out clean.json
    """
    from contam.rescore.evaluator import judge, lm_eval_samples

    judged = judge(verdicts, logs, tool="lm-eval", policy=policy, allow_unmatched=allow_unmatched)
    text = json.dumps(lm_eval_samples(judged)) + "\n"
    if out is None:
        emit(text)
    else:
        write_text(out, text, overwrite=overwrite)
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
