"""Add up what was found in some of a corpus, in any order, by one process or several.

Only formats whose records are read whole give what is known of a document for nothing: id, url and
date are then at hand while the text is matched. Of all other documents, and of those that were let
go here, it is read from the shard once the search is over.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from contam.benchmark.items import ItemName
from contam.corpus.coverage import CoverageCounter
from contam.corpus.documents import meta_of
from contam.detect.match.by_source import FoundSources, SourceCounts
from contam.detect.match.collect import Collection
from contam.detect.policies.policy import DEFAULT, get_policy
from contam.detect.sources import named_documents
from contam.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.columns import Selections
    from contam.corpus.coverage import Coverage
    from contam.corpus.documents import DocumentMeta
    from contam.detect.corpus import Corpus
    from contam.detect.model import Int64s
    from contam.detect.parts.part_store import Part
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy


#: Documents of a thread before those that are no evidence any more are let go.
_MOST: Final = 1 << 16


class FoundMeta:
    """Metadata of documents by (shard, row), of one thread."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], DocumentMeta] = {}
        self._most = _MOST

    def note(self, batch: DocBatch, selection: Selections, rows: Sequence[Int64s]) -> None:
        """Keep the metadata of the documents in these rows, as far as the batch has it."""
        if not batch.records:
            return
        for row in {row for some in rows for row in some.tolist()}:
            record = batch.records[row - batch.first_row]
            if record is not None:
                self.known[batch.shard, row] = meta_of(record, selection, batch.shard)

    def shrink(self, collections: Sequence[Collection]) -> None:
        """Let go what is no evidence in these collections, when there is much."""
        if len(self.known) <= self._most:
            return
        shards, rows = named_documents(collections)
        named = set(zip(shards.tolist(), rows.tolist(), strict=True))
        self.known = {place: meta for place, meta in self.known.items() if place in named}
        self._most = max(_MOST, 2 * len(self.known))

    def merge(self, other: Mapping[tuple[int, int], DocumentMeta]) -> None:
        """Add what another thread knows."""
        self.known.update(other)


#: Names of items that are written at a time.
_ROWS: Final = 1 << 12


@dataclass(eq=False)
class PartialResult:
    """What some of the chunks gave: a collection a view, and what was read. Merges in any order.

    sources  counts by source; None where no shard names the sources of its documents
    """

    collections: list[Collection]
    read: CoverageCounter
    chunks: set[int] = field(default_factory=set)
    found: FoundMeta = field(default_factory=FoundMeta)
    sources: SourceCounts | None = None

    @classmethod
    def start(cls, plan: Plan, corpus: Corpus) -> PartialResult:
        """One in which nothing is read yet."""
        whole = cls(start_collections(plan), CoverageCounter(corpus.coverage))
        if corpus.source_columns:
            whole.sources = counts = SourceCounts(plan.views[0].items.benchmark)
            for view, collection in enumerate(whole.collections):
                numbers = [number for number, at in enumerate(plan.view_of) if at == view]
                collection.sources = FoundSources(counts, numbers)
        return whole

    def empty_sibling(self, corpus: Corpus) -> PartialResult:
        """An empty one for another worker, whose collections share what can be shared."""
        siblings = [collection.empty_sibling() for collection in self.collections]
        return PartialResult(siblings, CoverageCounter(corpus.coverage), sources=self.sources)

    @property
    def coverage(self) -> Coverage:
        """What was expected, and what was read of it."""
        return self.read.coverage()

    def merge(self, other: PartialResult) -> None:
        """Add what was found in other chunks."""
        for mine, theirs in zip(self.collections, other.collections, strict=True):
            mine.merge(theirs)
        self.read.add(other.read.read, other.read.failures)
        self.chunks |= other.chunks
        self.found.merge(other.found.known)

    def take(self, part: Part) -> None:
        """Add a part, under the numbers that its shards and chunks have here.

        Raises InternalError for one of the same chunks: a chunk that is counted twice would hide
        one that nobody read.
        """
        if again := len(self.chunks & part.chunks):
            raise InternalError(f"{again} chunks were counted before")
        for mine, theirs in zip(self.collections, part.collected, strict=True):
            mine.take(theirs)
        self.read.add(part.read, part.failures)
        self.chunks |= part.chunks
        if self.sources is not None and part.sources is not None:
            self.sources.take(part.sources)


def start_collections(plan: Plan) -> list[Collection]:
    """A collection for each view, in which nothing was found yet."""
    return [
        Collection.start(
            view,
            [p for p, at in zip(plan.policies, plan.view_of, strict=True) if at == number],
            _ranking() if view.rephrasings is None else plan.policies[plan.view_of.index(number)],
            plan.parameters.max_evidence,
            every_hit=plan.parameters.every_hit,
        )
        for number, view in enumerate(plan.views)
    ]


@cache
def _ranking() -> Policy:
    """By whom the documents are chosen that are shown."""
    return get_policy(DEFAULT)


def question_of(plan: Plan) -> str:
    """Digest of everything that decides what is found in a corpus: items, policies, options."""
    parameters = plan.parameters
    tokenizers = [
        used.sha256
        for view in plan.views
        for used in (view.tokenizer, view.reads_with)
        if used is not None
    ]
    asked = {
        "options": [parameters.max_evidence, parameters.seed, parameters.min_run, parameters.text],
        "policies": [[policy.spec.id, policy.spec.fingerprint()] for policy in plan.policies],
        "views": [[view.unit, *view.spec[:4]] for view in plan.views],
        "every_hit": parameters.every_hit,
        "columns": dict(parameters.columns or {}),
        "tokenizers": tokenizers,
        # What a policy reads of the texts themselves is not in their tokens.
        "benchmarks": [[one.sha256 for one in each.sources] for each in plan.benchmarks],
    }
    digest = hashlib.sha256(json.dumps(asked).encode())
    for name in ItemName._fields:
        names = plan.items.column(name)
        # Those of millions of items would take a gigabyte as one.
        for begin in range(0, len(names), _ROWS):
            digest.update(json.dumps(names[begin : begin + _ROWS]).encode())
    for view in plan.search_views:
        grams, facts = view.gram_table, view.facts
        for array in (grams.token, grams.part_start, facts.letter, facts.number):
            digest.update(array.dtype.str.encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
