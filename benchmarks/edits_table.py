"""How many of 50 verbatim questions are found, for each kind of edit.

Usage: python benchmarks/edits_table.py --data DIR [--out build/quality] [--kind NAME] [--write]

DIR is a labelled pack; its questions are put between its passages, edited as benchmarks/edits.py
says, and searched for by `contam`. Writes edits.json to --out, prints the table, and with --write
puts it into docs/guides/limits.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from edits import CHINESE, EDITS, MATHEMATICS, WAYS_OUT  # noqa: E402

import contam  # noqa: E402

if TYPE_CHECKING:
    from edits import Edit

PAGE: Final = HERE.parent / "docs" / "guides" / "limits.md"
_MARKS: Final = ("<!-- edits: begin -->\n", "<!-- edits: end -->\n")
N: Final = 50
#: A kind of which less is found is to be mended, or says its way out.
AIM: Final = 0.9
_PLAIN: Final = ("arc_challenge", "aqua", "gsm8k", "piqa", "siqa", "svamp", "winogrande")
_WORDS: Final = (14, 60)


def records(data: Path, benchmark: str) -> list[dict[str, Any]]:
    """The items of one benchmark of the pack."""
    text = (data / "items" / f"{benchmark}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def chosen(data: Path, benchmarks: tuple[str, ...], wanted: str) -> list[str]:
    """N different questions, in turn from each benchmark."""
    shuffle = random.Random(7)  # noqa: S311 - a choice that is the same each time
    columns = []
    for benchmark in benchmarks:
        texts = {str(one.get("question", "")) for one in records(data, benchmark)}
        fitting = sorted(text for text in texts if fits(text, wanted))
        shuffle.shuffle(fitting)
        columns.append(fitting)
    turns = [column[i] for i in range(N) for column in columns if i < len(column)]
    return turns[:N]


def fits(text: str, wanted: str) -> bool:
    """Whether a question is of the length, and of the kind that is wanted."""
    if wanted == "chinese":
        return len(text) >= 25 and len(re.findall("[\u4e00-\u9fff]", text)) > len(text) / 2
    formula = text.count("$") >= 4 and "\\" in text
    plain = text.isascii() and not re.search(r"[\\$<>&%{}_]", text)
    return _WORDS[0] <= len(text.split()) <= _WORDS[1] and (
        formula if wanted == "mathematics" else plain
    )


def documents(questions: list[str], filler: list[str], edit: Edit) -> list[str]:
    """One document for each question."""
    found = []
    for i, question in enumerate(questions):
        around = filler[2 * i % len(filler)], filler[(2 * i + 1) % len(filler)]
        text = " ".join(f"{around[0]} {question} {around[1]}".split())
        found.append(edit(text, random.Random(i)))  # noqa: S311 - the same each time
    return found


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    """JSON lines."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")


def count_found(questions: list[str], texts: list[str], workers: int) -> int:
    """How many of the questions a scan of the texts finds."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        write_lines(
            home / "items.jsonl", [{"id": f"q{i}", "question": q} for i, q in enumerate(questions)]
        )
        (home / "corpus").mkdir()
        write_lines(home / "corpus" / "a.jsonl", [{"text": text} for text in texts])
        result = contam.scan(
            home / "corpus", home / "items.jsonl", policies=["contam"], workers=workers
        )
    labels = result.verdicts.column("label").to_pylist()
    return sum(label in {"contaminated", "suspect"} for label in labels)


def measure(data: Path, kinds: list[str], workers: int) -> list[dict[str, Any]]:
    """A row for each kind."""
    questions = {
        "plain": chosen(data, _PLAIN, "plain"),
        "mathematics": chosen(
            data, ("college_math", "minerva_math", "olympiadbench"), "mathematics"
        ),
        "chinese": chosen(data, ("agieval", "logiqa_zh", "cn_middle_school"), "chinese"),
    }
    filler = sorted({" ".join(str(one["passage"]).split()[:30]) for one in records(data, "boolq")})
    rows = []
    for kind in kinds:
        of = "mathematics" if kind in MATHEMATICS else "chinese" if kind in CHINESE else "plain"
        texts = documents(questions[of], filler, EDITS[kind])
        found = count_found(questions[of], texts, workers)
        rows.append({"kind": kind, "found": found, "n": len(questions[of])})
    return rows


def below(rows: list[dict[str, Any]]) -> list[str]:
    """What is found less than wanted and has no way out."""
    return [
        f"{row['kind']}: {row['found']} of {row['n']}"
        for row in rows
        if row["found"] < AIM * row["n"] and row["kind"] not in WAYS_OUT
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, least found first, kinds that are found whole in one line."""
    whole = [row["kind"] for row in rows if row["found"] == row["n"]]
    lines = ["| kind of edit | found | way out |", "| --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: row["found"] / row["n"]):
        if row["found"] < row["n"]:
            way = WAYS_OUT.get(row["kind"], "not yet") if row["found"] < AIM * row["n"] else ""
            lines.append(f"| {row['kind']} | {row['found']} of {row['n']} | {way} |")
    return "\n".join(lines) + f"\n\nAll found: {', '.join(whole)}.\n"


def main() -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled pack")
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    parser.add_argument("--kind", action="append", choices=list(EDITS), help="only this kind")
    parser.add_argument("--write", action="store_true", help="put the table into limits.md")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    rows = measure(given.data, given.kind or list(EDITS), given.workers)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "edits.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        between = re.compile(f"{_MARKS[0]}.*{_MARKS[1]}", re.DOTALL)
        new = f"{_MARKS[0]}\n{table(rows)}\n{_MARKS[1]}"
        PAGE.write_text(between.sub(lambda _: new, text), encoding="utf-8")
    for line in below(rows):
        print(f"quality: below {AIM:.0%}: {line}", file=sys.stderr)
    return 1 if below(rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
