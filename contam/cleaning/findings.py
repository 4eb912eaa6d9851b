"""Say what the parts of a search found in a corpus, without holding all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from contam.cleaning.choice import choice_of, judged
from contam.cleaning.given_result import GivenResult
from contam.cleaning.shard import Cleaning
from contam.cleaning.writer import counts_of
from contam.corpus.documents import read_metadata
from contam.detect.corpus import refuse_without_text, undecoded_shards
from contam.errors import IncompleteError, InternalError, Names, Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.cleaning.choice import CleanOptions, SparedRows
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
_SHOWN_SOURCES: Final = 20


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
            spared=_spared(found, plan, corpus, options.sources, spared)
            if options.sources
            else spared.hits,
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


def _spared(
    found: Searched | GivenResult,
    plan: Plan,
    corpus: Corpus,
    sources: Sequence[str],
    spared: Spared,
) -> Mapping[int, SparedRows]:
    """What a person spared, and all that was found in documents of other sources.

    Raises UsageError for a source that no document has, and ShardError.
    """
    known = _known_sources(found)
    if not corpus.source_columns or (known and not known.issuperset(sources)):
        unknown = next((name for name in sources if name not in known), sources[0])
        raise UsageError(
            "no document has the source {}; sources there: {}", unknown,
            Names(sorted(filter(None, known)), _SHOWN_SOURCES),
            hint="name the column that has it with --source-column",
        )  # fmt: skip
    is_seen = bool(known)
    others = {shard: dict(rows) for shard, rows in spared.hits.items()}
    policies = range(len(plan.policies))
    for shard, hits in found.hits.by_shard():
        items: dict[int, set[int]] = {}
        for table in hits.values():
            for row, item in zip(table.row.tolist(), table.item.tolist(), strict=True):
                items.setdefault(row, set()).add(item)
        rows, selection = sorted(items), corpus.selections[shard]
        if selection is None:
            raise InternalError(f"{corpus.names[shard]}: rows were found without a text column")
        for row, meta in zip(
            rows, read_metadata(corpus.shards[shard], selection, rows), strict=True
        ):
            if meta.source not in sources:
                every = frozenset((item, policy) for item in items[row] for policy in policies)
                others.setdefault(shard, {})[row] = every
            else:
                is_seen = True
    if not is_seen:
        # Of very many sources nobody knows them all, and this one may not exist.
        raise UsageError(
            "nothing was found in a document of the source {}", ", ".join(sources),
            hint="check its name; `contam sql RESULT 'select distinct source from evidence'`",
        )  # fmt: skip
    return others


def _known_sources(found: Searched | GivenResult) -> set[str | None]:
    """The sources of all documents that were read; none where they are not all known."""
    if isinstance(found, GivenResult):
        section = found.report.run.get("sources", {})
        names = {row["source"] for row in section.get("rows", ())}
        return names if len(names) == section.get("n_sources") else set()
    return set(found.whole.sources.held().names) if found.whole.sources is not None else set()


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
