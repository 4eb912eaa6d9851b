"""Write a file of records again, packed as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.corpus.streams import unreadable
from contam.files.compression import codec_of
from contam.files.disk import output_errors
from contam.files.listed import opened
from contam.files.packing import HEAD_BYTES, pack
from contam.files.single import created

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SKIPPABLE = b"\x2a\x4d\x18"


def write_again(
    path: str, target: Path, records: Iterable[bytes], *, members: bool
) -> tuple[str, ...]:
    """Write what becomes of the records of a file; returns what of its packing was not kept.

    members  whether each record of a packed file is a member of its own

    Raises ShardError when the file cannot be read, OutputError when the target cannot be written.
    """
    head = _head(path)
    codec = codec_of(head)
    with created(target) as out:
        for piece in _packed(codec, head, records, members=members) if codec else records:
            with output_errors(target):
                out.write(piece)
    return (f"the exact {codec} level and members",) if codec else ()


def _packed(codec: str, head: bytes, records: Iterable[bytes], *, members: bool) -> Iterator[bytes]:
    if not members:
        yield from pack(codec, head, records)
        return
    found = iter(records)
    # Without a record, a member of no bytes: an empty file would count as damaged.
    yield from pack(codec, head, (next(found, b""),))
    for record in found:
        yield from pack(codec, head, (record,))


def _head(path: str) -> bytes:
    """The first bytes of a file, or of its first frame of zstd that holds data."""
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
            while head[1:4] == _SKIPPABLE:
                file.seek(int.from_bytes(head[4:8], "little") + 8 - len(head), 1)
                head = file.read(HEAD_BYTES)
            return head
    except OSError as error:
        raise unreadable(path, error) from error
