"""Several workers write the shards, in any order and more than once, to the bytes of one."""

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.cleaning.clean import Share, clean_share
from contam.cleaning.run import Cleaned
from contam.cleaning.work_folder import WorkFolder
from contam.cleaning.writer import share_of
from contam.detect.parts.part_store import Division
from contam.errors import IncompleteError, OutputError, UsageError
from tests.cleaning.inputs import N_PLANTED, PLANTED, rows_of, tree, write_corpus
from tests.cli.processes import contam_here


@given(st.lists(st.tuples(st.integers(0, 10**9), st.booleans()), max_size=40), st.integers(1, 9))
def test_every_shard_is_in_one_share_and_shares_take_about_as_long(shards, count):
    sizes = [size for size, _ in shards]
    touched = {number for number, (_, found) in enumerate(shards) if found}
    shares = [share_of(sizes, touched, index, count) for index in range(count)]
    assert sorted(n for share in shares for n in share) == list(range(len(sizes)))
    costs = [(1 << 20) + size * (20 if n in touched else 1) for n, size in enumerate(sizes)]
    loads = [sum(costs[n] for n in share) for share in shares]
    assert max(loads) - min(loads) <= max(costs, default=0)


@pytest.fixture(scope="module")
def home(items, tmp_path_factory):
    """A folder with a corpus, the parts of its search, and the paths of the benchmarks."""
    home = tmp_path_factory.mktemp("shares")
    write_corpus(home / "corpus")
    (home / "items").write_text("\n".join(map(str, items)))
    publish(home, home / "searched", "list")
    assert len(list((home / "parts").glob("*.part"))) > 4
    return home


def divided(home, index=0, count=1):
    return Division(folder=str(home / "parts"), size=20_000, share=(index, count))


def asked(home, **more):
    """The arguments of a call, but for its result."""
    return {
        "corpus": home / "corpus",
        "benchmark": (home / "items").read_text().splitlines(),
        "keep_removed": True,
        **more,
    }


def share(home, out, action, index, count, **others):
    division = divided(home, index, count)
    return clean_share(
        out=out, division=division, workers=1, **asked(home, action=action, **others)
    )


def publish(home, out, action, **others):
    return contam.clean(
        out=out, division=divided(home), workers=2, **asked(home, action=action, **others)
    )


@pytest.mark.parametrize("left", [[], ["lock"], ["state.json", "done/00000000.json"]])
def test_a_run_killed_while_it_cleans_up_behind_itself_has_ended(home, tmp_path, left, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "discard", lambda _: None)
        written = publish(home, out, "drop")
    folder = WorkFolder.beside(out).folder
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in left:
            path.unlink()
    again = publish(home, out, "drop")
    assert again.record == json.loads(json.dumps(written.record))
    assert not folder.exists()
    with pytest.raises(OutputError):
        publish(home, out, "drop")


@pytest.fixture(scope="module")
def expected(home):
    """action -> what one machine writes."""
    found = {}
    for action in ("cut", "drop", "list"):
        publish(home, home / f"one-{action}", action)
        found[action] = tree(home / f"one-{action}")
    return found


