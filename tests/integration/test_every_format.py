"""What holds for every corpus format: the same answers as from Parquet, and no half of a file."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard

import contam
from contam.corpus import opening
from contam.corpus.columns import select_columns
from contam.corpus.documents import read_metadata
from contam.corpus.formats.registry import FORMATS
from contam.detect.report import write_report
from contam.index.change import add
from tests.corpus_files import FIELDS, WRITERS, find_shards, read_texts
from tests.index.builds import build
from tests.integration.inputs import FILLER, QUESTION, contam_here, labels, quoted

PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
#: Every format of several documents a file, and packed where the whole file may be.
SEVERAL = [one for one in FORMATS if one.name not in ("text", "tar", "tokens")]
NAMES = [f"part-0{one.suffixes[0]}" for one in SEVERAL]
PACKED = [f"part-0{one.suffixes[0]}{suffix}" for one in SEVERAL if one.packable for suffix in PACK]
HARD = (
    'She said "no, thanks", and left;\n\n\tthen she came\r\nback. ',
    "naïve 漢字 \u2028 of the \0 first\rkind, ",
)
N_ROWS = 9
EVIDENCE = ("item_id", "row", "document_id", "url", "date", "document_start", "document_end")


def rows_of(name="part-0.parquet"):
    """Documents with what breaks formats of text; the last but one holds the question.

    They have the fields that a file of this name has room for.
    """
    rows = [
        {
            "id": f"<doc:{row}>",
            "url": f"https://example.org/{row}",
            "date": f"2024-01-0{row + 1}T00:00:00Z",
            "language": "eng",
            "text": f"{row} {HARD[row % 2]}{QUESTION if row == N_ROWS - 2 else FILLER}\n",
        }
        for row in range(N_ROWS)
    ]
    kept = FIELDS.get(kind_of(name)) or rows[0]
    return [{field: row[field] for field in kept} for row in rows]


def kind_of(name):
    """The format of a file with this name, packed or not."""
    suffix = Path(name).suffix
    stem = name.removesuffix(suffix) if suffix in PACK else name
    (kind,) = [each.name for each in FORMATS if stem.endswith(each.suffixes)]
    return kind


def written(path, rows):
    """A shard with these rows, packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pack = PACK.get(path.suffix)
    content = WRITERS[kind_of(path.name)](rows)
    path.write_bytes(pack(content) if pack else content)
    return path


def seen(result):
    """Verdicts, evidence and quotes, without what names the file."""
    columns = result.evidence.select(EVIDENCE).to_pylist()
    return [(one.item_id, one.label, one.n_documents) for one in result], columns


@pytest.fixture
def expected(tmp_path, items, name):
    path = written(tmp_path / "reference" / "part-0.parquet", rows_of(name))
    result = contam.scan(path.parent, items, workers=1)
    assert labels(result) == {"q0": "contaminated", "q1": "clean"}
    texts = [row["text"] for row in rows_of()]
    assert [one[2] for one in quoted(result, texts)] == [QUESTION.rstrip("?")]
    return seen(result)


def test_no_two_formats_claim_one_file():
    for what in (
        [one.name for one in FORMATS],
        [suffix for one in FORMATS for suffix in one.suffixes],
        [magic for one in FORMATS for magic in one.magic],
    ):
        assert len(set(what)) == len(what)


def test_every_format_has_a_writer():
    assert {one.name for one in SEVERAL} == set(WRITERS)


@pytest.mark.parametrize("name", [*NAMES, *PACKED])
def test_a_scan_answers_as_over_parquet(tmp_path, items, expected, name, monkeypatch):
    path = written(tmp_path / "corpus" / name, rows_of(name))
    monkeypatch.setattr(opening, "CHUNK_BYTES", 600)
    result = contam.scan(path.parent, items, workers=2)
    assert seen(result) == expected
    assert result.complete
    assert result.coverage["columns"] == {"text": 9}
    (shard,) = find_shards([path])
    assert {one["format"] for one in result.run["inputs"]["shards"]} == {shard.format}


@pytest.mark.parametrize("name", [*NAMES, *PACKED[::4]])
def test_an_index_answers_as_a_scan_and_can_be_verified(tmp_path, items, expected, name):
    path = written(tmp_path / "corpus" / name, rows_of(name))
    build(written(tmp_path / "first.jsonl", rows_of(name)[:1]), tmp_path / "index")
    add(tmp_path / "index", path.parent, workers=1)
    assert seen(contam.query(tmp_path / "index", items, workers=1)) == expected
    done = contam_here("index", "verify", "--index", tmp_path / "index")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_documents_are_read_back_as_they_were_written(tmp_path, items, name):
    rows = rows_of(name)
    path = written(tmp_path / "corpus" / name, rows)
    (shard,) = find_shards([path])
    selection = select_columns(shard)
    assert read_texts(shard, selection, [8, 0, 3]) == [rows[at]["text"] for at in (8, 0, 3)]
    (meta,) = read_metadata(shard, selection, [5])
    said = {"id": meta.document_id, "url": meta.url, "date": meta.date, "language": meta.language}
    assert said == {field: rows[5].get(field) for field in said}
    out = write_report(contam.scan(path.parent, items, workers=1), tmp_path / "out")
    (item,) = json.loads(contam_here("show", out, "--json").stdout)["items"]
    assert item["documents"][0]["document_id"] == "<doc:7>"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *PACKED[::4]])
def test_no_half_of_a_file_is_clean(tmp_path, items, name):
    path = written(tmp_path / "corpus" / name, rows_of(name))
    whole = path.read_bytes()
    # Lines, and members that hold whole lines, end somewhere: there a cut cannot be seen.
    for length in range(1, len(whole) - 1, max(1, len(whole) // 40)):
        if whole[:length].endswith((b"\n", b"}")):
            continue
        path.write_bytes(whole[:length])
        result = contam.scan([path, tmp_path / "corpus"], items, workers=1, allow_missing=False)
        assert not result.complete, length
        assert "clean" not in labels(result).values()
