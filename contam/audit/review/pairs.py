"""Draw pairs of a flagged item and the document its flag rests on, and read their texts."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.benchmark.items import ItemName
from contam.detect.show.reread import Library
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contam.audit.review.sample import Case
    from contam.detect.report import Report
    from contam.detect.show.reread import Place

    Spans = list[tuple[int, int]]

#: Code points around what matches, and of a stretch in all.
_AROUND: Final = 300
_MOST: Final = 4_000
#: Documents that are in memory at once.
_AT_ONCE: Final = 128


@dataclass(frozen=True, slots=True)
class Pair:
    """A flagged item and a document; `digest` also changes with the item's evidence."""

    key: ItemName
    place: Place
    digest: str


@dataclass(frozen=True, slots=True)
class Draw:
    """Pairs at random from those of a result.

    inclusion  the probability of each pair of the result to be among them
    """

    pairs: tuple[Pair, ...]
    seed: int
    inclusion: float


@dataclass(frozen=True, slots=True)
class PairText:
    """What there is to compare: the question, its choices below it, and a stretch of the document.

    problem  why one of them cannot be read; both are empty then
    """

    pair: Pair
    document_id: str = ""
    question: str = ""
    document: str = ""
    problem: str = ""


def flagged_pairs(
    cases: Sequence[Case], policies: Collection[str], benchmarks: Collection[str] | None = None
) -> list[Pair]:
    """The pairs of the items that these policies flag, each once; benchmarks  None takes all."""
    found = {
        case.pair: Pair(case.key, case.place, case.pair)
        for case in cases
        if case.place is not None
        and case.judged[3] in policies
        and (benchmarks is None or case.key.benchmark in benchmarks)
    }
    return [found[digest] for digest in sorted(found)]


def draw_pairs(pairs: Sequence[Pair], most: int | None, seed: int) -> Draw:
    """No more than `most` of the pairs, all equally likely; a larger draw holds the smaller one."""
    n = len(pairs) if most is None else min(most, len(pairs))
    rank = {pair: hashlib.sha256(f"{seed} {pair.digest}".encode()).digest() for pair in pairs}
    return Draw(tuple(sorted(pairs, key=rank.__getitem__)[:n]), seed, n / max(len(pairs), 1))


def read_pairs(report: Report, pairs: Sequence[Pair]) -> Iterator[PairText]:
    """The texts of the pairs, in order; documents are read again from the shards of the run."""
    questions = _questions(report, {pair.key for pair in pairs})
    spans = _spans(report, {(pair.key, pair.place) for pair in pairs})
    library = Library(report.run, report.folder)
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        library.fetch(pair.place for pair in some)
        for pair in some:
            document_id, of_question, others = spans.get((pair.key, pair.place), ("", [], []))
            document = library.document(pair.place)
            problem = ""
            if pair.key not in questions:
                problem = "the result holds no texts of items"
            elif document is None:
                problem = library.problem(pair.place) or ""
            elif not (of_question or others):
                problem = "its evidence was not read again from the document"
            if problem or document is None:
                yield PairText(pair, problem=problem)
                continue
            stretch = _stretch(document.text, of_question or others)
            yield PairText(pair, document_id, questions[pair.key], stretch)


def _questions(report: Report, keys: Collection[ItemName]) -> dict[ItemName, str]:
    return {
        key: "\n".join([row["question"], *(row["choices"] or ())])
        for row in schemas.iter_rows(report.items)
        if (key := ItemName(row["benchmark"], row["split"], row["item_id"])) in keys
        and row["question"]
    }


def _spans(
    report: Report, wanted: Collection[tuple[ItemName, Place]]
) -> dict[tuple[ItemName, Place], tuple[str, Spans, Spans]]:
    """Id of the document, and where the question and the other parts match in it."""
    ids: dict[tuple[ItemName, Place], str] = {}
    found: defaultdict[tuple[ItemName, Place], tuple[Spans, Spans]] = defaultdict(lambda: ([], []))
    for row in schemas.iter_rows(report.evidence):
        key = ItemName(row["benchmark"], row["split"], row["item_id"]), (row["shard"], row["row"])
        # Other rows count tokens of a text that was gone, not its characters.
        if key in wanted and row["verified"]:
            ids[key] = row["document_id"]
            found[key][row["part"] != "question"].append(
                (row["document_start"], row["document_end"])
            )
    return {key: (ids[key], *both) for key, both in found.items()}


def _stretch(text: str, spans: Spans) -> str:
    """The part of a document where most of the matches stand together, and what is around it."""
    ordered = sorted(spans)
    best, first, held = (0, 0), 0, 0
    most_held = -1
    for at, (begin, end) in enumerate(ordered):
        held += end - begin
        while first < at and end - ordered[first][0] > _MOST - 2 * _AROUND:
            held -= ordered[first][1] - ordered[first][0]
            first += 1
        if held > most_held:
            best, most_held = (ordered[first][0], end), held
    start = max(0, best[0] - _AROUND)
    return text[start : min(best[1] + _AROUND, start + _MOST)]
