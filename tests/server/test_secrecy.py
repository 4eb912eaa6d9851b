"""An unpublished test stays unpublished: no stream and no file of the service holds its words."""

import io
import json
import logging
import re
from pathlib import Path

import pytest

from contam.server.auth import KeyStore
from tests.server.guarded import guarded, logs_to
from tests.server.jobs.jobbing import ended, submit, submitted
from tests.server.running import serving
from tests.waiting import wait_until

MARKER = "zyzzogeton"
TEXT = f"seven {MARKER} lanterns {MARKER} over the {MARKER} harbour"
LINES = f'{{"id": "a", "question": "{TEXT}"}}\n'.encode()
ROW = {"id": "one", "question": TEXT, MARKER: TEXT, "metadata": {MARKER: TEXT}}
ITEM = {"id": "one", "question": TEXT, "passage": TEXT, "choices": [TEXT, "b"], "answer": TEXT}


def holds_marker(path):
    try:
        return path.is_file() and MARKER.encode() in path.read_bytes()
    except FileNotFoundError:
        return False


def files_with_marker(*folders):
    return [path for folder in folders for path in folder.rglob("*") if holds_marker(path)]


def refused_and_broken(client):
    """Requests that fail in every way there is, each with the marker where it can stand."""
    for wrong in (
        {"id": 1.5, MARKER: TEXT}, {"choices": {MARKER: []}}, {"answer_index": MARKER},
        {"question": {"stem": TEXT, "choices": TEXT}, MARKER: TEXT},
    ):  # fmt: skip
        yield client.post("/v1/check", json={"items": [{**ITEM, **wrong}]})
    options = {"id": "1", "question": TEXT, "options": TEXT, MARKER: TEXT}
    yield client.post("/v1/check", json={"items": [options]})
    yield client.post("/v1/check", json={"items": [ITEM], "policies": [TEXT]})
    yield client.post("/v1/check", json={"items": [ITEM], "index": TEXT})
    yield client.post("/v1/check", json={"items": [ITEM, ITEM]})
    yield client.post("/v1/check", content=f'{{"items": {MARKER}')
    yield client.post("/v1/check", content=TEXT, headers={"Content-Type": f"text/{MARKER}"})
    yield client.post("/v1/check", content=TEXT, headers={"Content-Encoding": MARKER})
    yield client.post("/v1/check", content=TEXT, headers={"Content-Encoding": "gzip"})
    yield client.post("/v1/check", content=b"[" * 100 + TEXT.encode(), headers={"X-A": TEXT})
    yield client.get(f"/v1/{MARKER}", params={MARKER: TEXT})
    yield client.get(f"/v1/indexes/{MARKER}", params={MARKER: TEXT})
    yield client.get(f"/v1/jobs/{MARKER}")
    yield client.get("/v1/indexes/small", headers={"Authorization": f"Bearer {TEXT}"})
    yield client.post("/v1/jobs", content=TEXT)
    yield submit(client, {"kind": TEXT})
    yield submit(client, {"kind": "check"}, items=("a.parquet", f"PAR1{TEXT}".encode()))
    json_body = {"Content-Type": "application/json"}
    twice = f'{{"text": "{TEXT}", "text": "{TEXT}"}}'
    yield client.post("/v1/check", content=twice, headers=json_body)
    yield submit(
        client, {"kind": "check", "options": {"mapping": {MARKER: TEXT}}}, items=("a", LINES)
    )
    yield submit(client, {"kind": "check", MARKER: TEXT}, items=("a.jsonl", LINES))
    yield submit(client, {"kind": "check"}, {"Idempotency-Key": MARKER * 40}, items=("a", LINES))
    yield submit(client, {"kind": "check"}, items=(f"{MARKER}.jsonl", LINES), logs=(MARKER, b""))
    yield submit(client, {"kind": "rescore", "job": MARKER}, logs=(MARKER, LINES))
    yield submit(client, {"kind": "rescore"}, logs=(f"../{MARKER}", LINES))


def refuse_all_and_quote_nothing(client):
    for failed in refused_and_broken(client):
        assert 400 <= failed.status_code < 500, failed.text
        assert MARKER not in failed.text
        assert MARKER not in str(failed.headers)


def jobs_of_all_kinds(client, checked):
    """Jobs that end well, and jobs that fail halfway; all of them have ended."""
    check = {"kind": "check"}
    broken = LINES + f'{{"id": "b", "question": "{TEXT}'.encode()
    found = [submitted(client, check, items=("a.jsonl", broken))]
    reply = submit(client, check, {"Idempotency-Key": MARKER}, items=("items.jsonl", LINES))
    assert reply.status_code == 202
    found.append(reply.json())
    again = submit(client, check, {"Idempotency-Key": MARKER}, items=("items.jsonl", LINES * 2))
    assert (again.status_code, MARKER in again.text) == (422, False)
    good = f"item_id,question,model-a\n0,{TEXT},1\n1,{TEXT},0\n2,{TEXT},1\n"
    asked = {"kind": "rescore", "job": checked["id"], "options": {"least": 1, "permutations": 99}}
    found += [
        submitted(client, asked, logs=("brook.csv", log.encode()))
        for log in (good, good + f"2,{TEXT},0\n", f"{TEXT},b\n1,2\n")
    ]
    shown = [ended(client, one) for one in found]
    assert MARKER not in json.dumps(shown)
    assert {one["state"] for one in shown} == {"done", "failed"}
    return found


def leaves_no_core(process):
    limits = Path(f"/proc/{process}/limits").read_text()
    return re.search(r"^Max core file size +[01] ", limits, re.MULTILINE) is not None


