"""Benchmarks nobody may see: with --no-text their wording is nowhere in what contam leaves or says."""

import json

import pyarrow.parquet as pq
import pytest

from contam.detect.report import load_report
from tests.integration.inputs import FILLER, contam_here, corpus_of, run_scan, write_jsonl

MARK = "zqxvellum"
SECRET = (
    f"Which {MARK} baker named Ottoline sells seventeen rye loaves every {MARK} morning and keeps"
    " four for her neighbours across the yard?"
)
ITEMS = [
    {"id": "s1", "question": SECRET, "choices": [f"{MARK} one", "two", "three"], "answer": "A",
     "passage": f"{MARK} passage. {FILLER}"},
    {"id": "s2", "question": f"An absent {MARK} question that nobody wrote into any corpus at all"},
    {"id": "s3", "question": f"{MARK} short"},
    {"question": f"an item without an id is named by the hash of its {MARK} content, or what?"},
]  # fmt: skip
POLICIES = "contam,gpt3-test,lmeval-13,gpt4-50char,decon-default"


def assert_silent(folder, *processes):
    for process in processes:
        assert MARK not in (process.stdout + process.stderr).lower()
    for path in folder.rglob("*"):
        if path.is_file():
            assert MARK.encode() not in path.read_bytes().lower(), path
    for path in folder.glob("*.parquet"):
        # Compressed pages hide a plain search.
        assert MARK not in str(pq.read_table(path).to_pylist()).lower(), path


def test_no_word_of_an_item_leaves_the_scan(tmp_path):
    items = write_jsonl(tmp_path / "secret.jsonl", ITEMS)
    corpus = corpus_of(tmp_path / "corpus", [FILLER, f"{FILLER} {SECRET}\nA. {MARK} one\n"])
    out = tmp_path / "out"
    options = ("--no-text", "--policy", POLICIES)
    plain = run_scan(corpus, items, out, *options)
    assert plain.returncode == 0, plain.stderr
    assert_silent(out, plain)
    assert_silent(out, run_scan(corpus, items, out, *options, "--overwrite", "--json", "--debug"))
    report = load_report(out)
    assert report.run["parameters"]["keep_text"] is False
    assert any(one.flagged for one in report)


def test_show_says_kindly_that_the_texts_are_not_there(tmp_path):
    items = write_jsonl(tmp_path / "secret.jsonl", ITEMS)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    out = tmp_path / "out"
    run_scan(corpus, items, out, "--no-text")
    shown = contam_here("show", out, "s2")
    assert shown.returncode == 0
    assert "texts were kept out of this result" in shown.stdout
    assert_silent(
        out,
        shown,
        contam_here("show", out, "--documents", "5"),
        contam_here("show", out, "s2", "--json"),
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"{MARK} first question,one\n{MARK} second,two\n"),
        ("b.csv", f"{MARK} first,one,two,three\n{MARK} second,one\n"),
        ("c.csv", f'question,answer\n"{MARK} open,one\n'),
        ("d.jsonl", json.dumps({"question": SECRET, "choices": [f"{MARK} a", "b"], "label": MARK})),
        ("e.jsonl", json.dumps({"question": SECRET, "choices": f"['{MARK}"})),
        ("f.jsonl", json.dumps({"question": SECRET, "choices": f"{MARK}, b"})),
        ("g.jsonl", json.dumps({"question": {MARK: 1}})),
        ("h.jsonl", json.dumps({"question": SECRET, "answer": {MARK: 1}})),
        ("i.jsonl", json.dumps({f"{MARK} what": 1})),
        ("j.jsonl", f'{{"question": "{SECRET}'),
        ("k.jsonl", f'{{"id":1,"question":"{SECRET}"}}\n{{"id":1,"question":"{MARK}"}}'),
        ("l.jsonl", json.dumps({"id": MARK, "question": "x"}) + "\n" + json.dumps({"id": MARK, "question": "y"})),
        ("m.jsonl", json.dumps({"question": SECRET, "choices": ["a", "b"], "answer_index": MARK})),
        ("n.tsv", f"{MARK} it's \"quoted\" what\tone\ttwo\n"),
    ],
)  # fmt: skip
def test_errors_about_a_secret_benchmark_do_not_quote_it(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    for options in ((), ("--debug", "--overwrite")):
        process = run_scan(corpus, path, tmp_path / "out", "--no-text", *options)
        assert MARK not in (process.stdout + process.stderr).lower(), process.stderr
        if process.returncode:
            assert name in process.stderr
            assert not (tmp_path / "out").exists()
        else:
            assert_silent(tmp_path / "out", process)
