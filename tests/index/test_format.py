"""indexes/FORMAT.md says what the code does, and its example is what the code computes."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.index import segment
from contam.index.array_files import header
from contam.index.writing.write import document_seed
from contam.kernels.gram_table import hash_grams
from contam.kernels.postings import hash_documents
from contam.tables.documents import DOCUMENTS
from contam.text.token_hash import token_hash
from contam.text.tokenizer import tokenize_bytes
from tests.index.builds import build, recipe_of, some_texts
from tests.index.tiny import BASE, SPREAD
from tests.kernels.support import twin_letters, twin_tokens, words_of
from tests.property.worlds import write_shard
from tests.twins import letters as torn_twin
from tests.twins import segment as twin

TEXT = "the river takes the long way round to the sea"


@pytest.fixture(scope="module")
def page(repository):
    return (repository / "indexes" / "FORMAT.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example(page):
    """The lines of the example: what stands behind each name."""
    block = page[page.index("## Example") :].split("```")[1]
    found: dict[str, str] = {}
    name = ""
    for line in block.splitlines()[1:]:
        name = line[:15].strip() or name
        found[name] = f"{found.get(name, '')} {line[15:].strip()}".strip()
    return found


def table(page, heading):
    """Rows of the first table below a text, without its head."""
    lines = page[page.index(heading) :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


def test_the_page_names_every_array_with_its_type(page):
    rows = table(page, "D is the number of documents")
    sizes = {"65537": (), "N, 5": (5,), "D + 1": (), "D": (), "C": (), "T": ()}
    found = {name: (code, sizes[shape]) for name, code, shape, _ in rows}
    assert found == segment._TYPES


def test_the_page_names_every_column_of_the_documents(page):
    rows = table(page, "**documents.parquet**")
    found = [(name, kind) for name, kind, _ in rows]
    assert found == [
        (field.name, f"{field.type}, nullable" if field.nullable else str(field.type))
        for field in DOCUMENTS
    ]


def test_the_page_spells_the_header_as_it_is(page):
    head = header(np.dtype("<u2"), (2, 5))
    rows = dict(table(page, "### Array files"))
    assert bytes.fromhex(rows["0-9"]) == head[:10]
    assert re.findall(r"\{.*?\}", rows["10-126"])[0].encode() == head[10:127].rstrip()
    assert (len(head), head[127:]) == (128, bytes.fromhex(rows["127"].strip("`")))


def test_the_example_is_what_comes_of_the_text(example):
    hashes = tokenize_bytes(TEXT.encode()).hashes
    assert [f"{one:016x}" for one in hashes.tolist()] == example["token hashes"].split()
    grams = np.empty(len(hashes), np.uint64)
    count = hash_grams(hashes, 0, len(hashes), 5, grams)
    tokens = hashes.tolist()
    for number, at in enumerate(range(0, count, 4)):
        gram = int(grams[at])
        assert example[f"entry {number}"].split() == [
            *("gram", f"{gram:016x}", "key", f"{gram >> 24:010x}"),
            *("context", f"{twin.context(tokens, at, 5):06x}"),
        ]


def test_the_example_is_what_the_twin_writes(example):
    tokens = [int(one, 16) for one in example["token hashes"].split()]
    files = twin.files([tokens], [TEXT.encode()], 5, 4, BASE, SPREAD)
    for name in ("postings", "doc_entries", "doc_tokens", "doc_crc"):
        assert files[f"{name}.npy"][128:] == bytes.fromhex(example[name])
    assert twin.crc(files["postings.npy"]) == bytes.fromhex(example["postings.crc"])
    assert struct.unpack("<I", bytes.fromhex(example["doc_crc"]))[0] == zlib.crc32(TEXT.encode())
    starts = np.frombuffer(files["starts.npy"], "<i8", offset=128)
    assert np.flatnonzero(np.diff(starts)).tolist() == [0x0A4E, 0xFA17]
    assert example["starts"] == "0 up to bucket 0a4e, 1 up to bucket fa17, 2 behind it"


def test_what_a_build_writes_is_what_the_twin_writes(tmp_path):
    torn = [40 * TEXT.replace(" ", ""), 9 * " ".join(f"{TEXT} CAFÉ fi<wbr>nd жар ")]
    texts = [TEXT, "", *some_texts(40), f"{TEXT} {TEXT}", *torn]
    write_shard(tmp_path / "corpus" / "part-0.parquet", texts)
    recipe = recipe_of()
    manifest = build(tmp_path / "corpus", tmp_path / "index", recipe)
    (record,) = manifest.segments
    tokens = [twin_tokens(text, "word") for text in texts]
    raw = [text.encode() for text in texts]
    letters = [keys_of(text) for text in texts]
    assert all(letters[-2:])
    expected = twin.files(tokens, raw, recipe.gram, recipe.stride, BASE, SPREAD, letters)
    for name, content in expected.items():
        path = tmp_path / "index" / "segments" / record.id / name
        assert path.read_bytes() == content, name
        assert path.with_suffix(".crc").read_bytes() == twin.crc(content), name


def keys_of(text):
    """The keys of a text's letters, by the twins."""
    spans = [(begin, end) for _, begin, end in words_of(text)]
    return torn_twin.keys(text.encode(), spans, twin_letters(text), BASE, SPREAD)


@given(st.integers(0, 2**63 - 1), st.text(max_size=40))
def test_the_hash_of_a_document_is_the_one_of_the_page(row, digest):
    seed = hashlib.sha256(digest.encode()).digest()[:8]
    found = np.empty(1, np.uint64)
    hash_documents(document_seed(digest), row, found)
    assert int(found[0]) == token_hash(seed + row.to_bytes(8, "little"))
