"""Read the documents of evidence again, if their shards are unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from contam.corpus.columns import select_columns
from contam.corpus.documents import read_documents
from contam.corpus.shards import Shard, seen
from contam.corpus.tokens import following_of
from contam.detect.given import IN_MEMORY
from contam.errors import CorpusError, ShardError
from contam.files.addresses import Address, is_address
from contam.files.listed import state_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Document

Place: TypeAlias = tuple[str, int]
"""A document: shard name and row."""

_DEPTH: Final = 2
"""Folders between a pack and a result in it: `checks/web`."""

_SEAL: Final = "manifest.json"
"""The file by which the folder of a pack is known."""


class Library:
    """Documents by (shard name, row), read from the shards that the run used."""

    def __init__(self, run: dict[str, Any], folder: Path | None = None) -> None:
        """The shards of a run, and the folder of its result where it may be part of a pack."""
        self._noted, self._homes = _noted_sources(folder) if folder is not None else (None, {})
        shards = run.get("inputs", {}).get("shards", [])
        self._shards: dict[str, dict[str, Any]] = {shard["name"]: shard for shard in shards}
        self._order = [_shard(one, one["uri"]) for one in shards]
        self._column: str | None = run.get("parameters", {}).get("text")
        self._columns: dict[str, str] | None = run.get("parameters", {}).get("columns")
        self._opened: dict[str, tuple[Shard, Selection] | str] = {}
        self._documents: dict[Place, Document] = {}
        self._problems: dict[str, str] = {}

    def fetch(self, places: Iterable[Place]) -> None:
        """Read these documents and forget those read before."""
        rows_by_shard: dict[str, set[int]] = {}
        for name, row in places:
            rows_by_shard.setdefault(name, set()).add(row)
        self._documents.clear()
        for name, rows in sorted(rows_by_shard.items()):
            opened = self.shard(name)
            if isinstance(opened, str):
                self._problems[name] = opened
                continue
            shard, selection = opened
            order = sorted(rows)
            try:
                found = read_documents(shard, selection, order)
            except (CorpusError, ShardError) as error:
                self._problems[name] = error.message
                continue
            for row, document in zip(order, found, strict=True):
                self._documents[name, row] = document

    def document(self, place: Place) -> Document | None:
        """A fetched document; None when it cannot be read as it was."""
        return self._documents.get(place)

    def problem(self, place: Place) -> str | None:
        """Why a document cannot be read."""
        return None if place in self._documents else self._problems[place[0]]

    def shard(self, name: str) -> tuple[Shard, Selection] | str:
        """A shard of the run and its columns, or why it cannot be read as it was."""
        if name not in self._opened:
            self._opened[name] = self._check(name)
        return self._opened[name]

    def _check(self, name: str) -> tuple[Shard, Selection] | str:
        known = self._shards.get(name)
        if known is None:
            return f"shard {name} is not among the inputs in run.json"
        uri = self.place(known["uri"])
        shard = _shard(known, uri)
        try:
            size = state_at(uri).size
            now, digest = seen(shard)
            if size != shard.size_bytes or digest != known["digest"]:
                return self._elsewhere(uri) or f"shard {uri} has changed since the scan"
            told = dict(known.get("columns", self._columns) or {})
            if places := self._homes.get(told.get("tokenizer_sha256", "")):
                told["tokenizer"] = places[0]
            number = next(n for n, one in enumerate(self._order) if one.name == name)
            return now, select_columns(
                shard,
                known.get("column", self._column),
                told if "following" in told else following_of(self._order, number, told),
            )
        except FileNotFoundError:
            return self._elsewhere(uri) or f"shard {uri} is gone"
        except OSError as error:
            return f"shard {uri} cannot be read: {error.strerror}"
        except (CorpusError, ShardError) as error:
            return error.message

    def place(self, uri: str) -> str:
        """Where a shard is; a pack names it by its corpus: `web/part-000.parquet`."""
        corpus, _, name = uri.partition("/")
        homes = self._homes.get(corpus, ()) if corpus else ()
        places = [f"{home}/{name}" for home in homes]
        there = [place for place in places if is_address(place) or Path(place).exists()]
        return (*there, *places, uri)[0]

    def _elsewhere(self, uri: str) -> str:
        """Why there is no file: packs and records of a service name their shards without paths."""
        if is_address(uri) or Path(uri).is_absolute():
            return ""
        if uri.startswith(IN_MEMORY):
            return f"shard {uri} was a table in the memory of the program that scanned it"
        if self._noted is not None:
            return f"no folder of shard {uri} is noted in {self._noted}"
        return f"the service that was asked has shard {uri}; run this in the folder that holds it"


def _shard(known: dict[str, Any], uri: str) -> Shard:
    return Shard(
        uri=uri, name=known["name"], format=known["format"], size_bytes=known["size_bytes"]
    )


def sources_file(pack: Path) -> Path:
    """The file beside a pack that says in which folders the shards of its corpora are.

    JSON: the name of a corpus -> folders, and the digest of a tokenizer -> its file. It is no
    part of the pack, which is handed on.
    """
    return pack.with_name(f"{pack.name}.sources.json")


def _noted_sources(folder: Path) -> tuple[Path | None, dict[str, list[str]]]:
    """The file of the pack that a result is in, None outside of packs, and what it says."""
    if isinstance(folder, Address):
        return None, {}
    folder = folder.absolute()
    for pack in (folder, *folder.parents[:_DEPTH]):
        noted = sources_file(pack) if pack.name else None
        if noted is None or not (noted.is_file() or (pack / _SEAL).is_file()):
            continue
        try:
            found = json.loads(noted.read_bytes())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            return noted, {}
        return noted, {
            corpus: [str(home) for home in homes]
            for corpus, homes in found.items()
            if isinstance(homes, list)
        }
    return None, {}
