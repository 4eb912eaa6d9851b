"""An audit of a cleaned corpus says what was taken out, and that this is the corpus."""

import json
import shutil
from pathlib import Path

import pytest

from contam import clean
from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import verify_pack
from contam.errors import ConfigError, CorpusError
from tests.audit.conftest import FIXTURES

ITEMS = FIXTURES / "items" / "brook_math.jsonl"
SPEC = f"""
[audit]
out = "pack"
decoys = 0
[[corpus]]
name = "web"
paths = ["cleaned/corpus"]
cleaned = "cleaned/clean.json"
[[benchmark]]
paths = ["{ITEMS}"]
"""


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cleaned") / "cleaned"
    clean(FIXTURES / "corpus", ITEMS, folder, workers=1)
    return folder


@pytest.fixture
def audit(cleaned, tmp_path):
    """The file of an audit beside a cleaned corpus, to be harmed."""
    shutil.copytree(cleaned, tmp_path / "cleaned")
    path = tmp_path / "AUDIT.toml"
    path.write_text(SPEC)
    return path


def test_the_report_says_before_after_and_what_went(audit, cleaned):
    record = json.loads((cleaned / "clean.json").read_bytes())
    pack = run_audit(load_spec(audit), workers=1)
    (found,) = pack.facts.cleaned
    documents = record["documents"]
    assert documents["dropped"] > 0
    assert (found.corpus, found.action, found.edited) == ("web", "drop", 0)
    assert (found.before, found.after) == (documents["before"], documents["after"])
    assert found.found == found.dropped == documents["before"] - documents["after"]
    assert pack.facts.coverage["rows"] == found.after
    (row,) = found.flagged_before
    assert row["n"] == sum(record["before"][0][label] for label in ("contaminated", "suspect")) > 0
    (bench,) = pack.facts.benchmarks
    assert bench.policies[0].contaminated + bench.policies[0].suspect == 0
    assert list(found.by_benchmark) == record["removed"]["by_benchmark"]
    assert sum(source["documents"] for source in found.by_source) == found.found
    for name in ("report.md", "report.html"):
        said = (pack.folder / name).read_text("utf-8")
        assert f"{found.dropped:,} were dropped" in said
        assert "flagged before" in said
    assert verify_pack(pack.folder, sample=0).holds

    # The record that is published is part of the pack.
    published = pack.folder / "cleaned" / "web" / "clean.json"
    assert str(audit.parent) not in published.read_text()
    shown = json.loads(published.read_bytes())
    shown["documents"]["after"] += 1
    published.write_text(json.dumps(shown))
    assert verify_pack(pack.folder, sample=0).problems == ("cleaned/web/clean.json was altered",)


@pytest.mark.parametrize("harm", ["alter", "add", "remove", "swap"])
def test_a_record_of_another_corpus_is_an_error(audit, harm):
    corpus = audit.parent / "cleaned" / "corpus"
    shard = corpus / "part-001.parquet"
    if harm == "alter":
        shutil.copy(FIXTURES / "corpus" / "part-001.parquet", shard)
    elif harm == "add":
        shutil.copy(shard, corpus / "part-009.parquet")
    elif harm == "remove":
        shard.unlink()
    else:
        audit.write_text(SPEC.replace("cleaned/corpus", str(FIXTURES / "corpus")))
    with pytest.raises(CorpusError, match="web"):
        run_audit(load_spec(audit), workers=1)
    assert not (audit.parent / "pack").exists()


def test_a_file_that_is_no_record_is_an_error(audit, tmp_path):
    path = audit.parent / "cleaned" / "clean.json"
    record = json.loads(path.read_bytes())
    for wrong in ({**record, "format": "contam-clean-0"}, {**record, "tool": "x"}, [record]):
        path.write_text(json.dumps(wrong))
        with pytest.raises(CorpusError, match=r"clean\.json"):
            run_audit(load_spec(audit), workers=1)
    path.write_text("{")
    with pytest.raises(CorpusError, match=r"clean\.json"):
        run_audit(load_spec(audit), workers=1)
    path.unlink()
    with pytest.raises(CorpusError, match=r"clean\.json"):
        run_audit(load_spec(audit), workers=1)
    listed = Path(clean(FIXTURES / "corpus", ITEMS, tmp_path / "l", action="list").folder)
    shutil.copy(listed / "clean.json", path)
    with pytest.raises(CorpusError, match=r"clean\.json"):
        run_audit(load_spec(audit), workers=1)


def test_benchmarks_that_the_audit_does_not_ask_for_have_no_count(audit):
    audit.write_text(SPEC.replace("brook_math", "lantern_quiz"))
    pack = run_audit(load_spec(audit), workers=1)
    lines = (pack.folder / "report.md").read_text("utf-8").splitlines()
    (line,) = [one for one in lines if one.startswith("| brook") and "| contam |" in one]
    assert line.endswith(" not asked |")


def test_an_index_has_no_record(audit):
    audit.write_text(SPEC.replace('paths = ["cleaned/corpus"]', 'index = ["cleaned/corpus"]'))
    with pytest.raises(ConfigError, match="cleaned"):
        load_spec(audit)
