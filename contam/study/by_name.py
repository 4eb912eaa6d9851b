"""Run a study by its name with plain options, as AUDIT.toml has them."""

from __future__ import annotations

import datetime as dt
import inspect
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ConfigError, Place, Public, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from contam.study.model import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A study that can be run by name.

    home      module and function;  settings  the class of its settings there, "" for none
    paths     options that are a path, a list of paths, or a table of name = path
    verdicts  whether it splits its items by verdicts;  rescored  whether it takes a re-scoring
    """

    home: tuple[str, str]
    settings: str = ""
    paths: tuple[str, ...]
    verdicts: bool = False
    rescored: bool = False


KINDS: Final[Mapping[str, Kind]] = {
    "fresh": Kind(
        home=("fresh_sets", "fresh"),
        settings="FreshSettings",
        paths=("original", "fresh", "easier"),
        verdicts=True,
    ),
    "preparation": Kind(
        home=("preparing", "preparation"), settings="PreparationSettings", paths=("scores",)
    ),
    "board": Kind(home=("boards", "board"), paths=("scores", "clean"), rescored=True),
    "time": Kind(home=("dates", "time"), paths=("logs", "dates"), verdicts=True),
    "likelihood": Kind(home=("logprobs", "likelihood"), paths=("shards", "texts", "items")),
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
        raise ConfigError(
            "{}: there is no study {!r}", Place(origin), name,
            remedy=Remedy.CHOOSE_KNOWN(known=Public(", ".join(KINDS))),
        )  # fmt: skip
    known = _defaults(KINDS[name])
    if not isinstance(options, dict):
        raise ConfigError(
            "{}: write [study.{}], and a key on each line", Place(origin), Public(name),
            remedy=Remedy.SEE_AUDIT_GUIDE,
        )  # fmt: skip
    if absent := [key for key in _required(KINDS[name]) if key not in options]:
        raise ConfigError(
            "{}: [study.{}] needs the key {}", Place(origin), Public(name), Public(absent[0]),
            remedy=Remedy.SEE_AUDIT_GUIDE,
        )  # fmt: skip
    for key, value in options.items():
        if key not in known:
            raise ConfigError(
                "{}: [study.{}] has no key {!r}", Place(origin), Public(name), key,
                remedy=Remedy.CHOOSE_KNOWN(known=Public(", ".join(sorted(known)))),
            )  # fmt: skip
        if not _fits(value, known[key], path=key in KINDS[name].paths, key=key):
            raise ConfigError(
                "{}: [study.{}]: {} cannot be {!r}", Place(origin), Public(name), Public(key),
                value, remedy=Remedy.SEE_AUDIT_GUIDE,
            )  # fmt: skip


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
    """Run a study.

    options   as `checked` has them; `by_verdicts = true` splits items by the verdicts
    verdicts  folder of a scan, and the policy whose labels count where the options name none
    rescored  folder of a re-scoring, for a study of boards that is given no scores
    seed, least  where the options name none
    """
    kind = KINDS[name]
    module = import_module(f"contam.study.{kind.home[0]}")
    given = dict(options)
    if isinstance(dates := given.get(_OF_DATES), dict):
        given[_OF_DATES] = {model: str(date) for model, date in dates.items()}
    if given.pop(BY_VERDICTS, False):
        given |= {"verdicts": verdicts, "policy": given.get("policy", policy)}
    if kind.rescored and "scores" not in given and rescored is not None:
        given |= {"rescored": rescored, "policy": given.get("policy", policy)}
    for key, value in (("seed", seed), ("least", least)):
        if key in _defaults(kind):
            given.setdefault(key, value)
    if kind.settings:
        settings = getattr(module, kind.settings)
        own = {field.name for field in fields(settings)} & set(given)
        given["settings"] = settings(**{key: _frozen(key, given.pop(key), name) for key in own})
    study: Study = getattr(module, kind.home[1])(**given)
    return study


BY_VERDICTS: Final = "by_verdicts"
_NOT_SAID: Final = frozenset({"settings", "verdicts", "rescored"})


def _defaults(kind: Kind) -> dict[str, Any]:
    """Option -> its default, for all that may be said of a study."""
    module = import_module(f"contam.study.{kind.home[0]}")
    signature = inspect.signature(getattr(module, kind.home[1]))
    found = {
        key: parameter.default
        for key, parameter in signature.parameters.items()
        if key not in _NOT_SAID
    }
    if kind.settings:
        made = getattr(module, kind.settings)()
        found |= {field.name: getattr(made, field.name) for field in fields(made)}
    return {**found, BY_VERDICTS: False} if kind.verdicts else found


def _required(kind: Kind) -> list[str]:
    """Options that have no default."""
    return [key for key, value in _defaults(kind).items() if value is inspect.Parameter.empty]


#: Types of a value where the default is of a type; else it is a list or a table, of texts mostly.
_TYPES: Final = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}
_OF_NUMBERS: Final = frozenset({"chance", "knots"})
_OF_DATES: Final = "cutoffs"


def _fits(value: object, default: object, *, path: bool, key: str) -> bool:
    if not path and type(default) in _TYPES:
        return type(value) in _TYPES[type(default)]
    several = isinstance(value, list | dict)
    wanted: tuple[type, ...] = (int, float) if key in _OF_NUMBERS else (str,)
    if key == _OF_DATES:
        wanted = (str, dt.date)
    values = [*_texts(value)]
    return (bool(values) and (several or path or key == "chance")) and all(
        type(one) in wanted for one in values
    )


def _frozen(key: str, value: Any, name: str) -> Any:  # noqa: ANN401 - whatever the file says
    """A value of TOML as a field of settings."""
    if key != "chance":
        return tuple(value) if isinstance(value, list) else value
    if name == "fresh":
        return (float(value), float(value))
    return tuple(value.items()) if isinstance(value, dict) else (("", float(value)),)


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
