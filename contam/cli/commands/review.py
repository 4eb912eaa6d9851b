"""`contam review`: ask a reader whether items of a random sample are in the corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from contam.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.audit.review.sample import Case
    from contam.audit.review.session import ReviewSession

_QUESTION: Final = "Does the corpus contain this item?  t true, f false, s skip, q quit"
_ANSWERS: Final = {"t": True, "true": True, "f": False, "false": False, "s": None, "skip": None}
_QUIT: Final = ("q", "quit")


def review(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A pack, or the results of `contam scan --out`.")
    ],
    *,
    labels: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File for the answers; items in it are not shown again."),
    ],
    reader: Annotated[str, typer.Option(metavar="NAME", help="Name of the reader.")],
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Policy whose flags are reviewed. [default: the first]"),
    ] = None,
    flagged: Annotated[
        int, typer.Option(min=0, metavar="N", help="Flagged items to draw from each benchmark.")
    ] = 50,
    clean: Annotated[
        int, typer.Option(min=0, metavar="N", help="Clean items to draw from each benchmark.")
    ] = 50,
    documents: Annotated[
        int, typer.Option(min=1, metavar="N", help="Documents shown per item.")
    ] = 2,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the sample.")] = 0,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Show items beside documents, without verdict or score, and note the reader's answers.

    Flagged and clean items come in random order. Each answer is saved before the next item is
    shown. A second reader gets the same items.
    """
    from contam.audit.review.sample import read_own_labels, reader_name
    from contam.audit.review.session import ReviewSession
    from contam.audit.verify import refuse_inside

    reader = reader_name(reader)
    refuse_inside(labels, folder)
    reading = ReviewSession.open(folder, policy=policy, flagged=flagged, clean=clean, seed=seed)
    waiting = reading.waiting(read_own_labels(labels), reader)
    n = _ask(reading, waiting, labels, reader, documents)
    _print_progress(n, len(waiting) - n, labels)


def _ask(
    reading: ReviewSession, cases: Sequence[Case], labels: Path, reader: str, documents: int
) -> int:
    """Ask one case after the other until all are answered or the reader quits; how many were."""
    from contam.audit.review.sample import append_label
    from contam.audit.review.session import answer
    from contam.cli import render
    from contam.cli.commands.show import item_blocks
    from contam.cli.terminal import talk

    for at, case in enumerate(cases):
        render.emit_renderable(*item_blocks(reading.view(case, documents)))
        talk(f"{at + 1} of {len(cases)}. {_QUESTION}")
        word, note = _answer()
        if word in _QUIT:
            return at
        append_label(labels, answer(case, reader, _ANSWERS[word], note))
    return len(cases)


def _answer() -> tuple[str, str]:
    """The next line that is an answer, and the note behind it; the end of the input is `quit`."""
    from contam.cli.terminal import plain, talk

    while line := sys.stdin.readline():
        word, _, note = line.strip().partition(" ")
        word = word.lower()
        if word in _ANSWERS or word in _QUIT:
            return word, note.strip()
        talk(f"{plain(word)!r} is no answer. {_QUESTION}")
    return _QUIT[0], ""


def _print_progress(n: int, n_left: int, labels: Path) -> None:
    from contam.cli.terminal import emit, visible

    emit(f"{n:,} answers written to {visible(str(labels))}, {n_left:,} items left\n")
