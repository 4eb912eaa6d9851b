"""The answer does not depend on order or workers: every byte of the outputs is the same."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

import contam
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import ALL_POLICIES, folder, full_text, scan, write_items, write_shard

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")
WORDS = [f"word{n}" for n in range(60)]
#: What may differ: how long it took, where the files lie, and what names them in another order.
TIMES = ("timings",)


def questions(n: int) -> list[dict]:
    chance = random.Random(11)
    return [
        {
            "id": f"q{k}",
            "question": f"topic{k} " + " ".join(chance.choices(WORDS, k=12)),
            "answer": chance.choice(WORDS),
        }
        for k in range(n)
    ]


def make_world(home: Path, rows: list[dict]) -> list[Path]:
    """Five shards of a few row groups with copies, halves and ties between documents."""
    chance = random.Random(12)
    shards = []
    for number in range(5):
        texts: list[str | None] = [None, ""]
        for row in rows:
            words = full_text(row).split()
            keep = chance.choice((0, 6, 9, len(words)))
            texts.append(" ".join([*chance.choices(WORDS, k=5), *words[:keep]]))
        chance.shuffle(texts)
        path = home / "corpus" / f"part-{number}.parquet"
        write_shard(path, texts)
        shards.append(path)
    return shards


def outputs(out: Path, corpus: list[Path], items: list[Path], **options: object) -> dict:
    options = {"policies": ALL_POLICIES, "workers": 1, "max_evidence": 3, **options}
    result = contam.scan(corpus, items, **options)
    contam.write_report(result, out, overwrite=True)
    run = json.loads((out / "run.json").read_bytes())
    for name in TIMES:
        del run[name]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


@pytest.fixture
def world(tmp_path):
    rows = questions(9)
    shards = make_world(tmp_path, rows)
    files = [write_items(tmp_path / f"bench{n}.jsonl", rows[3 * n : 3 * n + 3]) for n in range(3)]
    return shards, files


def test_the_number_of_workers_changes_no_byte(world, tmp_path):
    shards, files = world
    one = outputs(tmp_path / "one", shards, files)
    for workers in (1, 2, 5):
        assert outputs(tmp_path / "more", shards, files, workers=workers) == one


def test_the_order_in_which_files_are_given_changes_no_byte(world, tmp_path):
    shards, files = world
    as_listed = outputs(tmp_path / "one", shards, files)
    for seed in range(3):
        chance = random.Random(seed)
        mixed = chance.sample(shards, len(shards))
        items = chance.sample(files, len(files))
        assert outputs(tmp_path / "other", mixed, items, workers=2) == as_listed


def test_the_order_of_items_in_a_file_changes_no_table(world, tmp_path):
    shards, _ = world
    rows = questions(9)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = outputs(tmp_path / "one", shards, [write_items(tmp_path / "a" / "bench.jsonl", rows)])
    back = outputs(
        tmp_path / "two", shards, [write_items(tmp_path / "b" / "bench.jsonl", rows[::-1])]
    )
    for name in TABLES:
        assert back[name] == one[name]


def facts(result: contam.ScanResult) -> list[tuple]:
    """All that is said of the items, but where the documents stand."""
    return [
        (
            *(v.item_id, v.policy, v.label, v.score, v.exposure, v.kind),
            *(v.n_documents, v.n_occurrences, v.reason),
        )
        for v in result
    ]


@given(worlds)
@few
def test_the_order_of_rows_and_their_shards_changes_no_verdict(world):
    rows, texts = world
    with folder() as home:
        items = write_items(home / "bench.jsonl", rows)
        write_shard(home / "a" / "all.parquet", texts)
        write_shard(home / "b" / "all.parquet", texts[::-1])
        for number, text in enumerate(texts):
            write_shard(home / "c" / f"part-{number}.parquet", [text])
        said = [facts(contam.scan(home / name, items, policies=ALL_POLICIES)) for name in "abc"]
    assert said[0] == said[1] == said[2]


def test_of_documents_that_score_the_same_the_one_with_the_answer_is_the_best():
    row = {"id": "q", "question": " ".join(WORDS[:14]) + "?", "answer": "saffron trellis falcon"}
    bare, solved = row["question"], full_text(row)
    for texts in ([bare, solved], [solved, bare]):
        (verdict,) = scan([row], texts)
        assert verdict.exposure == "question+answer"
        assert verdict.best_row == texts.index(solved)


def test_adding_a_shard_keeps_every_hit(world):
    shards, files = world
    options = {"policies": ALL_POLICIES, "max_evidence": 100}
    fewer = contam.scan(shards[:3], files, **options)
    more = contam.scan(shards, files, **options)
    keep = ("benchmark", "item_id", "part", "row", "document_start", "document_end")

    def evidence(result: contam.ScanResult) -> set[tuple]:
        rows = result.evidence.to_pylist()
        return {(*(row[name] for name in keep), row["document_id"]) for row in rows}

    assert evidence(fewer) <= evidence(more)
    assert len(evidence(fewer)) > 0
    for old, new in zip(fewer, more, strict=True):
        assert new.n_documents >= old.n_documents
        assert not old.flagged or new.flagged
