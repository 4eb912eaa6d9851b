"""`contam scan`: search a corpus for the items of benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options
from contam.cli.commands.worker import AddressOption, EngineOption, refuse_engine, work
from contam.cli.defaults import noted
from contam.cli.terminal import talk
from contam.errors import ContamError, UsageError
from contam.files.addresses import is_address
from contam.files.publication import LAST
from contam.files.uploads import lies_in, place, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from contam.client.answers import Answer
    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress

SPREAD_OPTIONS = ("--corpus", "--exclude", "--benchmark", "--policy", "--map")
EXIT_FLAGGED = 3
SEED, MIN_RUN, MAX_EVIDENCE = 5, 8, 20
NOT_READ = "repair the shards named NOT READ, or judge without them with --allow-missing"
_NOTES_SHOWN = 20
#: What a worker on a plan may choose.
_OF_WORKERS = frozenset(
    ("out", "plan", "shard", "lease", "workers", "engine", "address", "as_json", "quiet",
     "settings", "debug")
)  # fmt: skip


def scan(
    *,
    context: typer.Context,
    corpus: options.CorpusOrPlan = None,
    benchmark: options.Benchmark = None,
    out: options.OutFolder,
    policy: options.Policies = None,
    unit: options.Unit = "word",
    workers: options.Workers = None,
    as_json: options.Summary = False,
    text: options.Text = None,
    id_column: options.IdColumn = None,
    url_column: options.UrlColumn = None,
    date_column: options.DateColumn = None,
    exclude: options.Exclude = None,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    no_text: options.NoText = False,
    allow_missing: options.AllowUnread = False,
    overwrite: options.Overwrite = False,
    max_evidence: options.MaxEvidence = MAX_EVIDENCE,
    block_items: options.BlockItems = None,
    seed: options.Seed = SEED,
    min_run: options.MinRun = MIN_RUN,
    fail_on_flagged: options.FailOnFlagged = False,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Work on a plan that `contam plan` made; the folder for the results gets parts.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="With --plan: do the leases of worker I of N, or auto (Slurm, Kubernetes).",
        ),
    ] = None,
    lease: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="With --plan: do this lease alone.")
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from what an interrupted run had done.")
    ] = False,
    quiet: options.Quiet = False,
    settings: options.Settings = None,  # noqa: ARG001 - read by main, listed here for --help
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Search a corpus for benchmark items; write verdicts and the text that proves them.

    Writes verdicts.parquet, evidence.parquet, items.parquet and run.json to DIR, all or nothing.
    """
    if not out:
        # As a path it would be the current folder; an unset shell variable must not mean that.
        raise UsageError("--out is empty", hint="check the variable it came from")
    folder = place(out)
    if plan is not None:
        refuse_beside_plan(context, _OF_WORKERS)
        return work(
            plan,
            folder,
            shard=shard,
            lease=lease,
            workers=workers,
            as_json=as_json,
            quiet=quiet,
            engine=engine,
            address=address,
        )
    if shard is not None or lease is not None:
        flag = "--lease" if shard is None else "--shard"
        raise UsageError(f"{flag} needs --plan", hint="`contam plan` makes one")
    refuse_engine(engine, address)
    if not corpus or not benchmark:
        missing = "--benchmark" if corpus else "--corpus"
        raise UsageError(f"Missing option '{missing}'", hint="see `contam scan --help`")
    names = options.policy_names(policy)
    refuse_long_seed(seed, min_run)
    refuse_out_in(folder, corpus)
    from contam.benchmark.mapping import parse_mapping

    parts = parse_mapping(mapping) if mapping else None
    from contam.detect.leases.workshop import RayCluster, Workshop

    cluster = RayCluster(address or "auto", workers) if engine else None
    workshop = Workshop.beside(folder, resume=resume, cluster=cluster)

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.scan import scan as run_scan

        return run_scan(
            corpus,
            benchmark,
            policies=names,
            unit=unit,
            workers=workers,
            seed=seed,
            min_run=min_run,
            text=text,
            columns=options.columns_of(id_column, url_column, date_column),
            exclude=exclude or (),
            mapping=parts,
            name=name,
            split=split,
            allow_missing=allow_missing,
            max_evidence=max_evidence,
            keep_text=not no_text,
            workshop=workshop,
            block_items=block_items,
            progress=progress,
        )

    try:
        result = write_result(search, folder, overwrite=overwrite, quiet=quiet)
    except (KeyboardInterrupt, SystemExit, ContamError):
        if folder == LAST.shown and LAST.is_there():
            workshop.discard()
        elif n_done := workshop.n_done():
            talk(f"leases done: {n_done}; the same call with --resume goes on from there")
        raise
    workshop.discard()
    return print_result(
        result, folder, fail_on_flagged=fail_on_flagged, as_json=as_json, quiet=quiet
    )


