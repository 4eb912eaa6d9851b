"""No request makes the service fetch an address: only its operator names corpora and indexes."""

import json

import pytest

from tests.remote.s3 import S3Handler
from tests.remote.server import running
from tests.server.jobs.jobbing import ended, submitted
from tests.server.running import serving

ADDRESSES = (
    "s3://corpora/data/c.jsonl",
    "hf://datasets/owner/corpus",
    "gs://corpora/data",
    "https://127.0.0.1/a.jsonl",
)
ITEM = {"id": "one", "question": "How many lanterns hang over the old harbour at night?"}


@pytest.fixture(scope="module")
def store():
    """A bucket that the service could reach, with an object that it would read."""
    with running(S3Handler) as server:
        server.put("/corpora/data/c.jsonl", b'{"text": "a", "question": "b"}\n')
        yield server


@pytest.fixture(scope="module")
def client(store, small_index, tmp_path_factory):
    reach = {
        "AWS_ENDPOINT_URL": store.url,
        "HF_ENDPOINT": store.url,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
    }
    with (
        serving(small_index, data=tmp_path_factory.mktemp("data"), environ=reach) as service,
        service.client() as one,
    ):
        yield one


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("route", ["/v1/check", "/v1/jobs"])
@pytest.mark.parametrize(
    "changed", ["index", "policies", "items", "options", "corpus", "benchmark", "upload"]
)
def test_no_request_makes_the_service_fetch_an_address(client, store, route, changed, address):
    body = {"index": "small", "policies": ["contam"], "items": [ITEM]}
    if route == "/v1/jobs":
        body = {"kind": "check", **body}
    values = {
        "index": address,
        "policies": [address],
        "items": [{**ITEM, "id": address, "source": address, "benchmark": address}],
        "options": {"mapping": {"question": address}, "unit": address, "corpus": [address]},
        "corpus": [address],
        "benchmark": address,
        "upload": address,
    }
    answer = client.post(route, json={**body, changed: values[changed]})
    assert answer.status_code < 500
    if changed != "items":
        assert answer.status_code >= 400
    assert store.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_job_fetches_an_address_that_its_upload_is_called_by(client, store, address):
    asked = {"kind": "check", "index": "small", "policies": ["contam"]}
    row = {**ITEM, "source": address, "benchmark": address}
    job = submitted(client, asked, items=(address, json.dumps(row).encode() + b"\n"))
    assert ended(client, job)["state"] == "done"
    assert store.requests == []
