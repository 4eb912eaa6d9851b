"""Read AUDIT.toml, what an audit is to check, and refuse what cannot be done."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - the validator reads the annotations of the fields
import os
import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from annotated_types import Ge

from contam.audit.overrides import overridden
from contam.audit.toml import UNKNOWN_KEY, describe_mistake, first_wrong, read_toml
from contam.errors import ConfigError, Place, Public, Remedy, UsageError
from contam.index.home import resolve_index
from contam.study.by_name import KINDS, paths_of, with_paths
from contam.study.by_name import checked as check_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOGETHER: Final = "together"
"""What all corpora as one are called; no corpus may have this name."""


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_STRICT: Final = {"extra": "forbid"}
Names = tuple[str, ...]
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSpec:
    """Training text: shards to scan, or an index to ask.

    stage  what it trains: "pretraining", "midtraining", "sft", or another word
    text   column of the document text, where the usual names do not find it
    id_column, url_column, date_column  those of a document's id, url and date, likewise
    exclude  patterns of shards to leave out on purpose, as `contam scan --exclude`
    cleaned  the clean.json of the `contam clean` that wrote these shards
    """

    __pydantic_config__: ClassVar = _STRICT

    name: str
    stage: str = "pretraining"
    paths: Names = ()
    index: Names = ()
    text: str | None = None
    id_column: str | None = None
    url_column: str | None = None
    date_column: str | None = None
    exclude: Names = ()
    allow_missing: bool = False
    cleaned: str | None = None

    @property
    def columns(self) -> dict[str, str] | None:
        """Field of a document -> the column that was named for it; None where none was."""
        named = {"id": self.id_column, "url": self.url_column, "date": self.date_column}
        return {field: name for field, name in named.items() if name is not None} or None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSpec:
    """Test sets: files, or what the logs hold.

    map       part of an item -> field of the rows
    released  the day the benchmark came out: a document that is older did not copy it
    decoys    these items were written after the corpora were: they are not reported, and what is
              found of them is chance
    """

    __pydantic_config__: ClassVar = _STRICT

    paths: Names = ()
    from_logs: bool = False
    name: str | None = None
    split: str | None = None
    map: dict[str, str] = field(default_factory=dict)
    released: dt.date | None = None
    decoys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsSpec:
    """Evaluations to score again.

    ours     models whose leads the release is about
    columns  role -> column of plain tables, as `contam rescore --columns`
    skip_damaged  leave out logs that are cut off, cancelled or damaged; the report names them
    metrics  METRIC or BENCHMARK=METRIC: the main metrics, as `contam rescore --metric`
    """

    __pydantic_config__: ClassVar = _STRICT

    paths: Names = ()
    ours: Names = ()
    references: Names = ()
    columns: dict[str, str] = field(default_factory=dict)
    allow_unmatched: bool = False
    allow_partial: bool = False
    skip_damaged: bool = False
    lower_is_better: Names = ()
    higher_is_better: Names = ()
    metrics: Names = ()
    mixed_setups: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What is known of a model: when its data ends, and which of the corpora it was trained on."""

    __pydantic_config__: ClassVar = _STRICT

    cutoff: dt.date | None = None
    corpora: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """One audit, with its paths made absolute.

    least    items a subset needs before anything is estimated from it
    decoys   decoys for each item in the calibration; 0 leaves it out
    waivers  reviewed false alarms and accepted leaks;  labels  what readers said of single items
    judged   what a judge said of them
    studies  name of a study -> its options, as `contam.study.by_name` has them
    written  absolute path -> as it was written, of those that were written as relative ones
    """

    __pydantic_config__: ClassVar = _STRICT

    title: str = "Contamination audit"
    out: str = ""
    policies: Names = ("contam",)
    seed: Annotated[int, Ge(0)] = 0
    least: Count = 50
    permutations: Annotated[int, Ge(99)] = 10_000
    max_evidence: Count = 20
    decoys: Annotated[int, Ge(0)] = 1
    no_text: bool = False
    waivers: str | None = None
    labels: Names = ()
    judged: Names = ()
    corpora: tuple[CorpusSpec, ...] = ()
    benchmarks: tuple[BenchmarkSpec, ...] = ()
    logs: LogsSpec = field(default_factory=LogsSpec)
    models: dict[str, ModelSpec] = field(default_factory=dict)
    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


