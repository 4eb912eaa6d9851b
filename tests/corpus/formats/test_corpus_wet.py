"""WET shards: the text of every page, or an error that names the record."""

import gzip
import io

import pytest
from warcio.warcwriter import WARCWriter

from contam.corpus.documents import read_metadata
from contam.errors import ShardError
from tests.corpus_files import find_shards, wet_record, wet_records

INFO = wet_record("warcinfo", b"software: none\r\n", Content_Type="application/warc-fields")


def page(text=b"text\n", **headers):
    return wet_record("conversion", text, **headers)


# The writer leaves closing its temporary files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("packed", [True, False])
def test_what_a_writer_of_others_wrote_is_read(tmp_path, read_corpus, packed):
    path = tmp_path / ("a.warc.wet.gz" if packed else "a.warc.wet")
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=packed)
        writer.write_record(writer.create_warcinfo_record("a", {"software": "tests"}))
        for number, text in enumerate(["first\n", "", "drittes, süß\r\n\r\n"]):
            writer.write_record(
                writer.create_warc_record(
                    f"http://example.org/{number}",
                    "conversion",
                    payload=io.BytesIO(text.encode()),
                    warc_content_type="text/plain",
                    warc_headers_dict={"WARC-Identified-Content-Language": "deu"},
                )
            )
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["first\n", "", "drittes, süß\r\n\r\n"]]
    assert corpus.coverage.total.n_empty == 1
    (meta,) = read_metadata(corpus.shards[0], corpus.selections[0], [2])
    assert (meta.url, meta.language) == ("http://example.org/2", "deu")
    assert meta.document_id.startswith("<urn:uuid:")
    assert meta.date


def test_a_file_is_known_by_its_first_bytes_and_by_its_suffixes(tmp_path):
    content = b"".join(wet_records(["a"]))
    for name in ("a.warc.wet", "b.wet", "c.warc", "without"):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "d.warc.wet.zst.gz").write_bytes(gzip.compress(content))
    assert [shard.format for shard in find_shards([tmp_path])] == ["warc"] * 5


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path, read_corpus):
    (tmp_path / "a.warc.wet").write_bytes(INFO + page(b"na\xefve"))
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["na\ufffdve"]]
    assert corpus.coverage.total.undecodable_bytes == 1


@pytest.mark.parametrize("kind", ["response", "request", "resource", "metadata", "revisit", "new"])
@pytest.mark.parametrize("after", [0, 3])
def test_a_record_that_holds_no_text_is_not_passed_over(tmp_path, read_corpus, kind, after):
    other = wet_record(kind, b"HTTP/1.1 200 OK\r\n\r\n<html>", Content_Type="application/http")
    (tmp_path / "a.warc").write_bytes(INFO + page() * after + other)
    with pytest.raises(ShardError, match=rf"^a\.warc, record {after + 2}: a {kind}") as caught:
        read_corpus(tmp_path)
    assert "WET" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no WARC record"),
        (b"<html>", "header of a record is cut off"),
        (b"<html>\n", "record 1: no WARC header"),
        (INFO + b"\r\n" + page(), "record 2: no WARC-Type"),
        (INFO + page(Content_Length=None), "record 2: no Content-Length"),
        (INFO + page(Content_Length="-5"), "record 2: no Content-Length"),
        (INFO + page(Content_Length="4"), "record 2: does not end after 4 bytes"),
        (INFO + page(Content_Length="6"), "record 2: does not end after 6 bytes"),
        (INFO + page(Content_Length="7000000000"), "record 2: longer than 128 MiB"),
        (INFO + page(Content_Type=None), "record 2: holds no stated type"),
        (INFO + page(Content_Type="application/pdf"), "record 2: holds application/pdf"),
        (INFO + page(Content_Type="text/plain; charset=utf-16"), "record 2: text in utf-16"),
        (INFO + page(WARC_Segment_Number="1"), "record 2: a part of a record"),
        (INFO + page(WARC_Type=None), "record 2: no WARC-Type"),
    ],
)
def test_a_damaged_record_is_an_error(tmp_path, read_corpus, content, words):
    (tmp_path / "a.warc.wet").write_bytes(content)
    with pytest.raises(ShardError, match=rf"^a\.warc\.wet.*{words}"):
        read_corpus(tmp_path)
