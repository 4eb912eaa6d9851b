"""An error by its class and its facts, whatever the sentence is."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(error, *facts):
    """The block raises this error; numbers, names and flags stand in its message or hint."""
    with pytest.raises(error) as caught:
        yield
    said = f"{caught.value.message} {caught.value.hint}"
    assert all(str(fact) in said for fact in facts), said
