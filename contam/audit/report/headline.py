"""Write the top of a report: the status, what to act on, and the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import Headline
from contam.audit.spec import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.audit.facts import BenchmarkFacts, PolicyFacts

LIMITS: Final = (
    "A clean item is clean in the corpora named here, under the policy named beside it.",
    "A copy in other words may be missed: the labelled figures of contam say how often.",
    "Text that was filtered out before training, or is in no corpus named here, was not looked at.",
    "A flag says that the text is there; it does not say that a model learned from it.",
    "The gain is a difference between sets of items: clean items may be harder for other reasons.",
)
"""What no audit of this kind can say."""


def headline(
    benchmarks: Sequence[BenchmarkFacts],
    coverage: Mapping[str, Any],
    policy: str,
    scores: Sequence[Mapping[str, Any]],
    *,
    n_left_out: int = 0,
) -> Headline:
    """The status and the sentence, by the first policy of the audit."""
    together = [
        result for bench in benchmarks for result in bench.policies if _counts(result, policy)
    ]
    flagged = sum(result.contaminated + result.suspect for result in together)
    items = sum(result.n_items for result in together)
    waived = sum(result.waived for result in together)
    unchecked = sum(result.not_checkable for result in together)
    sentences = [
        f"The corpora contain {flagged:,} of {items:,} items ({_percent(flagged, items)}), by "
        f"{policy}."
        if flagged
        else f"None of {items:,} items was found in the corpora, by {policy}."
    ]
    found = [(result, bench.name) for bench in benchmarks for result in bench.policies]
    found = [pair for pair in found if _counts(pair[0], policy)]
    if flagged and len(benchmarks) > 1:
        worst, name = max(found, key=lambda pair: pair[0].flagged_share)
        share = _percent(worst.contaminated + worst.suspect, worst.n_items)
        sentences.append(f"Most in {name}: {share}.")
    if waived:
        accepted = sum(result.accepted for result in together)
        false = waived - accepted
        sentences.append(
            f"{waived:,} of them {'is' if waived == 1 else 'are'} waived by a reviewer: "
            f"{false:,} as {'a false alarm' if false == 1 else 'false alarms'}, "
            f"{accepted:,} as {'an accepted leak' if accepted == 1 else 'accepted leaks'}."
        )
    if unchecked:
        sentences.append(f"{unchecked:,} could not be checked.")
    sentences += _largest_gain(scores, policy)
    if n_left_out:
        logs = "log is" if n_left_out == 1 else "logs are"
        sentences.append(f"{n_left_out:,} {logs} damaged and left out.")
    if not coverage["complete"]:
        read, expected = coverage["shards_read"], coverage["shards_expected"]
        sentences.insert(0, f"Not all of the corpora was read: {read:,} of {expected:,} shards.")
        return Headline(status="incomplete", text=" ".join(sentences))
    # An accepted leak is a leak.
    stands = flagged - waived + sum(result.accepted for result in together)
    return Headline(status="flagged" if stands else "clear", text=" ".join(sentences))


def _counts(facts: PolicyFacts, policy: str) -> bool:
    return facts.policy == policy and facts.corpus == TOGETHER


def _largest_gain(scores: Sequence[Mapping[str, Any]], policy: str) -> list[str]:
    known = [row for row in scores if row["policy"] == policy and row["epg"] is not None]
    if not known:
        return []
    best = max(known, key=lambda row: abs(float(row["gain"])))
    text = f"Without the flagged items {best['model']} scores {best['clean']:.3f} on "
    return [f"{text}{best['benchmark']} instead of {best['full']:.3f}, the largest change."]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"
