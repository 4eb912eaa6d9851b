"""`contam policies`: list the policies and explain each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options, render
from contam.cli.terminal import visible

if TYPE_CHECKING:
    from contam.detect.policies.policy_spec import PolicySpec

_CONFIDENCE = {
    "source": "from its source code",
    "paper": "from its paper",
    "secondary": "second-hand",
}


def policies(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A policy, a preset (NAME:PRESET) or a policy file."),
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
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
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
    for heading, value in rows.items():
        if value:
            table.add_row(heading, Text(visible(value)))
    render.emit_renderable(table)


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
