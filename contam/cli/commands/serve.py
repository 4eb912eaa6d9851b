"""`contam serve`: the HTTP service over one or more indexes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli.terminal import talk
from contam.config import FILE, Names, described_settings, load_settings

if TYPE_CHECKING:
    from contam.config import DescribedSetting


_FILE_HELP = f"Settings file with a table [serve]. [default: {FILE} if it exists]"


def serve(**flags: Any) -> int:  # noqa: ANN401 - one for every setting, each of its own type
    """Serve checks over HTTP. Flags override CONTAM_*, which override the settings file."""
    settings = load_settings(flags, file=flags.pop("settings"))
    # Imported once the settings are right: this loads the web framework.
    from contam.server.run import run

    run(settings, announce=lambda url: talk(f"listening on {url}"))
    return 0


def _parameter(setting: DescribedSetting) -> inspect.Parameter:
    kind: Any = list[str] if setting.kind == Names else setting.kind
    default = setting.default
    shown = "" if default in {None, ()} or setting.kind is bool else f" [default: {default}]"
    names = [f"{setting.flag}/--no-{setting.flag[2:]}"] if setting.kind is bool else [setting.flag]
    if setting.kind is bool:
        shown = f" [default: {'on' if default else 'off'}]"
    text = f"{setting.help}{shown}"
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            kind | None,
            typer.Option(
                *names,
                help=text,
                show_default=False,
                metavar="NAME..." if setting.kind == Names else None,
            ),
        ],
    )


def _signature() -> inspect.Signature:
    """A flag for every setting that is no secret."""
    found = [_parameter(setting) for setting in described_settings() if not setting.secret]
    file = Annotated[str | None, typer.Option("--settings", metavar="PATH", help=_FILE_HELP)]
    kinds = {"settings": (file, None)}
    found += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in kinds.items()
    ]
    return inspect.Signature(found, return_annotation=int)


serve.__signature__ = _signature()  # type: ignore[attr-defined]  # what typer reads its options from
serve.__annotations__ = {
    name: parameter.annotation
    for name, parameter in serve.__signature__.parameters.items()  # type: ignore[attr-defined]  # set above
}
