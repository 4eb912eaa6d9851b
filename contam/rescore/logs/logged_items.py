"""Extract a benchmark's items from logs, for users who have no test set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from contam.errors import LogError, Place, Public
from contam.files.single import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contam.rescore.logs.model import Log, LoggedItem


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedBenchmark:
    """Rows that the readers of benchmarks take, and what could not be made one.

    n_again   items that further logs hold as well
    without   (log, items in it whose question is not told apart from the prompt)
    """

    rows: tuple[dict[str, object], ...]
    n_again: int
    without: tuple[tuple[str, int], ...]


def benchmark_of(logs: Sequence[Log]) -> LoggedBenchmark:
    """All items that the logs hold, each once under its benchmark.

    Raises LogError when there are none, and for one id with two texts in a benchmark.
    """
    by_key: dict[tuple[str, str], None] = {}
    by_id: dict[tuple[str, str, str], str] = {}
    rows: list[dict[str, object]] = []
    n_again = 0
    without: Counter[str] = Counter()
    for log in logs:
        benchmark = log.benchmark if log.names_benchmark else ""
        own: set[str] = set()
        for item in log.items:
            if item.question is None or not item.question.strip():
                without[log.path] += 1
                continue
            key = item.content_key
            # Two equal items of one log are two items of the benchmark: it holds duplicates.
            if (benchmark, key) in by_key and key not in own:
                n_again += 1
                continue
            own.add(key)
            by_key[benchmark, key] = None
            name = (benchmark, log.split or "", item.item_id)
            if name in by_id:
                hint = "two versions, or two tools that count differently: take one at a time"
                facts = item.item_id, Public(benchmark), Place(by_id[name])
                raise log.fault("item {} of {} has another text in {}", *facts, hint=hint)
            by_id[name] = log.path
            rows.append(_row(item, benchmark, log.split))
    if not rows:
        hint = (
            "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a "
            "column for the question (--columns question=COLUMN)"
        )
        raise LogError("these logs hold no items, only prompts or numbers", hint=hint)
    return LoggedBenchmark(rows=tuple(rows), n_again=n_again, without=tuple(without.items()))


def write_items(rows: Iterable[dict[str, object]], path: Path, *, overwrite: bool = False) -> None:
    """Write JSON lines, whole or not at all; OutputError when that cannot be done."""
    write_file(path, b"".join(orjson.dumps(row) + b"\n" for row in rows), overwrite=overwrite)


def _row(item: LoggedItem, benchmark: str, split: str | None) -> dict[str, object]:
    found = {
        # A table without ids names its items by their questions: readers make them an id.
        "id": item.item_id if item.item_id != item.question else None,
        "benchmark": benchmark,
        "split": split,
        "passage": item.passage,
        "question": item.question,
        "choices": list(item.choices) if item.choices else None,
        "answer": item.answer,
    }
    return {name: value for name, value in found.items() if value}
