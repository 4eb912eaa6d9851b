"""List all corpus formats; a new one is a file in this folder and a line here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from contam.corpus.formats import records
from contam.corpus.formats.delimited import Csv, Tsv
from contam.corpus.formats.jsonl import JsonLines
from contam.corpus.formats.mds import Mds
from contam.corpus.formats.plain import LINES, TEXT, TEXTS
from contam.corpus.formats.tar import Tar
from contam.corpus.formats.token_file import TokenFile
from contam.corpus.formats.typed import Arrow, Parquet
from contam.corpus.formats.warc import Wet
from contam.errors import ShardError

if TYPE_CHECKING:
    from contam.corpus.formats.base import CorpusFormat
    from contam.corpus.streams import ByteSpan
    from contam.tables.columns import ColumnRef


class Unfinished(records.ReadOnlyRecords):
    """A file that fails whatever is asked of it."""

    name = "unfinished"
    title = "an unfinished file"
    suffixes = (
        ".incomplete",
        ".part",
        ".partial",
        ".crdownload",
        ".download",
        ".aria2",
        ".gstmp",
    )

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        self.numbered(path, None)

    def numbered(self, path: str, span: ByteSpan | None) -> NoReturn:
        raise ShardError(
            "{shard}: an unfinished download or copy", shard=path,
            hint="let it finish; if it is not wanted, remove the file",
        )  # fmt: skip


FORMATS: tuple[CorpusFormat, ...] = (
    Parquet(),
    JsonLines(),
    Arrow(),
    Csv(),
    Tsv(),
    Wet(),
    Tar(),
    Mds(),
    TokenFile(),
    TEXT,
)
UNFINISHED = Unfinished()

NAMED = {kind.name: kind for kind in (*FORMATS, LINES, TEXTS, UNFINISHED)}
"""Every format by the name that `run.json` and manifests have for it."""

TITLES = f"{', '.join(kind.title for kind in FORMATS[:-1])} or {FORMATS[-1].title}"

# Unsupported compression is listed too: such a shard must fail by name, not be overlooked.
_COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".zip", ".lzma", ".snappy")
# Copying tools write to `name.parquet.tmp`, to `name.parquet.` and eight hexadecimal digits, or to
# `.name.parquet.` and six letters or digits.
_SUFFIXES = "|".join(re.escape(suffix[1:]) for kind in FORMATS for suffix in kind.suffixes)
_COPYING = re.compile(
    rf"(^\..*)?\.({_SUFFIXES})"
    r"(\.(gz|zst|zstd|bz2|xz))?\.(tmp|[0-9a-f]{8}|(?(1)(?!sha)[0-9a-z]{6}|tmp))$"
)


def by_suffix(name: str) -> CorpusFormat | None:
    """The format that a file's name promises, whatever it is compressed with."""
    lowered = stem = name.lower()
    while stem.endswith(_COMPRESSED):
        stem = stem[: stem.rindex(".")]
    fitting = (
        kind for kind in FORMATS if (stem if kind.packable else lowered).endswith(kind.suffixes)
    )
    return next(fitting, None)


def by_magic(head: bytes) -> CorpusFormat | None:
    """The format that a file's first bytes prove."""
    return next((kind for kind in FORMATS if head.startswith(kind.magic)), None)


def by_guess(head: bytes) -> CorpusFormat | None:
    """The format that a file without a known suffix may be, by its first bytes."""
    return by_magic(head) or next((kind for kind in FORMATS if kind.guess(head)), None)


def is_unfinished(name: str) -> bool:
    """Whether a file is named as downloads and copying tools name what they have not finished."""
    lowered = name.lower()
    return lowered.endswith(UNFINISHED.suffixes) or _COPYING.search(lowered) is not None
