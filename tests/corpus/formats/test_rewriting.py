"""Records that stay keep their bytes, and in edited ones only the text changes."""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import re

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.columns import select_columns
from contam.corpus.documents import read_texts
from contam.errors import OutputError, ShardError
from contam.files.compression import unpack
from contam.tables.edits import Edit, Rewritten, edited
from contam.tables.json_text import clean
from tests.corpus_files import find_shards, wet_record

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
    found = shard.kind.rewrite(shard.path, target, edits, sources, replacement=replacement)
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


# ------------------------------------------------------------------------------ inside a JSON line


@st.composite
def literals(draw):
    """A JSON string as somebody may write it, with or without escapes."""
    written = []
    for char in draw(st.text(st.sampled_from('ab \n\té漢😀"\\/\u2028'), max_size=8)):
        spelt = [json.dumps(char)[1:-1], json.dumps(char, ensure_ascii=False)[1:-1]]
        if char == "/":
            spelt.append("\\/")
        if ord(char) < 0x10000:
            spelt += [f"\\u{ord(char):04x}", f"\\u{ord(char):04X}"]
        written.append(draw(st.sampled_from(spelt)))
        if draw(st.integers(0, 9)) == 0:
            written.append("\\ud83d")
    return "".join(written)


@st.composite
def spans(draw, length):
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=6)))
    return tuple(zip(cuts[::2], cuts[1::2], strict=False))


BLANKS = st.text(st.sampled_from(" \t"), max_size=2)
OTHER = st.sampled_from(
    ['"n": 1.50e+3', '"big": 123456789012345678901234567890', '"e": [ ]', '"o" :{ }',
     '"same": 1, "same": [2, {"text": "no \\" text"}]', '"id":"\\u0069\\"d"', '"x": [[],{},[{}]]']
)  # fmt: skip


SHAPES = {
    "text": ('"text":', "", None),
    "nested": ('"meta":{"a":[1],"text":', ',"b":{}}', "meta.text"),
    "list": ('"text":[', "]", None),
    "chat": ('"messages":[{"role":"user","content":', "}]", None),
}


def by_leaf(texts, chosen):
    """Spans of texts that line feeds join, as spans of each of them."""
    found, at = [], 0
    for text in texts:
        end = at + len(text)
        inside = [(max(b, at) - at, min(e, end) - at) for b, e in chosen]
        found.append([span for span in inside if span[0] < span[1]])
        at = end + 1
    return found


@given(data=st.data())
def test_in_a_json_line_only_the_text_changes(tmp_path_factory, data):
    shape = data.draw(st.sampled_from(list(SHAPES)))
    opening, closing, column = SHAPES[shape]
    most = 1 if shape in ("text", "nested") else 4
    parts = data.draw(st.lists(literals(), min_size=1, max_size=most))
    blank, first, last = data.draw(BLANKS), data.draw(OTHER), data.draw(OTHER)
    head = f"{blank}{{{blank}{first},{blank}{opening}{blank}".encode()
    tail = f"{blank}{closing},{last}{blank}}}{blank}".encode()
    between = '},{"content" : ' if shape == "chat" else " ,"
    inner = between.join(f'"{part}"' for part in parts)

    values = [json.loads(f'"{part}"') for part in parts]
    reads = [clean(value)[0].decode() for value in values]
    drawn = data.draw(spans(len("\n".join(reads))))
    # A line feed between two turns is in none of them.
    chosen = tuple(span for span in drawn if any(by_leaf(reads, [span])))
    replacement = data.draw(st.sampled_from([None, "[x]", 'é"\\\n😀']))
    before = f'{{{SHAPES[shape][0]}"x"{SHAPES[shape][1]}}}\n\n'.encode()
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b""]))
    whole = before + head + inner.encode() + tail + end

    edit = Edit(2, False, chosen)
    folder = tmp_path_factory.mktemp("json")
    found, out = rewritten(folder, "a.jsonl", whole, [edit], replacement=replacement, text=column)
    assert found == Rewritten(3, 3)
    assert out.startswith(before + head)
    assert out.endswith(tail + end)
    new = out[len(before + head) : len(out) - len(tail + end)].decode()
    expected = [
        edited(value, cut, replacement)
        for value, cut in zip(values, by_leaf(reads, chosen), strict=True)
    ]
    assert json.loads(f"[{new.replace(between, ' ,') if shape == 'chat' else new}]") == expected
    # What is not in a text is the same, and so is what is in none of the spans.
    assert new.count(between) == inner.count(between)
    if not chosen:
        assert out == whole


# ----------------------------------------------------------------------------- lines and members


LINES = st.lists(
    st.sampled_from(
        [b'{"text": "one"}', b'{"text": "two words"}', b"", b"  ", b'{"text":"\\u00e9"}\r']
    ),
    max_size=8,
)


