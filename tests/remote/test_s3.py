"""A corpus in a bucket gets the verdicts of its copy in a folder, or a failure by name."""

import json
import shutil
import socket
import subprocess
from collections import Counter

import httpx
import pytest

from contam.corpus import opening
from contam.corpus.listing import passed_over
from contam.corpus.opening import open_shards
from contam.corpus.shards import shard_digest, survey
from contam.detect.corpus import Corpus
from contam.detect.parts.part_store import Division
from contam.detect.report import write_report
from contam.detect.scan import scan, scan_share
from contam.errors import CorpusError
from tests.corpus_files import WRITERS
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items
from tests.remote.conftest import BUCKET, RESULTS, report, rows_of
from tests.remote.s3 import put_folder
from tests.waiting import wait_until

DATA = f"s3://{BUCKET}/data"


def names_of(*paths):
    return [shard.name for shard in survey(paths)[0]]


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("named", [DATA, f"{DATA}/", f"s3://{BUCKET}"])
def test_a_prefix_is_answered_as_a_folder(named, local, items, tmp_path):
    result, tables = report([named], items, tmp_path / "out")
    assert result.complete
    assert labels(result) == labels(local[0]) == {"q0": "contaminated", "q1": "clean"}
    if named != f"s3://{BUCKET}":
        assert tables == local[1]
        assert result.coverage == local[0].coverage


@pytest.mark.usefixtures("bucket")
def test_the_inputs_of_a_run_have_addresses_and_the_digests_of_files(local, items, tmp_path):
    result, _ = report([DATA], items, tmp_path / "out")
    found, expected = result.run["inputs"]["shards"], local[0].run["inputs"]["shards"]
    assert [shard["digest"] for shard in found] == [shard["digest"] for shard in expected]
    assert found[0]["uri"] == f"{DATA}/{found[0]['name']}"


@pytest.mark.parametrize("name", ["a.parquet", "f.warc", "in/g.jsonl.gz"])
def test_a_stamp_is_a_tag_and_never_the_digest(bucket, folder, name):
    (remote,), (local,) = survey([f"{DATA}/{name}"])[0], survey([folder / name])[0]
    assert remote.state.stamp == f"etag={bucket.contents[f'/{BUCKET}/data/{name}'].etag}"
    assert shard_digest(remote) == shard_digest(local)


def test_without_a_tag_size_and_time_are_the_stamp(bucket):
    bucket.with_etags = False
    (shard,) = survey([f"{DATA}/a.parquet"])[0]
    assert shard.state.stamp.startswith(f"size={shard.size_bytes},modified_ns=17")
    bucket.put(f"/{BUCKET}/data/a.parquet", bucket.contents[f"/{BUCKET}/data/a.parquet"].data)
    (again,) = survey([f"{DATA}/a.parquet"])[0]
    assert again.state.stamp != shard.state.stamp


def test_folder_markers_and_marks_of_jobs_are_no_shards(bucket):
    marks = ("_SUCCESS", "_temporary/x.jsonl", ".x.jsonl", "_logs/part.txt.crc")
    for key in ("", "in/", *marks):
        bucket.put(f"/{BUCKET}/data/{key}", b"")
    shards, skipped = survey([DATA])
    assert len(shards) == 9
    assert {file.path.name for file in skipped} == {"_SUCCESS", ".x.jsonl", "_temporary"}
    # A folder is named where it holds what would be shards.
    assert passed_over(skipped) == ("_temporary",)


@pytest.mark.slow
def test_a_listing_of_many_pages_is_whole(s3):
    for number in range(2_345):
        s3.put(f"/{BUCKET}/many/part-{number:05}.jsonl", b'{"text": "a"}\n')
    assert names_of(f"s3://{BUCKET}/many") == [f"part-{n:05}.jsonl" for n in range(2_345)]


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("named", "fact"),
    [
        (f"s3://{BUCKET}/none", "no object is there"),
        (f"{DATA}/*.none", "no object is there"),
        ("s3://none/data", "there is no such bucket"),
        ("s3://none/*/data", "there is no such bucket"),
    ],
)
def test_what_is_not_there_is_refused(named, fact):
    with pytest.raises(CorpusError, match=fact) as refused:
        survey([named])
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("workers", [1, 3])
def test_plain_json_lines_are_cut_as_on_disk(s3, workers, items, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "CHUNK_BYTES", 400)
    rows = [row for number in range(3) for row in rows_of(number)]
    lines = [json.dumps(row).encode() for row in rows]
    # Blank lines count as rows of no document; the last line has no end.
    data = b"\xef\xbb\xbf" + b"\n\n".join([b"\n".join(lines[:9]), b"\r\n".join(lines[9:])])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.jsonl").write_bytes(data)
    s3.put(f"/{BUCKET}/c/a.jsonl", data)
    found = {}
    for corpus in (tmp_path / "c", f"s3://{BUCKET}/c"):
        result = scan([corpus], items, workers=workers)
        write_report(result, tmp_path / "out", overwrite=True)
        found[corpus] = {name: (tmp_path / "out" / name).read_bytes() for name in RESULTS}
        assert (result.coverage["rows"], result.coverage["n_blank"]) == (len(rows), 1)
        cut = open_shards(survey([corpus])[0]).chunks
        assert len(cut) == -(-len(data) // 400)
    local, remote = found.values()
    assert local == remote


# ------------------------------------------------------------------------ a server that is not ours


MOTO = shutil.which("moto_server")


def put(url, data=b""):
    httpx.put(url, content=data).raise_for_status()


def answers(url):
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def moto(credentials, files, monkeypatch):
    del credentials
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(f"{url}/moto-api/"))
        put(f"{url}/{BUCKET}")
        for name, data in files.items():
            put(f"{url}/{BUCKET}/data/{name}", data)
        # What other tools leave.
        put(f"{url}/{BUCKET}/data/")
        put(f"{url}/{BUCKET}/data/_SUCCESS")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(MOTO is None, reason="moto_server is not installed")
def test_a_bucket_of_moto_is_answered_as_a_folder(moto, local, items, tmp_path):
    result, tables = report([f"s3://{BUCKET}/data"], items, tmp_path / "out")
    assert moto
    assert result.complete
    assert tables == local[1]
    assert len(survey([f"s3://{BUCKET}/data/in/*"])[0]) == 3


# ----------------------------------------------------------------------- how often a store is asked


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
