"""`contam audit gate`: decide whether a pack meets the rules of a release."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.commands.audit_waive import Today, day
from contam.cli.output_file import refuse_replacing
from contam.errors import OutputError, UsageError

if TYPE_CHECKING:
    from contam.audit.gate.decide import GateVerdict

EXIT_FAILED = 3


class GateFormat(StrEnum):
    """Who reads the lines."""

    TEXT = "text"
    GITHUB = "github"


def gate(
    rules: Annotated[Path, typer.Argument(metavar="RULES.toml", help="The rules.")],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A pack to check instead of the one in the rules."),
    ] = None,
    *,
    digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="The digest the pack must have.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also append a summary in Markdown.")
    ] = None,
    fmt: Annotated[
        GateFormat,
        typer.Option(
            "--format",
            help="`github`: also write errors, outputs and a summary for GitHub Actions.",
        ),
    ] = GateFormat.TEXT,
    today: Today = None,
    as_json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Check a pack against rules: prints a line for each, and exits with 3 if one fails.

    A rule that cannot be judged fails. The pack must be unchanged since it was published.
    """
    from contam.audit.gate.decide import run_gate
    from contam.audit.gate.rules import load_rules
    from contam.audit.verify import refuse_inside
    from contam.cli import render

    read = load_rules(rules)
    where = folder or (Path(read.pack) if read.pack else None)
    if where is None:
        raise UsageError("there is no pack to judge", hint="give DIR, or pack = in the rules")
    for path in (junit, summary):
        if path is not None:
            refuse_inside(path, where)
    if junit is not None:
        refuse_replacing(junit, [rules], "--junit")
    verdict = run_gate(read.rules, where, day(today), digest)
    if as_json:
        render.emit_json({**asdict(verdict), "passed": verdict.passed})
    else:
        _print_lines(verdict)
    _write(verdict, fmt, junit, summary, as_json=as_json)
    return 0 if verdict.passed else EXIT_FAILED


def _print_lines(verdict: GateVerdict) -> None:
    from contam.audit.gate.junit import STATUS
    from contam.cli.terminal import emit, plain

    for outcome in verdict.outcomes:
        shown = (
            STATUS[outcome.status] if outcome.status == "pass" else STATUS[outcome.status].upper()
        )
        emit(f"{shown:16s}  {plain(outcome.rule)}: {plain(outcome.said)}\n")


def _write(
    verdict: GateVerdict,
    fmt: GateFormat,
    junit: Path | None,
    summary: Path | None,
    *,
    as_json: bool,
) -> None:
    from contam.audit.gate import junit as forms
    from contam.cli.terminal import emit, talk, visible
    from contam.files.single import write_file

    if junit is not None:
        write_file(junit, forms.junit(verdict), overwrite=True)
    if fmt == GateFormat.GITHUB:
        for line in forms.github_lines(verdict):
            # Where stdout is one JSON document, the runner reads its commands from stderr.
            (talk if as_json else lambda text: emit(f"{text}\n"))(visible(line))
        outputs = os.environ.get("GITHUB_OUTPUT")
        if outputs:
            _append(Path(outputs), forms.github_outputs(verdict).encode("ascii"))
        page = os.environ.get("GITHUB_STEP_SUMMARY")
        summary = summary or (Path(page) if page else None)
    if summary is not None:
        _append(summary, forms.summary(verdict).encode("utf-8", "replace"))


def _append(path: Path, text: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
