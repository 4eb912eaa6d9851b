"""Groups of shards indexed anywhere, by anybody and more than once, give the bytes of one build."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from contam.errors import OutputError, UsageError
from contam.index import build as build_module
from contam.index import groups
from contam.index.build import build
from contam.index.change import add
from contam.index.groups import GROUP, PARTS
from contam.index.share import build_share
from contam.index.verify import verify
from tests.property.worlds import write_shard
from tests.waiting import wait_until

N_SHARDS = 5


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Groups of a shard each."""
    monkeypatch.setattr(groups, "LEAST_BYTES", 1)


@pytest.fixture
def home(tmp_path):
    for number in range(N_SHARDS):
        texts = [
            f"the {number * 10 + n}th lantern of the old harbour burns green" for n in range(7)
        ]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    return tmp_path


def content(folder):
    """Every file of an index but locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def shared(home, number, count, **more):
    return build_share(home / "corpus", home / "all", (number, count), workers=1, **more)


def finished(home, **more):
    return build(home / "corpus", home / "all", workers=1, **more)


def part_of(home, shard):
    """The folder of the group that holds a shard."""
    name = f"part-{shard}.parquet".encode()
    return next(
        path.parent
        for path in (home / "all" / PARTS).glob(f"*/{GROUP}")
        if name in path.read_bytes()
    )


@pytest.mark.parametrize("recipe", ["complete", "compact", "chars"])
def test_any_shares_make_the_index_of_one_build(home, recipe):
    whole = build(home / "corpus", home / "one", recipe, workers=2)
    for share in ((1, 2), (0, 2), (0, 3)):
        done = shared(home, *share, recipe=recipe)
        assert (done.n_groups, done.failures) == (N_SHARDS, ())
    assert finished(home, recipe=recipe) == whole
    assert content(home / "all") == content(home / "one")
    assert verify(home / "all").ok


def test_every_machine_gives_a_large_corpus_longer_keys(home, monkeypatch):
    size = sum(path.stat().st_size for path in (home / "corpus").iterdir())
    monkeypatch.setattr(build_module, "LARGE_CORPUS", size)
    whole = build(home / "corpus", home / "one")
    assert whole.recipe.key_bits == 41
    for number in range(2):
        shared(home, number, 2)
    assert finished(home) == whole
    assert content(home / "all") == content(home / "one")
    monkeypatch.setattr(build_module, "LARGE_CORPUS", size + 1)
    write_shard(home / "more.parquet", ["one more"])
    assert add(home / "one", home / "more.parquet").manifest.recipe == whole.recipe
    assert build(home / "corpus", home / "small").recipe.key_bits == 36


@pytest.mark.parametrize("spoil", ["cut", "changed", "empty", "list", "segment", "gone"])
def test_a_group_that_is_not_as_it_was_written_is_indexed_again(home, spoil):
    build(home / "corpus", home / "one")
    shared(home, 0, 1)
    part = part_of(home, 3)
    path = part / GROUP
    data = path.read_bytes()
    table = next(part.rglob("*.parquet"))
    if spoil == "segment":
        table.write_bytes(table.read_bytes()[:-1])
    elif spoil == "gone":
        table.unlink()
    else:
        changed = data.replace(b"part-3", b"part-4")
        path.write_bytes({"cut": data[:-9], "changed": changed, "empty": b"", "list": b"[]"}[spoil])
    assert shared(home, 0, 1).n_done == 1
    path.write_bytes(data[:-9])
    finished(home)
    assert content(home / "all") == content(home / "one")


@pytest.mark.parametrize("change", ["shard", "recipe", "memory", "version"])
def test_a_group_is_indexed_again_when_anything_that_decides_it_changes(home, change, monkeypatch):
    shared(home, 0, 1)
    more = {}
    if change == "shard":
        path = home / "corpus" / "part-1.parquet"
        before = path.stat()
        write_shard(
            path, [f"the {n:>2}th lantern of the new harbour burns blue!" for n in range(7)]
        )
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "version":
        monkeypatch.setattr(groups, "contam_version", lambda: "9.9")
    else:
        more = {"recipe": "compact"} if change == "recipe" else {"memory": 1_000_000_000}
    assert shared(home, 0, 1, **more).n_done == (1 if change == "shard" else N_SHARDS)
    build(home / "corpus", home / "one", **more)
    finished(home, **more)
    assert content(home / "all") == content(home / "one")


@pytest.mark.parametrize("change", ["gone", "damaged"])
def test_a_shard_that_cannot_be_read_is_a_failure_until_it_is_repaired(home, change):
    path = home / "corpus" / "part-1.parquet"
    whole = path.read_bytes()
    listed = home / "listed.parquet"
    if change == "gone":
        path.rename(listed)
        path.symlink_to(home / "nowhere")
    else:
        path.write_bytes(whole[:50] + bytes(9) + whole[59:])
    assert [shard.name for shard in shared(home, 0, 1).failures] == ["part-1.parquet"]
    again = shared(home, 0, 1)
    assert (again.n_done, len(again.failures)) == (1, 1)
    path.unlink()
    path.write_bytes(whole)
    assert shared(home, 0, 1).failures == ()
    assert not any(shard.failure for shard in finished(home).shards)


@pytest.mark.slow
def test_a_killed_share_leaves_nothing_that_counts(home):
    build(home / "corpus", home / "one")
    code = (
        "import sys; from contam.index import groups; groups.LEAST_BYTES = 1\n"
        "from contam.index.share import build_share\n"
        "build_share(sys.argv[1], sys.argv[2], (0, 1), workers=1)"
    )
    command = [sys.executable, "-c", code, str(home / "corpus"), str(home / "all")]
    with subprocess.Popen(command) as process:
        wait_until(
            lambda: list((home / "all" / PARTS).glob("*/segments/*")) or process.poll() is not None
        )
        process.send_signal(signal.SIGKILL)
    shared(home, 1, 2)
    finished(home)
    assert content(home / "all") == content(home / "one")


def test_a_share_goes_neither_into_the_corpus_nor_over_an_index(home):
    with pytest.raises(UsageError, match="inside the corpus"):
        build_share(home / "corpus", home / "corpus" / "all", (0, 1))
    finished(home)
    before = content(home / "all")
    with pytest.raises(OutputError, match="finished index"):
        shared(home, 0, 1)
    assert content(home / "all") == before
    shared(home, 0, 1, overwrite=True)
    finished(home, overwrite=True)
    assert content(home / "all") == before


def test_shares_made_elsewhere_are_copied_together(home):
    build(home / "corpus", home / "one")
    for number in range(2):
        build_share(home / "corpus", home / f"machine-{number}", (number, 2), workers=1)
        shutil.copytree(
            home / f"machine-{number}" / PARTS, home / "all" / PARTS, dirs_exist_ok=True
        )
    finished(home)
    assert content(home / "all") == content(home / "one")
