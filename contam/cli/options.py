"""Define options and arguments that several commands share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from contam.cli.terminal import emit
from contam.errors import UsageError


def option(metavar: str, text: str, *flags: str, **more: Any) -> Any:  # noqa: ANN401 - typer's
    """An option with a value, and what help says of it."""
    return typer.Option(*flags, metavar=metavar, help=text, **more)


def argument(metavar: str, text: str) -> Any:  # noqa: ANN401 - typer's
    """An argument, and what help says of it."""
    return typer.Argument(metavar=metavar, help=text)


def flag(name: str, text: str) -> Any:  # noqa: ANN401 - typer's
    """An option without a value; there is none that takes it back."""
    return typer.Option(name, help=text)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

_CORPUS = option(
    "PATH...",
    "Corpus shards: files, folders or globs; Parquet, Arrow, JSONL, CSV, TSV, WET, tar, MDS,"
    " token ids or plain text.",
)
Corpus = Annotated[list[str], _CORPUS]
Moved = Annotated[
    list[str] | None, option("PATH...", "Where the shards are now, if they were moved.")
]
Unit = Annotated[
    str, option("UNIT", "What a token is: word, char, or the path of a tokenizer.json.")
]
Policies = Annotated[
    list[str] | None,
    option(
        "NAME,...",
        "What counts as contaminated: names from `contam policies`, or policy files. "
        "[default: contam]",
    ),
]
Workers = Annotated[
    int | None,
    option("N", "Threads; any number gives the same results. [default: one per CPU]", min=1),
]
Overwrite = Annotated[bool, flag("--overwrite", "Replace what is there.")]
Home = Annotated[
    str | None,
    option(
        "DIR",
        "Folder of named indexes. [default: CONTAM_HOME, else indexes/ of a checkout,"
        " else the user's data folder]",
        envvar="CONTAM_HOME",
        show_envvar=False,
    ),
]
Server = Annotated[
    str,
    option(
        "URL",
        "Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]",
        envvar="CONTAM_SERVER",
        show_envvar=False,
    ),
]
Served = Annotated[
    list[str] | None,
    option("NAME,...", "Indexes of the service. [default: all, as one corpus]"),
]
Json = Annotated[bool, flag("--json", "Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]

AllowMissing = Annotated[
    bool, flag("--allow-missing", "Judge items even if shards are missing, changed or unread.")
]
AllowUnmatched = Annotated[
    bool, flag("--allow-unmatched", "Go on even if over 1 % of a log's items were not judged.")
]
_BENCHMARK = option(
    "NAME|PATH...",
    "Benchmarks: names (`contam benchmarks`), all, NAME=COPY, lm-eval:TASK, "
    "inspect:PACKAGE/TASK; or files: JSONL, JSON, CSV, TSV, Parquet, datasets folders.",
)
Benchmark = Annotated[list[str] | None, _BENCHMARK]
Benchmarks = Annotated[list[str], _BENCHMARK]
Parts = Annotated[
    str | None,
    option(
        "DIR",
        "Keep what is found in each part of the corpus in DIR; parts that are there are not "
        "computed again.",
    ),
]
OnlyParts = Annotated[
    bool, flag("--only-parts", "Compute nothing: shards of parts that are not there are not read.")
]
Shard = Annotated[
    str | None, option("I/N", "Do the share of worker I of N, or auto (Slurm, Kubernetes).")
]
Columns = Annotated[
    list[str] | None,
    option("ROLE=NAME,...", "Columns of plain tables: id=..., question=..., score=..., model=..."),
]
RecipeUnit = Annotated[str | None, option("FILE", "The tokenizer.json for a recipe like bpe.")]


def _named(folder: str | None) -> str | None:
    """What `--out` says. Raises UsageError for nothing, which as a path were this folder."""
    if folder == "":
        raise UsageError("--out is empty", hint="check the variable it came from")
    return folder


OutFolder = Annotated[str, option("DIR", "Folder for the results.", "--out", callback=_named)]
OptionalOut = Annotated[
    str | None, option("DIR", "Folder for the results.", "--out", callback=_named)
]
_INDEX = option(
    "DIR", "The index: a folder (./name in this folder), or a bare name in --home.", "--index"
)
IndexFolder = Annotated[str, _INDEX]
Recipe = Annotated[
    str, option("NAME", "complete, compact, chars, bpe, or a TOML file of your own.")
]
BuildMemory = Annotated[
    str,
    option(
        "SIZE",
        "Memory to use besides the program's own 300 MB: 500MB, 2GB; 256MB or more. It "
        "decides how large segments are.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """How benchmarks are read."""

    mapping: Annotated[
        list[str] | None,
        option(
            "PART=FIELD,...",
            "Which benchmark field is which part: question=prompt,answer=solution",
            "--map",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        option(
            "FIELD...",
            "Benchmark fields that are no part of an item: notes, translations, results.",
        ),
    ] = None
    name: Annotated[str | None, option("NAME", "What to call the benchmark.")] = None
    split: Annotated[
        str | None, option("SPLIT", "Take rows of this split; rows without a split get this name.")
    ] = None
    include_path: Annotated[
        list[str] | None, option("DIR...", "Folders with tasks of your own, for lm-eval:TASK.")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """The same as the library's calls take it. Raises UsageError for what does not fit."""
        return {
            "mapping": mapping_of(self.mapping),
            "ignore": tuple(self.ignore or ()),
            "name": self.name,
            "split": self.split,
            "include_path": tuple(self.include_path or ()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOptions(BenchmarkOptions):
    """How benchmarks are read, and their items matched and judged."""

    policy: Policies = None
    seed: Annotated[
        int, option("N", "Shortest run, in tokens, that can lead to a match.", min=2)
    ] = 5
    min_run: Annotated[
        int, option("N", "Report every run of at least this many tokens.", min=1)
    ] = 8

    def arguments(self) -> dict[str, Any]:
        """The same as the library's calls take it. Raises UsageError for what does not fit."""
        if self.seed > self.min_run:
            raise UsageError(
                f"--seed {self.seed} is longer than --min-run {self.min_run}",
                hint="a run is found by its seeds: choose a shorter --seed",
            )
        return {
            **BenchmarkOptions.arguments(self),
            "policies": tuple(policy_names(self.policy)),
            "seed": self.seed,
            "min_run": self.min_run,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """Which shards of a corpus are read, and which of their columns."""

    text: Annotated[
        str | None, option("COLUMN", "The corpus column that holds the text (`meta.text`).")
    ] = None
    id_column: Annotated[
        str | None, option("COLUMN", "The corpus column that holds document ids.")
    ] = None
    url_column: Annotated[str | None, option("COLUMN", "The corpus column that holds urls.")] = None
    date_column: Annotated[str | None, option("COLUMN", "The corpus column that holds dates.")] = (
        None
    )
    source_column: Annotated[
        str | None,
        option("COLUMN", "The corpus column that names the source, for the table by source."),
    ] = None
    tokenizer: Annotated[
        str | None,
        option(
            "FILE|NAME",
            "The tokenizer.json of a corpus of token ids, or a name in the Hub's cache.",
        ),
    ] = None
    special: Annotated[
        str | None, option("ID,...", "Token ids that are no text and not in the tokenizer.")
    ] = None
    token_bytes: Annotated[
        str | None, option("2|4", "Bytes of a token id, where no format says.")
    ] = None
    exclude: Annotated[
        list[str] | None,
        option(
            "GLOB...", "Leave out shards on purpose, by shard, file or folder; the results say so."
        ),
    ] = None
    lines: Annotated[bool, flag("--lines", "Of plain text, a line is a document, not a file.")] = (
        False
    )

    def arguments(self) -> dict[str, Any]:
        """The same as the library's calls take it."""
        named = {name: getattr(self, f"{name}_column") for name in ("id", "url", "date", "source")}
        named |= {name: getattr(self, name) for name in ("tokenizer", "special", "token_bytes")}
        columns = {field: name for field, name in named.items() if name is not None}
        return {
            "text": self.text,
            "columns": columns or None,
            "exclude": tuple(self.exclude or ()),
            "lines": self.lines,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOptions:
    """What of the items and documents stands in the results."""

    no_text: Annotated[bool, flag("--no-text", "Leave the items' texts out of the results.")] = (
        False
    )
    allow_missing: AllowMissing = False
    max_evidence: Annotated[
        int, option("N", "Documents kept as evidence per item; counts stay exact.", min=1)
    ] = 20

    def arguments(self) -> dict[str, Any]:
        """The same as the library's calls take it."""
        return {
            "keep_text": not self.no_text,
            "allow_missing": self.allow_missing,
            "max_evidence": self.max_evidence,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How a command says what it did, and whether it may replace what is there."""

    as_json: Json = False
    quiet: Quiet = False
    overwrite: Overwrite = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions(OutputOptions):
    """The same of a command that gives verdicts."""

    fail_on_flagged: Annotated[
        bool, flag("--fail-on-flagged", "Exit with 3 if an item is flagged.")
    ] = False


def shared(command: Callable[..., int]) -> Callable[..., int]:
    """Let typer see the fields of the dataclasses among a command's parameters as its options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    seen: list[inspect.Parameter] = []
    for param in inspect.signature(command).parameters.values():
        if param.name not in groups:
            seen.append(param.replace(annotation=hints[param.name]))
            continue
        types = get_type_hints(groups[param.name], include_extras=True)
        seen += [
            inspect.Parameter(
                field.name, param.kind, default=field.default, annotation=types[field.name]
            )
            for field in fields(groups[param.name])
        ]

    def call(**given: Any) -> int:  # noqa: ANN401 - what typer parsed
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__annotations__ = {param.name: param.annotation for param in seen}
    vars(call)["__signature__"] = inspect.Signature(seen)
    return call


def spread_values(arguments: Sequence[str], options: Iterable[str]) -> list[str]:
    """Rewrite `--corpus a b` as `--corpus a --corpus b`, for the given long options.

    An option takes every word up to the next one that begins with a dash (a lone `-` is a word);
    `--option=a b` works, too. After `--` nothing is rewritten. Raises UsageError for an option
    without a value.
    """
    wanted = frozenset(options)
    spread: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return [*spread, word, *arguments[at:]]
        option, equals, value = word.partition("=")
        if option not in wanted:
            spread.append(word)
            continue
        values = [value] if equals else []
        while at < len(arguments) and (not arguments[at].startswith("-") or arguments[at] == "-"):
            values.append(arguments[at])
            at += 1
        if not values:
            raise UsageError(
                f"{option} needs a value", hint="give one or more, with blanks between"
            )
        for value in values:
            spread += [option, value]
    return spread


def split_names(values: Iterable[str]) -> list[str]:
    """`["a,b", "c"]` -> `["a", "b", "c"]`, each once, in order."""
    names = (name.strip() for value in values for name in value.split(","))
    return list(dict.fromkeys(name for name in names if name))


def pairs(
    option: str, given: Iterable[str], example: str, *, at_last: bool = False
) -> dict[str, str]:
    """`["a=1", "b=2"]` -> {"a": "1", "b": "2"}. Raises UsageError, also for a name given twice.

    example  a value of the option, for the error;  at_last  split at the last sign, not the first
    """
    found: dict[str, str] = {}
    for one in given:
        name, sign, value = one.rpartition("=") if at_last else one.partition("=")
        if not (sign and name and value):
            raise UsageError(f"{option} {one} is not NAME=VALUE", hint=f"{option} {example}")
        if name in found:
            raise UsageError(f"{option} names {name} twice", hint="leave one out")
        found[name] = value
    return found


def mapping_of(given: Sequence[str] | None) -> dict[str, str] | None:
    """`["id=item,score=correct"]` -> {"id": "item", "score": "correct"}; None for nothing."""
    from contam.benchmark.mapping import parse_mapping

    return parse_mapping(given) if given else None


def policy_names(policy: Iterable[str] | None) -> list[str]:
    """What `--policy` names; `contam` where it is not given. Raises UsageError for nothing."""
    names = split_names(policy if policy is not None else ["contam"])
    if not names:
        raise UsageError("--policy names no policy", hint="`contam policies` lists them")
    return names


def parse_size(text: str, flag: str) -> int:
    """`2GB`, `500 MB`, `1.5g` or a number of bytes as bytes. Raises UsageError."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None or float(found[1]) == 0:
        raise UsageError(f"{flag} {text} is no size", hint=f"for example {flag} 2GB")
    return int(float(found[1]) * _UNITS[found[2]])


def help_without_command(context: typer.Context) -> None:
    """Print the help of a group that was called without one of its commands."""
    if context.invoked_subcommand is None:
        emit(context.get_help() + "\n")
        raise typer.Exit
