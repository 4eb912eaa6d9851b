"""The service, the command line and the Python API say the same of the same items."""

from __future__ import annotations

import json

import pytest

import contam
from contam.cli.main import main
from contam.detect.indexed.index_reader import open_index
from contam.detect.report import load_report
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.server.running import serving

POLICIES = ["contam", "openr1-8", "lmeval-13", "llama3-8gram"]


def as_asked(items):
    """Items of the library as a request has them."""
    return [
        {
            "id": item.item_id,
            **{name: getattr(item, name) for name in ("benchmark", "split", "question")},
            **{
                name: value
                for name in ("passage", "choices", "answer", "answer_index")
                if (value := getattr(item, name)) not in (None, ())
            },
        }
        for item in items
    ]


def told(client, items, index):
    """Verdicts and evidence as the service tells them, with the columns of the tables."""
    verdicts, evidence = [], {}
    body = {"index": index, "policies": POLICIES, "items": items}
    reply = client.post("/v1/check", json=body)
    assert reply.status_code == 200, reply.text
    for verdict in reply.json()["verdicts"]:
        key = tuple(verdict[name] for name in ("benchmark", "split", "item_id"))
        evidence[key] = verdict.pop("evidence")
        verdicts.append(verdict)
    return verdicts, evidence


def assert_three_agree(client, index, name, bench, out):
    arguments = ["--index", str(index), "--benchmark", str(bench), "--policy", ",".join(POLICIES)]
    assert main(["query", *arguments, "--out", str(out), "--quiet"]) == 0
    report = load_report(out)
    result = contam.query(index, bench, policies=POLICIES)
    assert [one.to_dict() for one in result] == report.verdicts.to_pylist()
    with_reader = open_index(index).check(result.items_in_order, policies=POLICIES)
    assert [one.to_dict() for one in with_reader] == report.verdicts.to_pylist()
    verdicts, evidence = told(client, as_asked(result.items_in_order), name)
    assert verdicts == report.verdicts.to_pylist()
    flat = []
    for row in report.evidence.to_pylist():
        key = tuple(row.pop(name) for name in ("benchmark", "split", "item_id"))
        mine = evidence[key].pop(0)
        flat.append(key)
        assert {name: mine[name] for name in row} == row
    assert flat
    assert not any(evidence.values())


def test_service_command_and_library_agree_on_the_small_corpus(
    client, small_index, bench_fixtures, tmp_path
):
    for bench in sorted((bench_fixtures / "items").glob("*.jsonl")):
        assert_three_agree(client, small_index, "small", bench, tmp_path / bench.stem)


@pytest.mark.labelled
@pytest.mark.slow
def test_service_command_and_library_agree_on_real_text(labelled_data, tmp_path):
    shards = sorted((labelled_data / "corpus").rglob("*.parquet"))[:1]
    build(shards, tmp_path / "real", load_recipe("standard"), workers=2)
    with serving(tmp_path / "real", data=tmp_path / "data") as service, service.client() as client:
        for bench in sorted((labelled_data / "items").glob("*.jsonl"))[:2]:
            some = tmp_path / bench.name
            lines = bench.read_text("utf-8").splitlines()
            some.write_text("".join(f"{line}\n" for line in lines[:200]), "utf-8")
            json.loads(lines[0])
            assert_three_agree(client, tmp_path / "real", "real", some, tmp_path / bench.stem)