def hidden_from(client, key, jobs):
    """Another key is told nothing of jobs, and nothing of what was asked with them."""
    asked = {"headers": {"Authorization": f"Bearer {key}"}}
    for job in jobs:
        for path in ("", "/results", "/summary", "/run"):
            assert client.get(f"/v1/jobs/{job['id']}{path}", **asked).status_code == 404
    assert client.get("/v1/jobs", **asked).json() == {"jobs": []}


def on_the_page(service, secret):
    """Sends forms that fail and one that does not."""
    with service.client(headers={"Origin": service.url}, auth=("anna", secret)) as client:
        assert client.get("/", auth=("anna", TEXT)).status_code == 401
        form = {"index": "small", "policy": "contam", "question": TEXT}
        for wrong in ({"index": TEXT}, {"policy": TEXT}, {"right": TEXT}):
            assert 400 <= client.post("/", data={**form, **wrong}).status_code < 500
        assert client.get("/", params={MARKER: TEXT}).status_code == 200
        answer = client.post("/", data={**form, "passage": TEXT, "answer": TEXT})
        assert answer.status_code == 200
        assert MARKER in answer.text


@pytest.mark.slow
def test_what_was_asked_is_nowhere_but_in_its_own_answer(small_index, tmp_path):
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    temporary.mkdir()
    key, secret = KeyStore(data).add("evaluation", ["check", "jobs", "read-documents"])
    _, other = KeyStore(data).add("another", ["check", "jobs"])
    environ = {"TMPDIR": str(temporary)}
    flags = ("--log-level", "debug")
    with serving(f"small={small_index}", data=data, flags=flags, environ=environ) as service:
        bearer = {"Authorization": f"Bearer {secret}"}
        with service.client(headers=bearer) as client:
            headers = {"X-Request-ID": "asked-1"}
            answer = client.post("/v1/check", json={"items": [ROW]}, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["x-request-id"] == "asked-1"
            assert client.post("/v1/check", json={"text": TEXT}).status_code == 200
            refuse_all_and_quote_nothing(client)
            on_the_page(service, secret)
            lines = "".join(json.dumps({**ITEM, "id": str(n)}) + "\n" for n in range(3))
            job = submitted(client, {"kind": "check"}, items=("items.jsonl", lines.encode()))
            done = ended(client, job)
            assert done["state"] == "done", done
            assert MARKER not in json.dumps(done)
            others = jobs_of_all_kinds(client, job)
            # The metadata of jobs is no place for texts even while a job is kept.
            kept = [path for path in data.iterdir() if path.is_file()]
            assert kept
            for path in kept:
                assert MARKER.encode() not in path.read_bytes(), path
            hidden_from(client, other, [job, *others])
            assert MARKER not in client.get("/metrics").text
            assert leaves_no_core(service.process.pid)
            # What was sent for a job is gone as soon as it has ended.
            wait_until(lambda: files_with_marker(data, temporary) == [])
            for one in (job, *others):
                assert client.delete(f"/v1/jobs/{one['id']}").status_code == 204
            assert list((data / "jobs").iterdir()) == []
        assert files_with_marker(data, temporary, small_index) == []
        service.stop()
        output = service.process.stdout.read()
    output += "".join(service.lines)
    assert [one for one in (MARKER, secret) if one in output] == []
    assert files_with_marker(data, temporary, small_index) == []
    told = [json.loads(line) for line in service.lines if line.startswith("{")]
    (line,) = [one for one in told if one.get("request_id") == "asked-1"]
    assert line["event"] == "request"
    assert (line["key_id"], line["route"], line["status"]) == (key.id, "/v1/check", 200)
    assert line["n_items"] == 1
    assert line["duration_ms"] > 0


@pytest.mark.parametrize("path", ["broken", "halfway"])
def test_a_defect_is_told_by_its_type_and_place_alone(tmp_path, path):
    with guarded(tmp_path) as running, running.client() as client:
        try:
            answer = client.get(f"/v1/{path}/{MARKER}")
        except Exception:  # noqa: BLE001 - the connection ends where the answer broke
            answer = None
        if path == "broken":
            assert (answer.status_code, answer.json()["code"]) == (500, "internal")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert MARKER not in answer.text
            assert 'contam_errors_total{type="ValueError"} 1.0' in client.get("/metrics").text
        assert client.post("/v1/echo", content=b"x").status_code == 200
    assert MARKER.encode() not in running.log.getvalue()
    assert b"ValueError" in running.log.getvalue() or path == "halfway"
    assert any(f"{path}/{{text}}" in line.get("route", "") for line in running.lines())


def test_what_a_library_logs_is_told_by_its_place_alone():
    stream = io.BytesIO()
    with logs_to(stream):
        try:
            int(MARKER)
        except ValueError:
            library = logging.getLogger("some.library")
            library.exception("it says %s", MARKER, extra={"fields": {"text": MARKER}})
    assert MARKER.encode() not in stream.getvalue()
    line = json.loads(stream.getvalue())
    told = [line[name] for name in ("level", "event", "logger")]
    assert told == ["error", "a library has a message", "some.library"]
    assert line["place"].startswith("test_secrecy:")
    assert line["fault"]["types"] == ["ValueError"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a-1.B_c", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ("ä", False), ("", 0)],
)
def test_a_sane_request_id_is_taken_over_and_another_is_replaced(tmp_path, given, kept):
    with guarded(tmp_path) as running, running.client() as client:
        answer = client.get("/livez", headers={"X-Request-ID": given.encode()})
    assert (answer.headers["x-request-id"] == given) == bool(kept)
    assert len(answer.headers["x-request-id"]) >= 7
