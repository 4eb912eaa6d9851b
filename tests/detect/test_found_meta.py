"""Metadata kept from when a document was read is that of the second look, and spares it."""

from __future__ import annotations

import pytest

from contam.corpus.formats import records
from contam.detect import found_meta
from contam.detect.report import write_report
from contam.detect.scan import scan
from contam.files import listed
from tests.corpus_files import WRITERS
from tests.integration.inputs import ABSENT, FILLER, QUESTION, write_items

RECORDS = ("jsonl", "csv", "tsv", "warc")
N_ROWS = 60


@pytest.fixture(params=RECORDS)
def corpus(request, tmp_path):
    """Two shards of a format of records; every third document holds the question."""
    kind = request.param
    (tmp_path / "corpus").mkdir()
    for shard in range(2):
        rows = [
            {
                "id": f"<doc:{shard}-{row}>",
                "url": f"https://example.org/{shard}/{row}",
                "date": f"2024-01-{row % 28 + 1:02}T00:00:00Z",
                "text": f"{row} {FILLER if row % 3 else QUESTION} {shard}",
            }
            for row in range(N_ROWS)
        ]
        (tmp_path / "corpus" / f"{shard}.{kind}").write_bytes(WRITERS[kind](rows))
    return tmp_path / "corpus"


def evidence(corpus, name):
    items = write_items(corpus.parent / "items.jsonl", QUESTION, ABSENT)
    result = scan([corpus], items, workers=2, max_evidence=100)
    out = corpus.parent / name
    write_report(result, out)
    assert result.complete
    return (out / "evidence.parquet").read_bytes(), (out / "verdicts.parquet").read_bytes()


def test_it_makes_no_difference_what_is_kept(corpus, monkeypatch):
    kept = evidence(corpus, "kept")
    with monkeypatch.context() as patch:
        patch.setattr(found_meta, "_MOST", 1)
        assert evidence(corpus, "let-go") == kept
    monkeypatch.setattr(records, "_KEPT_RECORD_BYTES", -1)
    assert evidence(corpus, "read-again") == kept


def test_a_shard_is_not_read_again_for_its_metadata(corpus, monkeypatch):
    opened = []
    open_file = listed.open_file

    def counted(path):
        opened.append(path.name)
        return open_file(path)

    monkeypatch.setattr(listed, "open_file", counted)
    evidence(corpus, "kept")
    kept = len(opened)
    opened.clear()
    monkeypatch.setattr(records, "_KEPT_RECORD_BYTES", -1)
    evidence(corpus, "read-again")
    assert len(opened) == kept + 2


def test_what_is_no_evidence_any_more_is_let_go(corpus, monkeypatch):
    sizes = []
    shrink = found_meta.FoundMeta.shrink

    def noted(self, collections):
        shrink(self, collections)
        sizes.append(len(self.known))

    monkeypatch.setattr(found_meta, "_MOST", 1)
    monkeypatch.setattr(found_meta.FoundMeta, "shrink", noted)
    items = write_items(corpus.parent / "items.jsonl", QUESTION, ABSENT)
    scan([corpus], items, workers=1, max_evidence=1)
    # The document kept, and the best one.
    assert sizes
    assert max(sizes) <= 2
