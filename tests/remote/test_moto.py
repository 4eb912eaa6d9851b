"""Once against an S3 server that is not ours: moto, where `moto_server` is installed."""

import shutil
import socket
import subprocess

import httpx
import pytest

from contam.corpus.shards import survey
from tests.remote.conftest import BUCKET, report
from tests.waiting import wait_until

MOTO = shutil.which("moto_server")
pytestmark = pytest.mark.skipif(MOTO is None, reason="moto_server is not installed")


def put(url, data=b""):
    httpx.put(url, content=data).raise_for_status()


def answers(url):
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def moto(credentials, files, monkeypatch):
    del credentials
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(f"{url}/moto-api/"))
        put(f"{url}/{BUCKET}")
        for name, data in files.items():
            put(f"{url}/{BUCKET}/data/{name}", data)
        # What other tools leave.
        put(f"{url}/{BUCKET}/data/")
        put(f"{url}/{BUCKET}/data/_SUCCESS")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_bucket_of_moto_is_answered_as_a_folder(moto, local, items, tmp_path):
    result, tables = report([f"s3://{BUCKET}/data"], items, tmp_path / "out")
    assert moto
    assert result.complete
    assert tables == local[1]
    assert len(survey([f"s3://{BUCKET}/data/in/*"])[0]) == 3
