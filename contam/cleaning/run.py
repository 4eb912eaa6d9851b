"""Decide what goes of a corpus that was searched, have its shards written, and publish them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.cleaning.record import Searched, record_of
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED
from contam.cleaning.writer import Writer
from contam.files.disk import output_errors
from contam.files.publish import publish_made

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.findings import Findings
    from contam.cleaning.work_folder import WorkFolder
    from contam.detect.scan import Corpus

NAMES: Final = (CORPUS, REMOVED, RECORD)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cleaned:
    """What was done, or would be where too much would go.

    record     the content of clean.json
    folder     where the result is; None where nothing was published
    too_many   more documents would go than was allowed, so nothing was published
    kept       the folder with what was searched then, for `resume`; it may be removed
    """

    record: dict[str, Any]
    folder: Path | None
    too_many: bool = False
    kept: Path | None = None

    @property
    def not_kept(self) -> list[str]:
        """What some files that were written do not have of the old ones, one sentence each."""
        said = (what for shard in self.record["shards"] for what in shard.get("not_kept", ()))
        return sorted(set(said))


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A run, once its corpus was searched.

    question  digest of all that decides the result
    workers   threads, and `started` the time of its begin: both only for the record
    """

    corpus: Corpus
    findings: Findings
    question: str
    workers: int
    started: float

    @property
    def options(self) -> CleanOptions:
        """What is done with what was found."""
        return self.findings.cleaning.options

    def refused(self, kept: Path | None = None) -> Cleaned | None:
        """What would go, where that is too much; else None. kept  see `Cleaned`."""
        found = self.findings
        if found.n_found <= self.options.most_documents(found.coverage.total.rows):
            return None
        record = self._record(found.touched, done=False)
        return Cleaned(record=record, folder=None, too_many=True, kept=kept)

    def writer(self, work: WorkFolder) -> Writer:
        """What writes the shards."""
        found = self.findings
        return Writer(
            work=work,
            question=self.question,
            cleaning=found.cleaning,
            corpus=self.corpus,
            names=found.cleaning.plan.items.names().__getitem__,
            rows={number: read.rows + read.n_blank for number, read in found.coverage.read.items()},
            touched=frozenset(found.touched),
            sha256=found.sha256,
            hits=found.hits.of_shard,
        )

    def published(
        self, writer: Writer, noted: Mapping[int, dict[str, Any]], out: Path, *, overwrite: bool
    ) -> Cleaned:
        """Publish all shards; noted  what is to be said of each."""
        record = self._record(noted, done=True)
        made = writer.work.result
        writer.work.keep_only(
            {
                path
                for number, facts in noted.items()
                for kind, path in writer.files(number).items()
                if facts[kind] is not None
            }
        )
        with output_errors(out):
            for kind in (CORPUS, REMOVED):
                if kind == REMOVED or self.options.action != "list":
                    (made / kind).mkdir(exist_ok=True)
            (made / RECORD).write_text(json.dumps(record, indent=1) + "\n", "ascii")
        names = [name for name in NAMES if (made / name).exists()]
        publish_made(made, out, names=names, last=RECORD, overwrite=overwrite)
        return Cleaned(record=record, folder=out)

    def _record(self, shards: Mapping[int, dict[str, Any]], *, done: bool) -> dict[str, Any]:
        found = self.findings
        searched = Searched(
            plan=found.cleaning.plan,
            corpus=self.corpus,
            coverage=found.coverage,
            options=self.options,
            labels=found.labels,
            question=self.question,
            spared=found.spared.rows,
            notes=(*self.corpus.notes, *found.spared.notes()),
        )
        noted = [shards[number] for number in sorted(shards)]
        return record_of(searched, noted, self.started, self.workers, done=done)
