"""A problem comes with a hint, whatever was asked for."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nowhere", 404),
        ("PUT", "/v1/check", 405),
        ("GET", "/v1/jobs/none", 404),
        ("GET", "/v1/documents/small/none", 404),
        ("GET", "/v1/documents/small/none?start=3&end=1", 422),
        ("GET", "/v1/jobs?limit=0", 422),
    ],
)
def test_a_problem_comes_with_a_hint(client, method, path, status):
    reply = client.request(method, path)
    assert reply.status_code == status
    assert reply.json()["hint"]
