"""Commands that fail, and the small wrong files they are given, for `tests.frozen`."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS = "--benchmark bench_fixtures/items"
SCAN = f"scan --corpus bench_fixtures/corpus {ITEMS} --out"
OVER = "--overwrite -q --out refused"
CORPUS = f"scan --benchmark wrong/one.jsonl {OVER} --corpus wrong"
BENCHMARK = f"scan --corpus bench_fixtures/corpus {OVER} --benchmark wrong"
BUILD = "index build --corpus bench_fixtures/corpus -q --index"
QUERY = f"query {ITEMS} {OVER} --index"
RESCORE = "rescore --verdicts scan-default --out refused --overwrite -q --logs"


def table(columns: dict[str, list[object]]) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def stream(text: str) -> bytes:
    """An Arrow stream of one document without its end mark."""
    out = io.BytesIO()
    batch = pa.record_batch({"text": [text]})
    with ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue()[:-8]


def wet(*headers: str, text: str = "text") -> bytes:
    """A record of a WET file."""
    kind = [] if any("Type: text" in line for line in headers) else ["Content-Type: text/plain"]
    lines = ["WARC/1.0", *headers, *kind, f"Content-Length: {len(text)}"]
    return ("\r\n".join(lines) + f"\r\n\r\n{text}\r\n\r\n").encode()


def lines(*rows: object) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


ASKED = "What does the pilot of the Perpetua do above the clouds?"
CONVERSION = "WARC-Type: conversion"
DOCUMENTS = table({"text": ["a text"], "number": [1]})

CORPUS_FILES = {
    "cell.csv": b'text,id\n"a"b,1\n',
    "cells.csv": b"text,id\na\n",
    "cut.arrow": stream("a"),
    "cut.csv": b"text\na",
    "cut.jsonl": b'{"text": "a"',
    "cut.jsonl.gz": gzip.compress(lines({"text": "a"}), mtime=0)[:-9],
    "cut.parquet": DOCUMENTS[:-1],
    "cut.wet": wet(CONVERSION)[:-6],
    "damaged.jsonl.gz": gzip.compress(b"a" * 99, mtime=0)[:-8] + b"12345678",
    "encrypted.parquet": DOCUMENTS[:-4] + b"PARE",
    "header.tsv": b"\n",
    "html.wet": wet(CONVERSION, "Content-Type: text/html"),
    "latin.wet": wet(CONVERSION, "Content-Type: text/plain; charset=latin-1"),
    "list.jsonl": b"[1]\n",
    "lz4.jsonl": b"\x04\x22\x4d\x18text",
    "named.jsonl.gz": b"text",
    "no_type.wet": wet(),
    "notes.md": b"some words",
    "numbers.jsonl": lines({"text": 5}),
    "pointer.csv": b"version https://git-lfs.github.com/spec/v1\n",
    "response.wet": wet("WARC-Type: response"),
    "some.jsonl.part": b"",
    "stack.parquet": table({"blob_id": ["a"], "content_id": ["b"]}),
    "stub.arrow": b"ARROW1\0\0",
    "twice.csv": b"text,text\na,b\n",
    "twice.jsonl": b'{"text": "a", "text": "b"}\n',
    "without.jsonl": lines({"title": "a"}),
}
BENCHMARK_FILES = {
    "answer.jsonl": lines({"question": ASKED, "choices": ["a", "b"], "answer": 5}),
    "cells.csv": b"question,answer\na\n",
    "cut.jsonl.gz": gzip.compress(lines({"question": ASKED}), mtime=0)[:-9],
    "empty.jsonl": b"",
    "field.jsonl": b'{"question": "a", "question": "b"}\n',
    "headers.csv": b"question,question\na,b\n",
    "ids.jsonl": lines({"id": "a", "question": ASKED}, {"id": "a", "question": "Why?"}),
    "json.jsonl": b'{"question": \n',
    "latin.jsonl": b'{"question": "caf\xe9"}\n',
    "list.json": b'["a", "b"]',
    "notes.bin": b"\x00\x01",
    "object.json": b'{"title": "a"}',
    "quote.csv": b'question\n"a\n',
    "stub.parquet": b"PAR1",
    "title.csv": b"title,answer\na,b\n",
    "values.jsonl": lines({"question": {"title": ASKED}}),
}
OTHER_FILES = {
    "one.jsonl": lines({"id": "a", "question": ASKED}),
    "foreign/notes.md": b"notes",
    "key.toml": b'unit = "word"\nspeed = 3\n',
    "cap.toml": b'unit = "word"\ngram = 5\nstride = 4\ncap = 0\n',
    "cut.toml": b"unit = ",
    "base.policy.toml": b'base = "nobody"\nid = "mine"\n',
    "cut.policy.toml": b"id = ",
    "key.policy.toml": b'base = "contam"\nid = "mine"\nzeal = 3\n',
    "value.policy.toml": b'base = "contam"\nid = "mine"\nn = "many"\n',
    "empty.csv": b"",
    "id.csv": b"question,score\na,1\n",
    "items.csv": b"model,id,score\nm,zanzibar,1\n",
    "rows.csv": b"model,id,score\nm,brook-001,1\nm,brook-001,0\n",
    "score.csv": b"model,id,score\nm,brook-001,high\n",
    "samples_task_2024.jsonl": b'{"doc_id": 0, "doc": {"question": "a"}, "target"',
    "label.csv": b"id,label\nbrook-001,perhaps\n",
    "column.csv": b"id,zeal\nbrook-001,1\n",
    "cut.AUDIT.toml": b"[audit",
    "table.AUDIT.toml": b"[zeal]\nx = 1\n",
    "key.AUDIT.toml": b"[audit]\nzeal = 1\n",
    "type.AUDIT.toml": b'[audit]\nleast = "many"\n',
    "corpus.AUDIT.toml": b'[audit]\nout = "pack"\n[[benchmark]]\npaths = ["one.jsonl"]\n',
    "benchmark.AUDIT.toml": b'[audit]\nout = "pack"\n[[corpus]]\nname = "c"\npaths = ["one.jsonl"]\n',
    "cut.RULES.toml": b"[[rule",
    "key.RULES.toml": b'[[rule]]\ncheck = "zeal"\n',
}

REFUSED = (
    # Flags.
    f"scan --corpus nowhere {ITEMS} --out refused",
    f"{SCAN} refused --policy nobody",
    f"{SCAN} refused --map headline=x",
    f"{SCAN} refused --map question=zanzibar --no-text",
    "scan --corpus bench_fixtures/corpus --benchmark bad.jsonl --out refused",
    "scan --corpus bench_fixtures/corpus --benchmark bad.jsonl --out refused --no-text",
    f"{SCAN} scan-default",
    "show nowhere",
    f"query --index ./nowhere {ITEMS} --out refused",
    "rescore --logs bench_fixtures/items --verdicts scan-default --out refused",
    "rescore --logs bad.csv --verdicts scan-default --out refused",
    "rescore --logs bench_fixtures/logs --verdicts nowhere --out refused",
    "audit nowhere.toml",
    f"{SCAN} refused --zeal",
    f"{SCAN} refused --workers 0",
    f"{SCAN} refused --seed 9 --min-run 5",
    f"{SCAN} refused --unit syllable",
    f"{SCAN} wrong/foreign",
    f"scan {ITEMS} --out refused",
    "show scan-default nobody",
    "show scan-default --policy nobody",
    "sql scan-default 'select zeal from verdicts'",
    "policies nobody",
    "dupes --benchmark bench_fixtures/items --threshold 2",
    # Corpora.
    "scan --benchmark wrong/one.jsonl --corpus wrong/corpus --out unread --json",
    f"{CORPUS}/corpus/notes.md",
    f"{CORPUS}/corpus/stack.parquet",
    f"{CORPUS}/corpus/without.jsonl",
    f"{CORPUS}/corpus/numbers.jsonl --text zeal",
    f"{CORPUS}/corpus/numbers.jsonl --text text",
    f"{CORPUS}/foreign",
    f"{CORPUS}/corpus/*.zst",
    # Benchmarks.
    *(f"{BENCHMARK}/benchmark/{name}" for name in BENCHMARK_FILES),
    f"{BENCHMARK}/foreign",
    # Indexes.
    f"{QUERY} ./wrong/altered",
    f"{QUERY} ./wrong/format",
    f"{QUERY} ./wrong/lacking",
    f"{QUERY} ./wrong/manifest",
    f"{QUERY} ./words --unit char",
    f"{QUERY} ./words --policy gpt4-50char",
    "index verify --index ./wrong/altered",
    "index add --corpus bench_fixtures/corpus -q --index ./wrong/busy",
    "index retire --index ./words --shard nobody",
    "index retire --index ./words --document nobody",
    "index upgrade --index ./words --out refused-index",
    f"{BUILD} ./words",
    f"{BUILD} ./wrong/foreign",
    f"{BUILD} ./bench_fixtures/corpus/index",
    f"{BUILD} ./refused-index --memory 1MB",
    f"{BUILD} ./refused-index --recipe nobody",
    f"{BUILD} ./refused-index --recipe bpe",
    f"{BUILD} ./refused-index --recipe wrong/cap.toml",
    f"{BUILD} ./refused-index --recipe wrong/cut.toml",
    f"{BUILD} ./refused-index --recipe wrong/key.toml",
    f"{BUILD} ./refused-index --recipe bpe --tokenizer wrong/cut.toml",
    # Files of policies.
    *(
        f"{SCAN} refused --policy wrong/{name}"
        for name in OTHER_FILES
        if name.endswith(".policy.toml")
    ),
    # Logs and labels.
    *(
        f"{RESCORE} wrong/{name}"
        for name in OTHER_FILES
        if name.endswith((".csv", "2024.jsonl")) and name not in {"label.csv", "column.csv"}
    ),
    f"{RESCORE} bench_fixtures/logs --policy nobody",
    f"{RESCORE} bench_fixtures/logs --reference nobody",
    "rescore --verdicts wrong/label.csv --out refused --logs bench_fixtures/logs",
    "rescore --verdicts wrong/column.csv --out refused --logs bench_fixtures/logs",
    # Audits.
    *(f"audit wrong/{name}" for name in OTHER_FILES if name.endswith("AUDIT.toml")),
    "audit bench_fixtures/AUDIT.toml --set zeal=1",
    "audit verify nowhere",
    "audit diff nowhere build/demo-audit",
    *(
        f"audit gate wrong/{name} build/demo-audit"
        for name in OTHER_FILES
        if name.endswith("RULES.toml")
    ),
)


def write_wrong_files(folder: Path) -> None:
    """Write `wrong/` into a folder where the index `words` lies, and what lies beside it."""
    for within, files in {
        "": OTHER_FILES,
        "corpus": CORPUS_FILES,
        "benchmark": BENCHMARK_FILES,
    }.items():
        for name, data in files.items():
            path = folder / "wrong" / within / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (folder / "bad.jsonl").write_bytes(b'{"question": "zanzibar?"}\n{"question": 5}\n')
    (folder / "bad.csv").write_bytes(b"model,zanzibar,score\na,b,high\n")
    for name in ("altered", "busy", "format", "lacking", "manifest"):
        shutil.copytree(folder / "words", folder / "wrong" / name)
    (postings,) = (folder / "wrong/altered").rglob("postings.npy")
    postings.write_bytes(postings.read_bytes()[:-1])
    (starts,) = (folder / "wrong/lacking").rglob("starts.npy")
    starts.unlink()
    manifest = folder / "wrong/manifest/MANIFEST.json"
    manifest.write_bytes(manifest.read_bytes()[:99])
    newer = folder / "wrong/format/MANIFEST.json"
    newer.write_text(json.dumps(json.loads(newer.read_bytes()) | {"format": 99}), "utf-8")


@contextmanager
def index_in_use(index: Path) -> Iterator[None]:
    """Hold the lock of an index, as a process does that changes it."""
    with (index / "lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
