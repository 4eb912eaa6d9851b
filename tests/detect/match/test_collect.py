"""Of every item the best documents stay, however they arrive and however often all but them go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.match import collect
from contam.detect.match.collect import Collection
from contam.detect.match.counts import COUNTED, Grouped, PolicyCount
from contam.detect.match.pieces import Pieces
from contam.detect.model import Matches
from contam.detect.policies.policy import get_policy
from tests.kernels.support import make_item, view_of

N_ITEMS, MOST = 3, 2

#: item, shard, row and rank of a pair: few of each, so that ranks tie.
places = st.tuples(st.integers(0, N_ITEMS - 1), st.integers(0, 2), st.integers(0, 9))
found = st.dictionaries(places, st.sampled_from((0.0, 0.5, 1.0)), max_size=40)


def tables(rows: list[tuple[tuple[int, int, int], float]]) -> tuple[Matches, Pieces, np.ndarray]:
    """Pairs, one piece for each that names its row, and the ranks."""
    matches = Matches.zeros(len(rows))
    matches.item[:], matches.shard[:], matches.row[:] = zip(*(at for at, _ in rows), strict=True)
    n = np.arange(len(rows))
    row = matches.row.astype(np.int32)
    pieces = Pieces(n, n.astype(np.int8), row, row, row, row, row)
    return matches, pieces, np.array([rank for _, rank in rows])


@pytest.fixture(scope="module", autouse=True)
def often():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "_PRUNE_ROWS", 3)
        yield


@given(found, st.booleans(), st.data())
def test_the_best_documents_stay_in_any_order_and_grouping(found, together, more):
    rows = more.draw(st.permutations(sorted(found.items())))
    cuts = more.draw(st.lists(st.integers(0, len(rows)), max_size=6).map(sorted))
    view = view_of([make_item(k, question=f"q{k}") for k in range(N_ITEMS)])
    first = Collection.start(view, [], get_policy("contam"), MOST)
    second = Collection.start(view, [], get_policy("contam"), MOST)
    workers = [first, first.empty_sibling() if together else second]
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        if begin < end:
            workers[number % 2].shared.top_documents.add(*tables(rows[begin:end]))
    whole, other = workers
    whole.merge(other)
    matches, pieces = whole.evidence()
    told = list(
        zip(matches.item.tolist(), matches.shard.tolist(), matches.row.tolist(), strict=True)
    )
    want = []
    for item in range(N_ITEMS):
        mine = [(-rank, shard, row) for (i, shard, row), rank in found.items() if i == item]
        want += [(item, shard, row) for _, shard, row in sorted(mine)[:MOST]]
    assert told == want
    assert pieces.match.tolist() == list(range(len(want)))
    assert pieces.start.tolist() == [row for _, _, row in want]


def counted(rows: list[tuple[tuple[int, int, int], float]], batches: list[int]) -> PolicyCount:
    """What is counted of pairs that come in batches; those with a score above 0 are hits."""
    count = PolicyCount.empty(N_ITEMS + 1)
    for begin, end in zip([0, *batches], [*batches, len(rows)], strict=True):
        if begin < end:
            matches, _, score = tables(rows[begin:end])
            matches.n_places[:] = matches.row + 1
            count.add(matches, score, score > 0.0, Grouped.of(matches))
    return count


@given(found, st.data())
def test_only_items_that_were_found_take_memory_and_all_is_counted(found, more):
    rows = more.draw(st.permutations(sorted(found.items())))
    cuts = more.draw(st.lists(st.integers(0, len(rows)), max_size=6).map(sorted))
    middle = more.draw(st.integers(0, len(rows)))
    count = counted(rows[:middle], [at for at in cuts if at < middle])
    count.merge(counted(rows[middle:], []))
    items = {item for item, _, _ in found}
    columns, best = count.by_item()
    assert best.item.tolist() == sorted(items)
    assert count.n_rows == len(items)
    again = PolicyCount.of_rows(N_ITEMS + 1, 0, columns, best)
    for totals in (one.totals(np.empty(0, np.int32)) for one in (count, again)):
        for item in range(N_ITEMS + 1):
            mine = [(-score, shard, row) for (i, shard, row), score in found.items() if i == item]
            hits = [row for score, _, row in mine if score < 0.0]
            assert totals.n_documents[item] == len(hits)
            assert totals.n_occurrences[item] == sum(hits) + len(hits)
            best_score, shard, row = min(mine, default=(0.0, -1, -1))
            assert totals.best_score[item] == -best_score
            match = totals.best_match
            place = (match.item[item], match.shard[item], match.row[item])
            assert place == (item if mine else -1, shard, row)


@pytest.mark.parametrize("items", [[0, 0], [1, 0], [-1, 0]])
def test_counts_of_a_part_with_items_that_are_not_in_order_are_refused(items):
    best = Matches.zeros(2)
    best.item[:] = items
    columns = {name: np.zeros(2) for name in COUNTED}
    with pytest.raises(ValueError, match="not in order"):
        PolicyCount.of_rows(3, 0, columns, best)
