"""How much of real benchmark files is read: python benchmarks/read_whole.py FOLDER...

Every JSON, JSONL, CSV and TSV file of five rows or more below the folders is read by itself. A text
is unsaid that differs from row to row and is neither in an item, nor under a name that is listed as
unread or left out. Prints each file that has any, each refusal with its way out, and the counts.
"""

from __future__ import annotations

import collections
import csv
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.benchmark.looks import n_words, texts_in
from contam.benchmark.mapping import ANSWER, is_left_out, plain
from contam.benchmark.read_files import read_benchmarks
from contam.errors import ContamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = {".jsonl", ".json", ".csv", ".tsv"}
_ROWS, _FEWEST, _WORDS, _START = 200, 5, 4, 40


def main() -> None:
    """Read all files below the folders that are named."""
    csv.field_size_limit(1 << 30)
    kinds: collections.Counter[str] = collections.Counter()
    for top in map(Path, sys.argv[1:]):
        for path in sorted(top.rglob("*")):
            if path.is_file() and _SUFFIXES & {*path.suffixes}:
                rows = [row for row in _rows(path) if isinstance(row, dict)]
                if len(rows) >= _FEWEST:
                    kind, told = _kind(path, rows[:_ROWS])
                    kinds[kind] += 1
                    if kind != "whole":
                        sys.stdout.write(f"{kind} {path.relative_to(top)} | {told}\n")
    sys.stdout.write(f"{kinds.total()} files {dict(kinds)}\n")


def _rows(path: Path) -> list[Any]:
    """The rows of a file, by means of its own; [] where it cannot be told."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            if {".csv", ".tsv"} & {*path.suffixes}:
                return list(
                    csv.DictReader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
                )
            text = file.read()
        value = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, UnboundLocalError):
            return []
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        return max(lists, key=len, default=[])
    return value if isinstance(value, list) else []


def _kind(path: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    try:
        found = read_benchmarks([path])
    except ContamError as error:
        return "refused", f"{sorted(rows[0])[:10]} | {error}"
    items = [item for benchmark in found for item in benchmark.items]
    sources = [source for benchmark in found for source in benchmark.sources]
    named = {name for source in sources for name in source.left_out}
    named |= {name for source in sources for name, _ in source.unread}
    read = "\n".join({text for item in items for text in item.part_texts()})
    n_rows = collections.Counter(text for row in rows for text in {text for _, text in _texts(row)})
    total = 0
    unsaid: collections.Counter[str] = collections.Counter()
    for row in rows:
        for name, text in _texts(row):
            if n_words(text) < _WORDS or 2 * n_rows[text] > len(rows):
                continue
            total += len(text)
            start = text.strip()[:_START]
            # A choice may be read without its letter.
            if name not in named and start not in read and start[4:] not in read:
                unsaid[name] += len(text)
    if unsaid:
        return "unsaid", f"{unsaid.total() / total:.0%} of its text: {unsaid.most_common(4)}"
    if any(item.incomplete for item in items):
        return "not checkable", next(item.incomplete for item in items if item.incomplete)
    return ("said", f"{sources[0].unread}") if any(one.unread for one in sources) else ("whole", "")


def _texts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of a row that its own names do not leave out, and the names of its choices."""
    for name, value in row.items():
        if name == "target_scores":
            yield from ((name, choice) for choice in value)
        elif not is_left_out(str(name)) and plain(str(name)) not in ANSWER:
            yield from ((path.split(".")[0], text) for path, text in texts_in(value, at=str(name)))


if __name__ == "__main__":
    main()
