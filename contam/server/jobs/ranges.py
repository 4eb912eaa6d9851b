"""Serve a file whole, or from where an earlier download stopped."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from fastapi.responses import StreamingResponse

from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

_RANGE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")
_PIECE: Final = 1 << 18


def file_answer(path: Path, headers: Mapping[str, str], *, media_type: str) -> StreamingResponse:
    """The file, or the one range of it that the request asks for; other ranges are ignored.

    It is open from here on: deleting it does not cut the answer short.

    Raises RequestError: 404 when the file is gone, 416 for a range outside of it.
    """
    try:
        # Closed by whoever reads it to its end, or with the response.
        file = path.open("rb")
    except FileNotFoundError as error:
        raise RequestError(404, "the result is gone", code="no-result") from error
    about = os.fstat(file.fileno())
    size = about.st_size
    tag = f'"{about.st_mtime_ns:x}-{size:x}"'
    start, end = 0, size
    asked = _RANGE.fullmatch(headers.get("range", "").strip())
    partial = asked is not None and headers.get("if-range", tag) == tag
    if asked is not None and partial:
        start, end = _bounds(asked, size)
        if start >= end:
            file.close()
            raise RequestError(
                416, f"the file has {size} bytes", code="no-range",
                headers={"Content-Range": f"bytes */{size}"},
            )  # fmt: skip
    more_headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-store",
        "Content-Length": str(end - start),
        "Content-Disposition": f'attachment; filename="{path.name}"',
    }
    if partial:
        more_headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return StreamingResponse(
        _pieces(file, start, end), 206 if partial else 200, more_headers, media_type=media_type
    )


def _bounds(asked: re.Match[str], size: int) -> tuple[int, int]:
    first, last, suffix = asked.groups()
    if suffix is not None:
        return max(0, size - int(suffix)), size
    return int(first), min(size, int(last) + 1) if last else size


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        while start < end:
            piece = file.read(min(_PIECE, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece
