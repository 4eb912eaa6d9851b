"""A search that reads only new and changed shards gives the bytes of a search of all."""

from __future__ import annotations

import json
import shutil
import threading
import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.detect.chunk_scan import scan_chunks
from contam.detect.leases import kept_parts
from contam.detect.leases.kept_parts import KeptParts
from contam.detect.plan import ScanParameters, make_plan
from contam.detect.scan import Corpus, scan_opened
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import ALL_POLICIES, folder, write_items, write_shard

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")
NAMES = ("a", "b", "c", "d")


def published(result: contam.ScanResult, out: Path) -> dict:
    contam.write_report(result, out, overwrite=True)
    run = json.loads((out / "run.json").read_bytes())
    del run["timings"]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


def search(home: Path, policies=("contam",), workers: int = 2, **parameters) -> tuple[dict, tuple]:
    """What a search with parts gives, after it was compared with one without; shards by count."""
    parts = KeptParts(home / "parts")
    given = ScanParameters(policies=policies, max_evidence=2, **parameters)
    results = []
    for own in (parts, None):
        plan = make_plan([home / "bench.jsonl"], given)
        corpus = Corpus.open([home / "corpus"], None, columns=given.columns)
        result = scan_opened(corpus, plan, workers=workers, started=time.time(), parts=own)
        results.append(published(result, home / "out"))
    assert results[0] == results[1]
    return results[0], (parts.n_searched, parts.n_kept)


def labels(home: Path) -> set[str]:
    """Those of the last search."""
    return set(pq.read_table(home / "out/verdicts.parquet").column("label").to_pylist())


@pytest.fixture
def home(tmp_path):
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(4)
    ]
    for name, row in zip(NAMES, rows, strict=True):
        texts = [f"{name} {row['question']}", "nothing of it", None]
        write_shard(tmp_path / "corpus" / f"{name}.parquet", texts)
    write_items(tmp_path / "bench.jsonl", rows)
    return tmp_path


changes = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(("write", "remove", "nothing"))),
    min_size=2,
    max_size=5,
)


@pytest.mark.slow
@given(worlds, changes, st.data())
@few
def test_shards_that_come_change_and_go_in_any_order_give_the_bytes_of_a_whole_scan(
    world, steps, more
):
    rows, texts = world
    with folder() as home:
        write_items(home / "bench.jsonl", rows)
        write_shard(home / "corpus/m.parquet", [*texts, None])
        known = {}
        for name, what in [("m", "nothing"), *steps]:
            path = home / "corpus" / f"{name}.parquet"
            if what == "write":
                write_shard(path, more.draw(st.permutations([*texts, *texts[:2]])))
            elif what == "remove":
                path.unlink(missing_ok=True)
            states = {path: path.stat().st_mtime_ns for path in (home / "corpus").iterdir()}
            fresh = sum(known.get(path) != state for path, state in states.items())
            _, counted = search(home, ALL_POLICIES, more.draw(st.integers(1, 3)))
            assert counted == (fresh, len(states) - fresh)
            known = states


def test_only_what_is_new_or_changed_is_read_and_what_is_gone_leaves(home, monkeypatch):
    assert search(home)[1] == (4, 0)
    assert search(home)[1] == (0, 4)
    write_shard(home / "corpus/aa.parquet", ["new, before most of the others"])
    # The same bytes at another time: nobody looks at all of a shard to find that out.
    shutil.copyfile(home / "corpus/c.parquet", home / "c")
    shutil.copyfile(home / "c", home / "corpus/c.parquet")
    (home / "corpus/d.parquet").unlink()
    assert search(home)[1] == (2, 2)
    assert len(list((home / "parts").iterdir())) == 4
    # Pieces of a chunk each.
    monkeypatch.setattr(kept_parts, "PIECE_BYTES", 1)
    search(home)
    assert search(home)[1] == (0, 4)


@pytest.mark.parametrize("what", ["items", "policy", "columns", "versions"])
def test_another_question_is_asked_of_all_shards_anew(home, what, monkeypatch):
    search(home)
    if what == "items":
        with (home / "bench.jsonl").open("a") as file:
            file.write(json.dumps({"id": "q9", "question": "nobody asks for it"}) + "\n")
    if what == "versions":
        monkeypatch.setattr(kept_parts, "versions", lambda: {"numpy": "another"})
    more = {
        "policy": {"policies": ("gpt4-50char",)},
        "columns": {"columns": {"url": "id"}},
    }
    assert search(home, **more.get(what, {}))[1] == (4, 0)
    assert len(list((home / "parts").iterdir())) == 4


def test_a_search_that_is_stopped_is_gone_on_with(home, monkeypatch):
    written, real = [], kept_parts.write_file

    def write_file(path, data, **more):
        if len(written) == 2:
            raise KeyboardInterrupt
        real(path, data, **more)
        written.append(path)

    monkeypatch.setattr(kept_parts, "write_file", write_file)
    with pytest.raises(KeyboardInterrupt):
        search(home, workers=1)
    monkeypatch.undo()
    assert search(home, workers=1)[1] == (2, 2)


def test_a_damaged_part_is_made_again(home):
    search(home)
    parts = sorted((home / "parts").iterdir())
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    parts[1].write_bytes(b"")
    parts[2].write_bytes(parts[3].read_bytes())
    assert search(home)[1] == (3, 1)


def test_a_shard_that_cannot_be_read_is_never_kept_and_nothing_is_clean_over_it(home):
    write_items(home / "bench.jsonl", [{"id": "q", "question": "nobody ever wrote this anywhere"}])
    search(home)
    assert labels(home) == {"clean"}
    path = home / "corpus/bb.parquet"
    write_shard(path, ["some text", "more"])
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") :]
    # Only the pages are damaged: the shard is listed, and fails when it is read.
    path.write_bytes(b"PAR1".ljust(len(data) - len(footer), b"\xff") + footer)
    for _ in range(2):
        found, counted = search(home)
        assert counted == (1, 4)
        assert not found["run"]["coverage"]["complete"]
        assert labels(home) == {"not_checkable"}
    path.unlink()
    assert search(home)[1] == (0, 4)
    assert labels(home) == {"clean"}


def test_threads_that_search_shards_stop_soon(home):
    plan = make_plan([home / "bench.jsonl"], ScanParameters(policies=("contam",)))
    stop = threading.Event()
    stop.set()
    with pytest.raises(CancelledError):
        scan_chunks(plan, Corpus.open([home / "corpus"], None), workers=2, stop=stop)
