"""What docs/policies.md says of each policy, made from the policies themselves.

`python -m tests.contracts.policies_page` writes the generated part of the page afresh.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from contam.detect.policies.policy import get_policy, list_policies

if TYPE_CHECKING:
    from contam.detect.policies.policy_spec import PolicySpec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "policies.md"
_MARKS = ("<!-- from the code: begin -->\n", "<!-- from the code: end -->\n")
_KNOWN = {
    "source": "its source code",
    "paper": "its paper",
    "secondary": "quotations only",
}


def generated() -> str:
    """The part of the page that is made from the code: an overview, then a section a policy."""
    specs = list_policies(optional=True)
    rows = "".join(
        f"| [`{spec.id}`](#{spec.id}) | {_unit(spec)} | {spec.scope} | {', '.join(spec.parts)} "
        f"| {_flags(spec)} |\n"
        for spec in specs
    )
    head = (
        "| policy | searches for | in | judged parts | labels |\n| --- | --- | --- | --- | --- |\n"
    )
    return head + rows + "".join(f"\n{_section(spec)}" for spec in specs)


def committed() -> str:
    """The same part as the page has it."""
    found = re.search(f"{_MARKS[0]}(.*){_MARKS[1]}", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "docs/policies.md has lost its marks"
    return found[1]


def _section(spec: PolicySpec) -> str:
    known = "" if get_policy(spec.id).traits.ours else f" Known from {_KNOWN[spec.confidence]}"
    source = f"{known} ({spec.source})." if known else ""
    return f"### {spec.id}\n\n**{spec.title}.** {spec.description}{source}\n"


def _unit(spec: PolicySpec) -> str:
    return (
        f"{spec.n} {'letters and digits' if spec.unit == 'char' else 'words'}: {spec.aggregation}"
    )


def _flags(spec: PolicySpec) -> str:
    word = "from" if spec.comparison == "at least" else "above"
    return ", ".join(f"{label} {word} {score:g}" for score, label in reversed(spec.thresholds))


def write() -> None:
    """Put the generated part into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    PAGE.write_text(before + _MARKS[0] + generated() + _MARKS[1] + after, encoding="utf-8")


if __name__ == "__main__":
    write()
