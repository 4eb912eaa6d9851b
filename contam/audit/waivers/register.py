"""Read the file of waivers: false alarms and accepted leaks, with a reason and an end date.

A waiver hides nothing. It names one item, says why its flag need not stop a release, who says so
and until when, and holds a digest of what that person looked at: when the item, its verdicts or its
evidence are others, the waiver is refused.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from contam.audit.toml import describe_mistake, first_wrong, parse_toml, read_toml
from contam.audit.waivers.reviewed import Reviewed
from contam.errors import ConfigError, Place, Public, Remedy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.audit.waivers.reviewed import Flagged
    from contam.detect.report import Report

Kind = Literal["false_positive", "accepted"]
FALSE_POSITIVE: Final = "false_positive"
KEYS: Final = (
    *("benchmark", "split", "item", "policy", "document"),
    *("kind", "reason", "reviewer", "expires", "evidence"),
)
_MOST_NAMED: Final = 5

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One entry of the file.

    policy    the one whose flag is waived; None is every policy that flags the item
    document  the one document that is waived; None is all the evidence there is
    kind      "false_positive": the item does not stand there; "accepted": it does, and may
    expires   the last day on which the waiver holds
    evidence  digest of the item, its verdicts and its evidence, as they were reviewed
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benchmark: str
    item: str
    kind: Kind
    reason: str
    reviewer: str
    expires: dt.date
    evidence: str
    split: str | None = None
    policy: str | None = None
    document: str | None = None

    @property
    def named(self) -> str:
        """The waiver in a message."""
        more = [f"by {self.policy}"] if self.policy else []
        more += [f"in {self.document}"] if self.document else []
        return " ".join([f"{self.benchmark}/{self.item}", *more])


@dataclass(frozen=True, slots=True)
class Waived:
    """What the waivers of an audit come to.

    rows  every waiver as the report shows it;  kinds  (benchmark, split, item, policy) -> kind
    """

    rows: tuple[dict[str, Any], ...] = ()
    kinds: Mapping[Key, str] = field(default_factory=dict)

    def count(self, flagged: Sequence[Key]) -> tuple[int, int]:
        """How many of these flags are waived, and how many of them as accepted leaks."""
        found = [kind for key in flagged if (kind := self.kinds.get(key))]
        return len(found), sum(kind != FALSE_POSITIVE for kind in found)


def load_waivers(path: str | Path, today: dt.date) -> tuple[Waiver, ...]:
    """Read a file of waivers that all hold on this day.

    Raises ConfigError naming the file and the key, or every waiver that has expired.
    """
    waivers = read_waivers(Path(path))
    expired = [f"{waiver.named} ({waiver.expires})" for waiver in waivers if waiver.expires < today]
    if expired:
        raise ConfigError(
            "{}: {} expired by {}: {}",
            path,
            len(expired),
            Public(today),
            _several(expired),
            remedy=Remedy.REVIEW_AND_WAIVE_AGAIN,
        )
    return waivers


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a file of waivers, whenever they expire. Raises ConfigError naming file and key."""
    return _waivers(read_toml(path, remedy=Remedy.WRITE_BY_AUDIT_WAIVE), str(path))


def parse_waivers(text: str, origin: str) -> tuple[Waiver, ...]:
    """The waivers of a file's text; each item, policy and document once. Raises ConfigError."""
    return _waivers(parse_toml(text, origin), origin)


def _waivers(tree: Mapping[str, Any], origin: str) -> tuple[Waiver, ...]:
    from pydantic import TypeAdapter, ValidationError

    if unknown := set(tree) - {"waiver"}:
        raise ConfigError(
            "{}: there is no {}", Place(origin), min(unknown), remedy=Remedy.WRITE_WAIVER_TABLE
        )
    try:
        waivers = TypeAdapter(tuple[Waiver, ...]).validate_python(tree.get("waiver", []))
    except ValidationError as error:
        first = first_wrong(error)
        place = ".".join(map(str, first["loc"]))
        reasons = describe_mistake(first)
        raise ConfigError(
            "{}: waiver {}: {}",
            Place(origin),
            place,
            reasons,
            remedy=Remedy.USE_KEYS_OF_WAIVER(known=Public(", ".join(KEYS))),
        ) from error
    seen = set()
    for waiver in waivers:
        if not waiver.reason.strip() or not waiver.reviewer.strip():
            raise ConfigError("{}: {} has no reason or no reviewer", Place(origin), waiver.named)
        key = (waiver.benchmark, waiver.split, waiver.item, waiver.policy, waiver.document)
        if key in seen:
            raise ConfigError(
                "{}: {} is waived twice", Place(origin), waiver.named, remedy=Remedy.KEEP_ONE_WAIVER
            )
        seen.add(key)
    return waivers


