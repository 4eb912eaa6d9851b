"""`contam query`: ask an index for the items of benchmarks, or for one text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.commands.scan import (
    NOT_READ,
    print_result,
    refuse_long_seed,
    refuse_out_in,
    write_result,
)
from contam.cli.options import split_names
from contam.errors import UsageError
from contam.files.uploads import place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress

SPREAD_OPTIONS = ("--index", "--benchmark", "--corpus", "--policy", "--map")


def query(
    *,
    index: Annotated[
        list[str],
        typer.Option(
            metavar="DIR,...", help="Index folders or names; several count as one corpus."
        ),
    ],
    benchmark: options.Benchmark = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for the results of --benchmark.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Search for this text instead of a benchmark."),
    ] = None,
    text_file: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Search for the text in this file; - reads stdin."),
    ] = None,
    policy: options.Policies = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH...", help="Where the shards are now, if they were moved."),
    ] = None,
    home: options.Home = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="Refuse an index of any other unit."),
    ] = None,
    workers: options.Workers = None,
    as_json: options.Summary = False,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    no_text: options.NoText = False,
    allow_missing: options.AllowMissing = False,
    overwrite: options.Overwrite = False,
    max_evidence: options.MaxEvidence = 20,
    seed: options.Seed = 5,
    min_run: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Report every run of at least this many tokens in documents that are read.",
        ),
    ] = 8,
    fail_on_flagged: options.FailOnFlagged = False,
    quiet: options.Quiet = False,
    settings: options.Settings = None,  # noqa: ARG001 - read by main, listed here for --help
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Search indexed documents for benchmark items; write the same files as `contam scan`.

    With --text or --text-file: print the documents that share text with it, side by side.
    """
    indexes = split_names(index)
    if not indexes:
        raise UsageError("--index names no index", hint="`contam index build` makes one")
    names = options.policy_names(policy)
    if text is not None or text_file is not None:
        if benchmark or out or (text is not None and text_file is not None):
            raise UsageError(
                "--text, --text-file and --benchmark exclude each other, and a text needs no --out",
                hint="leave one out; the column of the text is chosen by contam index build --text",
            )
        judging = {
            "--policy": policy, "--fail-on-flagged": fail_on_flagged, "--unit": unit,
            "--map": mapping, "--name": name, "--split": split, "--no-text": no_text,
        }  # fmt: skip
        if useless := [option for option, value in judging.items() if value]:
            raise UsageError(
                f"{', '.join(useless)}: of no use with a text, which is not judged",
                hint="leave it out, or make a benchmark of one line",
            )
        wanted = _read_text(text_file or "") if text is None else text
        return _ask_text(
            indexes,
            wanted,
            corpus=corpus,
            home=home,
            max_evidence=max_evidence,
            allow_missing=allow_missing,
            as_json=as_json,
            quiet=quiet,
        )
    if not benchmark:
        raise UsageError("there is nothing to look for", hint="give --benchmark, or --text")
    if not out:
        raise UsageError("--out is missing or empty", hint="name a folder for the results")
    refuse_long_seed(seed, min_run)
    folder = place(out)
    refuse_out_in(folder, [*_searched(indexes, home), *(corpus or [])])
    from contam.benchmark.mapping import parse_mapping

    parts: Mapping[str, str] | None = parse_mapping(mapping) if mapping else None

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.query import query as run_query

        return run_query(
            indexes,
            benchmark,
            policies=names,
            corpus=corpus or None,
            home=home,
            unit=unit,
            workers=workers,
            seed=seed,
            min_run=min_run,
            mapping=parts,
            name=name,
            split=split,
            allow_missing=allow_missing,
            max_evidence=max_evidence,
            keep_text=not no_text,
            progress=progress,
        )

    result = write_result(search, folder, overwrite=overwrite, quiet=quiet)
    return print_result(
        result,
        folder,
        fail_on_flagged=fail_on_flagged,
        as_json=as_json,
        quiet=quiet,
        way_out=_way_out(result, indexes, corpus or []),
    )


