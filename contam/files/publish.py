"""Publish a folder of results as a whole or not at all.

    with publishing(out, names=("a.parquet", "run.json"), last="run.json") as draft:
        ...write every file into `draft`...

The draft is next to the folder and is renamed into place when the block ends well; otherwise it
is removed, and what was there before stays. Where the folder itself cannot be renamed (a mount
point, the current folder), the draft is inside it and its files are moved one by one, the one
named `last` at the end: it marks a finished result.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contam.errors import OutputError
from contam.files.addresses import NAME_LOCAL_FOLDER, Address, refuse_address
from contam.files.disk import output_errors, refuse_taken, sync_path
from contam.files.stores import publishing_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_DRAFT = ".contam-draft-"
_OLD = ".contam-old-"
_WORK = ".contam-work-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where a result goes: by renaming a whole folder, or file by file when `in_place`.

    shown  the folder as the user writes it
    """

    shown: Path
    folder: Path
    names: tuple[str, ...]
    last: str
    in_place: bool

    @property
    def home(self) -> Path:
        """The folder of drafts and retired results."""
        return self.folder if self.in_place else self.folder.parent

    @property
    def prefix(self) -> str:
        return "" if self.in_place else f".{self.folder.name}"

    def aside(self, kind: str) -> Path:
        return self.home / f"{self.prefix}{kind}{secrets.token_hex(4)}"


@contextlib.contextmanager
def publishing(
    out: str | Path,
    *,
    names: Sequence[str],
    last: str,
    overwrite: bool = False,
    earlier: Sequence[str] = (),
) -> Iterator[Path]:
    """A draft folder for the files `names`; it becomes `out` when the block ends without an error.

    earlier  other files of ours that an older result in `out` may hold; they are removed with it

    Raises OutputError on entry when `out` holds a finished result and `overwrite` is not set, holds
    files that are not ours, or cannot be written; and on exit when it no longer can. Errors of the
    block itself pass through: what writes into the draft does so under `output_errors`. An
    `Address` is written to as `contam.files.stores` says; UsageError for the text of one, from a
    caller who knows folders alone.
    """
    if isinstance(out, Address):
        with publishing_objects(
            out, names=names, last=last, overwrite=overwrite, earlier=earlier
        ) as draft:
            yield draft
        return
    refuse_address(out, "where this is written", NAME_LOCAL_FOLDER)
    shown = Path(out)
    with output_errors(shown):
        target = _target(shown, (*names, *earlier), last)
        made = _make_parents(target.home)
    try:
        with output_errors(shown):
            _recover(target)
            _check_free(target, overwrite=overwrite)
            draft = target.aside(_DRAFT)
            draft.mkdir()
        lock = _lock(draft)
        try:
            yield draft
            with output_errors(shown):
                _sync(draft, names)
                # Asked again: another run may have finished here since.
                _check_free(target, overwrite=overwrite)
                _replace_files(target, draft) if target.in_place else _replace_folder(target, draft)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            _unlock(lock)
    except BaseException:
        for folder in reversed(made):
            # Not empty: somebody else uses it by now.
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def work_folder(out: str | Path, what: str) -> Path:
    """The hidden folder beside `out` in which a run that can be resumed prepares its result.

    what  names the kind of run. It is on the file system of `out`; nothing is created.
    """
    refuse_address(out, "where results are written", NAME_LOCAL_FOLDER)
    with output_errors(Path(out)):
        target = _target(Path(out), (), "")
    return target.home / f"{target.prefix}{_WORK}{what}"


def check_publishable(
    out: str | Path, *, names: Sequence[str], last: str, overwrite: bool = False
) -> None:
    """Raise OutputError where `publish_made` would; creates the folders above `out`."""
    refuse_address(out, "where results are written", NAME_LOCAL_FOLDER)
    with output_errors(Path(out)):
        target = _target(Path(out), tuple(names), last)
        _make_parents(target.home)
        _recover(target)
        _check_free(target, overwrite=overwrite)


