"""Tell how the files of a benchmark were read: what is part of its items, and what is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.benchmark import mapping as usual
from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import PARTS
from contam.files.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.benchmark.items import BenchItem, Benchmark, SkippedRow, SourceFile

_USUAL: Final = {
    "question": frozenset(usual.QUESTION),
    "passage": frozenset(usual.PASSAGE),
}


class Reading(NamedTuple):
    """How the files of one benchmark were read together.

    fields      part -> the fields it was taken from
    unread      field -> share of the text of a file that stands there and is no part of an item,
                the largest of any file, the largest first
    left_out    fields that were left out on purpose
    incomplete  why items are never called clean -> how many
    is_usual    whether question and passage stand in one field each, of a usual name
    entries     entries of the catalogue by whose fields files on this machine were read
    """

    fields: dict[str, list[str]]
    unread: dict[str, float]
    left_out: list[str]
    incomplete: dict[str, int]
    is_usual: bool
    entries: list[str]

    def to_dict(self) -> dict[str, Any]:
        """What answers and --json say of it."""
        return {
            name: getattr(self, name)
            for name in ("fields", "unread", "left_out", "incomplete", "entries")
        }


def how_read(record: Mapping[str, Any]) -> Reading:
    """How a benchmark was read; record  as `about_benchmark` makes it, and run.json holds it."""
    fields: dict[str, list[str]] = {part: [] for part in PARTS}
    unread: dict[str, float] = {}
    left_out: dict[str, None] = {}
    entries: dict[str, None] = {}
    is_usual = True
    for source in record["sources"]:
        here: dict[str, list[str]] = {}
        for part, name in source["fields"]:
            here.setdefault(part, []).append(name)
        for part, names in here.items():
            known = fields.setdefault(part, [])
            known += [name for name in names if name not in known]
            if part in _USUAL:
                as_usual = all(usual.plain(name) in _USUAL[part] for name in names)
                is_usual = is_usual and as_usual and len(names) == 1
        for name, share in source["unread"]:
            unread[name] = max(unread.get(name, 0.0), share)
        left_out |= dict.fromkeys(source["left_out"])
        if source["entry"] and not is_address(source["path"]):
            entries[source["entry"]] = None
    return Reading(
        fields=fields,
        unread=dict(sorted(unread.items(), key=lambda one: (-one[1], one[0]))),
        left_out=list(left_out),
        incomplete=record.get("incomplete", {}),
        is_usual=is_usual,
        entries=list(entries),
    )


def about_benchmark(benchmark: Benchmark) -> dict[str, Any]:
    """A benchmark as run.json records it."""
    items = ItemTable.of(benchmark.items)
    ids = items.lazy("item_id")
    incomplete = Counter(filter(None, items.column("incomplete")))
    return {
        "name": benchmark.name,
        "n_items": len(benchmark.items),
        "n_skipped": len(benchmark.skipped),
        **_skipped(benchmark.skipped),
        **({"incomplete": dict(incomplete)} if incomplete else {}),
        "duplicates": [[ids[i] for i in group] for group in benchmark.duplicates],
        "sources": [asdict(source) for source in benchmark.sources],
    }


def _skipped(skipped: Sequence[SkippedRow]) -> dict[str, Any]:
    """How many rows were skipped for which reason, and which files; only what there is."""
    reasons: dict[str, int] = {}
    for row in skipped:
        if row.n_rows:
            kind = row.kind or row.reason
            reasons[kind] = reasons.get(kind, 0) + row.n_rows
    files = [{"path": row.source, "reason": row.reason} for row in skipped if not row.n_rows]
    found = {"skipped": reasons, "skipped_files": files}
    return {name: value for name, value in found.items() if value}


def items_read(read: Iterable[tuple[BenchItem, SourceFile]]) -> dict[str, dict[str, Any]]:
    """How items that came one by one were read, by benchmark: `Reading.to_dict`."""
    sources: dict[str, dict[SourceFile, None]] = {}
    incomplete: dict[str, Counter[str]] = {}
    for item, source in read:
        sources.setdefault(item.benchmark, {})[source] = None
        incomplete.setdefault(item.benchmark, Counter()).update(filter(None, [item.incomplete]))
    return {
        name: how_read(
            {"sources": [_shallow(source) for source in some], "incomplete": dict(incomplete[name])}
        ).to_dict()
        for name, some in sources.items()
    }


def _shallow(source: SourceFile) -> dict[str, Any]:
    """A source by its fields: to copy what they hold takes longer than all else here."""
    return {field.name: getattr(source, field.name) for field in fields(source)}


def readings(records: Iterable[Mapping[str, Any]]) -> dict[str, Reading]:
    """How each benchmark was read, by name; records  as in `how_read`."""
    return {record["name"]: how_read(record) for record in records}
