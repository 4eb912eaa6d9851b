"""`contam audit`: make and check the pack of an audit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.commands import audit_diff, audit_export, audit_flags, audit_gate, audit_waive
from contam.cli.options import split_names
from contam.cli.output_file import refuse_replacing
from contam.errors import OutputError, UsageError

if TYPE_CHECKING:
    from contam.audit.facts import Facts
    from contam.audit.pack import Pack
    from contam.cli.sheet import Sheet
    from contam.detect.scan import ScanProgress

app = typer.Typer(
    help="Audit a release: check, score, report, verify.",
    subcommand_metavar="AUDIT.toml | COMMAND [ARGS]...",
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(options.help_without_command)

COMMANDS = ("run", "init", "verify", "waive", "gate", "diff", "export")
SPREAD_OPTIONS = (
    *("--corpus", "--index", "--benchmark", "--logs", "--policy", "--ours", "--labels", "--judged"),
    *("--stage", "--released", "--references"),
)


def with_command(arguments: list[str]) -> list[str]:
    """`contam audit AUDIT.toml` is `contam audit run AUDIT.toml`."""
    rest = arguments[1:]
    if not rest or rest[0] in (*COMMANDS, "-h", "--help"):
        return arguments
    return [arguments[0], "run", *rest]


@app.command(short_help="Make the pack of an audit.")
def run(
    spec: Annotated[
        Path | None, typer.Argument(metavar="[AUDIT.toml]", help="The settings of the audit.")
    ] = None,
    *,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the pack, instead of the file's.")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH...", help="Corpora to scan, each with a name."),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]DIR...", help="Indexes to query, each with a name."),
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option(metavar="PATH...", help="Benchmark items.")
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH...",
            help="Evaluation logs; without --benchmark, the items come from them, too.",
        ),
    ] = None,
    ours: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL,...", help="Models of this release."),
    ] = None,
    references: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL,...", help="Models that cannot have seen the corpora."),
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]WORD...", help="Training stage of a corpus, or of all: sft, ..."
        ),
    ] = None,
    text: options.Text = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Judge items even if shards cannot be read.")
    ] = False,
    released: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PATH=]DATE...", help="Release date of a benchmark, or of all: 2024-01-31."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="LINE",
            help="Any key of AUDIT.toml, as a line of TOML: 'logs.allow_partial = true'.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.")] = None,
    policy: options.Policies = None,
    least: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Items that a subset needs for an estimate."),
    ] = None,
    no_text: options.NoText = False,
    decoys: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Decoys per item, to measure chance matches; 0: none."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE...", help="Labels of readers, from `contam review`."),
    ] = None,
    judged: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE...", help="Answers of a judge, from `contam judge`."),
    ] = None,
    waivers: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Reviewed flags, from `contam audit waive`."),
    ] = None,
    today: audit_waive.Today = None,
    workers: options.Workers = None,
    overwrite: options.Overwrite = False,
    as_json: options.Summary = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Scan corpora for benchmarks, score models without the flagged items, and publish one folder.

    Pass AUDIT.toml (`contam audit init` writes one), or use options only. Stages whose
    inputs have not changed are not run again.
    """
    from contam.audit.pack import run_audit
    from contam.audit.spec import load_spec, make_spec

    changes = {
        "out": str(Path(out).absolute()) if out else None,
        "title": title,
        "policies": tuple(split_names(policy)) if policy else None,
        "least": least,
        "no_text": no_text or None,
        "decoys": decoys,
        "labels": tuple(str(Path(label).absolute()) for label in labels or ()) or None,
        "judged": tuple(str(Path(path).absolute()) for path in judged or ()) or None,
        "waivers": str(Path(waivers).absolute()) if waivers else None,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if spec is not None:
        if any((corpus, index, benchmark, logs, ours, references, stage, text, released)):
            raise UsageError(
                "corpora, benchmarks and logs stand in the file",
                hint="leave those options out, or give no file",
            )
        if allow_missing:
            raise UsageError(
                "allow_missing stands in the file, with each corpus",
                hint="leave --allow-missing out, or give no file",
            )
        wanted = load_spec(spec, given, set_ or ())
    else:
        values = audit_flags.spec_values(
            corpora={"paths": corpus or [], "index": index or []},
            stages=stage or [],
            text=text,
            allow_missing=allow_missing,
            benchmarks=benchmark or [],
            released=released or [],
            logs=logs or [],
            ours=ours or [],
            references=references or [],
        )
        wanted = make_spec({**given, **values}, set_ or ())
    pack = run_audit(
        wanted,
        workers=workers,
        overwrite=overwrite,
        talk=AuditReporter(quiet=quiet),
        today=audit_waive.day(today),
    )
    _print_pack(pack, as_json=as_json, quiet=quiet)
    return 0 if pack.facts.coverage["complete"] else 4


@app.command(short_help="Write a commented AUDIT.toml.")
def init(
    target: Annotated[Path, typer.Argument(metavar="AUDIT.toml", help="The file to write.")],
    *,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="PATH...", help="Corpora to scan.")
    ] = None,
    index: Annotated[
        list[str] | None, typer.Option(metavar="DIR...", help="Indexes to query.")
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option(metavar="PATH...", help="Benchmark items.")
    ] = None,
    logs: Annotated[
        list[str] | None, typer.Option(metavar="PATH...", help="Evaluation logs.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Write a file to start from, filled in from the corpora and logs."""
    from contam.audit.init import starting_file
    from contam.cli.terminal import emit, visible
    from contam.files.single import write_file

    if target.exists() and not overwrite:
        raise OutputError(f"{target} already exists", hint="choose another, or --overwrite")
    refuse_replacing(target, [*(corpus or ()), *(benchmark or ()), *(logs or ())], "FILE")
    text = starting_file(
        target,
        corpora=corpus or (),
        indexes=index or (),
        benchmarks=benchmark or (),
        logs=logs or (),
    )
    write_file(target, text.encode(), overwrite=overwrite)
    emit(f"wrote  {visible(str(target))}\nnext   contam audit {visible(str(target))}\n")


@app.command(short_help="Check that a pack is unchanged since it was published.")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a pack.")],
    *,
    digest: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="The digest that was signed off, which the pack must have."
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Evidence rows to check in the corpora.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the sample.")] = 0,
    as_json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Hash every file, and check a sample of the evidence against the source rows."""
    from contam.audit.verify import verify_pack
    from contam.cli import render
    from contam.cli.terminal import emit, visible

    found = verify_pack(folder, digest=digest, sample=sample, seed=seed)
    if as_json:
        render.emit_json(asdict(found))
    else:
        for problem in found.problems:
            emit(f"ALTERED  {visible(problem)}\n")
        for note in found.unread:
            emit(f"not read {visible(note)}\n")
        emit(
            f"files    {found.n_files:,} hashed\n"
            f"evidence {found.n_evidence:,} rows read again, {found.n_unread:,} could not be\n"
            f"digest   {found.digest}\n"
            f"{'the pack is as it was published' if found.holds else 'THE PACK DOES NOT HOLD'}\n"
        )
    if not found.holds:
        return 1
    return 4 if found.n_unread else 0


class AuditReporter:
    """A line for each stage, and the bar of a scan."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def stage(self, name: str) -> ScanProgress | None:
        """Say that a stage begins."""
        from contam.cli.progress import reporter
        from contam.cli.terminal import talk

        if not self._quiet:
            talk(name)
        return reporter(quiet=self._quiet)


def _print_pack(pack: Pack, *, as_json: bool, quiet: bool) -> None:
    from contam.audit.facts import to_tree
    from contam.cli import render
    from contam.cli.terminal import emit, plain, talk, visible

    if as_json:
        render.emit_json(
            {"out": str(pack.folder), "digest": pack.digest, "report": to_tree(pack.facts)}
        )
        return
    if not quiet:
        for name in pack.reused:
            talk(f"not run again: {plain(name)}")
    emit(f"{visible(pack.facts.headline.text)}\n")
    render.emit_renderable("", _table(pack.facts), "")
    for corpus in pack.facts.cleaned:
        emit(
            f"cleaned  {visible(corpus.corpus)}: {corpus.found:,} of {corpus.before:,} documents "
            f"held items ({corpus.action}), {corpus.after:,} are left\n"
        )
    page = pack.folder / "report.html"
    if page.is_relative_to(Path.cwd()):
        page = page.relative_to(Path.cwd())
    emit(f"report   {visible(str(page))}\ndigest   {pack.digest}\n")


def _table(facts: Facts) -> Sheet:
    from contam.cli.sheet import Sheet
    from contam.cli.terminal import visible

    sheet = Sheet(
        ("benchmark", "policy", "corpus"),
        ("items", "contaminated", "suspect", "clean", "not checkable", "flagged", "chance"),
    )
    for bench in facts.benchmarks:
        for policy in bench.policies:
            counts = (
                policy.n_items,
                policy.contaminated,
                policy.suspect,
                policy.clean,
                policy.not_checkable,
            )
            sheet.add(
                (visible(bench.name), visible(policy.policy), visible(policy.corpus)),
                (
                    *(f"{count:,}" for count in counts),
                    f"{100 * policy.flagged_share:.1f} %",
                    "" if policy.fdr is None else f"{100 * policy.fdr:.1f} %",
                ),
            )
    return sheet


# In the order in which they are needed, as `--help` lists them.
app.command("gate", short_help="Check a pack against the rules of a release.")(audit_gate.gate)
app.command("waive", short_help="Waive a flag after review.")(audit_waive.waive)
app.command("diff", short_help="Show what changed since the last audit.")(audit_diff.diff)
app.command("export", short_help="Export the result for others.")(audit_export.export)
