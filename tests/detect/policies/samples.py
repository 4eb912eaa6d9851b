"""What policies are tested on."""

import numpy as np

from contam.detect.model import Matches, Totals, ViewItems


def empty_totals(items: ViewItems) -> Totals:
    """The totals of a corpus in which nothing was found."""
    n = items.n_items
    return Totals(
        longest_at=np.zeros(items.token_hash.shape[0], np.int32),
        n_documents=np.zeros(n, np.int64),
        n_occurrences=np.zeros(n, np.int64),
        best_score=np.zeros(n, np.float64),
        best_match=Matches.zeros(n, len(items.read)),
    )
