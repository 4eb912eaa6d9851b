"""A corpus in a bucket is cleaned to the bytes of its copy in a folder; the result is on disk."""

import json

import pytest

from contam.cleaning.clean import clean
from contam.errors import IncompleteError, ShardError
from tests.cleaning.inputs import tree
from tests.cli.processes import assert_one_line_error, contam_here
from tests.remote.conftest import BUCKET

DATA = f"s3://{BUCKET}/data"


def files_of(out):
    found = tree(out)
    return found, json.loads(found.pop("clean.json"))


@pytest.fixture(scope="module")
def expected(folder, items, tmp_path_factory):
    """The files that are written for the folder, and the record."""
    out = tmp_path_factory.mktemp("cleaned") / "out"
    clean([folder], [items], out, action="mask", workers=1)
    return files_of(out)


@pytest.mark.usefixtures("bucket")
def test_objects_are_cleaned_as_files_are(expected, items, tmp_path):
    clean([DATA], [items], tmp_path / "out", action="mask", workers=2)
    found, record = files_of(tmp_path / "out")
    assert found == expected[0]
    assert record["removed"] == expected[1]["removed"]
    assert record["proof"]["shards_searched_again"] == 9
    assert [shard["in"] for shard in record["shards"]] == [
        shard["in"] for shard in expected[1]["shards"]
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
def test_shares_take_parts_and_shards_from_the_bucket(expected, items, tmp_path):
    call = ("clean", "--corpus", DATA, "--benchmark", items, "--action", "mask", "--out", "out",
            "--parts", f"s3://{BUCKET}/parts")  # fmt: skip
    for share in ("2/2", "1/2", "2/2", "1/2", None):
        done = contam_here(*call, *(("--shard", share) if share else ()), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out")[0] == expected[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("address", ["s3://corpora/cleaned", "gs://corpora/cleaned"])
def test_a_result_is_not_written_to_a_store(items, tmp_path, address):
    called = contam_here("clean", "--corpus", DATA, "--benchmark", items, "--out", address,
                         cwd=tmp_path)  # fmt: skip
    assert_one_line_error(called, 2, "store")
    assert not list(tmp_path.iterdir())


class Moments:
    """A progress that does something when the search has ended, or when writing begins."""

    def __init__(self, moment, act):
        self.said, self.moment, self.act = [], moment, act

    def start(self, _):
        self.notice("start")

    def advance(self, _):
        pass

    def note(self, _):
        pass

    def finish(self):
        self.notice("finish")

    def notice(self, what):
        self.said.append(what)
        if self.said == self.moment:
            self.act()


@pytest.mark.parametrize(
    ("moment", "error"),
    [(["start", "finish"], IncompleteError), (["start", "finish", "start"], ShardError)],
)
def test_an_object_that_is_replaced_meanwhile_is_an_error(bucket, items, tmp_path, moment, error):
    name = f"/{BUCKET}/data/c.jsonl"
    more = bucket.contents[name].data + b"\n"
    progress = Moments(moment, lambda: bucket.put(name, more))
    with pytest.raises(error, match=r"c\.jsonl"):
        clean([DATA], [items], tmp_path / "out", workers=1, progress=progress)
    assert not (tmp_path / "out").exists()
