"""Find, name and open the files that hold items among the paths a user gives."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson

from contam.benchmark.items import SkippedRow
from contam.errors import BenchmarkError, CorpusError, Place, Public, UsageError
from contam.files.addresses import Address, is_address, refuse_address
from contam.files.compression import DamagedError, codec_of, unpack
from contam.files.listed import LFS_FACT, LFS_HEAD
from contam.files.natural_order import natural_key
from contam.files.single import irregular, open_file, read_file, reading

if TYPE_CHECKING:
    from contam.benchmark.catalogue import Entry
    from contam.errors import ContamError, Hint


def expanded(
    paths: Sequence[str | Path], what: str, error_kind: type[ContamError]
) -> Iterator[Path]:
    """Each path that is there, and what the others match as patterns.

    what  "benchmark" or "log", for the messages. Raises `error_kind` for a path that is not there,
    cannot be looked at, or is a pipe or device; UsageError for an empty one.
    """
    for given in paths:
        if not str(given):
            # Path("") is the current folder; an unset shell variable must not mean what lies there.
            raise UsageError(
                "a {} path is empty", Public(what), hint="check the variable it came from"
            )
        if what != "benchmark":
            refuse_address(given, f"a {what}")
        path = Path(given)
        try:
            there = path.exists()
        except OSError as error:  # a folder on the way is closed, or the name is too long
            reason = error.strerror or type(error).__name__
            raise error_kind(
                "cannot read {}: {}", path, Public(reason), hint="check the path and its rights"
            ).of_call() from error
        # Names may hold brackets and bars: what is there is no pattern.
        if there:
            refuse_pipe(path, error_kind)
            yield path
            continue
        # Unlike Path.glob, this takes absolute patterns and `**` within one string.
        pattern = str(path)
        matches = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []  # noqa: PTH207
        if not matches:
            hint: Hint = "check the path and its rights"
            if what == "benchmark":
                from contam.benchmark.catalogue import ways

                hint = ways(pattern)
            # It may be a text of an item: of that nothing is quoted where nothing may be.
            fact = str(path) if any(map(str.isspace, pattern)) else path
            raise error_kind("no such {}: {}", Public(what), fact, hint=hint).of_call()
        for match in map(Path, sorted(matches, key=natural_key)):
            refuse_pipe(match, error_kind)
            yield match


def hidden_files(entry: Path) -> str:
    """What to say of a hidden folder that holds files of a known format; "" for anything else."""
    names = (name for _, _, files in os.walk(entry) for name in files)
    known = any(format_of(Path(name)) or name.endswith(".eval") for name in names)
    return "a folder whose name begins with a dot, not read" if known else ""


def passed_over(entry: Path, folder: Path) -> str | None:
    """Why an entry below a folder is not read as a log, "" where nothing need be said.

    None for one that is looked at. A table of contam's own result has columns of numbers, too.
    """
    hidden = [part.startswith(".") for part in entry.relative_to(folder).parts]
    if any(hidden):
        return "" if any(hidden[:-1]) else hidden_files(entry)
    is_own = all((entry.parent / name).exists() for name in ("run.json", "verdicts.parquet"))
    return "a result of contam, no log" if is_own else None


def refuse_pipe(path: Path, error_kind: type[ContamError]) -> None:
    """Raise for a pipe, a socket or a device, before anybody opens it and waits."""
    if fact := irregular(path):
        raise error_kind(
            "{}: {}",
            path,
            Public(fact),
            hint="files are read more than once: write it to a file first, and name that",
        )


_SPLITS = "auxiliary_train validation holdout train valid test eval dev val"
# Longest first, so that a name ending in auxiliary_train is not read as ending in train.
SPLITS = tuple(_SPLITS.split())
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
        if suffix.lower() in SUFFIXES or suffix.lower() in FORMATS:
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


GIVE_ROWS = (
    "formats: JSONL, JSON, CSV, TSV, Parquet, Arrow, saved datasets folders; of anything else, such"
    " as a text file an item, make JSONL: a line an item, with its id, question and answer"
)


def format_of(path: Path) -> str:
    """Family of formats by suffix, compression suffixes aside; "" when the suffix is unknown."""
    for suffix in reversed(path.suffixes):
        if suffix.lower() not in SUFFIXES:
            return FORMATS.get(suffix.lower(), "")
    return ""


SUFFIXES = frozenset({".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"})
#: As results and messages have always called the codecs.
_NAMES = {"gzip": "gzip", "zstd": "zstd", "bz2": "bzip2", "xz": "xz"}


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A whole file: its unpacked bytes, the digest and size of what is on disk, and the codec."""

    data: bytes
    sha256: str
    size: int
    codec: str


