"""The scripts of the cleaning guide do to a corpus what `contam clean` does."""

import contextlib
import gzip
import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam import clean
from tests.contracts.pages import REPOSITORY, blocks

PAGE = (REPOSITORY / "docs" / "guides" / "data" / "cleaning.md").read_text("utf-8")
ITEMS = REPOSITORY / "bench_fixtures" / "items" / "brook_math.jsonl"


def script(word):
    (found,) = [b.text for b in blocks(PAGE) if b.language == "python" and word in b.text]
    return found


@pytest.fixture(scope="module")
def documents():
    """Documents of the fixtures, some without text, and some with letters outside of ASCII."""
    table = pq.read_table(REPOSITORY / "bench_fixtures" / "corpus" / "part-000.parquet")
    texts = [text for text in table["text"].to_pylist() if text]
    rows = [{"id": f"d{n}", "text": text, "n": n} for n, text in enumerate(texts)]
    rows[::7] = [{**row, "text": f"é漢😀 {row['text']}"} for row in rows[::7]]
    rows[3::9] = [{**row, "text": ""} for row in rows[3::9]]
    return rows


def run(folder, corpus, word):
    """What the guide says, in a folder with a corpus; returns the names that a script has made."""
    clean(corpus, ITEMS, folder / "listed", action="list", workers=1)
    clean(corpus, ITEMS, folder / "dropped", workers=1)
    names = {}
    with contextlib.chdir(folder):
        exec(compile(script(word), "<page>", "exec"), names)  # noqa: S102 - our own page
    return names


def test_duckdb_and_datatrove_leave_the_documents_that_cleaning_leaves(documents, tmp_path):
    corpus = tmp_path / "corpus"
    (corpus / "sub").mkdir(parents=True)
    half = len(documents) // 2
    pq.write_table(pa.Table.from_pylist(documents[:half]), corpus / "a.parquet", row_group_size=20)
    pq.write_table(pa.Table.from_pylist(documents[half:]), corpus / "sub" / "b.parquet")
    run(tmp_path, corpus, "ANTI JOIN")
    names = [path.relative_to(corpus) for path in sorted(corpus.rglob("*.parquet"))]
    expected = [
        row
        for name in names
        for row in pq.read_table(tmp_path / "dropped" / "corpus" / name).to_pylist()
    ]
    assert 0 < len(expected) < len(documents)
    kept = pq.read_table(tmp_path / "kept.parquet").to_pylist()
    assert sorted(kept, key=lambda row: row["n"]) == sorted(expected, key=lambda row: row["n"])

    with contextlib.chdir(tmp_path):
        found = {}
        exec(compile(script("class Rows"), "<page>", "exec"), found)  # noqa: S102 - our own page
    adapter = found["Rows"]()
    left = []
    for name in names:
        for row in pq.read_table(corpus / name).to_pylist():
            # The reader leaves out documents without text, and numbers only the others.
            made = adapter(None, dict(row), str(name), len(left))
            if made["text"] and found["stays"](SimpleNamespace(**made)):
                left.append(made["id"])
    assert left == [row["id"] for row in expected if row["text"]]


def test_dolma_gets_lines_that_agree_with_the_documents(documents, tmp_path):
    corpus = tmp_path / "dataset" / "v0" / "documents"
    (corpus / "2024").mkdir(parents=True)
    half = len(documents) // 2
    shards = {"a.jsonl.gz": documents[:half], "2024/b.jsonl.gz": documents[half:]}
    for name, rows in shards.items():
        raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (corpus / name).write_bytes(gzip.compress(raw))
    run(tmp_path, corpus, "write_attributes")
    clean(corpus, ITEMS, tmp_path / "masked", action="mask", workers=1)
    n_edited = 0
    for name, rows in shards.items():
        attributes = (tmp_path / "dataset" / "v0" / "attributes" / "contam" / name).read_bytes()
        lines = [json.loads(line) for line in gzip.decompress(attributes).splitlines()]
        assert [line["id"] for line in lines] == [row["id"] for row in rows]
        dropped = gzip.decompress((tmp_path / "dropped" / "corpus" / name).read_bytes())
        pairs = list(zip(rows, lines, strict=True))
        assert [json.loads(line) for line in dropped.splitlines()] == [
            row for row, line in pairs if not line["attributes"]["contam_items"] > 0
        ]
        masked = gzip.decompress((tmp_path / "masked" / "corpus" / name).read_bytes())
        for new, (row, line) in zip(map(json.loads, masked.splitlines()), pairs, strict=True):
            text = row["text"]
            for start, end, score in reversed(line["attributes"]["contam_spans"]):
                assert score == 1.0
                text = f"{text[:start]}[...]{text[end:]}"
                n_edited += 1
            assert new == {**row, "text": text}
    assert n_edited
