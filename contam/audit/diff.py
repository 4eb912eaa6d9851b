"""Compare two audits: items, scores, ranks, studies, coverage, corpora, policies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from contam.audit.verify import checked_facts
from contam.detect.changes import Changes, Side, compare, differing
from contam.detect.report import load_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.audit.facts import Facts
    from contam.detect.changes import FigureChange

    Row = Mapping[str, Any]

_SCORE: Final = ("benchmark", "model", "metric", "policy")
_COVERAGE: Final = ("complete", "shards_read", "shards_expected", "rows", "n_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Changes):
    """All that changed from one audit to another.

    before, after  digests of the packs
    """

    before: str
    after: str
    status: tuple[str, str]
    scores: tuple[FigureChange, ...]
    ranks: tuple[FigureChange, ...]
    corpora: tuple[FigureChange, ...]
    studies: tuple[FigureChange, ...]


def compare_packs(before: Path, after: Path) -> Difference:
    """Set two packs side by side. Raises OutputError when one of them does not hold."""
    (first, digest, one), (second, other_digest, other) = _read(before), _read(after)
    found = compare(one, other)
    return Difference(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        before=digest,
        after=other_digest,
        status=(first.headline.status, second.headline.status),
        scores=_figures(first.scores, second.scores, ("full", "clean")),
        ranks=_figures(first.rankings, second.rankings, ("rank_full", "rank_clean")),
        corpora=differing(_corpora(first), _corpora(second)),
        studies=differing(_studies(first), _studies(second)),
    )


def _read(folder: Path) -> tuple[Facts, str, Side]:
    facts, manifest = checked_facts(folder)
    report = load_report(folder / facts.verdicts)
    side = Side(report, facts.tool.get("normaliser"), facts.policies)
    return facts, manifest["digest"], side


def _figures(
    first: Sequence[Row], second: Sequence[Row], names: Sequence[str]
) -> tuple[FigureChange, ...]:
    before, after = (
        {
            ", ".join(str(row[name]) for name in _SCORE): {name: row[name] for name in names}
            for row in rows
        }
        for rows in (first, second)
    )
    return differing(before, after)


def _corpora(facts: Facts) -> dict[str, Row]:
    return {
        corpus.name: {
            "stage": corpus.stage,
            "how": corpus.how,
            "guarantee_tokens": corpus.guarantee_tokens,
            **{name: corpus.coverage.get(name) for name in _COVERAGE},
        }
        for corpus in facts.corpora
    }


def _studies(facts: Facts) -> dict[str, Row]:
    """What each study found, and what it does not estimate."""
    return {
        study["name"]: {
            "found": study["finding"]["found"],
            **{f"not estimated, {one['what']}": one["reason"] for one in study["refused"]},
        }
        for study in facts.studies
    }
