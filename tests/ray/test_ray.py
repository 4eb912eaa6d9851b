"""The nodes of a Ray cluster do the leases of a plan, and it does not matter which of them die."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from tests.cli.processes import assert_one_line_error, command, contam, environment
from tests.contracts.pages import REPOSITORY, blocks
from tests.integration.processes import ITEMS, varied_texts, warm_up, write_parquet
from tests.ray.conftest import two_nodes
from tests.ray.readers import readers, run, run_and_kill, stop_reader
from tests.waiting import HANG_S, wait_until

SHARDS = 6
#: Text of a shard: some seconds of work, so that its reader is found at it.
SHARD_BYTES = 24 << 20
FILES = ("verdicts.parquet", "evidence.parquet", "items.parquet")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Shards of many row groups."""
    folder = tmp_path_factory.mktemp("ray") / "corpus"
    warm_up(folder.parent)
    texts = varied_texts(SHARD_BYTES)
    for number in range(SHARDS):
        shard = folder / f"part-{number}.parquet"
        write_parquet(shard, [f"{text}\n{number}" for text in texts], row_group_size=500)
    return folder


@pytest.fixture(scope="module")
def plain(corpus):
    """What one machine finds."""
    return scanned(corpus)


@pytest.fixture(scope="module")
def plan(corpus):
    """A plan with a lease for each shard."""
    return planned(corpus)


def scanned(corpus):
    out = corpus.parent / "plain"
    contam("scan", "--corpus", corpus, "--benchmark", ITEMS, "--out", out, "--quiet")
    return out


