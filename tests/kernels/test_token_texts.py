"""Texts from a table of bytes are those that a loop over tokens writes."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels.token_texts import BREAK, HEAD, MISSING, TokenTable, measure_texts, write_texts
from tests.twins.token_texts import texts

TOKENS = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.binary(min_size=HEAD - 1, max_size=3 * HEAD),
        st.sampled_from([b" ", b" a", b"", BREAK, MISSING]),
    ),
    min_size=1,
    max_size=12,
)


def table_of(tokens):
    plain = [one if isinstance(one, bytes) else b"" for one in tokens]
    size = np.array([len(one) for one in plain], np.int64)
    return TokenTable(
        length=np.array([one if isinstance(one, int) else len(one) for one in tokens], np.int32),
        head=np.frombuffer(b"".join(one[:HEAD].ljust(HEAD, b"\0") for one in plain), "<u8").reshape(-1, 2),
        start=np.cumsum(size) - size,
        data=np.frombuffer(b"".join(plain) + b"\0", np.uint8),
    )  # fmt: skip


@given(TOKENS, st.data(), st.booleans())
def test_texts_of_a_table_are_those_of_a_loop(tokens, data, strips):
    documents = data.draw(st.lists(st.lists(st.integers(0, len(tokens)), max_size=9), max_size=5))
    ids = np.array([one for document in documents for one in document], np.uint32)
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    wanted = texts(ids.tolist(), offsets.tolist(), tokens, strips=strips)
    size, unknown = measure_texts(ids, table_of(tokens))
    assert (unknown >= 0) == (wanted is None)
    if wanted is None:
        assert ids[unknown] == len(tokens) or tokens[ids[unknown]] == MISSING
        return
    out, bounds = np.empty(size, np.uint8), np.empty(len(offsets), np.int64)
    where = np.empty(len(ids) + 1, np.int64)
    write_texts(ids, offsets, table_of(tokens), strips, out, bounds, where)
    made = out.tobytes()
    assert [made[a:b] for a, b in itertools.pairwise(bounds)] == wanted[0]
    assert where.tolist() == wanted[1]
