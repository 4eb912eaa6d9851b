"""`contam scan`, `clean` and `warm`: search a corpus for items, take them out; compile kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import typer

from contam.cli import options, render
from contam.cli.options import flag, option
from contam.cli.results import (
    EXIT_FLAGGED,
    DivisionOptions,
    print_result,
    refuse_out_in,
    tell_idle,
    tell_search,
    tell_work,
    write_result,
)
from contam.cli.terminal import Reporter, emit, plain, talk, visible
from contam.errors import UsageError
from contam.facts import counted
from contam.files.stores import place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.cleaning.clean import Share
    from contam.cleaning.run import Cleaned
    from contam.detect.corpus import ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.result import ScanResult


@options.shared
def scan(
    *,
    corpus: list[str] = options.CORPUS,
    benchmark: list[str] = options.BENCHMARKS,
    out: str | None = options.OPTIONAL_OUT,
    items: options.ItemOptions,
    columns: options.ColumnOptions,
    kept: options.KeptOptions,
    unit: str = options.UNIT,
    workers: int | None = options.WORKERS,
    divided: DivisionOptions,
    part_size: str | None = option(
        "SIZE",
        "Text of a part: 512MB, 16GB; the same in all calls. [default: a 256th of the "
        "corpus, 512 MiB at least, 16 GiB at most]",
    ),
    only_parts: bool = options.ONLY_PARTS,
    every_hit: bool = flag(
        "--every-hit",
        "Keep every document that a policy counts, in hits.parquet, for `contam clean --verdicts`.",
    ),
    output: options.VerdictOptions,
) -> int:
    """Search a corpus for benchmark items; write verdicts and the text that proves them.

    Writes verdicts.parquet, evidence.parquet, items.parquet and run.json to DIR, all or nothing.

    Examples:
        contam scan --corpus shards/*.parquet --benchmark gsm8k.jsonl --out results
        contam scan --corpus dump --text body --benchmark mmlu --policy contam palm-70 --out two
    """
    shard = divided.shard
    if out is None and shard is None:
        raise UsageError("Missing option '--out'", hint="see `contam scan --help`")
    if shard is not None and only_parts:
        raise UsageError("--shard and --only-parts exclude each other", hint="give one of them")
    if out is not None:
        refuse_out_in(out, corpus)
    size = None if part_size is None else options.parse_size(part_size, "--part-size")
    division = divided.division(corpus, workers, size=size, only=only_parts)
    asked = {
        **items.arguments(),
        **columns.arguments(),
        **kept.arguments(),
        "unit": unit,
        "every_hit": every_hit,
    }
    if shard is not None:
        return _compute_share(corpus, benchmark, division, workers, asked, output)

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.scan import scan as run_scan

        return run_scan(
            corpus, benchmark, workers=workers, division=division, progress=progress, **asked
        )

    target = place(out or "")
    result = write_result(search, target, output, every_hit=every_hit)
    return print_result(result, target, output)


def _compute_share(
    corpus: list[str],
    benchmark: list[str],
    division: Division,
    workers: int | None,
    asked: dict[str, Any],
    output: options.VerdictOptions,
) -> int:
    """Compute a share of the parts, and say what was done; returns the exit code."""
    from contam.detect.scan import scan_share

    with Reporter(quiet=output.quiet) as progress:
        work = scan_share(corpus, benchmark, division, workers=workers, progress=progress, **asked)
    tell_idle("part", work.total, division.share[1], quiet=output.quiet)
    return tell_search(work, str(division.folder), as_json=output.as_json)


def warm(
    *,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> int:
    """Compile all kernels now, which the first scan, build and query would do otherwise.

    Examples:
        contam warm
        contam warm --json
    """
    # Imported here: this loads the compiler.
    from contam.detect.query import run_a_little
    from contam.kernels.warm_up import compile_once, folder, is_kept

    with Reporter(quiet=quiet) as progress:
        compile_once("all", run_a_little, progress)
    if as_json:
        render.emit_json({"folder": str(folder()) if is_kept() else None})
    elif not quiet and is_kept():
        talk(f"all kernels are compiled, in {folder()}")
    return 0 if is_kept() else 1


_NOTES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceOptions:
    """Whose documents go."""

    labels: list[str] | None = option(
        "LABEL,...",
        "Take out documents of items with these labels. [default: contaminated,suspect]",
    )
    exposure: list[str] | None = option(
        "NAME,...",
        "Only documents that show this of an item: question, question+answer, "
        "passage_only, answer_only. [default: any]",
    )
    source: list[str] | None = option(
        "NAME,...", "Only documents of these sources. [default: of any]"
    )
    benchmark_weight: list[str] | None = option(
        "NAME=W,...",
        "What an item of a benchmark weighs, 1 unless given: a document goes when its "
        "items weigh 1 or more together.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions:
    """How `--action cut` cuts."""

    around: int = option(
        "N",
        "With --action cut: characters to cut on both sides, and to the end of a word.",
        0,
        min=0,
    )
    min_piece: int = option(
        "N", "With --action cut: what is left in shorter pieces goes, too.", 0, min=0
    )
    max_cuts: int | None = option(
        "N", "With --action cut: drop a document that is cut more often.", min=0
    )


@options.shared
def clean(
    *,
    corpus: list[str] = options.CORPUS,
    benchmark: list[str] = options.BENCHMARKS,
    out: str = options.OUT_FOLDER,
    items: options.ItemOptions,
    columns: options.ColumnOptions,
    action: Literal["drop", "mask", "cut", "list"] = typer.Option(
        "drop",
        help="Drop the document, mask the matched stretch, cut it out, or only list it.",
    ),
    choice: ChoiceOptions,
    most: str | None = option(
        "0.1%|N", "Stop with 3 and write nothing if more documents would go."
    ),
    cuts: CutOptions,
    keep_removed: bool = flag("--keep-removed", "Keep the text that is taken out, in removed/."),
    verdicts: str | None = option(
        "DIR", "Take this result of `contam scan --every-hit`, do not search."
    ),
    spare: str | None = option(
        "FILE",
        "With --verdicts: keep what a person found harmless, as `contam review --accept` "
        "writes it.",
    ),
    unit: str = options.UNIT,
    workers: int | None = options.WORKERS,
    divided: DivisionOptions,
    output: options.OutputOptions,
) -> int:
    """Write a copy of a corpus without the documents, or stretches, that hold benchmark items.

    DIR gets corpus/ with every shard, removed/ with what was taken out, and clean.json with the
    proof: all or nothing.

    Examples:
        contam clean --corpus shards --benchmark gsm8k.jsonl --out found --action list
        contam clean --corpus shards --benchmark gsm8k.jsonl --action mask --most 0.1% --out done
    """
    weights = _weights(choice.benchmark_weight or ())
    for named in ("parts", "shard", "engine"):
        if verdicts is not None and getattr(divided, named) is not None:
            raise UsageError(
                f"--{named} does not go with --verdicts",
                hint="it divides the search: there is none",
            )
    division = divided.division(corpus, workers)
    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.clean import clean as run_clean
    from contam.cleaning.clean import clean_share
    from contam.cleaning.run import Cleaned

    chosen = CleanOptions(
        action=action,
        labels=tuple(options.split_names(choice.labels or ["contaminated", "suspect"])),
        exposures=tuple(options.split_names(choice.exposure or ())),
        sources=tuple(options.split_names(choice.source or ())),
        weights=weights,
        most=most,
        around=cuts.around,
        min_piece=cuts.min_piece,
        max_cuts=cuts.max_cuts,
        keep_removed=keep_removed,
    )
    how: dict[str, Any] = {
        "workers": workers,
        "overwrite": output.overwrite,
        "division": division,
    }
    asked = {**vars(chosen), **items.arguments(), **columns.arguments(), "unit": unit}
    with Reporter(quiet=output.quiet) as progress:
        if divided.shard is None:
            how |= {"verdicts": verdicts, "spare": spare}
            result = run_clean(corpus, benchmark, out, **how, progress=progress, **asked)
            return _tell(result, out, output)
        done = clean_share(corpus, benchmark, out, **how, progress=progress, **asked)
    if isinstance(done, Cleaned):
        return _tell(done, out, output)
    if done.search is None:
        tell_idle("shard", done.n_shards, division.share[1], quiet=output.quiet)
    return _tell_share(done, out, output)


def _tell_share(done: Share, out: str, output: options.OutputOptions) -> int:
    """Say what was done of a share; returns the exit code."""
    if done.search is not None:
        then = "the same call writes shards, once the parts of all shares are there"
        return tell_search(done.search, out, as_json=output.as_json, then=then)
    return tell_work(
        "shard",
        done.n_shards,
        done=len(done.done),
        kept=len(done.kept),
        out=out,
        as_json=output.as_json,
        then="the same call without --shard publishes what all workers wrote",
    )


def _weights(given: Iterable[str]) -> dict[str, float]:
    """`["mmlu=0.1,bbh=0"]` as {"mmlu": 0.1, "bbh": 0.0}. Raises UsageError."""
    option, example = "--benchmark-weight", "mmlu=0.1"
    found = options.pairs(option, options.split_names(given), example, at_last=True)
    try:
        return {name: float(weight) for name, weight in found.items()}
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"{option} {example}") from error


def _tell(result: Cleaned, out: str, output: options.OutputOptions) -> int:
    """Say what was done, or would be; returns the exit code."""
    code = EXIT_FLAGGED if result.too_many else 0
    record = result.record
    if not output.quiet:
        for note in record["notes"][:_NOTES_SHOWN]:
            talk(f"note: {plain(note)}")
    documents, action = record["documents"], record["options"]["action"]
    if result.too_many:
        talk(f"more than --most {plain(record['options']['most'])} would go: nothing was written")
        if result.kept is not None:
            talk(
                f"what was searched is kept in {plain(str(result.kept))}: the same call with a "
                "higher --most goes on from there; remove it if not needed"
            )
    if output.as_json:
        kept = ("options", "documents", "removed", "proof", "before", "notes")
        render.emit_json(
            {
                "out": out if result.folder is not None else None,
                "exit_code": code,
                **{name: record[name] for name in kept},
                "not_kept": result.not_kept,
                "shards": record["shards"] if result.folder is None else len(record["shards"]),
            }
        )
        return code
    table = render.new_table("benchmark", numbers=("items", "documents"))
    for each in record["removed"]["by_benchmark"]:
        table.add_row(visible(each["benchmark"]), f"{each['items']:,}", f"{each['documents']:,}")
    if record["removed"]["by_benchmark"]:
        render.emit_renderable(table)
    found = counted(documents["found"], "document")
    verbs = {"drop": "dropped", "mask": "masked", "cut": "cut", "list": "listed"}
    verb = verbs[action] if result.folder is not None else f"to be {verbs[action]}"
    if action == "cut" and (n_dropped := documents["dropped"]):
        verb += f", {n_dropped:,} of them dropped,"
    share = render.share(documents["found"], documents["before"])
    lines = [f"{found} of {documents['before']:,} {verb} ({share})"]
    if proof := record["proof"]:
        lines.append(
            f"searched again {counted(proof['shards_searched_again'], 'shard')}: nothing "
            f"left; {counted(proof['shards_equal_by_digest'], 'shard')} copied unchanged"
        )
    lines += render.gap_lines(record["coverage"])
    lines += [f"not kept: {said}" for said in result.not_kept]
    if result.folder is not None:
        lines += ["", f"results   {out}"]
    emit("\n".join(visible(line) for line in lines) + "\n")
    return code
