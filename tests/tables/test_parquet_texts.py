"""Rows go from long texts, and texts change, page by page: as if the library had done it."""

import random
from contextlib import contextmanager
from importlib.util import find_spec
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import ShardError
from contam.tables import parquet_pages as pages
from contam.tables import parquet_texts, rewrite_parquet
from contam.tables.columns import ColumnRef, TextColumns
from contam.tables.compare_parquet import count_same
from contam.tables.edits import Edit, edited
from contam.tables.parquet_splice import CHUNK_META, META_STATISTICS, ParquetBytes, chunks_of
from contam.tables.rewrite_parquet import rewrite

TEXT = TextColumns(ColumnRef(("text",), "text"))
MASK = "[...]"
LEAST, GREATEST = 6, 5


def long_texts(n_rows, seed=7):
    """Texts of 600 to 1,300 characters, every tenth of which is an earlier one, some nothing."""
    draw = random.Random(seed)
    texts = []
    for row in range(n_rows):
        if row % 17 == 16:
            texts.append(None)
        elif row % 10 == 9:
            texts.append(draw.choice(texts))
        else:
            text = " ".join(f"é{draw.getrandbits(40):x}" for _ in range(draw.randrange(60, 120)))
            texts.append(text[: draw.randrange(600, 1300)])
    return texts


def written(path, texts, **how):
    kind = how.pop("kind", pa.string())
    n_rows = len(texts)
    fields = [pa.field("id", pa.int64()), pa.field("text", kind, nullable=None in texts)]
    columns = [pa.array(range(n_rows)), pa.array(texts, kind)]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    # The page size is looked at after so many rows.
    pq.write_table(table, path, **{"write_batch_size": 16, "data_page_size": 9000, **how})
    return path


def again(path, edits, replacement=None):
    target = path.with_name("out.parquet")
    target.unlink(missing_ok=True)
    rewrite(str(path), target, edits, TEXT, replacement=replacement)
    return target


def expected(texts, edits, replacement):
    by_row = {edit.row: edit for edit in edits}
    left = []
    for row, text in enumerate(texts):
        edit = by_row.get(row, Edit(row, drop=False))
        if not edit.drop:
            left.append((row, edited(text, edit.spans, replacement) if edit.spans else text))
    return left


def rows_of(path):
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read()
    texts = table["text"].cast(pa.binary()).to_pylist()
    texts = [text if text is None else text.decode("utf-8", "surrogateescape") for text in texts]
    return list(zip(table["id"].to_pylist(), texts, strict=True))


def pages_of_texts(path):
    """The pages of texts of each row group."""
    with path.open("rb") as file:
        source = ParquetBytes.of(file)
        return [list(pages.pages_of(source.whole(chunks_of(one)[1]))) for one in source.groups]


def check_statistics(path, left):
    """What is said of pages and row groups is so: bounds, nulls, and bytes of texts."""
    with path.open("rb") as file:
        source = ParquetBytes.of(file)
        begin = 0
        for group, every in zip(source.groups, pages_of_texts(path), strict=True):
            meta = chunks_of(group)[1][CHUNK_META].value
            end = begin + meta[5].value
            check_said(meta.get(META_STATISTICS), left[begin:end])
            sizes = meta[16].value
            assert sizes[1].value == sum(len(text) for text in left[begin:end] if text is not None)
            if sizes[3].value.entries:
                n_nulls = left[begin:end].count(None)
                assert sizes[3].value.entries == [n_nulls, end - begin - n_nulls]
            for page in every:
                if page.kind != pages.DICTIONARY_PAGE:
                    said = page.more.get(8 if page.kind == 3 else 5)
                    check_said(said, left[begin : begin + page.n_values])
                    begin += page.n_values
            assert begin == end
    assert begin == len(left)


def check_said(said, texts):
    if said is None or not said.value:
        return
    there = [text for text in texts if text is not None]
    assert said.value[3].value == len(texts) - len(there)
    for key, pick in ((LEAST, min), (GREATEST, max)):
        if key in said.value:
            assert said.value[key].value == pick(there)


@contextmanager
def refusals():
    """What is left to the library."""
    found = []

    def noted(*given, **named):
        try:
            return parquet_texts.with_change(*given, **named)
        except Exception as error:
            found.append(str(error))
            raise

    with mock.patch.object(rewrite_parquet, "with_change", noted):
        yield found


