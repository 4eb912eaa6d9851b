"""No way in to an index calls an item clean that a policy of rephrasings would have to look for."""

import json

import pytest

import contam
from contam.cli.main import main
from contam.client import Client
from contam.client.failures import ServiceError
from contam.errors import IndexMismatchError

ITEM = {"id": "1", "question": "How many pears does the merchant of the harbour buy at 14 each?"}
POLICY = "contam-meaning"


def test_the_service_refuses_it_by_name(client, bodies_of_hashes):
    for body in ({"items": [ITEM]}, bodies_of_hashes):
        for policies in ([POLICY], ["contam", POLICY]):
            reply = client.post("/v1/check", json={**body, "policies": policies})
            assert (reply.status_code, reply.json()["code"]) == (422, "policy")
            assert POLICY in reply.json()["detail"]


@pytest.fixture
def bodies_of_hashes(bench_fixtures, small_index, tmp_path):
    """A request of hashes instead of texts."""
    items, out = bench_fixtures / "items" / "brook_math.jsonl", tmp_path / "hashed.jsonl"
    call = ["hash", "--quiet", "--benchmark", str(items), "--index", str(small_index)]
    assert main([*call, "--out", str(out)]) == 0
    return json.loads(out.read_text().splitlines()[0])


def test_the_client_and_its_commands_refuse_it(service, tmp_path, capsys):
    with Client(service.url) as asking, pytest.raises(ServiceError, match=POLICY):
        asking.check([ITEM], policies=[POLICY])
    items = tmp_path / "items.jsonl"
    items.write_text(json.dumps(ITEM) + "\n")
    call = ["check", "--server", service.url, "--policy", POLICY, "--quiet"]
    for more in (
        ["--text", ITEM["question"]],
        ["--benchmark", str(items), "--out", str(tmp_path / "out")],
    ):
        assert main([*call, *more]) == 2
        assert POLICY in capsys.readouterr().err


def test_a_query_refuses_it_with_the_way_out(small_index, tmp_path, capsys):
    with pytest.raises(IndexMismatchError, match=POLICY):
        contam.query(small_index, [ITEM], policies=POLICY)
    items = tmp_path / "items.jsonl"
    items.write_text(json.dumps(ITEM) + "\n")
    call = ["query", "--index", str(small_index), "--benchmark", str(items), "--policy", POLICY]
    assert main([*call, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert POLICY in told.err
    assert "contam scan" in told.err
    assert not (tmp_path / "out").exists()
