"""`contam clean`: write a corpus without the benchmark items in it."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from contam.cli import options
from contam.cli.commands.scan import (
    EXIT_FLAGGED,
    MIN_RUN,
    SEED,
    refuse_beside_plan,
    refuse_long_seed,
)
from contam.cli.commands.worker import Engine, parse_shard, refuse_engine
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.cleaning.parts import Share
    from contam.cleaning.run import Cleaned

SPREAD_OPTIONS = (
    "--corpus", "--exclude", "--benchmark", "--policy", "--map", "--labels", "--exposure",
    "--benchmark-weight", "--parts",
)  # fmt: skip
INTERRUPTED: Final = "no result was written; the same call with --resume goes on from what was done"
SHARE_INTERRUPTED: Final = "the shards that were done are there; the same call does the others"
_NOTES_SHOWN: Final = 20
#: What may be chosen once the search is done.
_BESIDE_PARTS: Final = frozenset(
    ("parts", "plan", "out", "action", "labels", "exposure", "benchmark_weight", "most", "around",
     "keep_removed", "dry_run", "overwrite", "shard", "engine", "address", "resume", "workers",
     "as_json", "quiet", "debug")
)  # fmt: skip
#: What is none of the business of one of several workers.
_NOT_OF_WORKERS: Final = frozenset(("dry_run", "engine", "address", "resume"))


class Action(StrEnum):
    """What is done with a document that holds an item."""

    DROP = "drop"
    MASK = "mask"
    CUT = "cut"
    LIST = "list"


def clean(
    *,
    context: typer.Context,
    corpus: options.CorpusOrPlan = None,
    benchmark: options.Benchmark = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the cleaned corpus.")],
    policy: options.Policies = None,
    action: Annotated[
        Action,
        typer.Option(
            help="Drop the document, mask the matched stretch, cut it out, or only list it."
        ),
    ] = Action.DROP,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL,...",
            help="Take out documents of items with these labels. [default: contaminated,suspect]",
        ),
    ] = None,
    exposure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help="Only documents that show this of an item: question, question+answer, "
            "passage_only, answer_only. [default: any]",
        ),
    ] = None,
    benchmark_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=W,...",
            help="What an item of a benchmark weighs, 1 unless given: a document goes when its "
            "items weigh 1 or more together.",
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            metavar="0.1%|N",
            help="Stop with 3 and write nothing if more documents would go.",
        ),
    ] = None,
    around: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="With --action cut: characters to cut on both sides."
        ),
    ] = 0,
    keep_removed: Annotated[
        bool, typer.Option("--keep-removed", help="Keep the text that is taken out, in removed/.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would go; write nothing.")
    ] = False,
    unit: options.Unit = "word",
    workers: options.Workers = None,
    as_json: options.Json = False,
    text: options.Text = None,
    id_column: options.IdColumn = None,
    url_column: options.UrlColumn = None,
    date_column: options.DateColumn = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB...",
            help="Leave out shards on purpose; they are not in the result either.",
        ),
    ] = None,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    overwrite: options.Overwrite = False,
    seed: options.Seed = SEED,
    min_run: options.MinRun = MIN_RUN,
    engine: Annotated[
        Engine | None,
        typer.Option(help="Who searches and writes: ray, a cluster. [default: this machine]"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The Ray cluster. [default: RAY_ADDRESS, else the one of this machine]",
        ),
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR...",
            help="What workers found on a plan made with --to-clean, in place of a corpus.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="With --parts: the plan, if it is not where the workers found it any more.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="With --parts: only write the shards of worker I of N, or auto (Slurm, "
            "Kubernetes); the same call without it publishes.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from what an interrupted run had done.")
    ] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Write a copy of a corpus without the documents, or stretches, that hold benchmark items.

    DIR gets corpus/ with every shard, removed/ with what was taken out, and clean.json with the
    proof: all or nothing.
    """
    if not out:
        raise UsageError("--out is empty", hint="check the variable it came from")
    if around and action is not Action.CUT:
        raise UsageError("--around goes with --action cut", hint="leave it out, or cut")
    refuse_long_seed(seed, min_run)
    weights = _weights(benchmark_weight or ())
    if parts:
        allowed = _BESIDE_PARTS - (_NOT_OF_WORKERS if shard is not None else frozenset())
        refuse_beside_plan(context, allowed, "--parts" if shard is None else "--shard")
    elif plan is not None or shard is not None:
        flag = "--plan" if shard is None else "--shard"
        raise UsageError(f"{flag} needs --parts", hint="`contam scan --plan` writes them")
    elif not corpus or not benchmark:
        missing = "--benchmark" if corpus else "--corpus"
        raise UsageError(f"Missing option '{missing}'", hint="see `contam clean --help`")
    refuse_engine(engine, address)
    share = parse_shard(shard, os.environ) if shard is not None else None
    names = options.policy_names(policy)
    from contam.benchmark.mapping import parse_mapping
    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.clean import How
    from contam.cleaning.clean import clean as run_clean
    from contam.cleaning.parts import clean_parts, clean_share
    from contam.cleaning.run import Cleaned
    from contam.cli.progress import reporter
    from contam.detect.leases.workshop import RayCluster
    from contam.detect.scan import worker_count

    chosen = CleanOptions(
        action=action.value,
        labels=tuple(options.split_names(labels or ["contaminated", "suspect"])),
        exposures=tuple(options.split_names(exposure or ())),
        weights=weights,
        most=most,
        around=around,
        keep_removed=keep_removed,
    )
    cluster = RayCluster(address or "auto", workers) if engine else None
    with reporter(quiet=quiet) as progress:
        if parts:
            how = How(
                workers=worker_count(workers),
                dry_run=dry_run,
                overwrite=overwrite,
                resume=resume,
                cluster=cluster,
                progress=progress,
            )
            if share is None:
                found = clean_parts(parts, out, chosen, how, plan)
                return _tell(found, out, as_json=as_json, quiet=quiet)
            done = clean_share(parts, out, chosen, how, share, plan)
            if isinstance(done, Cleaned):
                return _tell(done, out, as_json=as_json, quiet=quiet)
            return _tell_share(done, out, as_json=as_json)
        result = run_clean(
            corpus or (),
            benchmark or (),
            out,
            action=chosen.action,
            policies=names,
            labels=chosen.labels,
            exposures=chosen.exposures,
            weights=weights,
            most=most,
            around=around,
            keep_removed=keep_removed,
            dry_run=dry_run,
            unit=unit,
            workers=workers,
            seed=seed,
            min_run=min_run,
            text=text,
            columns=options.columns_of(id_column, url_column, date_column),
            exclude=exclude or (),
            mapping=parse_mapping(mapping) if mapping else None,
            name=name,
            split=split,
            overwrite=overwrite,
            resume=resume,
            cluster=cluster,
            progress=progress,
        )
    return _tell(result, out, as_json=as_json, quiet=quiet)


