"""How many checks are worked on, how many wait, and what happens when the time is over."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest

from contam.config import Settings
from contam.server.app import create_app
from contam.server.check import Admission, LateError
from contam.server.problems import RequestError

CHECK = {"items": [{"id": "b", "question": "one two three"}, {"id": "a", "question": "four"}]}


async def until(true):
    """Let others go on until it is so."""
    while not true():  # noqa: ASYNC110 - what is waited for is a count, and nobody tells of it
        await asyncio.sleep(0)


def asking(settings, work):
    """Run `work(client, state)` against an app in this process."""

    async def run():
        app = create_app(settings)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)),
                base_url="http://127.0.0.1",
            ) as client,
        ):
            await until(lambda: not app.state.contam.not_ready)
            await work(client, app.state.contam)

    asyncio.run(run())


def test_past_the_deadline_every_item_is_not_checkable(small_index, tmp_path):
    settings = Settings(index=(str(small_index),), data=str(tmp_path), deadline_s=1e-6)

    async def work(client, _state):
        reply = await client.post("/v1/check", json={**CHECK, "policies": ["contam", "gpt3-test"]})
        assert reply.status_code == 200
        answer = reply.json()
        assert [(verdict["item_id"], verdict["policy"]) for verdict in answer["verdicts"]] == [
            ("a", "contam"), ("a", "gpt3-test"), ("b", "contam"), ("b", "gpt3-test"),
        ]  # fmt: skip
        assert {verdict["label"] for verdict in answer["verdicts"]} == {"not_checkable"}
        assert {verdict["reason"].partition(":")[0] for verdict in answer["verdicts"]} == {
            "deadline"
        }
        assert answer["coverage"]["complete"] is True
        assert (await client.post("/v1/check", json={"items": []})).status_code == 422
        row = {"id": 7, "question": "Which?", "subject": "law"}
        (late,) = (await client.post("/v1/check", json={"items": [row]})).json()["verdicts"]
        assert (late["item_id"], late["benchmark"]) == ("7", "items")

    asking(settings, work)


def test_checks_beyond_those_that_may_wait_are_sent_away_and_probes_are_not(small_index, tmp_path):
    settings = Settings(index=(str(small_index),), data=str(tmp_path), max_checks=1, max_waiting=1)
    go_on = threading.Event()

    async def work(client, state):
        busy = asyncio.create_task(state.admission.run(go_on.wait, 60))
        await until(lambda: state.admission.held == 1)
        waiting = asyncio.create_task(client.post("/v1/check", json=CHECK))
        await until(lambda: state.admission.held == 2)
        refused = await client.post("/v1/check", json=CHECK)
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/v1/indexes")).status_code == 200
        go_on.set()
        assert (await waiting).status_code == 200
        await busy
        assert (await client.post("/v1/check", json=CHECK)).status_code == 200

    asking(settings, work)


def test_work_that_is_late_keeps_its_place_until_it_ends():
    async def run():
        admission = Admission(1, 0)
        go_on = threading.Event()
        with pytest.raises(LateError):
            await admission.run(go_on.wait, 0.01)
        with pytest.raises(RequestError) as refused:
            await admission.run(int, 1)
        assert refused.value.status == 503
        go_on.set()
        await until(lambda: not admission.held)
        assert await admission.run(lambda: 5, 10) == 5
        admission.close()

    asyncio.run(run())
