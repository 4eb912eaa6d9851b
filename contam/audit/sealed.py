"""A pack that somebody is about to rely on: every file as it was published, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import read_facts
from contam.audit.manifest import MANIFEST, read_sealed
from contam.audit.verify import verify_pack
from contam.errors import OutputError, UsageError
from contam.remedies import Remedy

if TYPE_CHECKING:
    from pathlib import Path

    from contam.audit.facts import Facts

REPORT: Final = "report.json"


def refuse_inside(path: Path, folder: Path) -> None:
    """Raise UsageError for a file to be written that lies in the folder of a pack or a result."""
    if path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{path} lies in {folder}, which must stay as it was published",
            remedy=Remedy.CHOOSE_PLACE_OUTSIDE,
        )


def checked_pack(folder: Path, digest: str | None = None) -> dict[str, Any]:
    """The manifest of a pack whose files are all as published; the source rows are not read.

    digest  the one that was signed off, which the pack must have

    Raises OutputError naming what is missing, new or altered.
    """
    found = verify_pack(folder, digest=digest, sample=0)
    if not found.holds:
        more = len(found.problems) - 1
        raise OutputError(
            f"{folder} does not hold: {found.problems[0]}" + (f", and {more} more" if more else ""),
            remedy=Remedy.TAKE_PUBLISHED_PACK,
        )
    return read_sealed(folder / MANIFEST)


def checked_facts(folder: Path, digest: str | None = None) -> tuple[Facts, dict[str, Any]]:
    """The report of a pack that holds, and its manifest. Raises OutputError."""
    manifest = checked_pack(folder, digest)
    return read_facts(folder / REPORT), manifest
