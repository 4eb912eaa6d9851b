"""Draw the pictures of the README: the proof of an item of bench_fixtures, and what contam does.

`make pictures` writes them; a test draws them anew and compares.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import contam
from contam.benchmark.items import ItemName
from contam.detect.show.side_by_side import view_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contam.detect.show.side_by_side import ItemView, Mark

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "bench_fixtures"
ITEM = "brook-004"

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif"
INK, PALE, LINE, PAPER = "#1b1f24", "#59636e", "#d1d9e0", "#ffffff"
MARKER, RED, BLUE, SKY = "#ffe08a", "#b42318", "#0b4f9e", "#eaf3fd"

#: Size of a character and of a line of the texts, in pixels.
CHARACTER, ROW = 7.2, 19


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters of one line, marked or not."""

    text: str
    marked: bool


def proof() -> str:
    """One item beside the document that contains it, the matching stretches marked."""
    result = contam.scan(FIXTURES / "corpus", FIXTURES / "items" / "brook_math.jsonl")
    (item,) = (ItemName.of(verdict) for verdict in result if verdict.item_id == ITEM)
    with tempfile.TemporaryDirectory() as folder:
        report = contam.load_report(contam.write_report(result, Path(folder, "result")))
        (view,) = view_items(report, [item])
    (match,) = view.documents[:1]
    (part,) = (part for part in match.parts if part.part == "question")
    left = list(lines(part.item, 40))
    right = list(lines(part.document, 62))
    longest = max(
        row["n_tokens"]
        for row in result.evidence.to_pylist()
        if (row["item_id"], row["document_id"]) == (ITEM, match.document_id)
    )
    (verdict,) = view.verdicts
    said = (
        f"{verdict.score:.0%} of the question is in one training document, edited: "
        f"no more than {longest} words in a row are the same."
    )
    return sheet(view, said, f"{match.shard}, row {match.row}", left, right)


def lines(marks: Iterable[Mark], width: int) -> Iterator[list[Piece]]:
    """The marks as lines of at most `width` characters, cut between words."""
    cells: list[tuple[str, bool]] = []
    for mark in marks:
        text = " … " if mark.kind == "gap" else " ".join(mark.text.split("\n"))
        cells += [(character, mark.kind == "match") for character in text]
    while cells:
        cut = len(cells)
        if cut > width:
            spaces = [at for at in range(width + 1) if cells[at][0] == " "]
            cut = spaces[-1] if spaces else width
        line, cells = cells[:cut], cells[cut:]
        while cells and cells[0][0] == " ":
            cells = cells[1:]
        breaks = [at for at in range(1, len(line)) if line[at][1] != line[at - 1][1]]
        yield [
            Piece("".join(character for character, _ in line[a:b]), line[a][1])
            for a, b in pairwise([0, *breaks, len(line)])
        ]


def sheet(
    view: ItemView, said: str, place: str, left: list[list[Piece]], right: list[list[Piece]]
) -> str:
    """The picture of a proof."""
    (verdict,) = view.verdicts
    n_rows = max(len(left), len(right))
    width, top = 860, 118
    height = top + n_rows * ROW + 24
    middle = 56 + 40 * CHARACTER
    body = [
        frame(width, height),
        words(24, 34, f"{view.key.benchmark} / {view.key.item_id}", size=17, weight=600),
        words(width - 24, 34, verdict.label, size=17, fill=RED, weight=700, anchor="end"),
        words(24, 58, said, fill=PALE),
        f'<line x1="0" y1="74" x2="{width}" y2="74" stroke="{LINE}"/>',
        words(24, 98, "benchmark item: question", weight=600),
        words(middle + 24, 98, f"training document: {place}", weight=600),
        f'<line x1="{middle:.0f}" y1="74" x2="{middle:.0f}" y2="{height}" stroke="{LINE}"/>',
        *block(24, top, left),
        *block(middle + 24, top, right),
    ]
    title = f"The question of {view.key.item_id} beside a document, with the matching text marked"
    return picture(width, height, title, body)


