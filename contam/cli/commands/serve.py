"""`contam serve`: the HTTP service over one or more indexes."""

from __future__ import annotations

import inspect
from dataclasses import Field, fields
from typing import Annotated, Any, Final, get_args, get_type_hints

import typer
from annotated_types import Ge, Le

from contam.cli import options
from contam.cli.terminal import talk
from contam.config import PREFIX, Names, Settings, secret
from contam.errors import UsageError

_NO_FLAG: Final = "admin_key"
_METAVARS: Final = {Names: "NAME...", int: "N", float: "SECONDS"}
_HINTS: Final = get_type_hints(Settings, include_extras=True)


def serve(**given: Any) -> int:  # noqa: ANN401 - one for every setting, each of its own type
    """Serve checks over HTTP. Flags override CONTAM_*, which override the settings file.

    Examples:
        contam serve --index web
        contam serve --index web code --port 8080 --data /srv/contam
    """
    del given["settings"]
    for name, value in given.items():
        limit = _about(name, Le)
        if limit is not None and not value <= limit.le:
            raise UsageError(f"{_flag(name)} {value} is too much (limit {limit.le:g})")
        if _kind(name) == Names:
            given[name] = tuple(value or ())
    settings = Settings(**given, admin_key=secret(PREFIX + _NO_FLAG.upper()))
    # Imported once the settings are right: this loads the web framework.
    from contam.server.run import run

    run(settings, announce=lambda url: talk(f"listening on {url}"))
    return 0


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _kind(name: str) -> Any:  # noqa: ANN401 - a type
    return get_args(_HINTS[name])[0]


def _about(name: str, kind: type) -> Any:  # noqa: ANN401 - a `kind`
    """What is said of a setting: its limits, what it is for."""
    return next((each for each in get_args(_HINTS[name])[1:] if isinstance(each, kind)), None)


def _parameter(setting: Field[Any]) -> inspect.Parameter:
    name, flag, kind = setting.name, _flag(setting.name), _kind(setting.name)
    least = _about(name, Ge)
    option = typer.Option(
        flag,
        help=_about(name, str),
        min=None if least is None else least.ge,
        metavar=_METAVARS.get(kind),
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if kind == Names else setting.default,
        annotation=Annotated[list[str] | None if kind == Names else kind, option],
    )


def _signature() -> inspect.Signature:
    """A flag for every setting that is no secret."""
    found = [_parameter(setting) for setting in fields(Settings) if setting.name != _NO_FLAG]
    file = inspect.Parameter(
        "settings", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=options.Settings
    )
    return inspect.Signature([*found, file], return_annotation=int)


serve.__signature__ = _signature()  # type: ignore[attr-defined]  # what typer reads its options from
serve.__annotations__ = {
    name: parameter.annotation
    for name, parameter in serve.__signature__.parameters.items()  # type: ignore[attr-defined]  # set above
}
