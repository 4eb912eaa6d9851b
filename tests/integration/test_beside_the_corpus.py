"""What lies in a corpus folder and is no corpus, and what is corpus and in no index: both are named."""

import json
import os
import shutil

import pytest

from contam.config import Settings
from contam.corpus.shards import survey
from contam.detect.query import query
from contam.detect.report import load_report
from contam.detect.scan import scan
from contam.index.change import add
from contam.index.open import Index
from contam.index.shards import describe
from contam.server.check import index_answer
from contam.server.indexes import IndexRegistry
from tests.index.builds import build
from tests.integration.inputs import FILLER, QUESTION, contam_here, labels, run_scan, write_jsonl

TEXT = f"Nobody asked. {QUESTION} Nobody answered. {FILLER}"


@pytest.fixture
def corpus(tmp_path):
    write_jsonl(tmp_path / "corpus" / "one.jsonl", [{"text": FILLER}, {"text": "and a row"}])
    return tmp_path / "corpus"


@pytest.fixture
def result(corpus, items, tmp_path):
    """A result folder whose items.parquet quotes every item."""
    assert run_scan(corpus, items, tmp_path / "out").returncode == 0
    return tmp_path / "out"


def left_out(found):
    return [note for note in found.run["notes"] if "of contam, see" in note]


def test_a_result_copied_into_a_corpus_is_named_and_not_read(corpus, items, result):
    shutil.copytree(result, corpus / "older" / "results")
    found = scan(corpus, items)
    assert labels(found) == {"q0": "clean", "q1": "clean"}
    assert found.complete
    assert [shard["name"] for shard in found.run["inputs"]["shards"]] == ["one.jsonl"]
    named = {note.split(": ")[1].rsplit("/", 1)[1] for note in left_out(found)}
    assert named == {"verdicts.parquet", "evidence.parquet", "items.parquet", "run.json"}


def test_the_files_of_a_result_beside_shards_are_told_from_them(corpus, items, result):
    for path in result.iterdir():
        shutil.copy(path, corpus)
    write_jsonl(corpus / "two.jsonl", [{"text": TEXT}])
    for given in (corpus, f"{corpus}/*"):
        found = scan(given, items)
        assert labels(found) == {"q0": "contaminated", "q1": "clean"}
        assert len(left_out(found)) == 4


def test_a_shard_with_the_name_of_a_result_file_is_a_shard(corpus, items, result):
    """As is one beside the record of somebody else's run."""
    shutil.copy(result / "run.json", corpus)
    write_jsonl(corpus / "more" / "items.jsonl", [{"text": TEXT}])
    (corpus / "more" / "run.json").write_text('{"tool": "ours", "outputs": {"items.jsonl": {}}}')
    (corpus / "more" / "MANIFEST.json").write_text("[1, 2")
    (corpus / "more" / "manifest.json").write_text('{"files": 3}')
    write_jsonl(corpus / "items.parquet.jsonl", [{"text": FILLER}])
    found = scan(corpus, items)
    assert labels(found)["q0"] == "contaminated"
    names = {shard["name"] for shard in found.run["inputs"]["shards"]}
    assert names == {"one.jsonl", "more/items.jsonl", "items.parquet.jsonl"}


