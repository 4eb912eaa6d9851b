"""`contam index`: build, change, verify and describe an index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.cli import options, render
from contam.cli.options import flag, option
from contam.cli.results import EXIT_INCOMPLETE, parse_share, tell_idle, tell_work
from contam.cli.terminal import Reporter, emit, plain, talk, visible
from contam.errors import UsageError
from contam.facts import counted, size

if TYPE_CHECKING:
    from contam.index.model import Manifest

app = options.group("index", "Index a corpus once, and check any benchmark against it.")


@app.command("build")
@options.shared
def build(
    *,
    corpus: list[str] = options.CORPUS,
    index: str = options.INDEX_FOLDER,
    recipe: str = options.RECIPE,
    unit: str | None = options.RECIPE_UNIT,
    workers: int | None = options.WORKERS,
    memory: str = options.BUILD_MEMORY,
    columns: options.ColumnOptions,
    home: str | None = options.HOME,
    shard: str | None = options.SHARD,
    output: options.OutputOptions,
) -> int:
    """Index every document of a corpus. Repeat the call to resume a build that was stopped.

    With --shard, many machines index a share each; the call without it makes the index.

    Examples:
        contam index build --corpus shards/*.parquet --index web
        contam index build --corpus shards --index ./chars --recipe chars --memory 4GB
    """
    n_bytes = options.parse_size(memory, "--memory")
    share = None if shard is None else parse_share(shard, os.environ)
    folder = _folder(index, home)
    from contam.index.recipe import load_recipe

    chosen = load_recipe(recipe, tokenizer=unit)
    how: dict[str, Any] = {
        "workers": workers,
        "memory": n_bytes,
        **columns.arguments(),
        "overwrite": output.overwrite,
    }
    with Reporter(quiet=output.quiet) as progress:
        if share is not None:
            from contam.index.share import build_share

            done = build_share(corpus, folder, share, chosen, **how, progress=progress)
            tell_idle("group", done.n_groups, share[1], quiet=output.quiet)
            return tell_work(
                "group",
                done.n_groups,
                done=done.n_done,
                kept=done.n_kept,
                out=str(folder),
                as_json=output.as_json,
                failures=[(failed.name, str(failed.failure)) for failed in done.failures],
                then="the same call without --shard makes the index when all shares are done",
            )
        from contam.index.build import build as build_all

        manifest = build_all(corpus, folder, chosen, **how, progress=progress)
    return print_built(folder, manifest, as_json=output.as_json)


@app.command("add")
@options.shared
def add(
    *,
    corpus: list[str] = options.CORPUS,
    index: str = options.INDEX_FOLDER,
    workers: int | None = options.WORKERS,
    memory: str = options.BUILD_MEMORY,
    columns: options.ColumnOptions,
    again: bool = flag("--again", "Take retired shards, too; otherwise they stay out."),
    home: str | None = options.HOME,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> int:
    """Index the shards that are not in the index yet.

    Examples:
        contam index add --corpus new-shards --index web
        contam index add --corpus new-shards --index web --workers 4
    """
    n_bytes = options.parse_size(memory, "--memory")
    folder = _folder(index, home)
    from contam.index import change

    with Reporter(quiet=quiet) as progress:
        added = change.add(
            folder,
            corpus,
            workers=workers,
            memory=n_bytes,
            **columns.arguments(),
            again=again,
            progress=progress,
        )
    lists = {"passed_over": list(added.passed_over), "still_retired": list(added.still_retired)}
    for names, said in (
        (added.passed_over, "indexed already"),
        (added.still_retired, "retired, and left out (--again takes them)"),
    ):
        if names and not quiet:
            talk(plain(f"{said}: {render.few(names)}"))
    return print_built(folder, added.manifest, as_json=as_json, more=lists)


@app.command("retire")
def retire(
    *,
    index: str = options.INDEX_FOLDER,
    shard: list[str] | None = option("NAME...", "Names of shards, as in reports."),
    document: list[str] | None = option("ID...", "Ids of documents, as in the evidence."),
    home: str | None = options.HOME,
    as_json: bool = options.JSON,
) -> None:
    """Exclude shards or documents from all answers, at once.

    Examples:
        contam index retire --index web --shard old.parquet
        contam index retire --index web --document $(cat ids.txt)
    """
    if not shard and not document:
        raise UsageError("nothing to retire", hint="name it with --shard or --document")
    folder = _folder(index, home)
    from contam.index.change import retire as retire_from

    retire_from(folder, shards=shard or [], documents=document or [])
    _print_summary(folder, as_json=as_json)


@app.command("compact")
def compact(
    *,
    index: str = options.INDEX_FOLDER,
    workers: int | None = options.WORKERS,
    memory: str = options.BUILD_MEMORY,
    home: str | None = options.HOME,
    as_json: bool = options.JSON,
) -> None:
    """Join segments and drop what is retired. No answer changes.

    Examples:
        contam index compact --index web
        contam index compact --index ./web
    """
    n_bytes = options.parse_size(memory, "--memory")
    folder = _folder(index, home)
    from contam.index.change import compact as compact_all

    compact_all(folder, workers=workers, memory=n_bytes)
    _print_summary(folder, as_json=as_json)


@app.command("verify", short_help="Check every byte of an index and of its shards.")
def verify(
    *,
    index: str = options.INDEX_FOLDER,
    corpus: list[str] | None = options.MOVED,
    home: str | None = options.HOME,
    as_json: bool = options.JSON,
) -> int:
    """Check every byte of an index, and that its corpus is unchanged.

    Exit codes: 0 all is well, 1 the index is damaged, 4 shards changed or cannot be read.

    Examples:
        contam index verify --index web
        contam index verify --index web --corpus /mnt/shards
    """
    folder = _folder(index, home)
    from contam.index.verify import verify as verify_all

    report = verify_all(folder, corpus=corpus or ())
    if as_json:
        render.emit_json(report.to_dict())
    else:
        emit(
            f"{counted(report.n_files, 'file')} ({size(report.n_bytes)}) and "
            f"{counted(report.n_shards, 'shard')} compared\n"
        )
        for finding in report.findings:
            emit(plain(f"WRONG {_once(finding.place, finding.fact)}") + "\n")
        if report.n_noted:
            shards = counted(report.n_noted, "shard")
            emit(f"the times of {shards} are recorded: queries rely on them\n")
        if report.not_noted:
            emit(plain(f"the times of the shards could not be noted: {report.not_noted}\n"))
        if report.ok:
            emit("the index is intact\n")
    return 0 if report.ok else 1 if report.damaged else EXIT_INCOMPLETE


@app.command("show")
def show(
    *,
    index: str = options.INDEX_FOLDER,
    home: str | None = options.HOME,
    as_json: bool = options.JSON,
) -> None:
    """Show what an index holds and how large it is.

    Examples:
        contam index show --index web
        contam index show --index web --json
    """
    from contam.index.open import resolve_index

    _print_summary(resolve_index(index, home), as_json=as_json)


def _folder(index: str, home: str | None) -> Path:
    from contam.index.open import resolve_index

    return resolve_index(index, home, to_write=True)


def _once(place: str, fact: str) -> str:
    """A place and what is wrong there; most facts begin with its path or name."""
    name, _, rest = fact.partition(": ")
    return f"{place}: {rest if rest and name and place.endswith(name) else fact}"


def print_built(
    folder: Path, manifest: Manifest, *, as_json: bool, more: dict[str, Any] | None = None
) -> int:
    """Say what an index that was made or changed holds; returns the exit code."""
    code = (
        EXIT_INCOMPLETE
        if any(shard.failure and not shard.retired for shard in manifest.shards)
        else 0
    )
    _print_summary(folder, as_json=as_json, more={"exit_code": code, **(more or {})})
    if code:
        talk("part of the corpus was not read: answers from this index will say so")
        talk("hint: repair the shards named NOT READ, then `contam index add` them")
    return code


def _print_summary(folder: Path, *, as_json: bool, more: dict[str, Any] | None = None) -> None:
    """Print what the index holds."""
    from contam.files.addresses import Address
    from contam.index.open import Index
    from contam.index.shards import describe

    facts = describe(Index.open(folder if isinstance(folder, Address) else folder.absolute()))
    if as_json:
        render.emit_json({**facts, **(more or {})})
        return
    emit("\n".join(visible(line) for line in _lines_of(facts)) + "\n")


def _lines_of(facts: dict[str, Any]) -> list[str]:
    recipe, text, own = facts["recipe"], facts["n_text_bytes"], facts["n_index_bytes"]
    unit = {"word": "words", "char": "letters and digits"}.get(recipe["unit"], "tokens")
    ratio = f", {own / text:.2f} times the text" if text else ""
    segments = counted(facts["n_segments"], "segment")
    lines = [
        f"index      {facts['index']}  ({facts['index_id']})",
        f"recipe     {recipe['name']}: every run of {facts['guarantee_tokens']} {unit} is found",
        f"size       {size(own)} in {segments}{ratio}",
    ]
    dates = [" to ".join(facts["dates"])] if facts["dates"] else []
    if facts["n_unreadable_dates"]:
        odd = counted(facts["n_unreadable_dates"], "document")
        dates.append(f"{odd} with a date that cannot be read")
    if dates:
        lines.append(f"dates      {', '.join(dates)}")
    if facts["capped_grams"]:
        grams = counted(facts["capped_grams"], "frequent gram")
        lines.append(f"capped     {grams}: at most {recipe['cap']:,} places kept of each")
    if facts["retired_shards"] or facts["retired_documents"]:
        lines.append(
            f"retired    {counted(facts['retired_shards'], 'shard')}, "
            f"{counted(facts['retired_documents'], 'document')}"
        )
    if missing := facts["not_indexed"]:
        lines.append(f"not here   {render.few(missing)}: `contam index add` adds what is new")
    first, *others = render.coverage_lines(facts["coverage"])
    return [*lines, f"corpus     {first}", *others]
