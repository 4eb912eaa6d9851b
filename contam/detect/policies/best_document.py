"""`tulu3-50`: flag an item if one document holds more than half of its question.

As in the original:

- Passage and question are rated each by itself, as the share of its words inside runs of 8 or more
  in that document; an item with both scores their mean.
- Exactly one half is clean: it compares with "more than".
- A part shorter than 8 words holds no run and rates 0, which weighs on the mean.

What differs:

- Tokens. There spaCy's, among which punctuation counts; a run of 8 of them is then searched as a
  phrase of what is left between spaces and `,.?!:;()"-` and the backslash. So a run may have fewer
  than 8 words there, `3+4` is one, and punctuation counts in the share.
- A gram that an item has twice covers its last place only there, all of its places here.
- There a gram is looked up in the 100 documents that a search engine ranks first, and only in what
  users say; here in every document.
- A field that is there but empty counts as 0 in the mean there, and an item that lacks a field is
  left out; here the mean is over the parts that an item has.
- An item none of whose judged parts has 8 words is `not_checkable`; there it scores 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.labels import NOT_CHECKABLE
from contam.detect.policies.common import (
    COUNTS_RUNS,
    documents_hold,
    flags_from,
    judgements,
    part_index,
    part_lengths,
    passes,
    percent,
    require_view,
    unit_names,
)
from contam.detect.policies.policy_spec import PolicySpec
from contam.errors import PolicyError, Statement
from contam.facts import counted

if TYPE_CHECKING:
    from contam.detect.model import (
        Bools,
        Float64s,
        Int32s,
        Int64s,
        Judgements,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.detect.policies.policy import Policy
    from contam.detect.policies.policy_spec import PolicyTraits

TULU3_50: Final = PolicySpec(
    id="tulu3-50",
    title="Tülu 3, half of the words in one document",
    description=(
        "An item is contaminated if a single document contains more than half of its words in"
        " runs of 8 or more. Approximate: the original counts spaCy's tokens, including"
        " punctuation, and looks a run up in the first 100 hits of a search engine; here tokens"
        " are contam's words, and every document is searched."
    ),
    source="Lambert et al. 2024, Tülu 3, and open-instruct, decontamination/search.py",
    confidence="source",
    approximate=True,
    unit="word",
    n=8,
    scope="one document",
    aggregation="share of tokens",
    parts=("passage", "question"),
    thresholds=((0.5, "contaminated"),),
    comparison="more than",
    count_rule=(
        "documents that each contain more than half of the item's words in runs of 8 or more"
    ),
    too_short="an item is not_checkable if none of its judged parts has 8 words",
)
SPECS: Final = (TULU3_50,)


@dataclass(frozen=True, slots=True)
class BestDocument:
    """The share of an item that its best single document holds in long runs."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = COUNTS_RUNS

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The covered share of each document, averaged over the judged parts that an item has."""
        require_view(self.spec, items)
        if items.min_run != self.spec.n:
            raise PolicyError(
                "policy {!r} counts words in runs of {}, but the scan counts them from {}",
                self.spec.id,
                self.spec.n,
                items.min_run,
                hint=Statement("scan with min_run {}, or leave this policy out", self.spec.n),
            )
        columns = part_index(self.spec.parts)
        n_tokens: Int32s = items.n_tokens[matches.item][:, columns]
        shares: Float64s = matches.covered[:, columns] / np.maximum(n_tokens, 1)
        n_parts = np.maximum(np.count_nonzero(n_tokens, axis=1), 1)
        mean: Float64s = shares.sum(axis=1) / n_parts
        return mean

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents that would flag the item by themselves."""
        del matches, items  # the score decides
        return passes(self.spec, score, self.spec.threshold("contaminated"))

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Labels by the best document; not checkable where no part is long enough for a run."""
        longest: Int32s = items.n_tokens[:, part_index(self.spec.parts)].max(axis=1)
        return judgements(self.spec, totals.best_score, longest >= self.spec.n)

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """How much of which part the best document holds, and where labels begin."""
        best = totals.best_match
        thresholds = flags_from(self.spec)
        columns = part_index(self.spec.parts)
        nothing = (best.item[rows] < 0) | (totals.best_score[rows] == 0.0)
        found = []
        for label, word, none_found, lengths, covered, score, n_documents in zip(
            judgement.label[rows].tolist(),
            unit_names(self.spec, items, rows),
            nothing.tolist(),
            items.n_tokens[rows].tolist(),
            best.covered[rows].tolist(),
            judgement.score[rows].tolist(),
            totals.n_documents[rows].tolist(),
            strict=True,
        ):
            if label == NOT_CHECKABLE:
                short = part_lengths(self.spec, lengths, word)
                found.append(f"{short}; this policy needs {self.spec.n}")
                continue
            if none_found:
                run = f"a run of {counted(self.spec.n, word)}"
                found.append(f"no document holds {run} of it; {thresholds}")
                continue
            parts = " and ".join(
                f"{covered[column]:,} of {counted(lengths[column], word)} of the {PARTS[column]}"
                for column in columns
                if lengths[column]
            )
            more = f"; {documents_hold(n_documents)} that much" if n_documents else ""
            found.append(
                f"the best document holds {parts} in runs of {self.spec.n} or more"
                f" ({percent(score)}){more}; {thresholds}"
            )
        return found


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    return BestDocument(spec)
