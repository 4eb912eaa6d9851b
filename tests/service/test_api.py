"""Whatever the OpenAPI file allows or forbids is sent to a real service: it never fails, and keeps its word.

`positive_data_acceptance` is not asked: what a schema cannot say (a shard goes with a row, limits that
an operator sets, either `items` or `text`) is refused with a documented 413 or 422.
"""

import json
import subprocess
import sys
from collections import Counter

import pytest

from tests.server.running import serving
from tests.waiting import HANG_S

KEY = "fuzzed-0123456789abcdef0123456789abcdef"
#: Requests that each operation gets at least, with whatever its parameters and body may be.
CASES = 20


def test_no_request_makes_the_service_fail_or_break_its_contract(
    small_index, fixture_items, tmp_path
):
    pytest.importorskip("schemathesis", reason="pip install '.[service]'")
    environ = {"CONTAM_ADMIN_KEY": KEY}
    flags = ("--retention-s", "600")
    with (
        serving(small_index, data=tmp_path / "data", environ=environ, flags=flags) as service,
        service.client(headers={"Authorization": f"Bearer {KEY}"}) as client,
    ):
        before = client.post("/v1/check", json={"items": fixture_items}).json()
        done = subprocess.run(
            [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
                "--no-color", "run", f"{service.url}/openapi.json",
                "--header", f"Authorization: Bearer {KEY}", "--checks", "all",
                "--exclude-checks", "positive_data_acceptance", "--max-examples", str(CASES),
                "--continue-on-failure", "--seed", "1",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-8000:]
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/check", json={"items": fixture_items}).json() == before
        operations = operations_of(client)
    lines = [json.loads(line) for line in service.lines if line.startswith("{")]
    assert [line for line in lines if line["event"] == "defect"] == []
    requests = [line for line in lines if line["event"] == "request"]
    asked = Counter((line["method"], line["route"].replace(":path", "")) for line in requests)
    assert {one: asked[one] for one, least in operations.items() if asked[one] < least} == {}
    # Bodies have more to vary than addresses, and some of them must be good ones.
    assert min(asked["POST", path] for path in ("/v1/check", "/v1/jobs")) >= 5 * CASES
    good = [line for line in requests if line["route"] == "/v1/check" and line["status"] == 200]
    assert len(good) > 2


def operations_of(client):
    """Method and path of every operation but the probes, which the log leaves out: how often it is
    to be asked at least. There is nothing to vary in one without parameters and body.
    """
    paths = client.get("/openapi.json").json()["paths"]
    return {
        (method.upper(), path): CASES if {"parameters", "requestBody"} & operation.keys() else 1
        for path, operations in paths.items()
        for method, operation in operations.items()
        if path.startswith("/v1/")
    }
