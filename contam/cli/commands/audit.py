"""`contam audit` and `contam review`: make, check, export and read the pack of an audit."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import typer

from contam.cli import options, render
from contam.cli.commands.show import item_blocks
from contam.cli.options import argument, option
from contam.cli.results import refuse_inside, refuse_out_in, write_text
from contam.cli.terminal import Reporter, emit, folded, plain, talk, visible
from contam.detect.labels import SHOWN
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from rich.table import Table

    from contam.audit.facts import Facts
    from contam.audit.gate import GateVerdict
    from contam.audit.pack import Pack
    from contam.detect.corpus import ScanProgress


app = options.group("audit", "Audit a release: check, score, report, verify.")


@app.command(short_help="Make the pack of an audit.")
@options.shared
def run(
    spec: Path = argument("AUDIT.toml", "What to audit."),
    *,
    out: str | None = option("DIR", "Folder of the pack, instead of the file's."),
    workers: int | None = options.WORKERS,
    parts: str | None = options.PARTS,
    output: options.OutputOptions,
) -> int:
    """Scan corpora for benchmarks, score models without the flagged items, and publish one folder.

    `contam audit init` writes a file to start from. Stages whose inputs have not changed are not
    run again.

    Examples:
        contam audit run AUDIT.toml
        contam audit run AUDIT.toml --out pack
    """
    from contam.audit.pack import run_audit
    from contam.audit.spec import load_spec
    from contam.detect.parts.part_store import Division

    read = load_spec(spec)
    if parts is not None:
        for corpus in read.corpora:
            refuse_out_in(parts, corpus.paths, "--parts")
    if out:
        read = replace(read, out=str(Path(out).absolute()))

    def tell(stage: str) -> ScanProgress:
        if not output.quiet:
            talk(stage)
        return Reporter(quiet=output.quiet)

    pack = run_audit(
        read,
        workers=workers,
        division=Division(folder=parts, processes=True),
        overwrite=output.overwrite,
        tell=tell,
    )
    _print_pack(pack, output)
    return 0 if pack.facts.coverage["complete"] else 4


@app.command(short_help="Write a commented AUDIT.toml.")
def init(
    target: Path = argument("AUDIT.toml", "The file to write."),
    *,
    overwrite: bool = options.OVERWRITE,
) -> None:
    """Write a file to start from, in which every key is explained.

    Examples:
        contam audit init AUDIT.toml
        contam audit init audits/AUDIT.toml
    """
    from importlib.resources import files

    text = (files("contam.audit") / "AUDIT.toml").read_text("utf-8")
    write_text(target, text, overwrite=overwrite)
    shown = visible(str(target))
    emit(f"wrote  {shown}\nnext   edit it, then: contam audit run {shown}\n")


@app.command(short_help="Check that a pack is unchanged since it was published.")
def verify(
    folder: Path = argument("DIR", "The folder of a pack."),
    *,
    digest: str | None = option("HEX", "The digest that was signed off, which the pack must have."),
    sample: int = option(
        "N", "Evidence rows to check in the corpora; 0 needs no corpora.", 200, min=0
    ),
    as_json: bool = options.JSON,
) -> int:
    """Hash every file, and check a sample of the evidence against the source rows.

    Says who approved the pack. An approval of another digest fails.

    Examples:
        contam audit verify pack
        contam audit verify pack --json
    """
    from contam.audit.verify import read_approvals, verify_pack

    found = verify_pack(folder, digest=digest, sample=sample)
    approvals = read_approvals(folder)
    others = [name for name, each in approvals.items() if each.digest != found.digest]
    if as_json:
        signed = [asdict(each) for each in approvals.values()]
        render.emit_json({**asdict(found), "approvals": signed, "approvals_of_others": others})
    else:
        for problem in found.problems:
            emit(f"changed:  {visible(problem)}\n")
        for note in found.unread:
            emit(f"not read: {visible(note)}\n")
        evidence = f"{counted(found.n_evidence, 'row')} re-read, {found.n_unread:,} unreadable"
        said = "OK: the pack is as it was published"
        if found.n_unread:
            said = "INCOMPLETE: the pack is as it was published, but not all evidence was re-read"
        if not found.holds:
            said = "FAILED: the pack was changed after it was published"
        emit(
            f"files:    {found.n_files:,} hashed\n"
            f"evidence: {evidence if sample else 'not re-read'}\n"
            f"digest:   {found.digest}\n"
        )
        if not approvals:
            emit("approval: none beside the pack\n")
        for name, each in approvals.items():
            told = f"signed by {each.name} on {each.time}"
            if name in others:
                told = f"{told}, but for another digest: {each.digest}"
            emit(f"approval: {visible(told)} ({visible(name)})\n")
        if found.holds and others:
            said = "FAILED: an approval is of another digest"
        emit(f"{said}\n")
    if not found.holds or others:
        return 1
    return 4 if found.n_unread else 0


@app.command(short_help="Approve a pack by name.")
def approve(
    folder: Path = argument("DIR", "The folder of a pack."),
    *,
    name: str = option("NAME", "Who approves it.", ...),
    overwrite: bool = options.OVERWRITE,
) -> None:
    """Write who approves which digest, and when, in a file beside the pack.

    The pack must be unchanged since it was published, and stays as it is. Sign the file, with
    minisign for one, to prove who wrote it: anybody can write any name.

    Examples:
        contam audit approve pack --name "Anna Ruiz"
        contam audit approve pack --name "Anna Ruiz" --overwrite
    """
    from contam.audit.verify import approve as write_approval

    path = write_approval(folder, name, overwrite=overwrite)
    emit(f"wrote  {visible(str(path))}\nnext   sign it: minisign -Sm {visible(path.name)}\n")


def _print_pack(pack: Pack, output: options.OutputOptions) -> None:
    from contam.audit.facts import to_tree

    if output.as_json:
        render.emit_json(
            {"out": str(pack.folder), "digest": pack.digest, "report": to_tree(pack.facts)}
        )
        return
    if not output.quiet:
        for name in pack.reused:
            talk(f"not run again: {plain(name)}")
    emit(f"{folded(visible(pack.facts.headline.text))}\n")
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


def _table(facts: Facts) -> Table:
    """The counts of all corpora together, and of each where there are several."""
    corpora = {policy.corpus for bench in facts.benchmarks for policy in bench.policies}
    counts: dict[str, dict[str, dict[str, int]]] = {}
    chance = {}
    for bench in facts.benchmarks:
        for policy in bench.policies:
            judged = policy.policy + (f", {policy.corpus}" if len(corpora) > 1 else "")
            labels = {label: getattr(policy, label) for label in SHOWN}
            counts.setdefault(bench.name, {})[judged] = labels
            if policy.fdr is not None:
                chance[bench.name, judged] = f"{100 * policy.fdr:.0f} %"
    return render.verdict_table(counts, chance)


EXIT_FAILED = 3
_PASSED: Final = {"pass": "pass", "fail": "FAIL", "unknown": "CANNOT BE JUDGED"}


@app.command(short_help="Check a pack against the rules of a release.")
def gate(
    rules: Path = argument("RULES.toml", "The rules."),
    folder: Path | None = argument(
        "[DIR]", "A pack to check instead of the one in the rules.", None
    ),
    *,
    digest: str | None = option("HEX", "The digest the pack must have."),
    as_json: bool = options.JSON,
) -> int:
    """Check a pack against rules: prints a line for each, and exits with 3 if one fails.

    A rule that cannot be judged fails. The pack must be unchanged since it was published. Flags
    that the rules' `accept` file accepts are listed, and those that it no longer does.

    Examples:
        contam audit gate RULES.toml
        contam audit gate RULES.toml pack --json
    """
    from contam.audit.gate import load_rules, run_gate

    read = load_rules(rules)
    where = folder or (Path(read.pack) if read.pack else None)
    if where is None:
        raise UsageError("there is no pack to judge", hint="give DIR, or pack = in the rules")
    verdict = run_gate(read, where, today(), digest)
    if as_json:
        render.emit_json({**asdict(verdict), "passed": verdict.passed})
    else:
        _print_lines(verdict)
    return 0 if verdict.passed else EXIT_FAILED


def _print_lines(verdict: GateVerdict) -> None:
    from contam.detect.accepted import ACCEPTED

    for outcome in verdict.outcomes:
        shown = _PASSED[outcome.status]
        emit(f"{shown:16s}  {plain(outcome.rule)}: {plain(outcome.said)}\n")
    for row in verdict.accepted:
        named = "/".join(filter(None, (row["benchmark"], row["split"], row["item"])))
        named += f" in {row['document']}" if row["document"] else ""
        named += f" by {row['policy']}" if row["policy"] else ""
        held = row["state"] == ACCEPTED
        said = row["reason"] if held else row["state"]
        shown = "accepted" if held else "NOT ACCEPTED"
        emit(f"{shown:16s}  {plain(named)}: {plain(said)} (until {row['until']})\n")


def today() -> dt.date:
    """The day in UTC, on which what is accepted must hold."""
    return dt.datetime.now(dt.UTC).date()


@app.command(short_help="Export the result for others.")
def export(
    folder: Path = argument("DIR", "The pack."),
    *,
    fmt: Literal["conda", "model-card"] = typer.Option(
        ..., "--format", help="Rows for the CONDA database, or Markdown."
    ),
    out: Path | None = option("FILE", "Output file. [default: standard output]"),
    policy: str | None = option(
        "NAME", "Policy whose verdicts are used. [default: the audit's first]"
    ),
    model: list[str] | None = option(
        "NAME", "model-card: models to list. [default: ours, else all]"
    ),
    reference: str | None = option("URL", "conda: address of a description of the audit."),
) -> None:
    """Export the result of an audit for others, without any text of items or documents.

    Examples:
        contam audit export pack --format conda
        contam audit export pack --format model-card --out card.md
    """
    from contam.audit.report.render import conda, model_card

    if fmt == "conda":
        text = conda(folder, policy, reference or "")
    else:
        text = model_card(folder, policy, model or ())
    if out is None:
        emit(visible(text))
    else:
        write_text(out, text, overwrite=True)
        emit(f"wrote {visible(str(out))}\n")


_LABELS: Final = "Does the corpus contain this item?  t true, f false, s skip, q quit"
_ANSWERS: Final = {"t": True, "true": True, "f": False, "false": False, "s": None, "skip": None}
_ACCEPT: Final = "Accept this flag?  y REASON, n no, q quit"
_YES: Final = ("y", "yes")
_NO: Final = ("n", "no")
_QUIT: Final = ("q", "quit")


def review(
    folder: Path = argument("DIR", "A pack, or the results of `contam scan --out`."),
    *,
    labels: Path | None = option("FILE", "File for the answers; items in it are not shown again."),
    accept: Path | None = option("FILE", "Instead of labels: CSV file of the flags you accept."),
    until: dt.datetime | None = option(
        "DATE", "--accept: the last day on which they are accepted.", formats=["%Y-%m-%d"]
    ),
    item: list[str] | None = option("ID", "--accept: show this flagged item. [default: all]"),
    reader: str = option("NAME", "Name of the reader.", ...),
    policy: str | None = option("NAME", "Policy whose flags are reviewed. [default: the first]"),
    flagged: int = option("N", "Flagged items to draw from each benchmark.", 50, min=0),
    clean: int = option("N", "Clean items to draw from each benchmark.", 50, min=0),
    documents: int = option("N", "Documents shown per item.", 2, min=1),
    seed: int = option("N", "Seed of the sample.", 0, min=0),
) -> None:
    """Show items beside documents, without verdict or score, and note the reader's answers.

    Flagged and clean items come in random order. Each answer is saved before the next item is
    shown. A second reader gets the same items.

    With --accept, flagged items are shown with all their documents, and those that you accept are
    written to a file that a gate reads.

    Examples:
        contam review results --labels anna.jsonl --reader Anna
        contam review pack --accept accepted.csv --reader Anna --until 2027-12-31
    """
    from contam.audit.sample import reader_name

    reader = reader_name(reader)
    path = labels or accept
    if path is None or (labels and accept):
        raise UsageError("give exactly one of --labels and --accept")
    refuse_inside(path, "--labels" if labels else "--accept")
    if accept:
        if until is None:
            raise UsageError("--accept needs --until", hint="--until 2027-12-31")
        n, n_left = _accept(folder, accept, reader, until.date(), (policy, item or ()))
        said = "accepted in"
    elif until or item:
        raise UsageError("--until and --item go with --accept")
    else:
        drawn = {"policy": policy, "flagged": flagged, "clean": clean, "seed": seed}
        n, n_left = _label(folder, path, reader, documents, drawn)
        said = "answers written to"
    emit(f"{n:,} {said} {visible(str(path))}, {counted(n_left, 'item')} left\n")


def _label(
    folder: Path,
    labels: Path,
    reader: str,
    documents: int,
    drawn: dict[str, Any],
) -> tuple[int, int]:
    """Ask for labels until all are given or the reader quits; (answers, items left)."""
    from contam.audit.sample import ReviewSession, answer, append_label, read_labels

    reading = ReviewSession.open(folder, **drawn)
    known = read_labels([labels]) if labels.exists() else []
    cases = reading.waiting(known, reader)
    for at, case in enumerate(cases):
        render.emit_renderable(*item_blocks(reading.view(case, documents)))
        word, note = _answer(f"{at + 1} of {len(cases)}. {_LABELS}", _ANSWERS)
        if word in _QUIT:
            return at, len(cases) - at
        append_label(labels, answer(case, reader, _ANSWERS[word], note))
    return len(cases), 0


def _accept(
    folder: Path,
    path: Path,
    reader: str,
    until: dt.date,
    wanted: tuple[str | None, Collection[str]],
) -> tuple[int, int]:
    """Ask of each flagged item whether it is accepted; (accepted, items not asked)."""
    from contam.audit.sample import AcceptSession
    from contam.detect.accepted import add_accepted

    if until < today():
        raise UsageError(f"--until {until} is over", hint="give a day to come")
    session = AcceptSession.open(folder, path, *wanted)
    n = 0
    for at, item in enumerate(session.items):
        render.emit_renderable(*item_blocks(session.view(item)))
        asked = f"{at + 1} of {len(session.items)}. {_ACCEPT}"
        word, reason = _answer(asked, (*_YES, *_NO))
        while word in _YES and not reason:
            talk("a reason is needed: y REASON")
            word, reason = _answer(asked, (*_YES, *_NO))
        if word in _QUIT:
            return n, len(session.items) - at
        if word in _YES:
            add_accepted(path, session.rows(item, reason, reader, until))
            n += 1
    return n, 0


def _answer(question: str, known: Collection[str]) -> tuple[str, str]:
    """The next line that is an answer, and the note behind it; the end of the input is `quit`."""
    talk(question)
    while line := sys.stdin.readline():
        word, _, note = line.strip().partition(" ")
        word = word.lower()
        if word in known or word in _QUIT:
            return word, note.strip()
        talk(f"{plain(word)!r} is no answer. {question}")
    return _QUIT[0], ""