def publish_made(
    made: Path, out: str | Path, *, names: Sequence[str], last: str, overwrite: bool = False
) -> None:
    """Let a folder that was made in `work_folder` become `out`; see `publishing`."""
    with output_errors(Path(out)):
        target = _target(Path(out), tuple(names), last)
        _check_free(target, overwrite=overwrite)
        _sync(made, names)
        _replace_files(target, made) if target.in_place else _replace_folder(target, made)


def _target(out: Path, names: tuple[str, ...], last: str) -> _Target:
    # Behind a symbolic link the folder it points to is replaced, never the link.
    folder = Path(os.path.realpath(out))
    if not folder.name:
        raise OutputError("cannot write results to {}", out, hint="choose a folder of its own")
    if folder.exists() and not folder.is_dir():
        raise OutputError("{} is a file, not a folder", out, hint="choose another folder")
    in_place = folder.is_dir() and (
        os.path.ismount(folder)
        or not os.access(folder.parent, os.W_OK | os.X_OK)
        or folder == Path(os.path.realpath(Path.cwd()))
    )
    return _Target(shown=out, folder=folder, names=names, last=last, in_place=in_place)


def _make_parents(home: Path) -> list[Path]:
    """Create the folder and its parents; returns those that were not there, outermost first."""
    absent: list[Path] = []
    folder = home
    while not folder.exists():
        absent.append(folder)
        folder = folder.parent
    absent.reverse()
    for folder in absent:
        folder.mkdir(exist_ok=True)
    return absent


def _check_free(target: _Target, *, overwrite: bool) -> None:
    folder = target.folder
    if not folder.exists():
        return
    present = sorted(
        entry.name for entry in folder.iterdir() if not entry.name.startswith((_DRAFT, _OLD, _WORK))
    )
    refuse_taken(target.shown, present, target.names, target.last, overwrite=overwrite)


def _recover(target: _Target) -> None:
    """Undo what a killed run left: its draft goes, a result it had set aside comes back."""
    prefix = glob.escape(target.prefix)
    for draft in sorted(target.home.glob(f"{prefix}{_DRAFT}*")):
        lock = _lock(draft)
        if lock is not None:
            shutil.rmtree(draft, ignore_errors=True)
            _unlock(lock)
    for old in sorted(target.home.glob(f"{prefix}{_OLD}*")):
        if target.in_place:
            if not (target.folder / target.last).exists():
                _move_files(old, target.folder, target)
        elif not target.folder.exists():
            old.rename(target.folder)
        shutil.rmtree(old, ignore_errors=True)


def _replace_folder(target: _Target, draft: Path) -> None:
    """Swap folders: at every moment the old or the new result is whole, in place or set aside."""
    folder, old = target.folder, target.aside(_OLD)
    if not folder.exists() or not any(folder.iterdir()):
        draft.rename(folder)
    else:
        try:
            folder.rename(old)
            draft.rename(folder)
        except BaseException:
            if old.exists() and not folder.exists():
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    sync_path(target.home)


def _replace_files(target: _Target, draft: Path) -> None:
    folder, old = target.folder, target.aside(_OLD)
    before = [name for name in target.names if (folder / name).exists()]
    old.mkdir()
    try:
        _move_files(folder, old, target)
        _move_files(draft, folder, target)
    except BaseException:
        for name in target.names:
            if name not in before:
                (folder / name).unlink(missing_ok=True)
        _move_files(old, folder, target)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)
    sync_path(folder)


def _move_files(source: Path, to: Path, target: _Target) -> None:
    """Move the files of a result; the one that marks it finished leaves first and arrives last."""
    names = [name for name in target.names if name != target.last]
    order = [*names, target.last] if to == target.folder else [target.last, *names]
    for name in order:
        if (source / name).exists():
            (source / name).replace(to / name)


def _sync(draft: Path, names: Sequence[str]) -> None:
    """Wait for all that was promised, and for the content of promised folders."""
    for name in names:
        sync_path(draft / name)
        for path in sorted((draft / name).rglob("*")):
            sync_path(path)
    sync_path(draft)


def _lock(draft: Path) -> int | None:
    """Mark a draft as in use by this process; None when it is in use, or cannot be locked."""
    try:
        handle = os.open(draft, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
