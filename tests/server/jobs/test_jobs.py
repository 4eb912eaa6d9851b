"""Jobs end to end on a real service: the same bytes as the command line, and nothing left over."""

import gzip
import io
import json
import sqlite3
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.query import query
from contam.detect.report import load_report, write_report
from contam.errors import ConfigError
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from contam.server.jobs.store import JobStore, StoreError
from contam.server.problems import RequestError
from tests.matrix import sampled
from tests.server.jobs.jobbing import (
    PARQUET,
    ended,
    fetched,
    held_still,
    processes,
    shown,
    submit,
    submitted,
    wait_for_job,
)
from tests.waiting import wait_until

POLICIES = ["contam", "llama3-8gram"]
CHECK = {"kind": "check", "policies": POLICIES, "options": {"name": "brook_math"}}
TABLES = ("verdicts", "evidence", "items")
QUICK = {"least": 15, "permutations": 99}


@pytest.fixture(scope="module")
def item_file(bench_fixtures):
    return (bench_fixtures / "items" / "brook_math.jsonl").read_bytes()


@pytest.fixture(scope="module")
def log_file(bench_fixtures):
    return (bench_fixtures / "logs" / "brook_math.csv").read_bytes()


@pytest.fixture(scope="module")
def asked_alone(small_index, bench_fixtures, tmp_path_factory):
    """The folder that `contam query --no-text` writes for the same items."""
    result = query(
        small_index, bench_fixtures / "items" / "brook_math.jsonl", policies=POLICIES,
        name="brook_math", keep_text=False,
    )  # fmt: skip
    return write_report(result, tmp_path_factory.mktemp("alone") / "out")


@pytest.fixture(scope="module")
def done(client, item_file):
    """A check that was sent packed, done."""
    job = submitted(client, CHECK, items=("any name at all", gzip.compress(item_file)))
    found = ended(client, job)
    assert found["state"] == "done", found
    return found


@pytest.mark.slow
def test_a_job_is_asked_for_again_until_its_end(client, done, item_file):
    job = submitted(client, CHECK, items=("x", item_file))
    reply = client.get(f"/v1/jobs/{job['id']}")
    assert (reply.json()["ended"], "retry-after" in reply.headers) in {(False, True), (True, False)}
    phases = []

    def over(found):
        phases.append(found["progress"] and found["progress"]["phase"])
        return found["ended"]

    wait_for_job(client, job, over)
    assert {"searching", "starting", "reading items", "judging", "writing"} & set(phases)
    assert "retry-after" not in client.get(f"/v1/jobs/{done['id']}").headers


def test_a_job_gives_the_bytes_of_a_query(client, done, asked_alone, tmp_path):
    folder = fetched(client, done, tmp_path / "fetched")
    for table in TABLES:
        name = f"{table}.parquet"
        assert (folder / name).read_bytes() == (asked_alone / name).read_bytes()
    run, alone = (load_report(one).run for one in (folder, asked_alone))
    for section in ("parameters", "coverage", "counts", "outputs", "versions"):
        assert run.get(section) == alone.get(section)


def test_no_place_on_the_servers_disk_is_told(client, service, done, small_index):
    said = client.get(f"/v1/jobs/{done['id']}/run").text + json.dumps(done)
    assert str(small_index.parent) not in said
    assert str(service.data) not in said


def test_a_parquet_file_goes_on_where_it_broke_off(client, done, asked_alone):
    place = f"/v1/jobs/{done['id']}/results"
    whole = (asked_alone / "verdicts.parquet").read_bytes()
    first = client.get(place, headers={"accept": PARQUET, "range": "bytes=0-999"})
    rest = client.get(
        place,
        headers={"accept": PARQUET, "range": "bytes=1000-", "if-range": first.headers["etag"]},
    )
    assert (first.status_code, rest.status_code) == (206, 206)
    assert first.content + rest.content == whole
    last = client.get(place, headers={"accept": PARQUET, "range": "bytes=-4"})
    assert last.content == b"PAR1"
    beyond = client.get(place, headers={"accept": PARQUET, "range": "bytes=9999999-"})
    assert beyond.status_code == 416


