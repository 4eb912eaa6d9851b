"""Let the environment and the settings file give options of a command, and say which they gave."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, Final

from contam.cli.terminal import plain, talk
from contam.config import FILE, PREFIX, SERVE, read_tables, unknown_setting
from contam.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import typer

TYPED: Final = (
    "settings", "overwrite", "json", "quiet", "parts", "part-size", "shard", "only-parts",
    "engine", "address", "help",
)  # fmt: skip
"""Options that are given on the command line alone."""

HOME: Final = f"{PREFIX}HOME"
"""What names the folder of indexes for every command."""

_SOURCES: Final = ("ENVIRONMENT", "DEFAULT_MAP")


def settings_of(command: Any, name: str, file: str | None) -> dict[str, Any]:  # noqa: ANN401 - typer's
    """The options that a settings file gives, by parameter; variables are bound to theirs.

    file  None for `contam.toml` of the current folder, if it is there

    Raises ConfigError for a name that is no option of the command, or one that is to be typed.
    """
    known = {setting(param): param for param in command.params}
    prefix = PREFIX if name == SERVE else f"{PREFIX}{name.upper()}_"
    for variable in sorted(os.environ):
        key = variable.removeprefix(prefix).lower()
        # What is no setting of the service may be one of another command.
        if variable.startswith(prefix) and (name != SERVE or key in known):
            _known(known, key, "the environment", variable).envvar = variable
    origin = f"{file or FILE}: [{name}]"
    return {
        (param := _known(known, key, origin, key)).name: _words(param, value, f"{origin} {key}")
        for key, value in read_tables(file).get(name, {}).items()
    }


def say_supplied(context: typer.Context) -> None:
    """Tell on stderr which options of the call were not typed, as they would be typed."""
    file = context.params.get("settings") or FILE
    by_origin: dict[str, list[str]] = {}
    for param in context.command.params:
        origin = origin_of(context, param, file)
        value = context.params[param.name or ""]
        # A switch that is turned off gives nothing.
        if origin and origin != HOME and value is not False:
            flag = _flag(param)
            values = value if isinstance(value, list | tuple) else [value]
            words = [flag] if value is True else [f"{flag}={each}" for each in values]
            by_origin.setdefault(origin, []).extend(words)
    told = (f"{origin} gives {shlex.join(words)}" for origin, words in by_origin.items())
    if by_origin:
        talk(plain("; ".join(told)))


def origin_of(context: Any, param: Any, file: str) -> str:  # noqa: ANN401 - typer's
    """The variable or file that gave a parameter; "" where it was typed, or left out."""
    source = context.get_parameter_source(param.name)
    if source is None or source.name not in _SOURCES:
        return ""
    return str(param.envvar) if source.name == "ENVIRONMENT" else file


def setting(param: Any) -> str:  # noqa: ANN401 - typer's
    """What a parameter is called in a settings file."""
    return _flag(param).removeprefix("--").replace("-", "_")


def _flag(param: Any) -> str:  # noqa: ANN401 - typer's
    return str(max(param.opts, key=len))


def _known(known: Mapping[str, Any], name: str, where: str, said: str) -> Any:  # noqa: ANN401 - typer's
    if name in known and name not in TYPED:
        return known[name]
    if name in TYPED:
        flag = "--" + name.replace("_", "-")
        raise ConfigError(f"{where} {name} is no setting", hint=f"type {flag} instead")
    settings = {one for one in known if one not in TYPED}
    if said != name:
        prefix = said[: -len(name)]
        settings = {prefix + one.upper() for one in settings}
    raise unknown_setting(f"{where} has no setting", said, settings)


def _words(param: Any, value: object, where: str) -> Any:  # noqa: ANN401 - typer's
    """A value of the file as it would be typed, so that it is checked as such."""
    if isinstance(value, list) and param.multiple:
        return [_words(param, one, where)[0] for one in value]
    if isinstance(value, list | dict):
        raise ConfigError(f"{where}: should be one value", hint="see docs/reference.md, Settings")
    word = str(value).lower() if isinstance(value, bool) else str(value)
    return [word] if param.multiple else word
