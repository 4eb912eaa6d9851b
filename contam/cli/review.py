"""`contam review`: a reader says of a random sample of items whether they stand in the corpus."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from contam.cli import options
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.audit.review import Case
    from contam.detect.report import Report

_QUESTION: Final = "Does the corpus hold this item?  t true, f false, s skip, q quit"
_ANSWERS: Final = {"t": True, "true": True, "f": False, "false": False, "s": None, "skip": None}
_QUIT: Final = ("q", "quit")


def review(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A pack, or what `contam scan --out` wrote.")
    ],
    *,
    labels: Annotated[
        Path, typer.Option(metavar="FILE", help="Where answers go; what it holds is not asked.")
    ],
    reader: Annotated[str, typer.Option(metavar="NAME", help="Who reads.")],
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose flags. [default: the first policy]")
    ] = None,
    flagged: Annotated[
        int, typer.Option(min=0, metavar="N", help="Flagged items of each benchmark.")
    ] = 50,
    clean: Annotated[
        int, typer.Option(min=0, metavar="N", help="Clean items of each benchmark.")
    ] = 50,
    documents: Annotated[
        int, typer.Option(min=1, metavar="N", help="Documents shown per item.")
    ] = 2,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Which items are drawn.")] = 0,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Show items beside documents, without verdict or score, and note what the reader says.

    Flagged and clean items come in random order. Each answer is on the disk before the next item
    is shown. A second reader gets the same items.
    """
    from contam.audit.review import draw, open_result, population, read_labels

    if not reader.strip():
        raise UsageError("a reader needs a name")
    report = open_result(folder)
    chosen = policy or report.run["parameters"]["policies"][0]
    cases = draw(population(report, chosen), flagged=flagged, clean=clean, seed=seed)
    before = read_labels([labels]) if labels.exists() else []
    answered = {(one.judged, one.evidence) for one in before if one.reader == reader}
    waiting = [case for case in cases if (case.judged, case.digest) not in answered]
    n = _ask(report, waiting, labels, reader, documents)
    _tell(n, len(waiting) - n, labels)


def _ask(report: Report, cases: list[Case], labels: Path, reader: str, documents: int) -> int:
    """Ask one case after the other until all are answered or the reader quits; how many were."""
    from contam.audit.review import Label, append_label
    from contam.cli import render
    from contam.cli.show import item_blocks
    from contam.cli.terminal import talk
    from contam.detect.show import view_items

    for at, case in enumerate(cases):
        (view,) = view_items(report, [case.key], max_documents=documents)
        render.emit_renderable(*item_blocks(replace(view, verdicts=())))
        talk(f"{at + 1} of {len(cases)}. {_QUESTION}")
        answer = _answer()
        if answer in _QUIT:
            return at
        benchmark, split, item, policy = case.judged
        append_label(
            labels,
            Label(
                benchmark=benchmark,
                split=split,
                item=item,
                policy=policy,
                evidence=case.digest,
                reader=reader,
                label=_ANSWERS[answer],
            ),
        )
    return len(cases)


def _answer() -> str:
    """The next line that is an answer; the end of the input is `quit`."""
    from contam.cli.terminal import plain, talk

    while line := sys.stdin.readline():
        word = line.strip().lower()
        if word in _ANSWERS or word in _QUIT:
            return word
        talk(f"{plain(word)!r} is no answer. {_QUESTION}")
    return _QUIT[0]


def _tell(n: int, n_left: int, labels: Path) -> None:
    from contam.cli.terminal import emit, visible

    emit(f"{n:,} answers written to {visible(str(labels))}, {n_left:,} items left\n")
