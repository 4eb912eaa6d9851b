"""Single files over https, through a server with a certificate of its own."""

import pytest

from contam.corpus.shards import shard_digest, survey
from contam.errors import CorpusError
from contam.files.addresses import checked
from contam.files.stores import StoreError, store_of
from tests.integration.inputs import labels
from tests.remote.conftest import forget_connections, report
from tests.remote.server import Content, Handler, running

FORMATS = ("a.parquet", "c.jsonl", "in/h.jsonl.zst")
PASSING = ("500", "503", "reset", "reset body", "cut body", "stall")


class WebHandler(Handler):
    """Sends what is there."""

    def answer(self, request):
        content = self.server.contents.get(request.path)
        if content is None:
            self.refuse(404, "none")
        elif request.path.startswith("/away/"):
            self.send(302, b"", Location=f"http://{self.headers['Host']}/x.jsonl")
        elif request.path.startswith("/whole/"):
            self.send(200, content.data)
        else:
            self.send_content(content, request)


@pytest.fixture
def site(certified, files):
    with running(WebHandler, certified) as store:
        for name, data in files.items():
            store.put(f"/{name}", data)
        yield store


def addresses(site, *names):
    return [f"{site.url}/{name}" for name in names]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_answered_as_its_copy(site, name, folder, items, tmp_path):
    copy, expected = report([folder / name], items, tmp_path / "copy")
    result, tables = report(addresses(site, name), items, tmp_path / "out")
    assert result.complete
    assert tables == expected
    assert result.coverage == copy.coverage
    (shard,) = survey(addresses(site, name))[0]
    assert shard.name == name.rpartition("/")[2]
    assert shard.state.stamp == f"etag={site.contents[f'/{name}'].etag}"
    assert shard_digest(shard) == result.run["inputs"]["shards"][0]["digest"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("do", PASSING)
@pytest.mark.slow
def test_a_fault_that_passes_changes_nothing(site, do, name, items, tmp_path, folder):
    _, expected = report([folder / name], items, tmp_path / "copy")
    fault = site.fail(do, after=4)
    result, tables = report(addresses(site, name), items, tmp_path / "out")
    assert fault.seen > 5
    assert result.coverage["shards_failed"] == []
    assert tables == expected


@pytest.mark.slow
@pytest.mark.parametrize("after", range(2, 12))
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_replaced_while_it_is_read_was_not_read(site, name, after, items, tmp_path):
    data = site.contents[f"/{name}"].data
    fault = site.fail(lambda: site.put(f"/{name}", data), after=after)
    result, _ = report(addresses(site, name, "e.tsv"), items, tmp_path / "out", allow_missing=False)
    if fault.seen > after and not result.complete:
        assert "clean" not in labels(result).values()
        assert len(result.coverage["shards_failed"]) == 1
    else:
        # What replaced it came before it was listed, or when all was read.
        assert result.complete


@pytest.mark.parametrize("do", ["503", "403", "cut body"])
@pytest.mark.slow
def test_a_fault_that_stays_is_a_failure_by_name(site, do, items, tmp_path):
    site.fail(do, key="c.jsonl", after=3, times=None)
    result, _ = report(addresses(site, "c.jsonl", "e.tsv"), items, tmp_path / "out")
    assert [failure["shard"] for failure in result.coverage["shards_failed"]] == ["c.jsonl"]
    assert "clean" not in labels(result).values()


@pytest.mark.parametrize("name", ["none.jsonl", "*.jsonl", "in/"])
def test_what_is_no_single_file_is_refused(site, name):
    with pytest.raises(CorpusError, match=r"no object is there|single files"):
        survey(addresses(site, name))


@pytest.mark.parametrize(("name", "reason"), [("away/", "away from https"), ("whole/", "ranges")])
def test_a_server_that_may_not_be_trusted_is_refused(site, name, reason):
    site.contents[f"/{name}x.jsonl"] = Content(b"{}\n" * 9, "")
    address = checked(f"{site.url}/{name}x.jsonl")
    with pytest.raises(StoreError, match=reason):
        store_of(address).state(address)


def test_a_server_with_a_foreign_certificate_is_refused(site, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    forget_connections()
    address = checked(f"{site.url}/c.jsonl")
    with pytest.raises(StoreError, match="certificate"):
        store_of(address).state(address)
