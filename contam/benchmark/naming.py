"""Derive benchmark and split names from a path, for rows that do not name their own."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from contam.benchmark.compressed import SUFFIXES as PACKED
from contam.files.addresses import Address

# Longest first, so that a name ending in auxiliary_train is not read as ending in train.
SPLITS = (
    "auxiliary_train",
    "validation",
    "holdout",
    "train",
    "valid",
    "test",
    "eval",
    "dev",
    "val",
)
_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?")
_NO_NAMES = frozenset({"", ".", "data", "default", "main", "all", "plain_text"})


@dataclass(frozen=True, slots=True)
class Naming:
    """What a path tells; `split_sure` is False for a split from the end of a file name."""

    benchmark: str
    split: str
    split_sure: bool


def name_of(path: Path) -> Naming:
    """Read `gsm8k_test.jsonl.gz` as benchmark gsm8k, split test; Hub shards by their folder."""
    if isinstance(path, Address):
        # Of a data set on the Hub, `@` and the revision are no part of the name.
        path = Path("/", *(part.partition("@")[0] or part for part in path.parts[1:]))
    # A name that is no UTF-8 could not be written into any table.
    path = Path(os.fsencode(path).decode(errors="backslashreplace"))
    stem = stem_of(path)
    shard = _SHARD.fullmatch(stem)
    if shard:
        stem = shard["stem"]
    if stem.lower() in SPLITS:
        return Naming(folder_name(path.parent) or stem, stem, shard is not None)
    for split in SPLITS:
        for gap in "_-.":
            head = stem[: -len(split) - 1]
            if head and stem.lower().endswith(gap + split):
                return Naming(head, stem[-len(split) :], split_sure=False)
    return Naming(stem, "", split_sure=False)


def stem_of(path: Path) -> str:
    """File name without the suffixes of format and compression."""
    name = path.name
    for suffix in reversed(path.suffixes):
        if suffix.lower() in PACKED or suffix.lower() in FORMATS:
            name = name[: -len(suffix)]
        else:
            break
    return name or path.name


def folder_name(folder: Path) -> str:
    """Name of the nearest folder that is not just called `data` or after a split."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        name = candidate.name
        if name.lower() not in _NO_NAMES and name.lower() not in SPLITS:
            return name
    return ""


FORMATS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""Suffix -> family of formats."""


def format_of(path: Path) -> str:
    """Family of formats by suffix, compression suffixes aside; "" when the suffix is unknown."""
    for suffix in reversed(path.suffixes):
        if suffix.lower() not in PACKED:
            return FORMATS.get(suffix.lower(), "")
    return ""
