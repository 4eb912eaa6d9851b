"""A small index made without the builder: its bytes come from the twin of the format."""

import hashlib
import random
from dataclasses import replace

from contam.corpus.coverage import ShardCoverage
from contam.index.manifest import SEGMENTS, publish_manifest
from contam.index.model import FileRecord, Manifest, Recipe, RowSpan, SegmentRecord, ShardRecord
from contam.tables.documents import write_documents
from contam.text.text_tables import NORMALISER
from tests.twins import segment as twin

BASE = 0x9FB21C651E98DF25
SPREAD = 0xD6E8FEB86659FD93

RECIPE = Recipe(
    name="tiny", unit="word", gram=5, stride=4, cap=100, key_bits=36, normaliser=NORMALISER
)
TAKEN = RECIPE.gram, RECIPE.stride, RECIPE.key_bits


def documents(seed, n, longest=60):
    """Random documents as token hashes; some are empty, the last is a copy of the longest."""
    rng = random.Random(seed)
    made = [[rng.randrange(1, 1 << 64) for _ in range(rng.randrange(longest))] for _ in range(n)]
    return [*made[:-1], max(made[:-1], key=len)]


def shard(name, rows, **changes):
    counts = ShardCoverage(units=1, rows=rows).to_dict()
    record = ShardRecord(
        name=name,
        uri=f"/corpus/{name}",
        format="parquet",
        size_bytes=1000,
        digest="edges-sha256:00",
        sha256="sha256:00",
        column=None,
        counts=counts,
    )
    return replace(record, **changes)


def write_segment(folder, spans, tokens):
    """Write the segment of these documents; returns its record."""
    name = hashlib.sha256(repr((spans, tokens)).encode()).hexdigest()[:16]
    place = folder / SEGMENTS / name
    place.mkdir(parents=True)
    texts = [b"" for _ in tokens]
    records = []
    for file, content in twin.files(tokens, texts, (*TAKEN, RECIPE.cap), BASE, SPREAD).items():
        (place / file).write_bytes(content)
        table = twin.crc(content)
        (place / file).with_suffix(".crc").write_bytes(table)
        records.append(_record(file, content, hashlib.sha256(table).hexdigest()))
    rows = [(s.shard, s.first_row + i) for s in spans for i in range(s.n_rows)]
    columns = {
        "shard": [s for s, _ in rows],
        "row": [r for _, r in rows],
        "document_id": [f"doc-{s}-{r}" for s, r in rows],
        "url": [None] * len(rows),
        "date": ["2020-01-01"] * len(rows),
        "source": ["web"] * len(rows),
        "language": [None] * len(rows),
        "n_tokens": [len(token) for token in tokens],
        "n_bytes": [0] * len(rows),
    }
    write_documents(place / "documents.parquet", columns)
    content = (place / "documents.parquet").read_bytes()
    table = twin.crc(content)
    (place / "documents.crc").write_bytes(table)
    records.append(_record("documents.parquet", content, hashlib.sha256(table).hexdigest()))
    pairs = twin.gram_pairs(tokens, TAKEN, BASE, SPREAD)
    return SegmentRecord(
        id=name,
        spans=tuple(spans),
        n_documents=len(rows),
        n_tokens=sum(map(len, tokens)),
        n_entries=len(pairs),
        n_bytes=0,
        files=tuple(records),
    )


def write_index(folder, n_rows=(7, 5)):
    """An index of two segments over two shards; returns its manifest and the documents."""
    tokens = [documents(seed, n) for seed, n in enumerate(n_rows)]
    segments = [
        write_segment(folder, [RowSpan(shard=number, first_row=0, n_rows=len(token))], token)
        for number, token in enumerate(tokens)
    ]
    manifest = Manifest(
        recipe=RECIPE,
        paths=("corpus",),
        shards=tuple(shard(f"part-{i}.parquet", n) for i, n in enumerate(n_rows)),
        segments=tuple(segments),
        pending=(),
        retired=None,
    )
    publish_manifest(folder, manifest)
    return manifest, tokens


def _record(name, content, checks):
    digest = hashlib.sha256(content).hexdigest()
    return FileRecord(name=name, n_bytes=len(content), sha256=digest, checks=checks)
