"""Write a gate's outcome as JUnit XML, Markdown and GitHub Actions annotations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from contam.audit.gate.judge import FAILS, HOLDS, UNKNOWN
from contam.rescore.export.summary import cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.audit.gate.decide import GateVerdict

STATUS: Final = {HOLDS: "pass", FAILS: "fail", UNKNOWN: "cannot be judged"}
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: GateVerdict) -> bytes:
    """JUnit XML: a suite for the gate, a case for each rule; what cannot be judged is a failure."""
    bad = [outcome for outcome in verdict.outcomes if outcome.status != HOLDS]
    counts = {"tests": str(len(verdict.outcomes)), "failures": str(len(bad)), "errors": "0"}
    root = ET.Element("testsuites", {"name": "contam audit gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _xml(verdict.title), **counts, "time": "0"})
    found = ET.SubElement(ET.SubElement(suite, "properties"), "property", {"name": "digest"})
    found.set("value", verdict.digest)
    for outcome in verdict.outcomes:
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": f"contam.gate.{outcome.check}", "name": _xml(outcome.rule), "time": "0"},
        )
        if outcome.status != HOLDS:
            failure = ET.SubElement(
                case, "failure", {"type": STATUS[outcome.status], "message": _xml(outcome.said)}
            )
            failure.text = _xml("\n".join(f"{STATUS[p.status]}: {p.text}" for p in outcome.parts))
        else:
            ET.SubElement(case, "system-out").text = _xml(outcome.said)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def summary(verdict: GateVerdict) -> str:
    """Markdown: the decision, and a row for each rule."""
    n_bad = sum(outcome.status != HOLDS for outcome in verdict.outcomes)
    outcome_text = (
        f"{n_bad} of {len(verdict.outcomes)} rules do not hold" if n_bad else "all rules hold"
    )
    lines = [
        f"## Contamination gate: {outcome_text}",
        "",
        f"{cell(verdict.title)}, pack `{verdict.digest}`",
        "",
        "| | rule | found |",
        "| --- | --- | --- |",
        *(
            f"| {STATUS[outcome.status]} | {cell(outcome.rule)} | {cell(outcome.said)} |"
            for outcome in verdict.outcomes
        ),
        "",
    ]
    return "\n".join(lines)


def github_lines(verdict: GateVerdict) -> Iterator[str]:
    """Workflow commands: an error for each rule that does not hold, a notice when all do."""
    for outcome in verdict.outcomes:
        if outcome.status != HOLDS:
            title = _property(f"contam: {outcome.rule}")
            yield f"::error title={title}::{_data(f'{STATUS[outcome.status]}: {outcome.said}')}"
    if verdict.passed:
        yield f"::notice title=contam::{len(verdict.outcomes)} rules hold"


def github_outputs(verdict: GateVerdict) -> str:
    """Lines for $GITHUB_OUTPUT; no value of them is text of somebody else."""
    counts = {
        status: sum(outcome.status == status for outcome in verdict.outcomes)
        for status in (FAILS, UNKNOWN)
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
