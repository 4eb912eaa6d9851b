"""Write and read approvals: files beside a pack that say who approved which digest, and when."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from contam.audit.verify import checked_pack
from contam.errors import OutputError, UsageError
from contam.files.single import reading, write_file

if TYPE_CHECKING:
    from pathlib import Path

_MIDDLE: Final = ".approved-"
_END: Final = ".json"
_MOST_NAMED: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Who approved the pack of which digest, and when (UTC)."""

    pack: str
    digest: str
    name: str
    time: str


def approve(folder: Path, name: str, *, overwrite: bool = False) -> Path:
    """Write that somebody of this name approves a pack, in a file beside it; returns the file.

    Anybody can write any name there: a signature of the file proves who did.

    Raises OutputError when the pack is not as published or the file exists, UsageError for a name
    that cannot be read.
    """
    name = name.strip()
    named = "-".join("".join(c if c.isalnum() else " " for c in name).split()).lower()
    if not named or not name.isprintable():
        raise UsageError("{!r} is not a name", name, hint='--name "Anna Ruiz"')
    folder = folder.resolve()
    approval = Approval(
        pack=folder.name,
        digest=checked_pack(folder)["digest"],
        name=name,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    path = folder.with_name(f"{folder.name}{_MIDDLE}{named[:_MOST_NAMED]}{_END}")
    write_file(path, (json.dumps(asdict(approval), indent=1) + "\n").encode(), overwrite=overwrite)
    return path


def read_approvals(folder: Path) -> dict[str, Approval]:
    """The approvals beside a pack, by the names of their files.

    Raises OutputError for a file of such a name that is no approval.
    """
    folder = folder.resolve()
    begin = folder.name + _MIDDLE
    with reading(folder.parent, OutputError):
        beside = sorted(folder.parent.iterdir())
    return {
        path.name: _read(path)
        for path in beside
        if path.name.startswith(begin) and path.name.endswith(_END)
    }


def _read(path: Path) -> Approval:
    from pydantic import TypeAdapter, ValidationError

    try:
        with reading(path, OutputError):
            return TypeAdapter(Approval).validate_json(path.read_bytes())
    except ValidationError as error:
        raise OutputError(
            "{} is not an approval", path, hint="`contam audit approve` writes one; remove this"
        ) from error
