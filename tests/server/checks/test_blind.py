"""Items that are asked for by the hashes of their grams alone."""

from __future__ import annotations

import base64
import json
import os
from contextlib import redirect_stderr
from io import StringIO

import pytest

import contam
from contam.benchmark.items import BenchItem
from contam.cli.main import main
from contam.detect.indexed.blind import hash_items
from contam.detect.indexed.index_reader import open_index
from contam.detect.policies.policy import get_policy


@pytest.fixture(scope="module")
def bodies(bench_fixtures, small_index, tmp_path_factory):
    """What `contam hash` makes of the items of the small corpus, and the file's text."""
    out = tmp_path_factory.mktemp("hashed") / "brook.jsonl"
    items = str(bench_fixtures / "items" / "brook_math.jsonl")
    said = StringIO()
    with redirect_stderr(said):
        assert (
            main(
                [
                    "hash",
                    "--quiet",
                    "--benchmark",
                    items,
                    "--index",
                    str(small_index),
                    "--out",
                    str(out),
                ]
            )
            == 0
        )
    assert said.getvalue() == ""
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()], out.read_text(
        "utf-8"
    )


@pytest.fixture(scope="module")
def blind(client, bodies):
    (body,) = bodies[0]
    reply = client.post("/v1/check", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["verdicts"]


def test_nothing_of_an_item_is_called_clean_that_shares_a_guaranteed_run_with_a_document(
    blind, small_index, bench_fixtures
):
    seen = contam.query(small_index, bench_fixtures / "items" / "brook_math.jsonl")
    longest = {}
    for row in seen.evidence.to_pylist():
        longest[row["item_id"]] = max(longest.get(row["item_id"], 0), row["n_tokens"])
    labels = {one["item_id"]: one["label"] for one in blind}
    assert len(labels) == len(seen)
    for verdict in seen:
        if longest.get(verdict.item_id, 0) >= 8:
            assert labels[verdict.item_id] != "clean", verdict.item_id
        elif verdict.item_id not in longest and verdict.label == "clean":
            assert labels[verdict.item_id] == "clean", verdict.item_id
    # Whole copies are told from nothing without a word of them.
    copied = [one.item_id for one in seen if one.label == "contaminated" and one.kind == "exact"]
    assert len(copied) > 5
    assert {labels[one] for one in copied} == {"contaminated"}


def test_a_blind_answer_has_documents_and_positions_and_no_text(blind, client, fixture_items):
    plain = client.post("/v1/check", json={"items": fixture_items[:1]}).json()["verdicts"][0]
    (mine,) = (one for one in blind if one["item_id"] == fixture_items[0]["id"])
    documents = {(one["shard"], one["row"], one["document_id"]) for one in plain["evidence"]}
    assert {(one["shard"], one["row"], one["document_id"]) for one in mine["evidence"]} == documents
    for one in mine["evidence"]:
        assert not one["verified"]
        assert [one[name] for name in ("item_text", "document_text", "before", "after")] == [
            None
        ] * 4
        assert one["item_end"] - one["item_start"] == one["n_tokens"]
    whole = max(mine["evidence"], key=lambda one: one["n_tokens"])
    exact = max(plain["evidence"], key=lambda one: one["n_tokens"])
    assert whole["n_tokens"] == exact["n_tokens"]


def test_what_is_sent_has_no_word_of_the_items(bodies, fixture_items):
    text = bodies[1]
    for item in fixture_items:
        for word in {*item["question"].split(), *item["answer"].split()}:
            assert len(word) < 6 or word not in text
    sent = sum(len(base64.b64decode(part["keys"])) // 5 for item in bodies[0][0]["grams"]["items"]
               for part in item["parts"].values())  # fmt: skip
    assert sent > 1000


def test_an_item_of_random_hashes_is_clean_and_a_short_one_is_not_checkable(client, bodies):
    grams = {name: value for name, value in bodies[0][0]["grams"].items() if name != "items"}

    def asked(n_tokens):
        keys = base64.b64encode(os.urandom(5 * max(n_tokens - 4, 0))).decode()
        part = {"keys": keys, "bits": "7" * n_tokens}
        body = {"grams": {**grams, "items": [{"id": "r", "parts": {"question": part}}]}}
        (verdict,) = client.post("/v1/check", json=body).json()["verdicts"]
        return verdict["label"]

    assert [asked(n) for n in (40, 6, 2)] == ["clean", "not_checkable", "not_checkable"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"normaliser": "other"}, "index-mismatch"),
        ({"gram": 6}, "index-mismatch"),
        ({"unit": "char"}, "index-mismatch"),
        ({"items": [{"id": "a", "parts": {"question": {"keys": "AAAA", "bits": ""}}}]}, "invalid"),
        ({"items": [{"id": "a", "parts": {"question": {"keys": "", "bits": "012345"}}}]}, "usage"),
        ({"items": [{"id": "a", "parts": {"title": {"keys": "", "bits": ""}}}]}, "invalid"),
    ],
)
def test_hashes_that_do_not_fit_are_refused(client, bodies, change, code):
    body = {"grams": {**bodies[0][0]["grams"], **change}}
    reply = client.post("/v1/check", json=body)
    assert (reply.status_code, reply.json()["code"]) == (422, code)


@pytest.mark.parametrize("name", [spec.id for spec in contam.list_policies()])
def test_a_policy_answers_blind_or_is_refused_by_name_before_anything_is_hashed(
    name, client, bodies, bench_fixtures, small_index, tmp_path
):
    reads = get_policy(name).traits.reads_text
    reply = client.post("/v1/check", json={**bodies[0][0], "policies": [name]}).json()
    assert reply.get("code") in ({"policy"} if reads else {None, "index-mismatch"})
    out = tmp_path / "hashed.jsonl"
    items = str(bench_fixtures / "items" / "brook_math.jsonl")
    said = StringIO()
    with redirect_stderr(said):
        code = main(
            ["hash", "--quiet", "--benchmark", items, "--index", str(small_index),
             "--policy", name, "--out", str(out)]
        )  # fmt: skip
    assert (code == 0, out.exists()) == (not reads, not reads)
    if reads:
        for message in (reply["detail"], said.getvalue()):
            assert name in message
            assert "contam, " in message
            assert "llama3-8gram" in message


def test_repeated_wording_does_not_confuse_the_names_of_tokens(small_index):
    from contam.detect.indexed.blind import check_blind

    reader = open_index(small_index)
    text = "the red fox ran past the mill and " * 12
    item = BenchItem(benchmark="b", split="", item_id="1", question=text)
    hashed = hash_items([item], reader._opened.recipe)
    (verdict,) = check_blind(reader._opened, hashed)
    (seen,) = reader.check(item)
    assert verdict.label == seen.label == "clean"
