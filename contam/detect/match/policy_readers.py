"""Run policies that read documents themselves, and store what they find in the matches.

Matching finds the documents that share a run of words with an item; only those are read, by each
such policy in its own way. What it finds becomes a column of the evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import FIGURES_READ
from contam.detect.policies.policy import reads_text
from contam.text.bpe import BUILT_IN_UNITS, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem
    from contam.corpus.batches import DocBatch
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float32s, Int32s, Matches
    from contam.detect.policies.policy import Policy


def with_readers(
    view: TokenView, items: Sequence[BenchItem], policies: Sequence[Policy], unit: str
) -> TokenView:
    """The view with a reader for each policy that needs one.

    unit  what the run was given: a tokenizer file is for the readers' tokens, too

    Raises UsageError or ConfigError where the unit is no tokenizer file.
    """
    reading = [policy for policy in policies if reads_text(policy)]
    if not reading:
        return view
    tokenizer = view.tokenizer
    if tokenizer is None and unit not in BUILT_IN_UNITS:
        tokenizer = load_tokenizer(unit)
    readers = tuple(policy.reader(items, tokenizer) for policy in reading)
    known = tuple(reader.known for reader in readers)
    return replace(
        view,
        readers=readers,
        reads_with=tokenizer,
        items=replace(view.items, read=known),
    )


def read_documents(
    view: TokenView, batch: DocBatch, matches: Matches, document: Int32s
) -> Float32s:
    """What every reader of the view finds in the documents of these matches: float32[m, p, 4].

    document  int32[m], its number in the batch
    """
    found = np.zeros((len(matches), len(view.readers), FIGURES_READ), np.float32)
    # Readings of an item lie behind the items, and are for policies that see variants.
    wanted = np.flatnonzero(matches.item < view.items.n_items)
    order = wanted[np.argsort(document[wanted], kind="stable")]
    edges = np.flatnonzero(np.diff(document[order], prepend=-1))
    for rows in np.split(order, edges)[1:]:
        begin, end = batch.offsets[document[rows[0]] : document[rows[0]] + 2]
        text = batch.data[begin:end].tobytes().decode()
        for number, reader in enumerate(view.readers):
            found[rows, number] = reader.read(text, matches.item[rows].tolist())
    return found
