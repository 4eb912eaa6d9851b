"""A small corpus of several formats in which some documents hold benchmark items."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

_QUESTIONS = {
    "orchard": (
        "How many red apples did the tired farmer carry home before the storm reached the valley?",
        "If a cart holds forty pears and nine fall on each bridge, what is left after six bridges?",
        "Which twin planted more walnut trees when Ada dug twelve holes a day and Ben only seven?",
        "What share of the plum harvest rotted after frost took a third and wasps ate one eighth?",
        "When will both wells be full if one needs eleven hours and its neighbour needs fifteen?",
    ),
    "harbour": (
        "Why did the lighthouse keeper mend nets beside the old pier while gulls stole his bread?",
        "Who first measured the tide at this quay with a knotted rope and a bucket of wet sand?",
        "Where do migrating eels rest between the salt marsh and the deep channel under the mill?",
    ),
}
ITEMS = {
    name: [
        {"id": f"{name[0]}{number}", "question": question, "answer": f"{number + 40} {name}s"}
        for number, question in enumerate(questions)
    ]
    for name, questions in _QUESTIONS.items()
}
_OTHER = (
    "Rain fell on the library roof all evening, so the students stayed inside and argued about "
    "maps, mountains and the price of paper. "
)
N_ROWS = 120


def question(benchmark, number):
    return ITEMS[benchmark][number]["question"]


def whole(benchmark, number):
    item = ITEMS[benchmark][number]
    return f"{item['question']} {item['answer']}"


def documents(planted, n_rows=N_ROWS):
    """Texts of `n_rows` documents, all different; planted  row -> what stands in it."""
    return [
        f"é😀 {_OTHER}{planted.get(row, '')} Note {row}. {_OTHER}" if row in planted
        else f"{_OTHER}Note {row}."
        for row in range(n_rows)
    ]  # fmt: skip


#: shard -> row -> what stands in it
PLANTED = {
    "a.parquet": {
        5: whole("orchard", 0), 6: whole("orchard", 0), 60: whole("orchard", 1),
        61: whole("orchard", 0) + " " + whole("harbour", 0),
    },
    "b.jsonl": {0: whole("orchard", 1), 119: whole("harbour", 1)},
    "more/c.jsonl.gz": {30: whole("orchard", 2)},
    "more/d.arrow": {100: whole("harbour", 0)},
    "more/chats.parquet": {2: whole("orchard", 3)},
    "more/nothing.parquet": {},
}  # fmt: skip
N_PLANTED = sum(map(len, PLANTED.values()))


def write_items(folder):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, items in ITEMS.items():
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(item) + "\n" for item in items))
        paths.append(path)
    return paths


def write_corpus(folder):
    for name, planted in PLANTED.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = documents(planted)
        table = pa.table(
            {
                "id": [f"{path.stem}-{row}" for row in range(N_ROWS)],
                "text": texts,
                "source": ["web" if row % 2 else "books" for row in range(N_ROWS)],
                "score": [row / 7 for row in range(N_ROWS)],
            }
        )
        if "chats" in name:
            turns = [
                [{"role": "user", "content": "Hello 😀"}, {"role": "assistant", "content": text}]
                for text in texts
            ]
            table = table.set_column(1, "messages", [turns])
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
        if path.suffix == ".parquet":
            pq.write_table(table, path, row_group_size=25, compression="zstd")
        elif path.suffix == ".arrow":
            with ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=25)
        elif path.suffix == ".gz":
            path.write_bytes(gzip.compress(lines.encode(), mtime=0))
        else:
            path.write_text(lines)
    return folder


def rows_of(path):
    """All rows of a shard, as dictionaries."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".arrow":
        with ipc.open_file(path) as reader:
            return reader.read_all().to_pylist()
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return [json.loads(line) for line in raw.splitlines()]


def text_of(row):
    return row["text"] if "text" in row else "\n".join(t["content"] for t in row["messages"])


def tree(folder):
    """All files below a folder and their bytes, without what differs between equal runs."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    if "clean.json" in found:
        record = json.loads(found["clean.json"])
        del record["timings"]
        found["clean.json"] = json.dumps(record).encode()
    return found
