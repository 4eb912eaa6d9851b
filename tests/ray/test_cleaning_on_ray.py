"""A corpus that a Ray cluster searched is cleaned to the bytes of one machine."""

from __future__ import annotations

import json

from tests.cli.processes import command, contam
from tests.ray.readers import run


def cleaning(bench_fixtures, out, *flags):
    return command(
        "clean", "--corpus", bench_fixtures / "corpus", "--benchmark", bench_fixtures / "items",
        "--action", "mask", "--out", out, "--quiet", *flags,
    )  # fmt: skip


def content(folder):
    """Every file of a cleaned corpus but its record, which holds times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "clean.json"
    }


def test_two_nodes_clean_a_corpus_as_one_machine_does(cluster, bench_fixtures, tmp_path):
    one = run(cleaning(bench_fixtures, tmp_path / "one"))
    assert one.returncode == 0, one.stderr
    two = run(cleaning(bench_fixtures, tmp_path / "two", "--engine", "ray", "--address", cluster))
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
