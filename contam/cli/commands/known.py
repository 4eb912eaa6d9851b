"""`contam benchmarks` and `contam policies`: list what is known by name, and show one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from contam.cli import options, render
from contam.cli.options import argument
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from contam.benchmark.catalogue import Entry
    from contam.detect.policies.policy_spec import PolicySpec


def benchmarks(
    name: Annotated[str | None, argument("[NAME]", "A benchmark, or a word to search for.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the benchmarks that `--benchmark` takes by name, search them, or show one.

    Examples:
        contam benchmarks
        contam benchmarks gsm8k
    """
    from contam.benchmark.catalogue import close_to, entries, find, search

    entry = find(name) if name else None
    found = [entry] if entry else search(name) if name else list(entries().values())
    if not found:
        close = close_to(name or "")
        raise UsageError(
            f"no benchmark is called {name!r}, and none is about it",
            hint=f"nearly: {', '.join(close)}" if close else "`contam benchmarks` lists all",
        )
    if as_json:
        render.emit_json([{**asdict(one), "columns": one.mapping} for one in found])
    elif entry:
        _describe_benchmark(entry)
    else:
        _list_benchmarks(found)


def _list_benchmarks(found: list[Entry]) -> None:
    table = render.new_table("name", "data set", "splits", "released", "license", "")
    table.columns[0].no_wrap = True
    for entry in found:
        table.add_row(
            entry.name,
            entry.dataset,
            render.few(entry.splits),
            entry.released,
            entry.license,
            "gated" if entry.gated else "",
        )
    n = counted(len(found), "benchmark")
    render.emit_renderable(table, f"\n{n}; `contam benchmarks NAME` shows one in full")


def _describe_benchmark(entry: Entry) -> None:
    rows = {
        "name": entry.name,
        "also": ", ".join(entry.aliases),
        "data set": f"{entry.dataset}, branch {entry.revision}" + ", gated" * entry.gated,
        "configurations": ", ".join(entry.configurations),
        "splits": ", ".join(entry.splits),
        "files": ", ".join(entry.files),
        **entry.mapping,
        "released": entry.released or "not known",
        "license": entry.license or "not known",
        "canary": entry.canary,
        "lm-eval tasks": ", ".join(entry.tasks),
        "fields from": entry.source,
        "read": entry.seen or "not on real rows",
    }
    render.emit_renderable(render.facts(rows.items()))


_CONFIDENCE = {
    "source": "from its source code",
    "paper": "from its paper",
    "secondary": "second-hand",
}


def policies(
    name: Annotated[
        str | None, argument("[NAME]", "A policy, a preset (NAME:PRESET) or a policy file.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the policies, or describe one in full.

    Examples:
        contam policies
        contam policies gpt3-test
    """
    from contam.detect.policies.policy import get_policy, list_policies

    if name is not None:
        spec = get_policy(name).spec
        if as_json:
            render.emit_json(_tree(spec))
        else:
            _describe(spec)
    elif as_json:
        render.emit_json([_tree(spec) for spec in list_policies(optional=True)])
    else:
        _list(list_policies(optional=True))


def _tree(spec: PolicySpec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint()}


def _list(specs: tuple[PolicySpec, ...]) -> None:
    table = render.new_table("policy", "unit", "flags", "known", "what it is")
    table.columns[0].no_wrap = True
    for spec in specs:
        table.add_row(spec.id, spec.unit, _flags(spec), _known(spec), spec.title)
    render.emit_renderable(table, "\n`contam policies NAME` describes one in full")


def _describe(spec: PolicySpec) -> None:
    rows = {
        "policy": f"{spec.id}, version {spec.version}, fingerprint {spec.fingerprint()}",
        "title": spec.title,
        "": spec.description,
        "known": _known(spec),
        "source": spec.source,
        "unit": spec.unit,
        "n": f"{spec.n} ({spec.aggregation}, {spec.scope})",
        "parts": ", ".join(spec.parts),
        "flags": _flags(spec),
        "counts": spec.count_rule,
        "too short": spec.too_short,
        "parameters": ", ".join(f"{name} = {value}" for name, value in spec.parameters),
        "constants": ", ".join(f"{name} = {value}" for name, value in spec.constants),
        "presets": ", ".join(f"{spec.base}:{preset}" for preset in spec.presets),
    }
    render.emit_renderable(render.facts(rows.items()))


def _flags(spec: PolicySpec) -> str:
    steps = (
        f"{label} {'from' if spec.comparison == 'at least' else 'above'} {score:g}"
        for score, label in reversed(spec.thresholds)
    )
    return ", ".join(steps)


def _known(spec: PolicySpec) -> str:
    from contam.detect.policies.policy import get_policy

    ours = get_policy(spec.base).traits.ours
    known = "ours" if ours else _CONFIDENCE[spec.confidence]
    return f"{known}, approximate" if spec.approximate else known
