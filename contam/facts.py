"""Build error messages of a sentence and facts whose types say who may see them.

The type of a fact says who may be told. Numbers and `Public` words are for everybody, a path or
`Place` is for who may know where things lie, and everything else counts as quoted from the user's
files: it is left out where those may not be shown. Numbers and sizes in sentences are written here,
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from string import Formatter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FORMATTER: Final = Formatter()
_QUOTES: Final = frozenset("'\"")
_SLASHES: Final = frozenset("/\\")
_GIGA: Final = 1_000_000_000
_MEGA: Final = 1_000_000
_KILO: Final = 1_000


class Public(str):
    """A word that anybody may be told: a name of ours, or what the operating system says."""

    __slots__ = ()


class Place(str):
    """Where a file or folder lies, when that is a text rather than a path."""

    __slots__ = ()


class Plain(str):
    """A whole sentence that was given without its facts, so that nobody knows what is in it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Names:
    """Names from a file, each told in quotation marks, the first `most` of them."""

    names: Sequence[object]
    most: int | None = None

    def __str__(self) -> str:
        shown = self.names[: self.most]
        n_more = len(self.names) - len(shown)
        told = ", ".join(map(repr, shown))
        return f"{told} and {n_more} more" if n_more else told


@dataclass(frozen=True, slots=True)
class Hidden:
    """Stands where a fact was left out; `n` of them when it was a list."""

    n: int = 1

    def __str__(self) -> str:
        return ", ".join(["'...'"] * self.n)


@dataclass(frozen=True, slots=True, init=False)
class Statement:
    """A sentence and its facts.

    template  as `str.format` has it: `{}` for facts by position, `{name}` for named ones
    """

    template: str
    facts: tuple[object, ...]
    named: Mapping[str, object]

    def __init__(self, template: str, *facts: object, **named: object) -> None:
        for name, value in (("template", template), ("facts", facts), ("named", named)):
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return self.tell()

    @property
    def is_hidden(self) -> bool:
        """Whether nothing of it is left to be told."""
        return self.template == "{}" and isinstance(self.facts[0], Hidden)

    def tell(self, hidden: Callable[[Hidden], str] = str) -> str:
        """The sentence; `hidden` says what stands where a fact was left out."""
        facts = iter(self.facts)
        told = []
        for text, name, spec, conversion in _FORMATTER.parse(self.template):
            told.append(text)
            if name is None:
                continue
            fact = self.named[name] if name else next(facts)
            if isinstance(fact, Statement):
                value: object = fact.tell(hidden)
            elif isinstance(fact, Hidden):
                value = hidden(fact)
            else:
                value = _FORMATTER.convert_field(fact, conversion)
            told.append(str(_FORMATTER.format_field(value, spec or "")))
        return "".join(told)

    def without_quotes(self) -> Statement:
        """The same without what comes from the user's files: names of files are not of that."""
        return self._with(_unquoted)

    def without_folders(self, home: PurePath | None = None) -> Statement:
        """The same with the last name of every absolute path alone.

        home  a folder whose own files may be told: by their path within it
        """
        return self._with(lambda fact: _within(fact, home))

    def replacing(self, place: str, name: str) -> Statement:
        """The same with `name` wherever a fact that is a text mentions `place`."""
        return self._with(
            lambda fact: type(fact)(fact.replace(place, name)) if isinstance(fact, str) else fact
        )

    def _with(self, shown: Callable[[object], object]) -> Statement:
        def of(fact: object) -> object:
            return fact._with(shown) if isinstance(fact, Statement) else shown(fact)  # noqa: SLF001 - another of its kind

        named = {name: of(fact) for name, fact in self.named.items()}
        return Statement(self.template, *map(of, self.facts), **named)


def statements(said: str | Statement | tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Several statements from what may be one, or one in words of ours alone."""
    if isinstance(said, str):
        return (Statement("{}", Public(said)),) if said else ()
    return (said,) if isinstance(said, Statement) else said


def _unquoted(fact: object) -> object:
    if isinstance(fact, Plain):
        return fact if _QUOTES.isdisjoint(fact) else Hidden()
    if isinstance(fact, int | float | Enum | PurePath | Place | Public | Hidden):
        return fact
    return Hidden(len(fact.names) if isinstance(fact, Names) else 1)


def _within(fact: object, home: PurePath | None) -> object:
    if isinstance(fact, PurePath | Place):
        path = PurePath(fact)
        if home is not None and path.is_relative_to(home):
            path = path.relative_to(home)
        return Public(path.name if path.is_absolute() else path)
    if isinstance(fact, Plain) and not _SLASHES.isdisjoint(fact):
        return Hidden()
    return fact


def counted(number: int, thing: str) -> str:
    """`1 word`, `2 words`, `3 words or characters`."""
    return f"{number:,} {thing if number == 1 else several(thing)}"


@cache
def several(thing: str) -> str:
    """The plural: `words`, `words or characters`."""
    return " or ".join(f"{word}s" for word in thing.split(" or "))


def size(n_bytes: int) -> str:
    """A number of bytes for people; 0 only when there is nothing."""
    if n_bytes >= _GIGA:
        return f"{n_bytes / _GIGA:.1f} GB"
    if n_bytes >= _MEGA:
        return f"{n_bytes / _MEGA:.1f} MB"
    return f"{n_bytes / _KILO:.1f} kB" if n_bytes >= _KILO else counted(n_bytes, "byte")