def test_an_index_copied_into_a_corpus_is_named_and_not_read(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    shutil.copytree(tmp_path / "ix", corpus / "ix")
    shards, skipped = survey([corpus])
    assert [shard.name for shard in shards] == ["one.jsonl"]
    named = {one.path.name for one in skipped if "an index of contam" in one.reason}
    assert {"MANIFEST.json", "documents.parquet"} <= named
    build(corpus, tmp_path / "again")
    assert Index.open(tmp_path / "again").names == ("one.jsonl",)


@pytest.mark.usefixtures("items")
def test_an_audit_copied_into_a_corpus_is_named_and_not_read(corpus, tmp_path):
    spec = tmp_path / "AUDIT.toml"
    corpora = '[[corpus]]\nname = "web"\npaths = ["corpus"]\n'
    spec.write_text(f'[audit]\nout = "pack"\n{corpora}\n[[benchmark]]\npaths = ["items.jsonl"]\n')
    done = contam_here("audit", "run", spec)
    assert done.returncode == 0, done.stderr
    shutil.copytree(tmp_path / "pack", corpus / "pack")
    shards, skipped = survey([corpus])
    assert [shard.name for shard in shards] == ["one.jsonl"]
    reasons = {one.path.name: one.reason for one in skipped}
    assert "an audit of contam" in reasons["manifest.json"]
    assert "of contam" in reasons["items.parquet"]


@pytest.mark.parametrize("how", ["absolute", "relative", "here", "above", "glob"])
def test_a_new_shard_in_an_indexed_folder_is_named(corpus, items, tmp_path, monkeypatch, how):
    folder = corpus / "deeper" if how == "above" else corpus
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder if how in {"here", "above"} else tmp_path)
    given = {
        "absolute": corpus,
        "relative": "corpus",
        "here": ".",
        "above": "..",
        "glob": "corpus/*.jsonl",
    }
    build(given[how], tmp_path / "ix")
    monkeypatch.chdir("/")
    assert query(tmp_path / "ix", items).run["notes"] == []
    assert describe(Index.open(tmp_path / "ix"))["not_indexed"] == []
    write_jsonl(corpus / "new-2.jsonl", [{"text": TEXT}])
    found = query(tmp_path / "ix", items)
    assert labels(found)["q0"] == "clean"
    (note,) = found.run["notes"]
    assert "does not cover new-2.jsonl:" in note
    assert "contam index add" in note
    assert describe(Index.open(tmp_path / "ix"))["not_indexed"] == ["new-2.jsonl"]
    registry = IndexRegistry.open(Settings(index=(str(tmp_path / "ix"),)))
    with registry.snapshot() as snapshot:
        coverage = index_answer(snapshot)["coverage"]
    assert (coverage["not_indexed"], coverage["n_not_indexed"]) == (["new-2.jsonl"], 1)
    add(tmp_path / "ix", corpus)
    assert query(tmp_path / "ix", items).run["notes"] == []


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_it_stands_under_the_table_and_in_json(corpus, items, tmp_path, quiet):
    build(corpus, tmp_path / "ix")
    for number in range(7):
        write_jsonl(corpus / f"new-{number}.jsonl", [{"text": TEXT}])
    named = [f"new-{number}.jsonl" for number in range(7)]
    call = ("query", "--index", tmp_path / "ix", "--benchmark", items, *quiet, "--out")
    done = contam_here(*call, tmp_path / "one")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("NOT IN THE INDEX")]
    assert line.startswith(f"NOT IN THE INDEX 7 shards: {', '.join(named[:5])} and 2 more")
    assert "contam index add" in line
    told = json.loads(contam_here(*call, tmp_path / "two", "--json").stdout)
    assert told["coverage"]["not_indexed"] == named
    assert line in contam_here("show", tmp_path / "one").stdout.splitlines()
    assert "new-4.jsonl" in contam_here("index", "show", "--index", tmp_path / "ix").stdout
    assert "new-6.jsonl" in load_report(tmp_path / "one")._repr_html_()
    add(tmp_path / "ix", corpus)
    told = json.loads(contam_here(*call, tmp_path / "three", "--json").stdout)
    assert "not_indexed" not in told["coverage"]


def test_a_text_is_answered_with_what_is_not_in_the_index(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    write_jsonl(corpus / "new.jsonl", [{"text": TEXT}])
    call = ("query", "--index", tmp_path / "ix", "--text", TEXT, "-q")
    assert "NOT IN THE INDEX 1 shard: new.jsonl" in contam_here(*call).stdout
    assert json.loads(contam_here(*call, "--json").stdout)["coverage"]["not_indexed"] == [
        "new.jsonl"
    ]


def test_a_new_shard_where_the_corpus_was_moved_to_is_named(corpus, items, tmp_path):
    build(corpus, tmp_path / "ix")
    moved = shutil.copytree(corpus, tmp_path / "moved", copy_function=shutil.copy2)
    shutil.rmtree(corpus)
    write_jsonl(moved / "new.jsonl", [{"text": TEXT}])
    found = query(tmp_path / "ix", items, corpus=os.fspath(moved))
    assert found.complete
    assert "does not cover new.jsonl:" in found.run["notes"][0]


def test_an_index_build_names_what_it_leaves_out(corpus, result, tmp_path):
    shutil.copytree(result, corpus / "older")
    done = contam_here("index", "build", "--corpus", corpus, "--index", tmp_path / "ix")
    assert done.returncode == 0
    assert "items.parquet" in done.stderr
    assert Index.open(tmp_path / "ix").names == ("one.jsonl",)
