"""Describe an error to callers without paths on this disk or text of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.errors import BenchmarkError, ContamError, LogError
from contam.server.problems.remedies import SENTENCES, hint_for

if TYPE_CHECKING:
    from pathlib import Path

    from contam.facts import Hidden, Statement

INSIDE: Final = {
    "corpus": "the corpus cannot be read now",
    "shard": "a shard of the corpus cannot be read now",
    "incomplete": "the answer would not be whole",
    "index-damaged": "a file of an index is damaged",
    "index-busy": "the index is being changed",
}
"""Messages for failures on our side: the library's own ones name files of this machine."""
_REFUSED: Final = "what was sent cannot be used"


def tell(error: ContamError, home: Path | None = None) -> tuple[str, str]:
    """Message and hint of an error, each fact of it only if it may leave the service.

    home  the folder of what was sent, whose own files are named by their path within it

    Places keep their last name. What a benchmark or a log says is left out, as it may be somebody's
    unpublished test. A message whose facts are not known is replaced by what its code says.
    """
    secret = isinstance(error, BenchmarkError | LogError)
    said = _shown(error.statement, home, secret=secret)
    message = INSIDE.get(error.code, _REFUSED) if said.is_hidden else said.tell(_counted)
    advice = (_shown(remedy.statement(SENTENCES), home, secret=secret) for remedy in error.remedies)
    hint = "; ".join(sentence.tell(_counted) for sentence in advice) or error.hint
    return message, hint_for(error.code, hint)


def _shown(statement: Statement, home: Path | None, *, secret: bool) -> Statement:
    shown = statement.without_folders(home)
    return shown.without_quotes() if secret else shown


def _counted(hidden: Hidden) -> str:
    return str(hidden) if hidden.n == 1 else f"{hidden.n} names that are not repeated here"
