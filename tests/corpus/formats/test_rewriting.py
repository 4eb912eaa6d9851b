"""Records that stay keep their bytes, and in edited ones only the text changes."""

import base64
import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.columns import select_columns
from contam.errors import OutputError, ShardError
from contam.files.compression import unpack
from contam.tables.edits import Edit, Rewrite, Rewritten, edited
from tests.corpus_files import find_shards, read_texts, wet_record

PACKERS = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, check=lzma.CHECK_SHA256),
}
CODECS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2", "xz": "xz"}


def rewritten(tmp_path, name, data, edits, *, replacement=None, text=None):
    """What the writer of a file's format says, and the bytes that it wrote."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    (shard,) = find_shards([folder / name])
    target = tmp_path / "out" / name
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    sources = select_columns(shard, text).sources
    found = shard.kind.rewrite(shard.path, target, Rewrite(edits, sources, replacement))
    return found, target.read_bytes()


def texts_in(tmp_path, name, data, text=None):
    (tmp_path / "again").mkdir(exist_ok=True)
    (tmp_path / "again" / name).write_bytes(data)
    (shard,) = find_shards([tmp_path / "again" / name])
    selection = select_columns(shard, text)
    n_rows = sum(len(block.offsets) - 1 for block in shard.kind.blocks(
        shard.path, selection.sources, shard.kind.chunks(shard.path, selection.text, 1, 1 << 30)[0],
        1 << 20)) if selection.sources else 0  # fmt: skip
    return read_texts(shard, selection, range(n_rows)) if n_rows else []


@st.composite
def spans(draw, length):
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=6)))
    return tuple(zip(cuts[::2], cuts[1::2], strict=False))


# ----------------------------------------------------------------------------- lines and members


LINES = st.lists(
    st.sampled_from(
        [b'{"text": "one"}', b'{"text": "two words"}', b"", b"  ", b'{"text":"\\u00e9","n":1.50}\r']
    ),
    max_size=8,
)


@given(data=st.data())
def test_lines_that_stay_keep_their_bytes(tmp_path_factory, data):
    lines = [line + b"\n" for line in data.draw(LINES)]
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    if lines and data.draw(st.booleans()) and lines[-1].strip():
        lines[-1] = lines[-1].rstrip(b"\n")
    if lines:
        lines[0] = mark + lines[0]
    edits, left = [], []
    for row, line in enumerate(lines):
        what = data.draw(st.sampled_from(["stay", "stay", "drop", "cut"]))
        if what == "drop":
            edits.append(Edit(row, True, ((0, 1),)))
        elif what == "cut" and line.removeprefix(mark).strip():
            edits.append(Edit(row, False, ((0, 1),)))
            record = json.loads(line.removeprefix(mark))
            left.append({**record, "text": record["text"][1:]})
        else:
            left.append(line)
    packer = data.draw(st.sampled_from(["", *PACKERS]))
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    members = [PACKERS[packer](whole[:cut]), PACKERS[packer](whole[cut:])] if packer else [whole]
    name = f"a.jsonl.{packer}" if packer else "a.jsonl"
    folder = tmp_path_factory.mktemp("lines")
    found, out = rewritten(folder, name, b"".join(members), edits)
    n_dropped = sum(edit.drop for edit in edits)
    assert (found.rows_before, found.rows_after) == (len(lines), len(lines) - n_dropped)
    new = (unpack(CODECS[packer], out) if packer else out).splitlines(keepends=True)
    assert len(new) == len(left)
    for line, wanted in zip(new, left, strict=True):
        if isinstance(wanted, bytes):
            assert line == wanted
        else:
            assert json.loads(line.removeprefix(mark)) == wanted


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_file_is_packed_anew_with_what_its_codec_can_say(tmp_path, packer):
    data = b'{"text": "some text"}\n' * 50
    found, out = rewritten(tmp_path, f"a.jsonl.{packer}", PACKERS[packer](data), [Edit(1, True)])
    assert unpack(CODECS[packer], out) == data[22:]
    assert CODECS[packer] in found.not_kept[0]


def test_zeros_between_members_and_frames_without_data_are_no_hindrance(tmp_path):
    empty = b"\x50\x2a\x4d\x18\x02\0\0\0ab"
    first, second = (PACKERS["zst"](b'{"text": "%s"}\n' % text) for text in (b"a", b"b"))
    data = empty + first + b"\0" * 3000 + second + b"\0" * 7
    for gone, left in (((0,), ["b"]), ((1,), ["a"]), ((0, 1), []), ((), ["a", "b"])):
        edits = [Edit(row, True) for row in gone]
        _, out = rewritten(tmp_path, "a.jsonl.zst", data, edits)
        assert texts_in(tmp_path, "a.jsonl.zst", out) == left


def test_bytes_that_are_no_utf8_stay_in_what_is_not_edited(tmp_path):
    data = b'{"id": "\xff", "text": "ab\xe2\x82cd\xff"}\n'
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((3, 5),))], replacement="_")
    assert out == '{"id": "|", "text": "ab\ufffd_\ufffd"}\n'.encode().replace(b"|", b"\xff")


def test_numbers_nothing_and_names_keep_their_values_in_an_edited_line(tmp_path):
    data = b'{"n": 123456789012345678901234567890, "x": 1.50e+3, "e": NaN, "o": {"\\u0061": []}, "text": "leak"}\n'
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((0, 2),))])
    assert repr(json.loads(out)) == repr({**json.loads(data), "text": "ak"})


def test_the_column_that_was_read_is_the_one_that_is_edited(tmp_path):
    lines = [
        {"text": "leak", "question": "leak", "answer": "x"},
        {"text": " ", "question": "the leak", "answer": "its leak"},
        {"question": ["leak", "b"], "answer": 3, "choices": {"text": ["c", "leak"], "n": [1]}},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    edits = [
        Edit(0, False, ((0, 4),)),
        Edit(1, False, ((4, 12),)),
        Edit(2, False, ((0, 4), (9, 13))),
    ]
    _, out = rewritten(tmp_path, "a.jsonl", data, edits, replacement="_")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"text": "_", "question": "leak", "answer": "x"},
        {"text": " ", "question": "the _", "answer": "_ leak"},
        {"question": ["_", "b"], "answer": 3, "choices": {"text": ["c", "_"], "n": [1]}},
    ]


def test_text_in_json_in_text_is_refused(tmp_path):
    data = json.dumps({"meta": '{"text": "leak"}', "x": 1}).encode() + b"\n"
    with pytest.raises(ShardError, match=r"a\.jsonl"):
        rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((2, 4),))], text="meta.text")
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, True, ((2, 4),))], text="meta.text")
    assert out == b""


def test_edits_that_do_not_fit_are_errors(tmp_path):
    data = b'{"text": "ab"}\n'
    with pytest.raises(ShardError, match="outside a text"):
        rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((1, 3),))])
    with pytest.raises(ShardError, match="row 1"):
        rewritten(tmp_path, "a.jsonl", data, [Edit(1, True)])


def test_a_shard_that_changed_or_a_target_that_is_there_is_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ab"}\n')
    (shard,) = find_shards([tmp_path / "a.jsonl"])
    sources = select_columns(shard).sources
    (tmp_path / "there").touch()
    with pytest.raises(OutputError):
        shard.kind.rewrite(shard.path, tmp_path / "there", Rewrite([Edit(0, True)], sources))
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "abc"}\n')
    with pytest.raises(ShardError, match="after it was listed"):
        shard.kind.rewrite(shard.path, tmp_path / "new", Rewrite([Edit(0, True)], sources, None))


# --------------------------------------------------------------------------- tables and archives


CELL = st.text(st.sampled_from('ab,";\t\n\ré '), max_size=6)


@given(data=st.data())
def test_in_a_table_only_cells_with_an_edit_change(tmp_path_factory, data):
    name, delimiter = data.draw(st.sampled_from([("a.csv", ","), ("a.tsv", "\t")]))
    n_columns = data.draw(st.integers(1, 2))
    rows = data.draw(st.lists(st.lists(CELL, min_size=n_columns, max_size=n_columns), max_size=5))
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = data.draw(st.sampled_from(["\r\n", "\n\n"]))

    def written(row):
        if (
            quoting == csv.QUOTE_MINIMAL
            and len(row) > 1
            and not set("".join(row)) & set('",\t\r\n')
        ):
            return delimiter.join(row)
        return delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row)

    header = delimiter.join(["text", "other"][:n_columns]) + end
    lines = [written(row) + end for row in rows]
    replacement = data.draw(st.sampled_from([None, "_", '",\t']))
    edits, left = [], []
    for number, row in enumerate(rows):
        chosen = data.draw(spans(len(row[0]))) if row[0].strip() else ()
        drop = data.draw(st.booleans())
        edits.append(Edit(number, drop, chosen))
        if not drop:
            left.append([edited(row[0], chosen, replacement), *row[1:]])
    folder = tmp_path_factory.mktemp("table")
    whole = (header + "".join(lines)).encode()
    found, out = rewritten(folder, name, whole, edits, replacement=replacement, text="text")
    assert found == Rewritten(len(rows), len(left))
    again = csv.reader(io.StringIO(out.decode(), newline=""), delimiter=delimiter, strict=True)
    names = ["text", "other"][:n_columns]
    assert [cells for cells in again if cells] == [names, *left]
    if not any(edit.drop or edit.spans for edit in edits):
        assert out == whole


@pytest.mark.parametrize("packed", [False, True])
def test_web_archives_stay_archives(tmp_path, packed):
    texts = ["first page", "a second with a leak in it, é", "third"]

    def page(text, **headers):
        raw = hashlib.sha1(text.encode()).digest()  # noqa: S324 - what such files state
        digest = base64.b32encode(raw).decode()
        return wet_record(
            "conversion", text.encode(), WARC_Block_Digest=f"sha1:{digest}", **headers
        )

    info = wet_record("warcinfo", b"software: none\r\n", Content_Type="application/warc-fields")
    masked = texts[1].replace("leak", "[gone]").encode()
    new = [info, page(texts[0]), wet_record("conversion", masked)]
    old = [info, *map(page, texts)]
    if packed:
        old = [gzip.compress(member, mtime=0) for member in old]
    name = "a.warc.wet.gz" if packed else "a.warc.wet"
    edits = [Edit(1, False, ((16, 20),)), Edit(2, True)]
    found, out = rewritten(tmp_path, name, b"".join(old), edits, replacement="[gone]")
    assert (found.rows_before, found.rows_after) == (3, 2)
    assert (gzip.decompress(out) if packed else out) == b"".join(new)
    assert texts_in(tmp_path, name, out) == ["first page", "a second with a [gone] in it, é"]
    if packed:
        # Readers of archives need a member for each record.
        first, rest = zlib.decompressobj(31), []
        rest.append(first.decompress(out))
        assert (rest[0], bool(first.unused_data)) == (new[0], True)


# ------------------------------------------------------------------------------ any conversation

WORDS = st.text(st.sampled_from('ab é漢"\\\n'), max_size=5)
PART = st.fixed_dictionaries(
    {"type": st.just("text")}, optional={"text": WORDS, "thinking": WORDS, "content": WORDS}
)
CALL = st.fixed_dictionaries(
    {"name": WORDS},
    optional={"arguments": WORDS | st.dictionaries(WORDS, WORDS | st.integers(), max_size=2)},
)
SPOKEN = st.none() | WORDS | st.lists(WORDS | PART, max_size=3) | PART
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "tool"]), "content": SPOKEN},
    optional={
        "reasoning": WORDS,
        "tool_calls": st.lists(CALL | st.builds(lambda c: {"function": c}, CALL), max_size=2),
        "n": st.integers(),
    },
)
CHAT = st.lists(MESSAGE, min_size=1, max_size=3)
RECORD = st.fixed_dictionaries(
    {"messages": CHAT}, optional={"text": WORDS, "question": WORDS, "answer": WORDS | CHAT}
) | st.fixed_dictionaries(
    {"question": WORDS, "answer": WORDS | st.lists(WORDS, max_size=3)},
    optional={"options": st.lists(WORDS), "choices": st.just({"text": ["c", "d"], "label": [1]})},
)


@given(data=st.data())
def test_in_any_record_a_stretch_is_replaced_or_refused(tmp_path_factory, data):
    record = data.draw(RECORD)
    line = json.dumps(record, ensure_ascii=data.draw(st.booleans())).encode() + b"\n"
    folder = tmp_path_factory.mktemp("any")
    (read,) = texts_in(folder, "a.jsonl", line)
    stretches = [match.span() for match in re.finditer("[^\n]+", read)]
    chosen = tuple((begin, data.draw(st.integers(begin + 1, end))) for begin, end in stretches)
    try:
        _, out = rewritten(folder, "a.jsonl", line, [Edit(0, False, chosen)], replacement="#")
    except ShardError:
        # Of a message that says more than its content, or that in parts.
        answer = record.get("answer")
        said = [*record.get("messages", ()), *(answer if isinstance(answer, list) else ())]
        assert any(
            isinstance(one, dict) and isinstance(one["content"], list) for one in said
        ) or any(
            word in line.decode() for word in ("type", "reasoning", "tool_calls", "[[", "choices")
        )
        return
    assert texts_in(folder, "b.jsonl", out) == [edited(read, chosen, "#")]
