"""Score models with and without the items that a scan flags; name the arrays scores are kept in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]
