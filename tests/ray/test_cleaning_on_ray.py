"""A corpus that a Ray cluster searches and writes is cleaned to the bytes of one machine."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from tests.cli.processes import command, contam
from tests.ray.conftest import two_nodes
from tests.ray.readers import run, run_and_kill


@pytest.fixture(scope="module")
def plain(bench_fixtures, tmp_path_factory):
    """The files that one machine writes."""
    out = tmp_path_factory.mktemp("plain") / "one"
    done = run(cleaning(bench_fixtures, out))
    assert done.returncode == 0, done.stderr
    return content(out)


def cleaning(bench_fixtures, out, *flags):
    return command(
        "clean", "--corpus", bench_fixtures / "corpus", "--benchmark", bench_fixtures / "items",
        "--action", "mask", "--out", out, *flags,
    )  # fmt: skip


def content(folder):
    """Every file of a cleaned corpus but its record, which holds times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "clean.json"
    }


def test_two_nodes_clean_a_corpus_as_one_machine_does(cluster, bench_fixtures, tmp_path):
    one = run(cleaning(bench_fixtures, tmp_path / "one", "--quiet"))
    assert one.returncode == 0, one.stderr
    two = run(cleaning(bench_fixtures, tmp_path / "two", "--engine", "ray", "--address", cluster,
                       "--quiet"))  # fmt: skip
    assert two.returncode == 0, two.stderr
    found = content(tmp_path / "two")
    assert found == content(tmp_path / "one")
    assert any(name.startswith("removed/") for name in found)
    records = [json.loads((tmp_path / name / "clean.json").read_text()) for name in ("one", "two")]
    assert records[0]["removed"] == records[1]["removed"]
    again = contam(
        "scan", "--corpus", tmp_path / "two" / "corpus", "--benchmark", bench_fixtures / "items",
        "--out", tmp_path / "scan", "--fail-on-flagged", "--quiet",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr


def test_the_shard_of_a_killed_process_goes_to_another(cluster, plain, bench_fixtures, tmp_path):
    call = cleaning(bench_fixtures, tmp_path / "out", "--engine", "ray", "--address", cluster)
    code, said = run_and_kill(call, tmp_path / ".out.contam-work-clean" / "draft", 2)
    assert code == 0, said
    assert (
        len(re.findall(r"^shard \d: a process was lost, another does it", said, re.MULTILINE)) == 2
    )
    assert content(tmp_path / "out") == plain
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_parts_of_workers_are_written_by_the_cluster(cluster, plain, bench_fixtures, tmp_path):
    corpus, items = bench_fixtures / "corpus", bench_fixtures / "items"
    for call in (
        ("plan", "--corpus", corpus, "--benchmark", items, "--lease-size", "200KB", "--to-clean",
         "--out", "plan"),
        ("scan", "--plan", "plan", "--out", "parts"),
        ("clean", "--parts", "parts", "--action", "mask", "--shard", "1/3", "--out", "out"),
        ("clean", "--parts", "parts", "--action", "mask", "--engine", "ray", "--address", cluster,
         "--out", "out"),
    ):  # fmt: skip
        done = contam(*call, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == plain


def test_nodes_that_do_not_see_the_result_are_left_out(plain, bench_fixtures, tmp_path):
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"]).returncode:
        pytest.skip("nothing may be mounted here")
    home, alone = tmp_path / "home", tmp_path / "alone"
    home.mkdir()
    alone.mkdir()
    with two_nodes(home) as address:
        flags = ("--engine", "ray", "--address", address)
        done = run(cleaning(bench_fixtures, home / "out", *flags))
        assert done.returncode == 0, done.stderr
        assert content(home / "out") == plain
        # This folder only the driver sees.
        call = cleaning(bench_fixtures, alone / "out", *flags)
        mounted = f'mount -t tmpfs none "{alone}" && "$@"; code=$?; ls "{alone}"; exit $code'
        nobody = run(["unshare", "--mount", "sh", "-c", mounted, "sh", *call])
    assert nobody.returncode == 4, nobody.stderr
    assert nobody.stderr.count("is left out") == 2
    assert f"{alone}/.out.contam-work-clean is not seen here" in nobody.stderr
    assert "out" not in nobody.stdout.split()
