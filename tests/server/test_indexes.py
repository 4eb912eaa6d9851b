"""Indexes held open: what is written into their files is noticed, and several answer as one."""

import json
import os
import shutil

import pytest

import contam
from contam.config import Settings
from contam.errors import IndexDamageError
from contam.index.build import build
from contam.index.recipe import load_recipe
from contam.server import indexes
from contam.server.auth import KeyStore
from contam.server.indexes import IndexRegistry
from tests.detect.indexed.indexes import retire
from tests.server.running import serving
from tests.server.test_check import asking


@pytest.fixture
def held(small_index, tmp_path):
    """The folder of an index, a registry that has it open, and the largest of its arrays."""
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    return folder, registry, largest(folder)


def largest(folder):
    return max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)


def answers(registry, names=None):
    with registry.snapshot(names) as snapshot:
        return snapshot.reader.check("no words of the corpus at all").complete


def test_an_index_written_to_answers_nothing_until_it_is_opened_again(held):
    _, registry, path = held
    good = path.read_bytes()
    with pytest.raises(IndexDamageError), registry.snapshot():
        path.write_bytes(good)
    # By the answer that met it, before anybody looked in the background.
    assert registry.damaged == ("small",)
    with pytest.raises(IndexDamageError), registry.snapshot():
        pytest.fail("it must not be asked")
    registry.reload("small")
    assert registry.damaged == ()
    assert answers(registry)


def test_a_segment_that_is_still_being_written_harms_nobody(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    late = folder / "segments" / "late" / "postings.crc"
    late.parent.mkdir()
    late.write_bytes(b"half")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    late.write_bytes(b"now all of it")
    assert answers(registry)


def test_a_state_that_is_published_while_an_index_is_opened_is_watched(
    small_index, tmp_path, monkeypatch
):
    folder = shutil.copytree(small_index, tmp_path / "small")
    real, states = indexes.index_id, ["an earlier state"]
    # What was looked at first is a state that nobody can open any more.
    monkeypatch.setattr(indexes, "index_id", lambda found: states.pop() if states else real(found))
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    assert not states
    path = largest(folder)
    with pytest.raises(IndexDamageError), registry.snapshot():
        path.write_bytes(path.read_bytes())


def test_setting_the_time_of_writing_back_hides_nothing(held):
    _, registry, path = held
    times = path.stat()
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(IndexDamageError), registry.snapshot():
        pass
    registry.look()
    assert registry.damaged == ("small",)


def test_damage_met_by_a_question_to_several_indexes_ends_the_answers_of_its_own_alone(
    small_index, tmp_path
):
    first, second = (shutil.copytree(small_index, tmp_path / name) for name in ("one", "two"))
    registry = IndexRegistry.open(Settings(index=(str(first), str(second))))
    both = ["one", "two"]
    assert answers(registry, both)
    path = next(second.glob("segments/*/*.npy"))
    with pytest.raises(IndexDamageError), registry.snapshot(both):
        path.write_bytes(path.read_bytes())
    assert registry.damaged == ("two",)
    assert answers(registry, ["one"])
    with pytest.raises(IndexDamageError), registry.snapshot(both):
        pytest.fail("it must not be asked")


def test_an_index_that_is_removed_goes_on_to_answer_and_cannot_be_opened_again(held):
    folder, registry, _ = held
    shutil.rmtree(folder)
    registry.look()
    with pytest.raises(IndexDamageError):
        registry.reload("small")
    assert answers(registry)


IDS = ["a/b/c", "twice", "twice", "gone", "?x=1#y", None, "é ü"]
WORDS = "one lantern two lanterns three lanterns four lanterns and a moth"


def indexed_odd(home, fixture_items):
    """An index of documents with odd ids; the last also holds an item of the small corpus."""
    (home / "corpus").mkdir()
    texts = [f"{WORDS} {at}" for at in range(len(IDS) - 1)] + [fixture_items[0]["question"]]
    rows = [
        {"text": text, **({"id": one} if one else {})} for one, text in zip(IDS, texts, strict=True)
    ]
    shard = home / "corpus" / "odd.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    build(home / "corpus", home / "index", load_recipe("complete"), workers=1)
    retire(home / "index", [("odd.jsonl", 3)])
    return home / "index", shard, texts


@pytest.fixture(scope="module")
def odd_index(tmp_path_factory, fixture_items):
    return indexed_odd(tmp_path_factory.mktemp("odd"), fixture_items)


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


def test_nothing_is_called_clean_over_a_shard_that_was_altered(tmp_path, fixture_items):
    index, shard, texts = indexed_odd(tmp_path, fixture_items)
    asked = {"text": "a text that no document of any corpus holds a word of"}

    async def work(client, _state):
        async def check(sent):
            return (await client.post("/v1/check", json=sent)).json()

        assert (await check(asked))["verdicts"][0]["label"] == "clean"
        other = shard.with_name("other")
        other.write_bytes(shard.read_bytes().replace(b"moth", b"MOTH"))
        other.replace(shard)
        await check({"text": texts[0]})
        answer = await check(asked)
        assert answer["verdicts"][0]["label"] == "not_checkable"
        assert answer["coverage"]["shards_failed"][0]["shard"] == "odd.jsonl"

    asking(Settings(index=(f"odd={index}",), data=str(tmp_path / "data")), work)


def test_text_around_a_match_is_for_keys_that_may_read_documents(guarded):
    store = KeyStore(guarded.data)
    _, blind = store.add("check only", ["check"])
    _, reader = store.add("reader", ["check", "read-documents"])
    with guarded.client() as client:
        body = {"text": "what did she keep", "options": {"context": 200}}

        def ask(secret, sent):
            return client.post(
                "/v1/check", json=sent, headers={"Authorization": f"Bearer {secret}"}
            )

        refused = ask(blind, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope-missing")
        assert "options.context" in refused.json()["detail"]
        assert "read-documents" in refused.json()["detail"]
        assert ask(blind, {**body, "options": {"context": 0}}).status_code == 200
        assert ask(reader, body).status_code == 200
