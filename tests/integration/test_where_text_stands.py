"""Items found wherever a row has its text; nothing half downloaded or unread is called clean."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from contam.detect.report import load_report, write_report
from contam.detect.scan import scan
from tests.corpus_files import WRITERS
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    contam_here,
    corpus_of,
    labels,
    quoted,
    run_scan,
    verdict,
    write_items,
    write_jsonl,
    write_parquet,
)


def store(path, rows):
    """The same rows in the format that the name asks for."""
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".jsonl":
        return write_jsonl(path, rows)
    if path.suffix in {".csv", ".tsv"}:
        path.write_bytes(WRITERS[path.suffix[1:]](rows))
        return path
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return path


NESTED = ["a.parquet", "a.arrow", "a.jsonl"]
FORMATS = [*NESTED, "a.csv", "a.tsv"]


@pytest.mark.parametrize("name", FORMATS)
def test_an_item_in_a_row_whose_text_is_null_is_found(tmp_path, name):
    rows = [
        {"id": "d0", "text": FILLER, "content": QUESTION},
        {"id": "d1", "text": None, "content": FILLER + QUESTION},
    ]
    corpus = store(tmp_path / "corpus" / name, rows)
    result = scan(corpus, write_items(tmp_path / "items.jsonl", QUESTION, ABSENT))
    assert labels(result) == {"q0": "contaminated", "q1": "clean"}
    assert (verdict(result).best_document_id, verdict(result).n_documents) == ("d1", 1)
    assert quoted(result, ["", FILLER + QUESTION])[0][2] == QUESTION.rstrip("?")
    assert result.coverage["columns"] == {"text": 1, "content": 1}
    assert result.coverage["n_moved"] == 1
    out = write_report(result, tmp_path / "out")
    shown = contam_here("show", out, "--documents", "1").stdout
    assert "row 1 column content" in shown
    assert "neighbours" in shown
    (item,) = json.loads(contam_here("show", out, "--json").stdout)["items"]
    assert item["documents"][0]["column"] == "content"


@pytest.mark.parametrize("name", FORMATS)
def test_a_named_column_is_kept_to_and_the_summary_says_what_it_misses(tmp_path, name):
    rows = [{"text": FILLER, "content": None}, {"text": None, "content": QUESTION}]
    corpus = store(tmp_path / "corpus" / name, rows)
    items = write_items(tmp_path / "items.jsonl", QUESTION)
    process = run_scan(corpus, items, tmp_path / "out", "--text", "text")
    assert process.returncode == 0, process.stderr
    assert "1 NOT READ, with a text in another column than the one named" in process.stdout
    assert load_report(tmp_path / "out").run["coverage"]["n_elsewhere"] == 1
    process = run_scan(corpus, items, tmp_path / "all")
    assert "1 read from another column than the rest of their shard" in process.stdout
    assert labels(load_report(tmp_path / "all")) == {"q0": "contaminated"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_pair_of_prompt_and_reply_is_a_document_with_named_turns(tmp_path, name):
    rows = [{"prompt": FILLER, "response": FILLER}, {"prompt": QUESTION, "response": "She has 52."}]
    corpus = store(tmp_path / "corpus" / name, rows)
    items = write_jsonl(
        tmp_path / "items.jsonl", [{"id": "q0", "question": QUESTION, "answer": "She has 52."}]
    )
    result = scan(corpus, items)
    assert verdict(result).exposure == "question+answer"
    out = write_report(result, tmp_path / "out")
    shown = contam_here("show", out, "--documents", "1").stdout
    assert "turn 0:prompt" in shown
    assert "turn 1:response" in shown


@pytest.mark.parametrize("name", NESTED)
def test_an_item_in_the_arguments_of_a_tool_is_found(tmp_path, name):
    call = {"function": {"name": "search", "arguments": json.dumps({"query": QUESTION})}}
    chat = [
        {"role": "user", "content": FILLER, "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    corpus = store(tmp_path / "corpus" / name, [{"messages": chat}])
    result = scan(corpus, write_items(tmp_path / "items.jsonl", QUESTION))
    assert labels(result) == {"q0": "contaminated"}
    out = write_report(result, tmp_path / "out")
    assert "1:assistant" in contam_here("show", out, "--documents", "1").stdout


UNFINISHED = [
    "part-1.parquet.incomplete",
    "part-1.parquet.part",
    "part-1.jsonl.gz.tmp",
    ".part-1.parquet.x1Y2z3",
    "part-1.parquet.6eF5b5dA",
    "part-0.parquet.aria2",
    ".cache/huggingface/download/train/x9.0a1b.incomplete",
]


@pytest.mark.parametrize("name", UNFINISHED)
@pytest.mark.parametrize("options", [(), ("--allow-missing",)])
def test_half_a_download_makes_nothing_clean_unless_that_is_allowed(tmp_path, name, options):
    corpus = corpus_of(tmp_path / "corpus", [FILLER + QUESTION])
    (corpus / name).parent.mkdir(parents=True, exist_ok=True)
    (corpus / name).write_bytes(b"half of it")
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    process = run_scan(corpus, items, tmp_path / "out", *options)
    assert process.returncode == (0 if options else 4), process.stderr
    assert f"NOT READ {name}: an unfinished download or copy" in process.stdout
    found = labels(load_report(tmp_path / "out"))
    assert found == {"q0": "contaminated", "q1": "clean" if options else "not_checkable"}


def test_a_corpus_of_nothing_but_half_downloads_makes_nothing_clean(tmp_path):
    path = write_parquet(tmp_path / "corpus" / "a.parquet", [FILLER])
    path.rename(f"{path}.incomplete")
    items = write_items(tmp_path / "items.jsonl", ABSENT)
    process = run_scan(path.parent, items, tmp_path / "out")
    assert process.returncode == 4, process.stderr
    assert labels(load_report(tmp_path / "out")) == {"q0": "not_checkable"}
