"""Every kernel is compiled once: an input of another type would cost a minute in the middle of a run."""

import json

import pytest

from contam.kernels._jit import INTERPRETED
from tests.cli.processes import python

SCAN = """
import json, sys
from importlib import import_module
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
import contam
from contam.text.tokenizer import tokenize_bytes

folder = Path(sys.argv[1])
texts = ["", None, "Who painted the red fox that runs by the old mill?", "中文 café"]
corpus = folder / "corpus"
corpus.mkdir()
pq.write_table(pa.table({"text": texts}), corpus / "a.parquet")
pq.write_table(pa.table({"text": pa.array(texts).dictionary_encode()}), corpus / "b.parquet")
broken = pa.array([b"red \\xff fox", b"plain"], pa.binary())
pq.write_table(pa.table({"text": broken}), corpus / "c.parquet")
lines = [json.dumps({"text": text}) for text in texts]
(corpus / "d.jsonl").write_text("\\n".join(lines))
with pa.ipc.new_file(corpus / "e.arrow", pa.schema([("text", pa.large_string())])) as sink:
    sink.write_table(pa.table({"text": pa.array(texts, pa.large_string())}))
items = folder / "items.jsonl"
items.write_text(json.dumps({"id": "1", "question": texts[2], "answer": "nobody"}))
contam.scan(corpus, items, policies=["contam", "gpt4-50char"], workers=2)
empty = folder / "empty.jsonl"
empty.write_text(json.dumps({"id": "1", "question": "?"}))
contam.scan(corpus / "a.parquet", empty, workers=1)
tokenize_bytes(b"")
counts = {}
for name in sys.argv[2].split(","):
    module, _, kernel = name.rpartition(".")
    counts[name] = len(getattr(import_module(module), kernel).signatures)
print(json.dumps(counts))
"""
#: What the package calls from Python; kernels called by these only are compiled with them.
ENTRIES = (
    "contam.kernels.document.scan_batch",
    "contam.kernels.tokenize_items.code_point_spans",
    "contam.kernels.tokenize_items.note_shared",
    "contam.kernels.tokenize_items.template_weights",
    "contam.kernels.tokenize_items.tokenize_parts",
    "contam.kernels.gram_table.count_owners",
    "contam.kernels.gram_table.fill_table",
    "contam.kernels.gram_table.item_grams",
    "contam.kernels.gram_table.note_skips",
    "contam.kernels.gram_table.short_places_first",
    "contam.kernels.tokens.tokenize",
)


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
@pytest.mark.slow
def test_writable_and_read_only_inputs_of_every_kind_need_one_specialisation(tmp_path):
    run = python("-c", SCAN, tmp_path, ",".join(ENTRIES))
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == dict.fromkeys(ENTRIES, 1)
