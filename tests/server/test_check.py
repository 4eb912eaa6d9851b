"""What a check answers over HTTP: the words of both sides, rows of files as items, and how much."""

import asyncio
import json
import threading

import httpx
import pytest

import contam
from contam.cli.main import main
from contam.client import Client
from contam.config import Settings
from contam.errors import IndexMismatchError, UsageError
from contam.server.app import create_app
from contam.server.check import Admission, LateError, answer_of, items_of
from contam.server.indexes import IndexRegistry
from contam.server.problems import RequestError
from contam.server.schemas import CheckAnswer, CheckRequest
from tests.waiting import wait_until


def test_a_copied_item_is_contaminated_and_the_evidence_quotes_both_sides(client, fixture_items):
    item = fixture_items[0]
    asked = {"index": "small", "items": [item], "options": {"context": 12}}
    reply = client.post("/v1/check", json=asked)
    assert reply.status_code == 200
    answer = reply.json()
    CheckAnswer.model_validate_json(reply.content, strict=True)
    (verdict,) = answer["verdicts"]
    assert (verdict["item_id"], verdict["label"]) == (item["id"], "contaminated")
    first = verdict["evidence"][0]
    assert first["item_text"] == item["question"][first["item_start"] : first["item_end"]]
    assert first["document_text"] == first["item_text"]
    assert len(first["before"]) == len(first["after"]) == 12
    assert answer["index"] == ["small"]
    assert answer["guarantee_tokens"] == 5
    assert answer["coverage"]["complete"] is True
    (state,) = answer["states"]
    assert state == client.get("/v1/indexes/small").json()["state"]


def test_an_answer_of_just_the_limit_is_given(small_index, fixture_items, client):
    asked = {"items": fixture_items[:2]}
    reply = client.post("/v1/check", json=asked)
    n = len(reply.content)
    registry = IndexRegistry.open(Settings(index=(str(small_index),)))
    with registry.snapshot() as snapshot:
        request = CheckRequest.model_validate_json(json.dumps(asked))
        result = snapshot.reader.check(items_of(request), policies=["contam"])
        answer = answer_of(result, snapshot, request.options, reply.json()["read"])
        assert json.loads(answer.as_json(n)) == reply.json()
        with pytest.raises(RequestError):
            answer.as_json(n - 1)


POLICIES = ["contam", "gpt3-test"]
QUESTION = "Which of these seven lanterns on the old quay was the last one that anybody lit?"
#: Rows as published benchmarks have them, with fields that are no part of an item.
ROWS = {
    "mmlu": {"question": QUESTION, "subject": "harbour_law", "choices": ["red", "blue"], "answer": 1},
    "arc": {
        "question": QUESTION, "answerKey": "B",
        "choices": {"text": ["red", "blue"], "label": ["A", "B"]},
    },
    "medqa": {
        "question": QUESTION, "options": {"A": "red", "B": "blue"}, "answer_idx": "B",
        "meta_info": {"step": [1, {"of": None}]},
    },
    "race": {"article": "An article of some length.", "question": QUESTION, "options": ["red", "blue"], "answer": "A"},
    "squad": {"context": "A paragraph of some length.", "question": QUESTION, "answers": {"text": ["red"], "answer_start": [3]}},
    "turns": {"question": [{"role": "user", "content": QUESTION}], "tags": []},
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(fixture_items):
    """Copied items in the shape of each benchmark, and plain ones with more fields."""
    shaped = []
    for number, (name, row) in enumerate(ROWS.items()):
        text = fixture_items[number]["question"]
        question = [{"role": "user", "content": text}] if name == "turns" else text
        shaped.append({**row, "id": number, "benchmark": name, "question": question})
    return shaped + [{**item, "subject": "mills", "metadata": {"n": 1}} for item in fixture_items]


@pytest.fixture(scope="module")
def queried(rows, small_index, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for row in rows:
        with (folder / f"{row['benchmark']}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    result = contam.query(small_index, folder, policies=POLICIES, workers=1)
    assert {"contaminated", "clean"} <= {verdict.label for verdict in result}
    return as_set(verdict.to_dict() for verdict in result)


def as_set(verdicts):
    return sorted(verdicts, key=repr)


def test_rows_are_judged_as_a_query_judges_their_file(client, rows, queried):
    reply = client.post("/v1/check", json={"items": rows, "policies": POLICIES})
    assert reply.status_code == 200, reply.text
    verdicts = reply.json()["verdicts"]
    for verdict in verdicts:
        del verdict["evidence"]
    assert as_set(verdicts) == queried


def test_the_client_takes_rows_and_a_job_judges_them_alike(service, rows, queried):
    with Client(service.url) as client:
        assert as_set(v.to_dict() for v in client.check(rows, policies=POLICIES)) == queried
        job = client.wait(client.submit(rows, policies=POLICIES))
        assert as_set(v.to_dict() for v in client.results(job)) == queried
        by_name = {"brook_math": [row for row in rows if row["benchmark"] == "brook_math"]}
        assert {v.benchmark for v in client.check(by_name)} == {"brook_math"}


def test_the_client_names_the_item_and_field_that_is_wrong(service):
    good = {"id": 1, "question": QUESTION}
    with Client(service.url) as client:
        for bad, told in (
            ({"id": 2, "question": QUESTION, "options": 5}, "item 2, field 'options': the choices"),
            ({"id": 2, "question": None}, "item 2, field 'question': the question is empty"),
            ({"id": 2, "subject": "law"}, "item 2: no field for the question"),
        ):
            with pytest.raises(UsageError, match=told):
                client.check([good, bad])
        with pytest.raises(UsageError, match="item 1"):
            client.submit("abc")


def test_further_fields_are_bounded_like_the_rest_of_a_request(client):
    item = {"id": 1, "question": QUESTION}
    large = client.post("/v1/check", json={"items": [{**item, "metadata": "x" * (9 << 20)}]})
    assert (large.status_code, large.json()["code"]) == (413, "too-large")
    # What is searched for counts, whatever its field is called.
    long = client.post("/v1/check", json={"items": [{**item, "context": "word " * 50_000}]})
    assert (long.status_code, long.json()["code"]) == (413, "too-large")
    assert "item 0" in long.json()["detail"]


ITEM = {"id": "1", "question": "How many pears does the merchant of the harbour buy at 14 each?"}
POLICY = "contam-meaning"


def test_the_service_refuses_it_by_name(client):
    for policies in ([POLICY], ["contam", POLICY]):
        reply = client.post("/v1/check", json={"items": [ITEM], "policies": policies})
        assert (reply.status_code, reply.json()["code"]) == (422, "policy")
        assert POLICY in reply.json()["detail"]


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


TWO = {"items": [{"id": "b", "question": "one two three"}, {"id": "a", "question": "four"}]}


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
            await asyncio.to_thread(wait_until, lambda: not app.state.contam.not_ready)
            await work(client, app.state.contam)

    asyncio.run(run())


def test_past_the_deadline_every_item_is_not_checkable(small_index, tmp_path):
    settings = Settings(index=(str(small_index),), data=str(tmp_path), deadline_s=1e-6)

    async def work(client, _state):
        reply = await client.post("/v1/check", json={**TWO, "policies": ["contam", "gpt3-test"]})
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
        waiting = asyncio.create_task(client.post("/v1/check", json=TWO))
        await until(lambda: state.admission.held == 2)
        refused = await client.post("/v1/check", json=TWO)
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/v1/indexes")).status_code == 200
        go_on.set()
        assert (await waiting).status_code == 200
        await busy
        assert (await client.post("/v1/check", json=TWO)).status_code == 200

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
