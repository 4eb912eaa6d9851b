"""Write the shards of a corpus one by one into the folder of a run, once it is known what goes."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.cleaning.run import NAMES, Cleaned, counts_of, record_of
from contam.cleaning.shard import copy, digest, removals, written
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED
from contam.detect.match.workers import on_threads
from contam.errors import IncompleteError, InternalError, Place, ShardError
from contam.files.disk import output_errors
from contam.files.publish import publish_made
from contam.tables.hit_table import RemovedRow, write_removed

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.cleaning.run import Run
    from contam.cleaning.shard import Removal
    from contam.cleaning.work_folder import WorkFolder
    from contam.corpus.shards import Shard
    from contam.detect.corpus import ScanProgress

_LET_NOBODY_WRITE_TO_CORPUS: Final = "let nobody write to the corpus while it is read"


#: A byte of a shard in which something was found takes as long as so many that are only copied.
_TOUCHED: Final = 20
#: What any shard takes besides, in bytes that are copied.
_FILE: Final = 1 << 20


def share_of(
    sizes: Sequence[int], touched: Collection[int], index: int, count: int
) -> tuple[int, ...]:
    """The numbers of the shards of one of `count` workers, ascending; index from 0.

    sizes  bytes of each shard;  touched  numbers of the shards in which something was found

    Every shard is in one share, and all shares take about as long.
    """
    costs = [_FILE + size * (_TOUCHED if n in touched else 1) for n, size in enumerate(sizes)]
    order = sorted(range(len(costs)), key=lambda n: -costs[n])
    return tuple(sorted(order[index::count]))


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes the shards of a run, each whole or not at all."""

    run: Run
    work: WorkFolder

    def known(self, number: int) -> dict[str, Any] | None:
        """What is to be said of a shard that is done."""
        return self.work.done(number, self.run.written, self.files(number))

    def files(self, number: int) -> dict[str, Path]:
        """The files of the result that a shard may have, by kind."""
        name = self.run.corpus.shards[number].name
        return {
            CORPUS: self.work.target(CORPUS, name),
            REMOVED: self.work.target(REMOVED, f"{name}.parquet"),
        }

    def write_all(
        self, numbers: Sequence[int], progress: ScanProgress | None
    ) -> dict[int, dict[str, Any]]:
        """Write shards unless they are done; returns what is to be said of each."""
        shards, touched, workers = self.run.corpus.shards, self.run.touched, self.run.workers
        # What takes longest comes first.
        order = sorted(numbers, key=lambda n: (n not in touched, -shards[n].size_bytes))
        within = max(1, workers // max(1, len(touched.keys() & set(numbers))))
        if progress is not None:
            progress.start(sum(shards[number].size_bytes for number in numbers))

        def work(numbers: Iterator[int], stop: threading.Event) -> dict[int, dict[str, Any]]:
            done: dict[int, dict[str, Any]] = {}
            for number in numbers:
                if stop.is_set():
                    break
                done[number] = self.write(number, within)
                if progress is not None:
                    progress.advance(shards[number].size_bytes)
            return done

        noted: dict[int, dict[str, Any]] = {}
        with closing(on_threads(work, order, workers)) as found:
            for some in found:
                noted.update(some)
        if progress is not None:
            progress.finish()
        return noted

    def write(self, number: int, workers: int) -> dict[str, Any]:
        """Write one shard, unless that is done; returns what is to be said of it."""
        known = self.known(number)
        if known is not None:
            return known
        shard = self.run.corpus.shards[number]
        before = digest(shard)
        now = f"sha256:{before['sha256']}"
        if self.run.sha256.get(number) != now:
            raise IncompleteError(
                "{} is not the file that was searched",
                Place(shard.name),
                hint="search the corpus again, without parts or a result of the old search, and let"
                " nobody write to it until it is cleaned",
            )
        if number in self.run.touched:
            noted = self._touched(number, shard, before, workers)
        else:
            noted = self._copied(number, shard, before)
        self.work.note_done(number, self.run.written, noted, self.files(number))
        return noted

    def _copied(self, number: int, shard: Shard, before: dict[str, Any]) -> dict[str, Any]:
        copied = None
        if self.run.options.action != "list":
            draft = self.work.draft(number, shard.name)
            with output_errors(draft):
                copy(shard, draft)
            copied = self.work.put(draft, CORPUS, shard.name)
            if copied != before:
                raise ShardError(
                    "{shard}: its copy is not the same", shard=shard.name,
                    hint=_LET_NOBODY_WRITE_TO_CORPUS,
                )  # fmt: skip
        rows = self._rows(number)
        return {
            "name": shard.name, "format": shard.format, "rows_before": rows, "rows_after": rows,
            "found": 0, "in": before, CORPUS: copied, REMOVED: None,
        }  # fmt: skip

    def _touched(
        self, number: int, shard: Shard, before: dict[str, Any], workers: int
    ) -> dict[str, Any]:
        selection = self.run.corpus.selections[number]
        if selection is None:
            raise InternalError(f"{shard.name}: rows were found without a text column")
        spared = self.run.cleaning.spared.get(number, {})
        found = self.run.cleaning.choice.documents(self.run.hits.of_shard(number), spared)
        removed, n_passes = removals(self.run.cleaning, shard, selection, found, spared)
        rows_before = rows_after = self._rows(number)
        facts: dict[str, Any] = {}
        copied = None
        if self.run.options.action != "list":
            draft = self.work.draft(number, shard.name)
            done, n_same = written(
                self.run.cleaning, shard, selection, removed, draft, spared, workers=workers
            )
            if done.rows_before != rows_before:
                raise ShardError(
                    "{shard}: {} rows were searched, and {} written from", rows_before,
                    done.rows_before, shard=shard.name, hint=_LET_NOBODY_WRITE_TO_CORPUS,
                )  # fmt: skip
            rows_after = done.rows_after
            if rows_after != rows_before - sum(one.drop for one in removed):
                raise InternalError(f"{shard.name}: {rows_after} rows were written")
            facts = {
                "rows_same": n_same,
                "passes": n_passes,
                "not_kept": list(done.not_kept),
            }
            copied = self.work.put(draft, CORPUS, shard.name)
        table = self.work.draft(number, f"{shard.name}.parquet")
        with output_errors(table):
            write_removed(
                table, shard.name, [self._row(shard, one) for one in removed],
                with_text=self.run.options.keep_removed,
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
            **counts_of(self.run.cleaning.names, [one.found for one in removed]),
            "sources": dict(sorted(Counter(one.meta.source or "" for one in removed).items())),
        }

    def _rows(self, number: int) -> int:
        """Rows that were read of a shard, blank lines among them."""
        read = self.run.coverage.read.get(number)
        return read.rows + read.n_blank if read is not None else 0

    def _row(self, shard: Shard, one: Removal) -> RemovedRow:
        names = [self.run.cleaning.names[item] for item in one.found.items]
        kept = self.run.options.keep_removed and one.texts is not None
        return RemovedRow(
            row=one.found.row,
            document_id=one.meta.document_id or f"{shard.name}:{one.found.row}",
            action="drop" if one.drop else self.run.options.action,
            spans=one.found.spans,
            items=tuple((name.benchmark, name.split, name.item_id) for name in names),
            policies=tuple(self.run.cleaning.plan.policies[n].spec.id for n in one.found.policies),
            tokens=one.tokens,
            text="\n".join(one.texts) if kept and one.texts is not None else None,
        )

    def publish(
        self, noted: Mapping[int, dict[str, Any]], out: Path, *, overwrite: bool
    ) -> Cleaned:
        """Publish all shards; noted  what is to be said of each."""
        record = record_of(self.run, noted, done=True)
        made = self.work.result
        self.work.keep_only(
            {
                path
                for number, facts in noted.items()
                for kind, path in self.files(number).items()
                if facts[kind] is not None
            }
        )
        with output_errors(out):
            for kind in (CORPUS, REMOVED):
                if kind == REMOVED or self.run.options.action != "list":
                    (made / kind).mkdir(exist_ok=True)
            (made / RECORD).write_text(json.dumps(record, indent=1) + "\n", "ascii")
        names = [name for name in NAMES if (made / name).exists()]
        publish_made(made, out, names=names, last=RECORD, overwrite=overwrite)
        return Cleaned(record=record, folder=out)
