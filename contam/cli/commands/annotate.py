"""`contam annotate`: clean scores beside those of lm-eval and Inspect."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options
from contam.cli.options import split_names
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.client.annotate import Runs, Written


def annotate(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Logs of lm-eval (--log_samples) or Inspect: files or folders.",
        ),
    ],
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]"
        ),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Use the results of `contam scan` or `contam query` instead of a service.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save the service's verdicts here, for `contam show`."),
    ] = None,
    index: options.Served = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Policy to judge by. [default: contam, or the only one]"),
    ] = None,
    allow_missing: options.AllowMissing = False,
    allow_unmatched: options.AllowUnmatched = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace earlier clean scores, and the verdicts of --out."
        ),
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Write clean scores beside those of lm-eval and Inspect, whose own files are not changed.

    lm-eval: `clean_results_TIME.json` beside `results_TIME.json`. Inspect: an edited copy of each
    log, under its name, in a folder `LOGS-clean` beside the folder of logs.
    """
    if verdicts is None:
        server = server or os.environ.get("CONTAM_SERVER")
    if (server is None) == (verdicts is None):
        raise UsageError(
            "who judges the items?", hint="give --server URL or --verdicts DIR, one of them"
        )
    if server is None and (index or allow_missing or out):
        raise UsageError("--index, --allow-missing and --out are for a service")
    from contam.cli.terminal import plain, talk
    from contam.client.annotate import find_runs, write_clean

    found = find_runs(paths, overwrite=overwrite)
    if not quiet:
        for path, reason in found.skipped:
            talk(f"note: {plain(path)}: left out, {plain(reason)}")
    with tempfile.TemporaryDirectory(prefix="contam-") as scratch:
        folder = verdicts or out or Path(scratch) / "verdicts"
        if server is not None:
            _ask(
                server, found, folder,
                policy=policy, index=index, allow_missing=allow_missing,
                overwrite=overwrite, quiet=quiet,
            )  # fmt: skip
        written = write_clean(
            found.runs, folder,
            policy=policy, allow_unmatched=allow_unmatched, overwrite=overwrite,
        )  # fmt: skip
    _print(written, as_json=as_json)


def _ask(
    server: str,
    found: Runs,
    folder: Path,
    *,
    policy: str | None,
    index: list[str] | None,
    allow_missing: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    from contam.cli.commands.check import Watcher
    from contam.client import Client
    from contam.client.annotate import ask
    from contam.client.flows import Asked

    asked = Asked(
        index=split_names(index) if index else None,
        policies=[policy or "contam"],
        allow_missing=allow_missing,
    )
    watcher = None if quiet else Watcher()
    with Client(server) as client:
        ask(client, found, asked, folder, overwrite=overwrite, watcher=watcher)


def _print(written: list[Written], *, as_json: bool) -> None:
    from contam.cli import render
    from contam.cli.sheet import Sheet
    from contam.cli.terminal import emit, visible
    from contam.rescore.export.summary import figure

    rows = [row for file in written for row in _rows(file)]
    if as_json:
        render.emit_json({"files": [str(file.out) for file in written], "scores": rows})
        return
    sheet = Sheet(("model", "benchmark", "metric"), ("n", "full", "clean items", "clean"))
    for row in rows:
        sheet.add(
            [visible(row[name]) for name in ("model", "benchmark", "metric")],
            (f"{row['n']:,}", figure(row["full"]), f"{row['n_clean']:,}", figure(row["clean"])),
        )
    render.emit_renderable(sheet)
    # Not through the table's console, which would break a long path in two.
    emit("\n" + "".join(f"clean scores  {visible(str(file.out))}\n" for file in written))


def _rows(written: Written) -> list[dict[str, Any]]:
    import math

    import numpy as np

    found = []
    for judged in written.judged:
        clean = judged.scores()
        for column in judged.log.columns:
            if column.metric not in clean:
                continue
            value, n_clean = clean[column.metric]
            full = column.aggregate(np.ones(len(judged.label), np.bool_))
            found.append(
                {
                    "model": judged.log.model, "benchmark": judged.log.benchmark,
                    "metric": column.metric, "n": int(np.count_nonzero(column.scored)),
                    "full": None if math.isnan(full) else full,
                    "n_clean": n_clean, "clean": None if math.isnan(value) else value,
                }
            )  # fmt: skip
    return found
