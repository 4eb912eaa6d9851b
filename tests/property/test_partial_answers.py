"""Parts of a corpus, searched anywhere and merged in any order, give the bytes of one scan."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import time
from typing import TYPE_CHECKING

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.corpus.batches import read_chunk
from contam.detect import partial as partials
from contam.detect.chunk_scan import scan_chunk, scan_chunks
from contam.detect.judge import finish_scan
from contam.detect.match.matching import matcher_of
from contam.detect.parameters import ScanParameters
from contam.detect.partial import Partial, question_of
from contam.detect.plan import make_plan
from contam.detect.scan import Corpus
from contam.errors import UsageError
from contam.kernels.document import scan_batch
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import ALL_POLICIES, folder, write_items, write_shard

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")


def opened(corpus: str, items: str, policies=ALL_POLICIES):
    plan = make_plan([items], ScanParameters(policies=policies, max_evidence=2))
    return plan, Corpus.open([corpus], None)


def search(corpus: str, items: str, numbers: list[int], file: str) -> None:
    """What a process of its own does with its part of the units."""
    plan, shards = opened(corpus, items)
    part = scan_chunks(plan, shards, workers=1, chunks=[shards.chunks[n] for n in numbers])
    with open(file, "wb") as out:  # noqa: PTH123 - a name goes to another process
        pickle.dump(part.answer(question_of(plan, shards)), out)


def published(result: contam.ScanResult, out: Path) -> dict:
    contam.write_report(result, out, overwrite=True)
    run = json.loads((out / "run.json").read_bytes())
    del run["timings"]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


def merged(corpus: str, items: str, answers: list, out: Path) -> dict:
    plan, shards = opened(corpus, items)
    whole = Partial.start(plan, shards)
    for answer in answers:
        whole.take(answer, question_of(plan, shards))
    return published(finish_scan(plan, shards, whole, workers=1, started=time.time()), out)


def in_one(corpus: str, items: str, out: Path) -> dict:
    result = contam.scan(corpus, items, policies=ALL_POLICIES, max_evidence=2, workers=1)
    return published(result, out)


def written(home: Path, world) -> tuple[str, str]:
    rows, texts = world
    for number in range(2):
        write_shard(home / "corpus" / f"part-{number}.parquet", [*texts, None, *texts[::-1]])
    return str(home / "corpus"), str(write_items(home / "bench.jsonl", rows))


@pytest.mark.slow
@given(worlds, st.data())
@few
def test_any_split_in_any_order_gives_the_bytes_of_one_scan(world, more):
    with folder() as home:
        corpus, items = written(home, world)
        plan, shards = opened(corpus, items)
        who = more.draw(st.lists(st.integers(0, 3), min_size=len(shards.chunks), max_size=99))
        answers = []
        for part in more.draw(st.permutations(range(4))):
            own = [chunk for chunk, at in zip(shards.chunks, who, strict=False) if at == part]
            found = scan_chunks(plan, shards, workers=1, chunks=own)
            answers.append(pickle.loads(pickle.dumps(found.answer(question_of(plan, shards)))))  # noqa: S301 - our own
        assert merged(corpus, items, answers, home / "a") == in_one(corpus, items, home / "b")


@pytest.fixture
def world(tmp_path):
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(5)
    ]
    return written(tmp_path, (rows, [row["question"] for row in rows]))


@pytest.mark.slow
def test_parts_of_other_processes_are_merged_from_files(world, tmp_path):
    corpus, items = world
    n = len(opened(corpus, items)[1].chunks)
    files = [str(tmp_path / f"part{k}") for k in range(2)]
    context = multiprocessing.get_context("spawn")
    for k, file in enumerate(files):
        process = context.Process(target=search, args=(corpus, items, [*range(k, n, 2)], file))
        process.start()
        process.join()
        assert process.exitcode == 0
    answers = []
    for file in reversed(files):
        with open(file, "rb") as found:  # noqa: PTH123 - as it was written
            answers.append(pickle.load(found))  # noqa: S301 - our own
    assert merged(corpus, items, answers, tmp_path / "a") == in_one(corpus, items, tmp_path / "b")


def spoilt(array: np.ndarray) -> np.ndarray:
    """The same values as a way through files may leave them: read-only, and in another order."""
    found = np.asfortranarray(array)
    found.setflags(write=False)
    return found


def test_kernels_take_what_was_merged_without_compiling_anew(world):
    plan, shards = opened(*world, policies=("contam",))
    first, rest = shards.chunks[0], shards.chunks[1:]
    answer = scan_chunks(plan, shards, workers=1, chunks=rest).answer(question_of(plan, shards))
    for one in answer.collected:
        object.__setattr__(one, "runs", spoilt(one.runs))
        for table in (one.matches, one.pieces, *(count.best for count in one.counts)):
            for name in table.__dataclass_fields__:
                object.__setattr__(table, name, spoilt(getattr(table, name)))
    whole = Partial.start(plan, shards)
    (collection,) = whole.collections
    before = numba.typeof(collection.longest_at)
    matchers = [matcher_of(view) for view in plan.views]
    batches = [*read_chunk(first, shards.shards, shards.selections)]
    scan_chunk(shards, first, batches, matchers, whole)
    compiled = list(scan_batch.signatures)
    whole.take(answer, question_of(plan, shards))
    assert numba.typeof(collection.longest_at) == before
    scan_chunk(shards, first, batches, matchers, Partial([collection], whole.read))
    assert list(scan_batch.signatures) == compiled


def test_a_part_that_is_merged_twice_is_refused(world):
    plan, shards = opened(*world)
    answer = scan_chunks(plan, shards, workers=1, chunks=shards.chunks[:1]).answer(
        question_of(plan, shards)
    )
    whole = Partial.start(plan, shards)
    whole.take(answer, question_of(plan, shards))
    with pytest.raises(UsageError, match="repeats 1"):
        whole.take(answer, question_of(plan, shards))


def test_a_missing_part_leaves_nothing_clean(world):
    plan, shards = opened(*world)
    whole = Partial.start(plan, shards)
    found = scan_chunks(plan, shards, workers=1, chunks=shards.chunks[1:])
    whole.take(found.answer(question_of(plan, shards)), question_of(plan, shards))
    result = finish_scan(plan, shards, whole, workers=1, started=time.time())
    assert not result.coverage["complete"]
    assert "clean" not in {verdict.label for verdict in result}


@pytest.mark.parametrize(
    "change",
    [
        {"policies": ("contam", "gpt3-test")},
        {"policies": ("contam",), "max_evidence": 3},
        {"policies": ("contam",), "min_run": 9},
    ],
)
def test_an_answer_to_another_question_is_refused(world, change):
    corpus, items = world
    shards = Corpus.open([corpus], None)
    mine = make_plan([items], ScanParameters(policies=("contam",)))
    other = make_plan([items], ScanParameters(**change))
    answer = scan_chunks(other, shards, workers=1).answer(question_of(other, shards))
    with pytest.raises(UsageError, match="not of this corpus"):
        Partial.start(mine, shards).take(answer, question_of(mine, shards))


def test_an_answer_of_another_state_of_the_corpus_is_refused(world, tmp_path):
    corpus, items = world
    plan, before = opened(corpus, items)
    answer = scan_chunks(plan, before, workers=1, chunks=before.chunks).answer(
        question_of(plan, before)
    )
    write_shard(tmp_path / "corpus" / "part-1.parquet", ["a text of another day"] * 5)
    plan, after = opened(corpus, items)
    with pytest.raises(UsageError, match="not of this corpus"):
        Partial.start(plan, after).take(answer, question_of(plan, after))


@pytest.mark.parametrize("n_items", [0, 1, 2, 5])
def test_a_question_is_the_same_text_in_pieces(monkeypatch, n_items):
    monkeypatch.setattr(partials, "_ROWS", 2)
    items = [["quiz", "", f"q{n}, \u00e9"] for n in range(n_items)]
    pieces = partials._json_pieces({"versions": ["1"], "items": iter(items), "every_hit": True})
    assert "".join(pieces) == json.dumps({"versions": ["1"], "items": items, "every_hit": True})
