"""What commands share: refuse, write with progress, print what was found and what a share did."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import typer

from contam.cli import render
from contam.cli.options import PARTS, SHARD, option
from contam.cli.terminal import Reporter, emit, folded, plain, talk, visible
from contam.errors import UsageError
from contam.extras import require
from contam.facts import counted
from contam.files.addresses import is_address
from contam.files.stores import lies_in, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from contam.cli.options import OutputOptions, VerdictOptions
    from contam.client.answers import Answer
    from contam.detect.corpus import ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.parts.search import Work
    from contam.detect.result import ScanResult


EXIT_FLAGGED: Final = 3
EXIT_INCOMPLETE: Final = 4
ALLOW_MISSING: Final = "or judge without them with --allow-missing"
_NOTES_SHOWN: Final = 20


def write_result(
    search: Callable[[ScanProgress], ScanResult],
    folder: Path,
    output: OutputOptions,
    *,
    every_hit: bool = False,
) -> ScanResult:
    """Search with progress on stderr, and write what was found to a folder.

    search     loads the compiler, so it is called once the cheap refusals are over
    every_hit  whether it keeps every hit
    """
    from contam.detect.report import report_draft

    with report_draft(folder, overwrite=output.overwrite, every_hit=every_hit) as draft:
        with Reporter(quiet=output.quiet) as progress:
            result = search(progress)
        draft.write(result)
    return result


def tell_scored(run: Mapping[str, Any], output: OutputOptions) -> int:
    """Say what a re-scoring or a study noted; 4 if its verdicts do not cover the whole corpus."""
    complete = run.get("coverage", {}).get("complete", True)
    if not output.quiet:
        for note in run.get("notes", ()):
            talk(f"note: {plain(note)}")
        if not complete:
            talk("the verdicts do not cover the whole corpus: clean is not certain")
    return 0 if complete else EXIT_INCOMPLETE


def refuse_beside(context: typer.Context, allowed: Collection[str], where: str, hint: str) -> None:
    """Raise UsageError for an option that was typed and does not go with another.

    allowed  names of the parameters that go with it
    """
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if param.name in allowed or source is None or source.name != "COMMANDLINE":
            continue
        if context.params.get(param.name or "") in (None, (), []):
            continue  # older releases say of an argument that was left out that it was typed
        is_argument = param.param_type_name == "argument"
        named = str(param.name).upper() if is_argument else max(param.opts, key=len)
        raise UsageError(f"{named} does not go with {where}", hint=hint)


def refuse_out_in(out: str | Path, corpus: Iterable[str], flag: str = "--out") -> None:
    """Raise UsageError when what is written would lie inside what is searched."""
    if is_address(out):
        writable(out)
    for folder in filter(None, corpus):
        if lies_in(out, folder):
            raise UsageError(
                f"{flag} {out} lies inside the corpus folder {folder}",
                hint="the next run would take it for corpus: choose a folder outside",
            )


def write_text(out: Path, text: str, *, overwrite: bool, named: str = "--out") -> None:
    """Write a file. Raises UsageError where it would lie in a result, pack or index."""
    from contam.files.single import write_file

    refuse_inside(out, named)
    write_file(out, text.encode("utf-8", "replace"), overwrite=overwrite)


def refuse_inside(out: Path, option: str = "--out") -> None:
    """Raise UsageError for a file in a result, pack or index. Links are followed."""
    from contam.corpus.outputs import what_wrote

    for folder in Path(os.path.realpath(out)).parents:
        if what := what_wrote(folder):
            raise UsageError(
                f"{option} {out} lies inside {what}, {folder}", hint="choose a place outside of it"
            )


def _left_open(result: ScanResult) -> int:
    """Verdicts that the index of a query left open."""
    if "index" not in result.run:
        return 0
    from contam.detect.query import MAY_BE_MISSED

    reasons: Any = result.verdict_columns["reason"]  # a list, as every query fills it
    return sum(reason.startswith(MAY_BE_MISSED) for reason in reasons)


def exit_code(result: ScanResult | Answer, *, fail_on_flagged: bool) -> int:
    """An answer that is not whole (4) weighs more than what it says (3)."""
    code = result.exit_code()
    if code == 0 and fail_on_flagged and result.flagged():
        return EXIT_FLAGGED
    return code


def _repair_or_exclude(coverage: Mapping[str, Any]) -> str:
    """What to do about shards that a scan did not read."""
    first = next((shlex.quote(one["shard"]) for one in coverage["shards_failed"]), "NAME")
    return (
        "repair the shards named NOT READ, leave out what is no part of the corpus "
        f"(--exclude {plain(first)}), {ALLOW_MISSING}"
    )


def print_result(result: ScanResult, out: Path, output: VerdictOptions, way_out: str = "") -> int:
    """Say what a finished run found, and what it did not read; returns the exit code.

    way_out  what to do where a part of the corpus was not read, other than for a scan
    """
    code = exit_code(result, fail_on_flagged=output.fail_on_flagged)
    from contam.detect.result import SKIPPED, notes_below

    if not output.quiet:
        names = (one["name"] for one in result.run["inputs"].get("benchmarks", ()))
        below = tuple(f"{name}{SKIPPED}" for name in names)
        shown = notes_below(result.run)
        notes = [
            note
            for note in result.run.get("notes", [])
            if not note.startswith(below) and note not in shown
        ]
        for note in render.at_most(_NOTES_SHOWN, notes, "more notes in run.json"):
            talk(f"note: {plain(note)}")
        if code == result.exit_code() != 0:
            talk("part of the corpus was not read: items that were not found are not_checkable")
            talk(f"hint: {way_out or _repair_or_exclude(result.coverage)}")
        elif not result.complete:
            talk("part of the corpus was not read: clean means not found in what was read")
    if output.as_json:
        render.emit_json(
            {
                "out": str(out),
                "exit_code": code,
                "counts": result.counts(),
                "coverage": result.coverage,
                "skipped_rows": render.skipped_rows(result.run["inputs"]),
                "skipped_files": render.skipped_files(result.run["inputs"]),
                "read": render.readings_json(result.run["inputs"]),
                "flagged": [verdict.to_dict() for verdict in result.flagged()],
            }
        )
        return code
    render.emit_renderable(render.verdict_table(result.counts()))
    lines = render.result_lines(result.run)
    if unsure := _left_open(result):
        lines.append(
            f"{counted(unsure, 'verdict')} not checkable by this index, since a copy may "
            "have been missed: contam scan of the same corpus can judge them"
        )
    lines += ["", f"results   {out}"]
    if result.n_flagged:
        lines.append(f"evidence  {out / 'evidence.parquet'}; side by side: contam show {out}")
    emit("\n".join(folded(visible(line)) for line in lines) + "\n")
    return code


_SHARD: Final = re.compile(r"(auto(?=$|/)|\d+(?=/))(?:/(\d+))?")
_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionOptions:
    """How a search is divided into parts, and who works on them."""

    parts: str | None = PARTS
    shard: str | None = SHARD
    engine: Literal["ray"] | None = typer.Option(
        None, "--engine", help="Who does the work: ray, a cluster. [default: this machine]"
    )
    address: str | None = option(
        "HOST:PORT", "The Ray cluster. [default: RAY_ADDRESS, else the one of this machine]"
    )

    def division(self, corpus: Iterable[str], workers: int | None, **more: Any) -> Division:  # noqa: ANN401 - fields of it
        """The same as the library's calls take it. Raises UsageError for what does not fit."""
        if self.engine is not None:
            require(self.engine)
        elif self.address is not None:
            raise UsageError("--address needs --engine", hint="give --engine ray")
        if self.shard is not None and self.parts is None:
            raise UsageError("--shard needs --parts", hint="a folder for the parts of all shares")
        if self.parts is not None:
            refuse_out_in(self.parts, corpus, "--parts")
        from contam.detect.parts.part_store import Division, RayCluster

        return Division(
            folder=self.parts,
            share=(0, 1) if self.shard is None else parse_share(self.shard, os.environ),
            processes=True,
            cluster=RayCluster(self.address or "auto", workers) if self.engine else None,
            **more,
        )


