"""Error messages about benchmarks that nobody may see."""

from __future__ import annotations

import re

from contam.errors import BenchmarkError

# What a file says is quoted in messages as Python writes texts; names of files never are.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?""", re.DOTALL)


def unquoted(text: str) -> str:
    """A message without what it quotes."""
    return _QUOTED.sub("'...'", text)


def without_quotes(error: BenchmarkError) -> BenchmarkError:
    """The same error with everything it quotes left out, cells and names of fields alike.

    A header-less file has an item where others have their names.
    """
    message, hint = unquoted(error.message), unquoted(error.hint)
    return BenchmarkError(
        message, hint=f"{hint}; nothing is quoted under --no-text".removeprefix("; ")
    )
