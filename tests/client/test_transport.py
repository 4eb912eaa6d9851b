"""What a client makes of a service that is busy, gone, broken, or no service at all."""

import json
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import contam
from contam.client import (
    AnswerError,
    BusyError,
    Client,
    Retry,
    ServiceError,
    UnreachableError,
)
from contam.client.annotate import annotate
from contam.client.answers import verdict_of
from contam.detect.policies.verdict import COLUMNS
from contam.errors import ContamError, UsageError
from tests.cli.processes import contam_here
from tests.index.builds import build, recipe_of
from tests.rescore.logs.small import lm_eval

FAST = Retry(attempts=4, first_s=0.001, longest_s=0.002, total_s=5.0)
VERDICT = {
    "benchmark": "items",
    "split": "",
    "item_id": "1",
    "policy": "contam",
    "label": "clean",
    "score": 0.0,
    "exposure": "none",
    "kind": None,
    "n_documents": 0,
    "n_occurrences": 0,
    "best_document_id": None,
    "best_shard": None,
    "best_row": None,
    "best_url": None,
    "best_date": None,
    "reason": "nothing",
    "evidence": [],
}
ANSWER = {
    "verdicts": [VERDICT],
    "index": ["small"],
    "states": ["s"],
    "guarantee_tokens": 8,
    "coverage": {"complete": True},
    "capped": {},
}
ITEM = {"id": "1", "question": "Which river feeds the mill?"}


