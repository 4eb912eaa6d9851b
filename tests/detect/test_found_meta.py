"""Metadata kept from when a document was read, and such as is damaged: the text counts all the same."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import contam
from contam.corpus import opening
from contam.corpus.formats import records
from contam.detect import chunk_scan
from contam.detect.parts.part_store import Division
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
        patch.setattr(chunk_scan, "_MOST", 1)
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
    shrink = chunk_scan.FoundMeta.shrink

    def noted(self, collections):
        shrink(self, collections)
        sizes.append(len(self.known))

    monkeypatch.setattr(chunk_scan, "_MOST", 1)
    monkeypatch.setattr(chunk_scan.FoundMeta, "shrink", noted)
    items = write_items(corpus.parent / "items.jsonl", QUESTION, ABSENT)
    scan([corpus], items, workers=1, max_evidence=1)
    # The document kept, and the best one.
    assert sizes
    assert max(sizes) <= 2


ROUTES = ("memory", "parts")


@pytest.fixture
def home(tmp_path):
    (tmp_path / "corpus").mkdir()
    write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    return tmp_path


def search(home, route, most, monkeypatch):
    """Exit code, notes and tables of a scan."""
    out = home / f"{route}-{most}"
    with monkeypatch.context() as patch:
        patch.setattr(opening, "CHUNK_BYTES", 1)
        result = contam.scan(
            home / "corpus", home / "items.jsonl", max_evidence=most, workers=1,
            division=Division(folder=str(home / "parts"), size=1) if route == "parts" else None,
        )  # fmt: skip
    contam.write_report(result, out)
    run = json.loads((out / "run.json").read_bytes())
    tables = [(out / f"{name}.parquet").read_bytes() for name in ("verdicts", "evidence")]
    return result.exit_code(), run["notes"], sorted(ids_in(result)), tables


def ids_in(result):
    return {row["document_id"] for row in result.evidence.to_pylist()}


def write_parquet(path):
    """Four row groups of one document; the ids of the second are damaged, their text is not."""
    texts = [QUESTION, f"{QUESTION} again", f"{QUESTION} more", f"{QUESTION} last"]
    ids = [f"doc-{number}-{'x' * 300}" for number in range(4)]
    table = pa.table({"text": texts, "id": ids})
    pq.write_table(table, path, row_group_size=1, compression="none", use_dictionary=False)
    page = pq.read_metadata(path).row_group(1).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[page : page + 12] = b"\xff" * 12
    path.write_bytes(bytes(data))


def write_arrow(path, last):
    """Three record batches; the last offset of the ids in the second one is another."""
    ids = [pa.array([f"doc-{number}{row}" for row in range(2)]) for number in range(3)]
    schema = pa.schema({"text": pa.string(), "id": pa.string()})
    with ipc.new_file(path, schema) as writer:
        for each in ids:
            writer.write_batch(pa.record_batch([pa.array([QUESTION] * 2), each], schema=schema))
    data = path.read_bytes()
    offsets = ids[1].buffers()[1].to_pybytes()[:12]
    at = [i for i in range(len(data)) if data.startswith(offsets, i)][1]
    path.write_bytes(data[: at + 8] + last.to_bytes(4, "little") + data[at + 12 :])


@pytest.mark.parametrize("most", [1, 2, 20])
def test_only_documents_of_the_damaged_row_group_lose_it(home, most, monkeypatch):
    write_parquet(home / "corpus" / "a.parquet")
    found = [search(home, route, most, monkeypatch) for route in ROUTES]
    assert found[0] == found[1]
    code, notes, ids, _ = found[0]
    assert code == 0
    if most == 20:
        assert [one[:11] for one in ids] == [
            "a.parquet:1",
            "doc-0-xxxxx",
            "doc-2-xxxxx",
            "doc-3-xxxxx",
        ]
        assert any(note.startswith("a.parquet: evidence without url and date") for note in notes)


@pytest.mark.parametrize("last", [0, 400, 1 << 30])
def test_offsets_of_ids_that_do_not_fit_give_no_other_memory(home, last, monkeypatch):
    write_arrow(home / "corpus" / "a.arrow", last)
    found = [search(home, route, 20, monkeypatch) for route in ROUTES]
    assert found[0] == found[1]
    code, notes, ids, _ = found[0]
    assert code == 0
    assert ids == [*(f"a.arrow:{row}" for row in range(2, 6)), "doc-00", "doc-01"]
    assert notes


def test_a_shard_that_cannot_be_reached_any_more_was_not_read(home, monkeypatch):
    path = home / "corpus" / "a.parquet"
    write_parquet(path)
    real = contam.detect.scan.scan_chunks

    def gone_after(*args, **kwargs):
        found = real(*args, **kwargs)
        path.unlink()
        return found

    monkeypatch.setattr("contam.detect.scan.scan_chunks", gone_after)
    code, _, _, _ = search(home, "memory", 20, monkeypatch)
    assert code == 4
