"""`contam study likelihood`: what a model's log-probabilities say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import studies


@studies.command("likelihood")
def likelihood(
    *,
    shards: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON lines of the log-probabilities of a file's shards, in the published and in"
            " shuffled orders.",
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON lines of the file's items (text), to see whether any order would do.",
        ),
    ] = None,
    exchangeable: Annotated[
        bool,
        typer.Option("--exchangeable", help="Say that any order of the items would do."),
    ] = False,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON lines of the log-probabilities of texts, by token."
        ),
    ] = None,
    k: Annotated[
        float, typer.Option("--k", metavar="SHARE", help="Share of the tokens for Min-K %.")
    ] = 0.2,
) -> None:
    """Ask a model's log-probabilities whether it knows a file's order, or texts word by word.

    Sharded exchangeability test; loss, zlib, Min-K %, Min-K %++, reference and lowercase scores.
    They change no verdict.
    """
