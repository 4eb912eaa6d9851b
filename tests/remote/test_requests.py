"""A scan asks a store as little as comparing states before and after takes."""

from collections import Counter

import pytest

from contam.detect.corpus import Corpus
from contam.detect.parts.part_store import Division
from contam.detect.scan import scan, scan_share
from tests.corpus_files import WRITERS
from tests.integration.inputs import ABSENT, FILLER, QUESTION, write_items
from tests.remote.conftest import BUCKET
from tests.remote.s3 import put_folder

MANY = f"s3://{BUCKET}/many"
#: More than there are threads.
COPIES = 40


@pytest.fixture(params=["parquet", "arrow", "jsonl"])
def many(s3, request):
    """A bucket of small shards, of which the last holds the question."""
    kind = request.param
    texts = [FILLER] * (COPIES - 1) + [QUESTION]
    shards = {
        f"many/{number:02}.{kind}": WRITERS[kind]([{"id": str(number), "text": text}] * 3)
        for number, text in enumerate(texts)
    }
    put_folder(s3, BUCKET, shards)
    s3.requests.clear()
    return s3


def asked(store):
    """How often each shard was asked for, by HEAD and GET: [numbers of requests, shards]."""
    found = Counter((request.path, request.method) for request in store.requests)
    store.requests.clear()
    keys = [path for path in store.contents if "/many/" in path]
    return Counter((found[key, "HEAD"], found[key, "GET"]) for key in keys)


def test_planning_looks_at_a_shard_before_and_after_and_fetches_it_once(many):
    corpus = Corpus.open([MANY], None)
    assert asked(many) == {(2, 1): COPIES}
    assert all(shard.state.version for shard in corpus.shards)
    assert all(shard.size_bytes for shard in corpus.shards)


def test_a_scan_looks_before_and_after_and_once_at_the_end(many, tmp_path):
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    scan([MANY], items, workers=2)
    assert asked(many) == Counter([(5, 2)] * (COPIES - 1) + [described(many, 5, 2)])


def test_without_tags_the_edges_are_compared_at_the_end(many, tmp_path):
    many.with_etags = False
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    scan([MANY], items, workers=2)
    assert asked(many) == Counter([(6, 3)] * (COPIES - 1) + [described(many, 6, 3)])


def test_an_object_that_was_replaced_is_opened_again(many, tmp_path):
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    division = Division(folder=str(tmp_path / "parts"))
    scan_share([MANY], [items], division)
    path = next(path for path in many.contents if f"/many/{COPIES - 1}" in path)
    many.put(path, many.contents[path].data)
    work = scan_share([MANY], [items], division)
    assert (work.done, work.kept, work.failures) == ((1,), (), ())


def described(store, heads, gets):
    """Requests for a shard with evidence: typed columns are read again for what it is called."""
    again = not any(path.endswith(".jsonl") for path in store.contents)
    return (heads + 2 * again, gets + again)
