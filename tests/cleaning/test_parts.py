"""What many workers found on a plan is cleaned as one run would have."""

import json
import os
import shutil

import pytest

import contam
from tests.cleaning.inputs import tree, write_corpus
from tests.cli.processes import contam_here

#: A shard in which no lease has anything to search.
BLANK = b"\n" * len('{"text": "Now it says so."}\n')


def rewrite_in_place(path, old, new):
    """Put other bytes into a file, and its time of writing back."""
    was = path.stat()
    raw = path.read_bytes()
    assert len(old) == len(new)
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, new))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def run(*arguments, cwd):
    done = contam_here(*arguments, cwd=cwd)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def home(items, tmp_path_factory):
    """A folder with a corpus, a plan of several leases, and the parts of two workers."""
    home = tmp_path_factory.mktemp("planned")
    write_corpus(home / "corpus")
    (home / "corpus" / "blank.jsonl").write_bytes(BLANK)
    call = ("plan", "--corpus", "corpus", "--benchmark", *items, "--lease-size", "20kB")
    planned = contam_here(*call, "--to-clean", "--out", "plan", cwd=home)
    assert planned.returncode == 0
    assert "contam clean --parts PARTS" in planned.stdout
    assert run(*call, "--out", "other", cwd=home)[0] == 0
    for shard in ("1/2", "2/2"):
        scan = ("scan", "--plan", "plan", "--shard", shard, "--out", f"parts-{shard[0]}")
        assert run(*scan, cwd=home)[0] == 0
    assert len(list(home.glob("parts-?/*.part"))) > 2
    return home


def test_parts_of_two_workers_give_the_same_corpus(home, items):
    for action in ("mask", "drop"):
        code, said = run(
            "clean", "--parts", "parts-1", "parts-2", "--action", action, "--out", action, cwd=home
        )
        assert code == 0, said
        contam.clean(home / "corpus", items, home / f"plain-{action}", action=action)
        mine, theirs = tree(home / action), tree(home / f"plain-{action}")
        # They say how the search was asked for.
        del mine["clean.json"], theirs["clean.json"]
        assert mine == theirs
    assert not list(home.glob(".*"))


def test_a_plan_that_moved_is_named(home, tmp_path):
    shutil.copytree(home / "plan", tmp_path / "moved")
    call = ("clean", "--parts", "parts-1", "parts-2", "--out", "listed", "--action", "list")
    assert run(*call, "--plan", tmp_path / "moved", cwd=home)[0] == 0


def test_what_is_missing_or_of_another_kind_is_refused(home):
    code, said = run("clean", "--parts", "parts-1", "--out", "new", cwd=home)
    assert (code, "leases have no part" in said) == (4, True)
    assert run("scan", "--plan", "other", "--out", "others", cwd=home)[0] == 0
    code, said = run("clean", "--parts", "others", "--out", "new", cwd=home)
    assert (code, "make it with `contam plan --to-clean`, and do" in said) == (2, True)
    for extra in (["--corpus", "corpus"], ["--seed", "4"], ["--policy", "contam"]):
        assert run("clean", "--parts", "parts-1", *extra, "--out", "new", cwd=home)[0] == 2
    assert run("clean", "--plan", "plan", "--out", "new", cwd=home)[0] == 2
    assert run("clean", "--corpus", "corpus", "--out", "new", cwd=home)[0] == 2
    shard = home / "corpus" / "b.jsonl"
    was = shard.stat()
    os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns + 1))
    code, said = run("clean", "--parts", "parts-1", "parts-2", "--out", "new", cwd=home)
    os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (code, "b.jsonl" in said) == (4, True)
    assert "or make a new plan" in said
    assert not (home / "new").exists()
    assert not list(home.glob(".*"))


@pytest.mark.parametrize("worker", [(), ("--shard", "1/1")])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("b.jsonl", b"Note 7.", b"Note X."), ("blank.jsonl", BLANK, b'{"text": "Now it says so."}\n')],
)
def test_a_shard_rewritten_since_the_search_is_not_called_searched(
    home, tmp_path, worker, name, old, new
):
    shard = home / "corpus" / name
    before = shard.read_bytes()
    rewrite_in_place(shard, old, new)
    call = ("clean", "--parts", "parts-1", "parts-2", *worker, "--out", tmp_path / "new")
    code, said = run(*call, cwd=home)
    rewrite_in_place(shard, new, old)
    assert shard.read_bytes() == before
    assert (code, name in said) == (4, True), said
    assert not (tmp_path / "new").exists()


def test_leases_that_read_two_states_of_a_shard_are_no_whole_search(items, tmp_path):
    shard = tmp_path / "corpus" / "large.jsonl"
    shard.parent.mkdir()
    lines = [
        json.dumps({"text": f"Note {row}. {'Rain fell all day. ' * 500}"}) for row in range(3600)
    ]
    shard.write_text("".join(f"{line}\n" for line in lines))
    call = ("plan", "--corpus", "corpus", "--benchmark", *items, "--lease-size", "20MB")
    assert run(*call, "--to-clean", "--out", "plan", cwd=tmp_path)[0] == 0
    for number, note in (("1", b"Note 1800."), ("2", b"Note XXXX.")):
        rewrite_in_place(shard, b"Note 1800.", note)
        scan = ("scan", "--plan", "plan", "--shard", f"{number}/2", "--out", number)
        assert run(*scan, cwd=tmp_path)[0] == 0
        rewrite_in_place(shard, note, b"Note 1800.")
    code, said = run("clean", "--parts", "1", "2", "--out", "new", cwd=tmp_path)
    assert (code, "large.jsonl" in said) == (4, True), said
    assert not (tmp_path / "new").exists()
