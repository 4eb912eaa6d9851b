"""Classify how exposed an item is and how alike the copy is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.model import ANSWER, CHOICES, PASSAGE, QUESTION

if TYPE_CHECKING:
    from contam.detect.model import Int8s, Int32s, Matches

EXPOSURES: Final = ("none", "question", "question+answer", "passage_only", "answer_only")
NONE: Final = 0
QUESTION_ONLY: Final = 1
QUESTION_AND_ANSWER: Final = 2
PASSAGE_ONLY: Final = 3
ANSWER_ONLY: Final = 4

KINDS: Final = ("exact", "near", "partial", "rephrased")
_EXACT, _NEAR, _PARTIAL, _REPHRASED = range(4)

#: A part counts as standing in a document from this weight share on.
STANDS = 0.5
#: So does one with a run of this many tokens, as long as it may be.
LONG_RUN = 13
NEAR = 0.75
#: A copy has this share of the tokens themselves.
MOST = 0.7


def question_words(matches: Matches, n_tokens: Int32s) -> Int32s:
    """Words of the question that the figures of each match count, int32[m].

    n_tokens  int32[items, 4], tokens of the parts of each item
    """
    own: Int32s = np.where(matches.item >= 0, n_tokens[matches.item, QUESTION], 0)
    return np.where(matches.variant_words > 0, matches.variant_words, own)


def exposures(matches: Matches) -> Int8s:
    """What of its item stands in the document of each match, int8[m]: an index into EXPOSURES."""
    stands = (matches.coverage >= STANDS) | matches.exact | (matches.longest >= LONG_RUN)
    some = (matches.longest[:, QUESTION] > 0) | (matches.coverage[:, QUESTION] > 0)
    found = np.where(some, QUESTION_ONLY, NONE).astype(np.int8)
    found[stands[:, ANSWER] | stands[:, CHOICES]] = ANSWER_ONLY
    found[stands[:, PASSAGE]] = PASSAGE_ONLY
    found[matches.told > 0] = ANSWER_ONLY
    whole = stands[:, QUESTION]
    found[whole] = np.where(matches.answer_near[whole], QUESTION_AND_ANSWER, QUESTION_ONLY)
    found[matches.item < 0] = NONE
    return found


def kinds(matches: Matches, exposure: Int8s, n_tokens: Int32s) -> Int8s:
    """How what stands there compares with the item, int8[m]: an index into KINDS, -1 for neither.

    exposure  int8[m], see `exposures`; n_tokens  int32[m, 4], tokens of the parts of each item
    """
    part = np.where(
        matches.coverage[:, ANSWER] >= matches.coverage[:, CHOICES], ANSWER, CHOICES
    ).astype(np.int64)
    part[exposure == PASSAGE_ONLY] = PASSAGE
    asked = (exposure == QUESTION_ONLY) | (exposure == QUESTION_AND_ANSWER)
    part[asked] = QUESTION
    row = np.arange(len(matches))
    whole = matches.coverage[row, part] >= NEAR
    words = np.where(
        asked & (matches.variant_words > 0), matches.variant_words, n_tokens[row, part]
    )
    whole &= matches.aligned[row, part] >= MOST * words
    whole &= ~(asked & matches.split)
    kind = np.where(whole, _NEAR, _PARTIAL).astype(np.int8)
    kind[matches.exact[row, part]] = _EXACT
    # Nothing is aligned where other words say the same.
    no_run = (matches.longest[:, QUESTION] == 0) & ~matches.exact[:, QUESTION]
    kind[asked & no_run & (matches.coverage[:, QUESTION] > 0)] = _REPHRASED
    kind[exposure == NONE] = -1
    return kind