@pytest.fixture
def peer():
    """A server that gives the answers it was told, one after the other, and keeps what it got."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.path, dict(self.headers), body))
            status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
            if status == "cut":
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 9}\r\n\r\n"
                self.wfile.write(head.encode() + body)
                self.close_connection = True
                return
            if status == "closed":
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    told, answers = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    server.told, server.answers = told, answers
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def says(tree, status=200, **headers):
    return (status, headers, json.dumps(tree).encode())


def busy(status, code="busy", **headers):
    problem = {"title": "no", "detail": "later", "code": code, "hint": "wait", "request_id": "r7"}
    return says(problem, status, **headers)


def ask(peer, *answers, retry=FAST, items=ITEM, **options):
    peer.answers[:] = answers
    with Client(peer.url, retry=retry, key="k" * 32) as client:
        return client.check(items, **options)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again_until_it_answers(peer, status):
    answer = ask(peer, busy(status), busy(status), says(ANSWER))
    assert [verdict.label for verdict in answer] == ["clean"]
    assert len(peer.told) == 3
    assert len({body for _, _, body in peer.told}) == 1


def test_a_service_that_stays_busy_is_an_error_after_a_bounded_number_of_requests(peer):
    with pytest.raises(BusyError) as caught:
        ask(peer, busy(429))
    assert len(peer.told) == FAST.attempts
    error = caught.value
    assert isinstance(error, ContamError)
    assert (error.status, error.code, error.hint, error.request_id) == (429, "busy", "wait", "r7")
    assert "later" in error.message


def test_retry_after_is_waited_for(peer, monkeypatch):
    waits = []
    monkeypatch.setattr("contam.client.client.time.sleep", waits.append)
    ask(peer, busy(503, **{"Retry-After": "3"}), says(ANSWER))
    assert len(peer.told) == 2
    (waited,) = waits
    assert 3.0 <= waited < 4.0, "a little more, so that not all come at once"


def test_a_damaged_index_is_told_at_once(peer):
    with pytest.raises(ServiceError) as caught:
        ask(peer, busy(503, code="index-damaged"))
    assert (caught.value.code, len(peer.told)) == ("index-damaged", 1)


@pytest.mark.parametrize(("status", "exit_code"), [(401, 2), (403, 2), (422, 2), (500, 1)])
def test_a_refusal_is_told_once_with_its_code_and_hint(peer, status, exit_code):
    with pytest.raises(ServiceError) as caught:
        ask(peer, busy(status, code="why"))
    assert (caught.value.code, caught.value.hint) == ("why", "wait")
    assert (len(peer.told), caught.value.exit_code) == (1, exit_code)


def test_a_page_of_a_proxy_is_an_error_too(peer):
    with pytest.raises(ServiceError, match="status 500"):
        ask(peer, (500, {}, b"<html>oops"))
    with pytest.raises(ServiceError, match="status 302"):
        ask(peer, (302, {"Location": peer.url + "/elsewhere"}, b""))


@pytest.mark.parametrize("broken", [("cut", {}, json.dumps(ANSWER).encode()), ("closed", {}, b"")])
def test_an_answer_that_breaks_off_is_asked_for_again_and_else_an_error(peer, broken):
    assert len(ask(peer, broken, says(ANSWER))) == 1
    with pytest.raises(UnreachableError) as caught:
        ask(peer, broken)
    assert caught.value.code == "unreachable"
    assert caught.value.hint


def test_nobody_at_the_address_is_an_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url, retry=FAST) as client, pytest.raises(UnreachableError):
        client.check(ITEM)


def test_a_service_that_says_nothing_is_given_up():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with (
            Client(url, timeout_s=0.05, retry=FAST) as client,
            pytest.raises(UnreachableError, match="ReadTimeout"),
        ):
            client.check(ITEM)


def changed(**values):
    return {**ANSWER, **values}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"verdicts": [',
        json.dumps(ANSWER).encode()[:-1],
        b"[" * 100_000,
        json.dumps(changed(verdicts=[])).encode(),
        json.dumps(changed(verdicts=[VERDICT, VERDICT])).encode(),
        json.dumps(changed(verdicts=[{**VERDICT, "item_id": "2"}])).encode(),
        json.dumps(changed(verdicts=[{**VERDICT, "label": "spotless"}])).encode(),
        json.dumps(changed(verdicts=[{**VERDICT, "label": None}])).encode(),
        json.dumps(changed(verdicts=[{**VERDICT, "evidence": [{"part": "question"}]}])).encode(),
        json.dumps(changed(verdicts=["clean"])).encode(),
        json.dumps({**ANSWER, "coverage": None}).encode(),
        json.dumps({name: v for name, v in ANSWER.items() if name != "index"}).encode(),
    ],
)
def test_an_answer_that_is_not_about_just_these_items_is_an_error(peer, body):
    with pytest.raises(AnswerError):
        ask(peer, (200, {}, body))


def test_an_item_that_a_policy_left_out_is_an_error(peer):
    with pytest.raises(AnswerError, match="items"):
        ask(peer, says(ANSWER), policies=["contam", "gpt3-test"])


def test_an_answer_over_part_of_the_corpus_says_so_by_its_exit_code(peer):
    part = changed(coverage={"complete": False})
    assert ask(peer, says(part)).exit_code() == 4
    assert ask(peer, says(part), allow_missing=True).exit_code() == 0
    late = changed(verdicts=[{**VERDICT, "label": "not_checkable", "reason": "deadline: no"}])
    assert ask(peer, says(late), allow_missing=True).exit_code() == 4


def test_the_key_goes_into_a_header_and_into_no_message(peer):
    key = "secret-" + "x" * 30
    peer.answers[:] = [busy(401)]
    with Client(peer.url, key=key, retry=FAST) as client, pytest.raises(ServiceError) as caught:
        client.check(ITEM)
    assert peer.told[0][1]["Authorization"] == f"Bearer {key}"
    assert key not in f"{caught.value!r} {caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    "address", ["", "localhost:8000", "ftp://a", "http://", "http://u:p@host", "http://h?a=b"]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError):
        Client(address)


def test_a_file_is_sent_whole_again_when_the_service_was_busy(peer, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes(b"id,score\n" * 1000)
    peer.answers[:] = [busy(503), busy(422)]
    with Client(peer.url, retry=FAST) as client, pytest.raises(ServiceError):
        client.rescore("abc", log)
    first, second = (body for _, _, body in peer.told)
    assert first.count(b"id,score") == second.count(b"id,score") == 1000


# -- verdicts as a service sends them ---------------------------------------------------------

STRANGE = {str: 3, int: "3", float: "0.25"}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: one.name)
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_column(column):
    wrong = [STRANGE[column.kind], True, ["x"]] + ([] if column.nullable else [None])
    for value in wrong:
        with pytest.raises(AnswerError, match=column.name):
            verdict_of({**VERDICT, column.name: value})


def test_a_label_that_nobody_gives_is_refused():
    with pytest.raises(AnswerError):
        verdict_of({**VERDICT, "label": "fine"})


# ------------------------------------------------------------------------------------- clean scores


LEAKED = "Which of the seven painted boats did the miller's youngest daughter sink before the fair?"
SHORT = "Who fed the blue heron twice?"
LONG = "How many lanterns hang above the cooper's gate when the second ferry has left the quay?"


@pytest.fixture
def home(tmp_path):
    """Verdicts of an index and logs of the same items: one leaked, one short, two not there."""
    (tmp_path / "corpus").mkdir()
    texts = [f"Old notes. {LEAKED} The rest is lost.", "Rain fell on the roof all evening long."]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "corpus" / "a.jsonl").write_text(lines)
    build(tmp_path / "corpus", tmp_path / "index", recipe_of())
    docs = [{"question": text, "answer": "x"} for text in (LEAKED, SHORT, LONG, "Why?")]
    lm_eval(tmp_path / "logs", [1, 1, 0, 0], docs=docs, task="boats")
    rows = [{"id": str(place), **doc} for place, doc in enumerate(docs)]
    result = contam.query(tmp_path / "index", rows)
    contam.write_report(result, tmp_path / "verdicts")
    return tmp_path


def test_all_labels_the_scores_and_what_the_index_left_open_are_said(home):
    (written,) = annotate([home / "logs"], verdicts=home / "verdicts")
    (row,) = written.scores()
    counts = {"contaminated": 1, "suspect": 0, "clean": 1, "not_checkable": 2}
    assert row["items"] == counts
    assert (row["full"], row["clean"], row["n_clean"]) == (0.5, 0.0, 1)
    (note,) = written.notes
    assert "2 items" in note
    tree = json.loads(written.out.read_text())
    assert tree["items"]["boats"] == counts
    assert note in tree["notes"]
    line = written.line()
    for part in ("1 contaminated", "0 suspect", "1 clean", "2 not checkable", note, "0.0000"):
        assert part in line
    call = ("annotate", home / "logs", "--verdicts", home / "verdicts", "--overwrite")
    shown = contam_here(*call, cwd=home).stdout
    assert note in shown
    assert all(
        word in shown for word in ("contaminated", "suspect", "not checkable", "clean score")
    )
    told = json.loads(contam_here(*call, "--json", cwd=home).stdout)
    assert (told["scores"], told["notes"]) == ([row], [note])


def test_what_is_left_out_of_two_logs_alike_is_said_once(home):
    shutil.copytree(home / "logs", home / "again")
    call = ("annotate", home / "logs", home / "again", "--verdicts", home / "verdicts", "--json")
    told = json.loads(contam_here(*call, cwd=home).stdout)
    assert (len(told["scores"]), len(told["notes"])) == (2, 1)


def test_where_a_scan_judged_no_index_is_blamed(home):
    rows = [{"id": "s", "question": SHORT}, {"id": "l", "question": LEAKED}]
    contam.write_report(contam.scan(home / "corpus", rows), home / "scanned")
    (written,) = annotate([home / "logs"], verdicts=home / "scanned", allow_unmatched=True)
    (note,) = written.notes
    assert "2 items" in note
    assert "index" not in note
