"""Define every setting of the service once, and read the file that holds them."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from contam.errors import ConfigError

PREFIX: Final = "CONTAM_"
"""What the environment's names of settings begin with."""

FILE: Final = "contam.toml"
"""The settings file that is read from the current folder when none is named."""

MIB: Final = 1 << 20

# Beyond these, clocks and operating systems cannot count.
_MOST: Final = 1 << 53
_MOST_S: Final = 1e9

Count = Annotated[int, Ge(1), Le(_MOST)]
Whole = Annotated[int, Ge(0), Le(_MOST)]
Seconds = Annotated[float, Ge(0.001), Le(_MOST_S)]
Port = Annotated[int, Ge(0), Le(65_535)]
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator can choose about the service, and what it is for."""

    index: Annotated[Names, "Index folders or names, each answering under its name."] = ()
    home: Annotated[str | None, "Folder in which bare names of indexes are looked up."] = None
    corpus: Annotated[Names, "Where the shards are now, if they were moved."] = ()
    host: Annotated[str, "Address to listen on; others than loopback need keys."] = "127.0.0.1"
    port: Annotated[Port, "Port to listen on; 0 takes a free one."] = 8000
    data: Annotated[str, "Folder of the service's own files: keys, jobs, uploads."] = "contam-data"
    cache_bytes: Annotated[
        Whole,
        "Blocks of indexes in stores kept on disk. 0: half of what is free, up to 16 GiB.",
    ] = 0
    text_bytes: Annotated[
        Whole,
        (
            "Text of a corpus kept in memory, for each index. 0: an eighth of the memory, shared by"
            " the indexes, and for each at least 256 MiB and at most 2 GiB."
        ),
    ] = 0
    reload_index: Annotated[
        float,
        Ge(0),
        Le(_MOST_S),
        "Seconds between looks for a new state of an index; 0: only when asked.",
    ] = 0.0
    deadline_s: Annotated[Seconds, "Seconds until a check answers `not_checkable`."] = 10.0
    drain_s: Annotated[Seconds, "Seconds that running requests get after SIGTERM."] = 30.0
    max_items: Annotated[Count, "Items in one check."] = 256
    max_characters: Annotated[Count, "Characters of one item, all parts together."] = 200_000
    max_body_bytes: Annotated[Count, "Bytes of a request body."] = 8 * MIB
    max_upload_bytes: Annotated[
        Count, "Bytes of a job's upload; it may unpack to four times that."
    ] = 1024 * MIB
    max_job_items: Annotated[Count, "Items of one job."] = 1_000_000
    max_checks: Annotated[Count, "Checks worked on at once; more wait."] = 2
    max_waiting: Annotated[Whole, "Checks that wait; more get 503."] = 64
    job_workers: Annotated[Whole, "Jobs worked on at once."] = 1
    job_threads: Annotated[Whole, "Threads of one job; 0 takes all cores."] = 0
    max_job_s: Annotated[Seconds, "Seconds that one attempt at a job may take."] = 6 * 3600.0
    max_job_memory_bytes: Annotated[Count, "Memory that one job may take."] = 16_384 * MIB
    retention_s: Annotated[Seconds, "Seconds that a finished job is kept."] = 7 * 86_400.0
    max_connections: Annotated[Count, "Connections at once; more get 503."] = 256
    log_level: Annotated[str, "Lowest log level: debug, info, warning or error."] = "info"
    admin_key: Annotated[
        str | None,
        "A key with every scope, of 32 characters or more; it needs no store. It has no flag.",
    ] = None


def secret(variable: str) -> str | None:
    """What a variable holds, or else the file that VARIABLE_FILE names; None for neither.

    Raises ConfigError for a file that cannot be read.
    """
    path = os.environ.get(f"{variable}_FILE")
    if (value := os.environ.get(variable)) or not path:
        return value or None
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the secret in {path}: {error}") from error


def read_settings(file: str | Path | None = None) -> dict[str, Any]:
    """The table [serve] of a settings file; without `file`, of `contam.toml` here, if it is there.

    Raises ConfigError for a file that cannot be read, and for what is no setting.
    """
    path = Path(file or FILE)
    if file is None and not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot read {path}: {error}", hint="`contam serve --help` lists the settings"
        ) from error
    if wrong := [name for name, table in tables.items() if (name, type(table)) != ("serve", dict)]:
        raise ConfigError(
            f"{path}: there can be no {wrong[0]!r}", hint="all settings stand below [serve]"
        )
    found: dict[str, Any] = tables.get("serve", {})
    known = {field.name for field in fields(Settings)} - {"admin_key"}
    for name in found:
        if name not in known:
            close = get_close_matches(name, sorted(known), n=1)
            raise ConfigError(
                f"{path}: there is no setting {name!r}",
                hint=f"did you mean {close[0]}?" if close else "`contam serve --help` lists them",
            )
    return found
