"""A store that fails: the same answer as from files, or a failure by name, and never clean."""

import json

import pytest

from contam.detect import scan as scans
from contam.detect.plan import ScanParameters
from contam.detect.scan import open_scan
from contam.errors import AccessError, CorpusError
from contam.tables import object_stores
from tests.cli.processes import contam_here
from tests.corpus_files import WRITERS
from tests.integration.inputs import labels
from tests.remote.conftest import BUCKET, KEY_ID, RESULTS, SECRET, corpus_files, report, rows_of
from tests.remote.test_commands import done

DATA = f"s3://{BUCKET}/data"
#: One that Arrow reads, one that we read, and one that is unpacked.
FORMATS = ("a.parquet", "b.arrow", "c.jsonl", "in/h.jsonl.zst")
PASSING = ("500", "503", "reset", "reset body", "cut body")

#: Every request that fails is made again, after a pause.
pytestmark = pytest.mark.slow


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "4")


def failed(result):
    """Names of the shards that were not read, with reasons; then nothing may be clean."""
    assert not result.complete
    assert "clean" not in labels(result).values()
    return {failure["shard"]: failure["reason"] for failure in result.coverage["shards_failed"]}


@pytest.mark.parametrize("do", PASSING)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_fault_that_passes_changes_nothing(bucket, do, method, local, items, tmp_path):
    if method == "HEAD" and "body" in do:
        pytest.skip("an answer to HEAD has no body")
    faults = [bucket.fail(do, method=method, key=name) for name in FORMATS]
    result, tables = report([DATA], items, tmp_path / "out")
    assert all(fault.seen > 1 for fault in faults)
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]
    assert result.coverage == local[0].coverage


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("do", PASSING)
def test_a_listing_that_fails_for_a_while_is_whole(bucket, do, local, items, tmp_path):
    fault = bucket.fail(do, key=f"/{BUCKET}")
    result, tables = report([DATA], items, tmp_path / "out")
    assert fault.seen > 1
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("do", ["503", "cut body"])
def test_a_fault_that_stays_is_a_failure_by_name(bucket, do, name, items, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "2")
    bucket.fail(do, key=name, times=None)
    result, _ = report([DATA], items, tmp_path / "out")
    (reason,) = [failed(result)[name]]
    assert "the store" in reason


def test_a_store_that_fails_before_evidence_has_its_url_is_a_failure_by_name(
    bucket, items, tmp_path, monkeypatch
):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "2")
    real = scans.described

    def described(*given):
        bucket.fail("503", key="a.parquet", times=None)
        return real(*given)

    monkeypatch.setattr(scans, "described", described)
    result, _ = report([DATA], items, tmp_path / "out")
    assert "the store" in failed(result)["a.parquet"]
    assert result.exit_code() == 4


def test_a_store_that_fails_for_ever_ends_the_run(bucket, items, tmp_path):
    bucket.fail("503", method="", times=None)
    with pytest.raises(CorpusError, match="cannot be listed"):
        report([DATA], items, tmp_path / "out")


def test_a_request_that_stalls_is_made_again(bucket, local, items, tmp_path):
    fault = bucket.fail("stall", key="a.parquet")
    result, tables = report([DATA], items, tmp_path / "out")
    assert fault.seen > 1
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]


@pytest.mark.parametrize("name", FORMATS)
def test_an_expired_token_is_asked_for_anew(bucket, name, local, items, tmp_path):
    # After the listing and a look at it worked with the same token.
    fault = bucket.fail("expired", method="HEAD", key=name, after=1)
    result, tables = report([DATA], items, tmp_path / "out")
    assert fault.seen > 2
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]


@pytest.mark.parametrize("do", ["expired", "403"])
def test_a_token_that_stays_expired_is_a_failure_by_name(bucket, do, items, tmp_path):
    bucket.fail(do, key="in/g.jsonl.gz", after=1, times=None)
    bucket.fail(do, key="a.parquet", after=1, times=None)
    result, _ = report([DATA], items, tmp_path / "out")
    found = failed(result)
    assert set(found) == {"a.parquet", "in/g.jsonl.gz"}
    assert all("the store answered" in reason for reason in found.values())


@pytest.mark.parametrize("name", FORMATS)
def test_a_deleted_object_is_gone(bucket, name, items, tmp_path):
    path = f"/{BUCKET}/data/{name}"
    fault = bucket.fail(lambda: bucket.contents.pop(path), key=name, method="GET")
    result, _ = report([DATA], items, tmp_path / "out")
    assert fault.seen
    assert "is gone" in failed(result)[name]


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("name", FORMATS)
def test_an_object_replaced_while_it_is_read_was_not_read(bucket, name, etags, items, tmp_path):
    bucket.with_etags = etags
    path = f"/{BUCKET}/data/{name}"
    fault = bucket.fail(
        lambda: bucket.put(path, bucket.contents[path].data), key=name, method="GET", after=1
    )
    result, _ = report([DATA], items, tmp_path / "out")
    assert fault.seen > 1
    assert "after it was listed" in failed(result)[name]