def tell_work(
    thing: str,
    total: int,
    *,
    done: int,
    kept: int,
    out: str,
    as_json: bool,
    not_whole: int = 0,
    failures: Sequence[tuple[str, str]] = (),
    then: str = "",
) -> int:
    """Say what a worker did, and what it could not read; returns the exit code.

    thing      what it does one by one, of which there are `total`;  kept  were there before
    not_whole  how many of those it worked on have a shard that was not read
    failures   names of shards, and why each was not read
    then       what comes next, where the folder holds nothing yet
    """
    code = EXIT_INCOMPLETE if failures else 0
    for name, reason in failures[:_NAMED]:
        shown = reason.removeprefix(f"{name}: ")
        talk(f"NOT READ: {plain(name)}: {plain(shown)}")
    if len(failures) > _NAMED:
        talk(f"NOT READ: {len(failures) - _NAMED:,} more")
    if failures:
        talk(
            f"hint: repair these shards and run the same call again: it repeats their {thing}s. "
            "One put back needs its old time of writing (cp -p)"
        )
    if as_json:
        not_read = [{"shard": name, "reason": reason} for name, reason in failures]
        render.emit_json(
            {
                "out": out,
                "exit_code": code,
                f"{thing}s": total,
                "done": done,
                "kept": kept,
                "not_whole": not_whole,
                "not_read": not_read,
            }
        )
        return code
    before = f", {kept:,} there before" if kept else ""
    again = f", {not_whole:,} not read to the end" if not_whole else ""
    last = f"then      {then}" if then else f"parts     {out}"
    emit(f"{counted(done - not_whole, thing)} of {total:,} done{before}{again}\n{last}\n")
    return code


