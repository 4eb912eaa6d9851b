"""What happens to an index, and to the corpus behind it, under a running service: never a wrong clean."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.server.running import serving
from tests.waiting import wait_until


@pytest.fixture
def corpus(bench_fixtures, tmp_path):
    return shutil.copytree(bench_fixtures / "corpus", tmp_path / "corpus")


@pytest.fixture
def index(corpus, tmp_path):
    folder = tmp_path / "index"
    build(corpus, folder, load_recipe("complete"), workers=1)
    return folder


def labels(client, items):
    reply = client.post("/v1/check", json={"items": items})
    assert reply.status_code == 200, reply.text
    return [(verdict["item_id"], verdict["label"]) for verdict in reply.json()["verdicts"]]


def arrays(index):
    return sorted(index.glob("segments/*/*.npy"))


def test_an_index_written_to_is_not_asked_any_more_until_it_is_whole_again(
    index, fixture_items, tmp_path
):
    with serving(index, data=tmp_path / "data") as service, service.client() as client:
        before = labels(client, fixture_items)
        assert {label for _, label in before} >= {"clean", "contaminated"}
        postings = max(arrays(index), key=lambda path: path.stat().st_size)
        good = postings.read_bytes()
        with postings.open("r+b") as file:
            # Past the header, and of the same length: only its time tells.
            file.seek(128)
            file.write(bytes(len(good) - 128))
        # The next answer already, before anybody looked in the background.
        reply = client.post("/v1/check", json={"items": fixture_items})
        assert (reply.status_code, reply.json()["code"]) == (503, "index-damaged")
        assert str(tmp_path) not in reply.text
        assert client.get("/readyz").status_code == 503
        assert client.get("/readyz").json()["code"] == "index-damaged"
        assert "contam_ready 0" in client.get("/metrics").text
        assert client.get("/livez").status_code == 200
        # It cannot be opened again as it is, and once it is restored it can.
        assert client.post("/v1/indexes/index/reload").status_code == 503
        postings.write_bytes(good)
        assert client.post("/v1/check", json={"items": fixture_items}).status_code == 503
        assert client.post("/v1/indexes/index/reload").status_code == 200
        assert client.get("/readyz").status_code == 200
        assert labels(client, fixture_items) == before


def test_a_shard_that_is_removed_or_altered_leaves_nothing_clean(
    index, corpus, fixture_items, tmp_path
):
    with serving(index, data=tmp_path / "data") as service, service.client() as client:
        before = dict(labels(client, fixture_items))
        first, second = sorted(corpus.rglob("*.parquet"))[:2]
        os.truncate(second, second.stat().st_size - 1)
        first.unlink()

        def noticed():
            return client.get("/v1/indexes/index").json()["coverage"]["n_failed"] == 2

        # Although nobody asked for an item that these shards hold.
        wait_until(noticed)
        after = dict(labels(client, fixture_items))
        assert "clean" not in after.values()
        assert {item for item, label in before.items() if label == "clean"} <= {
            item for item, label in after.items() if label == "not_checkable"
        }
        lines = client.get("/metrics").text.splitlines()
        ratio = next(line for line in lines if line.startswith("contam_index_coverage_ratio{"))
        assert float(ratio.split()[1]) < 1


def test_an_index_that_is_cut_ends_the_answers_or_the_service_and_says_nothing_clean(
    index, fixture_items, tmp_path
):
    with serving(index, data=tmp_path / "data") as service, service.client() as client:
        for path in arrays(index):
            os.truncate(path, 0)
        try:
            reply = client.post("/v1/check", json={"items": fixture_items})
            assert (reply.status_code, reply.json()["code"]) == (503, "index-damaged")
            wait_until(lambda: client.get("/readyz").status_code == 503)
        except httpx.HTTPError:
            # Pages of the map that are not there any more: the system ends the process.
            assert service.wait() == -signal.SIGBUS
            return
        assert client.post("/v1/check", json={"items": fixture_items}).status_code == 503


PLAIN = {"id": "plain", "question": "who counts the lamps along the old quay when the fog comes in"}


@pytest.fixture(scope="module")
def repeating(tmp_path_factory):
    """An index over documents that say one phrase over and over, and one that does not."""
    folder = tmp_path_factory.mktemp("repeating")
    texts = ["la " * 300_000, "to be " * 150_000, PLAIN["question"]]
    table = pa.table({"id": list("abc"), "text": texts})
    pq.write_table(table, folder / "corpus.parquet")
    build(folder / "corpus.parquet", folder / "index", load_recipe("complete"), workers=1)
    return folder / "index"


def test_items_of_one_phrase_are_given_up_and_others_are_answered_meanwhile(repeating, tmp_path):
    heavy = [
        {"id": "1", "question": phrase * (199_000 // len(phrase))} for phrase in ("la ", "to be ")
    ]
    with (
        serving(repeating, data=tmp_path / "data") as service,
        service.client() as client,
        ThreadPoolExecutor(5) as pool,
    ):
        asked = [{"items": [one]} for one in (*heavy, *heavy, PLAIN)]
        replies = [pool.submit(client.post, "/v1/check", json=one) for one in asked]
        *late, plain = (reply.result().json()["verdicts"][0] for reply in replies)
        assert {(one["label"], one["reason"]) for one in late} == {("not_checkable", "deadline")}
        assert plain["label"] == "contaminated"
        # No thread is still at work on what was answered.
        assert client.post("/v1/check", json={"items": [PLAIN]}).json()["verdicts"] == [plain]
