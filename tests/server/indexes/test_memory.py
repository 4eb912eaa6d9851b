"""How much text is kept: what the operator says, else a share of what the process may take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from contam.memory import usable_bytes
from contam.server.indexes.memory import text_cache_bytes

MIB = 1 << 20
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("said", "n_indexes", "usable_mib", "expected_mib"),
    [
        (7 * MIB, 1, 16_384, 7),
        (0, 1, 8_192, 1_024),
        (0, 2, 8_192, 512),
        (0, 3, 1_024, 256),
        (0, 1, 1_000_000, 2_048),
    ],
)
def test_without_a_word_indexes_share_an_eighth_within_bounds(
    said, n_indexes, usable_mib, expected_mib
):
    assert text_cache_bytes(said, n_indexes, usable_mib * MIB) == expected_mib * MIB


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1073741824\n", 1 << 30),
        ("max\n", MACHINE),
        ("9223372036854771712\n", MACHINE),
        ("", MACHINE),
        ("\xff", MACHINE),
    ],
)
def test_a_container_s_limit_counts_where_it_is_less_than_the_machine(tmp_path, written, expected):
    limit = tmp_path / "memory.max"
    limit.write_text(written, encoding="latin-1")
    assert usable_bytes([tmp_path / "absent", limit]) == expected


_CHURN = """
import sys
import numpy as np
from contam.memory import tune_service

def own_mib():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(one.split()[1]) for one in lines if one.startswith("Anonymous:")) / 1024

if sys.argv[1] == "tuned":
    tune_service()
before = own_mib()
kept = []
for _ in range(20):
    large = [np.ones(1_000_000, np.uint8) for _ in range(100)]
    kept += [np.ones(100_000, np.uint8) for _ in range(10)]
    large = [np.ones(900_000, np.uint8) for _ in large]
    kept += [np.ones(100_000, np.uint8) for _ in range(10)]
    del large
print(own_mib() - before - sum(one.nbytes for one in kept) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""),
    reason="another C library",
)
def test_what_was_freed_between_blocks_that_live_on_goes_back_to_the_system():
    over = {
        how: float(
            subprocess.run(
                [sys.executable, "-c", _CHURN, how], capture_output=True, text=True, check=True
            ).stdout
        )
        for how in ("tuned", "plain")
    }
    assert over["tuned"] < 8, over
    # Without it there would be nothing to mend.
    assert over["plain"] > 32, over
