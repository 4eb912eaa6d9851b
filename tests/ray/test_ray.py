"""The nodes of a Ray cluster compute parts, and it does not matter which processes die."""

import contextlib
import json
import shutil
import signal
import subprocess

import pytest

from tests.cli.processes import assert_one_line_error, command, contam, environment
from tests.contracts.pages import REPOSITORY, blocks
from tests.integration.processes import ITEMS, varied_texts, warm_up, write_parquet
from tests.ray.conftest import two_nodes
from tests.ray.readers import readers, run, run_and_kill
from tests.waiting import HANG_S, wait_until

SHARDS = 6
#: Text of a shard: some seconds of work, so that its reader is found at it.
SHARD_BYTES = 24 << 20
PART_BYTES = 30 << 20
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


def scanned(corpus):
    out = corpus.parent / "plain"
    contam("scan", "--corpus", corpus, "--benchmark", ITEMS, "--out", out, "--quiet")
    return out


def on_ray(corpus, address, home, *more):
    """A call that keeps a part for each shard."""
    return command(
        "scan", "--corpus", corpus, "--benchmark", ITEMS, "--engine", "ray", "--address", address,
        "--parts", home / "parts", "--part-size", f"{PART_BYTES}", "--out", home / "out", *more,
    )  # fmt: skip


def parts_in(home):
    return [
        path for path in home.glob("parts/*.part") if not path.read_bytes().startswith(b"contam")
    ]


def assert_same(out, plain):
    for name in FILES:
        assert (out / name).read_bytes() == (plain / name).read_bytes(), name


def test_two_nodes_find_what_one_machine_finds(cluster, corpus, plain, tmp_path):
    done = run(on_ray(corpus, cluster, tmp_path))
    assert done.returncode == 0, done.stderr
    assert_same(tmp_path / "out", plain)
    # What is done is done.
    before = {path: path.stat().st_ino for path in parts_in(tmp_path)}
    assert len(before) == SHARDS
    again = run(on_ray(corpus, cluster, tmp_path, "--overwrite"))
    assert f"parts there before: {len(before)}" in again.stderr
    assert {path: path.stat().st_ino for path in parts_in(tmp_path)} == before


def test_the_part_of_a_killed_process_goes_to_another(cluster, corpus, plain, tmp_path):
    call = on_ray(corpus, cluster, tmp_path)
    code, said = run_and_kill(call, corpus / "part-2.parquet", 1)
    assert code == 0, said
    assert_same(tmp_path / "out", plain)


def test_a_part_that_three_processes_die_of_was_not_read(cluster, corpus, plain, tmp_path):
    call = on_ray(corpus, cluster, tmp_path, "--json")
    code, summary, said = run_and_kill(call, corpus / "part-4.parquet", 3, stdout=True)
    assert code == 4, said
    found = json.loads(summary)
    failed = {one["shard"]: one["reason"] for one in found["coverage"]["shards_failed"]}
    assert "lost 3 times on the Ray cluster" in failed["part-4.parquet"]
    assert not any(counts["contam"].get("clean") for counts in found["counts"].values())
    # The same call does what is left.
    again = run(on_ray(corpus, cluster, tmp_path, "--overwrite"))
    assert again.returncode == 0, again.stderr
    assert "parts there before" in again.stderr
    assert_same(tmp_path / "out", plain)


def test_ctrl_c_ends_the_tasks_and_keeps_what_is_done(cluster, corpus, plain, tmp_path):
    call = subprocess.Popen(
        on_ray(corpus, cluster, tmp_path), stderr=subprocess.PIPE, text=True, env=environment()
    )
    wait_until(lambda: len(parts_in(tmp_path)) >= 1)
    call.send_signal(signal.SIGINT)
    _, said = call.communicate(timeout=HANG_S)
    assert call.returncode == 130, said
    assert "same call" in said
    wait_until(lambda: not readers(corpus))
    n_done = len(parts_in(tmp_path))
    again = run(on_ray(corpus, cluster, tmp_path))
    assert f"parts there before: {n_done}" in again.stderr
    assert_same(tmp_path / "out", plain)


def test_no_folder_of_parts_is_needed(cluster, plain, corpus, tmp_path):
    out = tmp_path / "out"
    done = contam(
        "scan", "--corpus", corpus, "--benchmark", ITEMS, "--engine", "ray", "--address", cluster,
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_same(out, plain)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_guide_works_as_written(cluster, bench_fixtures, tmp_path):
    page = (REPOSITORY / "docs" / "guides" / "data" / "clusters.md").read_text("utf-8")
    (shown,) = [block.text for block in blocks(page) if "ray start" in block.text]
    (tmp_path / "bench_fixtures").symlink_to(bench_fixtures)
    (call,) = [line.split()[2:] for line in shown.splitlines() if line.startswith("$ contam")]
    done = contam(*call, cwd=tmp_path, RAY_ADDRESS=cluster)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "ray-merged" / "verdicts.parquet").exists()


def test_a_node_with_another_version_ends_the_run(corpus, tmp_path):
    shutil.copytree(REPOSITORY / "contam", tmp_path / "other" / "contam")
    kernel = tmp_path / "other" / "contam" / "kernels" / "runs.py"
    kernel.write_text(kernel.read_text("utf-8") + "# other\n", "utf-8")
    # Ray lets its nodes look for modules in the folder that the driver runs in.
    with contextlib.chdir(tmp_path), two_nodes(PYTHONPATH=str(tmp_path / "other")) as address:
        done = run(on_ray(corpus, address, tmp_path))
    assert done.returncode == 4
    assert "has another kernels" in done.stderr
    assert not parts_in(tmp_path)


def test_without_a_cluster_nothing_is_written(corpus, tmp_path):
    done = run(on_ray(corpus, "127.0.0.1:1", tmp_path))
    assert_one_line_error(done, 2, "127.0.0.1:1")
    assert not parts_in(tmp_path)
    assert not (tmp_path / "out").exists()
