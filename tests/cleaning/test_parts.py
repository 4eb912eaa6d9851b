"""What many workers found on a plan is cleaned as one run would have."""

import os
import shutil

import pytest

import contam
from tests.cleaning.inputs import tree, write_corpus
from tests.cli.processes import contam_here


def run(*arguments, cwd):
    done = contam_here(*arguments, cwd=cwd)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def home(items, tmp_path_factory):
    """A folder with a corpus, a plan of several leases, and the parts of two workers."""
    home = tmp_path_factory.mktemp("planned")
    write_corpus(home / "corpus")
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
