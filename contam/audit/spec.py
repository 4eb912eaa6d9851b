"""Read AUDIT.toml, refuse what cannot be done, and name its inputs without their folders.

A pack is handed on, and its digest must be the same wherever it is made. A path keeps its name if
it was written as a relative one; of an absolute one only the last name is published. A shard is
named by its corpus: `web/part-000.parquet`.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - the validator reads the annotations of the fields
import glob
import json
import os
import re
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from annotated_types import Ge
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError, ValidationInfo

from contam.benchmark import catalogue
from contam.benchmark.named import gated_among, is_name
from contam.corpus.columns import NAMEABLE
from contam.corpus.shards import survey
from contam.corpus.tokens import said, settled
from contam.detect.show.reread import sources_file
from contam.errors import ConfigError, Hint, Place, Plain, Statement, UsageError
from contam.files.single import reading, write_file
from contam.index.open import Index, resolve_index
from contam.study.by_name import KINDS, RELEASED, paths_of, with_paths
from contam.study.by_name import checked as check_study
from contam.text.token_ids import tokenizer_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


UNKNOWN_KEY: Final = "unexpected_keyword_argument"


def read_toml(path: Path, *, hint: Hint) -> dict[str, Any]:
    """The tables of a file. Raises ConfigError; `hint` is for one that cannot be read."""
    try:
        with reading(path, ConfigError, hint):
            return tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "{} is not TOML: {}", path, Plain(error), hint="mend that line"
        ) from error


def spec_error(origin: str, said: str, *facts: object, hint: Hint = ()) -> ConfigError:
    """The error for what a file says; `origin` is that file."""
    return ConfigError("{}: " + said, Place(origin), *facts, hint=hint)


def first_wrong(error: ValidationError) -> dict[str, Any]:
    """The mistake to name: a key that there is not, before the one it may have been meant to be."""
    found: list[Any] = error.errors(include_input=False, include_url=False)
    unknown = [mistake for mistake in found if mistake["type"] == UNKNOWN_KEY]
    return dict((unknown or found)[0])


def describe_mistake(mistake: Mapping[str, Any]) -> str:
    """What is wrong, as the validator says it: `should be a valid integer`."""
    if mistake["type"] == UNKNOWN_KEY:
        return "there is no such key"
    if mistake["type"] == "tuple_type" and len(mistake["loc"]) == 1:
        return f"write [[{mistake['loc'][0]}]], with two brackets"
    if mistake["type"] == "union_tag_not_found":
        return f"needs {mistake['ctx']['discriminator']}"
    return str(mistake["msg"]).removeprefix("Input ")


TOGETHER: Final = "together"
"""What all corpora as one are called; no corpus may have this name."""


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_STRICT: Final = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class _Here:
    """What paths lead to.

    base     the folder of AUDIT.toml
    written  where its relative paths lead -> as they were written
    secret   names of gated benchmarks, also those that are paths of copies
    """

    base: Path
    written: dict[str, str]
    secret: list[str]

    def within(self, path: str) -> str:
        return path if "://" in path else os.path.normpath(self.base / path)

    def whole(self, path: str) -> str:
        where = self.within(path)
        if "://" not in path and not Path(path).is_absolute():
            self.written[where] = os.path.normpath(path)
        return where

    def index(self, name: str) -> str:
        """Bare names are those in the home of indexes, unless a folder of that name is here."""
        where = self.whole(name)
        return where if (self.base / name).is_dir() or not _at_home(name) else name

    def tokenizer(self, name: str) -> str:
        """A file or folder, else a name in the cache of the Hub."""
        where = self.within(name)
        found = str(tokenizer_file(where if Path(where).exists() else name))
        if not Path(name).is_absolute():
            self.written[found] = name
        return found

    def benchmark(self, name: str) -> str:
        """Names of the catalogue are no paths, unless a file of that name is here."""
        if (entry := catalogue.find(name)) and entry.gated:
            self.secret.append(name)
        return name if is_name(name) and not (self.base / name).exists() else self.whole(name)

    def study(self, path: str) -> str:
        return path if path == RELEASED and not (self.base / path).exists() else self.whole(path)


def _made(absolute: Callable[[_Here, str], str]) -> AfterValidator:
    def whole(path: str, told: ValidationInfo) -> str:
        return absolute(told.context, path) if path and told.context else path

    return AfterValidator(whole)


#: One text is a list of one: `paths = "corpus"`.
_LIST: Final = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Names = Annotated[tuple[str, ...], _LIST]
#: An empty text says what no key says.
_GIVEN: Final = BeforeValidator(lambda value: None if value == "" else value)
OnePath = Annotated[str, _made(_Here.whole)]
Paths = Annotated[tuple[OnePath, ...], _LIST]
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSpec:
    """Training text: shards to scan, or an index to ask.

    stage  what it trains: "pretraining", "midtraining", "sft", or another word
    text   column of the document text, where the usual names do not find it
    id_column, url_column, date_column, source_column  those that tell of a document, likewise
    tokenizer, special, token_bytes  how token ids are read, as `contam scan --tokenizer`
    exclude  patterns of shards to leave out on purpose, as `contam scan --exclude`
    cleaned  the clean.json of the `contam clean` that wrote these shards
    """

    __pydantic_config__: ClassVar = _STRICT

    name: str
    stage: str = "pretraining"
    paths: Paths = ()
    index: Annotated[tuple[Annotated[str, _made(_Here.index)], ...], _LIST] = ()
    text: str | None = None
    id_column: str | None = None
    url_column: str | None = None
    date_column: str | None = None
    source_column: str | None = None
    tokenizer: Annotated[Annotated[str, _made(_Here.tokenizer)] | None, _GIVEN] = None
    special: str | int | tuple[int, ...] | None = None
    token_bytes: str | int | None = None
    exclude: Names = ()
    allow_missing: bool = False
    cleaned: Annotated[OnePath | None, _GIVEN] = None

    @property
    def columns(self) -> dict[str, str] | None:
        """Field of a document -> the column that was named for it; None where none was."""
        named: dict[str, Any] = {name: getattr(self, f"{name}_column") for name in NAMEABLE}
        named |= {name: getattr(self, name) for name in ("tokenizer", "special", "token_bytes")}
        told = {field: said(name) for field, name in named.items() if name is not None}
        return told | settled(told) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSpec:
    """Test sets: files, or what the logs hold.

    paths     files, or names of the catalogue;  entry  the entry of it that files are read by
    map       part of an item -> field of the rows;  ignore  fields that are no part of an item
    include_path  folders with tasks of one's own, for lm-eval:TASK
    released  the day the benchmark came out: a document that is older did not copy it
    decoys    these items were written after the corpora were: they are not reported, and what is
              found of them is chance
    """

    __pydantic_config__: ClassVar = _STRICT

    paths: Annotated[tuple[Annotated[str, _made(_Here.benchmark)], ...], _LIST] = ()
    entry: str | None = None
    from_logs: bool = False
    name: str | None = None
    split: str | None = None
    map: dict[str, str] = field(default_factory=dict)
    ignore: Names = ()
    include_path: Paths = ()
    released: dt.date | None = None
    decoys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsSpec:
    """Evaluations to score again.

    ours     models whose leads the release is about
    field    logs of other models, as `contam rescore --field`
    columns  role -> column of plain tables, as `contam rescore --columns`
    benchmark_as  a log's name of its benchmark -> that of the items, where they differ
    skip_damaged  leave out logs that are cut off, cancelled or damaged; the report names them
    metrics  METRIC or BENCHMARK=METRIC: the main metrics, as `contam rescore --metric`
    """

    __pydantic_config__: ClassVar = _STRICT

    paths: Paths = ()
    ours: Names = ()
    references: Names = ()
    columns: dict[str, str] = field(default_factory=dict)
    benchmark_as: dict[str, str] = field(default_factory=dict)
    allow_unmatched: bool = False
    allow_partial: bool = False
    skip_damaged: bool = False
    lower_is_better: Names = ()
    higher_is_better: Names = ()
    metrics: Names = ()
    mixed_setups: bool = False
    field: Paths = ()


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
    accept   what a person accepted of the flags;  labels  what readers said of single items
    judged   what a judge said of them
    studies  name of a study -> its options, as `contam.study.by_name` has them
    written  absolute path -> as it was written, of those that were written as relative ones
    """

    __pydantic_config__: ClassVar = _STRICT

    title: str = "Contamination audit"
    out: Annotated[str, _made(_Here.within)] = ""
    policies: Names = ("contam",)
    seed: Annotated[int, Ge(0)] = 0
    least: Count = 50
    permutations: Annotated[int, Ge(99)] = 10_000
    max_evidence: Count = 20
    decoys: Annotated[int, Ge(0)] = 1
    no_text: bool = False
    accept: Annotated[OnePath | None, _GIVEN] = None
    labels: Paths = ()
    judged: Paths = ()
    corpora: tuple[CorpusSpec, ...] = ()
    benchmarks: tuple[BenchmarkSpec, ...] = ()
    logs: LogsSpec = field(default_factory=LogsSpec)
    models: dict[str, ModelSpec] = field(default_factory=dict)
    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """The tables of AUDIT.toml, under the names that they have there."""

    __pydantic_config__: ClassVar = _STRICT

    audit: AuditSpec = field(default_factory=AuditSpec)
    corpus: tuple[CorpusSpec, ...] = ()
    benchmark: tuple[BenchmarkSpec, ...] = ()
    logs: LogsSpec = field(default_factory=LogsSpec)
    model: dict[str, ModelSpec] = field(default_factory=dict)
    study: dict[str, dict[str, Any]] = field(default_factory=dict)


