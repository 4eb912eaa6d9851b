"""Export a pack as rows of the CONDA database and as a section of a model card."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from contam.audit.report.render import markdown
from contam.audit.verify import checked_facts
from contam.detect.report import load_report
from contam.errors import Statement, UsageError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.audit.facts import Facts
    from contam.detect.report import Report

CONDA_FILE: Final = "conda.csv"
CARD_FILE: Final = "model_card.md"
CONDA: Final = (
    *("Evaluation Dataset", "Subset", "Contaminated Source", "Model or corpus"),
    *("Train Split", "Development Split", "Test Split", "Approach", "Reference", "PR"),
)
"""Columns of `contamination_report.csv`."""

_SPLITS: Final = {
    "train": "Train Split",
    "training": "Train Split",
    "dev": "Development Split",
    "development": "Development Split",
    "val": "Development Split",
    "valid": "Development Split",
    "validation": "Development Split",
}
_TEST: Final = "Test Split"


def conda(folder: Path, policy: str | None = None, reference: str = "") -> str:
    """A row for each benchmark and corpus: what share of each split is contaminated, in percent.

    Counted is what is labelled contaminated, of what could be checked. Empty means not measured: so
    is a split without a contaminated item when some of it is suspect or could not be checked, since
    0 is evidence of absence there.

    Raises UsageError for a policy the pack does not have, OutputError when the pack does not hold.
    """
    facts, _ = checked_facts(folder)
    reports = {
        corpus.name: load_report(folder / "checks" / corpus.name) for corpus in facts.corpora
    }
    return _conda(facts, reports, policy, reference)


def model_card(folder: Path, policy: str | None = None, models: Sequence[str] = ()) -> str:
    """A Markdown section: what the corpora contain of the benchmarks, and clean scores.

    models  those whose scores are shown; none are the audit's `ours`, else all

    Raises UsageError for a policy or model the pack does not have, OutputError when the pack does
    not hold. No text of items or documents is in it.
    """
    facts, manifest = checked_facts(folder)
    return _model_card(facts, policy, models, manifest["digest"])


def write_exports(folder: Path, facts: Facts, reports: Mapping[str, Report]) -> None:
    """Write both for the first policy into a pack that is not sealed yet. Raises OSError.

    reports  the verdicts of each corpus, by name
    """
    folder.mkdir()
    (folder / CONDA_FILE).write_text(_conda(facts, reports), "utf-8", errors="replace")
    (folder / CARD_FILE).write_text(_model_card(facts), "utf-8", errors="replace")


def _conda(
    facts: Facts, reports: Mapping[str, Report], policy: str | None = None, reference: str = ""
) -> str:
    policy = _policy(facts, policy)
    text = io.StringIO()
    writer = csv.DictWriter(text, CONDA, delimiter=";", lineterminator="\n")
    writer.writeheader()
    for corpus in facts.corpora:
        found = _labels(reports[corpus.name], policy)
        for benchmark in sorted(found):
            splits = {
                column: _percent(labels) for column, labels in sorted(found[benchmark].items())
            }
            writer.writerow(
                {
                    "Evaluation Dataset": benchmark,
                    "Contaminated Source": corpus.name,
                    "Model or corpus": "corpus",
                    "Approach": "data-based",
                    "Reference": reference,
                    **splits,
                }
            )
    return text.getvalue()


def _model_card(
    facts: Facts, policy: str | None = None, models: Sequence[str] = (), digest: str = ""
) -> str:
    policy = _policy(facts, policy)
    rows = [row for row in facts.scores if row["policy"] == policy]
    wanted = set(models or facts.ours or {row["model"] for row in rows})
    if missing := set(models) - {row["model"] for row in rows}:
        raise UsageError("the audit has no scores of {}", min(missing), hint="see report.md")
    shown = [row for row in rows if row["model"] in wanted]
    return markdown(CARD_FILE, facts, policy=policy, scores=shown, digest=digest)


def _policy(facts: Facts, policy: str | None) -> str:
    if policy is not None and policy not in facts.policies:
        raise UsageError(
            "the audit has no policy {}",
            policy,
            hint=Statement("policies: {}", ", ".join(facts.policies)),
        )
    return policy or facts.first_policy


def _labels(report: Report, policy: str) -> dict[str, dict[str, Counter[str]]]:
    """Labels of one corpus by benchmark and column."""
    found: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    names = ("benchmark", "split", "policy", "label")
    columns = (schemas.column(report.verdicts, name) for name in names)
    for benchmark, split, judge, label in zip(*columns, strict=True):
        if judge == policy:
            found[benchmark][_SPLITS.get(split.lower(), _TEST)][label] += 1
    return {name: dict(columns) for name, columns in found.items()}


def _percent(labels: Counter[str]) -> str:
    checked = sum(labels.values()) - labels["not_checkable"]
    unsure = labels["suspect"] + labels["not_checkable"]
    if not checked or (not labels["contaminated"] and unsure):
        return ""
    return f"{100 * labels['contaminated'] / checked:.4g}"
