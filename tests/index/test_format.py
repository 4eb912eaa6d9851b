"""indexes/FORMAT.md says what the code does, and the golden index is as it always was."""

from __future__ import annotations

import hashlib
import json
import runpy
import struct
import zlib

import numpy as np
import pytest

from contam.index import segment
from contam.index.manifest import read_manifest
from contam.index.open import Index
from contam.index.verify import verify
from contam.kernels.gram_table import hash_grams
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
        name = line[:18].strip() or name
        found[name] = f"{found.get(name, '')} {line[18:].strip()}".strip()
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
    own = {name: (code, ()) for name, code, _, _ in table(page, "D is the number of documents")}
    rows = table(page, "### Tables of pairs")
    for name in ("grams", "letters"):
        own |= {f"{name}_{row}": (code, ()) for row, code, _, _ in rows}
    assert own == segment._TYPES


def test_the_example_is_what_comes_of_the_text(example):
    hashes = tokenize_bytes(TEXT.encode()).hashes
    assert [f"{one:016x}" for one in hashes.tolist()] == example["token hashes"].split()
    grams = np.empty(len(hashes), np.uint64)
    count = hash_grams(hashes, 0, len(hashes), 5, grams)
    for at in range(0, count, 4):
        gram = int(grams[at])
        assert example[f"gram {at}"].split() == [f"{gram:016x}", "key", f"{gram >> 28:09x}"]


def test_the_example_is_what_the_twin_writes(example):
    tokens = [int(one, 16) for one in example["token hashes"].split()]
    files = twin.files([tokens], [TEXT.encode()], (5, 4, 36, 256), BASE, SPREAD)
    rows = [f"grams_{name}" for name in ("heads", "rests", "ends", "documents")]
    for name in (*rows, "doc_tokens", "doc_crc"):
        assert files[f"{name}.npy"][128:] == bytes.fromhex(example[name])
    assert twin.crc(files["grams_heads.npy"]) == bytes.fromhex(example["grams_heads.crc"])
    assert struct.unpack("<I", bytes.fromhex(example["doc_crc"]))[0] == zlib.crc32(TEXT.encode())


@pytest.mark.parametrize("changes", [{}, {"stride": 1, "cap": 3, "key_bits": 41}])
def test_what_a_build_writes_is_what_the_twin_writes(tmp_path, changes):
    torn = [40 * TEXT.replace(" ", ""), 9 * " ".join(f"{TEXT} CAFÉ fi<wbr>nd жар ")]
    texts = [TEXT, "", *some_texts(40), f"{TEXT} {TEXT}", *torn]
    write_shard(tmp_path / "corpus" / "part-0.parquet", texts)
    recipe = recipe_of(**changes)
    manifest = build(tmp_path / "corpus", tmp_path / "index", recipe)
    (record,) = manifest.segments
    tokens = [twin_tokens(text, "word") for text in texts]
    raw = [text.encode() for text in texts]
    sizes = recipe.gram, recipe.stride, recipe.key_bits, recipe.cap
    letters = [keys_of(text, recipe.key_bits) for text in texts]
    assert all(letters[-2:])
    expected = twin.files(tokens, raw, sizes, BASE, SPREAD, letters)
    for name, content in expected.items():
        path = tmp_path / "index" / "segments" / record.id / name
        assert path.read_bytes() == content, name
        assert path.with_suffix(".crc").read_bytes() == twin.crc(content), name


def keys_of(text, key_bits):
    """The keys of a text's letters, by the twins."""
    spans = [(begin, end) for _, begin, end in words_of(text)]
    return torn_twin.keys(text.encode(), spans, twin_letters(text), BASE, SPREAD, key_bits)


#: SHA-256 over all files of each golden index: a change to one of them is never right.
FROZEN = {"v4-word-5": "51dbd4818968f681efe968cc66ceb40e37dad4afd679a76e145f9551f55a2213"}


@pytest.fixture(scope="module")
def golden(repository):
    return repository / "indexes" / "golden" / "v4-word-5"


@pytest.fixture(scope="module")
def truth(golden):
    return json.loads((golden / "truth.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def maker(repository):
    return runpy.run_path(str(repository / "indexes" / "golden" / "make_golden.py"))


@pytest.mark.parametrize("name", FROZEN)
def test_no_byte_of_it_has_changed(repository, name):
    golden = repository / "indexes" / "golden" / name
    digest = hashlib.sha256()
    for path in sorted(path for path in golden.rglob("*") if path.is_file()):
        digest.update(path.relative_to(golden).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    assert digest.hexdigest() == FROZEN[name]


def test_it_opens_and_nothing_in_it_is_damaged(golden):
    index = Index.open(golden / "index")
    assert (index.guarantee, len(index.segments), len(index.retired)) == (8, 2, 1)
    assert index.names == ("part-0.parquet", "part-1.parquet", "part-2.jsonl")
    assert index.coverage().complete
    report = verify(golden / "index")
    assert not report.damaged
    # Its shards lie beside it, and not where the manifest has them: no place fits every checkout.
    assert {finding.place for finding in report.findings} == {
        f"/golden/{name}" for name in index.names
    }


def test_a_build_of_today_writes_the_same_segments(golden, maker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    maker["make"](tmp_path / "again")
    old = read_manifest(golden / "index").segments
    new = read_manifest(tmp_path / "again" / "index").segments
    arrays = [[file for file in one.files if file.name.endswith(".npy")] for one in old]
    assert arrays == [[file for file in one.files if file.name.endswith(".npy")] for one in new]
    truth = (tmp_path / "again" / "truth.json").read_bytes()
    assert truth == (golden / "truth.json").read_bytes()
