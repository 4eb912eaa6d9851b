"""Whatever file of an index is harmed, and however: it is noticed, and no answer says clean.

The index is a real one, of several segments and with retired documents. Every file of it is harmed
in every way; a test below makes sure that none is left out.
"""

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from contam.detect.query import query
from contam.errors import IndexDamageError, IndexMismatchError
from contam.index.manifest import LOCK, MANIFEST, publish_manifest, read_manifest
from contam.index.open import Index
from contam.index.segment import PAIR_ARRAYS
from contam.index.states import STATES, write_retired
from contam.index.verify import verify
from contam.kernels.pairs import DOCUMENT_BITS
from contam.text.tokenizer import tokenize_bytes
from tests.detect.indexed.test_near_copies import EDITED, QUESTION, filler
from tests.index.builds import build, keys_of, recipe_of, some_texts
from tests.kernels.support import u64s
from tests.property.worlds import write_shard

ARRAYS = (
    *(f"{table}_{name}" for table in ("grams", "letters") for name in PAIR_ARRAYS),
    "doc_tokens",
    "doc_crc",
    "minhash_starts",
    "minhash_entries",
    "minhash_windows",
    "minhash_capped",
)
SEGMENT_FILES = (
    "documents.parquet",
    "documents.crc",
    *(f"{name}.{kind}" for name in ARRAYS for kind in ("npy", "crc")),
)
FILES = (MANIFEST, "retired.npy", "retired.crc", *SEGMENT_FILES)
ITEM = (
    "A lantern keeper counts nine copper kettles at dawn, gives two of them to the violin maker "
    "by the glacier and sells the rest; how many kettles did the keeper sell before noon?"
)
#: A copy with other words, of which an index samples no gram that stands in the question.
NEAR = f"once {EDITED} {filler(2, 40)}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An index of four shards and several segments; two retired documents; two items in the last.

    Of the one it holds a copy, of the other one that only sketches lead to.
    """
    home = tmp_path_factory.mktemp("damage")
    for number in range(3):
        texts = some_texts(12, first=12 * number)
        write_shard(home / "corpus" / f"part-{number}.parquet", texts)
    write_shard(home / "corpus" / "part-9.parquet", ["", f"Homework. {ITEM} Answer: seven.", NEAR])
    recipe = recipe_of(minhash=True)
    build(home / "corpus", home / "index", recipe, memory=10_000)
    manifest = read_manifest(home / "index")
    assert len(manifest.segments) > 2
    record = write_retired(home / "index", np.array([[0, 1], [1, 2]], np.int64))
    publish_manifest(home / "index", replace(manifest, retired=record))
    items = home / "items.jsonl"
    lines = [
        json.dumps({"id": "kettles", "question": ITEM, "answer": "seven"}),
        json.dumps({"id": "loaves", "question": QUESTION}),
    ]
    items.write_text("\n".join(lines) + "\n")
    assert answers(home) == ["found", "found", "found"]
    assert verify(home / "index").ok
    return home


def path_of(home, name):
    """The file that goes by this name: that of the segment with the item."""
    index = home / "index"
    if name.startswith("retired"):
        return next(index.glob(f"retired-*{name[7:]}"))
    if name == MANIFEST:
        return index / name
    return index / "segments" / read_manifest(index).segments[-1].id / name


def answers(home):
    """What looking up every gram of the item says, and what a whole query does."""
    index = Index.open(home / "index")
    hashes = tokenize_bytes(ITEM.encode()).hashes
    found = set()
    for segment in index.segments:
        keys = u64s(keys_of(hashes, index.recipe.gram))
        shards, rows = segment.place_of(segment.grams.documents(*segment.grams.find(keys)))
        found |= {(index.manifest.shards[s].name, r) for s, r in zip(shards, rows, strict=True)}
    looked_up = "found" if ("part-9.parquet", 1) in found else "clean"
    verdicts = query(home / "index", home / "items.jsonl", workers=1)
    return [looked_up, *("found" if verdict.flagged else verdict.label for verdict in verdicts)]


def said_by(home):
    """The answers in one line, or what refuses to answer."""
    try:
        return " ".join(answers(home))
    except (IndexDamageError, IndexMismatchError) as error:
        return error.message


def named_by_verify(home):
    """The files that `verify` blames."""
    try:
        report = verify(home / "index")
    except IndexMismatchError as error:
        return [error.message]
    assert all(finding.what == "index" for finding in report.findings)
    return [finding.place for finding in report.findings]


def look_everywhere(home):
    """Look for every key, and read all its documents."""
    for segment in Index.open(home / "index").segments:
        keys = np.unique(segment.grams.unpacked()[0] >> np.uint64(DOCUMENT_BITS))
        segment.grams.documents(*segment.grams.find(keys))


@contextmanager
def harmed(path, content):
    """The file with another content, or gone, while the block runs."""
    before = path.read_bytes()
    try:
        path.unlink() if content is None else path.write_bytes(content)
        yield
    finally:
        path.write_bytes(before)


def flipped(raw, at, bits):
    changed = bytearray(raw)
    changed[at] ^= bits
    return bytes(changed)


def harms(raw):
    """Ways to harm a file, by name."""
    size = len(raw)
    yield "gone", None
    if size:
        yield "emptied", b""
        yield "cut by one byte", raw[:-1]
        yield "cut in half", raw[: size // 2]
    yield "longer by one byte", raw + b"\0"
    spread = {0, 1, 7, 63, 127, 128, size // 3, size // 2, 2 * size // 3, size - 2, size - 1}
    for n, at in enumerate(sorted(one for one in spread if 0 <= one < size)):
        bits = (0x01, 0x80, 0xFF)[n % 3]
        yield f"byte {at} ^ {bits:02x}", flipped(raw, at, bits)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_harm_is_noticed_and_never_answered_clean(home, name):
    path = path_of(home, name)
    raw = path.read_bytes()
    for how, content in harms(raw):
        with harmed(path, content):
            named = named_by_verify(home)
            assert any(path.name in place for place in named), f"{how}: verify names {named}"
            said = said_by(home)
            assert "clean" not in said, f"{how}: answered clean"
            assert path.stem in said or said == "found found found", f"{how}: {said}"
    assert verify(home / "index").ok


@pytest.mark.parametrize("name", ["grams_heads.npy", "grams_rests.npy", "grams_documents.npy"])
def test_what_a_lookup_reads_is_noticed_by_the_lookup(home, name):
    path = path_of(home, name)
    raw = path.read_bytes()
    for at in np.linspace(128, len(raw) - 1, 3).astype(int):
        with harmed(path, flipped(raw, at, 0x10)), pytest.raises(IndexDamageError, match=name):
            look_everywhere(home)


def test_a_missing_folder_is_noticed(home):
    index = home / "index"
    (index / "segments").rename(index / "elsewhere")
    try:
        with pytest.raises(IndexDamageError, match="missing"):
            Index.open(index)
        assert verify(index).damaged
    finally:
        (index / "elsewhere").rename(index / "segments")


def test_every_file_of_an_index_is_harmed_above(home):
    index = home / "index"
    found = set()
    for path in index.rglob("*"):
        if path.is_file():
            name = path.name
            found.add("retired" + path.suffix if name.startswith("retired-") else name)
    # The lock is empty: there is nothing in it to harm, and without it the index is the same.
    # The times of the shards are no part of the index: test_states harms them.
    assert found == {*FILES, LOCK, STATES}
    assert (index / LOCK).read_bytes() == b""


@pytest.mark.parametrize("change", ["gone", "cut", "flipped in the middle", "another row"])
def test_a_shard_that_changed_is_named_and_the_index_is_not_blamed(home, change):
    path = home / "corpus" / "part-1.parquet"
    raw = path.read_bytes()
    other = {
        "gone": None,
        "cut": raw[:-1],
        "flipped in the middle": flipped(raw, len(raw) // 2, 1),
        "another row": None,
    }
    with harmed(path, other[change]):
        if change == "another row":
            write_shard(path, some_texts(12, first=13))
        report = verify(home / "index")
        assert not report.damaged
        assert [finding.place for finding in report.findings] == [str(path)]
        assert "part-1.parquet" in report.findings[0].fact
