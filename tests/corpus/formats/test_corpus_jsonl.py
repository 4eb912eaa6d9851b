"""JSONL shards, plain and compressed, whole and cut."""

import bz2
import gzip
import json
import lzma
import sys
import tracemalloc

import pytest
import zstandard

from contam.corpus import streams
from contam.corpus.columns import select_columns
from contam.corpus.formats.base import Chunk
from contam.errors import ShardError
from contam.tables.columns import ColumnRef
from tests.cli.processes import python
from tests.corpus_files import find_shards

RECORDS = [
    {"id": 1, "text": "one"},
    {"id": 2, "text": None},
    {"id": 3},
    {"id": 4, "text": ""},
    {"id": 5, "text": "naïve 漢字 🙂\nsecond line"},
]
READ = ["one", "", "", "", "naïve 漢字 🙂\nsecond line"]


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def zstd_long(raw):
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return writer.compress(raw) + writer.flush()


def halves(raw):
    cut = raw.index(b"\n") + 5  # in the middle of the second line
    return raw[:cut], raw[cut:]


SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
PACKED = {
    "a.jsonl": lambda raw: raw,
    "a.json": lambda raw: raw,
    "a.ndjson": lambda raw: raw,
    "no-newline.jsonl": lambda raw: raw.rstrip(b"\n"),
    "crlf.jsonl": lambda raw: raw.replace(b"\n", b"\r\n"),
    "bom.jsonl": lambda raw: b"\xef\xbb\xbf" + raw,
    "a.json.gz": gzip.compress,
    "members.jsonl.gz": lambda raw: b"".join(map(gzip.compress, halves(raw))),
    "padded.jsonl.gz": lambda raw: gzip.compress(raw) + bytes(512),
    "a.jsonl.zst": zstandard.compress,
    "frames.jsonl.zstd": lambda raw: b"".join(map(zstandard.compress, halves(raw))),
    "skippable.jsonl.zst": lambda raw: SKIPPABLE + zstandard.compress(raw) + SKIPPABLE,
    "long.jsonl.zst": zstd_long,
    "a.jsonl.bz2": bz2.compress,
    "streams.jsonl.bz2": lambda raw: b"".join(map(bz2.compress, halves(raw))),
    "a.jsonl.xz": lzma.compress,
    "streams.jsonl.xz": lambda raw: b"".join(map(lzma.compress, halves(raw))),
    "unpacked-by-the-server.jsonl.gz": lambda raw: raw,
    "packed-without-saying.jsonl": gzip.compress,
}


@pytest.mark.parametrize("name", PACKED)
def test_every_packing(tmp_path, read_corpus, name):
    (tmp_path / name).write_bytes(PACKED[name](lines(RECORDS)))
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [READ]
    total = corpus.coverage.total
    assert (total.rows, total.n_null, total.n_empty) == (5, 2, 1)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", ["half", "last byte", "half of second member", "garbage after"])
def test_a_cut_or_spoilt_stream_is_an_error(tmp_path, read_corpus, pack, damage):
    suffix = {"gzip": "gz", "zstandard": "zst", "bz2": "bz2", "lzma": "xz"}[
        pack.__module__.split(".")[0]
    ]
    raw = lines([{"text": f"document {i * i}"} for i in range(2000)])
    packed = {
        "half": lambda: pack(raw)[: len(pack(raw)) // 2],
        "last byte": lambda: pack(raw)[:-1],
        "half of second member": lambda: pack(raw) + pack(raw)[: len(pack(raw)) // 2],
        "garbage after": lambda: pack(raw) + b"these bytes are nothing",
    }[damage]()
    (tmp_path / f"cut.jsonl.{suffix}").write_bytes(packed)
    with pytest.raises(ShardError, match=rf"cut\.jsonl\.{suffix}") as caught:
        read_corpus(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.jsonl.xz", "a.jsonl.bz2"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>"])
def test_a_file_that_is_not_what_its_name_says_is_an_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ShardError, match="named as"):
        select_columns(find_shards([tmp_path])[0])


def test_an_unsupported_compression_fails_by_name(tmp_path):
    (tmp_path / "a.jsonl.lz4").write_bytes(b"\x04\x22\x4d\x18" + bytes(20))
    with pytest.raises(ShardError, match="lz4"):
        select_columns(find_shards([tmp_path])[0])


