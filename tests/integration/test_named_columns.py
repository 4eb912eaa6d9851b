"""Columns that a user names for ids, urls and dates of documents: in scans, indexes and audits."""

import json

import pytest

import contam
from contam.corpus.columns import NAMEABLE
from contam.corpus.formats.registry import FORMATS
from contam.detect.report import load_report
from contam.errors import CorpusError, UsageError
from contam.index.build import build
from contam.index.change import add, compact
from contam.index.manifest import read_manifest
from contam.index.verify import verify
from tests.cli.processes import assert_one_line_error, contam_here
from tests.corpus_files import WRITERS

QUESTION = "Which of the nine brass lanterns did the old ferry keeper polish before the fair"
#: Formats whose columns have the names that the writer gives them.
OPEN = [one for one in FORMATS if one.name in WRITERS and one.name not in {"wet", "warc"}]
NAMED = {"id": "key", "url": "link", "date": "day"}


def rows(shift=0):
    """Documents whose usual columns are misleading."""
    return [
        {
            "text": f"{'Here it says: ' if row % 2 else ''}{QUESTION}, number {row}?",
            "id": f"wrong-{row}",
            "url": f"https://wrong.example.org/{row}",
            "date": "1999-01-01",
            "key": f"right-{row + shift}",
            "link": f"https://right.example.org/{row}",
            "day": f"2024-02-0{row + 1}",
        }
        for row in range(3)
    ]


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.jsonl"
    path.write_text(json.dumps({"id": "q", "question": f"{QUESTION}?"}) + "\n")
    return path


def write(folder, kind, some):
    folder.mkdir(exist_ok=True)
    (folder / f"part-0{kind.suffixes[0]}").write_bytes(WRITERS[kind.name](some))
    return folder


def described(result):
    return sorted(
        (row["row"], row["document_id"], row["url"], row["date"])
        for row in result.evidence.to_pylist()
    )


EXPECTED = [
    (row, f"right-{row}", f"https://right.example.org/{row}", f"2024-02-0{row + 1}")
    for row in range(3)
]


@pytest.mark.parametrize("kind", OPEN, ids=lambda kind: kind.name)
def test_the_named_columns_describe_documents_in_scan_and_index(tmp_path, bench, kind):
    corpus = write(tmp_path / "corpus", kind, rows())
    scanned = contam.scan(corpus, bench, columns=NAMED)
    assert described(scanned) == EXPECTED
    assert scanned.run["parameters"]["columns"] == NAMED
    build(corpus, tmp_path / "index", columns=NAMED, workers=1)
    asked = contam.query(tmp_path / "index", bench)
    assert described(asked) == EXPECTED
    assert {shard["columns"]["id"] for shard in asked.run["inputs"]["shards"]} == {"key"}
    assert not verify(tmp_path / "index").findings


@pytest.mark.parametrize("kind", OPEN, ids=lambda kind: kind.name)
@pytest.mark.parametrize("field", NAMEABLE)
def test_a_column_that_is_missing_names_those_there_are(tmp_path, bench, kind, field):
    corpus = write(tmp_path / "corpus", kind, rows())
    for call in (
        lambda: contam.scan(corpus, bench, columns={field: "nowhere"}),
        lambda: build(corpus, tmp_path / "index", columns={field: "nowhere"}, workers=1),
    ):
        with pytest.raises(CorpusError) as caught:
            call()
        for word in ("part-0", "nowhere", field, "key", "link", "text"):
            assert word in caught.value.message, caught.value.message


def test_a_shard_without_the_column_is_not_read_and_nothing_is_clean(tmp_path, bench):
    (parquet,) = (kind for kind in OPEN if kind.name == "parquet")
    corpus = write(tmp_path / "corpus", parquet, rows())
    some = [{"text": "of no account at all", "id": "x"}]
    (corpus / "part-1.parquet").write_bytes(WRITERS["parquet"](some))
    found = contam.scan(corpus, bench, columns={"id": "key"})
    assert not found.complete
    (failure,) = found.coverage["shards_failed"]
    assert failure["shard"] == "part-1.parquet"
    assert "key" in failure["reason"]
    build(corpus, tmp_path / "index", columns={"id": "key"}, workers=1)
    asked = contam.query(tmp_path / "index", bench)
    assert asked.coverage["shards_failed"] == found.coverage["shards_failed"]


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}])
def test_a_column_of_lists_or_records_is_refused(tmp_path, bench, value):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    row = {"text": QUESTION, "key": value}
    (corpus / "a.jsonl").write_text(json.dumps(row) + "\n")
    (corpus / "b.parquet").write_bytes(WRITERS["parquet"]([row]))
    for name in ("a.jsonl", "b.parquet"):
        with pytest.raises(CorpusError, match="key"):
            contam.scan(corpus / name, bench, columns={"id": "key"})


