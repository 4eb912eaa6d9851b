"""`contam judge`: ask a model whether documents hold the items that they are flagged for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from contam.cli import options
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.audit.review.judged import Prompt
    from contam.audit.review.pairs import Draw, Pair
    from contam.client.judges import Judge
    from contam.client.judging import Asked

SPREAD_OPTIONS: Final = ("--policy", "--send-texts")
INTERRUPTED: Final = "answers that had come are kept; the same call asks for the rest"

_INCOMPLETE: Final = 4
_TEMPERATURE: Final = '{"temperature": 0}'


def judge(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A pack, or the results of `contam scan --out`.")
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Parquet file for the answers; those in it are kept."),
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="Model; the answers have this name.")],
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that reads a pair as a JSON object and prints yes or no.",
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of a chat completions API: https://HOST/v1. Its key: CONTAM_JUDGE_KEY.",
        ),
    ] = None,
    send_texts: Annotated[
        list[str] | None,
        typer.Option(
            "--send-texts",
            metavar="BENCHMARK,...",
            help="Benchmarks whose items, and what matches in documents, may leave this machine.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...", help="Policies whose flags are asked about. [default: the first]"
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Ask about N pairs drawn at random. [default: all]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the sample.")] = 0,
    prompt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Prompt of your own, with {question} and {document}."),
    ] = None,
    request: Annotated[
        str,
        typer.Option(metavar="JSON", help="What else each request to the endpoint says."),
    ] = _TEMPERATURE,
    at_once: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="Pairs that are asked at once.")
    ] = 4,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Longest wait for one answer.")
    ] = 60.0,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave all texts out of FILE.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many pairs would go where, and ask nobody.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Ask a judge whether the documents of flagged items contain their questions.

    An answer is yes, no, or `no answer`. A judge's answers are no rate: with labels of people
    (`contam review`), an audit estimates one from both. Texts stay on this machine unless you name
    an endpoint elsewhere and --send-texts.
    """
    from contam.audit.review import judged
    from contam.audit.review.pairs import draw_pairs, read_pairs
    from contam.audit.review.sample import open_result, population
    from contam.audit.verify import refuse_inside
    from contam.cli.progress import reporter
    from contam.cli.terminal import talk
    from contam.client.judging import ask_all
    from contam.detect.show.choose import check_policy

    asked = _prompt(prompt, endpoint, request)
    _check_who(command, endpoint)
    refuse_inside(out, folder)
    report = open_result(folder)
    policies = options.split_names(policy or report.run["parameters"]["policies"][:1])
    for name in policies:
        check_policy(report, name)
    chosen = _chosen(
        population(report), policies, endpoint, send_texts, dry_run=dry_run, quiet=quiet
    )
    drawn = draw_pairs(chosen, most, seed)
    before = judged.asked_before(out, model, asked.digest)
    new = [pair for pair in drawn.pairs if pair.digest not in before]
    said = _plan(drawn, new, endpoint, model)
    if dry_run:
        _print_plan(said, as_json=as_json)
        return 0
    judging = _judge(command, endpoint, model, asked, timeout)
    with reporter(quiet=quiet) as progress:
        progress.count(len(new), "pair")

        def keep(answers: Sequence[Any]) -> None:
            rows = [
                judged.judged_row(
                    text, reply,
                    model=model, prompt=asked.digest, inclusion=drawn.inclusion, seed=seed,
                )
                for text, reply in answers
            ]  # fmt: skip
            judged.add_judged(out, judged.without_texts(rows) if no_text else rows)

        done = ask_all(judging, read_pairs(report, new), keep, at_once=at_once, progress=progress)
    digests = {pair.digest for pair in drawn.pairs}
    rows = [
        row
        for row in (judged.read_judged([out]) if out.exists() else ())
        if (row["model"], row["prompt"]) == (model, asked.digest) and row["pair"] in digests
    ]
    _print(said, Counter(row["answer"] for row in rows), done, out, as_json=as_json)
    _raise_failed(done, len(new))
    if done.unread and not quiet:
        talk(f"note: {len(done.unread):,} pairs could not be read: {done.unread[0]}")
    return _INCOMPLETE if done.unread else 0


def _prompt(path: Path | None, endpoint: str | None, request: str) -> Prompt:
    from contam.audit.review.judged import TEMPLATE, Prompt, read_template

    try:
        fields = json.loads(request)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or {"model", "messages", "stream"} & set(fields):
        raise UsageError(
            "--request is a JSON object without model, messages and stream",
            hint="such as '{\"temperature\": 0}'",
        )
    template = read_template(path) if path is not None else TEMPLATE
    return Prompt(template, fields if endpoint is not None else {})


