"""An answer can be finished from anything that keeps what `Sources` asks for, not only shards."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from contam.corpus.documents import DocumentMeta
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus import Corpus
from contam.detect.finish import finish
from contam.detect.parameters import ScanParameters
from contam.detect.plan import make_plan
from contam.detect.scan import scan
from contam.errors import ShardError

QUESTION = "Which grey heron of the northern marsh counted seven silver coins before sunrise"


@pytest.fixture
def world(tmp_path):
    corpus, items = tmp_path / "corpus.jsonl", tmp_path / "items.jsonl"
    documents = [
        {"text": f"We asked: {QUESTION}? Nobody knew.", "id": "d0", "url": "https://a.example/0"},
        {"text": "Nothing of interest stands in this one at all.", "id": "d1"},
    ]
    corpus.write_text(
        "".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8"
    )
    items.write_text(json.dumps({"question": QUESTION, "answer": "9"}) + "\n", encoding="utf-8")
    return corpus, items


@dataclass
class Kept:
    """What an index would have kept of a corpus whose shards are gone."""

    names: tuple
    coverage: object
    notes: tuple = ("the shards are gone",)
    gone: bool = False

    def metadata(self, shard, rows):
        if self.gone:
            raise ShardError("it is gone", shard=self.names[shard])
        return [
            DocumentMeta(f"kept-{row}", "https://kept.example", None, None, None) for row in rows
        ]

    def of_tokens(self, *_):
        return None

    def near(self, matches):
        return np.ones(len(matches), np.bool_)

    def inputs(self):
        return {"index": "ix-1"}


def finished(world, **changes):
    corpus, items = world
    opened, plan = Corpus.open([corpus], None), make_plan([items], ScanParameters())
    partial = scan_chunks(plan, opened, workers=1)
    kept = replace(Kept((corpus.name,), partial.coverage), **changes)
    return finish(plan, kept, partial.collections, started=0.0, workers=1)


def test_documents_are_named_as_the_sources_say(world):
    result = finished(world)
    evidence = result.evidence.to_pylist()
    assert evidence
    assert {row["document_id"] for row in evidence} == {"kept-0"}
    assert {row["similarity"] for row in evidence if row["part"] == "question"} == {1.0}
    (verdict,) = result
    assert (verdict.label, verdict.best_url) == ("contaminated", "https://kept.example")
    assert result.run["inputs"]["index"] == "ix-1"
    assert result.run["inputs"]["benchmarks"][0]["n_items"] == 1
    assert "the shards are gone" in result.run["notes"]


def test_a_source_that_can_name_no_document_leaves_place_and_a_note(world):
    result = finished(world, gone=True)
    assert {row["document_id"] for row in result.evidence.to_pylist()} == {"corpus.jsonl:0"}
    assert "corpus.jsonl: evidence without url and date: it is gone" in result.run["notes"]


def test_a_scan_gives_no_similarity(world):
    corpus, items = world
    assert {row["similarity"] for row in scan(corpus, items).evidence.to_pylist()} == {None}
