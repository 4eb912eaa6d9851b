"""Parts that anybody computed, in any order and more than once, give the bytes of one scan."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import process as pools

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.corpus import opening
from contam.corpus.coverage import ShardFailure
from contam.detect.parts import part_store, pieces, search
from contam.detect.parts.part_store import Division, PartStore
from contam.detect.scan import scan_share
from contam.errors import ContamError, OutputError, UsageError
from tests.cli.processes import python
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import ALL_POLICIES, folder, write_items, write_shard
from tests.text.tokenizer_files import save_tokenizer
from tests.waiting import HANG_S

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")
N_SHARDS = 5


def published(result, out):
    contam.write_report(result, out, overwrite=True)
    run = json.loads((out / "run.json").read_bytes())
    del run["timings"]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


def in_one(home, **asked):
    return published(scan(home, **asked), home / "plain")


def in_parts(home, *, workers=1, **division):
    """The result of a call that keeps parts of a shard each."""
    asked = division.pop("asked", {})
    divided = Division(folder=str(home / "parts"), size=1, **division)
    return published(scan(home, division=divided, workers=workers, **asked), home / "out")


def scan(home, workers=1, **more):
    return contam.scan(home / "corpus", home / "bench.jsonl", workers=workers, **more)


def compute(home, index=0, count=1, parts="parts", **asked):
    divided = Division(folder=str(home / parts), size=1, share=(index, count))
    return scan_share([home / "corpus"], [home / "bench.jsonl"], divided, workers=1, **asked)


def parts_of(home, parts="parts"):
    """The parts in a folder, by name; not what is known of the shards."""
    found = {path: path.read_bytes() for path in (home / parts).glob("*.part")}
    return {path: data for path, data in found.items() if not data.startswith(b"contam")}


@pytest.fixture
def home(tmp_path):
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(N_SHARDS + 1)
    ]
    for number in range(N_SHARDS):
        texts = [f"{number} {rows[number]['question']}", "nothing of it", None]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    write_items(tmp_path / "bench.jsonl", rows)
    return tmp_path


@given(worlds, st.data())
@few
def test_any_shares_in_any_order_give_the_bytes_of_one_scan(world, more):
    rows, texts = world
    with folder() as home:
        for number in range(3):
            write_shard(home / "corpus" / f"part-{number}.parquet", [*texts, None, *texts[::-1]])
        write_items(home / "bench.jsonl", rows)
        asked = {"policies": ALL_POLICIES, "max_evidence": 2}
        count = more.draw(st.integers(1, 3))
        shares = st.lists(st.integers(0, count - 1), max_size=2)
        for index in [*more.draw(shares), *more.draw(st.permutations(range(count)))]:
            compute(home, index, count, **asked)
        assert in_parts(home, only=True, asked=asked) == in_one(home, **asked)


@pytest.mark.parametrize(
    ("workers", "divided"), [(1, False), (3, False), pytest.param(9, True, marks=pytest.mark.slow)]
)
def test_any_number_of_workers_and_processes_gives_the_same_bytes(home, workers, divided):
    whole = in_one(home, policies=("contam", "gpt4-50char"))
    asked = {"policies": ("contam", "gpt4-50char")}
    assert in_parts(home, workers=workers, processes=divided, asked=asked) == whole
    assert len(parts_of(home)) == N_SHARDS
    if divided:
        # Without a folder, too.
        result = scan(home, workers=workers, division=Division(size=1, processes=True), **asked)
        assert published(result, home / "out") == whole


def test_a_second_call_computes_nothing(home, monkeypatch):
    whole = in_parts(home)
    before = parts_of(home)
    monkeypatch.setattr(search, "search_piece", None)
    assert in_parts(home) == whole
    assert parts_of(home) == before
    assert compute(home)[:4] == (N_SHARDS, (), (1, 2, 3, 4, 5), ())


def test_equal_parts_are_equal_bytes_whoever_computes_them(home):
    compute(home)
    compute(home, parts="other")
    mine, theirs = (parts_of(home, name) for name in ("parts", "other"))
    assert {path.name: data for path, data in mine.items()} == {
        path.name: data for path, data in theirs.items()
    }


def test_two_processes_may_compute_the_same_part_at_once(home, monkeypatch):
    both, real = threading.Barrier(2), PartStore.write

    def write(*args):
        both.wait(HANG_S)
        real(*args)

    # Parts of one shard: what is known of the shards is written once or twice.
    compute(home, 1, 2)
    monkeypatch.setattr(PartStore, "write", write)
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(compute, home, 0, 2) for _ in range(2)]
        assert [one.result().done for one in done] == [(1, 3, 5)] * 2
    monkeypatch.undo()
    assert in_parts(home, only=True) == in_one(home)


# ---------------------------------------------------------------------------------- missing parts


@pytest.mark.parametrize("allow_missing", [False, True])
def test_a_missing_part_leaves_its_shards_unread_and_nothing_clean(home, allow_missing):
    """Shards that cannot be read may be allowed, not parts that nobody computed."""
    asked = {"allow_missing": allow_missing}
    compute(home, 0, 2, **asked)
    divided = Division(folder=str(home / "parts"), size=1, only=True)
    result = scan(home, division=divided, **asked)
    assert result.exit_code() == 4
    failed = result.coverage["shards_failed"]
    assert [one["shard"] for one in failed] == ["part-1.parquet", "part-3.parquet"]
    assert failed[0]["reason"] == "part 2 of 5 is not there"
    assert "clean" not in {verdict.label for verdict in result}


def test_without_a_folder_of_parts_nothing_is_read(home):
    result = scan(home, division=Division(folder=str(home / "parts"), only=True))
    assert (result.exit_code(), len(result.coverage["shards_failed"])) == (4, N_SHARDS)
    for more in ({"only": True}, {"share": (0, 2)}):
        with pytest.raises(UsageError, match="no folder of parts"):
            Division(**more)


@pytest.mark.parametrize("spoil", ["cut", "flip", "flip of its list", "longer", "empty", "zeros"])
def test_a_damaged_part_is_no_part_and_made_again(home, spoil):
    whole = in_parts(home)
    path, data = next(iter(parts_of(home).items()))
    path.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "flip": data[:60] + bytes([data[60] ^ 255]) + data[61:],
            "flip of its list": data[:-66] + bytes([data[-66] ^ 1]) + data[-65:],
            "longer": data + b"\n",
            "empty": b"",
            "zeros": bytes(len(data)),
        }[spoil]
    )
    assert len(in_parts(home, only=True)["run"]["coverage"]["shards_failed"]) == 1
    assert in_parts(home) == whole
    assert path.read_bytes() == data


def test_parts_under_each_other_s_names_are_made_again(home):
    whole = in_parts(home)
    (one, first), (two, second), *_ = parts_of(home).items()
    one.write_bytes(second)
    two.write_bytes(first)
    assert len(in_parts(home, only=True)["run"]["coverage"]["shards_failed"]) == 2
    assert in_parts(home) == whole
    assert (one.read_bytes(), two.read_bytes()) == (first, second)


@pytest.mark.parametrize("instead", ["a folder", "a pipe"])
def test_what_cannot_be_read_in_the_place_of_a_part_is_named(home, instead):
    in_parts(home)
    path = next(iter(parts_of(home)))
    path.unlink()
    {"a folder": path.mkdir, "a pipe": lambda: os.mkfifo(path)}[instead]()
    with pytest.raises(OutputError, match=rf"{path.name}: cannot be read") as caught:
        in_parts(home)
    assert "remove it" in caught.value.hint


# ------------------------------------------------------------------------ what a part depends on


def test_only_parts_of_new_and_changed_shards_are_computed(home):
    in_parts(home)
    before = parts_of(home)
    write_shard(home / "corpus" / "part-2.parquet", ["another text", "of another day"])
    assert compute(home).done == (3,)
    # As one whose middle was written to: no digest of its edges shows that.
    os.utime(home / "corpus" / "part-0.parquet", ns=(1, 1))
    assert compute(home).done == (1,)
    write_shard(home / "corpus" / "aa.parquet", ["new, before all others"])
    assert compute(home).done == (1,)
    (home / "corpus" / "part-3.parquet").unlink()
    assert compute(home).done == ()
    assert in_parts(home, only=True) == in_one(home)
    assert before.items() <= parts_of(home).items()


@pytest.mark.parametrize(
    "change", ["item", "mark", "option", "column", "preset", "numpy", "contam"]
)
def test_another_question_makes_all_parts_anew(home, monkeypatch, change):
    in_parts(home)
    asked = {}
    path = home / "bench.jsonl"
    if change == "item":
        with path.open("a") as file:
            file.write('{"id": "late", "question": "what came later than all the others"}\n')
    elif change == "mark":
        path.write_text(path.read_text().replace("green 0", "green, 0"))  # no word of any item
    elif change == "numpy":
        monkeypatch.setattr("numpy.__version__", "1.0")
    elif change == "contam":
        monkeypatch.setattr(pieces, "contam_version", lambda: "99.0")
    else:
        asked = {
            "option": {"min_run": 9},
            "column": {"columns": {"url": "id"}},
            "preset": {"policies": ("gpt4-50char",)},
        }[change]
    assert compute(home, **asked).done == (1, 2, 3, 4, 5)
    assert len(parts_of(home)) == 2 * N_SHARDS


def test_a_policy_file_that_changes_makes_all_parts_anew(home):
    path = home / "mine.toml"
    path.write_text('base = "lmeval-13"\nn = 13\n')
    asked = {"policies": (str(path),)}
    assert compute(home, **asked).done == (1, 2, 3, 4, 5)
    assert compute(home, **asked).done == ()
    path.write_text('base = "lmeval-13"\nn = 12\n')
    assert compute(home, **asked).done == (1, 2, 3, 4, 5)


def test_a_tokenizer_file_that_changes_makes_all_parts_anew(home):
    path = save_tokenizer(home, "byte_bpe")
    asked = {"unit": str(path)}
    assert compute(home, **asked).done == (1, 2, 3, 4, 5)
    assert in_parts(home, asked=asked) == in_one(home, **asked)
    save_tokenizer(home, "wordpiece").replace(path)
    assert compute(home, **asked).done == (1, 2, 3, 4, 5)


# --------------------------------------------------------------------- shards that cannot be read


def test_a_part_with_a_shard_that_cannot_be_read_is_not_kept(home, monkeypatch):
    def fail(*_):
        return [ShardFailure.noted(0, "part-1.parquet", "the disk says no")]

    with monkeypatch.context() as patch:
        patch.setattr("contam.detect.parts.search.changed_shards", fail)
        work = compute(home, 1, 5)
    assert (work.done, work.not_whole) == ((2,), (2,))
    (failure,) = work.failures
    assert (failure.shard, failure.name) == (1, "part-1.parquet")
    assert not parts_of(home)
    assert in_parts(home) == in_one(home)


def test_a_shard_that_changes_while_it_is_searched_was_not_read(home, monkeypatch):
    real = search.search_piece

    def change(plan, name, corpus, **more):
        found = real(plan, name, corpus, **more)
        if corpus.shards[0].name == "part-0.parquet":
            os.utime(home / "corpus" / "part-0.parquet", ns=(1, 1))
        return found

    monkeypatch.setattr(search, "search_piece", change)
    found = in_parts(home)
    failed = found["run"]["coverage"]["shards_failed"]
    assert [failure["shard"] for failure in failed] == ["part-0.parquet"]


# ---------------------------------------------------------------------- what is known of a corpus


def test_what_is_known_of_a_corpus_is_made_anew_when_it_is_damaged_or_stale(home):
    whole = in_parts(home)
    (path,) = {*(home / "parts").glob("*.part")} - parts_of(home).keys()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert in_parts(home, only=True) == whole
    assert path.read_bytes() == data[:-1]
    assert in_parts(home) == whole
    assert path.read_bytes() == data
    write_shard(home / "corpus" / "part-9.parquet", ["a shard that came later"])
    assert in_parts(home) == in_one(home)


def test_a_shard_without_text_is_opened_each_time(home, monkeypatch):
    """No part says what was read of it: at equal size and time it may hold some now."""
    shard = home / "corpus" / "blank.jsonl"
    text = b'{"text": "the 5th lantern of the old harbour burns copper green 5"}\n'
    shard.write_bytes(b"\n" * len(text))
    was = shard.stat()
    in_parts(home)
    shard.write_bytes(text)
    os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns))
    opened, real = [], opening.open_shard
    monkeypatch.setattr(
        part_store,
        "open_shard",
        lambda n, one, *more: opened.append(one.name) or real(n, one, *more),
    )
    found = in_parts(home)
    assert opened == ["blank.jsonl"]
    monkeypatch.undo()
    assert found == in_one(home)
    labels = pq.read_table(home / "out" / "verdicts.parquet").column("label").to_pylist()
    assert labels == ["contaminated"] * 6


# ------------------------------------------------------------------------------- killed processes

#: The command line, with parts of a shard each; it gets a signal when its second part is written.
STOPPED = """
import os, sys
from contam.cli.main import run
from contam.detect.parts import part_store

