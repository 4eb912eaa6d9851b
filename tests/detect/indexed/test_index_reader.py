"""One open index, many questions: at once from several threads, and only until a deadline."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import contam
from contam.detect.indexed.index_reader import open_index
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import search
from contam.detect.match.workers import Deadline, DeadlinePassed
from contam.detect.plan import ScanParameters, make_plan
from contam.errors import ASK_STORE_LATER, ShardError, UsageError
from contam.index.build import build
from contam.index.change import add, retire
from contam.index.recipe import load_recipe
from tests.detect.indexed.indexes import make

FIXTURES = Path(__file__).parents[3] / "bench_fixtures"
ITEMS = sorted((FIXTURES / "items").glob("*.jsonl"))
POLICIES = ("contam", "openr1-8")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return make(FIXTURES / "corpus", tmp_path_factory.mktemp("index") / "whole")


@pytest.fixture(scope="module")
def items(home) -> list[contam.BenchItem]:
    result = contam.query(home, ITEMS, workers=1)
    flagged = {verdict.item_id for verdict in result.flagged()}
    every = result.items_in_order
    found = [item for item in every if item.item_id in flagged]
    return found[:12] + [item for item in every if item.item_id not in flagged][:12]


def said(result: contam.ScanResult) -> str:
    run = {name: value for name, value in result.run.items() if name != "timings"}
    tables = [result.verdicts, result.evidence, result.items]
    return json.dumps([[table.to_pylist() for table in tables], run])


@pytest.mark.slow
def test_threads_that_ask_one_reader_at_once_get_what_one_alone_gets(home, items):
    alone = [said(contam.open_index(home).check(item, policies=POLICIES)) for item in items]
    reader = contam.open_index(home)
    start = threading.Barrier(4)

    def ask(thread: int) -> dict[int, str]:
        start.wait()
        order = [(i + 5 * thread) % len(items) for i in range(len(items))]
        return {i: said(reader.check(items[i], policies=POLICIES)) for i in order}

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(ask, range(4)):
            assert [found[i] for i in range(len(items))] == alone


def test_of_shards_that_fail_at_once_none_is_forgotten(home):
    opened = IndexSet.open(home)
    n = len(opened.names)
    start = threading.Barrier(n)

    def fail(number: int) -> None:
        start.wait()
        opened.fail(number, ShardError("it is gone", shard=opened.names[number]))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(n) as pool:
            list(pool.map(fail, range(n)))
    finally:
        sys.setswitchinterval(before)
    assert {failure.shard for failure in opened.coverage.failures} == set(range(n))
    assert n > 1


@pytest.mark.parametrize("altered", [False, True])
def test_a_shard_that_goes_under_an_open_index_changes_the_answer_once(tmp_path, items, altered):
    corpus = shutil.copytree(FIXTURES / "corpus", tmp_path / "corpus")
    home = make(corpus, tmp_path / "index")
    reader = contam.open_index(home)
    before = said(reader.check(items, policies=POLICIES))
    path = min(corpus.rglob("*.parquet"))
    if altered:
        os.truncate(path, path.stat().st_size - 1)
    else:
        path.unlink()
    after = said(reader.check(items, policies=POLICIES))
    assert after != before
    assert said(reader.check(items, policies=POLICIES)) == after
    assert said(contam.open_index(home).check(items, policies=POLICIES)) == after
    assert after == said(reader.check(items, policies=POLICIES, deadline=math.inf))


@pytest.mark.parametrize("passes", [True, False])
def test_a_shard_whose_store_did_not_answer_is_asked_for_again(home, items, monkeypatch, passes):
    reader = contam.open_index(home)
    whole = said(reader.check(items, policies=POLICIES))
    opened = reader._opened
    texts, check = opened.rows.texts, opened.rows.check
    hint = ASK_STORE_LATER if passes else "repair it"

    def refuse(number, *_):
        raise ShardError("{shard}: no answer", shard=opened.names[number], hint=hint)

    monkeypatch.setattr(opened.rows, "texts", refuse)
    lost = reader.check(items, policies=POLICIES)
    assert not lost.complete
    assert not {verdict.label for verdict in lost} & {"clean", "contaminated"}
    monkeypatch.setattr(opened.rows, "texts", texts)
    # Not at once: each question would wait for the store.
    assert not reader.check(items, policies=POLICIES).complete
    monkeypatch.setattr(opened.rows, "check", refuse)
    opened.look_at = 0.0
    assert not reader.check(items, policies=POLICIES).complete
    monkeypatch.setattr(opened.rows, "check", check)
    opened.look_at = 0.0
    again = reader.check(items, policies=POLICIES)
    assert (said(again) == whole) == again.complete == passes


def test_past_its_deadline_a_question_is_answered_by_nothing_but_that(home, items):
    reader = contam.open_index(home)
    late = reader.check(items, policies=POLICIES, deadline=0.0)
    assert {(one.label, one.score, one.reason) for one in late} == {
        ("not_checkable", None, "deadline")
    }
    assert len(late) == len(items) * len(POLICIES)
    assert late.evidence.to_pylist() == []
    assert late.run["index"]["documents_read"] == 0
    after = reader.check(items, policies=POLICIES)
    assert said(after) == said(contam.open_index(home).check(items, policies=POLICIES))


@pytest.mark.parametrize("workers", [None, 2])
def test_what_takes_too_many_steps_for_an_answer_in_time_is_late_and_never_clean(
    home, items, monkeypatch, workers
):
    monkeypatch.setattr("contam.detect.match.workers.MOST_STEPS", 1000)
    far = math.inf
    if workers is None:
        reader = contam.open_index(home)
        late, whole = reader.check(items, deadline=far), reader.check(items)
    else:
        late = contam.query(home, ITEMS, workers=workers, deadline=far)
        whole = contam.query(home, ITEMS, workers=workers)
    assert {(one.label, one.reason) for one in late} == {("not_checkable", "deadline")}
    assert {one.label for one in whole} >= {"contaminated"}


def test_a_whole_query_keeps_a_deadline_too(home):
    late = contam.query(home, ITEMS[:1], workers=1, deadline=0.0)
    assert {(one.label, one.reason) for one in late} == {("not_checkable", "deadline")}


class Countdown(Deadline):
    """A deadline that passes when it was looked at so many times."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        super().__init__()
        object.__setattr__(self, "left", left)

    def check(self) -> None:
        object.__setattr__(self, "left", self.left - 1)
        if self.left < 0:
            raise DeadlinePassed


