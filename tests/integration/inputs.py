"""Small corpora and benchmarks, good and bad, and the real command to run on them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.scan import scan
from contam.kernels._jit import INTERPRETED
from tests.cli.processes import contam, contam_here

FILLER = (
    "The council met on Tuesday evening to discuss the repair of the old stone bridge near the"
    " mill, and as so often nothing was decided before the lamps went out. "
)
QUESTION = (
    "A baker named Ottoline sells seventeen rye loaves every morning and keeps four for her hungry"
    " neighbours: how many coins does she carry home on a rainy Friday?"
)
ABSENT = (
    "Which of the lighthouse keepers on Skerry Holm painted the lantern room violet during the"
    " winter in which no supply boat could land?"
)

compiled_only = pytest.mark.skipif(INTERPRETED, reason="too long for interpreted kernels")


def write_parquet(path, texts, **options):
    """One shard with the columns id and text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = [f"{path.name}-{row}" for row in range(len(texts))]
    pq.write_table(pa.table({"id": ids, "text": pa.array(texts, pa.string())}), path, **options)
    return path


def write_jsonl(path, rows):
    """One JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def write_items(path, *questions):
    """A benchmark of bare questions with the ids q0, q1, ..."""
    return write_jsonl(path, [{"id": f"q{n}", "question": q} for n, q in enumerate(questions)])


def corpus_of(folder, *shards, **options):
    """A folder of Parquet shards, one for each list of texts."""
    for number, texts in enumerate(shards):
        write_parquet(folder / f"part-{number}.parquet", texts, **options)
    return folder


def labels(result, policy="contam"):
    """Item id -> label."""
    return {one.item_id: one.label for one in result if one.policy == policy}


def verdict(result, item_id="q0", policy="contam"):
    """The one verdict on an item."""
    (found,) = [one for one in result if one.item_id == item_id and one.policy == policy]
    return found


def search(tmp_path, documents, *questions, **options):
    """Scan one shard of documents for bare questions, in this process."""
    corpus = corpus_of(tmp_path / "corpus", list(documents))
    items = write_items(tmp_path / "items.jsonl", *questions)
    return scan(corpus, items, **options)


def quoted(result, documents):
    """Evidence as (part, what the item says, what the document says), read off the originals."""
    texts = {}
    for row in result.items.to_pylist():
        for part in ("passage", "question", "choices", "answer"):
            text = row[part]
            texts[row["item_id"], part] = "\n".join(text) if part == "choices" and text else text
    return [
        (
            row["part"],
            texts[row["item_id"], row["part"]][row["item_start"] : row["item_end"]],
            documents[row["row"]][row["document_start"] : row["document_end"]],
        )
        for row in result.evidence.to_pylist()
    ]


def run_scan(corpus, benchmark, out, *options, **how):
    """`contam scan`, in a process of its own where `how` asks for more than a plain run."""
    run = contam if how.keys() - {"cwd"} else contam_here
    words = ("--corpus", corpus, "--benchmark", benchmark, "--out", out, *options)
    return run("scan", *words, **how)


def assert_refused(process, out, *words, code=1):
    """One line of error and one of hint, and nothing left behind."""
    lines = process.stderr.splitlines()
    assert process.returncode == code, process.stderr
    kinds = [
        line.split(":")[0]
        for line in lines
        if not line.startswith(("compiling kernels", "kernel "))
    ]
    assert [kind for kind in kinds if "%" not in kind] == ["error", "hint"], process.stderr
    assert "Traceback" not in process.stderr
    assert process.stdout == ""
    for word in words:
        assert word in process.stderr
    left = [path.name for path in Path(out).parent.iterdir() if "draft" in path.name]
    assert left == []
    assert not Path(out).exists()
