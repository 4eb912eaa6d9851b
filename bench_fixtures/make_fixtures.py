"""Write bench_fixtures/corpus and truth.jsonl: filler documents with our own items planted.

Everything follows from SEED: the same code and library versions give the same bytes.
Usage: python bench_fixtures/make_fixtures.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from draw import Draw
from filler import Topic, article, read_topics
from plan import PLAN, SAME_TEMPLATE
from plants import OUTCOMES, Item, read_items

HERE = Path(__file__).resolve().parent
SEED = 2602
N_DOCUMENTS = 384
N_LONG = 3
SOURCES = ("commons-board", "parish-press", "old-almanac", "hobby-wiki", "code-garden")
FIRST_DAY = dt.date(2017, 3, 1)
GRAM = 8
_WORD = re.compile(r"[\u3040-\u9fff]|[^\W_]+")

# path, documents, row group, codec, order of the columns, type of the text column
SHARDS = (
    ("part-000.parquet", 128, 50, "zstd", "text id url date source language", pa.string()),
    ("part-001.parquet", 96, 1000, "snappy", "id source text language url date", pa.large_string()),
    ("part-002.parquet", 100, 17, "gzip", "text id url date source language", pa.string()),
    ("archive/part-003.parquet", 60, 40, "lz4", "language text url id date source", pa.string()),
)


@dataclass
class Document:
    """A document in the making: `text` grows block by block, `rows` remember what was planted."""

    topic: str
    language: str
    text: str | None = ""
    rows: list[dict[str, Any]] = field(default_factory=list)


def _digest(span: str) -> str:
    return hashlib.sha256(span.encode()).hexdigest()[:16]


def _render(blocks: list[str]) -> tuple[str, list[int]]:
    """Join blocks with empty lines; return the text and where each block starts."""
    starts, position = [], 0
    for block in blocks:
        starts.append(position)
        position += len(block) + 2
    return "\n\n".join(blocks), starts


def _plant(
    topic: Topic, plants: list[tuple[str, Item, list[str]]], draw: Draw, n_sentences: int
) -> Document:
    """Write an article and put the pieces of each plant between its paragraphs."""
    blocks: list[tuple[str, tuple[int, int] | None]] = [
        (block, None) for block in article(topic, draw, n_sentences)
    ]
    for number, (_, _, pieces) in enumerate(plants):
        at = 0
        for part, piece in enumerate(pieces):
            # A second piece goes somewhere behind the first, with other text between them.
            low = at + 2 if part else 0
            at = draw.between(min(low, len(blocks)), len(blocks))
            blocks.insert(at, (piece, (number, part)))
    text, starts = _render([block for block, _ in blocks])
    document = Document(topic.name, topic.language, text)
    spans: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for start, (block, plant) in zip(starts, blocks, strict=True):
        if plant is not None:
            spans[plant[0]][plant[1]] = (start, start + len(block))
    for number, (name, item, pieces) in enumerate(plants):
        outcome = OUTCOMES.get(name)
        first, second = spans[number][0], spans[number].get(1, (None, None))
        document.rows.append(
            {
                "item_id": item.item_id,
                "benchmark": item.benchmark,
                "char_start": first[0],
                "char_end": first[1],
                "char_start2": second[0],
                "char_end2": second[1],
                "transformation": name,
                "expected": outcome.expected if outcome else "not_contaminated",
                "exposure": outcome.exposure if outcome else "none",
                "kind": outcome.kind if outcome else "none",
                "span_sha256": _digest("".join(pieces)),
            }
        )
    return document


def _topic_for(item: Item, topics: dict[str, Topic], draw: Draw) -> Topic:
    """A subject in the language of the item, so that a plant does not stand out by its script."""
    if item.name:
        return topics[draw.pick(("snippets", "software"))]
    if re.search(r"[\u4e00-\u9fff]", item.question):
        return topics["zhongwen"]
    if re.search(r"[а-я]", item.question):
        return topics["russkij"]
    if re.search(r"[éèê]", item.question):
        return topics["francais"]
    return draw.pick([topic for topic in topics.values() if topic.language == "en"])


def _related(
    planted: Item, row: dict[str, Any], items: list[Item], text: str
) -> list[dict[str, Any]]:
    """Rows for other items that the same plant also concerns: duplicates and shared passages."""
    out = []
    for other in items:
        if other is planted or other.benchmark != planted.benchmark:
            continue
        changes: dict[str, Any] | None = None
        if (other.asked, other.choices) == (planted.asked, planted.choices) or (
            row["transformation"] == "generic_stem" and other.question == planted.question
        ):
            changes = {}
        elif other.passage and other.passage == planted.passage:
            start = text.index(other.passage)
            changes = {
                "char_start": start,
                "char_end": start + len(other.passage),
                "span_sha256": _digest(other.passage),
                "transformation": "shared_passage",
                "expected": "not_contaminated",
                "exposure": "passage_only",
                "kind": "none",
            }
        if changes is not None:
            out.append({**row, "item_id": other.item_id, **changes})
    return out


def planted_documents(items: list[Item], topics: dict[str, Topic]) -> list[Document]:
    """Carry out the plan: one document for each of its entries."""
    by_id = {item.item_id: item for item in items}
    documents = []
    entries = [(name, ids.split("+")) for name, line in PLAN.items() for ids in line.split()] + [
        ("same_template", [item_id]) for item_id in SAME_TEMPLATE
    ]
    for number, (name, ids) in enumerate(entries):
        draw = Draw(SEED, "plant", number)
        plants = []
        for item_id in ids:
            item = by_id[item_id]
            pieces = (
                OUTCOMES[name].plant(item, draw) if name in OUTCOMES else [SAME_TEMPLATE[item_id]]
            )
            plants.append((name, item, pieces))
        topic = _topic_for(plants[0][1], topics, draw)
        n_sentences = 300 if number < N_LONG else draw.between(6, 40)
        document = _plant(topic, plants, draw, n_sentences)
        for _, item, _ in plants:
            row = next(row for row in document.rows if row["item_id"] == item.item_id)
            document.rows += _related(item, row, items, document.text or "")
        documents.append(document)
    return documents


def plain_documents(n: int, topics: dict[str, Topic]) -> list[Document]:
    """Documents that hold nothing of any item; one has no text and one an empty text."""
    documents = [Document("letters", "en", None), Document("weather", "en", "")]
    for number in range(n - len(documents)):
        draw = Draw(SEED, "plain", number)
        topic = draw.pick(list(topics.values()))
        text, _ = _render(article(topic, draw, draw.between(4, 44)))
        documents.append(Document(topic.name, topic.language, text))
    return documents


def _grams(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}


def check_only_plants_meet(documents: list[Document], items: list[Item]) -> None:
    """Prove that no document shares eight words in a row with an item it was not given."""
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for item in items:
        for text in (item.asked, "\n".join(item.choices), item.answer):
            for gram in _grams(text):
                owners[gram].add(item.item_id)
    for document in documents:
        known = {row["item_id"] for row in document.rows}
        for gram in _grams(document.text or ""):
            strangers = owners.get(gram, set()) - known
            assert not strangers, f"{document.topic} meets {strangers} by chance: {gram}"


def _metadata(document: Document, document_id: str, draw: Draw) -> dict[str, str | None]:
    source = "code-garden" if document.language == "code" else draw.pick(SOURCES[:4])
    date = FIRST_DAY + dt.timedelta(days=draw.below(2400))
    return {
        "text": document.text,
        "id": document_id,
        "url": None if draw.below(12) == 0 else f"https://{source}.example.org/{document_id}",
        "date": None if draw.below(15) == 0 else date.isoformat(),
        "source": source,
        "language": document.language,
    }


def build() -> tuple[dict[str, pa.Table], list[dict[str, Any]]]:
    """Return the table of every shard and the rows of truth.jsonl.

    Raises:
        AssertionError: a span does not hold what was planted, or an unplanned meeting exists.
    """
    topics = {topic.name: topic for topic in read_topics(HERE / "filler")}
    items = [item for path in sorted((HERE / "items").glob("*.jsonl")) for item in read_items(path)]
    planted = planted_documents(items, topics)
    documents = planted + plain_documents(N_DOCUMENTS - len(planted), topics)
    check_only_plants_meet(documents, items)
    documents = Draw(SEED, "order").sample(documents, len(documents))
    tables, truth, first = {}, [], 0
    for name, n_rows, _, _, columns, text_type in SHARDS:
        draw = Draw(SEED, "metadata", name)
        rows = []
        for row, document in enumerate(documents[first : first + n_rows]):
            document_id = f"doc-{first + row:04d}"
            rows.append(_metadata(document, document_id, draw))
            place = {"document_id": document_id, "shard": name, "row": row}
            truth += [_checked({**found, **place}, document.text or "") for found in document.rows]
        first += n_rows
        types = {column: pa.string() for column in columns.split()} | {"text": text_type}
        schema = pa.schema([(column, types[column]) for column in columns.split()])
        tables[name] = pa.Table.from_pylist(rows, schema=schema)
    assert first == len(documents)
    met = {row["item_id"] for row in truth}
    truth += [_absent(item) for item in items if item.item_id not in met]
    order = {item.item_id: number for number, item in enumerate(items)}
    truth.sort(key=lambda row: (order[row["item_id"]], row["document_id"] or ""))
    return tables, truth


def _checked(row: dict[str, Any], text: str) -> dict[str, Any]:
    span = text[row["char_start"] : row["char_end"]]
    if row["char_start2"] is not None:
        assert row["char_end"] < row["char_start2"], "the halves of a split item must stand apart"
        span += text[row["char_start2"] : row["char_end2"]]
    assert _digest(span) == row["span_sha256"]
    keys = ("item_id", "benchmark", "document_id", "shard", "row", *list(row)[2:])
    return {key: row[key] for key in dict.fromkeys(keys)}


def _absent(item: Item) -> dict[str, Any]:
    nothing = dict.fromkeys(("document_id", "shard", "row", "char_start", "char_end"))
    nothing |= dict.fromkeys(("char_start2", "char_end2"))
    outcome = {"transformation": "absent", "expected": "clean", "exposure": "none", "kind": "none"}
    ids = {"item_id": item.item_id, "benchmark": item.benchmark}
    return {**ids, **nothing, **outcome, "span_sha256": None}


def write(folder: Path) -> None:
    """Write the shards under folder/corpus and folder/truth.jsonl."""
    tables, truth = build()
    for name, _, row_group, codec, _, _ in SHARDS:
        path = folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(tables[name], path, row_group_size=row_group, compression=codec)
    with (folder / "truth.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row) + "\n" for row in truth)
    n_chars = sum(len(t or "") for table in tables.values() for t in table["text"].to_pylist())
    print(f"{N_DOCUMENTS} documents, {n_chars} characters, {len(truth)} rows of truth in {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the fixture corpus and its truth.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write into")
    write(parser.parse_args().out)
