"""An index answers as a scan does, and says so where it cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import contam
from contam.detect.indexed import indexes as indexed
from contam.errors import IndexMismatchError, UsageError
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.detect.indexed.indexes import make, retire
from tests.text.tokenizer_files import save_tokenizer

FIXTURES = Path(__file__).parents[2] / "bench_fixtures"
ITEMS = sorted((FIXTURES / "items").glob("*.jsonl"))
QUOTED = "the slow brown lantern keeper counted seventeen copper kettles before the harbour froze"
OTHER = "nobody ever asked the glass blower why every marble violin in the orchard was hollow"


@pytest.fixture(scope="module")
def scanned() -> contam.ScanResult:
    return contam.scan(
        FIXTURES / "corpus", ITEMS, policies=["contam", "openr1-8", "lmeval-13"], max_evidence=1000
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return make(FIXTURES / "corpus", tmp_path_factory.mktemp("index") / "whole")


@pytest.fixture
def shards(tmp_path) -> Path:
    """Two shards: a quoted text in both, other text around it."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    rows = {
        "part-1.jsonl": [OTHER, f"once {QUOTED} again", "short"],
        "part-2.jsonl": ["plain words only", f"{QUOTED} and later {QUOTED}"],
    }
    for name, texts in rows.items():
        lines = [json.dumps({"text": text, "url": f"u/{name}/{n}"}) for n, text in enumerate(texts)]
        (corpus / name).write_text("\n".join(lines) + "\n")
    return corpus