def apply_waivers(waivers: Sequence[Waiver], report: Report, corpora: Sequence[str]) -> Waived:
    """Find the flags that the waivers explain; labels stay what they are.

    report  the verdicts that count;  corpora  names of the audit's corpora

    Raises ConfigError naming every waiver whose item is not flagged, or whose evidence is not what
    was reviewed.
    """
    if not waivers:
        return Waived()
    reviewed = Reviewed(report, corpora)
    problems = []
    rows = []
    kinds: dict[Key, str] = {}
    parts: defaultdict[Key, dict[str, str]] = defaultdict(dict)
    for waiver in waivers:
        found = _found(waiver, reviewed)
        if isinstance(found, str):
            problems.append(f"{waiver.named}: {found}")
            continue
        for policy in found.policies:
            key = (*found.item, policy)
            if waiver.document is None:
                kinds[key] = _worse(waiver.kind, kinds.get(key))
            else:
                parts[key][waiver.document] = waiver.kind
        rows.append(_row(waiver, found))
    if problems:
        raise ConfigError(
            "waivers refused: {}",
            _several(problems),
            remedy=Remedy.RUN_AUDIT_WITHOUT_WAIVERS,
        )
    for key, documents in parts.items():
        # Evidence is kept of a few documents only: what nobody saw is not waived.
        if reviewed.explained(key, documents):
            for kind in documents.values():
                kinds[key] = _worse(kind, kinds.get(key))
    for row in rows:
        item = (row["benchmark"], row["split"], row["item"])
        row["waives"] = all((*item, policy) in kinds for policy in row["policies"])
    return Waived(tuple(sorted(rows, key=_order)), kinds)


def waived_items(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """(benchmark, split, item) -> what its waivers say, from the rows of a report."""
    reasons: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in rows:
        scope = [f"by {row['policy']}"] if row["policy"] else []
        scope += [f"in {row['document']}"] if row["document"] else []
        scope += [] if row["waives"] else ["not all of its evidence"]
        where = f" ({', '.join(scope)})" if scope else ""
        kind = row["kind"].replace("_", " ")
        reasons[row["benchmark"], row["split"], row["item"]].append(
            f"{kind}{where}: {row['reason']} ({row['reviewer']}, until {row['expires']})"
        )
    return {item: "; ".join(texts) for item, texts in reasons.items()}


def utc_today() -> dt.date:
    """The day it is, the same on every machine."""
    return dt.datetime.now(dt.UTC).date()


def _found(waiver: Waiver, reviewed: Reviewed) -> Flagged | str:
    """The item that is waived, or why it is not."""
    found = reviewed.find(waiver.benchmark, waiver.split, waiver.item, waiver.policy)
    if isinstance(found, str):
        return found
    if waiver.document is not None and waiver.document not in found.documents:
        return "that document is no evidence of the item"
    if found.digest(waiver.document) != waiver.evidence:
        return "its evidence is not what was reviewed"
    return found


def _row(waiver: Waiver, found: Flagged) -> dict[str, Any]:
    """A waiver as reports show it; `waives` says whether its flags are explained in full."""
    return {
        "benchmark": found.item[0],
        "split": found.item[1],
        "item": found.item[2],
        "policy": waiver.policy,
        "document": waiver.document,
        "kind": waiver.kind,
        "reason": waiver.reason,
        "reviewer": waiver.reviewer,
        "expires": waiver.expires.isoformat(),
        "evidence": waiver.evidence,
        "policies": list(found.policies),
        "waives": False,
    }


def _worse(kind: str, other: str | None) -> str:
    """An accepted leak outweighs a false alarm."""
    return kind if other in (None, FALSE_POSITIVE) else str(other)


def _order(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] or "" for name in ("benchmark", "split", "item", "policy", "document"))


def _several(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return "; ".join(names[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