@given(data=st.data())
def test_lines_that_stay_and_members_without_an_edit_keep_their_bytes(tmp_path_factory, data):
    lines = [line + b"\n" for line in data.draw(LINES)]
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    if lines and data.draw(st.booleans()) and lines[-1].strip():
        lines[-1] = lines[-1].rstrip(b"\n")
    whole = mark + b"".join(lines)
    edits, left = [], []
    for row, line in enumerate(lines):
        what = data.draw(st.sampled_from(["stay", "stay", "drop", "cut"]))
        if what == "drop":
            edits.append(Edit(row, True, ((0, 1),)))
            continue
        if what == "cut" and line.strip():
            edits.append(Edit(row, False, ((0, 1),)))
            cut = line.replace(b'"one', b'"ne').replace(b'"two', b'"wo').replace(b"\\u00e9", b"")
        left.append(cut if what == "cut" and line.strip() else line)
    expected = (mark if left or not lines else b"") + b"".join(left)
    packer = data.draw(st.sampled_from(["", *PACKERS]))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=4)))
    bounds = list(zip([0, *cuts], [*cuts, len(whole)], strict=True))
    members = [PACKERS[packer](whole[b:e]) for b, e in bounds] if packer else [whole]
    name = f"a.jsonl.{packer}" if packer else "a.jsonl"
    found, out = rewritten(
        tmp_path_factory.mktemp("lines"), name, b"".join(members), edits, text=None
    )
    n_dropped = sum(edit.drop for edit in edits)
    n_rows = len(lines) or (1 if mark else 0)
    assert (found.rows_before, found.rows_after) == (n_rows, n_rows - n_dropped)
    if not packer:
        assert out == expected
        return
    assert unpack(CODECS[packer], out) == expected
    begins = [sum(map(len, lines[:row])) + len(mark) for row in range(len(lines))]
    places = [(begins[edit.row], begins[edit.row] + len(lines[edit.row])) for edit in edits]
    for (begin, end), member in zip(bounds, members, strict=True):
        if not any(b < end and e > begin for b, e in places) and len(left) == len(lines):
            assert member in out
    if not edits:
        assert out == b"".join(members)


def test_a_packed_file_keeps_what_its_codec_can_say(tmp_path):
    data = b'{"text": "some text"}\n' * 50
    edits = [Edit(1, True)]
    sized = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(data)
    found, out = rewritten(tmp_path, "a.jsonl.zst", sized, edits)
    assert found.not_kept == ("the zstd level",)
    shown = zstandard.get_frame_parameters(out)
    assert shown.has_checksum
    assert shown.content_size == len(data) - 22
    table = b"\x5e\x2a\x4d\x18\x04\0\0\0skip"
    found, out = rewritten(tmp_path, "a.jsonl.zst", sized + table, edits)
    assert found.not_kept == ("the zstd level", "zstd frames without data, such as seek tables")
    assert table not in out

    found, out = rewritten(tmp_path, "a.jsonl.bz2", bz2.compress(data, 3), edits)
    assert found.not_kept == ()
    assert out.startswith(b"BZh3")
    found, out = rewritten(
        tmp_path, "a.jsonl.xz", lzma.compress(data, check=lzma.CHECK_CRC32), edits
    )
    assert found.not_kept == ("the xz preset and blocks",)
    assert out[7] == lzma.CHECK_CRC32
    found, out = rewritten(tmp_path, "a.jsonl.gz", gzip.compress(data, mtime=0), edits)
    assert found.not_kept == ("the exact gzip level",)
    named = io.BytesIO()
    with gzip.GzipFile("name", "wb", fileobj=named, mtime=9) as file:
        file.write(data)
    found, out = rewritten(tmp_path, "a.jsonl.gz", named.getvalue(), edits)
    assert found.not_kept == (
        "names, times and extra fields in gzip headers",
        "the exact gzip level",
    )


@pytest.mark.parametrize("packer", ["gz", "zst"])
def test_zeros_between_members_and_frames_without_data_are_no_hindrance(tmp_path, packer):
    empty = b"\x50\x2a\x4d\x18\x02\0\0\0ab" if packer == "zst" else PACKERS[packer](b"")
    first, second = (PACKERS[packer](b'{"text": "%s"}\n' % text) for text in (b"a", b"b"))
    data = empty + first + b"\0" * 3000 + second + b"\0" * 7
    for gone, left in (((0,), [b"b"]), ((1,), [b"a"]), ((0, 1), []), ((), [b"a", b"b"])):
        edits = [Edit(row, True) for row in gone]
        found, out = rewritten(tmp_path, f"a.jsonl.{packer}", data, edits)
        assert found.rows_after == len(left)
        assert texts_in(tmp_path, f"a.jsonl.{packer}", out) == [text.decode() for text in left]
        assert all(
            member in out for member, text in ((first, b"a"), (second, b"b")) if text in left
        )


