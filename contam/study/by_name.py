"""Run a study by its name with plain options, as AUDIT.toml has them."""

from __future__ import annotations

import datetime as dt
import inspect
from dataclasses import asdict, fields
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.errors import ConfigError, Place, Public, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from contam.study.model import Study

RELEASED: Final = "released"
"""In the place of a table of dates: the months in which the benchmarks of the logs came out."""


class Kind(NamedTuple):
    """A study that can be run by name.

    module, function  where it is;  settings  the class of its settings there, "" for none
    paths     options that are a path, a list of paths, or a table of name = path
    values    option -> types of what its lists and tables hold, where these are no texts
    """

    module: str
    function: str
    paths: tuple[str, ...]
    settings: str = ""
    values: Mapping[str, tuple[type, ...]] = MappingProxyType({})

    def named(self, name: str) -> Any:  # noqa: ANN401 - a function or a class
        """What its module has under a name."""
        return getattr(import_module(f"contam.study.{self.module}"), name)

    def defaults(self) -> dict[str, Any]:
        """Argument of the function or field of the settings -> its default."""
        arguments = inspect.signature(self.named(self.function)).parameters
        found = {key: argument.default for key, argument in arguments.items() if key != "settings"}
        if self.settings:
            found |= asdict(self.named(self.settings)())
        return found


_NUMBERS: Final = dict.fromkeys(("chance", "knots"), (int, float))
KINDS: Final[Mapping[str, Kind]] = {
    "fresh": Kind("fresh_sets", "fresh", ("original", "fresh", "easier"), "FreshSettings"),
    "preparation": Kind("preparing", "preparation", ("scores",), "PreparationSettings", _NUMBERS),
    "board": Kind("boards", "board", ("scores", "clean")),
    "time": Kind("dates", "time", ("logs", "dates"), "TimeSettings", {"cutoffs": (str, dt.date)}),
}


def paths_of(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    """The paths among the options of a study."""
    for key in KINDS[name].paths:
        yield from (path for path in _texts(options.get(key, ())) if isinstance(path, str))


def with_paths(
    name: str, options: Mapping[str, Any], change: Callable[[str], str]
) -> dict[str, Any]:
    """The options with every path changed."""
    kind = KINDS[name]
    return {
        key: _changed(value, change) if key in kind.paths else value
        for key, value in options.items()
    }


def checked(name: str, options: Mapping[str, Any], origin: str) -> None:
    """Raise ConfigError for a study or an option that there is not, or of the wrong type."""
    if name not in KINDS:
        hint = Statement("known: {}", Public(", ".join(KINDS)))
        raise ConfigError("{}: there is no study {!r}", Place(origin), name, hint=hint)
    where, see = (Place(origin), Public(name)), "docs/guides/audit.md names every key"
    if not isinstance(options, dict):
        raise ConfigError("{}: write [study.{}], and a key on each line", *where, hint=see)
    defaults = KINDS[name].defaults()
    known = {key: default for key, default in defaults.items() if key not in _OF_AUDIT}
    if "verdicts" in defaults:
        known[BY_VERDICTS] = False
    for key, default in known.items():
        if default is inspect.Parameter.empty and key not in options:
            raise ConfigError("{}: [study.{}] needs the key {}", *where, Public(key), hint=see)
    for key, value in options.items():
        if key not in known:
            hint = Statement("known: {}", Public(", ".join(sorted(known))))
            raise ConfigError("{}: [study.{}] has no key {!r}", *where, key, hint=hint)
        if not _fits(KINDS[name], key, value, known[key]):
            said = "{}: [study.{}]: {} cannot be {!r}"
            raise ConfigError(said, *where, Public(key), value, hint=see)


def run_options(name: str, options: Mapping[str, Any]) -> Study:
    """Run a study with plain options: arguments of its function and fields of its settings."""
    kind, given = KINDS[name], dict(options)
    if kind.settings:
        settings = kind.named(kind.settings)
        own = {one.name for one in fields(settings)} & set(given)
        given["settings"] = settings(**{key: given.pop(key) for key in own})
    study: Study = kind.named(kind.function)(**given)
    return study


def run_named(
    name: str,
    options: Mapping[str, Any],
    *,
    verdicts: Path,
    policy: str,
    rescored: Path | None,
    seed: int,
    least: int,
) -> Study:
    """Run a study of an audit.

    options   as `checked` has them; `by_verdicts = true` splits items by the verdicts
    verdicts  folder of a scan, and the policy whose labels count where the options name none
    rescored  folder of a re-scoring, for a study of boards that is given no scores
    seed, least  where the options name none
    """
    known, given = KINDS[name].defaults(), dict(options)
    of_all: dict[str, Any] = {"seed": seed, "least": least}
    if given.pop(BY_VERDICTS, False):
        of_all |= {"verdicts": verdicts, "policy": policy}
    if "rescored" in known and "scores" not in given and rescored is not None:
        of_all |= {"rescored": rescored, "policy": policy}
    return run_options(name, {key: of_all[key] for key in of_all if key in known} | given)


BY_VERDICTS: Final = "by_verdicts"
_OF_AUDIT: Final = frozenset({"verdicts", "rescored"})

#: Types of a value by the type of its default; else it is a list or a table.
_TYPES: Final = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}


def _fits(kind: Kind, key: str, value: object, default: object) -> bool:
    plain, path = type(default) in _TYPES, key in kind.paths
    if isinstance(value, list | dict):
        wanted, values = kind.values.get(key, (str,)), [*_texts(value)]
        several = path or key in kind.values or not plain
        return several and bool(values) and all(type(one) in wanted for one in values)
    return type(value) is str if path else type(value) in _TYPES.get(type(default), ())


def _texts(value: Any) -> Iterator[object]:  # noqa: ANN401 - whatever the file says
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def _changed(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - whatever the file says
    if isinstance(value, dict):
        return {key: _changed(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(one, change) for one in value]
    return change(value) if isinstance(value, str) else value
