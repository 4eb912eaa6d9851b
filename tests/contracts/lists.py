"""Lists in the documentation that are made from the code: `python -m tests.contracts.lists` writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from contam.detect.policies.policy import get_policy, list_policies

if TYPE_CHECKING:
    from contam.detect.policies.policy_spec import PolicySpec

DOCS = Path(__file__).resolve().parents[2] / "docs"
_KNOWN = {
    "source": "its source code",
    "paper": "its paper",
    "secondary": "quotations only",
}


def policies() -> str:
    """An overview of the policies."""
    rows = "".join(
        f"| `{spec.id}` | {spec.title} | {_known(spec)} | {_unit(spec)} | {spec.scope} "
        f"| {', '.join(spec.parts)} | {_flags(spec)} |\n"
        for spec in list_policies(optional=True)
    )
    return (
        "| policy | definition | known from | searches for | in | judged parts | labels |\n"
        f"| --- | --- | --- | --- | --- | --- | --- |\n{rows}"
    )


def _known(spec: PolicySpec) -> str:
    return "" if get_policy(spec.id).traits.ours else _KNOWN[spec.confidence]


def _unit(spec: PolicySpec) -> str:
    return (
        f"{spec.n} {'letters and digits' if spec.unit == 'char' else 'words'}: {spec.aggregation}"
    )


def _flags(spec: PolicySpec) -> str:
    word = "from" if spec.comparison == "at least" else "above"
    return ", ".join(f"{label} {word} {score:g}" for score, label in reversed(spec.thresholds))


LISTS = {"policies": (DOCS / "policies.md", policies)}


def committed(name: str) -> str:
    """A list as its page has it."""
    found = re.search(_pattern(name), LISTS[name][0].read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"a page has lost the marks of its {name}"
    return found[2]


def _pattern(name: str) -> str:
    return f"(<!-- {name}: begin -->\n)(.*)(<!-- {name}: end -->\n)"


def write() -> None:
    """Write the lists afresh."""
    for name, (page, made) in LISTS.items():
        text = page.read_text(encoding="utf-8")
        new = re.sub(_pattern(name), rf"\g<1>{_quoted(made())}\g<3>", text, flags=re.DOTALL)
        page.write_text(new, encoding="utf-8")


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\")


if __name__ == "__main__":
    write()
