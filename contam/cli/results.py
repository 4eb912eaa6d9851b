"""What scan, query and check share: refuse, write with progress, print what was found."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.cli import render
from contam.cli.terminal import Reporter, emit, folded, plain, talk, visible
from contam.errors import UsageError
from contam.facts import counted
from contam.files.addresses import is_address
from contam.files.stores import lies_in, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import typer

    from contam.cli.options import OutputOptions, VerdictOptions
    from contam.client.answers import Answer
    from contam.detect.corpus import ScanProgress
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
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in allowed or source is None or source.name != "COMMANDLINE":
            continue
        if context.params.get(option.name or "") in (None, (), []):
            continue  # older releases say of an argument that was left out that it was typed
        is_argument = option.param_type_name == "argument"
        flag = str(option.name).upper() if is_argument else max(option.opts, key=len)
        raise UsageError(f"{flag} does not go with {where}", hint=hint)


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
