"""An index in a bucket answers as its folder does, by ranges, or says why it does not."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

import contam
from contam.config import Settings
from contam.detect.query import query
from contam.detect.report import write_report
from contam.errors import IndexDamageError, IndexUnreachableError, UsageError
from contam.index import array_files, blocks, change
from contam.index.build import build
from contam.index.open import Index
from contam.index.verify import verify
from contam.server.indexes import IndexRegistry
from tests.cli.processes import contam_here
from tests.integration.inputs import write_items, write_jsonl
from tests.remote.conftest import RESULTS
from tests.remote.hub import put_data_set

ADDRESS = "s3://indexes/web"
N_DOCUMENTS, N_WORDS = 2_000, 80
#: Less than one answer reads.
LITTLE = 100_000


@cache
def documents(seed, n=N_DOCUMENTS):
    """Texts of words that hardly repeat, so that the arrays of an index have many blocks."""
    draw = random.Random(seed)
    return [" ".join(f"w{draw.randrange(60_000)}" for _ in range(N_WORDS)) for _ in range(n)]


@pytest.fixture(scope="session")
def questions():
    """Parts of documents, whole and changed in the middle, and texts of no document."""
    words = [text.split() for seed in (1, 2) for text in documents(seed)[:: N_DOCUMENTS // 3]]
    copies = [" ".join(text[10:40]) for text in words]
    changed = [" ".join([*text[5:30], "other", *text[31:60]]) for text in words]
    return [*copies, *changed, *(text[:300] for text in documents(3, 6))]


@pytest.fixture(scope="session", params=["complete", "compact"])
def index(request, tmp_path_factory):
    """An index of two segments over a corpus of two shards."""
    home = tmp_path_factory.mktemp("stored")
    for number in range(2):
        texts = documents(number + 1)
        shard = [{"id": f"d{number}-{row}", "text": text} for row, text in enumerate(texts)]
        write_jsonl(home / "corpus" / f"{number}.jsonl", shard)
    build(home / "corpus" / "0.jsonl", home / "index", request.param, workers=1)
    change.add(home / "index", home / "corpus" / "1.jsonl", workers=1)
    return home / "index"


@pytest.fixture
def stored(s3, index, tmp_path):
    """The server with the index, and a cache of the test's own."""
    put(s3, index)
    yield s3
    blocks.use_cache(0, tmp_path / "unused")


@pytest.fixture
def cache(tmp_path):
    blocks.use_cache(0, tmp_path / "blocks")
    return blocks.block_cache()


def put(store, folder):
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        store.put(f"/indexes/web/{path.relative_to(folder).as_posix()}", path.read_bytes())


def forget():
    """Remove all blocks, as a cache does that is too full."""
    cache = blocks.block_cache()
    cache.limit, limit = 0, cache.limit
    cache.trim()
    cache.limit = limit


def answer(reader, question):
    result = reader.check(question, policies=("contam",))
    return result.verdicts.to_pylist(), result.evidence.to_pylist()


def serve(home):
    return IndexRegistry.open(Settings(index=(f"web={ADDRESS}",), data=str(home / "data")))


def stored_path(store, name):
    """The largest object of an array."""
    found = [path for path in store.contents if path.endswith(name)]
    return max(found, key=lambda path: len(store.contents[path].data))


@pytest.mark.usefixtures("stored")
def test_it_answers_as_its_folder_does(index, questions, cache, tmp_path):
    items = write_items(tmp_path / "items.jsonl", *questions)
    for name, place in (("here", index), ("there", ADDRESS)):
        write_report(query(place, items, workers=2), tmp_path / name)
    for name in RESULTS:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    here, there = contam.open_index(index), contam.open_index(ADDRESS)
    assert any(answer(here, question)[1] for question in questions)
    for question in questions:
        assert answer(there, question) == answer(here, question)
        phrase = " ".join(question.split()[:8])
        if here.can_count(8):
            assert there.count(phrase) == here.count(phrase)
    assert any(cache.folder.iterdir())


def test_what_was_fetched_once_is_not_fetched_again(stored, questions, cache):
    del cache
    first = [answer(contam.open_index(ADDRESS), question) for question in questions[:4]]
    reader = contam.open_index(ADDRESS)
    stored.requests.clear()
    assert [answer(reader, question) for question in questions[:4]] == first
    assert not stored.requests


@pytest.mark.usefixtures("stored")
def test_all_segments_are_asked_at_the_same_time(index, questions, cache, monkeypatch):
    del cache
    rounds = []
    asked = array_files.at_once
    monkeypatch.setattr(
        array_files, "at_once", lambda work, things: (rounds.append(1), asked(work, things))[1]
    )
    reader = contam.open_index(ADDRESS)
    rounds.clear()
    assert not answer(reader, questions[-1])[1]
    # Of shingles the entries; heads and rests; then what they led to.
    n_more = Index.open(index).recipe.minhash is not None
    assert 1 <= len(rounds) <= 2 + n_more


