"""Write one shard without what was found in it, and prove that it is gone."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from contam.cleaning.choice import in_original, widened, within_lines
from contam.corpus.chunks import cut_shard
from contam.corpus.columns import select_columns
from contam.corpus.coverage import Coverage
from contam.corpus.documents import read_documents, read_metadata, read_texts
from contam.corpus.shards import errors_named
from contam.detect.scan import Corpus, scan_chunks
from contam.errors import CorpusError, InternalError, Remedy, ShardError
from contam.files.listed import FileState, opened
from contam.files.publish import output_errors
from contam.files.single import fingerprint
from contam.tables.edits import Edit, edited

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.cleaning.choice import Choice, CleanOptions, Found
    from contam.corpus.columns import Selection
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.shards import Shard
    from contam.detect.plan import Plan
    from contam.tables.edits import Rewritten

#: Cutting and masking may bring words together that match: so often it is done.
MOST_PASSES: Final = 3
_FICLONE: Final = 0x40049409
_NO_CLONE: Final = frozenset(
    (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.ENOSYS)
)
_SHOWN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """What a run does with every shard.

    choice  which hits count in the corpus as it is;  after  and in what is written
    """

    plan: Plan
    options: CleanOptions
    choice: Choice
    after: Choice


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A document that was found, with the stretches that were taken out in the end.

    texts  what was taken out: the whole text of a dropped document, else the text of each stretch;
           None where it was not read
    """

    found: Found
    meta: DocumentMeta
    texts: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Written:
    """A shard that was written again and searched.

    removed   with the stretches that were taken out in the end
    n_passes  how often it was written
    n_same    rows that are the same in all columns
    """

    done: Rewritten
    removed: list[Removal]
    n_passes: int
    n_same: int


def digest(path: str) -> dict[str, Any]:
    """Bytes and SHA-256 of a shard, as it was listed. Raises ShardError or OSError."""
    with opened(path) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": found}


def copy(shard: Shard, target: Path) -> None:
    """Copy a shard byte for byte; the file system may share the blocks. Raises ShardError."""
    with errors_named(shard), opened(shard.path) as source, target.open("xb") as file:
        if not _cloned(source, file):
            shutil.copyfileobj(source, file, 4 << 20)


def _cloned(source: BinaryIO, target: BinaryIO) -> bool:
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError as error:
        if error.errno in _NO_CLONE:
            return False
        raise
    except (AttributeError, ValueError):  # an object in a store has no descriptor
        return False
    return True


def removals(
    cleaning: Cleaning, shard: Shard, selection: Selection, found: Sequence[Found]
) -> list[Removal]:
    """What is known of documents that were found; texts of those that are cut or kept are read.

    Raises ShardError when a stretch is not in the text, which then is not what was searched.
    """
    options = cleaning.options
    rows = [one.row for one in found]
    metas = read_metadata(shard, selection, rows)
    if options.action in ("drop", "list") and not options.keep_removed:
        return [
            Removal(found=one, meta=meta, texts=None)
            for one, meta in zip(found, metas, strict=True)
        ]
    made = []
    documents = read_documents(shard, selection, rows)
    for one, meta, document in zip(found, metas, documents, strict=True):
        text = document.text
        spans = widened(one.spans, options.around, len(text))
        if document.turns is not None:
            spans = within_lines(spans, text)
        if one.spans and one.spans[-1][1] > len(text):
            raise ShardError(
                "{shard}: row {} is shorter than what was found in it", one.row, shard=shard.name,
                remedy=Remedy.LET_NOBODY_WRITE_TO_CORPUS,
            )  # fmt: skip
        texts = (text,) if options.action == "drop" else tuple(text[a:b] for a, b in spans)
        made.append(Removal(found=one._replace(spans=spans), meta=meta, texts=texts))
    return made


def written(
    cleaning: Cleaning,
    shard: Shard,
    selection: Selection,
    removed: list[Removal],
    target: Path,
    *,
    workers: int,
) -> Written:
    """Write a shard without what is removed, compare it with the original, and search it again.

    Cutting may bring words together that match. The shard is then written again with more
    stretches, `MOST_PASSES` times at most.

    Raises ShardError when something is still found then, or when a row is not what it should be.
    """
    replacement, drop = cleaning.options.replacement, cleaning.options.action == "drop"
    sources = selection.sources
    if sources is None:
        raise InternalError(f"{shard.name}: rows were found without a text column")
    for n_passes in range(1, MOST_PASSES + 1):
        target.unlink(missing_ok=True)
        edits = [Edit(one.found.row, drop, () if drop else one.found.spans) for one in removed]
        with errors_named(shard):
            done = shard.kind.rewrite(shard.path, target, edits, sources, replacement=replacement)
        state = FileState.at(str(target))
        new = replace(shard, uri=str(target), size_bytes=state.size, state=state)
        with errors_named(new):
            n_same = shard.kind.count_same(shard.path, new.path, edits, sources)
        if not drop:
            _compare_texts(shard, new, selection, removed, replacement)
        left = found_in(cleaning, new, selection, done.rows_after, workers=workers)
        if not left:
            return Written(done=done, removed=removed, n_passes=n_passes, n_same=n_same)
        if drop:
            break
        removed = _extended(cleaning, shard, selection, removed, left)
    rows = ", ".join(str(one.row) for one in left[:_SHOWN])
    raise ShardError(
        "{shard}: {} documents still match after {} passes, among them row {}", len(left), n_passes,
        rows, shard=shard.name, remedy=Remedy.DROP_DOCUMENT,
    )  # fmt: skip


