"""Take defaults of a command from the environment and from the settings file, and say so.

They become words of the command line, so that they are checked as what a user types.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from contam.config import FILE, PREFIX, read_tables, unknown_setting
from contam.errors import ConfigError, UsageError

TYPED: Final = (
    "settings", "overwrite", "json", "quiet", "debug", "plan", "shard", "lease", "engine",
    "address", "resume",
)  # fmt: skip
"""Options that are given on the command line alone."""

#: Options of a scan that a worker takes, too.
_BESIDE_PLAN: Final = ("out", "workers")
#: Variables that mean an option of several commands.
_SHARED: Final = {"home": f"{PREFIX}HOME"}
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Supplied:
    """An option that was not typed: where its values come from, as words of the command line."""

    origin: str
    option: str
    values: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """What a user would have typed; a switch has no values."""
        return [f"{self.option}={value}" for value in self.values] or [self.option]

    def to_dict(self) -> dict[str, Any]:
        """As run.json has it."""
        return {"option": self.option, "values": list(self.values), "from": self.origin}


_supplied: tuple[Supplied, ...] = ()


def supplied() -> tuple[Supplied, ...]:
    """What this run did not get from its command line."""
    return _supplied


def noted(run: dict[str, Any]) -> None:
    """Let the record of a run say which options were not typed."""
    if _supplied:
        run["defaults"] = [one.to_dict() for one in _supplied]


def with_defaults(
    arguments: Sequence[str], command: str, function: Callable[..., Any] | None
) -> list[str]:
    """The arguments, with the options of the command that are not among them but supplied.

    function  of the command; None for one that takes no defaults

    Raises ConfigError naming the setting and where it came from.
    """
    global _supplied  # noqa: PLW0603 - a process runs one command
    _supplied = ()
    words = list(arguments)
    if function is None or {"-h", "--help"} & {*words}:
        return words
    known = _options(function)
    found = _from_file(command, known, _settings_file(words))
    found |= _from_environment(command, known)
    if command == "scan" and _typed(words, "plan"):
        # A plan says what is searched, for what and how.
        found = {name: one for name, one in found.items() if name in _BESIDE_PLAN}
    _supplied = tuple(one for name, one in found.items() if one and not _typed(words, name))
    at = words.index(command) + 1
    return [*words[:at], *(word for one in _supplied for word in one.words), *words[at:]]


def described(found: Iterable[Supplied]) -> str:
    """One line that says what was supplied by what, as it would be typed."""
    by_origin: dict[str, list[str]] = {}
    for one in found:
        by_origin.setdefault(one.origin, []).extend(one.words)
    return "; ".join(f"{origin} gives {shlex.join(words)}" for origin, words in by_origin.items())


def origin_of(message: str) -> str:
    """What supplied the option that a message is about; "" where it was typed."""
    return next(
        (one.origin for one in _supplied if f"'{one.option}'" in message or one.option in message),
        "",
    )


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    """Name of each option that takes a default, as settings are called -> its type."""
    found = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        kind, option, *_ = get_args(hint)
        # In an annotation the first name stands where the default is otherwise.
        names = (option.default, *(option.param_decls or ()))
        flags = [word for word in names if isinstance(word, str) and word.startswith("--")]
        setting = (flags[0] if flags else name).removeprefix("--").replace("-", "_")
        if setting not in TYPED:
            found[setting] = _plain(kind)
    return found


def _plain(kind: Any) -> Any:  # noqa: ANN401 - types
    """A type without the None of `X | None`."""
    return (
        next((one for one in get_args(kind) if one is not NoneType), kind)
        if (get_origin(kind) is UnionType)
        else kind
    )


def _settings_file(words: Sequence[str]) -> str | None:
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option == "--settings":
            if not equals and at + 1 == len(words):
                raise UsageError("--settings needs a value", hint=f"for example --settings {FILE}")
            return value if equals else words[at + 1]
    return None


def _from_file(
    command: str, known: Mapping[str, Any], file: str | None
) -> dict[str, Supplied | None]:
    found: dict[str, Supplied | None] = {}
    origin = file or FILE
    for name, value in read_tables(file).get(command, {}).items():
        if name in TYPED:
            raise ConfigError(
                f"{origin}: [{command}] {name} is no setting", hint=f"type {_flag(name)} instead"
            )
        if name not in known:
            raise unknown_setting(f"{origin}: [{command}] has no setting", name, known)
        found[name] = _taken(f"{origin}: [{command}] {name}", origin, name, value, known[name])
    return found


def _from_environment(command: str, known: Mapping[str, Any]) -> dict[str, Supplied | None]:
    """A list has commas between its values."""
    found: dict[str, Supplied | None] = {}
    prefix = f"{PREFIX}{command.upper()}_"
    for name, variable in _SHARED.items():
        if name in known and variable in os.environ:
            found[name] = None  # the command reads it itself, and it beats the file
    for variable, text in sorted(os.environ.items()):
        if not variable.startswith(prefix):
            continue
        name = variable.removeprefix(prefix).lower()
        if name not in known:
            raise unknown_setting(
                "the environment has no setting",
                variable,
                [prefix + one.upper() for one in known],
            )
        value: Any = text
        if get_origin(known[name]) is list:
            value = [one for one in text.split(",") if one]
        elif known[name] is bool and text.lower() in (*_YES, *_NO):
            value = text.lower() in _YES
        elif known[name] in {int, float}:
            value = _number(text)
        found[name] = _taken(variable, variable, name, value, known[name])
    return found


def _number(text: str) -> Any:  # noqa: ANN401 - what it is not is refused by its type
    try:
        return float(text) if set(text) & set(".eE") else int(text)
    except ValueError:
        return text


def _taken(where: str, origin: str, name: str, value: object, kind: Any) -> Supplied | None:  # noqa: ANN401 - a type
    """A value as words; None for a switch that is off. Raises ConfigError for another type."""
    if kind is bool:
        if not isinstance(value, bool):
            raise _wrong(where, "true or false")
        return Supplied(origin, _flag(name), ()) if value else None
    if get_origin(kind) is list:
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise _wrong(where, "a list of texts")
        return Supplied(origin, _flag(name), tuple(values)) if values else None
    if kind is int and (isinstance(value, bool) or not isinstance(value, int)):
        raise _wrong(where, "a whole number")
    if kind is float and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _wrong(where, "a number")
    if kind not in {int, float} and not isinstance(value, str):
        raise _wrong(where, "a text")
    return Supplied(origin, _flag(name), (str(value),))


def _wrong(where: str, what: str) -> ConfigError:
    return ConfigError(f"{where}: should be {what}", hint="see docs/reference.md, Settings")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _typed(words: Sequence[str], name: str) -> bool:
    typed = words[: words.index("--")] if "--" in words else words
    return any(word.partition("=")[0] == _flag(name) for word in typed)
