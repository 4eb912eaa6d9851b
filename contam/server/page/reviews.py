"""Manage packs under review on the page, and the files of labels.

A pack is looked at whole before anything of it is shown, and again when one of its files is
another one. Labels are files in the service's data folder, one a reader; a pack is only read.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.audit.manifest import files_of
from contam.audit.review.sample import append_label, read_own_labels
from contam.audit.review.session import ReviewSession, answer
from contam.errors import ConfigError, ContamError, OutputError
from contam.server.indexes.registry import NAME
from contam.server.indexes.watched import stamp_of
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contam.audit.review.sample import Case, Label
    from contam.config import Settings
    from contam.server.indexes.watched import Stamp

HOME: Final = "reviews"
"""The folder of all labels in the service's data folder."""

_SUFFIX: Final = ".jsonl"
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_DIGEST_CHARACTERS: Final = 12


class ChangedError(Exception):
    """An answer was to replace one that the reader had not seen, or did not say to replace."""


@dataclass(frozen=True, slots=True)
class ReaderProgress:
    """How far one reader is: items of the sample that were answered, skipped ones among them."""

    reader: str
    n_read: int
    n_skipped: int


class ReviewedPack:
    """One pack under its name; several threads may use it."""

    def __init__(
        self, name: str, folder: Path, labels: Path, draw: Callable[[Path], ReviewSession]
    ) -> None:
        self.name = name
        self._folder = folder
        self._labels = labels
        self._draw = draw
        self._opening = threading.Lock()
        self._writing = threading.Lock()
        self._stamps: dict[str, Stamp | None] | None = None
        self._found: ReviewSession | ContamError | None = None

    def open(self) -> ReviewSession:
        """Its sample, drawn anew if a file of it has changed. Raises ContamError subclasses."""
        with self._opening:
            # Before anything is read: what is written from now on is noticed.
            stamps = _stamps(self._folder)
            if self._found is None or stamps != self._stamps:
                self._stamps = stamps
                try:
                    self._found = self._draw(self._folder)
                except ContamError as error:
                    self._found = error
            if isinstance(self._found, ContamError):
                raise self._found
            return self._found

    def reading(self) -> ReviewSession:
        """Its sample. Raises RequestError, 503, when the pack is not what was published."""
        try:
            return self.open()
        except ContamError as error:
            # The library's words name folders of this machine.
            raise RequestError(
                503, "this pack is not as it was published, so nothing of it can be reviewed now",
                code="pack-damaged",
                headers={"Retry-After": "5"},
            ) from error  # fmt: skip

    def labels(self, reader: str) -> list[Label]:
        """What this reader said, in order.

        Raises RequestError, 503, when the file that holds it cannot be read.
        """
        try:
            return [
                label for label in read_own_labels(self._file(reader)) if label.reader == reader
            ]
        except ConfigError as error:
            raise RequestError(
                503, "your answers cannot be read, so none can be added", code="labels-damaged",
                headers={"Retry-After": "5"},
            ) from error  # fmt: skip

    def keep(self, case: Case, reader: str, leaked: bool | None, note: str, before: int) -> bool:  # noqa: FBT001 - a label is one of three values
        """Keep an answer; false if it is what this reader said last. On disk when this returns.

        before  how many answers to this item the reader knows of: all of them, to change the last

        Raises ChangedError when there are others, RequestError 503 when it cannot be kept.
        """
        with self._writing:
            own = [label for label in self.labels(reader) if is_of(label, case)]
            if own and (own[-1].label, own[-1].note) == (leaked, note):
                return False
            if before != len(own):
                raise ChangedError
            path = self._file(reader)
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                append_label(path, answer(case, reader, leaked, note))
            except (OSError, OutputError) as error:
                raise RequestError(
                    503, "your answer could not be kept", code="label-not-kept",
                    headers={"Retry-After": "5"},
                ) from error  # fmt: skip
        return True

    def progress(self, reading: ReviewSession) -> tuple[list[ReaderProgress], bool]:
        """How far each reader is, by name, and whether all files of labels could be read."""
        cases = {(*case.judged, case.digest) for case in reading.cases}
        leaked: dict[str, dict[tuple[str, ...], bool | None]] = {}
        whole = True
        for path in sorted(self._labels.glob(f"*{_SUFFIX}")):
            try:
                labels = read_own_labels(path)
            except ConfigError:
                whole = False
                continue
            for label in labels:
                if (*label.judged, label.evidence) in cases:
                    own = leaked.setdefault(label.reader, {})
                    own[*label.judged, label.evidence] = label.label
        counts = {reader: Counter(own.values()) for reader, own in sorted(leaked.items())}
        return [ReaderProgress(name, n.total(), n[None]) for name, n in counts.items()], whole

    def _file(self, reader: str) -> Path:
        """The file of a reader's labels: each name has a file of its own in this folder."""
        if _PLAIN.fullmatch(reader):
            return self._labels / f"{reader}{_SUFFIX}"
        plain = "".join(sign if _PLAIN.fullmatch(sign) else "-" for sign in reader.lower())[:32]
        digest = hashlib.sha256(reader.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{plain.strip('-') or 'reader'}={digest[:_DIGEST_CHARACTERS]}"
        return self._labels / f"{name}{_SUFFIX}"


def is_of(label: Label, case: Case) -> bool:
    """Whether a label is about this item, as its evidence is now."""
    return label.judged == case.judged and label.evidence == case.digest


class Reviews:
    """All packs of the settings by name."""

    def __init__(self, packs: Iterable[ReviewedPack]) -> None:
        self._packs = {pack.name: pack for pack in packs}

    @classmethod
    def open(cls, settings: Settings) -> Reviews:
        """Check every pack and draw from it. Raises ContamError subclasses."""

        def draw(folder: Path) -> ReviewSession:
            return ReviewSession.open(
                folder,
                policy=settings.review_policy,
                flagged=settings.review_flagged,
                clean=settings.review_clean,
                seed=settings.review_seed,
            )

        home = Path(settings.data) / HOME
        found = [
            ReviewedPack(name, folder, home / name, draw)
            for name, folder in named_packs(settings.review).items()
        ]
        for pack in found:
            pack.open()
        return cls(found)

    @property
    def packs(self) -> tuple[ReviewedPack, ...]:
        """The packs in the order of the settings."""
        return tuple(self._packs.values())

    def pack(self, name: str) -> ReviewedPack:
        """The pack of that name. Raises RequestError, 404."""
        try:
            return self._packs[name]
        except KeyError:
            raise RequestError(
                404, "there is no pack of that name to review", code="no-pack",
            ) from None  # fmt: skip


def named_packs(review: Sequence[str]) -> dict[str, Path]:
    """Name -> folder of packs given as `DIR` or `NAME=DIR`.

    Raises ConfigError for a folder that is not there, and for names that are equal or fit no
    address.
    """
    found: dict[str, Path] = {}
    for text in review:
        name, equals, place = text.partition("=")
        if not equals or Path(text).exists():
            name, place = "", text
        folder = Path(place)
        if not folder.is_dir():
            raise ConfigError(
                f"there is no folder {place!r} to review",
                hint="give --review the folder that `contam audit` or `contam scan --out` wrote",
            )
        name = name or folder.resolve().name
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"a pack cannot be reviewed under the name {name!r}",
                hint="give it one of letters, digits, dots and dashes: --review NAME=DIR",
            )
        if name.lower() in map(str.lower, found):
            raise ConfigError(
                f"two packs to review have the name {name!r}", hint="name them: --review NAME=DIR"
            )
        found[name] = folder
    return found


def _stamps(folder: Path) -> dict[str, Stamp | None]:
    return {name: stamp_of(str(path)) for name, path in files_of(folder)}
