"""Say what the parts of a search found in a corpus, without holding all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from contam.cleaning.choice import choice_of, judged
from contam.cleaning.given_result import GivenResult
from contam.cleaning.shard import Cleaning
from contam.cleaning.writer import counts_of
from contam.detect.corpus_checks import refuse_without_text, undecoded_shards
from contam.errors import IncompleteError, InternalError, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.given_result import Spared
    from contam.corpus.coverage import Coverage
    from contam.detect.corpus import Corpus
    from contam.detect.every_hit import HitFile, PartHits
    from contam.detect.model import Int8s
    from contam.detect.parts.search import Searched
    from contam.detect.plan import Plan

_EXCLUDE_SHARDS: Final = (
    "repair them, or leave them out with --exclude NAME: they are not in the result either"
)


_NAMED: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What a search found.

    labels   int8[n, p], of every item and policy, before anything is taken out
    spared   what a person found harmless
    touched  what goes of each shard that something goes of, by its number
    sha256   of the shards as they were searched
    """

    coverage: Coverage
    cleaning: Cleaning
    labels: Int8s
    spared: Spared
    touched: dict[int, dict[str, Any]]
    hits: PartHits | HitFile
    sha256: Mapping[int, str]

    @classmethod
    def of(
        cls,
        found: Searched | GivenResult,
        plan: Plan,
        corpus: Corpus,
        options: CleanOptions,
        spared: Spared,
    ) -> Self:
        """What a search has found. Raises IncompleteError unless all was read, and OutputError."""
        if isinstance(found, GivenResult):
            coverage, labels, n_documents = found.coverage, found.labels, found.n_documents
        else:
            coverage = found.whole.coverage
            labels, n_documents = judged(plan, found.whole.collections)
        coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
        refuse_unread(coverage)
        if not coverage.complete:
            raise InternalError("a shard was neither read nor failed")
        refuse_without_text(coverage, allow_missing=False)
        cleaning = Cleaning(
            plan=plan,
            options=options,
            choice=choice_of(plan, options, labels, spared.items),
            after=choice_of(plan, options, labels, spared.items, n_documents),
            spared=spared.hits,
        )
        return cls(
            coverage=coverage,
            cleaning=cleaning,
            labels=labels,
            spared=spared,
            touched=_touched(found.hits, cleaning, corpus),
            hits=found.hits,
            sha256=found.sha256,
        )

    @property
    def n_found(self) -> int:
        """Documents that go."""
        return sum(shard["found"] for shard in self.touched.values())


def refuse_unread(coverage: Coverage) -> None:
    """Raise IncompleteError where shards could not be read: nobody knows what is in them."""
    if coverage.complete or not coverage.failures:
        return
    failures = coverage.failures
    more = f" and {len(failures) - _NAMED:,} more" if len(failures) > _NAMED else ""
    said = "; ".join(
        # Most reasons begin with the shard's name.
        f"{one.name}: {one.reason.removeprefix(f'{one.name}: ')}"
        for one in failures[:_NAMED]
    )
    raise IncompleteError(
        "{} of {} shards could not be read, and what is in them cannot be taken out: {}{}",
        len(failures), len(coverage.names), Place(said), more, hint=_EXCLUDE_SHARDS,
    )  # fmt: skip


def _touched(
    hits: PartHits | HitFile, cleaning: Cleaning, corpus: Corpus
) -> dict[int, dict[str, Any]]:
    """What goes of each shard."""
    names = cleaning.plan.items.names().__getitem__
    touched: dict[int, dict[str, Any]] = {}
    for shard, own in hits.by_shard():
        found = cleaning.choice.documents(own, cleaning.spared.get(shard, {}))
        if not found:
            continue
        counts = counts_of(names, found)
        facts = touched.setdefault(
            shard,
            {"name": corpus.shards[shard].name, "found": 0, "benchmarks": {}, "items": []},
        )
        facts["found"] += len(found)
        sums = facts["benchmarks"]
        for name, n in counts["benchmarks"].items():
            sums[name] = sums.get(name, 0) + n
        facts["benchmarks"] = dict(sorted(sums.items()))
        facts["items"] = sorted({*facts["items"], *counts["items"]})
    return dict(sorted(touched.items()))