#: Fields of the spec that tables of their own give, and one that none does.
_NO_KEYS: Final = {"corpora", "benchmarks", "logs", "models", "studies", "written"}


def load_spec(path: str | Path) -> AuditSpec:
    """Read AUDIT.toml; paths in it are relative to its folder.

    Raises ConfigError naming the file and the key.
    """
    path = Path(path)
    tree = read_toml(path, hint="`contam audit init` writes one")
    hint: Hint = "`contam audit init` writes a file with every key"
    here = _Here(path.resolve().parent, {}, [])
    own = tree.get("audit")
    if isinstance(own, dict) and (wrong := sorted(own.keys() & _NO_KEYS)):
        raise spec_error(str(path), "[audit]: {}: there is no such key", wrong[0], hint=hint)
    try:
        read = TypeAdapter(_Tables).validate_python(tree, context=here)
    except ValidationError as error:
        first = first_wrong(error)
        table, *rest = map(str, first["loc"])
        place = f"[{table}]"
        if rest and table in {"corpus", "benchmark"}:
            place = f"[[{table}]] number {int(rest.pop(0)) + 1}"
        elif rest and table == "model":
            place = f'[model."{rest.pop(0)}"]'
        said = [*filter(None, (place, ".".join(rest))), describe_mistake(first)]
        raise spec_error(str(path), ": ".join(["{}"] * len(said)), *said, hint=hint) from error
    spec = replace(
        read.audit,
        corpora=read.corpus,
        benchmarks=read.benchmark,
        no_text=read.audit.no_text
        or bool(here.secret)
        or any(gated_among(given_paths(each)) for each in read.benchmark),
        logs=read.logs,
        models=read.model,
        studies={
            name: with_paths(name, options, here.study) if name in KINDS else options
            for name, options in read.study.items()
        },
        written=here.written,
    )
    return checked(spec, str(path))


