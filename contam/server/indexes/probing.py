"""Send each index a first query, which proves that it answers and warms it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.detect.indexed.blind import check_blind, hash_items
from contam.detect.indexed.guarantee import refuse_unanswerable
from contam.detect.indexed.quote import quote
from contam.detect.policies.policy import get_policy, list_policies
from contam.errors import IndexMismatchError
from contam.kernels.candidates import SHUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.detect.indexed.index_reader import IndexReader
    from contam.detect.indexed.indexes import IndexSet

_ABSENT: Final = "seven small kites flew over the old harbour wall before the rain came in"
_LEAST_TOKENS: Final = 60
_CHARACTERS: Final = 2000


def probe(opened: IndexSet, reader: IndexReader) -> None:
    """Look all canaries up, and ask for a text that is there and for one that hardly is.

    Raises IndexDamageError when a canary is not answered as it must be.
    """
    for part in opened.parts:
        part.segment.probe()
    items = [BenchItem(benchmark="probe", split="", item_id="absent", question=_ABSENT)]
    text = next(_texts(opened), "")
    third = len(text) // 3
    if third:
        items.append(
            BenchItem(
                benchmark="probe",
                split="",
                item_id="present",
                passage=text[:third],
                question=text[third : 2 * third],
                choices=(text[2 * third : -third // 2], text[-third // 2 :]),
                answer=text[-third // 2 :],
            )
        )
    policies = list(answerable(opened))
    reader.check(items, policies=policies, max_evidence=1)
    reader.check(items[-1], policies=policies[:1])
    check_blind(opened, hash_items(items, opened.recipe), policies=policies[:1], max_evidence=1)


def answerable(opened: IndexSet) -> Iterator[str]:
    """The policies that these indexes can answer."""
    for spec in list_policies():
        try:
            refuse_unanswerable([get_policy(spec.id)], opened.recipe)
        except IndexMismatchError:
            continue
        yield spec.id


def _texts(opened: IndexSet) -> Iterator[str]:
    """The beginning of a document of each segment that can be read."""
    for part in opened.parts:
        tokens = part.segment.arrays["doc_tokens"]
        tokens.check_all()
        counted = (tokens.array >= _LEAST_TOKENS) & (part.state != SHUT)
        for number in np.flatnonzero(counted)[:1].tolist():
            shard, row = opened.place_of(part, np.array([number], np.int64))
            place = (opened.names[int(shard[0])], int(row[0]))
            if text := quote(opened, [place]).get(place):
                yield text[:_CHARACTERS]