@pytest.mark.parametrize("table", ["other", "../run.json"])
def test_a_result_that_does_not_exist_is_a_problem(client, done, table):
    reply = client.get(f"/v1/jobs/{done['id']}/results?table={table}")
    assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json")


def test_inputs_are_gone_once_a_job_is_done_and_everything_once_it_is_deleted(client, service):
    marker = "umbrella-marker-71"
    row = json.dumps({"id": "a", "question": f"What is an {marker} made of, and by whom?"}).encode()
    job = submitted(client, {"kind": "check"}, items=("x.jsonl", row))
    folder = service.data / "jobs" / job["id"]
    assert ended(client, job)["state"] == "done"
    wait_until(lambda: not (folder / "input").exists())
    assert not any(marker.encode() in path.read_bytes() for path in service.data.glob("jobs.db*"))
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert not folder.exists()
    assert client.get(f"/v1/jobs/{job['id']}").status_code == 404


@pytest.mark.slow
def test_parquet_items_give_the_same_verdicts(client, item_file, asked_alone, tmp_path):
    table = pa.Table.from_pylist([json.loads(line) for line in item_file.splitlines()])
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=7)
    job = submitted(client, CHECK, items=("x.parquet", sink.getvalue()))
    assert ended(client, job)["state"] == "done"
    folder = fetched(client, job, tmp_path / "fetched")
    for table in TABLES:
        name = f"{table}.parquet"
        assert (folder / name).read_bytes() == (asked_alone / name).read_bytes()


@pytest.mark.slow
def test_a_line_that_holds_a_list_of_items_is_no_item(client):
    row = {"question": "zanzibar?", "data": [{"question": "Who counts the lamps along the quay?"}]}
    failed = ended(
        client, submitted(client, {"kind": "check"}, items=("x", json.dumps(row).encode()))
    )
    assert (failed["state"], failed["error"]["code"]) == ("failed", "usage")
    assert "line" in failed["error"]["hint"]


def test_items_without_a_question_fail_and_no_name_of_theirs_is_told(client):
    rows = b'{"zanzibar": "a", "zeppelin": "b"}\n'
    failed = ended(client, submitted(client, {"kind": "check"}, items=("x.jsonl", rows)))
    assert failed["error"]["code"] == "benchmark"
    assert "zanzibar" not in json.dumps(failed)


@pytest.mark.parametrize("end", sampled(2, [b'"\n', b'", "question": "zanzibar"}\n']))
def test_a_job_that_cannot_be_done_says_why_and_quotes_nothing(client, end):
    rows = b'{"id": "a", "question": "zanzibar?"}\n{"id": "b", "question": "zanzibar!' + end
    job = submitted(client, {"kind": "check"}, items=("x.jsonl", rows))
    failed = ended(client, job)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "benchmark")
    assert "items.jsonl:2" in failed["error"]["message"]
    assert "zanzibar" not in json.dumps(failed)
    reply = client.get(f"/v1/jobs/{job['id']}/results")
    assert (reply.status_code, reply.json()["code"]) == (409, "no-result")


def test_a_running_job_can_be_stopped(client, service, item_file):
    job = submitted(client, CHECK, items=("x.jsonl", item_file))
    child = held_still(service.process.pid)
    reply = client.delete(f"/v1/jobs/{job['id']}")
    assert (reply.status_code, reply.json()["state"]) == (200, "cancelled")
    wait_until(lambda: child not in processes(service.process.pid))
    wait_until(lambda: not (service.data / "jobs" / job["id"]).exists())
    assert shown(client, job)["state"] == "cancelled"
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204


def rescored(client, asked, **files):
    """A re-scoring as it ended."""
    job = submitted(client, {"kind": "rescore", **asked}, **files)
    assert job["kind"] == "rescore"
    return ended(client, job)


