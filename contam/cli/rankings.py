"""Print rankings of a re-scoring: all items and clean items side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    Row = dict[str, Any]


def ranking_blocks(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """For each policy and set-up: both rankings in one table, then who is not in them.

    rows  of rankings.parquet, of one benchmark and metric
    """
    from contam.cli.terminal import visible

    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row["setup"]), []).append(row)
    policies = {policy for policy, _ in groups}
    for (policy, setup), own in groups.items():
        parts = [f"by {policy}"] if len(policies) > 1 else []
        parts += [f"runs with {setup}"] if setup else []
        ranked = [row for row in own if row["rank_clean"] is not None]
        notes = list(dict.fromkeys(row["note"] for row in own if row["rank_full"] is not None))
        if not ranked:
            alone = len(own) == 1 and not setup
            if not alone:
                yield visible(", ".join(["ranking", *parts]) + f": {'; '.join(notes)}")
            continue
        yield ""
        if parts:
            yield visible(", ".join(["ranking", *parts]))
        yield _side_by_side(ranked)
        yield from (visible(note) for note in notes if note)


def _side_by_side(rows: Sequence[Row]) -> RenderableType:
    from contam.cli.sheet import Sheet

    sheet = Sheet(("ranking, all items", "ranking, clean items"), ())
    sides = []
    for side in ("full", "clean"):
        order = sorted(rows, key=lambda row: (row[f"rank_{side}"], row["rank_full"], row["model"]))
        sides.append(_column(order, side))
    for cells in zip(*sides, strict=True):
        sheet.add(cells, ())
    return sheet


def _column(rows: Sequence[Row], side: str) -> list[str]:
    """Rank, its interval, model, score, and on the clean side how far the model moved."""
    from contam.cli.terminal import visible
    from contam.rescore.export.summary import figure

    ranks = [_rank(row, side) for row in rows]
    names = [visible(row["model"]) for row in rows]
    wide, wider = max(map(len, ranks)), max(map(len, names))
    cells = []
    for row, rank, name in zip(rows, ranks, names, strict=True):
        moved = row["rank_full"] - row["rank_clean"]
        shown = f"  {moved:+g}" if side == "clean" and moved else ""
        cells.append(f"{rank:<{wide}}  {name:<{wider}}  {figure(row[side])}{shown}")
    return cells


def _rank(row: Row, side: str) -> str:
    rank, low, high = (row[f"rank_{side}{end}"] for end in ("", "_lo", "_hi"))
    return f"{rank:g}" if low is None else f"{rank:g} [{low:g}-{high:g}]"
