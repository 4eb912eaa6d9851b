"""Override single keys of AUDIT.toml: `--set 'logs.allow_partial = true'`."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ConfigError, Plain, Remedy

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    Table = dict[str, Any]

_ENTRIES: Final = {"corpus": "corpora", "benchmark": "benchmarks"}


def overridden(values: Table, changes: Sequence[str], known: Mapping[str, Container[str]]) -> Table:
    """Fields of a spec with single keys of the file's tables replaced.

    values   as `contam.audit.spec` flattens the file
    changes  each a line of TOML; a key of corpus or benchmark is for all of them, with a corpus's
             name or a benchmark's path or name before it for that one
    known    the keys of "corpus" and "benchmark"

    Raises ConfigError for a line that is no TOML or names what is not there.
    """
    found = {**values, "logs": dict(values.get("logs", {})), "models": dict(values["models"])}
    for name in _ENTRIES.values():
        found[name] = [dict(entry) for entry in values[name]]
    for line in changes:
        for table, keys in _read(line).items():
            _change(found, table, keys, (line, known))
    return found


def _read(line: str) -> Table:
    try:
        tree = tomllib.loads(line)
    except ValueError as error:
        raise ConfigError(
            "--set {}: not TOML: {}", line, Plain(error), remedy=Remedy.SET_TABLE_AND_KEY
        ) from error
    if not tree or not all(isinstance(keys, dict) for keys in tree.values()):
        raise ConfigError("--set {}: names no table and key", line, remedy=Remedy.SET_TABLE_AND_KEY)
    return tree


def _change(
    found: Table, table: str, keys: Table, origin: tuple[str, Mapping[str, Container[str]]]
) -> None:
    line, known = origin
    if table == "audit":
        if clash := set(keys) & {"corpora", "benchmarks", "logs", "models"}:
            raise ConfigError(
                "--set {}: [audit] has no key {}", line, min(clash), remedy=Remedy.SET_TABLE_AND_KEY
            )
        found.update(keys)
    elif table == "logs":
        found["logs"].update(keys)
    elif table == "model":
        for model, stated in keys.items():
            if not isinstance(stated, dict):
                raise ConfigError(
                    "--set {}: names no model and key", line, remedy=Remedy.SET_TABLE_AND_KEY
                )
            found["models"][model] = {**found["models"].get(model, {}), **stated}
    elif table in _ENTRIES:
        entries = found[_ENTRIES[table]]
        for key, value in keys.items():
            for_all = key in known[table]
            chosen = entries if for_all else _named(entries, key, line)
            change = {key: value} if for_all else value
            if not isinstance(change, dict):
                raise ConfigError(
                    "--set {}: names no key of {} {}",
                    line,
                    table,
                    key,
                    remedy=Remedy.SET_TABLE_AND_KEY,
                )
            for entry in chosen:
                entry.update(change)
    else:
        raise ConfigError(
            "--set {}: there is no table {}", line, table, remedy=Remedy.SET_TABLE_AND_KEY
        )


def _named(entries: Sequence[Table], name: str, line: str) -> list[Table]:
    chosen = [
        entry for entry in entries if name == entry.get("name") or name in entry.get("paths", ())
    ]
    if not chosen:
        raise ConfigError(
            "--set {}: nothing here is called {}", line, name, remedy=Remedy.SET_TABLE_AND_KEY
        )
    return chosen
