"""`contam watch`: audit what changed, and keep a history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options
from contam.cli.commands import audit_gate, audit_waive


def watch(
    spec: Annotated[
        Path, typer.Argument(metavar="AUDIT.toml", help="Corpora, benchmarks, logs, studies.")
    ],
    *,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the history, instead of the file's."),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="RULES.toml", help="Rules that every run has to pass."),
    ] = None,
    today: audit_waive.Today = None,
    workers: options.Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Audit what changed since the last run, and add to a history with control charts.

    For cron, a CI job or a scheduler: two runs at once exclude each other, and a killed one is
    finished by the next. Exit code 3: a rule fails; 4: part of a corpus was not read.
    """
    from contam.audit.gate.rules import load_rules
    from contam.audit.spec import load_spec
    from contam.audit.watch import PAGE
    from contam.audit.watch import watch as run_watch
    from contam.cli import render
    from contam.cli.commands.audit import AuditReporter
    from contam.cli.terminal import emit, talk, visible
    from contam.study.write import tree

    given = {"out": str(Path(out).absolute())} if out else {}
    made = run_watch(
        load_spec(spec, given),
        rules=load_rules(rules).rules if rules else (),
        workers=workers,
        talk=AuditReporter(quiet=quiet),
        today=audit_waive.day(today),
    )
    home = made.pack.folder.parent
    if not quiet:
        talk(f"shards: {made.searched:,} searched, {made.kept:,} kept from earlier runs")
    if as_json:
        render.emit_json(
            {"out": str(home), "run": made.run, "changed": made.changed,
             "searched": made.searched, "kept": made.kept, **{
                key: value for key, value in tree(made.study).items() if key != "run"
            }}
        )  # fmt: skip
    else:
        emit(f"{visible(made.study.finding.found)}\n")
        for refusal in made.study.refusals:
            emit(f"not estimated: {visible(refusal.what)}: {visible(refusal.reason)}\n")
        emit(f"\npage  {visible(str(home / PAGE))}\npack  {visible(str(made.pack.folder))}\n")
    if made.gate is not None and not made.gate.passed:
        return audit_gate.EXIT_FAILED
    return 0 if made.complete else 4
