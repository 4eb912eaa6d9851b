"""Check a few items against an open index: `contam.open_index(...).check(item)`.

Count the documents that hold a phrase, and quote documents whose text is still what was indexed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.corpus.rowcache import TEXT_BYTES
from contam.detect.indexed.indexes import IndexSet
from contam.detect.match.grams import GramPlaces
from contam.detect.match.workers import Deadline
from contam.detect.plan import ScanParameters, ordered, plan_of, view_for_unit
from contam.detect.policies.policy import get_policy
from contam.detect.query import query_opened, refuse_unanswerable
from contam.detect.warm import match_a_little
from contam.errors import ShardError, UsageError
from contam.index.segment import fetch_lists
from contam.kernels.candidates import CLOSED, SHUT, Lists, open_by_grams
from contam.kernels.tokens import CHARS, WORDS
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.benchmark.item_table import ItemTable
    from contam.detect.indexed.candidates import PlacedSegment
    from contam.detect.indexed.indexes import PathLike
    from contam.detect.model import Bools, Int64s, Uint64s
    from contam.detect.result import ScanResult

    Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PhraseCount:
    """How many documents hold a phrase, whatever case, punctuation and white space.

    documents  (shard, row) of each, by shard and row
    exact      whether there are no others: not where only grams of more documents than an index
               keeps are in the phrase, or a part of the corpus could not be read
    """

    documents: tuple[tuple[str, int], ...]
    exact: bool


def count_phrase(opened: IndexSet, phrase: str) -> PhraseCount:
    """The documents that hold all words of a phrase in a row.

    Raises UsageError for a phrase of fewer tokens than a gram of the index, and for an index that
    does not keep every gram; IndexDamageError when a file of it is not what was written.
    """
    recipe = opened.recipe
    if recipe.stride != 1 or recipe.tokenizer is not None:
        hint = "one of recipe `complete` does, in words or letters"
        raise UsageError("this index does not count phrases", hint=hint)
    unit = CHARS if recipe.unit == "char" else WORDS
    tokens = tokenize_bytes(phrase.encode("utf-8", "replace"), unit=unit).hashes
    if len(tokens) < recipe.gram:
        said = "the text has {} tokens, and phrases of {} or more can be counted"
        raise UsageError(said, len(tokens), recipe.gram, hint="give a longer text")
    grams = GramPlaces.of(tokens, np.array([0, len(tokens)], np.int64), recipe.gram)
    wanted = tokens.tobytes()
    documents: list[tuple[int, int]] = []
    exact = True
    opened.look_again()
    fetch_lists((part.segment.grams, part.segment.keys_of(grams.key)) for part in opened.parts)
    for part in opened.parts:
        with opened.lock:
            chosen, capped = _holding(part, np.unique(part.segment.keys_of(grams.key)))
        exact &= not capped.all()
        shards, rows = opened.place_of(part, chosen)
        crcs = part.segment.arrays["doc_crc"].check_many(chosen, chosen + 1)
        for shard in np.unique(shards).tolist():
            own = shards == shard
            order = np.argsort(rows[own])
            at = rows[own][order]
            try:
                texts = opened.rows.texts(shard, at, crcs[chosen[own][order]])
            except ShardError as error:
                opened.fail(shard, error)
                continue
            documents += [
                (shard, row)
                for row, text in zip(at.tolist(), texts, strict=True)
                if _stands_in(wanted, tokenize_bytes(text, unit=unit).hashes)
            ]
    exact &= opened.coverage.complete
    # A file that two indexes hold has two names where each has retired a document of its own.
    places: dict[tuple[str, str, int], tuple[str, int]] = {}
    for shard, row in sorted(documents):
        record = opened.records[shard]
        file = (record.uri, record.sha256) if record else (opened.names[shard], "")
        places.setdefault((*file, row), (opened.names[shard], row))
    return PhraseCount(tuple(places.values()), exact)


def _holding(part: PlacedSegment, keys: Uint64s) -> tuple[Int64s, Bools]:
    """Documents of a segment with all grams, ascending, and of which grams it has only some."""
    segment, state = part.segment.grams, part.state
    first, stop = segment.find(keys)
    capped = segment.capped(keys)
    none = np.empty(0, np.int64)
    if ((first == stop) & ~capped).any():
        return none, np.zeros(len(keys), np.bool_)
    known = np.flatnonzero(~capped) if not capped.all() else np.arange(len(keys))
    lists = Lists(first, stop, segment.packed(first, stop), segment.width)
    found = open_by_grams(known[np.newaxis].astype(np.int32), lists, state)
    state[found] = CLOSED
    return np.sort(found), capped


def _stands_in(phrase: bytes, tokens: Uint64s) -> bool:
    """Whether some tokens stand in a row among others; a token is 8 bytes."""
    text = tokens.tobytes()
    at = text.find(phrase)
    while at >= 0 and at % tokens.itemsize:
        at = text.find(phrase, at + 1)
    return at >= 0


TEXT_BENCHMARK: Final = "text"
"""What the benchmark of a bare text is called in an answer."""


class IndexReader:
    """Indexes held open, with the row groups read last kept in memory.

    Asking again does not look for segments that were added since: open it anew for that. Several
    threads may ask one reader.
    """

    def __init__(self, opened: IndexSet) -> None:
        self._opened = opened
        self._policy = cache(get_policy)

    @property
    def ids(self) -> tuple[str, ...]:
        """Which states of which indexes answer."""
        return tuple(index.id for index in self._opened.indexes)

    @property
    def guarantee_tokens(self) -> int:
        """Tokens of the shortest run that is always found."""
        return self._opened.guarantee

    @property
    def unit(self) -> str:
        """What a token is: "word", "char" or the path of a tokenizer file."""
        return self._opened.unit

    @property
    def coverage(self) -> dict[str, Any]:
        """What of the corpus the index answers for: shards, rows, bytes, and what failed."""
        return self._opened.coverage.to_dict()

    def check(
        self,
        items: BenchItem | str | Sequence[BenchItem],
        *,
        policies: Sequence[str] = ("contam",),
        max_evidence: int = 20,
        allow_missing: bool = False,
        deadline: float | None = None,
    ) -> ScanResult:
        """Judge one item, a bare text, or some items; the answer is what `contam.query` gives.

        items     a bare text is taken as the question of an item
        deadline  in seconds of `time.monotonic`: when it passes before all is answered, every item
                  is `not_checkable`, with the reason "deadline"; at most a few documents later.
                  So are items that need too much work for those (see `MOST_STEPS`)

        Raises ContamError subclasses; shards that are gone or changed are in `result.coverage`.
        """
        started = time.time()
        parameters = ScanParameters(
            policies=tuple(policies),
            unit=self.unit,
            max_evidence=max_evidence,
            allow_missing=allow_missing,
        )
        chosen = tuple(self._policy(name) for name in parameters.policies)
        refuse_unanswerable(chosen, self._opened.recipe)
        asked = _as_items(items)
        view = view_for_unit(asked, parameters.unit, parameters, chosen)
        plan = plan_of(asked, parameters, chosen, view)
        limit = Deadline(deadline)
        return query_opened(self._opened, plan, started=started, deadline=limit, keep_rows=True)

    def can_count(self, n_tokens: int) -> bool:
        """Whether documents with a phrase of so many tokens can be counted."""
        recipe = self._opened.recipe
        return recipe.stride == 1 and recipe.tokenizer is None and n_tokens >= recipe.gram

    def count(self, phrase: str) -> PhraseCount:
        """The documents in which all words of a phrase stand in a row: see `count_phrase`."""
        return count_phrase(self._opened, phrase)


def open_index(
    index: PathLike | Sequence[PathLike],
    *,
    corpus: PathLike | Sequence[PathLike] | None = None,
    home: PathLike | None = None,
    text_bytes: int = TEXT_BYTES,
) -> IndexReader:
    """Open an index, or several that answer as one, for questions asked one at a time.

    index       paths, names or addresses in stores, one or several
    corpus      where the shards are now, if they were moved
    home        folder in which bare names are looked up
    text_bytes  text of the corpus to keep in memory; a question that needs other text decodes it

    What every answer needs is loaded now, so that the first need not wait for it.

    Raises UsageError, IndexMismatchError, IndexDamageError, IndexUnreachableError or CorpusError.
    """
    opened = IndexSet.open(index, corpus=corpus, home=home, text_bytes=text_bytes)
    match_a_little()
    return IndexReader(opened)


def _as_items(items: BenchItem | str | Sequence[BenchItem]) -> ItemTable:
    if isinstance(items, str):
        items = BenchItem(benchmark=TEXT_BENCHMARK, split="", item_id="1", question=items)
    return ordered([items] if isinstance(items, BenchItem) else items)


def quote(opened: IndexSet, places: Iterable[Place]) -> dict[Place, str]:
    """The texts of the documents at these places (shard name, row).

    One whose shard is gone or changed is not among them, nor one that no answer counts; that of a
    failed read is in the coverage from then on. Raises IndexDamageError.
    """
    rows_of: dict[str, set[int]] = {}
    for name, row in places:
        rows_of.setdefault(name, set()).add(row)
    failed = {failure.shard for failure in opened.coverage.failures}
    found: dict[Place, str] = {}
    for name, rows in sorted(rows_of.items()):
        if name not in opened.names:
            continue
        number = opened.names.index(name)
        crc_of = _crcs(opened, number, rows)
        if number in failed or not crc_of:
            continue
        order = sorted(crc_of)
        crcs = np.array([crc_of[row] for row in order], np.uint32)
        try:
            texts = opened.rows.texts(number, np.array(order, np.int64), crcs)
        except ShardError as error:
            opened.fail(number, error)
            continue
        for row, text in zip(order, texts, strict=True):
            found[name, row] = text.decode()
    return found


def _crcs(opened: IndexSet, number: int, rows: set[int]) -> dict[int, int]:
    """Row -> checksum of its text, of those rows of a shard that the indexes hold."""
    found: dict[int, int] = {}
    for part in opened.parts:
        wanted = sorted(rows - found.keys())
        documents = _documents(part, number, wanted)
        if documents:
            at = np.array(list(documents.values()))
            crcs = part.segment.arrays["doc_crc"].check_many(at, at + 1)
            found |= {row: int(crcs[document]) for row, document in documents.items()}
    return found


def _documents(part: PlacedSegment, number: int, rows: list[int]) -> dict[int, int]:
    """Row -> document of a segment, of those that answers count."""
    begin = 0
    found: dict[int, int] = {}
    for span in part.segment.record.spans:
        if part.number[span.shard] == number:
            for row in rows:
                if span.first_row <= row < span.first_row + span.n_rows:
                    found[row] = begin + row - span.first_row
        begin += span.n_rows
    return {row: document for row, document in found.items() if part.state[document] != SHUT}
