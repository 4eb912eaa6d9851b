"""`contam study likelihood`: what a model's log-probabilities say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options, studies
from contam.errors import UsageError


def likelihood(
    *,
    out: options.OutFolder,
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
    overwrite: options.Overwrite = False,
    as_json: studies.Json = False,
    quiet: studies.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Ask a model's log-probabilities whether it knows a file's order, or texts word by word.

    Sharded exchangeability test; loss, zlib, Min-K %, Min-K %++, reference and lowercase scores.
    They change no verdict.
    """
    from contam.study.logprobs import likelihood as study_likelihood

    if shards is None and texts is None:
        raise UsageError("give --shards, --texts or both")
    study = study_likelihood(
        shards=shards, texts=texts, items=items, exchangeable=exchangeable, k=k
    )
    return studies.finish(study, out, overwrite=overwrite, as_json=as_json, quiet=quiet)
