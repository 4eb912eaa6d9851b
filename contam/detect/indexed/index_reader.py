"""Check a few items against an open index: `contam.open_index(...).check(item)`."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import BenchItem
from contam.corpus.rowcache import CACHE_BYTES
from contam.detect.indexed.guarantee import refuse_unanswerable
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.phrase import PhraseCount, count_phrase
from contam.detect.indexed.search import search
from contam.detect.match.deadline import Deadline
from contam.detect.parameters import ScanParameters
from contam.detect.plan import ordered, plan_of, view_for_unit
from contam.detect.policies.policy import get_policy
from contam.detect.query import answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.item_table import ItemTable
    from contam.detect.indexed.indexes import PathLike
    from contam.detect.policies.policy import Policy
    from contam.detect.result import ScanResult

TEXT_BENCHMARK: Final = "text"
"""What the benchmark of a bare text is called in an answer."""


class IndexReader:
    """Indexes held open, with the row groups read last kept in memory.

    Asking again does not look for segments that were added since: open it anew for that. Several
    threads may ask one reader.
    """

    def __init__(self, opened: IndexSet) -> None:
        self._opened = opened
        self._policies: dict[str, Policy] = {}

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
        ask = partial(search, self._opened, plan, keep_rows=True, deadline=limit)
        return answered(self._opened, plan, ask, started=started)

    def can_count(self, n_tokens: int) -> bool:
        """Whether documents with a phrase of so many tokens can be counted."""
        recipe = self._opened.recipe
        return recipe.stride == 1 and recipe.tokenizer is None and n_tokens >= recipe.gram

    def count(self, phrase: str) -> PhraseCount:
        """The documents in which all words of a phrase stand in a row: see `count_phrase`."""
        return count_phrase(self._opened, phrase)

    def _policy(self, name: str) -> Policy:
        if name not in self._policies:
            self._policies[name] = get_policy(name)
        return self._policies[name]


def open_index(
    index: PathLike | Sequence[PathLike],
    *,
    corpus: PathLike | Sequence[PathLike] | None = None,
    home: PathLike | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> IndexReader:
    """Open an index, or several that answer as one, for questions asked one at a time.

    index        paths or names, one or several
    corpus       where the shards are now, if they were moved
    home         folder in which bare names are looked up
    cache_bytes  text of the corpus to keep in memory; a question that needs other text decodes it

    Raises UsageError, IndexMismatchError, IndexDamageError or CorpusError.
    """
    opened = IndexSet.open(index, corpus=corpus, home=home, cache_bytes=cache_bytes)
    return IndexReader(opened)


def _as_items(items: BenchItem | str | Sequence[BenchItem]) -> ItemTable:
    if isinstance(items, str):
        items = BenchItem(benchmark=TEXT_BENCHMARK, split="", item_id="1", question=items)
    return ordered([items] if isinstance(items, BenchItem) else items)
