"""`contam review`: show items beside documents, and note what a reader says of them."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from contam.cli import render
from contam.cli.commands.audit import today
from contam.cli.commands.show import item_blocks
from contam.cli.options import argument, option
from contam.cli.results import refuse_inside
from contam.cli.terminal import emit, plain, talk, visible
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Collection

_LABELS: Final = "Does the corpus contain this item?  t true, f false, s skip, q quit"
_ANSWERS: Final = {"t": True, "true": True, "f": False, "false": False, "s": None, "skip": None}
_ACCEPT: Final = "Accept this flag?  y REASON, n no, q quit"
_YES: Final = ("y", "yes")
_NO: Final = ("n", "no")
_QUIT: Final = ("q", "quit")


def review(
    folder: Annotated[Path, argument("DIR", "A pack, or the results of `contam scan --out`.")],
    *,
    labels: Annotated[
        Path | None, option("FILE", "File for the answers; items in it are not shown again.")
    ] = None,
    accept: Annotated[
        Path | None, option("FILE", "Instead of labels: CSV file of the flags you accept.")
    ] = None,
    until: Annotated[
        str | None, option("DATE", "--accept: the last day on which they are accepted.")
    ] = None,
    item: Annotated[
        list[str] | None, option("ID", "--accept: show this flagged item. [default: all]")
    ] = None,
    reader: Annotated[str, option("NAME", "Name of the reader.")],
    policy: Annotated[
        str | None, option("NAME", "Policy whose flags are reviewed. [default: the first]")
    ] = None,
    flagged: Annotated[int, option("N", "Flagged items to draw from each benchmark.", min=0)] = 50,
    clean: Annotated[int, option("N", "Clean items to draw from each benchmark.", min=0)] = 50,
    documents: Annotated[int, option("N", "Documents shown per item.", min=1)] = 2,
    seed: Annotated[int, option("N", "Seed of the sample.", min=0)] = 0,
) -> None:
    """Show items beside documents, without verdict or score, and note the reader's answers.

    Flagged and clean items come in random order. Each answer is saved before the next item is
    shown. A second reader gets the same items.

    With --accept, flagged items are shown with all their documents, and those that you accept are
    written to a file that a gate reads.

    Examples:
        contam review results --labels anna.jsonl --reader Anna
        contam review pack --accept accepted.csv --reader Anna --until 2027-12-31
    """
    from contam.audit.sample import reader_name

    reader = reader_name(reader)
    path = labels or accept
    if path is None or (labels and accept):
        raise UsageError("give exactly one of --labels and --accept")
    refuse_inside(path, "--labels" if labels else "--accept")
    if accept:
        if until is None:
            raise UsageError("--accept needs --until", hint="--until 2027-12-31")
        n, n_left = _accept(folder, accept, reader, _day(until), (policy, item or ()))
        said = "accepted in"
    elif until or item:
        raise UsageError("--until and --item go with --accept")
    else:
        n, n_left = _label(
            folder, path, reader, documents, policy=policy, flagged=flagged, clean=clean, seed=seed
        )
        said = "answers written to"
    emit(f"{n:,} {said} {visible(str(path))}, {counted(n_left, 'item')} left\n")


def _label(
    folder: Path,
    labels: Path,
    reader: str,
    documents: int,
    *,
    policy: str | None,
    flagged: int,
    clean: int,
    seed: int,
) -> tuple[int, int]:
    """Ask for labels until all are given or the reader quits; (answers, items left)."""
    from contam.audit.sample import ReviewSession, answer, append_label, read_labels

    reading = ReviewSession.open(folder, policy=policy, flagged=flagged, clean=clean, seed=seed)
    known = read_labels([labels]) if labels.exists() else []
    cases = reading.waiting(known, reader)
    for at, case in enumerate(cases):
        render.emit_renderable(*item_blocks(reading.view(case, documents)))
        word, note = _answer(f"{at + 1} of {len(cases)}. {_LABELS}", _ANSWERS)
        if word in _QUIT:
            return at, len(cases) - at
        append_label(labels, answer(case, reader, _ANSWERS[word], note))
    return len(cases), 0


def _accept(
    folder: Path,
    path: Path,
    reader: str,
    until: dt.date,
    wanted: tuple[str | None, Collection[str]],
) -> tuple[int, int]:
    """Ask of each flagged item whether it is accepted; (accepted, items not asked)."""
    from contam.audit.sample import AcceptSession
    from contam.detect.accepted import add_accepted

    if until < today():
        raise UsageError(f"--until {until} is over", hint="give a day to come")
    session = AcceptSession.open(folder, path, *wanted)
    n = 0
    for at, item in enumerate(session.items):
        render.emit_renderable(*item_blocks(session.view(item)))
        asked = f"{at + 1} of {len(session.items)}. {_ACCEPT}"
        word, reason = _answer(asked, (*_YES, *_NO))
        while word in _YES and not reason:
            talk("a reason is needed: y REASON")
            word, reason = _answer(asked, (*_YES, *_NO))
        if word in _QUIT:
            return n, len(session.items) - at
        if word in _YES:
            add_accepted(path, session.rows(item, reason, reader, until))
            n += 1
    return n, 0


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a date", hint="write it as 2026-12-31") from error


def _answer(question: str, known: Collection[str]) -> tuple[str, str]:
    """The next line that is an answer, and the note behind it; the end of the input is `quit`."""
    talk(question)
    while line := sys.stdin.readline():
        word, _, note = line.strip().partition(" ")
        word = word.lower()
        if word in known or word in _QUIT:
            return word, note.strip()
        talk(f"{plain(word)!r} is no answer. {question}")
    return _QUIT[0], ""
