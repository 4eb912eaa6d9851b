"""An index of an older normaliser is refused, and built again from its shards."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

import contam
from contam.cli.remedies import hint
from contam.errors import IndexMismatchError, OutputError
from contam.index.change import add
from contam.index.manifest import read_manifest
from contam.index.open import Index
from contam.index.upgrade import upgrade
from contam.index.verify import verify
from contam.index.writing.intake import IntakeReader
from contam.text.text_tables import NORMALISER


@pytest.fixture
def old(repository, tmp_path):
    """A copy of the golden index of word-2, whose shards are not where its manifest has them."""
    shutil.copytree(repository / "indexes" / "golden" / "v1", tmp_path / "old")
    return tmp_path / "old"


def test_an_old_index_is_refused_with_the_way_out(old):
    for refused in (
        lambda: Index.open(old / "index"),
        lambda: contam.query(old / "index", old / "items.jsonl"),
        lambda: add(old / "index", old / "corpus", workers=1),
    ):
        with pytest.raises(IndexMismatchError, match="word-2") as error:
            refused()
        assert "contam index upgrade" in hint(error.value)


def test_an_upgraded_index_has_all_that_the_old_one_had(old, tmp_path):
    new = tmp_path / "new"
    done = upgrade(old / "index", new, corpus=[old / "corpus"], workers=1)
    before = read_manifest(old / "index")
    assert done.recipe == replace(before.recipe, normaliser=NORMALISER)
    assert [(shard.name, shard.sha256, shard.counts) for shard in done.shards] == [
        (shard.name, shard.sha256, shard.counts) for shard in before.shards
    ]
    assert not done.pending
    opened = Index.open(new)
    assert opened.coverage().complete
    assert len(opened.retired) == 1
    report = verify(new)
    assert not report.damaged
    assert report.findings == []
    truth = json.loads((old / "truth.json").read_text(encoding="utf-8"))
    evidence = contam.query(new, old / "items.jsonl", corpus=old / "corpus").evidence.to_pylist()
    found = {(row["item_id"], row["document_id"]) for row in evidence}
    expected = {(item, document) for item, document, _ in truth["shared"]}
    assert found >= {pair for pair in expected if pair[1] not in truth["retired"]}
    assert not {document for _, document in found} & set(truth["retired"])


def test_a_shard_that_changed_or_is_gone_is_named(old, tmp_path):
    with pytest.raises(IndexMismatchError, match=r"part-0\.parquet"):
        upgrade(old / "index", tmp_path / "new", workers=1)
    shard = old / "corpus" / "part-2.jsonl"
    raw = shard.read_bytes()
    shard.write_bytes(raw.replace(b"e", b"o", 1))
    with pytest.raises(IndexMismatchError, match=r"part-2\.jsonl"):
        upgrade(old / "index", tmp_path / "new", corpus=[old / "corpus"], workers=1)
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_over_another_index(old, tmp_path):
    upgrade(old / "index", tmp_path / "new", corpus=[old / "corpus"], workers=1)
    with pytest.raises(OutputError, match="already holds"):
        upgrade(old / "index", tmp_path / "new", corpus=[old / "corpus"], workers=1)
    with pytest.raises(IndexMismatchError, match="already"):
        upgrade(tmp_path / "new", tmp_path / "newer", workers=1)


def test_an_upgrade_that_was_stopped_goes_on(old, tmp_path, monkeypatch):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    new, whole = tmp_path / "new", tmp_path / "whole"
    upgrade(old / "index", whole, corpus=[old / "corpus"], workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(IntakeReader, "__call__", stop)
        with pytest.raises(KeyboardInterrupt):
            upgrade(old / "index", new, corpus=[old / "corpus"], workers=1)
    assert read_manifest(new).pending
    upgrade(old / "index", new, corpus=[old / "corpus"], workers=1)
    assert read_manifest(new) == read_manifest(whole)
