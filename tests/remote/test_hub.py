"""Data sets on the Hub: the answer of their copies, from one commit, through the real library."""

import pytest

from contam.corpus.shards import shard_digest, survey
from contam.errors import CorpusError, MissingExtraError, UsageError
from tests.integration.inputs import labels
from tests.remote.conftest import report
from tests.remote.hub import COMMITS, HERE, NAME, TOKEN, HubHandler, put_data_set
from tests.remote.server import Handler, running


class Elsewhere(Handler):
    """Sends what the Hub points to."""

    def answer(self, request):
        self.send_content(self.server.contents[request.path], request)


def test_a_data_set_is_answered_as_a_folder(endpoint, local, items, tmp_path):
    result, tables = report([f"{HERE}/data"], items, tmp_path / "out")
    assert result.complete
    assert tables == local[1]
    assert result.coverage == local[0].coverage
    uris = [shard["uri"] for shard in result.run["inputs"]["shards"]]
    assert all(uri.startswith(f"{HERE}@{COMMITS['main']}/data/") for uri in uris)
    assert result.run["inputs"]["corpus"] == [f"{HERE}/data"]
    assert endpoint.requests


def test_a_shard_is_pinned_to_the_commit_that_was_listed(endpoint, folder):
    put_data_set(endpoint, NAME, {"data/c.jsonl": b'{"text": "newer"}\n'}, "v2")
    (old,), (new,) = (survey([f"{HERE}{at}/data/c.jsonl"])[0] for at in ("", "@v2"))
    (copy,) = survey([folder / "c.jsonl"])[0]
    assert shard_digest(old) == shard_digest(copy) != shard_digest(new)
    assert f"commit={COMMITS['main']}" in old.state.stamp
    assert old.state.stamp != new.state.stamp
    (by_commit,) = survey([f"{HERE}@{COMMITS['v2']}/data/c.jsonl"])[0]
    assert by_commit == new


@pytest.mark.parametrize("do", ["500", "503", "reset", "reset body", "cut body", "stall"])
@pytest.mark.slow
def test_a_fault_that_passes_changes_nothing(endpoint, do, local, items, tmp_path):
    # A listing may take as long as all its pages.
    whats = ("revision", "resolve") if do == "stall" else ("revision", "tree", "resolve")
    faults = [endpoint.fail(do, key=what) for what in whats]
    result, tables = report([f"{HERE}/data"], items, tmp_path / "out")
    assert all(fault.seen > 1 for fault in faults)
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]


@pytest.mark.parametrize("do", ["503", "cut body", "403"])
@pytest.mark.parametrize("name", ["a.parquet", "c.jsonl"])
@pytest.mark.slow
def test_a_fault_that_stays_is_a_failure_by_name(endpoint, do, name, items, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "2")
    endpoint.fail(do, key=f"resolve/{COMMITS['main']}/data/{name}", times=None)
    result, _ = report([f"{HERE}/data"], items, tmp_path / "out")
    assert [failure["shard"] for failure in result.coverage["shards_failed"]] == [name]
    assert "clean" not in labels(result).values()


def test_a_file_of_another_size_than_listed_was_not_read(endpoint, items, tmp_path):
    path = f"/{NAME}/{COMMITS['main']}/data/c.jsonl"
    endpoint.fail(
        lambda: endpoint.put(path, endpoint.contents[path].data * 2), key="resolve", after=3
    )
    result, _ = report([f"{HERE}/data"], items, tmp_path / "out")
    assert [failure["shard"] for failure in result.coverage["shards_failed"]] == ["c.jsonl"]


def test_the_token_goes_to_the_hub_alone(endpoint, items, tmp_path, local, monkeypatch):
    with running(Elsewhere) as elsewhere:
        monkeypatch.setattr(HubHandler, "elsewhere", elsewhere)
        # By another name than the Hub's: only then is it another host.
        monkeypatch.setenv("HF_ENDPOINT", endpoint.url.replace("127.0.0.1", "localhost"))
        result, tables = report([f"{HERE}/data"], items, tmp_path / "out")
        assert tables == local[1]
        asked = [request.headers for request in endpoint.requests]
        assert any(f"Bearer {TOKEN}" in headers.values() for headers in asked)
        assert elsewhere.requests
        assert all("Authorization" not in request.headers for request in elsewhere.requests)
    assert TOKEN not in (tmp_path / "out" / "run.json").read_text()
    assert "Signature" not in (tmp_path / "out" / "run.json").read_text()
    assert result.complete


@pytest.mark.parametrize(
    "named", [f"{HERE}/none", f"{HERE}@v9", "hf://datasets/owner/none", f"{HERE}/*.none"]
)
def test_what_is_not_there_is_refused(endpoint, named):
    with pytest.raises(CorpusError, match=r"no object is there|no such data set"):
        survey([named])
    assert endpoint.requests


@pytest.mark.parametrize("named", ["hf://owner/corpus", "hf://models/a/b", "hf://datasets/a"])
def test_only_data_sets_are_read(named):
    with pytest.raises(UsageError, match="no data set of the Hub"):
        survey([named])


def test_without_its_extra_the_hub_is_refused(monkeypatch):
    monkeypatch.setattr("contam.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError):
        survey([HERE])
