"""A judge that misbehaves gives no answer, and never a wrong one."""

import json
import os

import pytest

from contam.audit.review.judged import Prompt
from contam.audit.review.pairs import Pair, PairText
from contam.benchmark.items import ItemName
from contam.client.judges import CommandJudge, EndpointJudge, JudgeError, stays_here
from contam.client.judging import ask_all
from contam.client.retry import Retry
from contam.errors import UsageError
from tests.judge_server import completion, serving
from tests.waiting import wait_until

KEY = "sk-secret-key"
TEXT = PairText(Pair(ItemName("b", "", "1"), ("s", 0), "d"), "doc", 'Who "is" it?', "It is\nhim.")
RETRY = Retry(attempts=3, first_s=0.01, total_s=5.0)


def judge(url, **changes):
    return EndpointJudge(
        url, **{"model": "m", "prompt": Prompt(), "key": KEY, "retry": RETRY, **changes}
    )


def reply(url, **changes):
    asked = judge(url, **changes)
    try:
        return asked.reply(TEXT)
    finally:
        asked.stop()


def test_a_request_is_a_chat_completion_with_both_texts_quoted():
    with serving("yes") as (server, url):
        assert reply(url, prompt=Prompt(fields={"temperature": 0})) == "yes"
    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["temperature"]) == ("m", 0)
    (message,) = body["messages"]
    assert message["role"] == "user"
    assert json.dumps(TEXT.question) in message["content"]
    assert json.dumps(TEXT.document) in message["content"]


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "0"}, b"{}"),
        (500, {}, b"{}"),
        (503, {}, b"<html>"),
        (200, {}, b"<html>not it</html>"),
        (200, {}, b'{"choices": []}'),
        (200, {}, b"[1]"),
        "cut",
    ],
    ids=["429", "500", "503", "page", "no choice", "list", "cut"],
)
def test_a_fault_that_passes_is_asked_again_and_one_that_stays_is_no_reply(fault):
    with serving(fault, fault, "no") as (server, url):
        assert reply(url) == "no"
        assert len(server.requests) == 3
    with serving(fault) as (server, url):
        with pytest.raises(JudgeError) as failed:
            reply(url)
        assert len(server.requests) == RETRY.attempts
    assert KEY not in str(failed.value)
    assert not failed.value.ends_all


@pytest.mark.parametrize("fault", ["stall", "drip"])
def test_a_server_that_never_ends_its_answer_is_left(fault):
    with serving(fault) as (_, url), pytest.raises(JudgeError, match="no whole answer"):
        reply(url, timeout_s=0.2, retry=Retry(attempts=1))


@pytest.mark.parametrize(
    ("status", "ends_all"), [(401, True), (404, True), (307, True), (400, False), (413, False)]
)
def test_a_refusal_is_not_asked_again(status, ends_all):
    # A redirect would take texts and key to another host.
    with (
        serving("yes") as (elsewhere, other),
        serving((status, {"Location": f"{other}/chat/completions"}, b"{}")) as (server, url),
    ):
        with pytest.raises(JudgeError, match=f"status {status}") as failed:
            reply(url)
        assert len(server.requests) == 1
        assert not elsewhere.requests
    assert failed.value.ends_all == ends_all


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "stop"), ("yes", "length"), ("yes", "content_filter")]
)
def test_a_reply_that_was_cut_off_or_refused_is_none(content, reason):
    body = json.dumps(completion(content, reason)).encode()
    with serving((200, {}, body)) as (_, url):
        assert reply(url) is None


@pytest.mark.parametrize("url", ["ftp://h/v1", "h", "https://me:word@h/v1", "https://h/v1?key=x"])
def test_an_address_that_is_none_or_holds_a_key_is_refused(url):
    with pytest.raises(UsageError) as refused:
        judge(url)
    assert "word" not in str(refused.value)


def test_only_addresses_of_this_machine_stay_here():
    assert all(map(stays_here, ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]/v1"]))
    others = ["https://api.example.org/v1", "http://10.0.0.3/v1", "http://[::1", ""]
    assert not any(map(stays_here, others))
    assert not stays_here("http://localhost.example.org/v1")
    assert not stays_here("http://127.0.0.1.example.org/v1")


def test_a_command_reads_a_pair_and_writes_its_answer(tmp_path):
    keep = tmp_path / "seen.json"
    assert CommandJudge(f"cat > '{keep}'; echo No.", Prompt()).reply(TEXT) == "No.\n"
    seen = json.loads(keep.read_text())
    assert (seen["question"], seen["document"]) == (TEXT.question, TEXT.document)
    assert seen["prompt"] == Prompt().of(TEXT)


def test_a_command_that_fails_or_hangs_is_no_reply_and_is_ended_with_its_children(tmp_path):
    with pytest.raises(JudgeError, match="exit code 3"):
        CommandJudge("echo yes; exit 3", Prompt()).reply(TEXT)
    child = tmp_path / "child"
    with pytest.raises(JudgeError, match="no answer in"):
        CommandJudge(f"sleep 600 & echo $! > '{child}'; cat", Prompt(), 0.5).reply(TEXT)
    pid = int(child.read_text())
    wait_until(lambda: not _runs(pid))


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - no file of ours
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_no_more_are_asked_at_once_than_allowed_and_every_answer_is_kept():
    texts = [PairText(Pair(TEXT.pair.key, ("s", i), str(i)), "d", "q", "d") for i in range(20)]
    kept = []
    with serving("yes") as (server, url):
        server.gather = 3
        done = ask_all(judge(url), texts, kept.extend, at_once=3)
        assert server.most_at_once == 3
    assert done.n_answered == len(kept) == 20
    assert {text.pair.digest for text, _ in kept} == {str(i) for i in range(20)}


def test_a_wrong_key_ends_the_run_and_keeps_what_was_answered():
    texts = [PairText(Pair(TEXT.pair.key, ("s", i), str(i)), "d", "q", "d") for i in range(50)]
    kept = []
    with serving("yes", "yes", (401, {}, b"{}")) as (server, url):
        done = ask_all(judge(url), texts, kept.extend, at_once=1)
        assert len(server.requests) == 3
    assert (done.n_answered, done.failed, done.ended) == (2, ["status 401"], True)
    assert len(kept) == 2


def test_a_judge_that_is_down_is_not_asked_about_every_pair():
    texts = [PairText(Pair(TEXT.pair.key, ("s", i), str(i)), "d", "q", "d") for i in range(500)]
    done = ask_all(CommandJudge("exit 1", Prompt()), texts, list, at_once=2)
    assert done.ended
    assert len(done.failed) < 20


def test_an_interrupted_run_keeps_what_was_answered_and_ends_its_commands(tmp_path):
    texts = [PairText(Pair(TEXT.pair.key, ("s", i), str(i)), "d", str(i), "d") for i in range(9)]
    kept = []
    wait = (
        f"grep -q '\"question\": \"0\"' && echo yes || {{ echo $$ > '{tmp_path}/pid'; sleep 99; }}"
    )

    class Interrupted:
        def advance(self, n):
            del n
            wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_all(CommandJudge(wait, Prompt()), texts, kept.extend, at_once=2, progress=Interrupted())
    assert [(text.pair.digest, reply) for text, reply in kept] == [("0", "yes\n")]
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(pid))
    assert os.getpgrp() != pid