def tell_idle(thing: str, total: int, n_workers: int, *, quiet: bool) -> None:
    """Say so where there is less to do than workers to do it."""
    if total < n_workers and not quiet:
        enough = "one worker is" if total <= 1 else f"{total:,} workers are"
        talk(f"note: all of it is {counted(total, thing)}: {enough} enough, not {n_workers:,}")


def tell_search(work: Work, out: str, *, as_json: bool, then: str = "") -> int:
    """Say which parts of a search a worker computed; returns the exit code."""
    return tell_work(
        "part",
        work.total,
        done=len(work.done),
        kept=len(work.kept),
        not_whole=len(work.not_whole),
        failures=[(failure.name, failure.reason) for failure in work.failures],
        out=out,
        as_json=as_json,
        then=then,
    )


def parse_share(text: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """`7/256` as (6, 256): the number of a worker, from 0, and how many there are.

    `auto` takes both from a Slurm array; `auto/256` the number from a Kubernetes Indexed Job, whose
    pods are not told how many they are. Raises UsageError, also for an array with gaps.
    """

    def wrong(said: str, hint: str = "give I/N, for example 7/256") -> UsageError:
        return UsageError(f"--shard {text}: {said}", hint=hint)

    def number(name: str, otherwise: str = "") -> int:
        value = environment.get(name, otherwise)
        if not value.isdecimal():
            raise wrong(f"{name} is {value!r}, not a number" if value else f"{name} is not set")
        return int(value)

    found = _SHARD.fullmatch(text)
    if found is None:
        raise wrong("not understood", "give I/N, for example 7/256, or auto")
    total = int(found[2] or 0)
    hint = "7/256 is the seventh of 256 workers"
    if found[1] != "auto":
        index = int(found[1]) - 1
    elif "SLURM_ARRAY_TASK_ID" in environment:
        step = max(1, number("SLURM_ARRAY_TASK_STEP", "1"))
        # Of `--array=1-64` the first task is number 1, of `--array=0-63` number 0.
        first = number("SLURM_ARRAY_TASK_MIN", "0")
        index = (number("SLURM_ARRAY_TASK_ID") - first) // step
        count = number("SLURM_ARRAY_TASK_COUNT")
        if found[2] and total != count:
            raise wrong(f"the array has {count} tasks", "give auto alone")
        total = count
        hint = "submit the whole array again, what is done is kept; or give I/N"
    elif "JOB_COMPLETION_INDEX" in environment:
        index = number("JOB_COMPLETION_INDEX")
        hint = "give the `completions` of the Job, for example --shard auto/64"
        if not found[2]:
            raise wrong("an Indexed Job does not tell its pods how many they are", hint)
    else:
        raise wrong("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set")
    if not 0 <= index < total:
        raise wrong(f"there is no worker {index + 1} of {total}", hint)
    return index, total