def planned(corpus):
    out = corpus.parent / "plan"
    done = contam(
        "plan", "--corpus", corpus, "--benchmark", ITEMS, "--out", out, "--lease-size",
        f"{SHARD_BYTES}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{SHARDS} leases" in done.stdout
    return out


def on_ray(plan, address, parts):
    return command("scan", "--plan", plan, "--engine", "ray", "--address", address, "--out", parts)


def merged(parts, out):
    return contam("merge", parts, "--out", out, "--quiet", "--json")


def assert_same(out, plain):
    for name in FILES:
        assert (out / name).read_bytes() == (plain / name).read_bytes(), name


def test_two_nodes_find_what_one_machine_finds(cluster, plan, plain, tmp_path):
    parts = tmp_path / "parts"
    done = run(on_ray(plan, cluster, parts))
    assert done.returncode == 0, done.stderr
    assert f"{SHARDS} leases of {SHARDS} done" in done.stdout
    assert merged(parts, tmp_path / "out").returncode == 0
    assert_same(tmp_path / "out", plain)
    # What is done is done.
    before = {path: path.stat().st_ino for path in parts.iterdir()}
    again = run(on_ray(plan, cluster, parts))
    assert f"0 leases of {SHARDS} done, {SHARDS} there before" in again.stdout
    assert {path: path.stat().st_ino for path in parts.iterdir()} == before


def test_the_lease_of_a_killed_process_goes_to_another_and_counts_once(
    cluster, plan, plain, corpus, tmp_path
):
    parts = tmp_path / "parts"
    code, said = run_and_kill(on_ray(plan, cluster, parts), corpus / "part-2.parquet", 1)
    assert code == 0, said
    assert "lease 3: a process was lost" in said
    assert merged(parts, tmp_path / "out").returncode == 0
    assert_same(tmp_path / "out", plain)


def test_a_lease_that_three_processes_die_of_was_not_read(cluster, plan, plain, corpus, tmp_path):
    parts, out = tmp_path / "parts", tmp_path / "out"
    code, said = run_and_kill(on_ray(plan, cluster, parts), corpus / "part-4.parquet", 3)
    assert code == 4, said
    assert "NOT READ: part-4.parquet: lease 5 was lost 3 times" in said
    done = merged(parts, out)
    assert done.returncode == 4
    summary = json.loads(done.stdout)
    (failure,) = summary["coverage"]["shards_failed"]
    assert failure["shard"] == "part-4.parquet"
    assert "lease 5 was lost 3 times" in failure["reason"]
    assert not any(counts["contam"].get("clean") for counts in summary["counts"].values())
    # The same call does what is left.
    again = run(on_ray(plan, cluster, parts))
    assert again.returncode == 0, again.stderr
    assert f"1 lease of {SHARDS} done, {SHARDS - 1} there before" in again.stdout
    assert merged(parts, tmp_path / "whole").returncode == 0
    assert_same(tmp_path / "whole", plain)


def test_ctrl_c_ends_the_processes_and_keeps_what_is_done(cluster, plan, plain, corpus, tmp_path):
    parts = tmp_path / "parts"
    call = subprocess.Popen(
        on_ray(plan, cluster, parts), stderr=subprocess.PIPE, text=True, env=environment()
    )
    wait_until(lambda: len(list(parts.glob("*.part"))) >= 2)
    call.send_signal(signal.SIGINT)
    _, said = call.communicate(timeout=HANG_S)
    assert call.returncode == 130, said
    assert "the same call does the others" in said
    wait_until(lambda: not readers(corpus))
    n_done = len(list(parts.glob("*.part")))
    assert 2 <= n_done < SHARDS
    again = run(on_ray(plan, cluster, parts))
    assert f"{n_done} there before" in again.stdout
    assert merged(parts, tmp_path / "out").returncode == 0
    assert_same(tmp_path / "out", plain)


def test_what_a_node_cannot_read_another_reads(plan, plain, corpus, tmp_path):
    parts = tmp_path / "parts"
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"]).returncode:
        pytest.skip("nothing may be mounted here")
    with two_nodes(corpus) as address:
        call = subprocess.Popen(
            on_ray(plan, address, parts), stderr=subprocess.PIPE, text=True, env=environment()
        )
        # The node that sees the corpus is held until the other has tried.
        reader = stop_reader(corpus)
        while "another node tries" not in (line := call.stderr.readline()):
            assert line
        os.kill(reader, signal.SIGCONT)
        _, said = call.communicate(timeout=HANG_S)
    assert call.returncode == 0, said
    assert merged(parts, tmp_path / "out").returncode == 0
    assert_same(tmp_path / "out", plain)


def test_no_plan_is_needed(cluster, plain, corpus, tmp_path):
    out = tmp_path / "out"
    done = contam(
        "scan", "--corpus", corpus, "--benchmark", ITEMS, "--engine", "ray", "--address", cluster,
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_same(out, plain)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_guide_works_as_written(cluster, bench_fixtures, tmp_path):
    page = (REPOSITORY / "docs" / "guides" / "clusters.md").read_text("utf-8")
    (shown,) = [block.text for block in blocks(page) if "ray start" in block.text]
    (tmp_path / "bench_fixtures").symlink_to(bench_fixtures)
    calls = [line.split()[2:] for line in shown.splitlines() if line.startswith("$ contam")]
    assert len(calls) == 3
    for call in calls:
        done = contam(*call, cwd=tmp_path, RAY_ADDRESS=cluster)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "ray-merged" / "verdicts.parquet").exists()


def test_nodes_with_another_version_are_left_out(plan, tmp_path):
    shutil.copytree(REPOSITORY / "contam", tmp_path / "other" / "contam")
    kernel = tmp_path / "other" / "contam" / "kernels" / "runs.py"
    kernel.write_text(kernel.read_text("utf-8") + "# other\n", "utf-8")
    # Ray lets its nodes look for modules in the folder that the driver runs in.
    with contextlib.chdir(tmp_path), two_nodes(PYTHONPATH=str(tmp_path / "other")) as address:
        done = run(on_ray(plan, address, tmp_path / "parts"))
    assert done.returncode == 4
    assert done.stderr.count("is left out") == 2
    assert "made with another kernels" in done.stderr
    assert not list((tmp_path / "parts").glob("*.part"))


def test_without_a_cluster_nothing_is_written(plan, tmp_path):
    done = run(on_ray(plan, "127.0.0.1:1", tmp_path / "parts"))
    assert_one_line_error(done, 2, "127.0.0.1:1")
    assert not list((tmp_path / "parts").glob("*.part"))
