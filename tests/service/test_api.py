"""Whatever the OpenAPI file allows or forbids is sent to a real service: it never fails, and keeps its word.

`positive_data_acceptance` is not asked: what a schema cannot say (a shard goes with a row, limits that
an operator sets, one of `items`, `text` and `grams`) is refused with a documented 413 or 422.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.server.running import serving

KEY = "fuzzed-0123456789abcdef0123456789abcdef"
SECONDS = 60


def test_no_request_makes_the_service_fail_or_break_its_contract(
    small_index, fixture_items, tmp_path
):
    pytest.importorskip("schemathesis", reason="pip install 'contam[service]'")
    environ = {"CONTAM_ADMIN_KEY": KEY}
    flags = ("--retention-s", "600", "--max-queued-jobs", "1000000")
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
                "--exclude-checks", "positive_data_acceptance", "--max-examples", "20",
                "--max-time", str(SECONDS), "--continue-on-failure", "--seed", "1",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS * 10,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-8000:]
        # Every operation was reached, and the service is what it was.
        assert f"Tested: {n_operations(client)}" in done.stdout
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/check", json={"items": fixture_items}).json() == before
    lines = [json.loads(line) for line in service.lines if line.startswith("{")]
    assert [line for line in lines if line["event"] == "defect"] == []
    assert len(lines) > 500


def n_operations(client):
    paths = client.get("/openapi.json").json()["paths"]
    return sum(len(operations) for operations in paths.values())