@pytest.mark.parametrize("keep_rows", [True, False])
def test_wherever_a_search_is_when_time_is_over_it_stops_and_leaves_the_index_as_it_was(
    home, keep_rows
):
    opened = IndexSet.open(home)
    plan = make_plan(ITEMS, ScanParameters())
    whole = search(opened, plan, keep_rows=keep_rows)
    for left in range(100):
        try:
            search(opened, plan, keep_rows=keep_rows, deadline=Countdown(left))
        except DeadlinePassed:
            continue
        break
    assert 2 < left < 99
    again = search(opened, plan, keep_rows=keep_rows)
    assert again.wanted.row.tolist() == whole.wanted.row.tolist()
    assert again.collection.totals(0).n_documents.tolist() == (
        whole.collection.totals(0).n_documents.tolist()
    )


# ------------------------------------------------------------------------------------------ phrases


WORDS = ("lantern", "harbour", "quay", "moth")


def written(folder, name, documents):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))


def texts(rng, n):
    """Short documents of few words, in which runs of five come back."""
    return [" ".join(rng.choice(WORDS, rng.integers(3, 40))) for _ in range(n)]


@pytest.mark.parametrize("cap", [2, 5, 512])
def test_a_phrase_is_counted_as_reading_every_document_counts_it(tmp_path, cap):
    rng = np.random.default_rng(cap)
    shards = {f"{at}.jsonl": texts(rng, 30) for at in range(3)}
    other = texts(rng, 20)
    written(tmp_path / "one", "0.jsonl", shards["0.jsonl"])
    recipe = replace(load_recipe("complete"), cap=cap)
    build(tmp_path / "one", tmp_path / "first", recipe, workers=1)
    for name in ("1.jsonl", "2.jsonl"):
        written(tmp_path / "one", name, shards[name])
        add(tmp_path / "first", tmp_path / "one", workers=1)
    gone = ("1.jsonl", 4)
    retire(tmp_path / "first", documents=[":".join(map(str, gone))])
    written(tmp_path / "two", "far.jsonl", other)
    build(tmp_path / "two", tmp_path / "second", recipe, workers=1)
    reader = open_index([tmp_path / "first", tmp_path / "second"])
    held = {
        (name, row): text.split()
        for name, own in {**shards, "far.jsonl": other}.items()
        for row, text in enumerate(own)
        if (name, row) != gone
    }
    n_exact = 0
    for _ in range(60):
        phrase = list(rng.choice(WORDS, rng.integers(5, 9)))
        wanted = {
            place
            for place, words in held.items()
            if any(words[at : at + len(phrase)] == phrase for at in range(len(words)))
        }
        found = reader.count(", ".join(phrase).upper())
        assert set(found.documents) <= wanted
        assert not found.exact or set(found.documents) == wanted
        n_exact += found.exact
    assert n_exact == 60 if cap == 512 else n_exact > 0