def test_a_rescoring_by_the_job_of_its_verdicts_gives_the_tables_of_the_command(
    client, done, log_file, asked_alone, tmp_path
):
    asked = {"job": done["id"], "options": QUICK}
    job = rescored(client, asked, logs=("brook_math.csv", log_file))
    assert job["state"] == "done", job
    place = f"/v1/jobs/{job['id']}"
    path = tmp_path / "brook_math.csv"
    path.write_bytes(log_file)
    alone = rescore(asked_alone, path, settings=RescoreSettings(**QUICK))
    for name, table in alone.tables.items():
        lines = client.get(f"{place}/results", params={"table": name}).text.splitlines()
        assert [json.loads(line) for line in lines] == json.loads(json.dumps(table.to_pylist()))
    assert client.get(f"{place}/summary").text == alone.summary
    run = client.get(f"{place}/run").json()
    assert run["coverage"]["complete"] is True
    # No picture leaves the service, so none is drawn.
    assert not [name for name in run["outputs"] if name.endswith((".svg", ".png"))]


@pytest.mark.slow
def test_a_rescoring_that_fails_says_why(client, done):
    other = b"item_id,question,quokka-7b\n" + b"".join(
        b"creek-%d,What does nobody ask for the %dth time?,1\n" % (n, n) for n in range(9)
    )
    logs = ("folder/brook_math.csv", other)
    failed = rescored(client, {"job": done["id"], "options": QUICK}, logs=logs)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "log")
    assert "logs/folder/brook_math.csv" in failed["error"]["message"]


@pytest.mark.parametrize("skip", sampled(2, [False, True]))
def test_a_damaged_log_stops_a_rescoring_or_is_named_as_left_out(client, done, log_file, skip):
    cut = b'{"status": "success", "eval": {'
    asked = {"job": done["id"], "options": {**QUICK, "skip_damaged": skip}}
    job = rescored(client, asked, logs=[("brook_math.csv", log_file), ("cut.json", cut)])
    if skip:
        run = client.get(f"/v1/jobs/{job['id']}/run").json()
        (left_out,) = run["inputs"]["damaged"]
        assert left_out["path"] == "logs/cut.json"
        assert "cut.json" in client.get(f"/v1/jobs/{job['id']}/summary").text
    else:
        assert job["error"]["code"] == "log"
        assert "logs/cut.json" in job["error"]["message"]


REFUSED = [
    ({"kind": "check"}, {}, 422, "upload"),
    ({"kind": "check"}, {"logs": ("a.csv", b"id,score")}, 422, "upload"),
    ({"kind": "other"}, {"items": ("x", b"{}")}, 422, "invalid"),
    ({"kind": "check", "zanzibar": 1}, {"items": ("x", b"{}")}, 422, "invalid"),
    ({"kind": "check", "index": "zanzibar"}, {"items": ("x", b"{}")}, 404, "no-index"),
    ({"kind": "check", "policies": ["/zanzibar.toml"]}, {"items": ("x", b"{}")}, 422, "policy"),
    ({"kind": "check", "policies": ["igmini-50"]}, {"items": ("x", b"{}")}, 422, "index-mismatch"),
    ({"kind": "check", "options": {"max_evidence": 101}}, {"items": ("x", b"{}")}, 422, "invalid"),
    ({"kind": "check", "options": {"mapping": {"zanzibar": "x"}}}, {"items": ("x", b"{}")}, 422, "usage"),
    ({"kind": "rescore"}, {"logs": ("a.csv", b"id,score")}, 422, "invalid"),
    ({"kind": "rescore", "job": "nothing"}, {"logs": ("a.csv", b"id,score")}, 404, "no-job"),
    ({"kind": "rescore", "job": "nothing"}, {}, 422, "upload"),
    ({"kind": "check"}, {"logs": ("../zanzibar.csv", b"1")}, 422, "upload"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "files", "status", "code"), REFUSED)
