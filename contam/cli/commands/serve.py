"""`contam serve` and `contam keys`: the HTTP service over indexes, and the keys it takes."""

from __future__ import annotations

import inspect
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_type_hints

import typer
from annotated_types import Ge, Le

from contam.cli import options, render
from contam.cli.options import argument, option
from contam.cli.terminal import emit, talk, visible
from contam.config import PREFIX, Names, Settings, read_settings, secret
from contam.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from contam.server.auth import KeyStore

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
    from contam.server.app import run

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
    setting_option = typer.Option(
        flag,
        help=_about(name, str),
        min=None if least is None else least.ge,
        metavar=_METAVARS.get(kind),
        envvar=PREFIX + name.upper(),
        show_envvar=False,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if kind == Names else setting.default,
        annotation=Annotated[list[str] | None if kind == Names else kind, setting_option],
    )


def _read(context: typer.Context, file: str | None) -> str | None:
    """Let a settings file give what is not typed."""
    context.default_map = {name: _words(name, value) for name, value in read_settings(file).items()}
    return file


def _words(name: str, value: object) -> str | list[str]:
    """A value of the file as it would be typed, so that it is checked as such."""
    is_list = isinstance(value, list)
    if isinstance(value, dict) or (is_list and _kind(name) != Names):
        raise ConfigError(f"[serve] {name} must be one value")
    if _kind(name) != Names:
        return str(value)
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


_FILE: Any = option(
    "PATH",
    "File with settings, below [serve]. [default: contam.toml if it exists]",
    is_eager=True,
    callback=_read,
)


def _signature() -> inspect.Signature:
    """A flag for every setting that is no secret."""
    found = [_parameter(setting) for setting in fields(Settings) if setting.name != _NO_FLAG]
    file = inspect.Parameter(
        "settings", inspect.Parameter.KEYWORD_ONLY, default=_FILE, annotation=str | None
    )
    return inspect.Signature([*found, file], return_annotation=int)


serve.__signature__ = _signature()  # type: ignore[attr-defined]  # what typer reads its options from
serve.__annotations__ = {
    name: parameter.annotation
    for name, parameter in serve.__signature__.parameters.items()  # type: ignore[attr-defined]  # set above
}


keys = options.group("keys", "Make, list and revoke the keys of a service.")

_DATA: Any = option(
    "DIR",
    "The service's data folder. [default: as for `contam serve`]",
    envvar=f"{PREFIX}DATA",
    show_envvar=False,
)


@keys.command("add", short_help="Make a key and print it, once.")
def add(
    name: str = argument("NAME", "Owner or purpose of the key."),
    *,
    scope: list[str] | None = option(
        "SCOPE,...",
        "What it allows: check, jobs, read-documents, or admin, which allows all. [default: check]",
    ),
    data: str | None = _DATA,
    as_json: bool = options.JSON,
) -> None:
    """Make a key and print it once: only its digest is stored. A running service accepts it.

    Examples:
        contam keys add anna
        contam keys add ci --scope check
    """
    scopes = [word for given in scope or ["check"] for word in given.split(",")]
    key, secret = _store(data).add(name, scopes)
    if as_json:
        render.emit_json({**key.to_dict(), "key": secret})
    else:
        talk(f"key {key.id} for {visible(name)}, shown this once:")
        emit(secret + "\n")


@keys.command("list", short_help="List the keys, revoked ones too.")
def list_keys(
    *,
    data: str | None = _DATA,
    as_json: bool = options.JSON,
) -> None:
    """List the keys, revoked ones too: what they allow, and when they were made.

    Examples:
        contam keys list
        contam keys list --data /srv/contam
    """
    known = list(_store(data).all().values())
    if as_json:
        render.emit_json([key.to_dict() for key in known])
        return
    table = render.new_table("id", "name", "scopes", "made", "revoked")
    for key in known:
        row = key.to_dict()
        times = [row[field] or "-" for field in ("created", "revoked")]
        table.add_row(key.id, visible(key.name), ", ".join(row["scopes"]), *times)
    render.emit_renderable(table)


@keys.command("revoke", short_help="Revoke keys for good.")
def revoke(
    ids: list[str] = argument("ID...", "Key ids, as listed."),
    *,
    data: str | None = _DATA,
    as_json: bool = options.JSON,
) -> None:
    """Revoke keys for good. A running service refuses them from the next request on.

    Examples:
        contam keys revoke 3f9c2a
        contam keys revoke 3f9c2a --data /srv/contam
    """
    store = _store(data)
    revoked = [store.revoke(key_id) for key_id in ids]
    if as_json:
        render.emit_json([key.to_dict() for key in revoked])
    else:
        for key in revoked:
            talk(f"revoked {key.id} ({visible(key.name)})")


def _store(data: str | None) -> KeyStore:
    from contam.server.auth import KeyStore

    return KeyStore(data or str(read_settings().get("data", Settings().data)))
