"""Choose rows of Arrow arrays and batches of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rows = TypeVar("Rows", pa.Array, pa.RecordBatch)


def taken(values: Rows, rows: NDArray[np.int64]) -> Rows:
    """The rows with these numbers, ascending and distinct."""
    try:
        return values.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        # Views of text, for one, can be sliced and joined only.
        chosen = np.zeros(len(values), np.bool_)
        chosen[rows] = True
        return _sliced(values, chosen)


def kept(values: Rows, chosen: NDArray[np.bool_]) -> Rows:
    """The rows that are chosen; bool, one a row."""
    if chosen.all():
        return values
    try:
        return values.filter(pa.array(chosen))
    except pa.ArrowNotImplementedError:
        return _sliced(values, chosen)


def _sliced(values: Rows, chosen: NDArray[np.bool_]) -> Rows:
    runs = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2).tolist()
    slices = [values.slice(begin, end - begin) for begin, end in runs]
    if not slices:
        return values.slice(0, 0)
    return (
        pa.concat_batches(slices)
        if isinstance(values, pa.RecordBatch)
        else pa.concat_arrays(slices)
    )
