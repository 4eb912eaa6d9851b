"""The manifest: one spelling, published whole, refused when anything in it is not as it must be."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from contam.errors import (
    IndexBusyError,
    IndexDamageError,
    IndexMismatchError,
    OutputError,
    UsageError,
)
from contam.index import manifest as manifests
from contam.index.manifest import (
    MANIFEST,
    Inconsistent,
    parse_manifest,
    publish_manifest,
    read_manifest,
    writer_lock,
)
from contam.index.model import FileRecord, RowSpan
from tests.index.tiny import RECIPE, shard, write_index

RETIRED = FileRecord(name="retired-0a.npy", n_bytes=144, sha256="0" * 64, checks="1" * 64)


@pytest.fixture
def index(tmp_path):
    write_index(tmp_path)
    return tmp_path


def spell(found):
    """A manifest with the digest its body has."""
    body = json.dumps(found["body"], sort_keys=True, separators=(",", ":")).encode()
    found["sha256"] = hashlib.sha256(body).hexdigest()
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def test_a_manifest_is_read_back_as_it_was_published(tmp_path):
    made, _ = write_index(tmp_path)
    odd = replace(
        made,
        recipe=replace(RECIPE, minhash=True),
        paths=("caf\u00e9", os.fsdecode(b"not-utf8-\xff")),
        shards=(*made.shards, shard("more.jsonl", 0, format="jsonl", failure="cut short")),
        pending=("other.parquet",),
        retired=RETIRED,
    )
    publish_manifest(tmp_path, odd)
    assert read_manifest(tmp_path) == odd
    body = (tmp_path / MANIFEST).read_bytes()
    publish_manifest(tmp_path, odd)
    assert (tmp_path / MANIFEST).read_bytes() == body
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "segments"]


def test_every_flipped_byte_is_noticed(index):
    path = index / MANIFEST
    raw = path.read_bytes()
    for at in range(len(raw)):
        harmed = bytearray(raw)
        harmed[at] ^= (0x01, 0x20, 0x80)[at % 3]
        with pytest.raises((IndexDamageError, IndexMismatchError), match=MANIFEST):
            parse_manifest(bytes(harmed), path)


@pytest.mark.parametrize("length", [0, 1, 10, -2, -1])
def test_every_cut_is_noticed(index, length):
    path = index / MANIFEST
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(IndexDamageError):
        read_manifest(index)


@pytest.mark.parametrize("respelt", [lambda raw: b" " + raw, lambda raw: raw + b"\n"])
def test_another_spelling_is_noticed(index, respelt):
    path = index / MANIFEST
    path.write_bytes(respelt(path.read_bytes()))
    with pytest.raises(IndexDamageError, match="canonical"):
        read_manifest(index)


def test_no_index_is_not_damage_but_a_missing_manifest_is(index, tmp_path):
    with pytest.raises(UsageError, match="no index here"):
        read_manifest(tmp_path / "elsewhere")
    (index / MANIFEST).unlink()
    with pytest.raises(IndexDamageError, match="missing"):
        read_manifest(index)


@pytest.mark.parametrize("version", [0, 1, 10**9])
def test_another_format_is_refused_with_the_way_out(index, version):
    found = json.loads((index / MANIFEST).read_bytes())
    found["format"] = version
    found["body"] = {"all": "new"}
    (index / MANIFEST).write_bytes(spell(found))
    with pytest.raises(IndexMismatchError, match=f"of format {version}") as error:
        read_manifest(index)
    assert "build it again" in error.value.hint


def drop(key):
    return lambda body: body.pop(key)


def put(*path, value):
    def change(body):
        at = body
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


FORGED = {
    "a missing key": (drop("pending"), "body lacks 'pending'"),
    "an unknown key": (put("mood", value=1), "unknown key 'mood'"),
    "a number as text": (put("recipe", "gram", value="5"), "recipe.gram is '5'"),
    "a truth value as number": (put("recipe", "gram", value=True), "recipe.gram is True"),
    "a fraction": (put("segments", 0, "n_tokens", value=1.0), "n_tokens is 1.0"),
    "null": (put("shards", 1, "name", value=None), r"shards\[1\].name is None"),
    "an object for a list": (put("shards", value={}), "shards is no list"),
    "a list for an object": (put("recipe", value=[]), "recipe is no object"),
    "counts of text": (put("shards", 0, "counts", "rows", value="7"), "rows is '7'"),
    "a count too few": (put("shards", 0, "counts", value={}), "counts lack"),
    "a recipe out of range": (put("recipe", "stride", value=0), "stride is 0"),
    "a way out of the folder": (put("segments", 0, "files", 0, "name", value="../a.npy"),
        "no name for a file"),
    "a segment's way out": (put("segments", 0, "id", value="../../etc"), "no name for a segment"),
    "rows that are not there": (put("segments", 0, "spans", 0, "n_rows", value=6),
        "not as many as its documents"),
    "a shard that is not there": (put("segments", 0, "spans", 0, "shard", value=2), "not there"),
    "a negative row": (put("segments", 0, "spans", 0, "first_row", value=-1), "not there"),
    "a wrong digest": (put("segments", 0, "files", 0, "sha256", value="x"), "record of"),
    "an array without checksums": (put("segments", 0, "files", 0, "checks", value=None),
        "checks is None"),
    "a negative size": (put("shards", 0, "size_bytes", value=-1), "negative"),
    "an unknown file format": (put("shards", 0, "format", value="zip"), "unknown format"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_manifest_is_refused_even_with_the_right_digest(index, name):
    change, fact = FORGED[name]
    found = json.loads((index / MANIFEST).read_bytes())
    change(found["body"])
    (index / MANIFEST).write_bytes(spell(found))
    with pytest.raises(IndexDamageError, match=fact) as error:
        read_manifest(index)
    assert str(index / MANIFEST) in error.value.message


def test_a_manifest_that_contradicts_itself_is_not_published(index):
    made = read_manifest(index)
    first, second = made.segments
    moved = replace(second, spans=(RowSpan(shard=0, first_row=6, n_rows=5),))
    cases = {
        "indexed twice": replace(made, segments=(first, moved)),
        "not all of its rows": replace(made, segments=(first,)),
        "listed twice": replace(made, segments=(first, first)),
        "part-0.parquet is listed twice": replace(made, shards=(made.shards[0],) * 2),
        "and yet is": replace(
            made, shards=(replace(made.shards[0], failure="gone"), made.shards[1])
        ),
        "is pending twice": replace(made, pending=("a", "a")),
    }
    for fact, wrong in cases.items():
        with pytest.raises(Inconsistent, match=fact):
            publish_manifest(index, wrong)
    assert read_manifest(index) == made


def test_a_manifest_that_cannot_be_replaced_stays(index, monkeypatch):
    before = (index / MANIFEST).read_bytes()

    def fail(path, *_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifests, "write_synced", fail)
    with pytest.raises(OutputError, match="No space left"):
        publish_manifest(index, replace(read_manifest(index), paths=("new",)))
    assert (index / MANIFEST).read_bytes() == before


def test_two_writers_exclude_each_other_within_a_process_and_between_two(index):
    with writer_lock(index):
        with pytest.raises(IndexBusyError, match="another process"), writer_lock(index):
            pass
        read_manifest(index)
        code = (
            "import sys; from pathlib import Path; from contam.errors import IndexBusyError\n"
            "from contam.index.manifest import writer_lock\n"
            "try:\n with writer_lock(Path(sys.argv[1])): sys.exit(0)\n"
            "except IndexBusyError: sys.exit(7)"
        )
        assert subprocess.run([sys.executable, "-c", code, str(index)]).returncode == 7
    with writer_lock(index):
        pass