parts, real = [], part_store.write_file

def write_file(path, data, **more):
    real(path, data, **more)
    if not data.startswith(b"contam"):
        parts.append(path)
    if len(parts) == 2 and (sign := int(os.environ["STOP_WITH"])):
        os.kill(os.getpid(), sign)

part_store.write_file = write_file
run(sys.argv[1:])
"""


def call(home, out, stop_with=0):
    given = ("--corpus", home / "corpus", "--benchmark", home / "bench.jsonl", "--out", home / out,
             "--parts", home / "parts", "--part-size", "1", "--workers", "1")  # fmt: skip
    return python("-c", STOPPED, "scan", *given, STOP_WITH=str(stop_with))


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_scan_goes_on_from_what_it_had_done(home, sign):
    stopped = call(home, "stopped", int(sign))
    assert stopped.returncode != 0
    assert not (home / "stopped").exists()
    assert len(parts_of(home)) == 2
    assert ("same call" in stopped.stderr) == (sign != signal.SIGKILL)
    again = call(home, "again")
    assert again.returncode == 0, again.stderr
    assert "parts there before: 2" in again.stderr
    whole = in_one(home)
    assert {name: (home / "again" / name).read_bytes() for name in TABLES}.items() <= whole.items()


def kill_worker(*_):
    """What a worker does in place of its second piece."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_worker_ends_the_scan_with_what_was_done(home, monkeypatch):
    monkeypatch.setattr(search, "_search", kill_worker)
    with pytest.raises(ContamError, match="was killed") as caught:
        in_parts(home, workers=5, processes=True)
    assert "--workers" in caught.value.hint
    monkeypatch.undo()
    assert in_parts(home, workers=5, processes=True) == in_one(home)


def fail(*_):
    """What a worker does that meets an error."""
    raise OutputError("{}: no space", "folder", hint="free some")


@pytest.mark.slow
def test_an_error_in_a_process_is_the_error_of_the_scan(home, monkeypatch, capfd):
    monkeypatch.setattr(search, "_search", fail)
    with pytest.raises(OutputError, match="no space") as caught:
        in_parts(home, workers=5, processes=True)
    assert caught.value.hint == "free some"
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_no_process_is_left_when_a_scan_is_interrupted(home, monkeypatch):
    started = []
    real = pools.ProcessPoolExecutor._spawn_process

    def spawn(pool):
        real(pool)
        started[:] = pool._processes.values()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pools.ProcessPoolExecutor, "_spawn_process", spawn)
    monkeypatch.setattr(search, "part_of", stop)
    with pytest.raises(KeyboardInterrupt):
        in_parts(home, workers=9, processes=True)
    assert started
    assert not any(process.is_alive() for process in started)