@pytest.mark.parametrize("packer", ["", *PACKERS])
def test_a_file_without_rows_is_still_a_shard(tmp_path, packer):
    name = f"a.jsonl.{packer}" if packer else "a.jsonl"
    data = b'\xef\xbb\xbf{"text": "a"}\n{"text": "b"}'
    data = PACKERS[packer](data) if packer else data
    found, out = rewritten(tmp_path, name, data, [Edit(0, True), Edit(1, True)])
    assert (found.rows_before, found.rows_after) == (2, 0)
    assert texts_in(tmp_path, name, out) == []


def test_a_line_longer_than_a_piece_is_edited_in_all_members(tmp_path):
    long = "x" * (3 << 20) + "leak" + "y" * (2 << 20)
    data = b'{"text": "a"}\n' + json.dumps({"text": long}).encode() + b'\n{"text": "b"}\n'
    members = [gzip.compress(data[at : at + (1 << 20)]) for at in range(0, len(data), 1 << 20)]
    edit = Edit(1, False, ((3 << 20, (3 << 20) + 4),))
    found, out = rewritten(tmp_path, "a.jsonl.gz", b"".join(members), [edit], replacement="-")
    assert found.rows_after == 3
    assert gzip.decompress(out) == data.replace(b"leak", b"-")


def test_bytes_that_are_no_utf8_stay_in_a_line(tmp_path):
    data = b'{"id": "\xff", "text": "ab\xe2\x82cd\xff"}\n'
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((3, 5),))], replacement="_")
    assert out == b'{"id": "\xff", "text": "ab\xe2\x82_\xff"}\n'
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((2, 3),))])
    assert out == b'{"id": "\xff", "text": "abcd\xff"}\n'


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


def test_text_in_json_in_text_is_edited(tmp_path):
    inner = '{"text": "a \\"leak\\" \\u00e9", "n":1.0}'
    data = json.dumps({"meta": inner, "x": 1}).encode() + b"\n"
    edit = Edit(0, False, ((2, 8),))
    _, out = rewritten(tmp_path, "a.jsonl", data, [edit], replacement='"', text="meta.text")
    assert out == json.dumps({"meta": inner.replace('\\"leak\\"', '\\"'), "x": 1}).encode() + b"\n"


def test_deep_lines_and_long_numbers_are_no_hindrance(tmp_path):
    deep = "[" * 400 + "]" * 400
    data = f'{{"a": {deep}, "n": {"9" * 400}, "text": "leak"}}\n'.encode()
    _, out = rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((0, 4),))])
    assert out == data.replace(b"leak", b"")


def test_edits_that_do_not_fit_are_errors(tmp_path):
    data = b'{"text": "ab"}\n'
    with pytest.raises(ShardError, match="no code points 1 to 3"):
        rewritten(tmp_path, "a.jsonl", data, [Edit(0, False, ((1, 3),))])
    with pytest.raises(ShardError, match="row 1 is not there"):
        rewritten(tmp_path, "a.jsonl", data, [Edit(1, True)])


def test_a_shard_that_changed_or_a_target_that_is_there_is_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ab"}\n')
    (shard,) = find_shards([tmp_path / "a.jsonl"])
    sources = select_columns(shard).sources
    (tmp_path / "there").touch()
    with pytest.raises(OutputError):
        shard.kind.rewrite(
            shard.path, tmp_path / "there", [Edit(0, True)], sources, replacement=None
        )
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "abc"}\n')
    with pytest.raises(ShardError, match="after it was listed"):
        shard.kind.rewrite(shard.path, tmp_path / "new", [Edit(0, True)], sources, replacement=None)


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
    new = [info, page(texts[0]), page(texts[1].replace("leak", "[gone]"))]
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
        assert out.startswith(old[0] + old[1])


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
def test_in_any_record_a_stretch_of_what_was_read_is_replaced(tmp_path_factory, data):
    record = data.draw(RECORD)
    line = json.dumps(record, ensure_ascii=data.draw(st.booleans())).encode() + b"\n"
    folder = tmp_path_factory.mktemp("any")
    (read,) = texts_in(folder, "a.jsonl", line)
    stretches = [match.span() for match in re.finditer("[^\n]+", read)]
    chosen = tuple((begin, data.draw(st.integers(begin + 1, end))) for begin, end in stretches)
    _, out = rewritten(folder, "a.jsonl", line, [Edit(0, False, chosen)], replacement="#")
    assert texts_in(folder, "b.jsonl", out) == [edited(read, chosen, "#")]
    _, again = rewritten(folder, "a.jsonl", line, [Edit(0, False)], replacement="#")
    assert again == line