@pytest.mark.parametrize("after", range(1, 11))
def test_no_moment_of_a_replacement_goes_unnoticed(s3, after, items, tmp_path):
    """Rows of both would be read, as the new object has the same size and layout."""
    path = f"/{BUCKET}/data/a.parquet"
    before, later = (WRITERS["parquet"](rows_of(number)) for number in (1, 2))
    assert len(before) == len(later)
    s3.put(path, before)
    fault = s3.fail(lambda: s3.put(path, later), key="a.parquet", method="", after=after)
    result, _ = report([DATA], items, tmp_path / "out")
    # Replaced before the last look at it, it was not read; later, nobody asks for it any more.
    assert result.complete == (fault.seen <= after)
    assert result.complete or "after it was listed" in failed(result)["a.parquet"]
    assert result.complete == (after >= 10)


def test_a_shard_nobody_could_look_at_is_a_failure(bucket, items, tmp_path):
    bucket.fail("403", method="HEAD", key="c.jsonl", times=2)
    result, _ = report([DATA], items, tmp_path / "out")
    assert "c.jsonl" in failed(result)


@pytest.mark.usefixtures("credentials")
def test_no_failure_tells_a_secret(bucket, items, tmp_path):
    bucket.fail("403", method="", key="a.parquet", after=1, times=None)
    result, _ = report([DATA], items, tmp_path / "out")
    told = (tmp_path / "out" / "run.json").read_text() + str(failed(result))
    assert KEY_ID not in told
    assert SECRET not in told


@pytest.mark.usefixtures("bucket")
def test_what_a_store_is_called_with_is_made_once_a_bucket(items, tmp_path):
    report([DATA], items, tmp_path / "out")
    assert len(object_stores._stores) == 1


# --------------------------------------------------------------------------- access that is lost


def lose_access(store, after):
    """Refuse every object from its n-th request on; names can still be listed."""
    for name in corpus_files():
        store.fail("403", method="", key=name, after=after, times=None)


@pytest.mark.parametrize("after", [0, 1, 2, 4, 6, 8])
def test_a_run_ends_once_nothing_can_be_read_any_more(bucket, after, items, tmp_path):
    lose_access(bucket, after)
    with pytest.raises(CorpusError, match="no other object") as lost:
        report([DATA], items, tmp_path / "out")
    assert lost.value.exit_code == 1
    assert "credentials" in lost.value.hint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_share_without_access_stops_and_leaves_its_parts_undone(
    bucket, after, items, local, tmp_path
):
    parts = tmp_path / "parts"
    call = ("scan", "--corpus", DATA, "--benchmark", items, "--parts", parts, "--part-size", "1k")
    # The first part can be computed, then all is refused.
    n_parts = json.loads(done(contam_here(*call, "--shard", "1/99", "--json")))["parts"]
    assert n_parts > 3
    bucket.fail("expired", method="", key="/data/", after=after, times=None)
    stopped = contam_here(*call, "--shard", "1/1")
    assert stopped.returncode == 1
    assert stopped.stderr.count("error:") == 1
    assert "no other object" in stopped.stderr
    assert "NOT READ" not in stopped.stderr
    bucket.faults.clear()
    again = done(contam_here(*call, "--shard", "1/1", "--json"))
    assert json.loads(again)["kept"] == 1
    done(contam_here(*call, "--out", tmp_path / "out"))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in RESULTS} == local[1]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_plan_without_access_to_its_shards_is_no_plan(bucket, share, items):
    asked = bucket.fail("403", method="", key="/data/", after=1 << 30)
    open_scan([DATA], [items], ScanParameters(policies=("contam",)))
    bucket.faults.clear()
    bucket.fail("403", method="", key="/data/", after=int(asked.seen * share), times=None)
    with pytest.raises(AccessError, match="no other object"):
        open_scan([DATA], [items], ScanParameters(policies=("contam",)))


@pytest.mark.parametrize("name", FORMATS)
def test_one_object_without_access_is_a_failure_by_name(bucket, name, items, tmp_path):
    bucket.fail("403", method="", key=name, times=None)
    result, _ = report([DATA], items, tmp_path / "out")
    assert set(failed(result)) == {name}
