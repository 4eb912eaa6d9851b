"""Write every shard of a corpus that was searched, once it is known what goes."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.cleaning.choice import CleanOptions, choice_of, judged
from contam.cleaning.record import Searched, record_of
from contam.cleaning.shard import Cleaning, Removal, copy, digest, removals, written
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED, WorkFolder
from contam.detect.corpus_checks import refuse_without_text, undecoded_shards
from contam.detect.match.workers import on_threads
from contam.errors import (
    IncompleteError,
    InternalError,
    Place,
    Remedy,
    ShardError,
)
from contam.files.publish import output_errors, publish_made
from contam.tables.removed import RemovedRow, write_removed

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.cleaning.choice import Found
    from contam.corpus.coverage import Coverage
    from contam.corpus.shards import Shard
    from contam.detect.match.hits import Hits, HitStore
    from contam.detect.model import Int64s
    from contam.detect.partial import Partial
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus, ScanProgress

NAMES: Final = (CORPUS, REMOVED, RECORD)
_NAMED: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Cleaned:
    """What was done, or would be.

    record     the content of clean.json
    folder     where the result is; None where nothing was published
    too_many   more documents would go than was allowed, so nothing was published
    """

    record: dict[str, Any]
    folder: Path | None
    too_many: bool = False

    @property
    def not_kept(self) -> list[str]:
        """What some files that were written do not have of the old ones, one sentence each."""
        said = (what for shard in self.record["shards"] for what in shard.get("not_kept", ()))
        return sorted(set(said))


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
        len(failures), len(coverage.names), Place(said), more, remedy=Remedy.EXCLUDE_SHARDS,
    )  # fmt: skip


class Run:
    """One run, once the corpus was searched."""

    def __init__(
        self,
        work: WorkFolder,
        searched: Searched,
        n_documents: Int64s,
        stores: Sequence[HitStore],
        progress: ScanProgress | None,
    ) -> None:
        self.work, self.searched, self.stores, self.progress = work, searched, stores, progress
        self.plan, self.corpus = searched.plan, searched.corpus
        self.coverage, self.options = searched.coverage, searched.options
        plan, options, labels = searched.plan, searched.options, searched.labels
        self.cleaning = Cleaning(
            plan=plan,
            options=options,
            choice=choice_of(plan, options, labels),
            after=choice_of(plan, options, labels, n_documents),
        )

    @classmethod
    def of(
        cls,
        work: WorkFolder,
        corpus: Corpus,
        plan: Plan,
        options: CleanOptions,
        whole: Partial,
        question: str,
        progress: ScanProgress | None,
    ) -> Run:
        """The run for what was found. Raises IncompleteError unless everything was read."""
        coverage = whole.coverage
        coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
        refuse_unread(coverage)
        if not coverage.complete:
            raise InternalError("a shard was neither read nor failed")
        refuse_without_text(coverage, allow_missing=False)
        labels, n_documents = judged(plan, whole.collections)
        stores = []
        for collection in whole.collections:
            store = collection.shared.hits
            if store is None:
                raise InternalError("a search kept no hits")
            store.settle()
            stores.append(store)
        searched = Searched(
            plan=plan,
            corpus=corpus,
            coverage=coverage,
            options=options,
            labels=labels,
            question=question,
        )
        return cls(work, searched, n_documents, stores, progress)

    def result(
        self, out: Path, workers: int, started: float, *, dry_run: bool, overwrite: bool
    ) -> Cleaned:
        """Do it, unless too many documents would go."""
        touched = {}
        for number in sorted({n for store in self.stores for n in store.shards()}):
            if found := self.cleaning.choice.documents(self._hits(number)):
                name = self.corpus.shards[number].name
                touched[number] = {"name": name, "found": len(found), **self._counts(found)}
        n_found = sum(shard["found"] for shard in touched.values())
        too_many = n_found > self.options.most_documents(self.coverage.total.rows)
        if dry_run or too_many:
            record = record_of(self.searched, list(touched.values()), started, workers, done=False)
            return Cleaned(record=record, folder=None, too_many=too_many)
        noted = self._all_shards(set(touched), workers)
        record = record_of(self.searched, noted, started, workers, done=True)
        with output_errors(out):
            for kind in (CORPUS, REMOVED):
                if kind == REMOVED or self.options.action != "list":
                    (self.work.result / kind).mkdir(exist_ok=True)
            (self.work.result / RECORD).write_text(json.dumps(record, indent=1) + "\n", "ascii")
        names = [name for name in NAMES if (self.work.result / name).exists()]
        publish_made(self.work.result, out, names=names, last=RECORD, overwrite=overwrite)
        return Cleaned(record=record, folder=out)

    def _hits(self, shard: int) -> dict[int, Hits]:
        return {view: store.of_shard(shard) for view, store in enumerate(self.stores)}

    def _all_shards(self, touched: set[int], workers: int) -> list[dict[str, Any]]:
        shards = self.corpus.shards
        # What takes longest comes first.
        order = sorted(range(len(shards)), key=lambda n: (n not in touched, -shards[n].size_bytes))
        within = max(1, workers // max(1, len(touched)))
        if self.progress is not None:
            self.progress.start(sum(shard.size_bytes for shard in shards))

        def work(numbers: Iterator[int], stop: threading.Event) -> dict[int, dict[str, Any]]:
            done = {}
            for number in numbers:
                if stop.is_set():
                    break
                done[number] = self._one_shard(number, within, touched=number in touched)
                if self.progress is not None:
                    self.progress.advance(shards[number].size_bytes)
            return done

        noted: dict[int, dict[str, Any]] = {}
        with closing(on_threads(work, order, workers)) as found:
            for some in found:
                noted.update(some)
        if self.progress is not None:
            self.progress.finish()
        return [noted[number] for number in sorted(noted)]

    def _one_shard(self, number: int, workers: int, *, touched: bool) -> dict[str, Any]:
        """Write one shard, unless that is done; returns what is to be said of it."""
        shard, work = self.corpus.shards[number], self.work
        files = {
            CORPUS: work.target(CORPUS, shard.name),
            REMOVED: work.target(REMOVED, f"{shard.name}.parquet"),
        }
        known = work.done(number, files)
        if known is not None:
            return known
        noted = self._touched(number, shard, workers) if touched else self._copied(number, shard)
        work.note_done(number, noted)
        return noted

    def _copied(self, number: int, shard: Shard) -> dict[str, Any]:
        before = _digest(shard)
        copied = None
        if self.options.action != "list":
            draft = self.work.draft(number, shard.name)
            with output_errors(draft):
                copy(shard, draft)
            copied = self.work.put(draft, CORPUS, shard.name)
            if copied != before:
                raise ShardError(
                    "{shard}: its copy is not the same", shard=shard.name,
                    remedy=Remedy.LET_NOBODY_WRITE_TO_CORPUS,
                )  # fmt: skip
        rows = self.coverage.read[number].rows if number in self.coverage.read else 0
        return {
            "name": shard.name, "format": shard.format, "rows_before": rows, "rows_after": rows,
            "found": 0, "in": before, CORPUS: copied, REMOVED: None,
        }  # fmt: skip

    def _touched(self, number: int, shard: Shard, workers: int) -> dict[str, Any]:
        selection = self.corpus.selections[number]
        if selection is None:
            raise InternalError(f"{shard.name}: rows were found without a text column")
        before = _digest(shard)
        found = self.cleaning.choice.documents(self._hits(number))
        removed, n_passes = removals(self.cleaning, shard, selection, found)
        rows_before = rows_after = self.coverage.read[number].rows
        facts: dict[str, Any] = {}
        copied = None
        if self.options.action != "list":
            draft = self.work.draft(number, shard.name)
            again = written(self.cleaning, shard, selection, removed, draft, workers=workers)
            done = again.done
            if done.rows_before != rows_before:
                raise ShardError(
                    "{shard}: {} rows were searched, and {} written from", rows_before,
                    done.rows_before, shard=shard.name, remedy=Remedy.LET_NOBODY_WRITE_TO_CORPUS,
                )  # fmt: skip
            rows_after = done.rows_after
            dropped = len(removed) if self.options.action == "drop" else 0
            if rows_after != rows_before - dropped:
                raise InternalError(f"{shard.name}: {rows_after} rows were written")
            facts = {
                "rows_same": again.n_same,
                "passes": n_passes,
                "not_kept": list(done.not_kept),
            }
            copied = self.work.put(draft, CORPUS, shard.name)
        table = self.work.draft(number, f"{shard.name}.parquet")
        with output_errors(table):
            write_removed(
                table, shard.name, self.options.action,
                [self._row(shard, one) for one in removed],
                with_text=self.options.keep_removed,
            )  # fmt: skip
        return {
            "name": shard.name,
            "format": shard.format,
            "rows_before": rows_before,
            "rows_after": rows_after,
            "found": len(removed),
            **facts,
            "in": before,
            CORPUS: copied,
            REMOVED: self.work.put(table, REMOVED, f"{shard.name}.parquet"),
            **self._counts([one.found for one in removed]),
            "sources": dict(sorted(Counter(one.meta.source or "" for one in removed).items())),
        }

    def _counts(self, found: Sequence[Found]) -> dict[str, Any]:
        """Documents by benchmark, and the items in them."""
        benchmarks = Counter(
            name
            for one in found
            for name in {self.plan.items[item].benchmark for item in one.items}
        )
        items = {item for one in found for item in one.items}
        return {"benchmarks": dict(sorted(benchmarks.items())), "items": sorted(items)}

    def _row(self, shard: Shard, one: Removal) -> RemovedRow:
        names = [ItemName.of(self.plan.items[item]) for item in one.found.items]
        kept = self.options.keep_removed and one.texts is not None
        return RemovedRow(
            row=one.found.row,
            document_id=one.meta.document_id or f"{shard.name}:{one.found.row}",
            spans=one.found.spans,
            items=tuple((name.benchmark, name.split, name.item_id) for name in names),
            policies=tuple(self.plan.policies[n].spec.id for n in one.found.policies),
            text="\n".join(one.texts) if kept and one.texts is not None else None,
        )


def _digest(shard: Shard) -> dict[str, Any]:
    try:
        return digest(shard.path)
    except OSError as error:
        raise ShardError(
            "{shard}: cannot be read: {}", error.strerror or str(error), shard=shard.name,
            remedy=Remedy.CHECK_FILE_READABLE,
        ) from error  # fmt: skip