def _check_who(command: str | None, endpoint: str | None) -> None:
    if (command is None) == (endpoint is None):
        raise UsageError("who is the judge?", hint="give --command or --endpoint, one of them")


def _chosen(
    cases: Sequence[Any],
    policies: Sequence[str],
    endpoint: str | None,
    send_texts: list[str] | None,
    *,
    dry_run: bool,
    quiet: bool,
) -> list[Pair]:
    """The pairs whose texts may go where they would go. Raises UsageError without a consent."""
    from contam.audit.review.pairs import flagged_pairs
    from contam.cli.terminal import plain, talk
    from contam.client.judges import stays_here

    pairs = flagged_pairs(cases, policies)
    if endpoint is None or stays_here(endpoint):
        return pairs
    names = options.split_names(send_texts) if send_texts else []
    there = Counter(pair.key.benchmark for pair in pairs)
    known = {case.key.benchmark for case in cases}
    if odd := [name for name in names if name not in known]:
        raise UsageError(f"the result has no benchmark {odd[0]!r}")
    if not names and not dry_run:
        raise UsageError(
            f"texts of {len(pairs):,} pairs would leave this machine: questions of"
            f" {', '.join(there)}, and what matches in documents",
            hint="--send-texts BENCHMARK,... names the benchmarks whose texts may leave; "
            "--dry-run counts; an item that is not published should not leave",
        )
    if not names:
        return pairs
    if not quiet:
        for name, n in there.items():
            if name not in names:
                talk(f"note: {n:,} pairs of {plain(name)} are not sent")
        if not endpoint.startswith("https:"):
            talk("note: what is sent is not encrypted: the address has no https")
    return [pair for pair in pairs if pair.key.benchmark in names]


def _judge(
    command: str | None, endpoint: str | None, model: str, prompt: Prompt, timeout_s: float
) -> Judge:
    from contam.client.judges import CommandJudge, EndpointJudge, judge_key

    if endpoint is not None:
        return EndpointJudge(
            endpoint, model=model, prompt=prompt, key=judge_key(), timeout_s=timeout_s
        )
    return CommandJudge(command or "", prompt, timeout_s)


def _plan(drawn: Draw, new: Sequence[Pair], endpoint: str | None, model: str) -> dict[str, Any]:
    from contam.client.judges import stays_here

    return {
        "model": model,
        "n_drawn": len(drawn.pairs),
        "inclusion": drawn.inclusion,
        "n_asked_before": len(drawn.pairs) - len(new),
        "n_to_ask": len(new),
        "benchmarks": dict(sorted(Counter(pair.key.benchmark for pair in new).items())),
        "endpoint": endpoint,
        "leaves_machine": endpoint is not None and not stays_here(endpoint),
    }


def _print_plan(said: dict[str, Any], *, as_json: bool) -> None:
    from contam.cli import render
    from contam.cli.terminal import emit, visible

    if as_json:
        render.emit_json(said)
        return
    names = ", ".join(f"{name} {n:,}" for name, n in said["benchmarks"].items()) or "none"
    where = said["endpoint"] or "the command"
    leaves = "their texts would leave this machine" if said["leaves_machine"] else "no text leaves"
    emit(
        f"pairs      {said['n_to_ask']:,} to ask ({visible(names)}),"
        f" {said['n_asked_before']:,} asked before\n"
        f"to         {visible(where)}, {visible(said['model'])}: {leaves}\n"
    )


def _print(
    said: dict[str, Any], answers: Counter[str], done: Asked, out: Path, *, as_json: bool
) -> None:
    from contam.audit.review.judged import ANSWERS
    from contam.cli import render
    from contam.cli.terminal import emit, visible

    if as_json:
        counts = {f"n_{name.replace(' ', '_')}": answers[name] for name in ANSWERS}
        ended = {"n_failed": len(done.failed), "n_unread": len(done.unread)}
        render.emit_json({**said, "n_answered": done.n_answered, **counts, **ended})
        return
    given = ", ".join(f"{answers[name]:,} {name}" for name in ANSWERS)
    emit(
        f"pairs      {said['n_drawn']:,} drawn, {done.n_answered:,} asked now,"
        f" {said['n_asked_before']:,} before\n"
        f"answers    {given}\n"
        f"written    {visible(str(out))}\n"
    )


def _raise_failed(done: Asked, n: int) -> None:
    from contam.client.failures import UnreachableError

    if done.failed:
        left = n - done.n_answered - len(done.unread)
        raise UnreachableError(
            f"{left:,} of {n:,} pairs have no answer: {done.failed[-1]}",
            hint="the same call asks for these alone; answers that came are kept",
        )