def refuse_long_seed(seed: int, min_run: int) -> None:
    """Raise UsageError for seeds that are longer than the runs which they have to find."""
    if seed > min_run:
        raise UsageError(
            f"--seed {seed} is longer than --min-run {min_run}",
            hint="a run is found by its seeds: choose a shorter --seed",
        )


def write_result(
    search: Callable[[ScanProgress], ScanResult], folder: Path, *, overwrite: bool, quiet: bool
) -> ScanResult:
    """Search with progress on stderr, and write what was found to a folder.

    search  loads the compiler, so it is called once the cheap refusals are over
    """
    from contam.cli.progress import reporter
    from contam.detect.report import report_draft

    with report_draft(folder, overwrite=overwrite) as draft:
        with reporter(quiet=quiet) as progress:
            result = search(progress)
        noted(result.run)
        draft.write(result)
    return result


def refuse_beside_plan(
    context: typer.Context, allowed: Collection[str], where: str = "--plan"
) -> None:
    """Raise UsageError for an option of the call that a plan has settled.

    allowed  names of the parameters that whoever works on a plan may choose
    """
    hints = {
        "--resume": "a worker always goes on: the same call without it does what is left",
        "--overwrite": "parts that are whole are kept; choose another folder to do all again",
        "--index": "give --out DIR for the groups; `contam index merge` makes the index of them",
        "--fail-on-flagged": "give it to `contam merge`, which judges",
    }
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in allowed or source is None or source.name != "COMMANDLINE":
            continue
        flag = max(option.opts, key=len)
        hint = hints.get(flag, "the plan says what is searched, for what and how")
        raise UsageError(f"{flag} does not go with {where}", hint=hint)


def refuse_out_in(out: str | Path, corpus: Iterable[str], what: str = "the results") -> None:
    """Raise UsageError when the results would lie inside what is searched."""
    if is_address(out):
        writable(out)
    for folder in filter(None, corpus):
        if lies_in(out, folder):
            raise UsageError(
                f"--out {out} lies inside the corpus folder {folder}",
                hint=f"the next run would take {what} for corpus: choose a folder outside",
            )


def _left_open(result: ScanResult) -> int:
    """Verdicts that the index of a query left open."""
    if "index" not in result.run:
        return 0
    from contam.detect.indexed.guarantee import MAY_BE_MISSED

    reasons: Any = result.verdict_columns["reason"]  # a list, as every query fills it
    return sum(reason.startswith(MAY_BE_MISSED) for reason in reasons)


def exit_code(result: ScanResult | Answer, *, fail_on_flagged: bool) -> int:
    """An answer that is not whole (4) weighs more than what it says (3)."""
    code = result.exit_code()
    if code == 0 and fail_on_flagged and result.flagged():
        return EXIT_FLAGGED
    return code


def print_result(
    result: ScanResult,
    out: Path,
    *,
    fail_on_flagged: bool,
    as_json: bool,
    quiet: bool,
    way_out: str = NOT_READ,
) -> int:
    """Say what a finished run found, and what it did not read; returns the exit code.

    way_out  what to do where a part of the corpus was not read
    """
    code = exit_code(result, fail_on_flagged=fail_on_flagged)
    from contam.cli import render
    from contam.cli.terminal import emit, plain, visible
    from contam.detect.result import SKIPPED, notes_below

    if not quiet:
        names = (one["name"] for one in result.run["inputs"].get("benchmarks", ()))
        below = tuple(f"{name}{SKIPPED}" for name in names)
        shown = notes_below(result.run)
        notes = [
            note
            for note in result.run.get("notes", [])
            if not note.startswith(below) and note not in shown
        ]
        for note in notes[:_NOTES_SHOWN]:
            talk(f"note: {plain(note)}")
        if len(notes) > _NOTES_SHOWN:
            talk(f"note: {len(notes) - _NOTES_SHOWN:,} more notes in run.json")
        if code == result.exit_code() != 0:
            talk("part of the corpus was not read: items that were not found are not_checkable")
            talk(f"hint: {way_out}")
        elif not result.complete:
            talk("part of the corpus was not read: clean means not found in what was read")
    if as_json:
        render.emit_json(
            {
                "out": str(out),
                "exit_code": code,
                "counts": result.counts(),
                "coverage": result.coverage,
                "skipped_rows": render.skipped_rows(result.run["inputs"]),
                "skipped_files": render.skipped_files(result.run["inputs"]),
                "flagged": [verdict.to_dict() for verdict in result.flagged()],
            }
        )
        return code
    render.emit_renderable(render.verdict_table(result.counts()))
    lines = render.result_lines(result.run)
    if unsure := _left_open(result):
        lines.append(
            f"{render.counted(unsure, 'verdict')} not checkable by this index, since a copy may "
            "have been missed: contam scan of the same corpus can judge them"
        )
    lines += ["", f"results   {out}"]
    if result.n_flagged:
        lines.append(f"evidence  {out / 'evidence.parquet'}; side by side: contam show {out}")
    emit("\n".join(visible(line) for line in lines) + "\n")
    return code
