"""Name the inputs of an audit without their folders, and note beside a pack where they are.

A pack is handed on, and its digest must be the same wherever it is made. A path keeps its name if
it was written as a relative one; of an absolute one only the last name is published. A shard is
named by its corpus: `web/part-000.parquet`.
"""

from __future__ import annotations

import glob
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from contam.audit.spec import data_paths
from contam.corpus.shards import survey
from contam.detect.show.reread import sources_file
from contam.files.single import write_file
from contam.index.home import resolve_index
from contam.index.open import Index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contam.audit.spec import AuditSpec, CorpusSpec


def public(value: Any, spec: AuditSpec, corpora: Mapping[str, str] = MappingProxyType({})) -> Any:  # noqa: ANN401 - JSON is any of its types
    """A JSON value with names, in all its texts, instead of the places that an audit reads.

    corpora  folder of shards -> name of the corpus, of folders that the audit does not name
    """
    named = {**corpora, **_names(spec)}
    paths = sorted((path for path in named if path.startswith("/")), key=len, reverse=True)
    # A path that goes on, `/data/web-2` or `/data/web.zip`, is another one.
    found = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, paths))})(?![\w-]|\.\w)")

    def told(value: Any) -> Any:  # noqa: ANN401 - as above
        if isinstance(value, str):
            return found.sub(lambda at: named[at[0]], value)
        if isinstance(value, list | tuple):
            return [told(entry) for entry in value]
        if isinstance(value, dict):
            return {told(str(key)): told(entry) for key, entry in value.items()}
        return value

    return told(value)


def public_run(run: Mapping[str, Any], spec: AuditSpec, corpus: str) -> dict[str, Any]:
    """What a check recorded of itself, with names instead of places."""
    shards = run["inputs"]["shards"]
    folders = {folder_of(shard["uri"], shard["name"]) for shard in shards} - {""}
    named: dict[str, Any] = public(dict(run), spec, dict.fromkeys(folders, corpus))
    for shard in named["inputs"]["shards"]:
        shard["uri"] = f"{corpus}/{shard['name']}"
        if "tokenizer" in (told := shard.get("columns") or {}):
            told["tokenizer"] = _last(told["tokenizer"])
    return named


def public_parameters(spec: AuditSpec) -> dict[str, Any]:
    """The settings of an audit; where it was made is none of them."""
    plain = json.loads(json.dumps({**asdict(spec), "out": ""}, default=str))
    del plain["written"]
    named: dict[str, Any] = public(plain, spec)
    return named


def _names(spec: AuditSpec) -> dict[str, str]:
    """The names of all paths of an audit; those that end alike are told apart by a number."""
    names: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for path, name in _roots(spec):
        if path not in names:
            taken[name] += 1
            names[path] = name if taken[name] == 1 else f"{name} ({taken[name]})"
    return {spec.out: "pack", f"{spec.out}.work": "pack", **names}


def folder_of(uri: str, name: str) -> str:
    """The folder that a shard's name is relative to; "" where its path does not end in its name."""
    return uri.removesuffix(name).rstrip("/") if uri.endswith(f"/{name}") else ""


def note_sources(folder: Path, corpora: Iterable[CorpusSpec]) -> None:
    """Note beside a folder where its shards and tokenizers are, for `contam.detect.show.reread`."""
    found = {}
    for corpus in corpora:
        found[corpus.name] = sorted(_folders(corpus) - {""})
        records = [one for name in corpus.index for one in Index.open(name).records]
        for told in (corpus.columns or {}, *((one and one.columns) or {} for one in records)):
            if "tokenizer" in told:
                found[told["tokenizer_sha256"]] = [told["tokenizer"]]
    data = json.dumps(found, indent=1).encode("ascii") + b"\n"
    write_file(sources_file(folder), data, overwrite=True)


def _folders(corpus: CorpusSpec) -> set[str]:
    if not corpus.index:
        return {folder_of(shard.uri, shard.name) for shard in survey(list(corpus.paths))[0]}
    return {
        folder_of(record.uri, record.name)
        for name in corpus.index
        for record in Index.open(name).records
        if record is not None
    }


def _roots(spec: AuditSpec) -> Iterator[tuple[str, str]]:
    """Every path that is read, without what follows a wildcard, and what it is called."""
    for path in data_paths(spec):
        written = spec.written.get(path)
        fixed = _fixed(path)
        yield fixed, _fixed(written) if written else _last(fixed)
    indexes = [(str(resolve_index(name)), name) for each in spec.corpora for name in each.index]
    records = [path for each in spec.corpora for path in (each.cleaned, each.tokenizer)]
    others = [(path, path) for path in (spec.accept, *spec.labels, *spec.judged, *records) if path]
    for path, name in (*indexes, *others):
        yield path, spec.written.get(name) or _last(path)


def _fixed(path: str) -> str:
    """The folders of a path that are before any wildcard."""
    if not glob.has_magic(path) or Path(path).exists():
        return path
    parts = Path(path).parts
    depth = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:depth]))


def _last(path: str) -> str:
    return Path(path).name or path
