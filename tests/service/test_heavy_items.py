"""Items that are hard to match do not keep others waiting, and are not called clean for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.server.running import serving

PLAIN = {"id": "plain", "question": "who counts the lamps along the old quay when the fog comes in"}


@pytest.fixture(scope="module")
def repeating(tmp_path_factory):
    """An index over documents that say one phrase over and over, and one that does not."""
    folder = tmp_path_factory.mktemp("repeating")
    texts = ["la " * 300_000, "to be " * 150_000, PLAIN["question"]]
    table = pa.table({"id": list("abc"), "text": texts})
    pq.write_table(table, folder / "corpus.parquet")
    build(folder / "corpus.parquet", folder / "index", load_recipe("standard"), workers=1)
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