def harm(work, draw):
    """Do to the folder of a run what a process does that is killed at a bad moment."""
    done = sorted((work.folder / "done").glob("*.json"))
    files = sorted(path for path in work.result.rglob("*") if path.is_file())
    number = draw.randrange(len(PLANTED))
    left = work.folder / "draft" / f"{number:08d}-dead"
    left.mkdir(exist_ok=True)
    (left / "shard").write_bytes(b"half")
    if done:
        draw.choice(done).unlink()
    if files:
        path = draw.choice(files)
        path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_number_of_workers_in_any_order_gives_the_bytes_of_one(home, expected, tmp_path, seed):
    draw = random.Random(seed)
    action = ("cut", "drop", "list")[seed % 3]
    out, work = tmp_path / "out", WorkFolder.beside(tmp_path / "out")
    for _ in range(draw.randrange(1, 4)):
        count = draw.randrange(1, 5)
        at_once = [draw.randrange(count) for _ in range(draw.randrange(1, count + 1))]
        with ThreadPoolExecutor(len(at_once)) as pool:
            shares = [pool.submit(share, home, out, action, index, count) for index in at_once]
            for done in shares:
                done.result()
        if draw.random() < 0.5:
            harm(work, draw)
    assert not out.exists()
    publish(home, out, action)
    assert tree(out) == expected[action]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    # A worker that comes late finds nothing to do.
    assert share(home, out, action, 0, 1).done == ()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_workers_wrote_is_not_written_again(home, expected, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = share(home, out, "cut", 0, 2)
    again = share(home, out, "cut", 0, 2)
    assert (again.done, again.kept) == ((), first.done)
    assert share(home, out, "cut", 1, 2).n_shards == len(PLANTED)
    with monkeypatch.context() as patch:
        patch.setattr("contam.cleaning.writer.TouchedShard", None)
        patch.setattr("contam.cleaning.writer.copy", None)
        publish(home, out, "cut")
    assert tree(out) == expected["cut"]


def test_other_options_are_refused_and_nobody_publishes_while_others_write(home, tmp_path):
    out = tmp_path / "out"
    share(home, out, "cut", 0, 2)
    for call in (lambda: share(home, out, "drop", 1, 2), lambda: publish(home, out, "drop")):
        with pytest.raises(OutputError, match="another run"):
            call()
    work = WorkFolder.beside(out)
    with work.locked(shared=True), pytest.raises(OutputError, match="another run works"):
        publish(home, out, "cut")
    with work.locked():
        for call in (lambda: share(home, out, "cut", 1, 2), lambda: publish(home, out, "cut")):
            with pytest.raises(OutputError, match="another run works"):
                call()
    assert not out.exists()
    publish(home, out, "cut")
    with pytest.raises(OutputError, match="finished"):
        share(home, out, "drop", 0, 2)


def test_a_limit_stops_every_worker_before_it_writes(home, expected, tmp_path):
    for index in range(2):
        stopped = share(home, tmp_path / "out", "drop", index, 2, most=str(N_PLANTED - 1))
        assert isinstance(stopped, Cleaned)
        assert (stopped.too_many, stopped.folder) == (True, None)
        assert stopped.record["documents"]["found"] == N_PLANTED
    assert not list(tmp_path.iterdir())
    assert isinstance(share(home, tmp_path / "out", "drop", 0, 2, most=str(N_PLANTED)), Share)
    publish(home, tmp_path / "out", "drop")
    assert tree(tmp_path / "out") == expected["drop"]


def test_parts_of_shares_give_the_corpus_of_one_run(home, items, tmp_path):
    """Each share first searches, and writes once the parts of all are there."""
    for name in ("corpus", "items"):
        (tmp_path / name).symlink_to(home / name)
    first = share(tmp_path, tmp_path / "out", "mask", 1, 2)
    assert (first.done, first.search.done[:2]) == ((), (2, 4))
    assert not (tmp_path / "out").exists()
    rest = share(tmp_path, tmp_path / "out", "mask", 0, 2)
    assert rest.search is None
    assert rest.done
    publish(tmp_path, tmp_path / "out", "mask")
    contam.clean(home / "corpus", items, tmp_path / "one", action="mask", keep_removed=True)
    mine, theirs = tree(tmp_path / "out"), tree(tmp_path / "one")
    for name, found in mine.items():
        assert found == theirs[name] or name == "clean.json"


#: A shard in which no part has anything to search.
BLANK = b"\n" * len('{"text": "Now it says so."}\n')


def rewrite_in_place(path, old, new):
    """Put other bytes into a file, and its time of writing back."""
    was = path.stat()
    raw = path.read_bytes()
    assert len(old) == len(new)
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, new))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_a_shard_rewritten_since_its_search_is_not_called_searched(home, tmp_path):
    """At equal size and time."""
    (tmp_path / "items").symlink_to(home / "items")
    write_corpus(tmp_path / "corpus")
    shard = tmp_path / "corpus" / "long.jsonl"
    lines = [json.dumps({"text": f"Note {row}. {'Rain fell. ' * 20}"}) for row in range(3000)]
    shard.write_text("".join(f"{line}\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contam.cleaning.clean.Writer", None)
        with pytest.raises(TypeError):
            publish(tmp_path, tmp_path / "out", "drop")
    # Its edges stay as they were.
    rewrite_in_place(shard, b"Note 1500.", b"Note XXXX.")
    for call in (publish, lambda *given: share(*given, 0, 1)):
        with pytest.raises(IncompleteError, match=r"long\.jsonl") as caught:
            call(tmp_path, tmp_path / "out", "drop")
        assert "parts" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_shard_that_holds_text_only_now_is_searched(home, tmp_path):
    (tmp_path / "items").symlink_to(home / "items")
    write_corpus(tmp_path / "corpus")
    shard = tmp_path / "corpus" / "blank.jsonl"
    shard.write_bytes(BLANK)
    publish(tmp_path, tmp_path / "before", "drop")
    rewrite_in_place(shard, BLANK, b'{"text": "Now it says so."}\n')
    record = publish(tmp_path, tmp_path / "after", "drop").record
    rows = {one["name"]: one["rows_before"] for one in record["shards"]}
    assert rows["blank.jsonl"] == 1


def test_parts_that_read_two_states_of_a_shard_are_no_whole_search(home, tmp_path):
    (tmp_path / "items").symlink_to(home / "items")
    shard = tmp_path / "corpus" / "large.jsonl"
    shard.parent.mkdir()
    lines = [
        json.dumps({"text": f"Note {row}. {'Rain fell all day. ' * 500}"}) for row in range(7200)
    ]
    shard.write_text("".join(f"{line}\n" for line in lines))
    assert share(tmp_path, tmp_path / "out", "drop", 0, 2).search.done == (1, 3)
    rewrite_in_place(shard, b"Note 1800.", b"Note XXXX.")
    with pytest.raises(IncompleteError, match=r"large\.jsonl"):
        share(tmp_path, tmp_path / "out", "drop", 1, 2)
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_share_and_says_what_comes_then(home, tmp_path):
    benchmarks = (home / "items").read_text().splitlines()
    call = ("clean", "--corpus", home / "corpus", "--benchmark", *benchmarks, "--out",
            tmp_path / "out", "--parts", tmp_path / "parts")  # fmt: skip
    slurm = {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "2"}
    done = contam_here(*call, "--shard", "auto", **slurm)
    assert done.returncode == 0, done.stderr
    assert "0 parts of 1 done" in done.stdout
    assert "then      the same call writes shards" in done.stdout
    done = contam_here(*call, "--shard", "1/2")
    assert f"shards of {len(PLANTED)} done" in done.stdout
    assert "then      the same call without --shard" in done.stdout
    told = contam_here(*call, "--shard", "1/2", "--json")
    assert json.loads(told.stdout)["done"] == 0
    assert contam_here(*call, "--shard", "1/2", "--most", "1").returncode == 3
    assert contam_here(*call, "--shard", "3/2").returncode == 2
    assert contam_here(*call[:-2], "--shard", "1/2").returncode == 2
    published = contam_here(*call)
    assert published.returncode == 0, published.stderr
    for name in PLANTED:
        assert len(rows_of(tmp_path / "out" / "corpus" / name)) == 120 - len(PLANTED[name])


def test_a_result_or_parts_in_the_corpus_are_refused(home):
    with pytest.raises(UsageError):
        share(home, home / "corpus" / "out", "drop", 0, 1)
