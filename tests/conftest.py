"""What every test shares: Hypothesis profiles, and the one setting the interpreted run needs."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

# No deadline: the first call of a kernel compiles it, and CI machines are shared.
_SLOW_IS_FINE = [HealthCheck.too_slow]
# `make test` takes few examples, `make slow` and `make bounds` all; CI takes the same every time.
_CI = os.environ.get("CI") == "true"
for _name, _examples in (("dev", 40), ("full", 200)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=_CI,
        print_blob=_CI,
        suppress_health_check=_SLOW_IS_FINE,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Whatever starts the tests in the background may ignore Ctrl-C, and what they start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of tests are collected, and none of them is garbage: looking for some takes longer.
gc.disable()


@given(st.none())
def _first_property(nothing: None) -> None:
    """What Hypothesis sets up once, with the first property of a process."""


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among what was collected."""
    # Old Hypothesis warns, unless garbage collection can see that it holds its own random numbers.
    _first_property()
    gc.enable()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What is left when Python ends counts as garbage like any other."""
    gc.unfreeze()


REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout the tests run from."""
    return REPOSITORY


@pytest.fixture(scope="session")
def bench_fixtures() -> Path:
    """Folder of the small committed corpus, its items and its truth."""
    return REPOSITORY / "bench_fixtures"


@pytest.fixture(scope="session")
def labelled_data() -> Path:
    """Folder of the labelled pack; skips where it is not installed, fails in CI."""
    home = os.environ.get("CONTAM_SHARED")
    folder = Path(home, "data") if home else None
    if folder is not None and folder.is_dir():
        return folder
    if os.environ.get("CI") == "true":
        pytest.fail("CI must have the labelled data: CONTAM_SHARED does not lead to it")
    pytest.skip("labelled data not installed (CONTAM_SHARED)")


@pytest.fixture(scope="session")
def shared(labelled_data: Path) -> Path:
    """The folder beside the labelled pack: published tables and real evaluation logs."""
    return labelled_data.parent


@pytest.fixture(autouse=True, scope="session")
def _files_without_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power, so none waits until what it wrote would outlast that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(autouse=True)
def _wrapping_arithmetic() -> Iterator[None]:
    """Hashes wrap on purpose: compiled code does so silently, interpreted NumPy scalars warn."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        yield
        return
    with np.errstate(over="ignore"):
        yield
