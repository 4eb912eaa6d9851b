"""Every error a caller can meet: what happened, and the way out."""

from __future__ import annotations


class ContamError(Exception):
    """Base of all errors; `message` states the fact, `hint` the way out.

    code       stable name for machines
    exit_code  what the command line returns for it
    """

    code = "contam"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


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


class ShardError(ContamError):
    """One shard is missing, truncated, corrupt or unreadable."""

    code = "shard"

    def __init__(self, message: str, *, shard: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.shard = shard


class BenchmarkError(ContamError):
    """A benchmark file cannot be read as items."""

    code = "benchmark"


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

    def __init__(self, message: str, *, file: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.file = file


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
