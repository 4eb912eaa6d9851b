"""Commands that read a corpus read one in a bucket, in real processes and with real variables."""

import json

import pytest

from tests.cli.processes import contam, contam_here
from tests.integration.inputs import QUESTION
from tests.remote.conftest import BUCKET, KEY_ID, RESULTS, SECRET

DATA = f"s3://{BUCKET}/data"


def done(finished, code=0):
    assert finished.returncode == code, finished.stderr
    assert SECRET not in finished.stdout + finished.stderr
    assert KEY_ID not in finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture
def remote_items(bucket, items):
    bucket.put(f"/{BUCKET}/items/items.jsonl", items.read_bytes())
    return f"s3://{BUCKET}/items/items.jsonl"


@pytest.mark.slow
def test_a_scan_of_addresses_writes_what_a_scan_of_files_does(
    bucket, folder, items, remote_items, tmp_path
):
    for name, corpus, benchmark in (("a", folder, items), ("b", DATA, remote_items)):
        done(contam("scan", "--corpus", corpus, "--benchmark", benchmark, "--out", tmp_path / name))
    for name in RESULTS[:2]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    local, remote = (json.loads((tmp_path / name / "run.json").read_text()) for name in "ab")
    for run in (local, remote):
        for key in ("inputs", "timings", "started", "outputs", "options", "command"):
            run.pop(key, None)
    assert local == remote
    assert bucket.requests
    written = b"".join(path.read_bytes() for path in (tmp_path / "b").iterdir())
    assert SECRET.encode() not in written
    assert KEY_ID.encode() not in written


@pytest.mark.usefixtures("bucket")
def test_what_was_found_in_a_bucket_is_shown_from_there(items, tmp_path):
    out = tmp_path / "out"
    done(contam_here("scan", "--corpus", DATA, "--benchmark", items, "--out", out))
    shown = done(contam_here("show", out, "q0", "--json"))
    assert json.loads(shown)
    assert QUESTION.split(maxsplit=1)[0] in shown
    count = done(contam_here("sql", out, "select count(*) as n from evidence"))
    assert int(count.split()[-3]) > 0


def test_an_index_of_a_bucket_answers_and_is_verified(bucket, items, remote_items, tmp_path):
    index, out = tmp_path / "index", tmp_path / "out"
    done(contam_here("index", "build", "--corpus", DATA, "--index", index))
    done(contam_here("query", "--index", index, "--benchmark", remote_items, "--out", out))
    done(contam_here("index", "verify", "--index", index))
    bucket.put(f"/{BUCKET}/data/new.jsonl", b'{"text": "a new document of the corpus"}\n')
    later = contam_here("query", "--index", index, "--benchmark", items, "--out", tmp_path / "b")
    assert "new.jsonl" in later.stderr
    done(contam_here("index", "add", "--corpus", DATA, "--index", index))
    done(contam_here("query", "--index", index, "--benchmark", items, "--out", tmp_path / "c"))


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("of_bucket", [True, False])
def test_an_index_answers_for_a_copy_elsewhere_once_it_is_verified(
    folder, of_bucket, items, tmp_path
):
    index = tmp_path / "index"
    indexed, copy = (DATA, folder) if of_bucket else (folder, DATA)
    done(contam_here("index", "build", "--corpus", indexed, "--index", index))
    query = ("query", "--index", index, "--benchmark", items, "--out")
    done(contam_here(*query, tmp_path / "here"))
    before = contam_here(*query, tmp_path / "before", "--corpus", copy)
    done(before, 4)
    was, now = ("store", "folder") if of_bucket else ("folder", "store")
    assert f"was indexed in a {was}, and this copy in a {now} may differ" in before.stdout
    assert "`contam index verify`" in before.stderr
    done(contam_here("index", "verify", "--index", index, "--corpus", copy))
    done(contam_here(*query, tmp_path / "there", "--corpus", copy))
    for name in RESULTS[:2]:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


@pytest.mark.parametrize("gone", [True, False])
def test_an_index_whose_object_changed_leaves_items_open(bucket, gone, items, tmp_path):
    index = tmp_path / "index"
    done(contam_here("index", "build", "--corpus", DATA, "--index", index))
    path = f"/{BUCKET}/data/c.jsonl"
    if gone:
        del bucket.contents[path]
    else:
        bucket.put(path, bucket.contents[path].data.replace(b"the", b"teh"))
    query = ("query", "--index", index, "--benchmark", items, "--out", tmp_path / "out")
    done(contam_here(*query), 4)


def test_public_buckets_are_read_without_keys(bucket, items, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_NO_SIGN_REQUEST", "YES")
    done(contam_here("scan", "--corpus", DATA, "--benchmark", items, "--out", tmp_path / "out"))
    assert not any("authorization" in request.headers for request in bucket.requests)


@pytest.mark.parametrize("value", ["0", "-1", "often", "1e9"])
def test_a_patience_that_is_no_number_is_refused(folder, value, items, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", value)
    out = tmp_path / "out"
    done(contam_here("scan", "--corpus", DATA, "--benchmark", items, "--out", out), 2)
    assert folder.exists()
