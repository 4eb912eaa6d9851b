"""Merge partial answers of some chunks in any order, from one process or several."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import contam
from contam.benchmark.items import ItemName
from contam.corpus.coverage import CoverageCounter
from contam.detect.found_meta import FoundMeta
from contam.detect.match.collect import Collection
from contam.detect.policies.policy import DEFAULT, get_policy
from contam.errors import UsageError
from contam.text.text_tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
    from contam.detect.match.collect import Collected
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy
    from contam.detect.scan import Corpus

#: Names of items that are written at a time.
_ROWS: Final = 1 << 12


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartialAnswer:
    """A partial answer as plain values, to be merged by another process.

    question   digest of what was asked, of which corpus: only equal ones can be merged
    chunks     numbers of the chunks that were tried, those that failed among them
    collected  what each view found
    read       what was read, by shard;  failures  shards that could not be read
    """

    question: str
    chunks: frozenset[int]
    collected: tuple[Collected, ...]
    read: Mapping[int, ShardCoverage]
    failures: tuple[ShardFailure, ...]


@dataclass(eq=False)
class Partial:
    """What some of the chunks gave: a collection a view, and what was read. Merges in any order."""

    collections: list[Collection]
    read: CoverageCounter
    chunks: set[int] = field(default_factory=set)
    found: FoundMeta = field(default_factory=FoundMeta)

    @classmethod
    def start(cls, plan: Plan, corpus: Corpus) -> Partial:
        """A partial answer in which nothing is read yet."""
        return cls(start_collections(plan), CoverageCounter(corpus.coverage))

    def empty_sibling(self, corpus: Corpus) -> Partial:
        """An empty one for another worker, whose collections share what can be shared."""
        siblings = [collection.empty_sibling() for collection in self.collections]
        return Partial(siblings, CoverageCounter(corpus.coverage))

    @property
    def coverage(self) -> Coverage:
        """What was expected, and what was read of it."""
        return self.read.coverage()

    def merge(self, other: Partial) -> None:
        """Add the partial answer of other chunks."""
        for mine, theirs in zip(self.collections, other.collections, strict=True):
            mine.merge(theirs)
        self.read.add(other.read.read, other.read.failures)
        self.chunks |= other.chunks
        self.found.merge(other.found.known)

    def answer(self, question: str) -> PartialAnswer:
        """All of it without the views, which every process makes for itself.

        question  the result of `question_of`
        """
        return PartialAnswer(
            question=question,
            chunks=frozenset(self.chunks),
            collected=tuple(collection.collected() for collection in self.collections),
            read=dict(sorted(self.read.read.items())),
            failures=self.read.failed(),
        )

    def take(self, answer: PartialAnswer, question: str) -> None:
        """Add what `answer` gave in another process.

        question  the result of `question_of`

        Raises UsageError for an answer to another question, or to one of the same chunks: a
        chunk that is counted twice would hide one that nobody read.
        """
        if answer.question != question:
            raise UsageError(
                "a partial answer is not of this corpus, these items and these policies",
                hint="make all parts with the same files, options and version of contam",
            )
        if again := len(self.chunks & answer.chunks):
            raise UsageError(
                "a partial answer repeats {} of the chunks merged before",
                again,
                hint="merge the answer of every part once",
            )
        for mine, theirs in zip(self.collections, answer.collected, strict=True):
            mine.take(theirs)
        self.read.add(answer.read, answer.failures)
        self.chunks |= answer.chunks


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


def question_of(plan: Plan, corpus: Corpus) -> str:
    """Digest of everything that decides what a chunk gives: items, policies, options, corpus."""
    parameters = plan.parameters
    tokenizers = [
        used.sha256
        for view in plan.views
        for used in (view.tokenizer, view.reads_with)
        if used is not None
    ]
    asked = {
        "versions": [contam.__version__, NORMALISER],
        "options": [parameters.max_evidence, parameters.seed, parameters.min_run, parameters.text],
        "policies": [[policy.spec.id, policy.spec.fingerprint()] for policy in plan.policies],
        "views": [[view.unit, *view.spec[:4]] for view in plan.views],
        "items": zip(*(plan.items.column(name) for name in ItemName._fields), strict=True),
        "shards": [*zip(corpus.coverage.names, corpus.coverage.units, corpus.digests, strict=True)],
        "chunks": [repr(chunk) for chunk in corpus.chunks],
        **({"every_hit": True} if parameters.every_hit else {}),
        **({"columns": dict(parameters.columns)} if parameters.columns else {}),
        **({"tokenizers": tokenizers} if tokenizers else {}),
        # What a policy reads of the texts themselves is not in their tokens.
        "benchmarks": [[one.sha256 for one in each.sources] for each in plan.benchmarks],
    }
    digest = hashlib.sha256()
    for piece in _json_pieces(asked):
        digest.update(piece.encode())
    for view in plan.views:
        grams, facts = view.gram_table, view.facts
        for array in (grams.token, grams.part_start, facts.letter, facts.number):
            digest.update(array.dtype.str.encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _json_pieces(asked: Mapping[str, Any]) -> Iterator[str]:
    """What `json.dumps` gives, in pieces: the names of millions of items take a gigabyte as one.

    What is an iterator is written as a list.
    """
    between = "{"
    for name, value in asked.items():
        yield f"{between}{json.dumps(name)}: "
        between = ", "
        if not isinstance(value, Iterator):
            yield json.dumps(value)
            continue
        rows = "["
        while some := [*islice(value, _ROWS)]:
            yield rows + json.dumps(some)[1:-1]
            rows = ", "
        yield "[]" if rows == "[" else "]"
    yield "}"
