"""Take the documents that hold benchmark items out of a corpus, and prove that they are gone."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.cleaning.choice import CleanOptions, choice_of, judged, refuse_unfit
from contam.cleaning.record import Searched, facts_of, record_of
from contam.cleaning.shard import Cleaning, Removal, copy, digest, removals, written
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED, WorkFolder, digest_of
from contam.detect.corpus_checks import refuse_without_text, undecoded_shards
from contam.detect.leases.cut import cut_leases
from contam.detect.leases.local import do_leases
from contam.detect.leases.plan_folder import question_of_leases
from contam.detect.leases.work import gathered_parts
from contam.detect.leases.workshop import folder_held
from contam.detect.match.workers import on_threads
from contam.detect.plan import ScanParameters, named_fields, named_policies
from contam.detect.scan import as_list, named_columns, open_scan, worker_count
from contam.errors import (
    IncompleteError,
    InternalError,
    Place,
    Remedy,
    ShardError,
    UsageError,
)
from contam.files.addresses import is_address
from contam.files.publish import check_publishable, output_errors, publish_made
from contam.tables.removed import RemovedRow, write_removed

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence

    from contam.cleaning.choice import Found
    from contam.corpus.coverage import Coverage
    from contam.corpus.shards import Shard
    from contam.detect.leases.workshop import RayCluster
    from contam.detect.match.hits import Hits, HitStore
    from contam.detect.model import Int64s
    from contam.detect.partial import Partial
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus, PathLike, ScanProgress

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


def clean(  # noqa: PLR0913 - the options of a scan and of what is done with what it finds
    corpus: PathLike | Sequence[PathLike],
    benchmark: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    action: str = "drop",
    policies: str | Sequence[str] = ("contam",),
    labels: Sequence[str] = ("contaminated", "suspect"),
    exposures: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    most: str | None = None,
    around: int = 0,
    keep_removed: bool = False,
    dry_run: bool = False,
    unit: str = "word",
    workers: int | None = None,
    seed: int = 5,
    min_run: int = 8,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: str | Sequence[str] = (),
    mapping: str | Mapping[str, str] | None = None,
    name: str | None = None,
    split: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    cluster: RayCluster | None = None,
    progress: ScanProgress | None = None,
) -> Cleaned:
    """Write a copy of a corpus without the documents, or the stretches, that hold benchmark items.

    corpus, benchmark  files, folders or globs, one or several
    out           a folder: `corpus/` with every shard, `removed/` with a table for each shard that
                  something was found in, and `clean.json`
    action        drop the document, mask the stretch, cut it out, or only list it
    labels, exposures, weights, most, around, keep_removed
                  as `contam.cleaning.choice.CleanOptions` says
    dry_run       only count; nothing is written
    resume        go on from what an interrupted run had done
    others        as of `contam.scan`

    Raises ContamError subclasses: a shard that cannot be read, or what still matches after the last
    pass, is an error, and nothing is published.
    """
    started = time.time()
    options = CleanOptions(
        action=action,
        labels=tuple([labels] if isinstance(labels, str) else labels),
        exposures=tuple([exposures] if isinstance(exposures, str) else exposures),
        weights=dict(weights or {}),
        most=most,
        around=around,
        keep_removed=keep_removed,
    )
    parameters = ScanParameters(
        policies=named_policies(policies),
        unit=unit,
        seed=seed,
        min_run=min_run,
        max_evidence=1,
        text=text,
        columns=named_columns(columns),
        exclude=tuple([exclude] if isinstance(exclude, str) else exclude),
        mapping=named_fields(mapping),
        name=name,
        split=split,
        every_hit=True,
    )
    n_workers = worker_count(workers)
    paths = as_list(corpus)
    refuse_nested(out, paths)
    if not resume:
        check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    opened, plan = open_scan(paths, as_list(benchmark), parameters)
    refuse_unfit(plan, options)
    _refuse_shards_in(out, opened)
    _refuse_unread(opened.coverage)
    work = WorkFolder.beside(out)
    leases = cut_leases(opened.chunks)
    question = digest_of(question_of_leases(plan, opened, leases), _decisive(options))
    if resume and (published := work.published(Path(out), question)) is not None:
        # It was killed between its last two steps.
        work.discard()
        return Cleaned(record=published, folder=Path(out))
    check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    workshop = work.workshop(resume=resume, cluster=cluster)
    with folder_held(work.folder):
        try:
            with workshop.held():
                planned = do_leases(opened, plan, workshop, workers=n_workers, progress=progress)
                work.begin(question, resume=resume)
                _, _, whole = gathered_parts(planned, [workshop.parts], hits=work.hits)
            run = _Run.of(work, opened, plan, options, whole, question, progress)
            result = run.result(Path(out), n_workers, started, dry_run=dry_run, overwrite=overwrite)
        except BaseException:
            if not workshop.n_done():
                work.discard()
            raise
        if result.folder is not None:
            work.discard()
    return result


def refuse_nested(out: PathLike, paths: Sequence[PathLike]) -> None:
    """Raise UsageError where the result would lie in the corpus, whose next scan would read it."""
    home = Path(os.path.realpath(out))
    for path in paths:
        if is_address(str(path)):
            continue
        steps = Path(path).parts
        n_plain = next((n for n, step in enumerate(steps) if set(step) & set("*?[")), len(steps))
        folder = Path(os.path.realpath(Path(*steps[:n_plain])))
        if (n_plain == len(steps) or "**" in steps) and home.is_relative_to(folder):
            raise UsageError(
                "the result would lie in the corpus: {} in {}", Place(out), Place(path),
                remedy=Remedy.CHOOSE_FOLDER_OUTSIDE_CORPUS,
            )  # fmt: skip


def _refuse_shards_in(out: PathLike, corpus: Corpus) -> None:
    """Raise UsageError where shards of the corpus lie where the result would."""
    home = Path(os.path.realpath(out))
    for shard in corpus.shards:
        if not is_address(shard.uri) and Path(os.path.realpath(shard.uri)).is_relative_to(home):
            raise UsageError(
                "the shard {} lies where the result would: in {}", Place(shard.name), Place(out),
                remedy=Remedy.CHOOSE_ANOTHER_FOLDER,
            )  # fmt: skip


def _decisive(options: CleanOptions) -> dict[str, object]:
    """The options that decide what is written; `most` only decides whether."""
    return facts_of(replace(options, most=None))


def _refuse_unread(coverage: Coverage) -> None:
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


class _Run:
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
    ) -> _Run:
        """The run for what was found. Raises IncompleteError unless everything was read."""
        coverage = whole.coverage
        coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
        _refuse_unread(coverage)
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
