"""Define every error a user can meet: what happened, as facts, and what to do."""

from __future__ import annotations

from typing import Final, Self

from contam.facts import Names, Place, Plain, Public, Statement, statements

#: What this module passes on, besides its own.
__all__ = ["Names", "Place", "Plain", "Public", "Statement"]

Hint = str | Statement | tuple[Statement, ...]
"""A way out of an error: words of ours, or a sentence with facts; several are told in turn."""

ASK_STORE_LATER: Final = "repeat the call when the store answers, with credentials that it takes"
COPY_AGAIN: Final = "the file may be truncated or corrupt: copy it again, or leave it out"
LET_NOBODY_WRITE: Final = "let nobody write to the corpus while it is read"


class ContamError(Exception):
    """Base of all errors; `message` states the fact, `hint` the way out.

    code       stable name for machines
    exit_code  what the command line returns for it; 2 where the call as it was typed cannot run
    statement  what happened: a sentence and its facts, by whose types it is known who may be told
    hints      the ways out, with their facts
    """

    code = "contam"
    exit_code = 1

    def __init__(self, message: str | Statement, *facts: object, hint: Hint = ()) -> None:
        """An error with the facts that fill the gaps of its message."""
        if isinstance(message, str):
            message = Statement(message, *facts) if facts else Statement("{}", Plain(message))
        self.statement = message
        self.message = self.statement.tell()
        super().__init__(self.message)
        self.hints = statements(hint)

    def __str__(self) -> str:
        return self.message

    @property
    def hint(self) -> str:
        """The way out, "" when there is none."""
        return "; ".join(map(str, self.hints))

    def of_call(self) -> Self:
        """The same error as a wrong call: what a path or name of the call means is not there."""
        self.exit_code = UsageError.exit_code
        return self


class UsageError(ContamError):
    """The call itself does not fit: an unknown option value, or options that exclude each other."""

    code = "usage"
    exit_code = 2


class ConfigError(ContamError):
    """A setting or a specification is out of its range."""

    code = "config"
    exit_code = 2


class PolicyError(ContamError):
    """An unknown policy, or one that cannot be judged with the parameters given."""

    code = "policy"
    exit_code = 2


class PlanMemoryError(ContamError, MemoryError):
    """There is not enough memory to plan a run for so many items."""

    code = "plan-memory"


class CorpusError(ContamError):
    """The corpus as a whole cannot be read: nothing found, no text column."""

    code = "corpus"


class AccessError(CorpusError):
    """The credentials for a store give access to no object any more, whichever is asked for."""


class ShardError(ContamError):
    """One shard is missing, truncated, corrupt or unreadable.

    A message names the shard as `{shard}`, so that it can be given another name later.
    """

    code = "shard"

    def __init__(
        self, message: str | Statement, *facts: object, shard: str, hint: Hint = ()
    ) -> None:
        if isinstance(message, str) and "{shard}" in message:
            message = Statement(message, *facts, shard=Place(shard))
        super().__init__(message, *facts, hint=hint)
        self.shard = shard

    def renamed(self, place: str, name: str) -> ShardError:
        """The same error with a name for the shard wherever a fact mentions its place."""
        statement = self.statement.replacing(place, name)
        return ShardError(statement, shard=name, hint=self.hints)


class BenchmarkError(ContamError):
    """A benchmark file cannot be read as items."""

    code = "benchmark"

    def without_quotes(self) -> BenchmarkError:
        """The same without anything from the file, cells and names of fields alike.

        A header-less file has an item where others have their names.
        """
        hints = (*self.hints, Statement("nothing is quoted under --no-text"))
        error = BenchmarkError(
            self.statement.without_quotes(), hint=tuple(hint.without_quotes() for hint in hints)
        )
        error.exit_code = self.exit_code
        return error


class LogError(ContamError):
    """A log of an evaluation cannot be read, contradicts itself, or does not fit the benchmark."""

    code = "log"


class OutputError(ContamError):
    """Results cannot be written, or a result folder cannot be read."""

    code = "output"


class IncompleteError(ContamError):
    """The answer does not cover everything that was asked for."""

    code = "incomplete"
    exit_code = 4


class IndexDamageError(ContamError):
    """A file of an index is missing, cut, altered or contradicts another."""

    code = "index-damaged"

    def __init__(
        self, message: str | Statement, *facts: object, file: str, hint: Hint = ()
    ) -> None:
        super().__init__(message, *facts, hint=hint)
        self.file = file


class IndexUnreachableError(ContamError):
    """The store of an index does not answer; it may the next time."""

    code = "index-unreachable"


class IndexBusyError(ContamError):
    """Another process is changing the index."""

    code = "index-busy"


class IndexMismatchError(ContamError):
    """An index that cannot be used here: another format, recipe or unit than what is asked for."""

    code = "index-mismatch"
    exit_code = 2


class MissingExtraError(ContamError, ImportError):
    """A command needs packages that only an extra of contam installs."""

    code = "missing-extra"


class InternalError(ContamError):
    """A broken invariant: a defect of ours, never the user's."""

    code = "internal"