@pytest.fixture
def bench(tmp_path) -> Path:
    path = tmp_path / "bench.jsonl"
    rows = [
        {"id": "found", "question": QUOTED},
        {
            "id": "absent",
            "question": "why does a penguin borrow nineteen umbrellas from tall foxes",
        },
        {"id": "short", "question": "who wrote this"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def labels(result: contam.ScanResult) -> dict[str, str]:
    return {verdict.item_id: verdict.label for verdict in result}


def test_workers_and_open_readers_give_the_same_answer(whole):
    one = contam.query(whole, ITEMS, workers=1)
    two = contam.query(whole, ITEMS, workers=3)
    reader = contam.open_index(whole)
    again = reader.check(one.items_in_order)
    for other in (two, again, reader.check(one.items_in_order)):
        assert other.verdicts.equals(one.verdicts)
        assert other.evidence.equals(one.evidence)
        assert other.run["index"] == one.run["index"]


def test_a_question_below_the_guarantee_is_not_called_clean(shards, bench, tmp_path):
    every = {"found": "contaminated", "absent": "clean"}
    result = contam.query(make(shards, tmp_path / "i", stride=4), bench)
    assert labels(result) == {**every, "short": "not_checkable"}
    # Of what is shorter than the runs that a scan looks for, an index of those misses nothing.
    result = contam.query(make(shards, tmp_path / "whole"), bench)
    assert labels(result) == {**every, "short": labels(contam.scan(shards, bench))["short"]}


def test_shards_that_moved_are_found_by_their_digests(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i")
    before = contam.query(index, bench)
    shutil.move(shards, tmp_path / "elsewhere")
    moved = contam.query(index, bench, corpus=tmp_path / "elsewhere")
    assert moved.complete
    assert moved.evidence.equals(before.evidence)
    assert moved.verdicts.equals(before.verdicts)


def test_nothing_is_clean_over_shards_that_are_gone(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i")
    shutil.rmtree(shards)
    result = contam.query(index, bench)
    assert result.exit_code() == 4
    assert set(labels(result).values()) == {"not_checkable"}
    assert not result.evidence.num_rows


def test_what_may_be_in_documents_that_are_gone_is_not_cleared_by_allowing_gaps(shards, tmp_path):
    long = " ".join([QUOTED, *(f"word{n}" for n in range(60))])
    items = tmp_path / "items.jsonl"
    rows = [("found", QUOTED), ("long", long), ("absent", " ".join(f"other{n}" for n in range(20)))]
    items.write_text("".join(json.dumps({"id": i, "question": q}) + "\n" for i, q in rows))
    for home, changes in (("i", {}), ("sampled", {"stride": 4})):
        make(shards, tmp_path / home, **changes)
    shutil.rmtree(shards)
    for home in ("i", "sampled"):
        found = labels(contam.query(tmp_path / home, items, allow_missing=True))
        assert found == {"found": "not_checkable", "long": "not_checkable", "absent": "clean"}


def test_decon_reads_the_documents_of_an_index(shards, tmp_path):
    items = tmp_path / "items.jsonl"
    questions = [f"{QUOTED} {OTHER}", f"{OTHER} {QUOTED}"]
    items.write_text(
        "".join(json.dumps({"id": n, "question": q}) + "\n" for n, q in enumerate(questions))
    )
    with (shards / "part-2.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"text": f"a copy: {questions[0]}!"}) + "\n")
    index = make(shards, tmp_path / "i")
    asked = contam.query(index, items, policies=["decon-default"])
    scanned = contam.scan(shards, items, policies=["decon-default"])
    assert labels(asked) == labels(scanned) == {"0": "contaminated", "1": "clean"}
    assert [v.score for v in asked] == [v.score for v in scanned]


def test_a_changed_shard_is_named_and_nothing_is_clean_over_it(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i")
    path = shards / "part-1.jsonl"
    path.write_text(path.read_text().replace("glass", "grass"))
    result = contam.query(index, bench)
    (failure,) = result.coverage["shards_failed"]
    assert failure["shard"] == "part-1.jsonl"
    assert "changed" in failure["reason"]
    assert labels(result)["absent"] == "not_checkable"
    assert {row["shard"] for row in result.evidence.to_pylist()} == {"part-2.jsonl"}
    assert labels(contam.query(index, bench, allow_missing=True))["absent"] == "clean"


def test_a_text_that_changed_under_an_equal_digest_is_noticed(tmp_path, bench, monkeypatch):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    path = corpus / "one.jsonl"
    path.write_text(json.dumps({"text": QUOTED}) + "\n")
    index = make(corpus, tmp_path / "i")
    path.write_text(json.dumps({"text": QUOTED.replace("slow", "fast")}) + "\n")
    real = indexed.IndexedShard
    blind = {"digest": None, "change_since": None}
    monkeypatch.setattr(indexed, "IndexedShard", lambda **fields: real(**{**fields, **blind}))
    result = contam.query(index, bench)
    assert "row 0 changed" in result.coverage["shards_failed"][0]["reason"]
    assert labels(result)["found"] == "not_checkable"


def test_retired_documents_are_in_no_answer_and_no_count(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i")
    retire(index, [("part-1.jsonl", 1)])
    result = contam.query(index, bench)
    assert {row["shard"] for row in result.evidence.to_pylist()} == {"part-2.jsonl"}
    (verdict,) = (verdict for verdict in result if verdict.item_id == "found")
    assert verdict.n_documents == 1
    retire(index, [("part-1.jsonl", 1), ("part-2.jsonl", 1)])
    assert labels(contam.query(index, bench))["found"] == "clean"


def test_two_indexes_answer_as_one(shards, bench, tmp_path):
    whole = contam.query(make(shards, tmp_path / "whole"), bench)
    first = make(shards / "part-1.jsonl", tmp_path / "first")
    second = make(shards / "part-2.jsonl", tmp_path / "second")
    for indexes in ([first, second], [second, first], f"{first},{second}"):
        both = contam.query(indexes, bench)
        assert both.verdicts.equals(whole.verdicts)
        assert both.evidence.equals(whole.evidence)
        assert both.coverage == whole.coverage


def test_a_file_that_two_indexes_hold_counts_once(shards, bench, tmp_path):
    whole = make(shards, tmp_path / "whole")
    part = make(shards / "part-1.jsonl", tmp_path / "part")
    assert contam.query([whole, part], bench).verdicts.equals(contam.query(whole, bench).verdicts)


def test_a_document_counts_until_all_indexes_that_hold_it_retire_it(shards, bench, tmp_path):
    first, second = (make(shards, tmp_path / name) for name in ("first", "second"))
    retire(first, [("part-1.jsonl", 1), ("part-2.jsonl", 1)])
    for both in ([first, second], [second, first]):
        (found, *_) = (one for one in contam.query(both, bench) if one.item_id == "found")
        assert (found.label, found.n_documents) == ("contaminated", 2)
    retire(second, [("part-1.jsonl", 1), ("part-2.jsonl", 1)])
    assert labels(contam.query([first, second], bench))["found"] == "clean"


def test_indexes_of_different_recipes_are_refused_together(shards, bench, tmp_path):
    first = make(shards, tmp_path / "first")
    second = make(shards, tmp_path / "second", stride=3)
    with pytest.raises(IndexMismatchError, match="stride is 1 in one and 3"):
        contam.query([first, second], bench)
    with pytest.raises(UsageError, match="twice"):
        contam.query([first, first], bench)


def test_policies_that_need_more_than_the_index_keeps_are_refused_by_name(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i", stride=4)
    with pytest.raises(IndexMismatchError) as caught:
        contam.query(index, bench, policies=["contam", "decon-default", "igmini-50"])
    assert "decon-default counts runs of 5" in caught.value.message
    assert "igmini-50 counts letters and digits" in caught.value.message
    assert "--policy contam alone" in caught.value.hint
    assert "--recipe chars" in caught.value.hint
    assert "--recipe complete" in caught.value.hint


def test_an_index_with_longer_runs_flags_and_clears_nothing(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i", gram=6, stride=8)
    result = contam.query(index, bench)
    assert labels(result)["found"] == "contaminated"
    assert labels(result)["absent"] == "not_checkable"
    with pytest.raises(IndexMismatchError, match="openr1-8"):
        contam.query(index, bench, policies=["openr1-8"])
    assert labels(contam.query(index, bench, policies=["lmeval-13"]))["absent"] == "not_checkable"


def test_an_index_of_letters_answers_the_definitions_that_count_them(shards, bench, tmp_path):
    index = make(shards, tmp_path / "i", unit="char", gram=24, stride=27)
    policies = ["gpt4-50char", "igmini-50"]
    asked = contam.query(index, bench, policies=policies)
    scanned = contam.scan(shards, bench, policies=policies)
    mine = {(v.item_id, v.policy): v.label for v in asked if v.item_id != "short"}
    theirs = {(v.item_id, v.policy): v.label for v in scanned if v.item_id != "short"}
    assert mine == theirs
    with pytest.raises(IndexMismatchError, match="contam counts words"):
        contam.query(index, bench)


def test_an_index_of_a_tokenizer_does_not_answer_who_finds_documents_by_words(
    shards, bench, tmp_path
):
    index = tmp_path / "i"
    build(shards, index, load_recipe("bpe", tokenizer=Path(save_tokenizer(tmp_path, "byte_bpe"))))
    assert labels(contam.query(index, bench))["found"] == "contaminated"
    for policies in (["decon-default"], ["contam", "decon-default"]):
        with pytest.raises(IndexMismatchError, match="decon-default finds"):
            contam.query(index, bench, policies=policies)
        with pytest.raises(IndexMismatchError, match="decon-default finds"):
            contam.open_index(index).check(QUOTED, policies=policies)


def test_a_capped_gram_puts_the_items_that_hang_on_it_in_doubt(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = [json.dumps({"text": f"{QUOTED} number {n}"}) for n in range(30)]
    (corpus / "one.jsonl").write_text("\n".join(lines) + "\n")
    items = tmp_path / "items.jsonl"
    rows = [
        {"id": "quoted", "question": QUOTED},
        {"id": "partly", "question": " ".join([*QUOTED.split()[:9], "xylophone"] * 1)},
        {"id": "other", "question": OTHER},
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = make(corpus, tmp_path / "i", cap=4)
    result = contam.query(index, items, policies=["contam", "lmeval-13"])
    assert result.run["index"]["capped"]["grams"] > 0
    found = {(v.item_id, v.policy): v for v in result}
    assert found["quoted", "contam"].label == "contaminated"
    assert found["quoted", "contam"].n_documents < 30
    assert found["other", "contam"].label == "clean"
    retired = [("one.jsonl", row["row"]) for row in result.evidence.to_pylist()]
    retire(index, retired)
    doubted = {v.item_id: v for v in contam.query(index, items)}
    assert doubted["quoted"].label == "not_checkable"
    assert "more documents than the index keeps" in doubted["quoted"].reason


def test_a_reader_notices_that_a_shard_changed_while_it_was_open(shards, tmp_path):
    reader = contam.open_index(make(shards, tmp_path / "i"))
    assert reader.check(QUOTED).complete
    path = shards / "part-1.jsonl"
    path.write_text(path.read_text().replace("glass", "grass"))
    assert not reader.check(QUOTED).complete