@st.composite
def some_shard(draw):
    nullable = draw(st.booleans())
    few = st.sampled_from(["", "a b", "é😀 word", "x" * 5000])
    text = few | st.text("aé😀 \n\0", max_size=12)
    texts = draw(st.lists(text | st.none() if nullable else text, min_size=1, max_size=80))
    edits = []
    for row, one in enumerate(texts):
        kind = draw(st.sampled_from(["keep", "keep", "keep", "drop", "edit"]))
        marks = sorted(draw(st.sets(st.integers(0, min(len(one or ""), 20)), max_size=4)))
        spans = tuple(zip(marks[::2], marks[1::2], strict=False))
        if kind == "drop" or (kind == "edit" and spans and one.strip("\n ")):
            edits.append(Edit(row, kind == "drop", spans))
    how = {
        "row_group_size": draw(st.integers(1, 60)),
        "write_batch_size": draw(st.integers(1, 20)),
        "data_page_size": draw(st.integers(1, 300)),
        "compression": draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"])),
        "use_dictionary": draw(st.booleans()),
        "dictionary_pagesize_limit": draw(st.sampled_from([1, 40, 1 << 20])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "write_page_checksum": draw(st.booleans()),
        "write_statistics": draw(st.booleans()),
        "version": draw(st.sampled_from(["1.0", "2.6"])),
        "kind": draw(st.sampled_from([pa.string(), pa.large_string(), pa.binary()])),
    }
    return texts, edits, how, draw(st.sampled_from([None, MASK, ""]))


@given(some_shard())
def test_it_is_as_if_the_library_had_done_it(tmp_path_factory, drawn):
    texts, edits, how, replacement = drawn
    path = written(tmp_path_factory.mktemp("any") / "in.parquet", texts, **how)
    left = expected(texts, edits, replacement)
    with mock.patch.object(parquet_texts, "_LONG", 1 << 62):
        by_library = again(path, edits, replacement).rename(path.with_name("library.parquet"))
    with mock.patch.object(parquet_texts, "_LONG", 0), refusals() as refused:
        target = again(path, edits, replacement)
    assert set(refused) <= {"no text is left in the dictionary"}
    assert rows_of(target) == rows_of(by_library) == left
    assert pq.read_schema(target).equals(pq.read_schema(path), check_metadata=True)
    check_statistics(target, [None if text is None else text.encode() for _, text in left])
    same = count_same(str(path), str(target), edits, TEXT, replacement=replacement)
    assert same == len(texts) - len(edits)


WAYS = {
    "plain": {"use_dictionary": False},
    "dictionary": {"compression": "zstd", "data_page_version": "2.0"},
    "dictionary at first": {"dictionary_pagesize_limit": 20_000, "write_page_checksum": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_pages_in_which_nothing_changes_keep_their_bytes(tmp_path, way):
    texts = long_texts(300)
    path = written(tmp_path / "in.parquet", texts, row_group_size=200, **WAYS[way])
    edits = [Edit(52, drop=False, spans=((3, 9),)), Edit(199, drop=True)]
    with mock.patch.object(rewrite_parquet._Rewriter, "_edited", side_effect=AssertionError):
        target = again(path, edits, MASK)
    assert rows_of(target) == expected(texts, edits, MASK)
    old, new = (pages_of_texts(one) for one in (path, target))
    assert len(old[0]) == len(new[0]) > 1
    same = [(a.head, a.body) == (b.head, b.body) for a, b in zip(old[0], new[0], strict=True)]
    plain = [page.encoding == pages.PLAIN for page in old[0]]
    n_changed = [is_same for is_same, is_plain in zip(same, plain, strict=True) if is_plain]
    # One page of the masked row, one of the dropped one; or the dictionary and what refers to it.
    assert n_changed.count(False) == {"plain": 2, "dictionary": 1, "dictionary at first": 2}[way]


def test_pages_that_are_padded_are_left_to_the_library(tmp_path):
    path = written(
        tmp_path / "in.parquet", long_texts(60), use_dictionary=False, compression="none"
    )
    made = pages.data_page

    def padded(*given, **how):
        page = made(*given, **how)
        body = bytes(page.body) + bytes(8)
        return page.remade(body, len(body), page.more)

    with mock.patch.object(pages, "data_page", padded):
        path = again(path, [Edit(5, drop=True)]).rename(tmp_path / "padded.parquet")
    rows = rows_of(path)
    target = again(path, [Edit(3, drop=False, spans=((2, 9),)), Edit(6, drop=True)], MASK)
    text = rows[3][1]
    changed = (rows[3][0], text[:2] + MASK + text[9:])
    assert rows_of(target) == [*rows[:3], changed, *rows[4:6], *rows[7:]]


def test_a_dictionary_keeps_no_text_that_no_row_has(tmp_path):
    secret = "nobody knows " * 60
    texts = ["a" * 700, secret, "b" * 700, None, "a" * 700, secret, "c" * 700] * 9
    path = written(tmp_path / "in.parquet", texts, compression="none")
    gone = [row for row, text in enumerate(texts) if text == secret]
    edits = [Edit(row, row % 2 == 0, ((0, len(secret)),)) for row in gone]
    target = again(path, edits, MASK)
    assert b"nobody knows" in path.read_bytes()
    assert b"nobody knows" not in target.read_bytes()
    dictionary = next(iter(pages_of_texts(target)[0]))
    assert (dictionary.kind, dictionary.n_values) == (pages.DICTIONARY_PAGE, 4)
    assert rows_of(target) == expected(texts, edits, MASK)


def test_texts_that_are_not_read_as_they_stand(tmp_path):
    raw = [b"caf\xe9 " + b"words " * 200, "long texts".encode("utf-16") * 90, b"plain " * 200]
    path = written(tmp_path / "in.parquet", raw, kind=pa.binary())
    edits = [Edit(0, drop=False, spans=((3, 5),)), Edit(1, drop=False, spans=((1, 4),))]
    made = {}
    for name, least in (("pages", 0), ("library", 1 << 62)):
        with mock.patch.object(parquet_texts, "_LONG", least):
            made[name] = pq.read_table(again(path, edits, MASK))["text"].to_pylist()
    assert made["pages"] == made["library"] != raw
    assert made["pages"][0].startswith(b"caf[...]words")


@pytest.mark.parametrize("way", WAYS)
def test_a_page_that_is_damaged_is_an_error(tmp_path, way):
    path = written(tmp_path / "in.parquet", long_texts(99), **{**WAYS[way], "compression": "none"})
    with path.open("rb") as file:
        source = ParquetBytes.of(file)
        whole = source.whole(chunks_of(source.groups[0])[1])
    begin = path.read_bytes().index(whole)
    first = next(pages.pages_of(whole))
    raw = bytearray(path.read_bytes())
    # The highest byte of the length of a text.
    place = begin + len(first.head) + bytes(first.body).index(b"\x00\x00\xc3\xa9") + 1
    raw[place] = 255
    path.write_bytes(raw)
    with pytest.raises(ShardError, match=r"in\.parquet"):
        again(path, [Edit(0, drop=True)])


def numbers_one_by_one(raw, width, n_numbers):
    """Runs of numbers, read bit by bit."""
    found, at = [], 0
    while len(found) < n_numbers:
        head = shift = 0
        while True:
            head |= (raw[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if raw[at - 1] < 128:
                break
        n_bytes = (head >> 1) * width if head & 1 else (width + 7) // 8
        bits = int.from_bytes(raw[at : at + n_bytes], "little")
        at += n_bytes
        if head & 1:
            found += [bits >> (n * width) & ((1 << width) - 1) for n in range(8 * (head >> 1))]
        else:
            found += [bits] * (head >> 1)
    return found[:n_numbers]


@given(st.integers(1, 20), st.lists(st.integers(0, 1 << 20), max_size=70), st.booleans())
def test_numbers_are_written_as_they_are_read(width, numbers, is_equal):
    numbers = [
        n & ((1 << width) - 1) for n in (numbers[:1] * len(numbers) if is_equal else numbers)
    ]
    raw = pages.written_numbers(np.array(numbers, np.int64), width)
    assert numbers_one_by_one(raw, width, len(numbers)) == numbers
    # Two runs, one behind the other, and bytes that follow.
    n_whole = len(numbers) // 8 * 8
    runs = (numbers[:n_whole], numbers[n_whole:])
    parts = [pages.written_numbers(np.array(run, np.int64), width) for run in runs]
    read = pages.read_numbers(b"".join([*parts, b"\0"]), width, len(numbers))
    assert read.tolist() == numbers
    if raw:
        with pytest.raises(ValueError, match="too early"):
            pages.read_numbers(raw[:-1], width, len(numbers))


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets", "duckdb"])
def test_other_libraries_read_it(tmp_path, library):
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    texts = long_texts(200)
    for way, how in WAYS.items():
        path = written(tmp_path / "in.parquet", texts, **how)
        edits = [Edit(5, drop=False, spans=((3, 9),)), *(Edit(n, drop=True) for n in (16, 60, 99))]
        target = again(path, edits, MASK)
        left = expected(texts, edits, MASK)
        if library == "duckdb":
            import duckdb

            found = duckdb.read_parquet(str(target)).fetchall()
        elif library == "polars":
            import polars as pl

            found = pl.read_parquet(target).rows()
        elif library == "pandas":
            import pandas as pd

            frame = pd.read_parquet(target, engine="pyarrow").astype(object)
            frame = frame.where(frame.notna(), None)
            found = list(frame.itertuples(index=False, name=None))
        else:
            from datasets import Dataset

            rows = Dataset.from_parquet(str(target), cache_dir=str(tmp_path / way))
            found = list(zip(rows["id"][:], rows["text"][:], strict=True))
        assert found == left