def test_what_cannot_become_a_job_is_a_problem_and_leaves_nothing(
    client, service, asked, files, status, code
):
    before = sorted((service.data / "jobs").iterdir())
    reply = submit(client, asked, **files)
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert "zanzibar" not in reply.text
    assert sorted((service.data / "jobs").iterdir()) == before


def test_a_form_without_its_end_makes_no_job(client, item_file):
    """Its last part was not read: here the second of two logs."""
    request = client.build_request(
        "POST", "/v1/jobs",
        files=[("job", (None, json.dumps(CHECK))), ("items", ("items.jsonl", item_file)),
               ("logs", ("log.jsonl", b"{}\n"))],
    )  # fmt: skip
    body = request.read()
    cut = body[: body.rstrip(b"\r\n-").rfind(b"\r\n")]
    kind = request.headers["content-type"]
    refused = client.post("/v1/jobs", content=cut, headers={"content-type": kind})
    assert (refused.status_code, refused.json()["code"]) == (422, "upload")


@pytest.mark.parametrize("data", [b"no parts at all", b"--x\r\nno header\r\n\r\n--x--"])
def test_a_form_that_cannot_be_read_is_the_senders_fault(client, data):
    headers = {"content-type": "multipart/form-data; boundary=x"}
    refused = client.post("/v1/jobs", content=data, headers=headers)
    assert 400 <= refused.status_code < 500


# -------------------------------------------------------------------------------- the store of jobs


@pytest.fixture
def store(tmp_path):
    opened = JobStore(tmp_path / "jobs.db")
    yield opened
    opened.close()


def add(store, name="a", most_queued=10, idempotency=None):
    return store.add(
        id=name, owner="me", kind="check", about={"index": []}, idempotency=idempotency,
        fingerprint="f", most_queued=most_queued,
    )  # fmt: skip


def test_what_was_accepted_is_there_after_a_crash(store, tmp_path):
    add(store)
    # Another connection sees what is committed; nothing was closed.
    other = JobStore(tmp_path / "jobs.db")
    assert other.get("a").state == "queued"
    other.close()


def test_jobs_are_taken_in_order_and_each_by_one_thread(store):
    names = [f"{n:02}" for n in range(40)]
    for name in names:
        add(store, name, most_queued=40)
    taken = []

    def take():
        while (job := store.claim()) is not None:
            taken.append(job)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(job.id for job in taken) == names
    assert {job.attempts for job in taken} == {1}
    assert [job.id for job in store.listed("me")] == names[::-1]
    assert len(store.listed(None)) == 40
    assert store.listed("you") == []


def test_a_full_queue_takes_no_job_until_one_has_left_it(store):
    add(store, "a", most_queued=2)
    add(store, "b", most_queued=2)
    with pytest.raises(RequestError) as refused:
        add(store, "c", most_queued=2)
    assert (refused.value.status, refused.value.code) == (503, "queue-full")
    store.finish("a", "cancelled")
    assert add(store, "c", most_queued=2).state == "queued"


def test_the_first_end_of_a_job_is_its_end(store):
    add(store)
    store.claim()
    assert store.finish("a", "cancelled").state == "cancelled"
    assert store.finish("a", "done") is None
    store.give_back("a", counted=False)
    assert (store.get("a").state, store.get("a").attempts) == ("cancelled", 1)


def test_a_full_disk_refuses_a_job_and_keeps_the_others(store):
    add(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError):
        add(store, "x" * 100_000)
    assert store.states() == {"queued": 1}
    store._db.execute("PRAGMA max_page_count = 100000")
    assert add(store, "b").state == "queued"


def of_another_version(path):
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 1")
    other.close()


@pytest.mark.parametrize(
    "harm", [of_another_version, lambda path: path.write_bytes(b"something else entirely " * 500)]
)
def test_a_file_that_is_no_store_of_ours_is_refused_and_left_as_it_is(tmp_path, harm):
    path = tmp_path / "jobs.db"
    JobStore(path).close()
    harm(path)
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        JobStore(path)
    assert path.read_bytes() == before
