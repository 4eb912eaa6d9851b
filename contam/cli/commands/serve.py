"""`contam serve`: the HTTP service over one or more indexes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options
from contam.cli.terminal import talk
from contam.config import PREFIX, Names, Settings, described_settings, secret
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.config import DescribedSetting


def serve(**given: Any) -> int:  # noqa: ANN401 - one for every setting, each of its own type
    """Serve checks over HTTP. Flags override CONTAM_*, which override the settings file.

    Examples:
        contam serve --index web
        contam serve --index web code --port 8080 --data /srv/contam
    """
    del given["settings"]
    for setting in described_settings():
        value = given.get(setting.name)
        if setting.most is not None and not value <= setting.most:
            raise UsageError(f"{setting.flag} {value} is too much (limit {setting.most:g})")
    lists = {name: tuple(given[name] or ()) for name in given if _KINDS[name] == Names}
    settings = Settings(**{**given, **lists}, admin_key=secret(f"{PREFIX}ADMIN_KEY"))
    # Imported once the settings are right: this loads the web framework.
    from contam.server.run import run

    run(settings, announce=lambda url: talk(f"listening on {url}"))
    return 0


_KINDS = {setting.name: setting.kind for setting in described_settings()}
_METAVARS = {Names: "NAME...", int: "N", float: "SECONDS"}


def _parameter(setting: DescribedSetting) -> inspect.Parameter:
    is_list, is_switch = setting.kind == Names, setting.kind is bool
    option = typer.Option(
        f"{setting.flag}/--no-{setting.flag[2:]}" if is_switch else setting.flag,
        help=setting.help,
        min=setting.least,
        metavar=_METAVARS.get(setting.kind),
    )
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if is_list else setting.default,
        annotation=Annotated[list[str] | None if is_list else setting.kind, option],
    )


def _signature() -> inspect.Signature:
    """A flag for every setting that is no secret."""
    found = [_parameter(setting) for setting in described_settings() if not setting.secret]
    file = inspect.Parameter(
        "settings", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=options.Settings
    )
    return inspect.Signature([*found, file], return_annotation=int)


serve.__signature__ = _signature()  # type: ignore[attr-defined]  # what typer reads its options from
serve.__annotations__ = {
    name: parameter.annotation
    for name, parameter in serve.__signature__.parameters.items()  # type: ignore[attr-defined]  # set above
}
