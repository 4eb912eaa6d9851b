"""Define a verdict; imports nothing heavy, so clients can use it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from contam.detect.labels import FLAGGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one policy says about one item.

    The columns of `verdicts.parquet`, of answers and of what clients read are made of these fields
    (`COLUMNS`). A field with a default is an optional column: who makes a result may leave it out.
    """

    benchmark: str
    split: str
    item_id: str
    policy: str
    label: str
    score: float | None
    exposure: str
    kind: str | None
    n_documents: int
    n_occurrences: int
    best_document_id: str | None
    best_shard: str | None
    best_row: int | None
    best_url: str | None = None
    best_date: str | None = None
    reason: str

    @property
    def flagged(self) -> bool:
        """Whether the item is called contaminated or suspect."""
        return self.label in FLAGGED

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of verdicts.

    kind      str, int or float
    nullable  whether there may be nothing in it
    optional  whether whoever makes a result may leave it out
    """

    name: str
    kind: type
    nullable: bool
    optional: bool

    def holds(self, value: object) -> bool:
        """Whether a value of JSON can stand in it; of whole numbers also as a float."""
        if value is None:
            return self.nullable
        kinds = (float, int) if self.kind is float else (self.kind,)
        return isinstance(value, kinds) and not isinstance(value, bool)


def _columns() -> tuple[Column, ...]:
    found = []
    for name, hint in get_type_hints(Verdict).items():
        kinds = get_args(hint) or (hint,)
        (kind,) = (each for each in kinds if each is not NoneType)
        default = Verdict.__dataclass_fields__[name].default
        found.append(Column(name, kind, NoneType in kinds, default is not MISSING))
    return tuple(found)


COLUMNS: Final = _columns()
