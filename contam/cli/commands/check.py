"""`contam check`: ask a service for the items of benchmarks, or for one text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from contam.cli import options, render
from contam.cli.options import option, split_names
from contam.cli.results import exit_code, print_result, refuse_beside
from contam.cli.terminal import emit, plain, talk, visible
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.client import Answer, Client, Job


_WITH_TEXT: Final = frozenset(
    ("server", "text", "index", "policy", "as_json", "allow_missing", "max_evidence",
     "fail_on_flagged", "quiet")
)  # fmt: skip


@options.shared
def check(
    *,
    context: typer.Context,
    server: options.Server,
    benchmark: options.Benchmark = None,
    out: options.OptionalOut = None,
    text: Annotated[str | None, option("TEXT", "Judge this text instead of a benchmark.")] = None,
    index: options.Served = None,
    policy: options.Policies = None,
    read: options.BenchmarkOptions,
    kept: options.KeptOptions,
    output: options.VerdictOptions,
) -> int:
    """Check benchmark items with a service; the verdicts are those of `contam query`.

    With --out, DIR has the same files, too. The key is read from CONTAM_KEY, or from the file that
    CONTAM_KEY_FILE names.

    Examples:
        contam check --server http://127.0.0.1:8000 --benchmark gsm8k.jsonl
        contam check --server http://127.0.0.1:8000 --benchmark gsm8k.jsonl --out results
    """
    names = options.policy_names(policy)
    if (text is None) == (not benchmark):
        raise UsageError("give --benchmark or --text", hint="one of them")
    if text is not None:
        refuse_beside(context, _WITH_TEXT, "--text", "make a benchmark of one line")
    if kept.no_text and not out:
        raise UsageError("--no-text needs --out", hint="name a folder for the results")
    asked: dict[str, Any] = {
        "index": split_names(index) if index else None,
        "policies": names,
        "max_evidence": kept.max_evidence,
        "allow_missing": kept.allow_missing,
    }
    items: str | list[BenchItem]
    records: list[dict[str, Any]] = []
    if text is not None:
        items = text
    else:
        from contam.benchmark.named import gated_among
        from contam.benchmark.read_files import read_benchmarks
        from contam.benchmark.reading import about_benchmark

        asked["keep_text"] = not (kept.no_text or gated_among(benchmark or ()))
        found = read_benchmarks(benchmark or [], **read.arguments(), secret=kept.no_text)
        records = [about_benchmark(one) for one in found]
        items = [item for one in found for item in one.items]

    from contam.client import Client

    with Client(server) as client:
        if out and not isinstance(items, str):
            _save(client, items, Path(out), asked, output)
            return _print_folder(Path(out), records, output)
        asked.pop("keep_text", None)
        answer = client.check(items, **asked)
    return _print_answer(answer, records, output)


def _save(
    client: Client,
    items: list[BenchItem],
    out: Path,
    asked: dict[str, Any],
    output: options.OutputOptions,
) -> None:
    from contam.client.client import result_folder

    # A folder that is taken is refused before anything is asked.
    with result_folder(out, overwrite=output.overwrite) as folder:
        job = client.submit(items, **asked)
        if not output.quiet:
            talk(f"job {plain(job.id)}: {counted(len(items), 'item')} sent")
        client.download(client.wait(job, watcher=None if output.quiet else Watcher()), folder)


class Watcher:
    """Says when a job begins something else, and every tenth of its reading."""

    def __init__(self) -> None:
        self._message = ""

    def __call__(self, job: Job) -> None:
        """Say it, when it is new."""
        share = f" {int(job.share * 10) * 10} %" if job.share else ""
        message = f"{job.phase or job.state}{share}"
        if message != self._message:
            self._message = message
            talk(plain(message))


def _print_folder(out: Path, records: list[dict[str, Any]], output: options.VerdictOptions) -> int:
    """Say what a job found; records  how the benchmarks were read here."""
    from contam.detect.report import load_report
    from contam.detect.result import VERDICTS, ScanResult
    from contam.tables import schemas

    report = load_report(out)
    result = ScanResult(
        verdict_columns={name: schemas.column(report.verdicts, name) for name in VERDICTS.names},
        evidence_columns={},
        item_columns={},
        # The service was sent items, and knows nothing of the files.
        run={**report.run, "inputs": {**report.run["inputs"], "benchmarks": records}},
    )
    return print_result(result, out, output)


def _print_answer(
    answer: Answer, records: list[dict[str, Any]], output: options.VerdictOptions
) -> int:
    code = exit_code(answer, fail_on_flagged=output.fail_on_flagged)
    if not output.quiet and answer.late:
        talk("the service's deadline passed before all items were judged: give --out DIR")
    if not output.quiet and not answer.complete:
        talk("the indexes do not answer for all of their corpus")
    if output.as_json:
        render.emit_json(
            {
                "exit_code": code,
                "counts": answer.counts(),
                "index": list(answer.index),
                "guarantee_tokens": answer.guarantee_tokens,
                "coverage": dict(answer.coverage),
                "capped": dict(answer.capped),
                "read": render.readings_json({"benchmarks": records}),
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
    read = map(visible, render.benchmark_lines({"benchmarks": records}))
    emit("".join(f"{line}\n" for line in read))
    emit("".join(f"{line}\n" for line in (["", *lines] if lines else [])))
    return code