def block(x: float, top: float, rows: list[list[Piece]]) -> Iterator[str]:
    """Lines of text, marked like with a pen."""
    for number, row in enumerate(rows):
        baseline = top + 14 + number * ROW
        at = x
        for piece in row:
            length = len(piece.text) * CHARACTER
            if piece.marked:
                yield (
                    f'<rect x="{at:.1f}" y="{baseline - 14}" width="{length:.1f}" height="{ROW}" '
                    f'fill="{MARKER}"/>'
                )
            at += length
        text = "".join(piece.text for piece in row)
        yield (
            f'<text x="{x:.1f}" y="{baseline}" font-family="{MONO}" font-size="12" fill="{INK}" '
            f'xml:space="preserve" textLength="{len(text) * CHARACTER:.1f}">{escape(text)}</text>'
        )


def overview() -> str:
    """What goes in and what comes out."""
    boxes = [
        (16, 28, "corpus shards", "Parquet, JSONL, Arrow, CSV, WET", False),
        (16, 112, "benchmark items", "JSONL, CSV, Parquet, datasets", False),
        (16, 196, "evaluation logs", "lm-eval, Inspect, HELM, …", False),
        (312, 70, "contam scan", "or contam query, from an index", True),
        (312, 196, "contam rescore", "scores without flagged items", True),
        (608, 28, "verdicts", "a label for every item", False),
        (608, 112, "evidence", "the text that proves it", False),
        (608, 196, "clean scores", "gains, intervals, rankings", False),
        (312, 288, "contam audit", "all of it, for a release", True),
        (608, 288, "audit pack", "report, tables, digest", False),
    ]
    arrows = [
        "M 252 56 C 282 56 282 92 308 92", "M 252 140 C 282 140 282 108 308 108",
        "M 252 224 H 308",
        "M 548 92 C 578 92 578 56 604 56", "M 548 108 C 578 108 578 140 604 140",
        "M 430 126 V 192",
        "M 548 224 H 604", "M 430 252 V 284", "M 548 316 H 604",
    ]  # fmt: skip
    body = [
        frame(860, 364),
        f'<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" orient="auto" fill="{PALE}">',
        '<path d="M 0 0 L 8 4 L 0 8 z"/>',
        "</marker>",
        f'<g fill="none" stroke="{PALE}" stroke-width="1.5">',
        *(f'<path d="{path}" marker-end="url(#tip)"/>' for path in arrows),
        "</g>",
    ]
    for x, y, name, about, ours in boxes:
        fill, edge = (SKY, BLUE) if ours else (PAPER, LINE)
        body.append(
            f'<rect x="{x}" y="{y}" width="236" height="56" rx="8" fill="{fill}" stroke="{edge}"/>'
        )
        body.append(words(x + 16, y + 24, name, fill=BLUE if ours else INK, weight=600, size=14))
        body.append(words(x + 16, y + 43, about, fill=PALE, size=12))
    title = (
        "Corpus shards and benchmark items go into contam scan, which gives verdicts and evidence. "
        "With evaluation logs, contam rescore gives clean scores. contam audit packs all of it."
    )
    return picture(860, 364, title, body)


def frame(width: int, height: int) -> str:
    """The sheet that a picture is drawn on: it is light on a dark page, too."""
    return (
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" '
        f'fill="{PAPER}" stroke="{LINE}"/>'
    )


def words(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 13,
    fill: str = INK,
    weight: int = 400,
    anchor: str = "start",
) -> str:
    """One line of text."""
    return (
        f'<text x="{x:.0f}" y="{y}" font-family="{SANS}" font-size="{size}" fill="{fill}" '
        f'font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def picture(width: int, height: int, title: str, body: Iterable[str]) -> str:
    """An SVG file."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<title>{escape(title)}</title>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


PICTURES = {"proof.svg": proof, "overview.svg": overview}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")
        print(folder / name)