def read_unpacked(path: Path) -> FileBytes:
    """Read and unpack a file. Raises BenchmarkError when it is unreadable, damaged or cut off."""
    with reading(path, BenchmarkError):
        raw = read_file(path)
    if raw.startswith(LFS_HEAD):
        raise lfs_pointer(path)
    digest = hashlib.sha256(raw).hexdigest()
    if codec := codec_of(raw):
        name = _NAMES[codec]
        try:
            return FileBytes(unpack(codec, raw), digest, len(raw), name)
        except DamagedError as error:
            raise BenchmarkError(
                "{}: the {} data is damaged or ends early ({})", path, Public(name), Public(error),
                hint="copy the file again",
            ) from error  # fmt: skip
    return FileBytes(raw, digest, len(raw), "")


def lfs_pointer(path: Path) -> BenchmarkError:
    """The error for a file that a clone without Git LFS left a pointer of."""
    return BenchmarkError(
        "{} {}", path, Public(LFS_FACT), hint="fetch the file: run `git lfs pull` in its repository"
    )


def refuse_pointer(path: Path) -> None:
    """Raise `lfs_pointer` for a pointer, and BenchmarkError for what cannot be opened."""
    with reading(path, BenchmarkError), open_file(path) as file:
        start = file.read(len(LFS_HEAD))
    if start == LFS_HEAD:
        raise lfs_pointer(path)


