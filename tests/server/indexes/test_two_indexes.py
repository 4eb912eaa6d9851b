"""A service over two indexes: alone, as one, and with documents whose ids are odd."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

import contam
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.detect.indexed.indexes import retire
from tests.server.running import serving

IDS = ["a/b/c", "twice", "twice", "gone", "?x=1#y", None, "é ü"]
WORDS = "one lantern two lanterns three lanterns four lanterns and a moth"


@pytest.fixture(scope="module")
def odd_index(tmp_path_factory, fixture_items):
    """An index of documents with odd ids; the last also holds an item of the small corpus."""
    home = tmp_path_factory.mktemp("odd")
    (home / "corpus").mkdir()
    texts = [f"{WORDS} {at}" for at in range(len(IDS) - 1)] + [fixture_items[0]["question"]]
    rows = [
        {"text": text, **({"id": one} if one else {})} for one, text in zip(IDS, texts, strict=True)
    ]
    shard = home / "corpus" / "odd.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    build(home / "corpus", home / "index", load_recipe("standard"), workers=1)
    retire(home / "index", [("odd.jsonl", 3)])
    return home / "index", shard, texts


@pytest.fixture(scope="module")
def both(small_index, odd_index, tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    with serving(small_index, f"odd={odd_index[0]}", data=data) as service:
        yield service


@pytest.fixture(scope="module")
def asker(both):
    with both.client() as client:
        yield client


def documents(answer):
    return {(one["shard"], one["row"]) for one in answer["verdicts"][0]["evidence"]}


def test_several_indexes_answer_as_one_and_each_alone(
    asker, small_index, odd_index, fixture_items, bench_fixtures
):
    items = fixture_items[:3]

    def ask(index):
        return asker.post("/v1/check", json={"items": items, "index": index}).json()

    small, odd, one, every = ask("small"), ask(["odd"]), ask(["odd", "small"]), ask(None)
    assert (small["index"], odd["index"], one["index"]) == (["small"], ["odd"], ["small", "odd"])
    assert every == one
    assert one["states"] == small["states"] + odd["states"]
    assert len(documents(odd)) == 1
    assert documents(one) == documents(small) | documents(odd)
    together = contam.query([small_index, odd_index[0]], bench_fixtures / "items/brook_math.jsonl")
    known = {one.item_id: one.to_dict() for one in together}
    for verdict in one["verdicts"]:
        del verdict["evidence"]
        assert verdict == known[verdict["item_id"]]


def test_a_reload_of_one_is_seen_where_it_answers_with_others(asker, odd_index, fixture_items):
    def rows():
        asked = {"items": fixture_items[:1], "index": ["small", "odd"]}
        return documents(asker.post("/v1/check", json=asked).json())

    place = ("odd.jsonl", len(IDS) - 1)
    assert place in rows()
    retire(odd_index[0], [("odd.jsonl", 3), place])
    assert place in rows()
    assert asker.post("/v1/indexes/odd/reload").status_code == 200
    assert place not in rows()
    retire(odd_index[0], [("odd.jsonl", 3)])
    assert asker.post("/v1/indexes/odd/reload").status_code == 200


def test_odd_ids_are_found_and_retired_and_altered_documents_are_not_shown(asker, odd_index):
    _, shard, texts = odd_index

    def show(document_id, **params):
        return asker.get(f"/v1/documents/odd/{quote(document_id, safe='')}", params=params)

    for at in (0, 4, 6):
        assert show(IDS[at]).json()["text"] == texts[at]
    assert asker.get("/v1/documents/odd/a/b/c").json()["row"] == 0
    assert show("odd.jsonl:5").json()["text"] == texts[5]
    assert (show("twice").status_code, show("twice").json()["code"]) == (409, "ambiguous")
    assert show("twice", shard="odd.jsonl", row=2).json()["text"] == texts[2]
    assert show("gone").status_code == 404
    assert show("-", shard="odd.jsonl", row=3).status_code == 404
    other = shard.with_name("other")
    other.write_bytes(shard.read_bytes().replace(b"moth", b"MOTH"))
    other.replace(shard)
    altered = show("a/b/c")
    assert (altered.status_code, altered.json()["code"]) == (503, "shard")
    # Nothing is called clean over a shard that is not what was indexed.
    asked = {"text": "a text that no document of any corpus holds a word of", "index": "odd"}
    answer = asker.post("/v1/check", json=asked).json()
    assert answer["verdicts"][0]["label"] == "not_checkable"
    assert answer["coverage"]["shards_failed"][0]["shard"] == "odd.jsonl"
