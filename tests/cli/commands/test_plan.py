"""`contam plan`, `contam scan --plan` and `contam merge`, as a user and a scheduler call them."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.processes import assert_one_line_error, contam_here
from tests.property.worlds import write_items, write_shard

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")


@pytest.fixture(scope="module")
def planned(bench_fixtures, tmp_path_factory):
    """A folder with data, the results of one scan, and a plan of several leases."""
    home = tmp_path_factory.mktemp("planned")
    (home / "data").symlink_to(bench_fixtures)
    what = ("--corpus", "data/corpus", "--benchmark", "data/items", "--policy", "contam,gpt3-test")
    assert contam_here("scan", *what, "--out", "one", "-q", cwd=home).returncode == 0
    done = contam_here("plan", *what, "--out", "plan", "--lease-size", "200k", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["leases"]) > 2
    assert said["question"] == json.loads((home / "plan" / "plan.json").read_text())["question"]
    return home


@pytest.fixture
def home(planned, tmp_path):
    """The same for one test to write in."""
    shutil.copytree(planned, tmp_path / "home", symlinks=True)
    return tmp_path / "home"


def test_workers_and_a_merge_print_and_write_what_one_scan_does(home):
    for index in (2, 1):
        done = contam_here(
            "scan", "--plan", "plan", "--shard", f"{index}/2", "--out", "parts", "-q", cwd=home
        )
        assert done.returncode == 0, done.stderr
    merged = contam_here("merge", "parts", "--out", "all", "-q", "--json", cwd=home)
    assert merged.returncode == 0, merged.stderr
    for name in TABLES:
        assert (home / "all" / name).read_bytes() == (home / "one" / name).read_bytes()
    mine, other = (json.loads((home / name / "run.json").read_text()) for name in ("all", "one"))
    assert mine | {"timings": 0} == other | {"timings": 0}
    counts = json.loads(merged.stdout)["counts"]
    assert counts == mine["counts"]
    shown = contam_here("merge", "parts", "--out", "again", "-q", cwd=home).stdout
    assert shown.splitlines()[0].split()[:2] == ["benchmark", "policy"]


def test_a_lease_alone_is_done_and_the_rest_is_not_read(home):
    done = contam_here(
        "scan", "--plan", "plan", "--lease", "2", "--out", "parts", "--json", cwd=home
    )
    assert json.loads(done.stdout)["done"] == [2]
    merged = contam_here("merge", "parts", "--out", "all", "--fail-on-flagged", cwd=home)
    assert merged.returncode == 4
    assert "has no part" in merged.stdout
    (hint,) = (line for line in merged.stderr.splitlines() if line.startswith("hint: "))
    assert "`contam scan --plan plan --out parts`" in hint.replace(f"{home}/", "")
    again = contam_here("scan", "--plan", "plan", "--out", "parts", "--json", cwd=home)
    assert json.loads(again.stdout)["kept"] == [2]


def test_a_merge_finds_the_plan_where_it_is_said_to_be(home):
    assert contam_here("scan", "--plan", "plan", "--out", "parts", "-q", cwd=home).returncode == 0
    (home / "plan").rename(home / "moved")
    assert_one_line_error(contam_here("merge", "parts", "--out", "all", cwd=home), 2, "plan")
    done = contam_here("merge", "parts", "--out", "all", "--plan", "moved", "-q", cwd=home)
    assert done.returncode == 0, done.stderr


def test_a_shard_that_changed_is_named_and_ends_with_4(home):
    (home / "own").mkdir()
    for file in (home / "data" / "corpus").rglob("*.parquet"):
        shutil.copy(file, home / "own")
    what = ("--corpus", "own", "--benchmark", "data/items", "--out", "plan2")
    assert contam_here("plan", *what, cwd=home).returncode == 0
    changed = min((home / "own").iterdir())
    changed.write_bytes(changed.read_bytes()[:-1])
    done = contam_here("scan", "--plan", "plan2", "--out", "parts", cwd=home)
    assert done.returncode == 4
    assert f"NOT READ: {changed.name}" in done.stderr
    # A lease that was worked on is not a lease that is done.
    assert done.stdout.startswith("0 leases of 1 ")
    again = contam_here("scan", "--plan", "plan2", "--out", "parts", "--json", cwd=home)
    assert json.loads(again.stdout)["not_whole"] == [1]


@pytest.mark.parametrize(
    "more",
    [
        ("--corpus", "data/corpus"),
        ("--benchmark", "data/items"),
        ("--policy", "contam"),
        ("--seed", "6"),
        ("--min-run", "8"),
        ("--unit", "char"),
        ("--allow-missing",),
        ("--no-text",),
        ("--overwrite",),
        ("--resume",),
        ("--fail-on-flagged",),
    ],
)
def test_what_the_plan_says_is_not_said_again(home, more):
    done = contam_here("scan", "--plan", "plan", "--out", "parts", *more, cwd=home)
    assert_one_line_error(done, 2, more[0], "--plan")
    assert not (home / "parts").exists()


@pytest.mark.parametrize("more", [("--shard", "1/2"), ("--lease", "1")])
def test_leases_are_those_of_a_plan(home, more):
    done = contam_here(
        "scan",
        "--corpus",
        "data/corpus",
        "--benchmark",
        "data/items",
        "--out",
        "o",
        *more,
        cwd=home,
    )
    assert_one_line_error(done, 2, more[0], "--plan")


@pytest.mark.parametrize(
    "call",
    [
        "scan --benchmark data/items --out o",
        "scan --corpus data/corpus --out o",
        "scan --plan plan --shard 7/5 --out o",
        "scan --plan plan --lease 99 --out o",
        "scan --plan plan --lease 0 --out o",
        "scan --plan plan --lease 1 --shard 1/2 --out o",
        "scan --plan one --out o",
        "scan --plan plan --address host:6379 --out o",
        "scan --plan plan --engine abacus --out o",
        "scan --corpus data/corpus --benchmark data/items --address host:6379 --out o",
        "plan --corpus data/corpus --benchmark data/items --out o --lease-size big",
        "plan --corpus data/corpus --benchmark data/items --out o --lease-size 0",
        "plan --corpus data --benchmark data/items --out data/o",
        "merge --out o",
        "merge one --out o",
    ],
)
def test_a_wrong_call_says_so(home, call):
    done = contam_here(*call.split(), cwd=home)
    assert_one_line_error(done, 2)
    assert not (home / "o").exists()


def test_a_worker_takes_of_a_scans_settings_what_its_plan_does_not_say(home):
    (home / "contam.toml").write_text(
        '[scan]\ncorpus = ["data/corpus"]\nworkers = 1\nno_text = true\nout = "parts"\n'
    )
    done = contam_here("scan", "--plan", "plan", "-q", cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "contam.toml gives --out=parts --workers=1"
    assert len(list((home / "parts").glob("*.part"))) > 2


def test_a_plan_takes_settings_of_its_own(home):
    (home / "contam.toml").write_text(
        '[plan]\ncorpus = ["data/corpus"]\nbenchmark = "data/items"\nout = "own"\n'
        'policy = ["contam", "gpt3-test"]\n[scan]\nworkers = 1\n'
    )
    done = contam_here("plan", "--lease-size=200k", cwd=home, CONTAM_PLAN_SEED="6")
    assert done.returncode == 0, done.stderr
    assert "CONTAM_PLAN_SEED gives --seed=6" in done.stderr
    done = contam_here("plan", "--lease-size=200k", "--overwrite", cwd=home)
    assert done.returncode == 0, done.stderr
    mine, other = (json.loads((home / n / "plan.json").read_text()) for n in ("own", "plan"))
    assert mine["question"] == other["question"]


def test_a_plan_may_allow_shards_that_cannot_be_read(home):
    (home / "data").unlink()
    write_shard(home / "data" / "a.parquet", ["nothing of it"])
    (home / "data" / "b.parquet").write_bytes(b"no Parquet")
    write_items(home / "bench.jsonl", [{"id": "q", "question": "who lit the old green lantern"}])
    what = (
        "plan",
        "--corpus",
        "data",
        "--benchmark",
        "bench.jsonl",
        "--overwrite",
        "--out",
        "plan",
    )
    refused = contam_here(*what, cwd=home)
    allowed = contam_here(*what, "--allow-missing", cwd=home)
    assert (refused.returncode, allowed.returncode) == (4, 0)
    assert "NOT READ: b.parquet" in allowed.stderr


def test_the_way_out_of_resuming_a_worker_is_its_own(home):
    done = contam_here("scan", "--plan", "plan", "--out", "parts", "--resume", cwd=home)
    assert_one_line_error(done, 2, "--resume", "--plan")


def test_a_finished_plan_is_replaced_only_when_asked(home):
    what = ("plan", "--corpus", "data/corpus", "--benchmark", "data/items", "--out", "plan")
    before = (home / "plan" / "plan.json").read_bytes()
    refused = contam_here(*what, cwd=home)
    assert_one_line_error(refused, 1, "plan", "--overwrite")
    assert (home / "plan" / "plan.json").read_bytes() == before
    assert contam_here(*what, "--overwrite", cwd=home).returncode == 0
    assert (home / "plan" / "plan.json").read_bytes() != before


@pytest.mark.parametrize("call", ["scan --plan plan --out", "merge parts --out"])
def test_nothing_is_written_into_the_corpus(home, call):
    (home / "data").unlink()
    write_shard(home / "data" / "corpus" / "a.parquet", ["nothing of it"])
    what = ("--corpus", "data/corpus", "--benchmark", "bench.jsonl")
    write_items(home / "bench.jsonl", [{"id": "q", "question": "who lit the old green lantern"}])
    assert contam_here("plan", *what, "--out", "plan", "--overwrite", cwd=home).returncode == 0
    assert contam_here("scan", "--plan", "plan", "--out", "parts", cwd=home).returncode == 0
    done = contam_here(*call.split(), "data/corpus/o", cwd=home)
    assert_one_line_error(done, 2, "inside the corpus")
    assert [entry.name for entry in (home / "data" / "corpus").iterdir()] == ["a.parquet"]