def checked(spec: AuditSpec, origin: str) -> AuditSpec:
    """The spec, if an audit can be made of it. Raises ConfigError."""

    def refuse(wrong: object, said: str, *facts: object, hint: Hint = ()) -> None:
        if wrong:
            raise spec_error(origin, said, *facts, hint=hint)

    refuse(not spec.out, "no folder for the pack", hint="give out, or --out")
    refuse(not spec.corpora, "no corpus", hint="add a [[corpus]] with paths or an index")
    refuse(
        all(each.decoys for each in spec.benchmarks),
        "no benchmark",
        hint="add a [[benchmark]] with paths, or from_logs = true",
    )
    scanned = "paths are scanned, an index is asked"
    names = [corpus.name for corpus in spec.corpora]
    for corpus in spec.corpora:
        refuse(
            not _NAME.fullmatch(corpus.name) or corpus.name == TOGETHER,
            "a corpus cannot be called {!r}",
            corpus.name,
            hint="letters, digits, dots, dashes and underscores, and not `together`",
        )
        both = "corpus {} needs paths or an index, and not both"
        refuse(bool(corpus.paths) == bool(corpus.index), both, corpus.name, hint=scanned)
        alone = "corpus {}: `cleaned` goes with paths, whose shards are compared with it"
        refuse(corpus.cleaned and corpus.index, alone, corpus.name, hint=scanned)
    refuse(len(set(names)) != len(names), "two corpora share one name", hint="name each once")
    for each in spec.benchmarks:
        both = "a benchmark needs paths or from_logs = true, and not both"
        refuse(bool(each.paths) == each.from_logs, both)
        if each.entry and catalogue.find(each.entry) is None:
            hint = catalogue.ways(each.entry)
            raise spec_error(origin, "no benchmark is called {!r}", each.entry, hint=hint)
        lacking = each.from_logs and not spec.logs.paths
        refuse(lacking, "from_logs, and there are no logs", hint="add [logs]")
    for name, options in spec.studies.items():
        check_study(name, options, origin)
    for model, stated in spec.models.items():
        unknown = sorted(set(stated.corpora) - set(names))
        said = "model {} was trained on {}, which is no corpus here"
        known = Statement("corpora: {}", ", ".join(names))
        refuse(unknown, said, model, *unknown[:1], hint=known)
    return spec


def given_paths(benchmark: BenchmarkSpec) -> list[str]:
    """The paths of a benchmark as `--benchmark` takes them."""
    by = f"{benchmark.entry}=" if benchmark.entry else ""
    return [by + path for path in benchmark.paths]


def data_paths(spec: AuditSpec) -> Iterator[str]:
    """The paths of corpora, benchmarks, logs and studies, which may hold wildcards."""
    for corpus in spec.corpora:
        yield from corpus.paths
    for benchmark in spec.benchmarks:
        yield from benchmark.paths
    yield from (*spec.logs.paths, *spec.logs.field)
    for name, options in spec.studies.items():
        if name in KINDS:
            yield from paths_of(name, options)


def _at_home(name: str) -> bool:
    try:
        return os.sep not in name and resolve_index(name).is_dir()
    except UsageError:
        return False


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
        indexed = (one for name in corpus.index for one in Index.open(name).records)
        records = [one for one in indexed if one is not None]
        shards = records if corpus.index else survey(list(corpus.paths))[0]
        found[corpus.name] = sorted({folder_of(one.uri, one.name) for one in shards} - {""})
        for told in (corpus.columns or {}, *(one.columns or {} for one in records)):
            if "tokenizer" in told:
                found[told["tokenizer_sha256"]] = [told["tokenizer"]]
    data = json.dumps(found, indent=1).encode("ascii") + b"\n"
    write_file(sources_file(folder), data, overwrite=True)


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
