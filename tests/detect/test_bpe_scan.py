"""Scans whose unit is a tokenizer file: the same answers, the same exact spans."""

import hashlib
import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from tests.text.tokenizer_files import save_tokenizer, sentences

ITEMS = [
    "A ferry carries nineteen lorries across the sound every ninety minutes; how many cross by noon?",
    "Wer hat die Brücke über den Möwenfluss zuerst gestrichen, und welche Farbe wählte der Maler?",
    "Сколько яблок осталось у садовника, если он раздал соседям сорок две корзины поровну?",
    "果园里一共有三百二十棵苹果树，农夫每天修剪十六棵，请问需要多少天才能全部修剪完？",
    "Which of 🤗 🦊 🐙 comes third when the row 🐙🤗🦊🐙 is read backwards twice by the clerk?",
    "An item that stands nowhere: the velvet turbine hums its quarterly sonnets under brass umbrellas.",
]
PLANTED = range(5)


def documents():
    filler = sentences()
    texts = []
    for at, item in enumerate(ITEMS[:5]):
        before = " ".join(filler[7 * at : 7 * at + 6])
        after = "\n\n".join(filler[100 + 5 * at : 104 + 5 * at])
        texts += [before, f"{before} ☃ 前言 {item}\n{after}"]
    return [*texts, None, "", " \n ", ITEMS[0].replace(" ", "\n"), ITEMS[3]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe_scan")
    texts = documents()
    (folder / "corpus").mkdir()
    half = len(texts) // 2
    for name, part in (("a", texts[:half]), ("b", texts[half:])):
        pq.write_table(
            pa.table({"text": pa.array(part, pa.string())}),
            folder / "corpus" / f"{name}.parquet",
            row_group_size=3,
        )
    rows = [{"id": f"i{at}", "question": item} for at, item in enumerate(ITEMS)]
    (folder / "quiz.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def unit(inputs):
    return str(save_tokenizer(inputs, "byte_bpe"))


def run(inputs, unit, **options):
    return contam.scan(inputs / "corpus", inputs / "quiz.jsonl", unit=unit, **options)


def labels(result):
    return {verdict.item_id: verdict.label for verdict in result}


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece", "unigram", "space_bpe"])
def test_verbatim_items_are_found_and_spans_slice_them_out(inputs, tmp_path, kind):
    path = save_tokenizer(tmp_path, kind)
    result = run(inputs, str(path), workers=2)
    texts = documents()
    half = len(texts) // 2
    by_row = {
        ("a.parquet" if at < half else "b.parquet", at if at < half else at - half): text
        for at, text in enumerate(texts)
    }
    found = labels(result)
    assert found["i5"] == "clean"
    # What a tokenizer has no tokens for (emoji, Han) may be one unknown token: too short to judge.
    sure = {"byte_bpe": 5, "space_bpe": 5, "wordpiece": 3, "unigram": 3}[kind]
    assert [found[f"i{at}"] for at in range(sure)] == ["contaminated"] * sure
    seen = set()
    for row in result.evidence.to_pylist():
        text = by_row[row["shard"], row["row"]]
        item = ITEMS[int(row["item_id"][1:])]
        quoted = text[row["document_start"] : row["document_end"]]
        wanted = item[row["item_start"] : row["item_end"]]
        assert "".join(quoted.split()) == "".join(wanted.split())
        seen.add((row["item_id"], quoted))
    if kind == "byte_bpe":
        assert {(f"i{at}", ITEMS[at]) for at in PLANTED} <= seen


def test_two_runs_and_any_number_of_workers_agree(inputs, unit):
    runs = [run(inputs, unit, workers=workers) for workers in (1, 2, 1, 2)]
    for other in runs[1:]:
        assert other.verdicts.equals(runs[0].verdicts)
        assert other.evidence.equals(runs[0].evidence)
        assert other.items.equals(runs[0].items)


def test_the_record_names_the_tokenizer_by_its_digest(inputs, unit):
    (view, *_) = run(inputs, unit).run["parameters"]["lanes"]
    assert view["sha256"] == hashlib.sha256(Path(unit).read_bytes()).hexdigest()


def test_word_policies_run_on_the_tokens_and_letter_policies_on_letters(inputs, unit):
    result = run(inputs, unit, policies=("contam", "openr1-8", "gpt4-50char"))
    units = {view["unit"] for view in result.run["parameters"]["lanes"]}
    assert units == {unit, "char"}
    by_policy = {}
    for verdict in result:
        by_policy.setdefault(verdict.policy, {})[verdict.item_id] = verdict.label
    for policy in ("contam", "openr1-8", "gpt4-50char"):
        assert by_policy[policy]["i0"] == "contaminated"
        assert by_policy[policy]["i5"] == "clean"


def test_spans_are_the_documents_where_the_tokenizer_folds_characters(tmp_path, inputs):
    question = ITEMS[1]
    corpus = tmp_path / "corpus.jsonl"
    text = unicodedata.normalize("NFD", question)
    corpus.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    folding = save_tokenizer(tmp_path, "unigram")
    result = contam.scan(corpus, inputs / "quiz.jsonl", unit=str(folding))
    assert labels(result)["i1"] == "contaminated"
    rows = [row for row in result.evidence.to_pylist() if row["item_id"] == "i1"]
    assert rows
    for row in rows:
        quoted = text[row["document_start"] : row["document_end"]]
        assert unicodedata.normalize("NFC", quoted) == question[row["item_start"] : row["item_end"]]


def test_an_answer_next_to_its_question_is_seen(tmp_path, unit):
    row = {
        "id": "q",
        "question": "How many hives did the keeper open before the bees began to sting the visitors?",
        "choices": ["7", "9", "4", "3"],
        "answer": 0,
    }
    (tmp_path / "quiz.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    listed = "\n".join(
        f"{letter}. {choice}" for letter, choice in zip("ABCD", row["choices"], strict=True)
    )
    texts = [f"{row['question']}\n{listed}\nAnswer: A\n", f"{row['question']}\n{listed}\n"]
    for text, exposure in zip(texts, ("question+answer", "question"), strict=True):
        corpus = tmp_path / "corpus.jsonl"
        corpus.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
        [verdict] = contam.scan(corpus, tmp_path / "quiz.jsonl", unit=unit)
        assert (verdict.label, verdict.exposure) == ("contaminated", exposure)
