"""Take the documents that hold benchmark items out of a corpus, and prove that they are gone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from contam.cleaning.choice import CleanOptions, refuse_unfit
from contam.cleaning.given_result import GivenResult, Spared
from contam.cleaning.run import NAMES, Asked, Cleaned, Run, facts_of, refuse_unread
from contam.cleaning.work_folder import RECORD, WorkFolder, digest_of, published_record
from contam.cleaning.writer import Writer, share_of
from contam.detect.given import as_list
from contam.detect.match.workers import worker_count
from contam.detect.parts.part_store import Division
from contam.detect.parts.pieces import question_of_search
from contam.detect.parts.search import compute_share, search_parts
from contam.detect.plan import CorpusOptions, ScanParameters
from contam.detect.scan import open_scan
from contam.errors import Place, UsageError
from contam.files.addresses import NAME_LOCAL_FOLDER, is_address, refuse_address
from contam.files.publish import check_publishable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.corpus import Corpus, PathLike, ScanProgress
    from contam.detect.parts.search import Work


class CleaningOptions(CorpusOptions, total=False):
    """What `clean` may be told: of items and corpus, as `scan`; the others: see `CleanOptions`."""

    action: str
    labels: str | Sequence[str]
    exposures: str | Sequence[str]
    sources: str | Sequence[str]
    weights: Mapping[str, float] | None
    most: str | None
    around: int
    min_piece: int
    max_cuts: int | None
    keep_removed: bool


def clean(
    corpus: PathLike | Sequence[PathLike],
    benchmark: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    verdicts: PathLike | None = None,
    spare: PathLike | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    division: Division | None = None,
    progress: ScanProgress | None = None,
    **options: Unpack[CleaningOptions],
) -> Cleaned:
    """Write a copy of a corpus without the documents, or the stretches, that hold benchmark items.

    corpus, benchmark  files, folders or globs, one or several
    out                a folder: `corpus/` with every shard, `removed/` with a table for each shard
                       that something was found in, and `clean.json`
    verdicts           the result of a scan with `every_hit` of the same question, which is taken
                       instead of searching
    spare              a file of what a person found harmless in that result, as `contam review
                       --accept` writes it: that stays
    division           how the search is divided into parts, as for `contam.scan`; None keeps them
                       beside the result until that is there

    What an interrupted run of the same question has done is not done again.

    Options: action ("drop", "mask", "cut" or "list"), labels, exposures, sources, weights, most,
    around, min_piece, max_cuts and keep_removed, as `contam.cleaning.choice.CleanOptions` says;
    those of items and of the corpus are the ones of `contam.scan`.

    Raises ContamError subclasses: a shard that cannot be read, or what still matches after the last
    pass, is an error, and nothing is published.
    """
    started = time.time()
    n_workers = worker_count(workers)
    work = WorkFolder.beside(out)
    if not work.folder.exists():
        check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    asked = asked_of(corpus, benchmark, out, division, options, verdicts=verdicts, spare=spare)
    if (record := work.published(Path(out), asked.question)) is not None:
        # It was killed between its last two steps.
        work.discard()
        return Cleaned(record=record, folder=Path(out))
    check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    with work.locked():
        divided = asked.division
        if divided.folder is None:
            divided = replace(divided, folder=str(work.folder / "scan"))
        try:
            found = asked.result or search_parts(
                asked.plan, asked.corpus, divided, workers=n_workers, progress=progress
            )
            run = Run.of(asked, found, workers=n_workers, started=started)
            result = run.refused(kept=work.folder if work.holds() else None)
            if result is None:
                work.begin(asked.question, run.written)
                writer = Writer(run, work)
                noted = writer.write_all(range(len(run.corpus.shards)), progress)
                result = writer.publish(noted, Path(out), overwrite=overwrite)
        except BaseException:
            if not work.holds():
                work.discard()
            raise
        if result.kept is None:
            work.discard()
    return result


def clean_share(
    corpus: PathLike | Sequence[PathLike],
    benchmark: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    division: Division,
    workers: int | None = None,
    overwrite: bool = False,
    progress: ScanProgress | None = None,
    **options: Unpack[CleaningOptions],
) -> Share | Cleaned:
    """Do a share of `clean`, which publishes what all shares wrote.

    First the parts of the search are computed that are the share's. Once the parts of all shares
    are there, its shards are written.

    Nothing is written, and what would go is returned, where more would go than `options.most`.

    Raises as `clean`, and OutputError where others have begun with other options.
    """
    started = time.time()
    n_workers = worker_count(workers)
    asked = asked_of(corpus, benchmark, out, division, options)
    plan, opened = asked.plan, asked.corpus
    search = compute_share(plan, opened, division, workers=n_workers, progress=progress)
    shards = opened.shards
    if search.failures:
        return Share(done=(), kept=(), n_shards=len(shards), search=search)
    only = replace(division, only=True)
    found = search_parts(plan, opened, only, workers=n_workers, progress=progress)
    if found.missing:
        return Share(done=(), kept=(), n_shards=len(shards), search=search)
    run = Run.of(asked, found, workers=n_workers, started=started)
    counted = run.refused()
    if counted is not None:
        return counted
    sizes = [shard.size_bytes for shard in shards]
    numbers = share_of(sizes, run.touched, *division.share)
    names = {number: shards[number].name for number in numbers}
    all_there = Share(done=(), kept=tuple(names.values()), n_shards=len(sizes))
    if published_record(Path(out), asked.question) is not None:
        return all_there
    check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    work = WorkFolder.beside(out)
    with work.locked(shared=True):
        if published_record(Path(out), asked.question) is not None:
            # Published since, which had the folder removed.
            work.discard()
            return all_there
        work.begin(asked.question, run.written, shared=True)
        writer = Writer(run, work)
        kept = tuple(name for number, name in names.items() if writer.known(number) is not None)
        left = [number for number, name in names.items() if name not in kept]
        writer.write_all(left, progress)
    done = tuple(names[number] for number in left)
    return Share(done=done, kept=kept, n_shards=len(sizes))


@dataclass(frozen=True, kw_only=True)
class Share:
    """What was done of one share.

    done, kept  names of shards that were written, and of those of the share that were there before
    n_shards    shards of all shares
    search      what was done of the search, where that is not finished: then nothing was written
    """

    done: tuple[str, ...]
    kept: tuple[str, ...]
    n_shards: int
    search: Work | None = None


def asked_of(
    corpus: PathLike | Sequence[PathLike],
    benchmark: PathLike | Sequence[PathLike],
    out: PathLike,
    division: Division | None,
    options: CleaningOptions,
    *,
    verdicts: PathLike | None = None,
    spare: PathLike | None = None,
) -> Asked:
    """What a call asks for. Raises ContamError for what cannot be."""
    if spare is not None and verdicts is None:
        raise UsageError(
            "what was found harmless holds for the evidence of one result",
            hint="name that result: --verdicts DIR, made by `contam scan --every-hit`",
        )
    chosen = CleanOptions.of(options)
    own = {one.name for one in fields(CleanOptions)}
    parameters = ScanParameters.of(
        {key: value for key, value in options.items() if key not in own},
        CorpusOptions.__optional_keys__,
        max_evidence=1,
        every_hit=True,
    )
    paths = as_list(corpus)
    refuse_nested(out, paths)
    division = division or Division()
    opened, plan = open_scan(paths, as_list(benchmark), parameters, division)
    refuse_unfit(plan, chosen)
    refuse_shards_in(out, opened)
    refuse_tokens(opened, chosen)
    refuse_unread(opened.coverage)
    result = None if verdicts is None else GivenResult.read(verdicts, plan, opened)
    spared = Spared()
    if result is not None and spare is not None:
        spared = Spared.read(spare, result, plan, opened)
    return Asked(
        plan=plan,
        corpus=opened,
        options=chosen,
        division=division,
        question=question_of_run(question_of_search(plan, opened), chosen, spared),
        result=result,
        spared=spared,
    )


def refuse_tokens(corpus: Corpus, options: CleanOptions) -> None:
    """Raise UsageError where token ids would have to be written again."""
    for shard, selection in zip(corpus.shards, corpus.selections, strict=True):
        text = selection.text if selection is not None else None
        if text is not None and text.kind == "tokens" and options.action != "list":
            raise UsageError(
                "{} holds token ids, which are not written again", Place(shard.name),
                hint="--action list names each document with its first and last token, for the"
                " pipeline that writes the corpus",
            )  # fmt: skip


def refuse_nested(out: PathLike, paths: Sequence[PathLike]) -> None:
    """Raise UsageError where the result would lie in the corpus, whose next scan would read it.

    It cannot lie in a store, either: there a shard cannot be made aside and put in its place.
    """
    refuse_address(out, "the folder of a cleaned corpus", NAME_LOCAL_FOLDER)
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
                hint="its files would be taken for corpus: choose a folder outside",
            )  # fmt: skip


def refuse_shards_in(out: PathLike, corpus: Corpus) -> None:
    """Raise UsageError where shards of the corpus lie where the result would.

    Folders in a corpus may be links: the result may not lie in what these lead to, either.
    """
    home = Path(os.path.realpath(out))
    folders: set[Path] = set()
    for shard in corpus.shards:
        if is_address(shard.uri):
            continue
        path = Path(shard.uri)
        if Path(os.path.realpath(path)).is_relative_to(home):
            raise UsageError(
                "the shard {} lies where the result would: in {}", Place(shard.name), Place(out),
                hint="choose another folder",
            )  # fmt: skip
        folders.update(path.parents[: len(Path(shard.name).parts) - 1])
    refuse_nested(out, sorted(folder for folder in folders if folder.is_symlink()))


def question_of_run(question: str, options: CleanOptions, spared: Spared) -> str:
    """Digest of all that decides what is written: of a search, and of what is done with its finds.

    `most` only decides whether.
    """
    facts = facts_of(replace(options, most=None))
    return digest_of(question, facts, *([spared.rows] if spared.rows else []))