def test_a_document_of_two_indexes_is_counted_once(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"] * 3)
    for name, gone in (("first", 0), ("second", 1)):
        build(tmp_path / "one", tmp_path / name, load_recipe("complete"), workers=1)
        retire(tmp_path / name, documents=[f"0.jsonl:{gone}"])
    found = open_index([tmp_path / "first", tmp_path / "second"]).count("a lantern over the quay")
    assert found.exact
    assert sorted(row for _, row in found.documents) == [0, 1, 2]


def test_a_phrase_that_cannot_be_counted_is_refused(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"])
    build(tmp_path / "one", tmp_path / "whole", load_recipe("complete"), workers=1)
    build(tmp_path / "one", tmp_path / "small", load_recipe("compact"), workers=1)
    reader = open_index(tmp_path / "whole")
    assert len(reader.count("a lantern over the quay").documents) == 1
    with pytest.raises(UsageError):
        reader.count("a lantern over the")
    with pytest.raises(UsageError):
        open_index(tmp_path / "small").count("a lantern over the quay by night")


def test_documents_that_cannot_be_read_leave_a_count_open(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"])
    build(tmp_path / "one", tmp_path / "index", load_recipe("complete"), workers=1)
    reader = open_index(tmp_path / "index")
    (tmp_path / "one" / "0.jsonl").unlink()
    found = reader.count("a lantern over the quay")
    assert (found.documents, found.exact) == ((), False)


def test_counts_are_said_to_be_least_ones_where_the_index_kept_some_documents_of_each_gram(
    tmp_path,
):
    question = (
        "how many lanterns does the keeper of the northern harbour light before the fog comes"
    )
    rows = [f"{question}? note {at} says more about copper kettle {at}" for at in range(12)]
    written(tmp_path / "corpus", "0.jsonl", rows)
    item = contam.BenchItem(benchmark="mine", split="", item_id="1", question=question)
    build(
        tmp_path / "corpus", tmp_path / "index", replace(load_recipe("complete"), cap=4), workers=1
    )
    (asked,) = open_index(tmp_path / "index").check(item)
    written(tmp_path / "few", "0.jsonl", rows[: asked.n_documents])
    (tmp_path / "mine.jsonl").write_text(json.dumps({"id": "1", "question": question}))
    (of_few,) = contam.scan(tmp_path / "few", tmp_path / "mine.jsonl", workers=1)
    assert (asked.label, asked.n_documents) == (of_few.label, of_few.n_documents)
    assert 0 < asked.n_documents < len(rows)
    assert asked.reason != of_few.reason