@pytest.mark.usefixtures("stored")
def test_a_cache_that_holds_less_than_an_answer_reads_still_gives_it(index, questions, tmp_path):
    blocks.use_cache(LITTLE, tmp_path / "blocks")
    cache = blocks.block_cache()
    here, there = contam.open_index(index), contam.open_index(ADDRESS)
    expected = [answer(here, question) for question in questions]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda one: answer(there, one), questions)) == expected
    assert cache.generation
    kept = sum(path.stat().st_blocks * 512 for path in cache.folder.iterdir())
    assert kept < sum(path.stat().st_size for path in index.rglob("*.npy"))


@pytest.mark.usefixtures("cache")
def test_a_block_that_was_altered_is_found(stored, questions):
    path = stored_path(stored, "_rests.npy")
    reader = contam.open_index(ADDRESS)
    expected = answer(reader, questions[0])
    data = bytearray(stored.contents[path].data)
    data[200::5_000] = bytes(byte ^ 1 for byte in data[200::5_000])
    stored.contents[path].data = bytes(data)
    assert answer(reader, questions[0]) == expected  # what was fetched is as it was written
    forget()
    with pytest.raises(IndexDamageError, match="were altered") as caught:
        answer(reader, questions[0])
    assert caught.value.file.endswith("_rests.npy")


def test_a_cached_block_that_was_altered_is_fetched_again(questions, stored, cache):
    expected = [answer(contam.open_index(ADDRESS), questions[0])]
    for path in cache.folder.iterdir():
        raw = bytearray(path.read_bytes())
        raw[::1000] = bytes(len(raw[::1000]))
        path.write_bytes(raw)
    stored.requests.clear()
    assert [answer(contam.open_index(ADDRESS), questions[0])] == expected
    assert [one for one in stored.requests if one.range]


@pytest.mark.parametrize("name", ["_rests.npy", "_rests.crc", "documents.parquet"])
@pytest.mark.usefixtures("cache")
def test_an_object_that_is_missing_or_cut_is_damage(stored, name):
    path = stored_path(stored, name)
    whole = stored.contents.pop(path)
    with pytest.raises(IndexDamageError, match="missing"):
        contam.open_index(ADDRESS)
    stored.put(path, whole.data[:-8])
    with pytest.raises(IndexDamageError):
        contam.open_index(ADDRESS)


def test_a_store_that_is_down_is_no_damage_and_answers_when_it_is_back(
    stored, questions, index, tmp_path
):
    registry = serve(tmp_path)
    expected = answer(contam.open_index(index), questions[5])
    down = stored.fail("503", method="", times=None)
    forget()
    with pytest.raises(IndexUnreachableError), registry.snapshot() as snapshot:
        answer(snapshot.reader, questions[5])
    with pytest.raises(IndexUnreachableError):
        registry.reload("web")
    assert not registry.damaged
    stored.faults.remove(down)
    with registry.snapshot() as snapshot:
        assert answer(snapshot.reader, questions[5]) == expected


def test_a_new_state_is_noticed_and_an_object_that_is_gone_is_damage(
    stored, questions, index, tmp_path
):
    registry = serve(tmp_path)
    assert registry.changed() == []
    changed = shutil.copytree(index, tmp_path / "changed")
    change.retire(changed, shards=["1.jsonl"])
    change.compact(changed)
    stored.contents.clear()
    put(stored, changed)
    assert registry.changed() == ["web"]
    forget()
    with pytest.raises(IndexDamageError), registry.snapshot() as snapshot:
        answer(snapshot.reader, questions[0])
    registry.reload("web")
    here = contam.open_index(changed)
    with registry.snapshot() as snapshot:
        for question in questions:
            assert answer(snapshot.reader, question) == answer(here, question)


@pytest.mark.usefixtures("stored", "cache")
def test_commands_show_it_and_write_none(index, tmp_path):
    there, here = (contam_here("index", "show", "--index", one) for one in (ADDRESS, index))
    assert there.returncode == 0, there.stderr
    assert there.stdout.splitlines()[1:] == here.stdout.splitlines()[1:]
    for command in (("retire", "--shard", "0.jsonl"), ("compact",), ("verify",)):
        refused = contam_here("index", *command, "--index", ADDRESS)
        assert refused.returncode == 2
        assert "must be a path of this machine" in refused.stderr
    with pytest.raises(UsageError):
        build(index.parent / "corpus", ADDRESS)
    with pytest.raises(UsageError):
        verify(ADDRESS)
    with pytest.raises(UsageError, match="no index here"):
        contam.open_index("s3://indexes/other")
    assert not (tmp_path / "s3:").exists()


@pytest.mark.usefixtures("cache")
def test_an_index_on_the_hub_is_read_in_one_commit(endpoint, questions, index):
    files = {f"web/{path.relative_to(index)}": path.read_bytes() for path in index.rglob("*.*")}
    put_data_set(endpoint, "owner/indexes", files)
    here, there = contam.open_index(index), contam.open_index("hf://datasets/owner/indexes/web")
    assert "@" in there.check(questions[0]).run["inputs"]["index"][0]
    for question in questions[:4]:
        assert answer(there, question) == answer(here, question)
