"""Recognise contam's own results, packs and indexes, which are not part of a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from contam.files.single import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TOOL: Final = "contam"

Written = tuple[str, int]
"""A file's path below the folder, and its size in bytes."""


def written_by_contam(folder: Path) -> dict[Path, str]:
    """Files below a folder that a result, a pack or an index in it consists of, and of which.

    A file of such a name and another size is not among them: it may be anybody's.
    """
    found: dict[Path, str] = {}
    for marker, what, _, written in _marked(folder):
        reason = f"part of {what}, see {marker}"
        for name, n_bytes in written:
            if _size(folder / name) == n_bytes:
                found[folder / name] = reason
        if written:
            found[folder / marker] = reason
    return found


def what_wrote(folder: Path) -> str:
    """What a folder itself is: `a result of contam`, an audit, an index; "" for any other."""
    ours = (what for _, what, tree, _ in _marked(folder) if tree.get("tool", _TOOL) == _TOOL)
    return next(ours, "")


def _marked(folder: Path) -> Iterator[tuple[str, str, dict[str, Any], list[Written]]]:
    """Yield (marker, what it marks, its content, the files that it lists)."""
    for marker, (what, files) in _MARKERS.items():
        try:
            if (folder / marker).is_file():
                tree = orjson.loads(read_file(folder / marker))
                yield marker, what, tree, list(files(tree))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue  # somebody else's file of that name


def _of_result(tree: dict[str, Any]) -> Iterator[Written]:
    if tree["tool"] == _TOOL:
        yield from ((name, output["bytes"]) for name, output in tree["outputs"].items())


def _of_pack(tree: dict[str, Any]) -> Iterator[Written]:
    if tree["tool"] == _TOOL:
        yield from ((name, file["bytes"]) for name, file in tree["files"].items())


def _of_index(tree: dict[str, Any]) -> Iterator[Written]:
    for segment in tree["body"]["segments"]:
        for file in segment["files"]:
            yield f"segments/{segment['id']}/{file['name']}", file["n_bytes"]


def _of_cleaning(tree: dict[str, Any]) -> Iterator[Written]:
    """What was taken out of a corpus; what was left of it is a corpus."""
    if tree["tool"] == _TOOL:
        for shard in tree["shards"]:
            if shard["removed"] is not None:
                yield f"removed/{shard['name']}.parquet", shard["removed"]["bytes"]


_MARKERS: Final[dict[str, tuple[str, Callable[[dict[str, Any]], Iterator[Written]]]]] = {
    "run.json": ("a result of contam", _of_result),
    "manifest.json": ("an audit of contam", _of_pack),
    "MANIFEST.json": ("an index of contam", _of_index),
    "clean.json": ("a cleaned corpus of contam", _of_cleaning),
}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None