def _weights(given: list[str] | tuple[str, ...]) -> dict[str, float]:
    """`["mmlu=0.1,bbh=0"]` as {"mmlu": 0.1, "bbh": 0.0}. Raises UsageError."""
    found = {}
    for pair in options.split_names(given):
        name, equals, weight = pair.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            equals, number = "", 0.0
        if not (name and equals):
            raise UsageError(
                f"--benchmark-weight {pair} is not understood",
                hint="give NAME=W, for example mmlu=0.1",
            )
        if name in found:
            raise UsageError(f"--benchmark-weight names {name} twice", hint="leave one out")
        found[name] = number
    return found


def _tell_share(share: Share, out: str, *, as_json: bool) -> int:
    """Say what one of several workers wrote; returns the exit code."""
    from contam.cli import render
    from contam.cli.terminal import emit

    if as_json:
        render.emit_json(
            {
                "out": out,
                "exit_code": 0,
                "shards": share.n_shards,
                "done": list(share.done),
                "kept": list(share.kept),
            }
        )
        return 0
    before = f", {len(share.kept):,} there before" if share.kept else ""
    emit(
        f"{render.counted(len(share.done), 'shard')} of {share.n_shards:,} written{before}\n"
        "then      the same call without --shard publishes what all workers wrote\n"
    )
    return 0


def _tell(result: Cleaned, out: str, *, as_json: bool, quiet: bool) -> int:
    """Say what was done, or would be; returns the exit code."""
    from contam.cli import render
    from contam.cli.sheet import Sheet
    from contam.cli.terminal import emit, plain, talk, visible

    code = EXIT_FLAGGED if result.too_many else 0
    record = result.record
    if not quiet:
        for note in record["notes"][:_NOTES_SHOWN]:
            talk(f"note: {plain(note)}")
    documents, action = record["documents"], record["options"]["action"]
    if result.too_many:
        talk(
            f"more than --most {plain(record['options']['most'])} would go: nothing was written; "
            "the same call with a higher --most and --resume need not search again"
        )
    if as_json:
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
    sheet = Sheet(("benchmark",), ("items", "documents"), grouped=True)
    for each in record["removed"]["by_benchmark"]:
        sheet.add((visible(each["benchmark"]),), (f"{each['items']:,}", f"{each['documents']:,}"))
    if record["removed"]["by_benchmark"]:
        render.emit_renderable(sheet)
    found = render.counted(documents["found"], "document")
    verbs = {"drop": "dropped", "mask": "masked", "cut": "cut", "list": "listed"}
    verb = verbs[action] if result.folder is not None else f"to be {verbs[action]}"
    share = render.share(documents["found"], documents["before"])
    lines = [f"{found} of {documents['before']:,} {verb} ({share})"]
    if proof := record["proof"]:
        lines.append(
            f"searched again {render.counted(proof['shards_searched_again'], 'shard')}: nothing "
            f"left; {render.counted(proof['shards_equal_by_digest'], 'shard')} copied unchanged"
        )
    lines += [f"not kept: {said}" for said in result.not_kept]
    if result.folder is not None:
        lines += ["", f"results   {out}"]
    emit("\n".join(visible(line) for line in lines) + "\n")
    return code
