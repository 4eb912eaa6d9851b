"""`contam audit waive`: add a reviewed flag to the file of waivers."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options
from contam.errors import UsageError

Today = Annotated[
    str | None,
    typer.Option(
        "--today",
        metavar="DATE",
        help="Date for deciding whether waivers have expired. [default: today, UTC]",
    ),
]


class WaiverKind(StrEnum):
    """Why a flag need not stop a release."""

    FALSE_POSITIVE = "false_positive"
    ACCEPTED = "accepted"


def day(text: str | None) -> dt.date:
    """A date of the command line; none is today. Raises UsageError."""
    from contam.audit.waivers.register import utc_today

    if text is None:
        return utc_today()
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no date", hint="write it as 2026-12-31") from error


def waive(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The pack that was reviewed.")],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The id of a flagged item.")],
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why the flag is acceptable.")],
    reviewer: Annotated[str, typer.Option(metavar="NAME", help="Who reviewed it.")],
    expires: Annotated[str, typer.Option(metavar="DATE", help="The last day the waiver is valid.")],
    kind: Annotated[
        WaiverKind, typer.Option(help="Whether the match is wrong, or right but accepted.")
    ] = WaiverKind.FALSE_POSITIVE,
    benchmark: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which benchmark, if several have an item with this id."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="SPLIT", help="Which split, if several have an item with this id."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Policy whose flag is waived. [default: all that flag it]"
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The one document that was reviewed. [default: all evidence]"
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Waiver file to add to. [default: print the entry]"),
    ] = None,
    today: Today = None,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Write a waiver for one flagged item, with the digest of its current evidence.

    The flag stays in every report; the waiver is refused once it has expired, or when the item,
    its verdicts or its evidence have changed.
    """
    from contam.audit.verify import refuse_inside
    from contam.audit.waivers.register import Waiver
    from contam.audit.waivers.waive import append, entry, make_waiver
    from contam.cli.terminal import emit, visible

    wanted = Waiver(
        benchmark=benchmark or "",
        item=item,
        kind=kind.value,
        reason=reason,
        reviewer=reviewer,
        expires=day(expires),
        evidence="",
        split=split,
        policy=policy,
        document=document,
    )
    if to is not None:
        refuse_inside(Path(to), folder)
    made = make_waiver(folder, wanted, day(today))
    if to is None:
        emit(visible(entry(made)))
        return
    append(Path(to), made)
    emit(f"waived {visible(made.named)} in {visible(to)}, evidence {made.evidence[:12]}\n")
