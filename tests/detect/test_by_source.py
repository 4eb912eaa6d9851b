"""The table by source: which source of a mixture is dirty."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.cleaning.clean import clean
from contam.detect.match import by_source
from contam.detect.parts.part_store import Division
from contam.detect.report import write_report
from contam.detect.scan import scan
from contam.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = {
    "anchors": "Which of the seven anchors does the ferry captain drop first when fog rolls in?",
    "bells": "How many bronze bells were cast in the valley before the old foundry burned down?",
    "cranes": "Why do the grey cranes leave the northern marsh two weeks later than the geese?",
}
PLAIN = "nothing of note is written on this page of the ledger"


@pytest.fixture
def benchmark(tmp_path: Path) -> list[Path]:
    """Two benchmarks, of two items and of one."""
    files = {"first": ["anchors", "bells"], "second": ["cranes"]}
    for name, ids in files.items():
        rows = [{"id": one, "question": ITEMS[one], "answer": "x"} for one in ids]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [tmp_path / f"{name}.jsonl" for name in files]


def _rows() -> list[dict[str, Any]]:
    """Of web 40 documents with 3 dirty, of books 40 with 1, and 20 of no source with 1."""
    found: list[dict[str, Any]] = [
        {"text": f"{PLAIN} {n}", "source": source, "subset": "s"}
        for source, count in (("web", 37), ("books", 39), (None, 19))
        for n in range(count)
    ]
    dirty = [("web", "anchors"), ("web", "anchors"), ("web", "cranes"), (None, "bells")]
    found += [{"text": ITEMS[item], "source": of, "subset": "s"} for of, item in dirty]
    both = ITEMS["anchors"] + " " + ITEMS["cranes"]
    return [*found, {"text": both, "source": "books", "subset": "s"}]


def _write(folder: Path, rows: list[dict[str, Any]], kind: str) -> Path:
    folder.mkdir()
    for number in range(3):
        some = rows[number::3]
        if kind == "parquet":
            table = pa.Table.from_pylist(some)
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=7)
        else:
            lines = [json.dumps(row) for row in some]
            (folder / f"{number}.jsonl").write_text("\n\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_documents_and_items_are_counted_by_source_and_benchmark(
    tmp_path: Path, benchmark: list[Path], kind: str
) -> None:
    section = scan(_write(tmp_path / "corpus", _rows(), kind), benchmark).run["sources"]
    assert (section["columns"], section["n_sources"]) == (["source"], 3)
    told = [
        (row["source"], row["benchmark"], row["rows"], row["documents"], row["items"])
        for row in section["rows"]
    ]
    assert told == [
        ("web", None, 40, 3, 2),
        ("web", "first", 40, 2, 1),
        ("web", "second", 40, 1, 1),
        (None, None, 20, 1, 1),
        (None, "first", 20, 1, 1),
        ("books", None, 40, 1, 2),
        ("books", "first", 40, 1, 1),
        ("books", "second", 40, 1, 1),
    ]
    assert all(row["low"] < row["share"] < row["high"] for row in section["rows"])


def test_the_table_is_the_same_however_the_scan_is_divided(
    tmp_path: Path, benchmark: list[Path]
) -> None:
    corpus = _write(tmp_path / "corpus", _rows(), "parquet")
    policies = "contam,openr1-8,gpt3-test"
    whole = scan(corpus, benchmark, workers=1, policies=policies).run["sources"]
    assert {row["policy"] for row in whole["rows"]} == set(policies.split(","))
    division = Division(folder=str(tmp_path / "parts"), size=500)
    for divided in (None, division, division):
        found = scan(corpus, benchmark, workers=4, division=divided, policies=policies)
        assert found.run["sources"] == whole


def test_no_table_is_made_of_too_many_sources_and_the_result_says_so(
    tmp_path: Path, benchmark: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_source, "MOST_SOURCES", 30)
    rows = [{**row, "source": f"https://a.example/{n}"} for n, row in enumerate(_rows())]
    corpus = _write(tmp_path / "corpus", rows, "jsonl")
    division = Division(folder=str(tmp_path / "parts"), size=1)
    for divided in (None, division):
        run = scan(corpus, benchmark, division=divided).run
        assert "rows" not in run["sources"]
        assert any("--source-column" in note for note in run["notes"])
        assert sum(note.startswith("more than") for note in run["notes"]) == 1
    named = scan(corpus, benchmark, columns={"source": "subset"}).run["sources"]
    assert (named["columns"], named["n_sources"]) == (["subset"], 1)


def test_a_source_beside_a_text_too_long_to_be_kept_is_counted(
    tmp_path: Path, benchmark: list[Path]
) -> None:
    long = {"text": (PLAIN + " ") * 200_000 + ITEMS["bells"], "source": "long"}
    rows = [{"text": PLAIN, "source": "short"}, long, {"text": ITEMS["cranes"], "source": "short"}]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n\n".join(map(json.dumps, rows)))
    found = scan(corpus, benchmark).run["sources"]["rows"]
    told = {row["source"]: (row["rows"], row["documents"]) for row in found}
    assert told == {"long": (1, 1), "short": (2, 1)}


def test_a_source_that_may_not_exist_is_no_corpus_without_it(
    tmp_path: Path, benchmark: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_source, "MOST_SOURCES", 1)
    corpus = _write(tmp_path / "corpus", _rows(), "parquet")
    with pytest.raises(UsageError, match="wbe"):
        clean(corpus, benchmark, tmp_path / "typo", sources=["wbe"])
    done = clean(corpus, benchmark, tmp_path / "web", sources=["web"])
    assert done.record["removed"]["by_source"] == [{"source": "web", "documents": 3}]


@pytest.mark.parametrize("action", ["drop", "mask"])
def test_only_documents_of_named_sources_are_cleaned(
    tmp_path: Path, benchmark: list[Path], action: str
) -> None:
    corpus = _write(tmp_path / "corpus", _rows(), "parquet")
    result = scan(corpus, benchmark, every_hit=True)
    write_report(result, tmp_path / "found")
    for name, verdicts in (("searched", None), ("given", tmp_path / "found")):
        done = clean(
            corpus, benchmark, tmp_path / name, action=action, sources="web", verdicts=verdicts
        )
        assert done.record["removed"]["by_source"] == [{"source": "web", "documents": 3}]
    again = scan(tmp_path / "given" / "corpus", benchmark).run["sources"]["rows"]
    left = {row["source"]: row["documents"] for row in again if row["benchmark"] is None}
    assert left == {"web": 0, "books": 1, None: 1}
    with pytest.raises(UsageError, match="wbe"):
        clean(corpus, benchmark, tmp_path / "typo", sources=["wbe"])
