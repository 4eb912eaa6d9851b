"""How much can the service bear? `python service/loadtest --index DIR --items PATH...`.

Starts `contam serve` over an index as a process of its own on loopback, asks it for single items
from this process, and prints a table: clients that wait for their answer, requests that come at a
rate whatever the answers do, and more of them than were answered before. No item is asked twice
before all were asked once. `--soak SECONDS` goes on asking and looks at the memory.

Exit code 0: no failure, refusals under overload alone, and every answer to an item was the same,
byte for byte; 1: not so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from generator import Asked, Load, closed, opened
from process import Usage, service

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

_SAMPLES = 20
_COLUMNS = (
    ("asked", "", "20"), ("answered", "per_s", "9.1f"), ("p50", "p50_ms", "7.1f"),
    ("p99", "p99_ms", "7.1f"), ("most", "most_ms", "7.1f"), ("shed", "n_shed", "6d"),
    ("unsent", "n_unsent", "6d"), ("failed", "n_failed", "6d"), ("CPU ms", "cpu_ms_each", "7.2f"),
    ("CPU", "cpu_share", "5.2f"), ("MB", "own_mb", "6.0f"), ("load", "machine_load", "5.1f"),
)  # fmt: skip


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="loadtest", description=__doc__)
    parser.add_argument("--index", required=True, help="index to serve")
    parser.add_argument("--items", nargs="+", required=True, help="JSON lines, or folders of them")
    parser.add_argument("--seconds", type=float, default=20, help="length of a phase")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 32], help="that wait")
    parser.add_argument("--rates", type=float, nargs="*", default=[200], help="requests a second")
    parser.add_argument("--overload", type=float, default=2, help="times the most answered before")
    parser.add_argument("--soak", type=float, default=0, help="seconds at half the first rate")
    parser.add_argument("--cases", type=int, default=30_000, help="distinct items")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument(
        "--serve", default="", help="further options of `contam serve`, in one text"
    )
    return parser.parse_args(argv)


def bodies(paths: Sequence[str], n_cases: int, seed: int) -> list[bytes]:
    """Requests for one item each, in random order."""
    files = [
        file
        for path in map(Path, paths)
        for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])
    ]
    rows = [orjson.loads(row) for file in files for row in file.read_bytes().splitlines()]
    random.Random(seed).shuffle(rows)  # noqa: S311 - an order that can be repeated, no secret
    found = []
    for row in rows[:n_cases]:
        item = {name: row[name] for name in ("passage", "choices", "answer") if row.get(name)}
        item |= {"id": str(row["id"]), "question": row["question"]}
        if isinstance(item.get("answer", ""), str):
            found.append(orjson.dumps({"items": [item]}))
    return found


async def phase(name: str, asking: Coroutine[Any, Any, Asked], usage: Usage) -> dict[str, Any]:
    """Run one phase; gives its figures."""
    cpu_s, memory = usage.cpu_s, [usage.own_mb]

    async def sample() -> None:
        while True:
            await asyncio.sleep(1)
            memory.append(usage.own_mb)

    sampling = asyncio.create_task(sample())
    asked = await asking
    sampling.cancel()
    cpu_s = usage.cpu_s - cpu_s
    ordered = sorted(asked.seconds) or [float("nan")]
    n_answered = len(asked.seconds)
    n_any = n_answered + len(asked.shed_seconds)
    shed = sorted(asked.shed_seconds)
    return {
        "name": name,
        "n_answered": n_answered,
        "per_s": n_answered / asked.wall_s,
        "p50_ms": 1e3 * ordered[len(ordered) // 2],
        "p99_ms": 1e3 * ordered[len(ordered) * 99 // 100],
        "most_ms": 1e3 * ordered[-1],
        "n_shed": len(shed),
        "shed_p99_ms": 1e3 * shed[len(shed) * 99 // 100] if shed else None,
        "n_unsent": asked.n_unsent,
        "n_failed": asked.n_failed,
        "n_changed": asked.n_changed,
        "kinds": asked.kinds,
        "cpu_ms_each": 1e3 * cpu_s / max(n_any, 1),
        "cpu_share": cpu_s / asked.wall_s,
        "own_mb": memory[-1],
        "memory_mb": memory[:: max(len(memory) // _SAMPLES, 1)],
        "machine_load": os.getloadavg()[0],
    }


def show(figures: dict[str, Any]) -> None:
    """One line of the table."""
    cells = [f"{figures['name']:20}"]
    cells += [f"{figures[key]:{form}}" for _, key, form in _COLUMNS[1:]]
    print(" ".join(cells), flush=True)


async def run(asked: argparse.Namespace, address: tuple[str, int], usage: Usage) -> list[Any]:
    """Run all phases; gives the figures of each."""
    load = Load(*address, bodies(asked.items, asked.cases, asked.seed))
    found: list[dict[str, Any]] = []

    async def take(name: str, asking: Coroutine[Any, Any, Asked]) -> None:
        found.append(await phase(name, asking, usage))
        show(found[-1])

    for n in asked.clients:
        await take(f"{n} client{'s' * (n > 1)}", closed(load, n, asked.seconds))
    for rate in asked.rates:
        await take(f"{rate:g}/s", opened(load, rate, asked.seconds))
    if asked.overload:
        rate = asked.overload * max(one["per_s"] for one in found)
        await take(f"{rate:.0f}/s, too many", opened(load, rate, asked.seconds))
        found[-1]["may_shed"] = True
        await take("1 client, afterwards", closed(load, 1, asked.seconds / 4))
    if asked.soak:
        rate = asked.rates[0] / 2
        await take(f"{rate:g}/s, long", opened(load, rate, asked.soak))
    return found


def main() -> int:
    """Run the load test; returns the exit code."""
    asked = arguments()
    print(
        " ".join(
            f"{name:{form.rstrip('df').partition('.')[0]}}"
            if not i
            else f"{name:>{form.rstrip('df').partition('.')[0]}}"
            for i, (name, _, form) in enumerate(_COLUMNS)
        )
    )
    with tempfile.TemporaryDirectory(prefix="contam-load-") as folder:
        log = Path(folder) / "log"
        with service(asked.index, f"{folder}/data", log, asked.serve.split()) as (*address, pid):
            found = asyncio.run(run(asked, (address[0], address[1]), Usage(pid)))
    bad = [
        one["name"]
        for one in found
        if one["n_failed"] or one["n_changed"] or (one["n_shed"] and not one.get("may_shed"))
    ]
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps({"phases": found, "bad": bad}, indent=1) + "\n")
    if bad:
        print(f"not as it should be: {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