def load_spec(
    path: str | Path, changes: Mapping[str, Any] | None = None, lines: Sequence[str] = ()
) -> AuditSpec:
    """Read AUDIT.toml; paths in it are relative to its folder.

    changes  fields of `AuditSpec` that flags replace; their paths are relative to the current one
    lines    single keys that flags replace, as `contam.audit.overrides` reads them

    Raises ConfigError naming the file and the key.
    """
    path = Path(path)
    tree = read_toml(path, remedy=Remedy.WRITE_BY_AUDIT_INIT)
    values = overridden(_flat(tree, str(path)), lines, _keys())
    spec = _absolute(_parse(values, str(path)), path.resolve().parent)
    return checked(replace(spec, **dict(changes or {})), str(path))


def make_spec(values: Mapping[str, Any], lines: Sequence[str] = ()) -> AuditSpec:
    """A spec from flags alone; `lines` as in `load_spec`. Raises ConfigError."""
    found = overridden({"models": {}, **values}, lines, _keys())
    return checked(_absolute(_parse(found, "the flags"), Path.cwd()), "the flags")


def _keys() -> dict[str, set[str]]:
    tables = {"corpus": CorpusSpec, "benchmark": BenchmarkSpec}
    return {name: {attribute.name for attribute in fields(kind)} for name, kind in tables.items()}


def checked(spec: AuditSpec, origin: str) -> AuditSpec:
    """The spec, if an audit can be made of it. Raises ConfigError."""
    if not spec.out:
        raise ConfigError("{}: no folder for the pack", Place(origin), remedy=Remedy.GIVE_OUT)
    if not spec.corpora:
        raise ConfigError("{}: no corpus", Place(origin), remedy=Remedy.ADD_CORPUS_TABLE)
    if all(each.decoys for each in spec.benchmarks):
        raise ConfigError("{}: no benchmark", Place(origin), remedy=Remedy.ADD_BENCHMARK_TABLE)
    names = [corpus.name for corpus in spec.corpora]
    for corpus in spec.corpora:
        if not _NAME.fullmatch(corpus.name) or corpus.name == TOGETHER:
            raise ConfigError(
                "{}: a corpus cannot be called {!r}",
                Place(origin),
                corpus.name,
                remedy=Remedy.USE_PLAIN_CORPUS_NAME,
            )
        if bool(corpus.paths) == bool(corpus.index):
            raise ConfigError(
                "{}: corpus {} needs paths or an index, and not both",
                Place(origin),
                corpus.name,
                remedy=Remedy.GIVE_PATHS_OR_INDEX,
            )
        if corpus.cleaned and corpus.index:
            raise ConfigError(
                "{}: corpus {}: `cleaned` goes with paths, whose shards are compared with it",
                Place(origin),
                corpus.name,
                remedy=Remedy.GIVE_PATHS_OR_INDEX,
            )
    if len(set(names)) != len(names):
        raise ConfigError(
            "{}: two corpora share one name", Place(origin), remedy=Remedy.NAME_EACH_ONCE
        )
    _check_benchmarks(spec, origin)
    for name, options in spec.studies.items():
        check_study(name, options, origin)
    for model, stated in spec.models.items():
        if unknown := set(stated.corpora) - set(names):
            raise ConfigError(
                "{}: model {} was trained on {}, which is no corpus here",
                Place(origin),
                model,
                min(unknown),
                remedy=Remedy.CHOOSE_CORPUS(known=", ".join(names)),
            )
    return spec


def _check_benchmarks(spec: AuditSpec, origin: str) -> None:
    for each in spec.benchmarks:
        if bool(each.paths) == each.from_logs:
            raise ConfigError(
                "{}: a benchmark needs paths or from_logs = true, and not both", Place(origin)
            )
        if each.from_logs and not spec.logs.paths:
            raise ConfigError(
                "{}: from_logs, and there are no logs", Place(origin), remedy=Remedy.ADD_LOGS_TABLE
            )


