"""Define options and arguments that several commands share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from contam.cli.terminal import emit
from contam.errors import UsageError


def option(
    metavar: str,
    text: str,
    default: Any = None,  # noqa: ANN401 - typer's
    *flags: str,
    **more: Any,  # noqa: ANN401 - typer's
) -> Any:  # noqa: ANN401 - typer's
    """An option with a value, and what help says of it."""
    return typer.Option(default, *flags, metavar=metavar, help=text, **more)


def argument(metavar: str, text: str, default: Any = ...) -> Any:  # noqa: ANN401 - typer's
    """An argument, and what help says of it."""
    return typer.Argument(default, metavar=metavar, help=text)


def flag(name: str, text: str) -> Any:  # noqa: ANN401 - typer's
    """An option without a value; there is none that takes it back."""
    return typer.Option(False, name, help=text)  # noqa: FBT003 - its default


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

CORPUS: Any = option(
    "PATH...",
    "Corpus shards: files, folders or globs; Parquet, Arrow, JSONL, CSV, TSV, WET, tar, MDS,"
    " token ids or plain text.",
    ...,
)
MOVED: Any = option("PATH...", "Where the shards are now, if they were moved.")
UNIT: Any = option("UNIT", "What a token is: word, char, or the path of a tokenizer.json.", "word")
POLICIES: Any = option(
    "NAME,...",
    "What counts as contaminated: names from `contam policies`, or policy files. [default: contam]",
)
WORKERS: Any = option(
    "N", "Threads; any number gives the same results. [default: one per CPU]", min=1
)
OVERWRITE: Any = flag("--overwrite", "Replace what is there.")
HOME: Any = option(
    "DIR",
    "Folder of named indexes. [default: CONTAM_HOME, else indexes/ of a checkout,"
    " else the user's data folder]",
    envvar="CONTAM_HOME",
    show_envvar=False,
)
SERVER: Any = option(
    "URL",
    "Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]",
    ...,
    envvar="CONTAM_SERVER",
    show_envvar=False,
)
SERVED: Any = option("NAME,...", "Indexes of the service. [default: all, as one corpus]")
JSON: Any = flag("--json", "Print JSON.")
QUIET: Any = typer.Option(False, "--quiet", "-q", help="No progress, no notes.")  # noqa: FBT003 - its default

ALLOW_MISSING: Any = flag(
    "--allow-missing", "Judge items even if shards are missing, changed or unread."
)
ALLOW_UNMATCHED: Any = flag(
    "--allow-unmatched", "Go on even if over 1 % of a log's items were not judged."
)
BENCHMARK: Any = option(
    "NAME|PATH...",
    "Benchmarks: names (`contam benchmarks`), all, NAME=COPY, lm-eval:TASK, "
    "inspect:PACKAGE/TASK; or files: JSONL, JSON, CSV, TSV, Parquet, datasets folders.",
)
BENCHMARKS: Any = option(
    "NAME|PATH...",
    "Benchmarks: names (`contam benchmarks`), all, NAME=COPY, lm-eval:TASK, "
    "inspect:PACKAGE/TASK; or files: JSONL, JSON, CSV, TSV, Parquet, datasets folders.",
    ...,
)
PARTS: Any = option(
    "DIR",
    "Keep what is found in each part of the corpus in DIR; parts that are there are not "
    "computed again.",
)
ONLY_PARTS: Any = flag(
    "--only-parts", "Compute nothing: shards of parts that are not there are not read."
)
SHARD: Any = option("I/N", "Do the share of worker I of N, or auto (Slurm, Kubernetes).")
COLUMNS: Any = option(
    "ROLE=NAME,...", "Columns of plain tables: id=..., question=..., score=..., model=..."
)
RECIPE_UNIT: Any = option("FILE", "The tokenizer.json for a recipe like bpe.")


def _named(folder: str | None) -> str | None:
    """What `--out` says. Raises UsageError for nothing, which as a path were this folder."""
    if folder == "":
        raise UsageError("--out is empty", hint="check the variable it came from")
    return folder


OUT_FOLDER: Any = option("DIR", "Folder for the results.", ..., "--out", callback=_named)
OPTIONAL_OUT: Any = option("DIR", "Folder for the results.", None, "--out", callback=_named)
INDEX_FOLDER: Any = option(
    "DIR", "The index: a folder (./name in this folder), or a bare name in --home.", ..., "--index"
)
RECIPE: Any = option(
    "NAME", "complete, compact, chars, bpe, or a TOML file of your own.", "complete"
)
BUILD_MEMORY: Any = option(
    "SIZE",
    "Memory to use besides the program's own 300 MB: 500MB, 2GB; 256MB or more. It "
    "decides how large segments are.",
    "2GB",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """How benchmarks are read."""

    mapping: list[str] | None = option(
        "PART=FIELD,...",
        "Which benchmark field is which part: question=prompt,answer=solution",
        None,
        "--map",
    )
    ignore: list[str] | None = option(
        "FIELD...", "Benchmark fields that are no part of an item: notes, translations, results."
    )
    name: str | None = option("NAME", "What to call the benchmark.")
    split: str | None = option(
        "SPLIT", "Take rows of this split; rows without a split get this name."
    )
    include_path: list[str] | None = option(
        "DIR...", "Folders with tasks of your own, for lm-eval:TASK."
    )

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

    policy: list[str] | None = POLICIES
    seed: int = option("N", "Shortest run, in tokens, that can lead to a match.", 5, min=2)
    min_run: int = option("N", "Report every run of at least this many tokens.", 8, min=1)

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

    text: str | None = option("COLUMN", "The corpus column that holds the text (`meta.text`).")
    id_column: str | None = option("COLUMN", "The corpus column that holds document ids.")
    url_column: str | None = option("COLUMN", "The corpus column that holds urls.")
    date_column: str | None = option("COLUMN", "The corpus column that holds dates.")
    source_column: str | None = option(
        "COLUMN", "The corpus column that names the source, for the table by source."
    )
    tokenizer: str | None = option(
        "FILE|NAME", "The tokenizer.json of a corpus of token ids, or a name in the Hub's cache."
    )
    special: str | None = option("ID,...", "Token ids that are no text and not in the tokenizer.")
    token_bytes: str | None = option("2|4", "Bytes of a token id, where no format says.")
    exclude: list[str] | None = option(
        "GLOB...", "Leave out shards on purpose, by shard, file or folder; the results say so."
    )
    lines: bool = flag("--lines", "Of plain text, a line is a document, not a file.")

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

    no_text: bool = flag("--no-text", "Leave the items' texts out of the results.")
    allow_missing: bool = ALLOW_MISSING
    max_evidence: int = option(
        "N", "Documents kept as evidence per item; counts stay exact.", 20, min=1
    )

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

    as_json: bool = JSON
    quiet: bool = QUIET
    overwrite: bool = OVERWRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions(OutputOptions):
    """The same of a command that gives verdicts."""

    fail_on_flagged: bool = flag("--fail-on-flagged", "Exit with 3 if an item is flagged.")


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
    n_bytes = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if n_bytes == 0:
        raise UsageError(f"{flag} {text} is no size", hint=f"for example {flag} 2GB")
    return n_bytes


def group(name: str, text: str) -> typer.Typer:
    """A command that has commands, and prints its help without one of them."""
    app = typer.Typer(name=name, help=text, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(help_without_command)
    return app


def help_without_command(context: typer.Context) -> None:
    """Print the help of a group that was called without one of its commands."""
    if context.invoked_subcommand is None:
        emit(context.get_help() + "\n")
        raise typer.Exit