def test_rows_are_line_numbers_even_past_blank_lines(tmp_path, read_corpus):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n\n  \n{"text": "d"}\n')
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["a", "", "", "d"]]
    total = corpus.coverage.total
    assert (total.rows, total.n_blank, total.n_empty) == (2, 2, 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"text": "cut', "not JSON"),
        (b'["text"]', "a JSON list"),
        (b"plain words", "not JSON"),
        (b'{"text": 5}', "text is a int"),
        (b'{"text": {"a": 1}}', "text is a dict"),
        (b'{"text": [5]}', "a turn is a int"),
        (b"[" * 100_000, "not JSON"),
        (b'{"text": "a", "id": 1, "text" : "b"}', "'text' occurs twice"),
        (b'{"text": "a\xff", "text": "b", "n": NaN}', "'text' occurs twice"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path, read_corpus, line, says):
    good = lines([{"text": "x"}] * 300)
    (tmp_path / "a.jsonl").write_bytes(good + line + b"\n" + good)
    with pytest.raises(ShardError, match=rf"a\.jsonl, line 301: .*{says}"):
        read_corpus(tmp_path)


def test_what_strict_parsers_refuse_is_read(tmp_path, read_corpus):
    (tmp_path / "a.jsonl").write_bytes(
        b'{"text": "lone \\ud800 half", "score": NaN}\n'
        b'{"text": "byte \xff here"}\n'
        b'{"text": "cut \xe6\xbc char"}\n'
        b'{"text": "both \\udc00 and \xff"}\n'
        b'{"text": "pair \\ud83d\\ude42"}\n'
    )
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [
        ["lone \ufffd half", "byte \ufffd here", "cut \ufffd char", "both \ufffd and \ufffd",
            "pair 🙂"],
    ]  # fmt: skip
    assert corpus.coverage.total.n_undecodable == 4
    assert corpus.coverage.total.undecodable_bytes == 6


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_lines_survive_any_cut_into_pieces(tmp_path, read_corpus, monkeypatch, piece):
    monkeypatch.setattr(streams, "PIECE_BYTES", piece)
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + lines(RECORDS) + b"\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(RECORDS)))
    (tmp_path / "c.jsonl.zst").write_bytes(zstandard.compress(lines(RECORDS)))
    assert read_corpus(tmp_path).texts == [[*READ, ""], READ, READ]


def test_a_line_without_end_is_refused(tmp_path, read_corpus, monkeypatch):
    monkeypatch.setattr("contam.corpus.formats.records.MAX_RECORD_BYTES", 3 << 20)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ok"}\n{"text": "' + b"x" * (6 << 20))
    with pytest.raises(ShardError, match="line 2: longer than 3 MiB"):
        read_corpus(tmp_path)


def test_nested_paths_json_text_and_chats(tmp_path, read_corpus):
    (tmp_path / "a.jsonl").write_bytes(
        lines([{"meta": {"text": "in"}}, {"meta": '{"text": "js"}'}])
    )
    assert read_corpus(tmp_path, text="meta.text").texts == [["in", "js"]]
    chat = [
        {"from": "human", "value": "Q"},
        {"from": "gpt", "value": None},
        {"from": "x", "value": "A"},
    ]
    (tmp_path / "a.jsonl").write_bytes(lines([{"conversations": chat}, {"conversations": []}]))
    assert read_corpus(tmp_path).texts == [["Q\n\nA", ""]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pack", ["gzip.compress", "zstandard.compress", "bz2.compress", "lzma.compress"]
)
def test_repetitive_text_unpacks_in_bounded_memory(tmp_path, pack):
    # A few kilobytes that stand for 400 MB; measured in a process of its own.
    script = f"""
import bz2, gzip, lzma, resource, sys, zstandard
from contam.corpus.streams import pieces
line = b'{{"text": "' + b"word " * 200_000 + b'"}}' + bytes([10])
open(sys.argv[1], "wb").write({pack}(line * 8) * 50)
del line
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = [len(piece) for piece in pieces(sys.argv[1])]
assert sum(sizes) > 400_000_000, sum(sizes)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)
"""
    done = python("-c", script, tmp_path / "x")
    scale = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * scale < 150 << 20


WIDE = ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz", "a.csv", "a.tsv", "a.csv.gz"])
def test_a_file_in_utf_16_is_named_so(tmp_path, read_corpus, encoding, name):
    text = "text\nünï\n" if "sv" in name else lines([{"text": "漢字"}, {"text": "b"}]).decode()
    raw = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    with pytest.raises(ShardError, match=rf"^{name}: UTF-(16|32), not UTF-8$") as caught:
        read_corpus(tmp_path)
    assert "UTF-8" in caught.value.hint


def test_metadata_of_long_documents_take_no_memory_for_their_texts(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for row in range(200):
            file.write(json.dumps({"id": str(row), "text": f"{row} " + "x" * 300_000}) + "\n")
    (shard,) = find_shards([path])
    ref = ColumnRef(("id",), "text")
    tracemalloc.start()
    try:
        found = list(shard.kind.metadata(shard.path, (ref,), Chunk(0, None, 0, None, 0)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [value for some in found for value in some[ref]] == [str(row) for row in range(200)]
    assert peak < 20 << 20
