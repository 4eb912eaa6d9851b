"""`contam keys`: make, list and revoke the keys of a service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options, render
from contam.cli.terminal import emit, talk, visible
from contam.config import PREFIX, Settings, read_tables

if TYPE_CHECKING:
    from contam.server.auth import Key, KeyStore

app = typer.Typer(
    name="keys", help="Make, list and revoke the keys of a service.", rich_markup_mode=None
)
app.callback(invoke_without_command=True)(options.help_without_command)

_Data = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        envvar=f"{PREFIX}DATA",
        show_envvar=False,
        help="The service's data folder. [default: as for `contam serve`]",
    ),
]


@app.command("add", short_help="Make a key and print it, once.")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Owner or purpose of the key.")],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE,...",
            help="What it allows: check, jobs, read-documents, or admin, which allows all. "
            "[default: check]",
        ),
    ] = None,
    data: _Data = None,
    as_json: options.Json = False,
) -> None:
    """Make a key and print it once: only its digest is stored. A running service accepts it.

    Examples:
        contam keys add anna
        contam keys add ci --scope check
    """
    scopes = [word for given in scope or ["check"] for word in given.split(",")]
    key, secret = _store(data).add(name, scopes)
    if as_json:
        render.emit_json({**_tree(key), "key": secret})
    else:
        talk(f"key {key.id} for {visible(name)}, shown this once:")
        emit(secret + "\n")


@app.command("list", short_help="List the keys, revoked ones too.")
def list_keys(
    *,
    data: _Data = None,
    as_json: options.Json = False,
) -> None:
    """List the keys, revoked ones too: what they allow, and when they were made.

    Examples:
        contam keys list
        contam keys list --data /srv/contam
    """
    keys = list(_store(data).all().values())
    if as_json:
        render.emit_json([_tree(key) for key in keys])
        return
    table = render.new_table("id", "name", "scopes", "made", "revoked")
    for key in keys:
        row = _tree(key)
        times = [row[field] or "-" for field in ("created", "revoked")]
        table.add_row(key.id, visible(key.name), ", ".join(row["scopes"]), *times)
    render.emit_renderable(table)


@app.command("revoke", short_help="Revoke keys for good.")
def revoke(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Key ids, as listed.")],
    *,
    data: _Data = None,
    as_json: options.Json = False,
) -> None:
    """Revoke keys for good. A running service refuses them from the next request on.

    Examples:
        contam keys revoke 3f9c2a
        contam keys revoke 3f9c2a --data /srv/contam
    """
    store = _store(data)
    revoked = [store.revoke(key_id) for key_id in ids]
    if as_json:
        render.emit_json([_tree(key) for key in revoked])
    else:
        for key in revoked:
            talk(f"revoked {key.id} ({visible(key.name)})")


def _store(data: str | None) -> KeyStore:
    from contam.server.auth import KeyStore

    return KeyStore(data or str(read_tables().get("serve", {}).get("data", Settings().data)))


def _tree(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created": _time(key.created),
        "revoked": _time(key.revoked),
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