# What the Hugging Face `datasets` library writes next to its data.
_INFO, _STATE, _DICT = "dataset_info.json", "state.json", "dataset_dict.json"
_METADATA = frozenset({_INFO, _STATE, _DICT, "dataset_infos.json"})
_GENERIC_BUILDERS = frozenset(
    {"", "json", "csv", "parquet", "arrow", "text", "pandas", "generator", "sql", "spark"}
)
_PLAIN_CONFIGS = frozenset({"", "default", "main", "all", "plain_text"})
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow"}


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A file to read, its family of formats, the names its place implies.

    explicit  the user named this very file, so anything odd about it is an error, not a skip
    data      its bytes, where it is in memory: `path` is then what messages and records call it
    entry     the entry of the catalogue by which it was named
    config    its configuration, where the benchmark has several
    address   where it was copied from
    """

    path: Path
    family: str
    naming: Naming
    explicit: bool
    data: bytes | None = field(default=None, repr=False)
    entry: Entry | None = None
    config: str = ""
    address: str = ""

    @property
    def called(self) -> str:
        """What messages and records call it."""
        return self.address or str(self.path)


def find_sources(
    paths: Sequence[str | Path | BenchmarkFile],
) -> tuple[tuple[BenchmarkFile, ...], tuple[SkippedRow, ...]]:
    """Files of items below the given files, folders and globs, each once, in natural order.

    Files in memory follow. Also gives the skipped files, with the reason. Raises
    BenchmarkError for a path that is not there, a folder without items and a saved data set with a
    part missing.
    """
    sources: dict[Path, BenchmarkFile] = {}
    skipped: list[SkippedRow] = []
    if not paths:
        raise BenchmarkError("no benchmark given", hint="--benchmark PATH")
    in_memory = [given for given in paths if isinstance(given, BenchmarkFile)]
    on_disk = [given for given in paths if not isinstance(given, BenchmarkFile)]
    for given in [given for given in on_disk if is_address(given)]:
        for source in _in_store(given, skipped):
            sources.setdefault(source.path, source)
    local = [given for given in on_disk if not is_address(given)]
    for path in expanded(local, "benchmark", BenchmarkError):
        found = list(_below(path, skipped)) if path.is_dir() else [_source(path, explicit=True)]
        if not found:
            seen = ", ".join(sorted(entry.name for entry in path.iterdir())[:10])
            raise BenchmarkError(
                "no benchmark files in {} (it holds {})" if seen else "no benchmark files in {}",
                path, Place(seen),
                hint=GIVE_ROWS,
            )  # fmt: skip
        for source in found:
            sources.setdefault(source.path.resolve(), source)
    return (*sources.values(), *in_memory), tuple(skipped)


def _in_store(given: str | Path, skipped: list[SkippedRow]) -> Iterator[BenchmarkFile]:
    """The sources at an address, below it, or that fit it."""
    # Knows all formats of corpora, and loads Arrow, which a client that only asks does without.
    from contam.corpus.listing import expand_address

    try:
        found = sorted(expand_address(given), key=lambda one: natural_key(str(one[0])))
    except CorpusError as error:
        refused = BenchmarkError(error.statement, hint=error.hints)
        refused.exit_code = error.exit_code
        raise refused from error
    n_sources = 0
    for address, _, _, named in found:
        # It has the names of a path, and what opens paths opens it.
        path = cast("Path", address)
        if not named and (path.name.startswith((".", "_")) or path.name in _METADATA):
            continue
        source = _source(path, explicit=named)
        if source.family:
            n_sources += 1
            yield source
        else:
            skipped.append(SkippedRow(str(path), 0, "not a benchmark format", n_rows=0))
    if not n_sources:
        raise BenchmarkError("no benchmark files in {}", Place(given), hint=GIVE_ROWS)


def _below(
    folder: Path, skipped: list[SkippedRow], above: frozenset[Path] = frozenset()
) -> Iterator[BenchmarkFile]:
    """Sources in a folder; a folder saved by `datasets` is read by its metadata.

    above  the folders that contain it: a link back to one of them is not followed
    """
    with reading(folder, BenchmarkError):
        entries = list(folder.iterdir())
    above |= {folder.resolve()}
    if (folder / _DICT).is_file():
        splits = _read_object(folder / _DICT).get("splits")
        for split in splits if isinstance(splits, list) else []:
            yield from _saved_dataset(folder / str(split), folder, str(split))
        return
    if (folder / _STATE).is_file():
        yield from _saved_dataset(folder, folder, None)
        return
    for entry in sorted(entries, key=lambda entry: natural_key(str(entry))):
        if entry.name.startswith(".") or entry.name in _METADATA:
            if reason := hidden_files(entry):
                skipped.append(SkippedRow(str(entry), 0, reason, n_rows=0))
            continue
        if entry.is_dir():
            if entry.resolve() not in above:
                yield from _below(entry, skipped, above)
            continue
        refuse_pipe(entry, BenchmarkError)
        source = _source(entry, explicit=False)
        if source.family:
            yield source
        else:
            skipped.append(SkippedRow(str(entry), 0, "not a benchmark format", n_rows=0))


def _saved_dataset(folder: Path, whole: Path, split: str | None) -> Iterator[BenchmarkFile]:
    """The Arrow files of one split that `Dataset.save_to_disk` wrote."""
    state = _read_object(folder / _STATE)
    files = state.get("_data_files")
    if not isinstance(files, list) or not all(isinstance(file, Mapping) for file in files):
        raise BenchmarkError("{}: no list of data files", folder / _STATE)
    split = split or str(state.get("_split") or "")
    benchmark = _dataset_name(folder) or folder_name(whole)
    for file in files:
        path = folder / str(file.get("filename"))
        if not path.is_file():
            raise BenchmarkError(
                "{} lacks its file {}", folder, Public(path.name), hint="copy the file again"
            )
        yield BenchmarkFile(
            path, "arrow", Naming(benchmark, split, split_sure=bool(split)), explicit=False
        )


def _dataset_name(folder: Path) -> str:
    """Name and configuration recorded by `datasets`, "" when it only knew a file format."""
    if not (folder / _INFO).is_file():
        return ""
    return name_in(_read_object(folder / _INFO))


def name_in(info: Mapping[str, object]) -> str:
    """The same from what `datasets` knows of a data set."""
    name = str(info.get("dataset_name") or info.get("builder_name") or "")
    config = str(info.get("config_name") or "")
    if name in _GENERIC_BUILDERS:
        return ""
    return name if config in _PLAIN_CONFIGS or config == name else f"{name}/{config}"


def _source(path: Path, *, explicit: bool) -> BenchmarkFile:
    naming = name_of(path)
    family = format_of(path)
    if not family:
        family = _family_of_content(path, explicit=explicit)
    elif family == "arrow" and not is_address(path) and _dataset_name(path.parent):
        naming = Naming(_dataset_name(path.parent), naming.split, naming.split_sure)
    return BenchmarkFile(path, family, naming, explicit)


def _family_of_content(path: Path, *, explicit: bool) -> str:
    """Family of a file by its content; in folders, which may hold anything, of tables only."""
    with reading(path, BenchmarkError), open_file(path) as file:
        start = file.read(64)
    if start[:4] in _MAGIC:
        return _MAGIC[start[:4]]
    if not explicit:
        return ""
    if not start:
        raise BenchmarkError("{} is empty", path)
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return "json"
    raise BenchmarkError(
        "{}: cannot tell the format from the name or the first bytes", path,
        hint="rename it to .jsonl, .json, .csv, .tsv, .parquet or .arrow",
    )  # fmt: skip


def _read_object(path: Path) -> Mapping[str, object]:
    try:
        with reading(path, BenchmarkError):
            value = orjson.loads(read_file(path))
    except orjson.JSONDecodeError as error:
        raise BenchmarkError("{}: not valid JSON", path) from error
    if not isinstance(value, dict):
        raise BenchmarkError("{}: expected a JSON object", path)
    return value


def fault(path: Path, line: int, fact: str, *facts: object, hint: Hint = "") -> BenchmarkError:
    """The error for what a line of a file holds."""
    return BenchmarkError("{}:{}: " + fact, path, line, *facts, hint=hint)