def _compare_texts(
    shard: Shard,
    new: Shard,
    selection: Selection,
    removed: Sequence[Removal],
    replacement: str | None,
) -> None:
    """Raise ShardError unless texts are the original ones without their stretches."""
    rows = [one.found.row for one in removed]
    before, after = (read_texts(each, selection, rows) for each in (shard, new))
    for one, old, text in zip(removed, before, after, strict=True):
        # Bytes that are no UTF-8 may become other characters when what parts them is cut.
        if edited(old, one.found.spans, replacement) != text and "\ufffd" not in old:
            raise ShardError(
                "{shard}: row {} was not written as it should be", one.found.row, shard=shard.name,
                remedy=Remedy.DROP_DOCUMENT,
            )  # fmt: skip


def found_in(
    cleaning: Cleaning, new: Shard, selection: Selection, n_rows: int, *, workers: int
) -> list[Found]:
    """What is still found in a shard that was written, by the columns read then and now.

    Raises ShardError when it cannot be read, or has other rows than were written.
    """
    parameters = cleaning.plan.parameters
    try:
        fresh = select_columns(new, parameters.text, parameters.columns)
    except CorpusError as error:
        raise ShardError(error.statement, shard=new.name, remedy=error.remedies) from error
    selections = [fresh] if fresh.sources == selection.sources else [selection, fresh]
    found: dict[int, Found] = {}
    for chosen in selections:
        if chosen.text is None:
            continue
        chunks = list(cut_shard(0, new, chosen))
        corpus = Corpus(
            paths=(new.uri,),
            shards=(new,),
            digests=(None,),
            selections=[chosen],
            chunks=chunks,
            coverage=Coverage.expect([new], chunks, []),
            notes=(),
        )
        partial = scan_chunks(cleaning.plan, corpus, workers=workers)
        coverage = partial.coverage
        if coverage.failures:
            raise ShardError(
                "{shard}: what was written cannot be read: {}", coverage.failures[0].reason,
                shard=new.name,
            )  # fmt: skip
        if coverage.total.rows != n_rows:
            raise ShardError(
                "{shard}: {} rows were read where {} were written", coverage.total.rows, n_rows,
                shard=new.name,
            )  # fmt: skip
        hits = {}
        for view, collection in enumerate(partial.collections):
            collection.flush()
            if collection.shared.hits is not None:
                hits[view] = collection.shared.hits.held()
        found.update({one.row: one for one in cleaning.after.documents(hits)})
    return [found[row] for row in sorted(found)]


def _extended(
    cleaning: Cleaning,
    shard: Shard,
    selection: Selection,
    removed: Sequence[Removal],
    left: Sequence[Found],
) -> list[Removal]:
    """The removals with the stretches that were found after them: no row goes, so rows stay."""
    replacement = cleaning.options.replacement
    known = {one.found.row: one for one in removed}
    more = {one.row: one for one in left}
    fresh = sorted(more.keys() - known.keys())
    for one in removals(cleaning, shard, selection, [more[row] for row in fresh]):
        known[one.found.row] = one
    again = sorted(more.keys() & known.keys() - set(fresh))
    documents = read_documents(shard, selection, again)
    for row, document in zip(again, documents, strict=True):
        old, text = known[row], document.text
        spans = in_original(more[row].spans, old.found.spans, replacement)
        if document.turns is not None:
            spans = within_lines(spans, text)
        found = old.found._replace(
            items=tuple(sorted({*old.found.items, *more[row].items})),
            policies=tuple(sorted({*old.found.policies, *more[row].policies})),
            spans=spans,
        )
        known[row] = replace(old, found=found, texts=tuple(text[a:b] for a, b in spans))
    return [known[row] for row in sorted(known)]


def written_digest(path: Path) -> dict[str, Any]:
    """Bytes and SHA-256 of a file that was written."""
    with output_errors(path):
        return fingerprint(path)
