"""The nodes of a Ray cluster make the index of one machine, whichever of them die."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.processes import assert_one_line_error, command, contam
from tests.integration.processes import fixture_texts
from tests.ray.readers import run, run_and_kill

SHARDS = 3
#: Shards of a group of their own, since groups are cut by the sizes of files.
HOLE_BYTES = 300 << 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Shards with a hole before their footers, which takes a while to read and no disk."""
    folder = tmp_path_factory.mktemp("index-on-ray") / "corpus"
    folder.mkdir()
    for number in range(SHARDS):
        texts = [f"{text}\n{number}" for text in fixture_texts()[:200]]
        whole = io.BytesIO()
        pq.write_table(pa.table({"text": texts}), whole)
        data = whole.getvalue()
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        with (folder / f"part-{number}.parquet").open("wb") as file:
            file.write(data[:footer])
            file.seek(HOLE_BYTES)
            file.write(data[footer:])
    return folder


@pytest.fixture(scope="module")
def plain(corpus):
    """The index that one machine makes."""
    folder = corpus.parent / "plain"
    done = contam("index", "build", "--corpus", corpus, "--index", folder, "--quiet")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def plan(corpus):
    folder = corpus.parent / "plan"
    done = contam("index", "plan", "--corpus", corpus, "--out", folder)
    assert f"{SHARDS} groups" in done.stdout, done.stderr
    return folder


def on_ray(plan, address, parts):
    return command(
        "index", "build", "--plan", plan, "--engine", "ray", "--address", address, "--out", parts
    )


def merged(plan, parts, index):
    return contam("index", "merge", parts, "--plan", plan, "--index", index, "--json")


def content(folder):
    """Every file of an index but its lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def test_two_nodes_make_the_index_of_one_machine(cluster, plan, plain, tmp_path):
    parts = tmp_path / "parts"
    done = run(on_ray(plan, cluster, parts))
    assert done.returncode == 0, done.stderr
    assert f"{SHARDS} groups of {SHARDS} done" in done.stdout
    assert merged(plan, parts, tmp_path / "index").returncode == 0
    assert content(tmp_path / "index") == content(plain)
    again = run(on_ray(plan, cluster, parts))
    assert f"0 groups of {SHARDS} done, {SHARDS} there before" in again.stdout


def test_the_group_of_a_killed_process_goes_to_another(cluster, plan, plain, corpus, tmp_path):
    parts = tmp_path / "parts"
    code, said = run_and_kill(on_ray(plan, cluster, parts), corpus / "part-1.parquet", 1)
    assert code == 0, said
    assert "group 2: a process was lost" in said
    assert merged(plan, parts, tmp_path / "index").returncode == 0
    assert content(tmp_path / "index") == content(plain)


def test_a_group_that_three_processes_die_of_was_not_read(cluster, plan, plain, corpus, tmp_path):
    parts = tmp_path / "parts"
    code, said = run_and_kill(on_ray(plan, cluster, parts), corpus / "part-2.parquet", 3)
    assert code == 4, said
    assert "NOT READ: part-2.parquet: group 3 was lost 3 times" in said
    done = merged(plan, parts, tmp_path / "index")
    assert done.returncode == 4
    (failure,) = json.loads(done.stdout)["coverage"]["shards_failed"]
    assert failure["shard"] == "part-2.parquet"
    # The same call does what is left.
    again = run(on_ray(plan, cluster, parts))
    assert again.returncode == 0, again.stderr
    assert f"1 group of {SHARDS} done, {SHARDS - 1} there before" in again.stdout
    assert merged(plan, parts, tmp_path / "whole").returncode == 0
    assert content(tmp_path / "whole") == content(plain)


def test_no_plan_is_needed(cluster, plain, corpus, tmp_path):
    index = tmp_path / "index"
    done = contam(
        "index", "build", "--corpus", corpus, "--index", index, "--engine", "ray",
        "--address", cluster,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert content(index) == content(plain)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    again = contam(
        "index", "build", "--corpus", corpus, "--index", index, "--engine", "ray",
        "--address", cluster,
    )  # fmt: skip
    assert_one_line_error(again, 1, "already holds a finished index")


def test_without_a_cluster_no_group_is_written(plan, tmp_path):
    done = run(on_ray(plan, "127.0.0.1:1", tmp_path / "parts"))
    assert_one_line_error(done, 2, "127.0.0.1:1")
    assert not (tmp_path / "parts").exists()