def _way_out(result: ScanResult, indexes: list[str], corpus: list[str]) -> str:
    """What to do where a part of the corpus was not read."""
    from contam.corpus.rowcache import VERIFY

    failed = result.coverage["shards_failed"]
    unsure = [shard for shard in failed if shard["reason"].endswith(VERIFY)]
    if not unsure:
        return NOT_READ
    words = ["contam", "index", "verify", "--index", indexes[0] if len(indexes) == 1 else "DIR"]
    if corpus:
        words += ["--corpus", *corpus]
    others = "repair the others, " if len(unsure) < len(failed) else ""
    return (
        f"`{shlex.join(words)}` compares all bytes of shards that may differ, after which queries "
        f"read them; {others}or judge without them with --allow-missing"
    )


def _searched(indexes: list[str], home: str | None) -> list[str]:
    """The folders of the indexes, and those that they were made of."""
    from contam.index.home import resolve_index
    from contam.index.manifest import read_manifest

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
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path"
        ) from error
    return raw.decode("utf-8", "replace")


def _ask_text(
    indexes: list[str],
    text: str,
    *,
    corpus: list[str] | None,
    home: str | None,
    max_evidence: int,
    allow_missing: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    from contam.cli.progress import reporter
    from contam.cli.terminal import plain, talk
    from contam.detect.indexed.index_reader import open_index
    from contam.detect.policies.policy import get_policy, list_policies, reads_text
    from contam.detect.warm import query_a_little
    from contam.kernels.warm_up import compile_once

    with reporter(quiet=quiet) as progress:
        compile_once("query", query_a_little, progress)
    reader = open_index(indexes, corpus=corpus or None, home=home)
    # What is printed is what the documents share with the text: any policy that counts the
    # index's tokens will do.
    unit = "char" if reader.unit == "char" else "word"
    specs = [spec for spec in list_policies() if spec.unit == unit]
    policy = next(spec.id for spec in specs if not reads_text(get_policy(spec.id)))
    result = reader.check(
        text, policies=[policy], max_evidence=max_evidence, allow_missing=allow_missing
    )
    (row,) = result.items.to_pylist()
    n_tokens = row["question_tokens"]
    if n_tokens == 0:
        raise UsageError("the text holds no word", hint="give the text to look for")
    code = result.exit_code()
    if not quiet:
        if n_tokens < reader.guarantee_tokens and result.evidence.num_rows:
            talk(
                f"the text has {n_tokens} tokens: only runs of {reader.guarantee_tokens} "
                "are sure to be found"
            )
        for note in result.run["notes"]:
            talk(f"note: {plain(note)}")
        if code:
            talk("the index does not answer for all of its corpus: see --json, or --allow-missing")
    sizes = (n_tokens, reader.guarantee_tokens)
    _print_text(result, sizes, as_json=as_json, max_documents=max_evidence)
    return code


def _print_text(
    result: ScanResult, sizes: tuple[int, int], *, as_json: bool, max_documents: int
) -> None:
    """Print what was found; sizes  tokens of the text, and of a run that is sure to be found."""
    from dataclasses import replace

    from contam.benchmark.items import ItemName
    from contam.cli import render
    from contam.cli.commands.show import as_tree, item_blocks
    from contam.cli.terminal import emit, visible
    from contam.detect.report import Report
    from contam.detect.show.side_by_side import view_items

    report = Report(
        folder=Path(),
        run=result.run,
        verdicts=result.verdicts,
        evidence=result.evidence,
        items=result.items,
    )
    (item,) = result.items_in_order
    n_tokens, guarantee_tokens = sizes
    key = ItemName.of(item)
    (view,) = view_items(report, [key], max_documents=max_documents)
    view = replace(view, verdicts=())
    if as_json:
        tree = as_tree(view)
        shown = {name: tree[name] for name in ("documents", "more_documents")}
        about = {"tokens": n_tokens, "index": result.run["index"], "coverage": result.coverage}
        render.emit_json({**shown, **about})
        return
    if not view.documents and n_tokens < guarantee_tokens:
        emit(
            f"nothing was found, but the text has {n_tokens} tokens, and only runs of "
            f"{guarantee_tokens} are sure to be found\n"
        )
    else:
        render.emit_renderable(*item_blocks(view))
    emit("".join(f"{visible(line)}\n" for line in render.gap_lines(result.coverage)))
