"""Define verdict labels and their order; imports nothing, so clients can use it."""

from __future__ import annotations

from typing import Final

CLEAN: Final = 0
SUSPECT: Final = 1
CONTAMINATED: Final = 2
NOT_CHECKABLE: Final = 3

LABELS: Final = ("clean", "suspect", "contaminated", "not_checkable")
"""By their codes: of the first three a higher one is worse."""

SHOWN: Final = ("contaminated", "suspect", "clean", "not_checkable")
"""As tables and counts show them."""

WORST_FIRST: Final = ("contaminated", "suspect", "not_checkable", "clean")
"""As one corpus outweighs another."""

FLAGGED: Final = ("contaminated", "suspect")
"""The labels that take an item out of clean scores."""
