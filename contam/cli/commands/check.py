"""`contam check`: ask a service for the items of benchmarks, or for one text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options
from contam.cli.options import split_names
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.benchmark.items import BenchItem
    from contam.client import Answer, Client, Job

SPREAD_OPTIONS = ("--benchmark", "--index", "--policy", "--map")


def check(
    *,
    server: options.Server,
    benchmark: options.Benchmark = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder for the results. [default: only print them]"),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Judge this text instead of a benchmark."),
    ] = None,
    index: options.Served = None,
    policy: options.Policies = None,
    as_json: options.Summary = False,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    no_text: options.NoText = False,
    allow_missing: options.AllowMissing = False,
    overwrite: options.Overwrite = False,
    max_evidence: options.MaxEvidence = 20,
    fail_on_flagged: options.FailOnFlagged = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Check benchmark items with a service; the verdicts are those of `contam query`.

    With --out, DIR has the same files, too. The key is read from CONTAM_KEY, or from the file that
    CONTAM_KEY_FILE names.
    """
    names = options.policy_names(policy)
    if (text is None) == (not benchmark):
        raise UsageError("give --benchmark or --text", hint="one of them")
    if text is not None and (out or mapping or name or split or no_text):
        raise UsageError("a text takes no --out, --map, --name, --split and --no-text")
    if out is not None and not out:
        raise UsageError("--out is empty", hint="check the variable it came from")
    if no_text and not out:
        raise UsageError("--no-text is about results that are kept", hint="give --out")
    asked: dict[str, Any] = {
        "index": split_names(index) if index else None,
        "policies": names,
        "max_evidence": max_evidence,
        "allow_missing": allow_missing,
    }
    items: str | list[BenchItem]
    if text is not None:
        items = text
    else:
        items = list(_items(benchmark or [], mapping, name, split, quiet=quiet, secret=no_text))

    from contam.client import Client

    with Client(server) as client:
        if out and not isinstance(items, str):
            _save(
                client, items, Path(out), asked, overwrite=overwrite, no_text=no_text, quiet=quiet
            )
            return _print_folder(
                Path(out), as_json=as_json, quiet=quiet, fail_on_flagged=fail_on_flagged
            )
        answer = client.check(items, **asked)
    return _print_answer(answer, as_json=as_json, quiet=quiet, fail_on_flagged=fail_on_flagged)


def _items(
    paths: list[str],
    mapping: list[str] | None,
    name: str | None,
    split: str | None,
    *,
    quiet: bool,
    secret: bool,
) -> Iterator[BenchItem]:
    from contam.benchmark.mapping import parse_mapping
    from contam.benchmark.read_files import read_benchmarks
    from contam.cli import render
    from contam.cli.terminal import plain, talk

    found = read_benchmarks(
        paths,
        mapping=parse_mapping(mapping) if mapping else None,
        name=name,
        split=split,
        secret=secret,
    )
    for benchmark in found:
        if benchmark.skipped and not quiet:
            first = benchmark.skipped[0]
            talk(
                f"note: {plain(benchmark.name)}: "
                f"{render.counted(len(benchmark.skipped), 'row')} left out, "
                f"the first for: {plain(first.reason)}"
            )
        yield from benchmark.items


def _save(
    client: Client,
    items: list[BenchItem],
    out: Path,
    asked: dict[str, Any],
    *,
    overwrite: bool,
    no_text: bool,
    quiet: bool,
) -> None:
    from contam.cli.terminal import plain, talk
    from contam.client.folder import result_folder

    # A folder that is taken is refused before anything is asked.
    with result_folder(out, overwrite=overwrite) as folder:
        job = client.submit(items, keep_text=not no_text, **asked)
        if not quiet:
            talk(f"job {plain(job.id)}: {len(items):,} items sent")
        client.download(client.wait(job, watcher=None if quiet else Watcher()), folder)


class Watcher:
    """Says when a job begins something else, and every tenth of its reading."""

    def __init__(self) -> None:
        self._message = ""

    def __call__(self, job: Job) -> None:
        """Say it, when it is new."""
        from contam.cli.terminal import plain, talk

        share = f" {int(job.share * 10) * 10} %" if job.share else ""
        message = f"{job.phase or job.state}{share}"
        if message != self._message:
            self._message = message
            talk(plain(message))


def _print_folder(out: Path, *, as_json: bool, quiet: bool, fail_on_flagged: bool) -> int:
    from contam.cli.commands.scan import print_result
    from contam.detect.report import load_report
    from contam.detect.result import VERDICTS, ScanResult
    from contam.tables import schemas

    report = load_report(out)
    result = ScanResult(
        verdict_columns={name: schemas.column(report.verdicts, name) for name in VERDICTS.names},
        evidence_columns={},
        item_columns={},
        run=report.run,
        sorted_by_item=True,
    )
    return print_result(result, out, fail_on_flagged=fail_on_flagged, as_json=as_json, quiet=quiet)


def _print_answer(answer: Answer, *, as_json: bool, quiet: bool, fail_on_flagged: bool) -> int:
    from contam.cli import render
    from contam.cli.commands.scan import exit_code
    from contam.cli.terminal import emit, plain, talk

    code = exit_code(answer, fail_on_flagged=fail_on_flagged)
    if not quiet and answer.late:
        talk("the service's deadline passed before all items were judged: give --out DIR")
    if not quiet and not answer.complete:
        talk("the indexes do not answer for all of their corpus")
    if as_json:
        render.emit_json(
            {
                "exit_code": code,
                "counts": answer.counts(),
                "index": list(answer.index),
                "guarantee_tokens": answer.guarantee_tokens,
                "coverage": dict(answer.coverage),
                "capped": dict(answer.capped),
                "flagged": [verdict.to_dict() for verdict in answer.flagged()],
            }
        )
        return code
    lines = [
        plain(
            f"{verdict.item_id}  {verdict.policy}  {verdict.label}  "
            f"{verdict.best_document_id or '-'}  {verdict.reason}"
        )
        for verdict in answer.flagged()
    ]
    render.emit_renderable(render.verdict_table(answer.counts()))
    emit("".join(f"{line}\n" for line in (["", *lines] if lines else [])))
    return code
