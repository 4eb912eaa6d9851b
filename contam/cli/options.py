"""Define options and arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from contam.cli.terminal import emit
from contam.errors import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

Corpus = Annotated[
    list[str],
    typer.Option(
        "--corpus",
        metavar="PATH...",
        help="Corpus shards: files, folders or globs; Parquet, Arrow, JSONL, CSV, TSV, WET.",
    ),
]
Unit = Annotated[
    str,
    typer.Option(
        metavar="UNIT", help="What a token is: word, char, or the path of a tokenizer.json."
    ),
]
BlockItems = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Items looked up together, of whole benchmarks: fewer take less memory and more time. "
        "[default: all up to 1,000,000; of more, 500,000]",
    ),
]
MinRun = Annotated[
    int, typer.Option(min=1, metavar="N", help="Report every run of at least this many tokens.")
]
AllowUnread = Annotated[
    bool, typer.Option("--allow-missing", help="Judge items even if shards could not be read.")
]
CorpusOrPlan = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        metavar="PATH...",
        help="Corpus shards: files, folders or globs; Parquet, Arrow, JSONL, CSV, TSV, WET.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME,...",
        help="What counts as contaminated: names from `contam policies`, or policy files. "
        "[default: contam]",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Threads; any number gives the same results. [default: one per CPU]",
    ),
]
Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The corpus column that holds the text (`meta.text`)."),
]
IdColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The corpus column that holds document ids.")
]
UrlColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The corpus column that holds urls.")
]
DateColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The corpus column that holds dates.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB...",
        help="Leave out shards on purpose: names of shards, files or folders; the results say so.",
    ),
]
Mapping = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="PART=FIELD,...",
        help="Which benchmark field is which part: question=prompt,answer=solution",
    ),
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="What to call the benchmark.")]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="SPLIT", help="Take rows of this split; rows without a split get this name."
    ),
]
NoText = Annotated[
    bool, typer.Option("--no-text", help="Leave the items' texts out of the results.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a finished result in DIR.")]
MaxEvidence = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Documents kept as evidence per item; counts stay exact."
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=2, metavar="N", help="Shortest run, in tokens, that can lead to a match."),
]
FailOnFlagged = Annotated[
    bool, typer.Option("--fail-on-flagged", help="Exit with 3 if an item is flagged.")
]
Home = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Folder of named indexes. [default: CONTAM_HOME, else indexes/ of a checkout,"
        " else the user's data folder]",
    ),
]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="CONTAM_SERVER",
        show_envvar=False,
        metavar="URL",
        help="Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]",
    ),
]
Served = Annotated[
    list[str] | None,
    typer.Option(
        "--index", metavar="NAME,...", help="Indexes of the service. [default: all, as one corpus]"
    ),
]
Summary = Annotated[
    bool, typer.Option("--json", help="Print the summary and the flagged items as JSON.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
Settings = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="File with defaults of this command's options. [default: contam.toml if it exists]",
    ),
]
"""Read by `main` before any command runs; a command lists it for --help."""
Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")]
"""Read by `main` before any command runs; a command lists it for --help."""


AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing", help="Judge items even if shards are not indexed, missing or changed."
    ),
]
AllowUnmatched = Annotated[
    bool,
    typer.Option(
        "--allow-unmatched", help="Go on even if over 1 % of a log's items were not judged."
    ),
]
Benchmark = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH...",
        help="Benchmark items: JSONL, JSON, CSV, TSV, Parquet or a datasets folder.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME,...", help="Columns of plain tables: id=..., score=..., model=..."
    ),
]
Benchmarks = Annotated[
    list[str],
    typer.Option(
        metavar="PATH...",
        help="Benchmark items: JSONL, JSON, CSV, TSV, Parquet or a datasets folder.",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The tokenizer.json for a recipe like bpe."),
]
OutFolder = Annotated[str, typer.Option(metavar="DIR", help="Folder for the results.")]
IndexFolder = Annotated[
    str,
    typer.Option(
        "--index",
        metavar="DIR",
        help="The index: a folder (./name in this folder), or a bare name in --home.",
    ),
]
IndexOrParts = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="DIR",
        help="The index: a folder (./name in this folder), or a bare name in --home.",
    ),
]
Recipe = Annotated[
    str,
    typer.Option(metavar="NAME", help="standard, compact, chars, bpe, or a TOML file of your own."),
]
BuildMemory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Memory to use besides the program's own 300 MB: 500MB, 2GB; 256MB or more. It "
        "decides how large segments are.",
    ),
]


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
        while at < len(arguments) and not _is_option(arguments[at]):
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


def policy_names(policy: Iterable[str] | None) -> list[str]:
    """What `--policy` names; `contam` where it is not given. Raises UsageError for nothing."""
    names = split_names(policy if policy is not None else ["contam"])
    if not names:
        raise UsageError("--policy names no policy", hint="`contam policies` lists them")
    return names


def parse_size(text: str, flag: str) -> int:
    """`2GB`, `500 MB`, `1.5g` or a number of bytes as bytes. Raises UsageError."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None:
        raise UsageError(f"{flag} {text} is no size", hint=f"for example {flag} 2GB")
    return int(float(found[1]) * _UNITS[found[2]])


def columns_of(id_: str | None, url: str | None, date: str | None) -> dict[str, str] | None:
    """What `--id-column`, `--url-column` and `--date-column` name; None for nothing."""
    named = {"id": id_, "url": url, "date": date}
    return {field: name for field, name in named.items() if name is not None} or None


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def help_without_command(context: typer.Context) -> None:
    """Print the help of a group that was called without one of its commands."""
    if context.invoked_subcommand is None:
        emit(context.get_help() + "\n")
        raise typer.Exit
