"""Write a waiver for one item of a pack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contam.audit.toml import toml_text
from contam.audit.verify import checked_facts
from contam.audit.waivers.register import KEYS, parse_waivers
from contam.audit.waivers.reviewed import Reviewed
from contam.detect.report import load_report
from contam.errors import ConfigError, Plain, Public, Remedy, UsageError
from contam.files.single import write_file

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from contam.audit.waivers.register import Waiver

_HEAD: Final = "# Flags that a person has looked at. docs/guides/audit.md explains every key.\n"


def make_waiver(folder: Path, wanted: Waiver, today: dt.date) -> Waiver:
    """The waiver with its benchmark, split and digest filled in from a pack.

    wanted  benchmark and evidence may be ""

    Raises UsageError when the item is not flagged there, or the waiver would hold on no day, and
    OutputError when the pack was altered.
    """
    if wanted.expires < today:
        raise UsageError("{} is over", Public(wanted.expires), remedy=Remedy.GIVE_DAY_TO_COME)
    if not wanted.reason.strip() or not wanted.reviewer.strip():
        raise UsageError("a waiver needs a reason and a reviewer")
    facts, _ = checked_facts(folder)
    reviewed = Reviewed(
        load_report(folder / facts.verdicts), [corpus.name for corpus in facts.corpora]
    )
    found = reviewed.find(wanted.benchmark or None, wanted.split, wanted.item, wanted.policy)
    if isinstance(found, str):
        raise UsageError(
            "{} cannot be waived: {}",
            wanted.item,
            found,
            remedy=reviewed.way_out(wanted.benchmark or None, wanted.split, wanted.item)
            or Remedy.SEE_ITEMS_OF_AUDIT(verdicts=facts.verdicts),
        )
    if wanted.document is not None and wanted.document not in found.documents:
        raise UsageError(
            "{} is no evidence of {}",
            wanted.document,
            wanted.item,
            remedy=Remedy.CHOOSE_DOCUMENT(known=", ".join(found.documents[:5])),
        )
    return replace(
        wanted,
        benchmark=found.item[0],
        split=found.item[1] or None,
        evidence=found.digest(wanted.document),
    )


def entry(waiver: Waiver) -> str:
    """The waiver as the file has it."""
    lines = ["[[waiver]]"]
    for name in KEYS:
        value = getattr(waiver, name)
        if value is not None:
            lines.append(f"{name} = {toml_text(value) if isinstance(value, str) else value}")
    return "\n".join(lines) + "\n"


def append(path: Path, waiver: Waiver) -> None:
    """Put the waiver at the end of a file, which is made if need be; whole or not at all.

    Raises ConfigError when the file is not one of waivers, or holds this one.
    """
    try:
        before = path.read_text("utf-8")
    except FileNotFoundError:
        before = _HEAD
    except (OSError, ValueError) as error:
        raise ConfigError(
            "cannot read {}: {}", path, Plain(error), remedy=Remedy.MEND_FIRST
        ) from error
    text = f"{before.rstrip()}\n\n{entry(waiver)}"
    parse_waivers(text, str(path))
    write_file(path, text.encode(), overwrite=True)