def _flat(tree: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The tables of the file as the fields of a spec."""
    known = ("audit", "corpus", "benchmark", "logs", "model", "study")
    if unknown := set(tree).difference(known):
        raise ConfigError(
            "{}: there is no table [{}]",
            Place(origin),
            min(unknown),
            remedy=Remedy.USE_KNOWN_TABLES(known=Public(", ".join(known))),
        )
    values = _listed(dict(tree.get("audit", {})), "policies", "labels", "judged")
    if clash := set(values) & {"corpora", "benchmarks", "logs", "models", "studies"}:
        raise ConfigError(
            "{}: [audit] has no key {}", Place(origin), min(clash), remedy=Remedy.IT_IS_A_TABLE
        )
    for table, name in (("corpus", "corpora"), ("benchmark", "benchmarks")):
        entries = tree.get(table, [])
        if not isinstance(entries, list):
            raise ConfigError("{}: write [[{}]], with two brackets", Place(origin), table)
        values[name] = [_listed(entry, "paths", "index") for entry in entries]
    models = tree.get("model", {})
    if isinstance(models, dict):
        models = {name: _listed(stated, "corpora") for name, stated in models.items()}
    return {
        **values,
        "logs": _listed(tree.get("logs", {}), "paths", "ours", "references"),
        "models": models,
        "studies": tree.get("study", {}),
    }


def _listed(table: Any, *names: str) -> Any:  # noqa: ANN401 - whatever the file says
    """The table with a list of one where it says one text: `paths = "corpus"`."""
    if not isinstance(table, dict):
        return table
    return {
        key: [value] if key in names and isinstance(value, str) else value
        for key, value in table.items()
    }


def _parse(values: dict[str, Any], origin: str) -> AuditSpec:
    from pydantic import TypeAdapter, ValidationError

    if "written" in values:
        raise ConfigError(
            "{}: [audit]: written: {}",
            Place(origin),
            Public(describe_mistake({"type": UNKNOWN_KEY})),
            remedy=Remedy.SEE_AUDIT_GUIDE,
        )
    try:
        return TypeAdapter(AuditSpec).validate_python(values)
    except ValidationError as error:
        first = first_wrong(error)
        table, key = _place(first["loc"])
        said = [part for part in (table, key, describe_mistake(first)) if part]
        raise ConfigError(
            "{}: " + ": ".join(["{}"] * len(said)),
            Place(origin),
            *said,
            remedy=Remedy.SEE_AUDIT_GUIDE,
        ) from error


def _place(loc: Sequence[int | str]) -> tuple[str, str]:
    """(table as the file writes it, key in it)."""
    first, *rest = loc
    name = {"corpora": "corpus", "benchmarks": "benchmark"}.get(str(first))
    if name and rest:
        return f"[[{name}]] number {int(rest[0]) + 1}", ".".join(map(str, rest[1:]))
    if first == "models" and rest:
        return f'[model."{rest[0]}"]', ".".join(map(str, rest[1:]))
    if first == "studies":
        return "[study]", ".".join(map(str, rest))
    if first == "logs":
        return "[logs]", ".".join(map(str, rest))
    return "[audit]", ".".join(map(str, loc))


def _absolute(spec: AuditSpec, base: Path) -> AuditSpec:
    return replace(
        spec,
        written={_one(path, base): os.path.normpath(path) for path in _relative(spec)},
        out=_one(spec.out, base) if spec.out else "",
        waivers=_one(spec.waivers, base) if spec.waivers else None,
        labels=_all(spec.labels, base),
        judged=_all(spec.judged, base),
        corpora=tuple(
            replace(
                corpus,
                paths=_all(corpus.paths, base),
                index=_indexes(corpus.index, base),
                cleaned=_one(corpus.cleaned, base) if corpus.cleaned else None,
            )
            for corpus in spec.corpora
        ),
        benchmarks=tuple(
            replace(benchmark, paths=_all(benchmark.paths, base)) for benchmark in spec.benchmarks
        ),
        logs=replace(spec.logs, paths=_all(spec.logs.paths, base)),
        studies={
            name: with_paths(name, options, lambda path: _one(path, base))
            if name in KINDS
            else options
            for name, options in spec.studies.items()
        },
    )


def _relative(spec: AuditSpec) -> Iterator[str]:
    indexes = (name for corpus in spec.corpora for name in corpus.index)
    records = (corpus.cleaned for corpus in spec.corpora)
    others = (path for path in (spec.waivers, *spec.labels, *spec.judged, *records) if path)
    paths = (*data_paths(spec), *indexes, *others)
    yield from (path for path in paths if "://" not in path and not Path(path).is_absolute())


def data_paths(spec: AuditSpec) -> Iterator[str]:
    """The paths of corpora, benchmarks, logs and studies, which may hold wildcards."""
    for corpus in spec.corpora:
        yield from corpus.paths
    for benchmark in spec.benchmarks:
        yield from benchmark.paths
    yield from spec.logs.paths
    for name, options in spec.studies.items():
        if name in KINDS:
            yield from paths_of(name, options)


def _one(path: str, base: Path) -> str:
    return path if "://" in path else os.path.normpath(base / path)


def _all(paths: Sequence[str], base: Path) -> Names:
    return tuple(_one(path, base) for path in paths)


def _indexes(names: Sequence[str], base: Path) -> Names:
    """Bare names are those in the home of indexes, unless a folder of that name is here."""
    return tuple(
        _one(name, base) if (base / name).is_dir() or not _at_home(name) else name for name in names
    )


def _at_home(name: str) -> bool:
    try:
        return os.sep not in name and resolve_index(name).is_dir()
    except UsageError:
        return False
