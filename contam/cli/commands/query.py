"""`contam query` and `contam check`: ask an index or a service for benchmarks, or for one text."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from contam import facts
from contam.cli import options, render
from contam.cli.commands.show import as_tree, item_blocks
from contam.cli.options import option, split_names
from contam.cli.results import (
    ALLOW_MISSING,
    exit_code,
    print_result,
    refuse_beside,
    refuse_out_in,
    write_result,
)
from contam.cli.terminal import Reporter, emit, plain, talk, visible
from contam.errors import UsageError
from contam.files.single import reading
from contam.files.stores import place

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.client import Answer, Job
    from contam.detect.corpus import ScanProgress
    from contam.detect.result import ScanResult


#: What to do where a part of the corpus was not read.
_WAY_OUT: Final = (
    "repair the shards named NOT READ and `contam index add` them, compare all bytes of those that "
    "may differ by `contam index verify`, leave out what is no part of the corpus (`contam index "
    f"retire --shard NAME`), {ALLOW_MISSING}"
)

#: What goes with a text, which is not judged.
_WITH_TEXT: Final = frozenset(
    ("index", "corpus", "home", "max_evidence", "allow_missing", "workers", "as_json", "quiet")
)  # fmt: skip


@options.shared
def query(
    *,
    context: typer.Context,
    index: list[str] = option(
        "DIR,...", "Index folders or names; several count as one corpus.", ...
    ),
    benchmark: list[str] | None = options.BENCHMARK,
    out: str | None = options.OPTIONAL_OUT,
    text: str | None = option("TEXT", "Search for this text instead of a benchmark."),
    text_file: str | None = option("PATH", "Search for the text in this file; - reads stdin."),
    items: options.ItemOptions,
    kept: options.KeptOptions,
    corpus: list[str] | None = options.MOVED,
    home: str | None = options.HOME,
    unit: str | None = option("UNIT", "Refuse an index of any other unit."),
    workers: int | None = options.WORKERS,
    output: options.VerdictOptions,
) -> int:
    """Search indexed documents for benchmark items; write the same files as `contam scan`.

    With --text or --text-file: count the documents that hold all of it, and print those that share
    text with it, side by side.

    Examples:
        contam query --index web --benchmark gsm8k.jsonl --out results
        contam query --index ./web --text 'Natalia sold clips to 48 of her friends'
    """
    indexes = split_names(index)
    if not indexes:
        raise UsageError("--index names no index", hint="`contam index build` makes one")
    asked = {**items.arguments(), **kept.arguments()}
    if text is not None or text_file is not None:
        where = "--text-file" if text is None else "--text"
        allowed = {*_WITH_TEXT, where.removeprefix("--").replace("-", "_")}
        refuse_beside(context, allowed, where, "leave it out, or make a benchmark of one line")
        wanted = _read_text(text_file or "") if text is None else text
        return _ask_text(indexes, wanted, kept, output, corpus=corpus or None, home=home)
    if not benchmark:
        raise UsageError("there is nothing to look for", hint="give --benchmark, or --text")
    if not out:
        raise UsageError("--benchmark needs --out", hint="name a folder for the results")
    folder = place(out)
    refuse_out_in(folder, [*_searched(indexes, home), *(corpus or [])])

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.query import query as run_query

        return run_query(
            indexes,
            benchmark,
            corpus=corpus or None,
            home=home,
            unit=unit,
            workers=workers,
            progress=progress,
            **asked,
        )

    result = write_result(search, folder, output)
    return print_result(result, folder, output, way_out=_WAY_OUT)


def _searched(indexes: list[str], home: str | None) -> list[str]:
    """The folders of the indexes, and those that they were made of."""
    from contam.index.manifest import read_manifest
    from contam.index.open import resolve_index

    folders = [resolve_index(index, home) for index in indexes]
    found = list(map(str, folders))
    for manifest in map(read_manifest, folders):
        uris = [shard.uri for shard in manifest.shards]
        # Paths are as somebody typed them, perhaps in another folder than this one.
        found += [
            path
            for path in manifest.paths
            if any(Path(uri).is_relative_to(Path(path).resolve()) for uri in uris)
        ]
    return found


def _read_text(path: str) -> str:
    with reading(Path(path), UsageError):
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return raw.decode("utf-8", "replace")


def _ask_text(
    indexes: list[str],
    text: str,
    kept: options.KeptOptions,
    output: options.OutputOptions,
    *,
    corpus: list[str] | None,
    home: str | None,
) -> int:
    """Print which documents share text with a text; returns the exit code."""
    from contam.benchmark.items import ItemName
    from contam.detect.indexed.index_reader import open_index
    from contam.detect.policies.policy import get_policy, list_policies, reads_text
    from contam.detect.query import query_a_little
    from contam.detect.report import Report
    from contam.detect.show.side_by_side import view_items
    from contam.kernels.warm_up import compile_once

    with Reporter(quiet=output.quiet) as progress:
        compile_once("query", query_a_little, progress)
    reader = open_index(indexes, corpus=corpus, home=home)
    # What is printed is what the documents share with the text: any policy that counts the
    # index's tokens will do.
    unit = "char" if reader.unit == "char" else "word"
    specs = [spec for spec in list_policies() if spec.unit == unit]
    policy = next(spec.id for spec in specs if not reads_text(get_policy(spec.id)))
    result = reader.check(
        text,
        policies=[policy],
        max_evidence=kept.max_evidence,
        allow_missing=kept.allow_missing,
    )
    n_tokens, sure = result.items.to_pylist()[0]["question_tokens"], reader.guarantee_tokens
    if n_tokens == 0:
        raise UsageError("the text holds no word", hint="give the text to look for")
    few = f"the text has {facts.counted(n_tokens, 'token')}"
    code = result.exit_code()
    if not output.quiet:
        if n_tokens < sure and result.evidence.num_rows:
            talk(f"{few}: only runs of {sure} are sure to be found")
        for note in result.run["notes"]:
            talk(f"note: {plain(note)}")
        if code:
            talk("the index does not answer for all of its corpus: see --json, or --allow-missing")
    # The documents with the whole text in them, where the index can count them.
    counted = reader.count(text) if reader.can_count(n_tokens) else None
    report = Report(
        folder=Path(),
        run=result.run,
        verdicts=result.verdicts,
        evidence=result.evidence,
        items=result.items,
    )
    key = ItemName.of(result.items_in_order[0])
    (view,) = view_items(report, [key], max_documents=kept.max_evidence)
    view = replace(view, verdicts=())
    if output.as_json:
        tree = as_tree(view)
        phrase = counted and {
            "exact": counted.exact,
            "n_documents": len(counted.documents),
            "documents": [{"shard": shard, "row": row} for shard, row in counted.documents],
        }
        render.emit_json(
            {
                "phrase": phrase,
                **{name: tree[name] for name in ("documents", "more_documents")},
                "tokens": n_tokens,
                "index": result.run["index"],
                "coverage": result.coverage,
            }
        )
        return code
    if counted is not None:
        least = "" if counted.exact else "at least "
        number = facts.counted(len(counted.documents), "document")
        emit(f"the whole text stands in {least}{number}\n")
    if not view.documents and n_tokens < sure:
        emit(f"nothing was found, but {few}, only runs of {sure} are sure to be found\n")
    else:
        render.emit_renderable(*item_blocks(view))
    emit("".join(f"{visible(line)}\n" for line in render.gap_lines(result.coverage)))
    return code


_CHECKED_WITH_TEXT: Final = frozenset(
    ("server", "text", "index", "policy", "as_json", "allow_missing", "max_evidence",
     "fail_on_flagged", "quiet")
)  # fmt: skip


@options.shared
def check(
    *,
    context: typer.Context,
    server: str = options.SERVER,
    benchmark: list[str] | None = options.BENCHMARK,
    out: str | None = options.OPTIONAL_OUT,
    text: str | None = option("TEXT", "Judge this text instead of a benchmark."),
    index: list[str] | None = options.SERVED,
    policy: list[str] | None = options.POLICIES,
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
        refuse_beside(context, _CHECKED_WITH_TEXT, "--text", "make a benchmark of one line")
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
    from contam.client.client import result_folder

    with Client(server) as client:
        if not out or isinstance(items, str):
            asked.pop("keep_text", None)
            return _print_answer(client.check(items, **asked), records, output)
        # A folder that is taken is refused before anything is asked.
        with result_folder(out, overwrite=output.overwrite) as folder:
            job = client.submit(items, **asked)
            if not output.quiet:
                talk(f"job {plain(job.id)}: {facts.counted(len(items), 'item')} sent")
            client.download(client.wait(job, watcher=None if output.quiet else Watcher()), folder)
    return _print_folder(Path(out), records, output)


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
