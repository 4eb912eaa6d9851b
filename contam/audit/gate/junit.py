"""What a gate decided, as other systems read it: JUnit XML, Markdown, lines for GitHub Actions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from contam.audit.gate.judge import FAILS, HOLDS, UNKNOWN
from contam.rescore.export.summary import cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.audit.gate.decide import Verdict

SAID: Final = {HOLDS: "pass", FAILS: "fail", UNKNOWN: "cannot be judged"}
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: Verdict) -> bytes:
    """JUnit XML: a suite for the gate, a case for each rule; what cannot be judged is a failure."""
    bad = [one for one in verdict.outcomes if one.status != HOLDS]
    counts = {"tests": str(len(verdict.outcomes)), "failures": str(len(bad)), "errors": "0"}
    root = ET.Element("testsuites", {"name": "contam audit gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _xml(verdict.title), **counts, "time": "0"})
    found = ET.SubElement(ET.SubElement(suite, "properties"), "property", {"name": "digest"})
    found.set("value", verdict.digest)
    for one in verdict.outcomes:
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": f"contam.gate.{one.check}", "name": _xml(one.rule), "time": "0"},
        )
        if one.status != HOLDS:
            failure = ET.SubElement(
                case, "failure", {"type": SAID[one.status], "message": _xml(one.said)}
            )
            failure.text = _xml("\n".join(f"{SAID[p.status]}: {p.text}" for p in one.parts))
        else:
            ET.SubElement(case, "system-out").text = _xml(one.said)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def summary(verdict: Verdict) -> str:
    """Markdown: the decision, and a row for each rule."""
    n_bad = sum(one.status != HOLDS for one in verdict.outcomes)
    said = f"{n_bad} of {len(verdict.outcomes)} rules do not hold" if n_bad else "all rules hold"
    lines = [
        f"## Contamination gate: {said}",
        "",
        f"{cell(verdict.title)}, pack `{verdict.digest}`",
        "",
        "| | rule | found |",
        "| --- | --- | --- |",
        *(
            f"| {SAID[one.status]} | {cell(one.rule)} | {cell(one.said)} |"
            for one in verdict.outcomes
        ),
        "",
    ]
    return "\n".join(lines)


def github_lines(verdict: Verdict) -> Iterator[str]:
    """Workflow commands: an error for each rule that does not hold, a notice when all do."""
    for one in verdict.outcomes:
        if one.status != HOLDS:
            title = _property(f"contam: {one.rule}")
            yield f"::error title={title}::{_data(f'{SAID[one.status]}: {one.said}')}"
    if verdict.passed:
        yield f"::notice title=contam::{len(verdict.outcomes)} rules hold"


def github_outputs(verdict: Verdict) -> str:
    """Lines for $GITHUB_OUTPUT; no value of them is text of somebody else."""
    counts = {
        status: sum(one.status == status for one in verdict.outcomes) for status in (FAILS, UNKNOWN)
    }
    return (
        f"verdict={'pass' if verdict.passed else 'fail'}\nfailed={counts[FAILS]}\n"
        f"unknown={counts[UNKNOWN]}\nrules={len(verdict.outcomes)}\ndigest={verdict.digest}\n"
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
