"""Command lines as people type them: several values after one option."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contam.errors import UsageError


def spread_values(arguments: Sequence[str], options: Iterable[str]) -> list[str]:
    """Rewrite `--corpus a b` as `--corpus a --corpus b`, for the given long options.

    An option takes every word up to the next one that begins with a dash (a lone `-` is a word);
    `--option=a b` works, too. After `--` nothing is rewritten. Raises UsageError for an option
    without a value.
    """
    wanted = frozenset(options)
    spread: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return [*spread, word, *arguments[at:]]
        option, equals, value = word.partition("=")
        if option not in wanted:
            spread.append(word)
            continue
        values = [value] if equals else []
        while at < len(arguments) and not _is_option(arguments[at]):
            values.append(arguments[at])
            at += 1
        if not values:
            raise UsageError(f"{option} needs a value", hint=f"for example {option} PATH PATH")
        for value in values:
            spread += [option, value]
    return spread


def split_names(values: Iterable[str]) -> list[str]:
    """`["a,b", "c"]` -> `["a", "b", "c"]`, each once, in order."""
    names = (name.strip() for value in values for name in value.split(","))
    return list(dict.fromkeys(name for name in names if name))


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"