def test_a_document_without_the_named_id_is_called_by_its_place(tmp_path, bench):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    some = [{"text": QUESTION, "id": "usual", "key": None}, {"text": QUESTION, "key": "own"}]
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    found = contam.scan(corpus, bench, columns={"id": "key"})
    names = {row["document_id"] for row in found.evidence.to_pylist()}
    assert names == {"a.jsonl:0", "own"}


def test_an_index_keeps_its_columns_for_what_is_added(tmp_path, bench):
    (parquet,) = (kind for kind in OPEN if kind.name == "parquet")
    corpus = write(tmp_path / "corpus", parquet, rows())
    build(corpus, tmp_path / "index", columns={"id": "key"}, workers=1)
    (corpus / "part-1.parquet").write_bytes(WRITERS["parquet"](rows(10)))
    add(tmp_path / "index", corpus, workers=1)
    assert [record.columns for record in read_manifest(tmp_path / "index").shards] == [
        {"id": "key"}
    ] * 2
    compact(tmp_path / "index", workers=1)
    asked = contam.query(tmp_path / "index", bench)
    wanted = {f"right-{row}" for row in (0, 1, 2, 10, 11, 12)}
    assert {row["document_id"] for row in asked.evidence.to_pylist()} == wanted


def test_other_columns_make_another_segment(tmp_path):
    (parquet,) = (kind for kind in OPEN if kind.name == "parquet")
    corpus = write(tmp_path / "corpus", parquet, rows())
    one = build(corpus, tmp_path / "one", workers=1)
    other = build(corpus, tmp_path / "other", columns={"id": "key"}, workers=1)
    assert one.segments[0].id != other.segments[0].id


def test_only_these_fields_can_be_named(tmp_path, bench):
    with pytest.raises(UsageError, match="colour"):
        contam.scan(tmp_path, bench, columns={"colour": "x"})


def test_the_flags_of_the_command_line_reach_the_record(tmp_path, bench):
    (kind,) = (kind for kind in OPEN if kind.name == "jsonl")
    corpus = write(tmp_path / "corpus", kind, rows())
    flags = ("--id-column", "key", "--url-column", "link", "--date-column", "day")
    asked = ("--corpus", corpus, "--benchmark", bench, "--out", tmp_path / "out")
    done = contam_here("scan", *asked, *flags)
    assert done.returncode == 0, done.stderr
    report = load_report(tmp_path / "out")
    assert report.run["parameters"]["columns"] == NAMED
    assert described(report) == EXPECTED
    index = ("--corpus", corpus, "--index", tmp_path / "index")
    assert contam_here("index", "build", *index, *flags).returncode == 0
    assert read_manifest(tmp_path / "index").shards[0].columns == NAMED
    refused = contam_here("scan", *asked[:-1], tmp_path / "no", "--id-column", "nowhere")
    assert_one_line_error(refused, 1, "nowhere", "key")
    assert not (tmp_path / "no").exists()


def test_what_is_no_date_is_counted_and_not_shown_as_one(tmp_path, bench):
    odd = ["not a date", f"2021 {QUESTION}", "2024-02-03", "", None, "0001-01-01"]
    some = [{"text": f"{number}: {QUESTION}?", "day": day} for number, day in enumerate(odd)]
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    scanned = contam.scan(corpus, bench, columns={"date": "day"})
    build(corpus, tmp_path / "index", columns={"date": "day"}, workers=1)
    asked = contam.query(tmp_path / "index", bench)
    for result in (scanned, asked):
        found = {row["row"]: row["date"] for row in result.evidence.to_pylist()}
        assert found == {0: None, 1: None, 2: "2024-02-03", 3: None, 4: None, 5: None}
        assert "3 of 6 documents found have a date that cannot be read" in result.run["notes"]


def test_a_text_column_is_no_column_of_dates(tmp_path, bench):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text(json.dumps({"text": f"2021. {QUESTION}? " * 12}) + "\n")
    given = ("--corpus", corpus, "--benchmark", bench, "--date-column", "text")
    done = contam_here("scan", *given, "--out", tmp_path / "out")
    assert "1 of 1 documents found have a date that cannot be read" in done.stdout
    listed = contam_here("show", tmp_path / "out").stdout
    assert QUESTION not in listed
    heading = contam_here("show", tmp_path / "out", "q").stdout.partition("matches")[0]
    assert "a.jsonl row 0" in heading
    assert not any("  2021. " in line for line in heading.splitlines() if "row 0" in line)
