"""Tiny corpora and benchmarks on disk for the real scan, and the texts they are made of."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import contam

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALL_POLICIES = tuple(spec.id for spec in contam.list_policies())

#: Words that no padding and no other benchmark uses; content words, so that they weigh something.
WORDS = (
    "lantern", "harbour", "copper", "violin", "glacier", "orchard", "sparrow", "granite", "meadow", "compass",
    "thunder", "saffron", "trellis", "walnut", "beacon", "quarry", "ribbon", "kettle", "marble", "falcon",
    "café", "naïve", "straße", "жаркий", "холодный", "中", "文", "水", "한국", "γλώσσα",
)  # fmt: skip
PADDING_WORDS = ("zebra", "yonder", "xylem", "wigwam", "vortex", "umbra", "tundra", "sphinx")

content = st.lists(st.sampled_from(WORDS), min_size=14, max_size=32)
padding = st.lists(st.sampled_from(PADDING_WORDS), max_size=40).map(" ".join)


@st.composite
def records(draw, most: int = 4) -> list[dict]:
    """Benchmark rows with different questions; some with passage, choices and answer."""
    found = []
    for number in range(draw(st.integers(1, most))):
        row = {"id": f"q{number}", "question": " ".join([f"tag{number}", *draw(content)]) + "?"}
        if draw(st.booleans()):
            row["passage"] = " ".join([*draw(content), f"story{number}"])
        if draw(st.booleans()):
            row["choices"] = [f"{word} {number}" for word in draw(content)[:4]]
        if draw(st.booleans()):
            row["answer"] = " ".join(draw(content)[:4])
        found.append(row)
    return found


def full_text(row: dict) -> str:
    """An item as a data dump would show it."""
    parts = [
        row.get("passage"),
        row["question"],
        "\n".join(row.get("choices", ())),
        row.get("answer"),
    ]
    return "\n".join(part for part in parts if part)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write_shard(path: Path, texts: Sequence[str | None], ids: Sequence[str] | None = None) -> None:
    """One Parquet shard; small row groups, so that a shard is several units of work."""
    ids = ids or [f"{path.stem}/{n}" for n in range(len(texts))]
    table = pa.table({"id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.string())})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=2)


def write_items(path: Path, rows: Sequence[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def scan(
    rows: Sequence[dict], texts: Sequence[str | None], policies: Sequence[str] = ("contam",)
) -> contam.ScanResult:
    with folder() as home:
        write_shard(home / "corpus" / "part-0.parquet", texts)
        items = write_items(home / "bench.jsonl", rows)
        return contam.scan(home / "corpus", items, policies=policies, workers=1)


def labels(result: contam.ScanResult) -> dict[tuple[str, str], str]:
    return {(verdict.item_id, verdict.policy): verdict.label for verdict in result}
