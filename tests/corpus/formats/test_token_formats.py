"""Token ids of whatever format give what the text gives they were made from, and never a wrong `clean`."""

import itertools
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from tokenizers import Tokenizer

import contam
from contam.cleaning.clean import clean
from contam.corpus import opening
from contam.corpus.batches import read_chunk
from contam.corpus.documents import read_documents
from contam.corpus.formats import token_file
from contam.corpus.formats.jsonl import JsonLines
from contam.corpus.shards import survey
from contam.corpus.tokens import settled
from contam.errors import ContamError, UsageError
from contam.index.build import build
from contam.index.change import add
from contam.index.recipe import load_recipe
from contam.tables.blocks import TextBlock, texts_of
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items
from tests.matrix import sampled

FIXTURES = Path(__file__).resolve().parents[3] / "bench_fixtures"
PACKAGES = FIXTURES / "tokens"
TOKENIZER = PACKAGES / "tokenizer.json"
ITEMS = FIXTURES / "items"
HOW = {"tokenizer": str(TOKENIZER)}
END = 0
TEXTS = [FILLER * 3, f"{FILLER}{QUESTION} {FILLER}", "Ünï çødé ☃ 漢字 " + FILLER, FILLER * 9]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    return tmp_path / "corpus"


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


def encoded(texts, path=TOKENIZER):
    return [one.ids for one in Tokenizer.from_file(str(path)).encode_batch(list(texts))]


def flat(ids, dtype, *, first=False):
    """All documents one behind the other, an end token behind each, or before each as llm.c has it."""
    return np.array([t for one in ids for t in ((END, *one) if first else (*one, END))], dtype)


def rows_of(ids, size):
    tokens = flat(ids, np.int32)
    return [tokens[at : at + size].tolist() for at in range(0, len(tokens), size)]


def raw(folder, ids, dtype="<u2"):
    flat(ids, dtype).tofile(folder / "part.bin")


def llm_c(folder, ids, magic=20240520, dtype="<u2"):
    tokens = flat(ids, dtype, first=True)
    head = np.zeros(256, "<i4")
    head[:3] = magic, 1, len(tokens)
    (folder / "part.bin").write_bytes(head.tobytes() + tokens.tobytes())


def olmo(folder, ids):
    """A memory map called .npy, with a table of the documents beside it."""
    flat(ids, "<u2").tofile(folder / "part.npy")
    table = "".join(f"{n},{n + 1},doc-{n}\n" for n in range(len(ids)))
    (folder / "part.csv.gz").write_bytes(table.encode())


def megatron(folder, ids, n_bytes=2):
    tokens = flat(ids, f"<u{n_bytes}" if n_bytes == 2 else "<i4")
    tokens.tofile(folder / "part.bin")
    sizes = np.array([len(one) + 1 for one in ids], "<i4")
    places = ((np.cumsum(sizes) - sizes) * n_bytes).astype("<i8")
    head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, {2: 8, 4: 4}[n_bytes], len(ids), len(ids) + 1)
    index = sizes.tobytes() + places.tobytes() + np.arange(len(ids) + 1, dtype="<i8").tobytes()
    (folder / "part.idx").write_bytes(head + index)


def datatrove(folder, ids):
    flat(ids, "<u2").tofile(folder / "part.ds")
    np.cumsum([len(one) + 1 for one in ids]).astype("<u8").tofile(folder / "part.ds.index")


def table(folder, ids, name="input_ids", kind=None):
    kind = kind or pa.list_(pa.int32())
    column = pa.array([[*one, END] for one in ids], kind)
    meta = [f"doc-{n}" for n in range(len(ids))]
    pq.write_table(pa.table({name: column, "id": meta}), folder / "part.parquet", row_group_size=2)


def arrow(folder, ids):
    column = pa.array([[*one, END] for one in ids], pa.large_list(pa.uint16()))
    feather.write_feather(pa.table({"tokens": column}), folder / "part.arrow")


def lines(folder, ids):
    text = "".join(json.dumps({"input_ids": one}) + "\n" for one in ids)
    (folder / "part.jsonl").write_text(text)


def matrix(folder, ids):
    longest = max(map(len, ids)) + 1
    np.save(
        folder / "part.npy",
        np.array([[*one] + [END] * (longest - len(one)) for one in ids], np.uint32),
    )


FORMATS = {
    "nanogpt": raw,
    "nanogpt-4": lambda folder, ids: raw(folder, ids, "<u4"),
    "llm.c": llm_c,
    "llm.c-3": lambda folder, ids: llm_c(folder, ids, 20240801, "<u4"),
    "olmo": olmo,
    "numpy": lambda folder, ids: np.save(folder / "part.npy", flat(ids, np.int64)),
    "matrix": matrix,
    "megatron": megatron,
    "megatron-4": lambda folder, ids: megatron(folder, ids, 4),
    "datatrove": datatrove,
    "parquet": table,
    "parquet-tokens": lambda folder, ids: table(folder, ids, "tokens", pa.list_(pa.uint16())),
    "arrow": arrow,
    "jsonl": lines,
}


def evidence(result):
    """What proves each item: its part, and the places in the text."""
    names = ("item_id", "part", "row", "document_start", "document_end", "n_tokens")
    return sorted(tuple(row[name] for name in names) for row in result.evidence.to_pylist())


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gives_what_its_text_gives(tmp_path, corpus, items, name):
    FORMATS[name](corpus, encoded(TEXTS))
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "text.parquet")
    wanted = contam.scan(tmp_path / "text.parquet", items, workers=1)
    found = contam.scan(corpus, items, columns=HOW, workers=1)
    assert labels(found) == labels(wanted) == {"q0": "contaminated", "q1": "clean"}
    assert evidence(found) == evidence(wanted)
    assert found.coverage["rows"] == len(TEXTS)
    # The token is the one that holds the first character of what was found.
    at_row = name in {"parquet", "parquet-tokens", "arrow", "jsonl"}
    ids = encoded(TEXTS)
    for row in found.evidence.to_pylist():
        before = 0 if at_row else sum(len(one) + 1 for one in ids[: row["row"]]) + ("llm" in name)
        if name != "matrix":
            own = ids[row["row"]][: row["document_token"] - before]
            assert len(Tokenizer.from_file(str(TOKENIZER)).decode(own)) <= row["document_start"]
    build(corpus, tmp_path / "index", load_recipe("complete"), columns=HOW, workers=1)
    answer = contam.query(tmp_path / "index", items)
    assert labels(answer) == labels(found)
    assert evidence(answer) == evidence(found)
    assert (
        answer.evidence.column("document_token").to_pylist()
        == found.evidence.column("document_token").to_pylist()
    )


@pytest.mark.parametrize("folder", ["megatron", "datatrove", "mds", "mds-packed"])
def test_what_the_packages_write_gives_what_the_text_gives(tmp_path, folder):
    texts = [
        text
        for text in pq.read_table(FIXTURES / "corpus" / "part-000.parquet")["text"].to_pylist()
        if text
    ]
    pq.write_table(pa.table({"text": texts[:60]}), tmp_path / "text.parquet")
    wanted = contam.scan(tmp_path / "text.parquet", ITEMS, workers=1)
    found = contam.scan(PACKAGES / folder, ITEMS, columns=HOW, workers=2)
    assert labels(found) == labels(wanted)
    if folder != "mds-packed":
        assert evidence(found) == evidence(wanted)


@pytest.mark.parametrize(
    ("size", "write"),
    sampled(
        5,
        itertools.product(
            [64, 100, 257], ["parquet", "two parquets", "arrow", "numpy", "two bins", "jsonl"]
        ),
    ),
)
def test_what_is_cut_by_the_end_of_a_row_or_file_is_found(tmp_path, corpus, items, write, size):
    ids = encoded([FILLER * 2, FILLER * 5 + QUESTION + " " + FILLER, FILLER * 3])
    rows = rows_of(ids, size)
    at = len(encoded([FILLER * 2])[0]) + 1 + len(encoded([FILLER * 5])[0])
    # The question lies across the end of the first file.
    cut = (at + 20) // size + 1 if size > 64 else (at + 20) // size + (at % size < 40)
    if write == "numpy":
        full = [row for row in rows if len(row) == size]
        np.save(corpus / "a.npy", np.array(full, np.uint16))
    elif write == "two bins":
        tokens = flat(ids, "<u2")
        tokens[: at + 20].tofile(corpus / "a-1.bin")
        tokens[at + 20 :].tofile(corpus / "a-2.bin")
    elif write == "jsonl":
        (corpus / "a.jsonl").write_text("".join(json.dumps({"tokens": row}) + "\n" for row in rows))
    elif write == "arrow":
        feather.write_feather(pa.table({"input_ids": rows}), corpus / "a.arrow")
    else:
        some = {"a-1": rows[:cut], "a-2": rows[cut:]} if "two" in write else {"a": rows}
        for name, part in some.items():
            pq.write_table(
                pa.table({"input_ids": part}), corpus / f"{name}.parquet", row_group_size=2
            )
    results = [contam.scan(corpus, items, columns=HOW, workers=workers) for workers in (1, 2)]
    assert labels(results[0]) == {"q0": "contaminated", "q1": "clean"}
    assert results[0].evidence.equals(results[1].evidence)
    build(corpus, tmp_path / "index", load_recipe("complete"), columns=HOW, workers=1)
    assert evidence(contam.query(tmp_path / "index", items)) == evidence(results[0])


@pytest.mark.parametrize(
    ("size", "write"),
    sampled(3, itertools.product([7, 90, 700], ["parquet", "arrow", "jsonl", "two jsonls"])),
)
def test_packed_rows_are_the_same_in_any_chunks_and_when_read_again(
    tmp_path, monkeypatch, write, size
):
    rows = rows_of(encoded([FILLER * 40, *TEXTS, FILLER * 40]), size)
    half = len(rows) // 2
    parts = {"a": rows[:half], "b": rows[half:]} if "two" in write else {"a": rows}
    for name, part in parts.items():
        if "jsonl" in write:
            lines = "".join(json.dumps({"tokens": row}) + "\n" for row in part)
            (tmp_path / f"{name}.jsonl").write_text(lines)
        elif write == "arrow":
            with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out:
                found = pa.table({"input_ids": part})
                with pa.ipc.new_file(out, found.schema) as writer:
                    writer.write_table(found, max_chunksize=3)
        else:
            pq.write_table(pa.table({"input_ids": part}), tmp_path / "a.parquet", row_group_size=3)
    read = []
    for chunk_bytes in (opening.CHUNK_BYTES, 900):
        monkeypatch.setattr(opening, "CHUNK_BYTES", chunk_bytes)
        opened = opening.open_shards(survey([tmp_path])[0], None, settled(HOW))
        texts = [[] for _ in opened.shards]
        for chunk in opened.chunks:
            for batch in read_chunk(chunk, opened.shards, opened.selections):
                texts[batch.shard] += texts_of(TextBlock(batch.data, batch.offsets, 0, 0, 0))
        read.append((len(opened.chunks), texts))
    (few, whole), (many, cut) = read
    assert many > 2 * few
    assert cut == whole
    for shard, selection, texts in zip(opened.shards, opened.selections, whole, strict=True):
        assert [one.text for one in read_documents(shard, selection, range(len(texts)))] == texts


@pytest.mark.parametrize("size", [7, 90, None])
def test_of_lines_of_token_ids_only_those_that_are_needed_are_understood(
    tmp_path, monkeypatch, size
):
    found = encoded([FILLER * 3, *TEXTS] * 200)
    rows = rows_of(found, size) if size else [[*one, END] for one in found]
    lines = "".join(json.dumps({"tokens": row}) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    (shard,), _ = survey([tmp_path])
    opened = opening.open_shards([shard], None, settled(HOW))
    (selection,) = opened.selections
    assert selection.text.tokens.packed == bool(size)
    whole = [one.text for one in read_documents(shard, selection, range(len(rows)))]
    real, understood = JsonLines.record, []
    monkeypatch.setattr(
        JsonLines, "record", lambda *given: understood.append(given[2]) or real(*given)
    )
    for wanted in ([5], [3, 400, 401, 900], [len(rows) - 1]):
        understood.clear()
        chosen = [one.text for one in read_documents(shard, selection, wanted)]
        assert chosen == [whole[row] for row in wanted]
        assert set(wanted) <= set(understood)
        assert len(understood) <= 80 * len(wanted)


@pytest.mark.parametrize("name", ["nanogpt", "llm.c", "megatron", "parquet", "jsonl"])
def test_another_tokenizer_makes_nothing_clean(tmp_path, items, name):
    corpus, other = tmp_path / "corpus", tmp_path / "other.json"
    corpus.mkdir()
    FORMATS[name](corpus, encoded(TEXTS * 3))
    state = json.loads(TOKENIZER.read_text())
    vocabulary = state["model"]["vocab"]
    # Of the same size, with the same pieces.
    names = [
        piece for piece, number in sorted(vocabulary.items(), key=lambda one: one[1]) if number
    ]
    state["model"]["vocab"] = {
        **vocabulary,
        **{p: 1 + (n + 7) % len(names) for n, p in enumerate(names)},
    }
    other.write_text(json.dumps(state))
    for columns in ({"tokenizer": str(other)}, None):
        with pytest.raises(ContamError):
            contam.scan(corpus, items, columns=columns, workers=1)


def test_a_tokenizer_that_changed_reads_nothing(corpus, items):
    megatron(corpus, encoded(TEXTS))
    with pytest.raises(ContamError):
        contam.scan(corpus, items, columns={**HOW, "tokenizer_sha256": "0" * 64}, workers=1)


@pytest.mark.parametrize("special", ["", "1500"])
def test_an_id_outside_of_the_vocabulary_is_named_with_its_place(corpus, items, special):
    ids = encoded(TEXTS * 9)
    ids[30] = [*ids[30][:12], 1500, *ids[30][12:]]
    table(corpus, ids)
    columns = {**HOW, **({"special": special} if special else {})}
    found = contam.scan(corpus, items, columns=columns, workers=1)
    if special:
        assert labels(found) == {"q0": "contaminated", "q1": "clean"}
    else:
        assert labels(found)["q1"] == "not_checkable"
        assert "row 30, token 12" in json.dumps(found.run["coverage"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["megatron", "datatrove", "parquet", "numpy", "mds", "mds-packed"])
def test_a_file_that_is_cut_makes_nothing_clean(tmp_path, items, name):
    corpus = tmp_path / "corpus"
    if name in FORMATS:
        corpus.mkdir()
        FORMATS[name](corpus, encoded(TEXTS * 6))
    else:
        shutil.copytree(PACKAGES / name, corpus)
    for path in sorted(corpus.iterdir()):
        data = path.read_bytes()
        if path.name == "index.json":
            continue
        for length in sorted(
            {0, 1, 7, len(data) // 3, len(data) // 2, len(data) - 3, len(data) - 1}
        ):
            path.write_bytes(data[:length])
            try:
                found = labels(contam.scan(corpus, items, columns=HOW, workers=1))
            except ContamError:
                continue
            # An index of no documents, or one that ends where a document does, does not fit its file.
            assert "clean" not in found.values(), (path.name, length)
        path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["megatron", "datatrove", "mds"])
def test_no_flipped_bit_of_an_index_moves_what_is_found(tmp_path, items, name):
    corpus = tmp_path / "corpus"
    if name == "mds":
        shutil.copytree(PACKAGES / name, corpus)
        path, n = corpus / "shard.00000.mds", 300
    else:
        corpus.mkdir()
        FORMATS[name](corpus, encoded(TEXTS))
        path = next(path for path in corpus.iterdir() if path.suffix in {".idx", ".index"})
        n = path.stat().st_size
    whole = labels(contam.scan(corpus, items, columns=HOW, workers=1))
    data = path.read_bytes()
    random = np.random.default_rng(3)
    for at in random.choice(n, 24, replace=False).tolist():
        path.write_bytes(
            data[:at] + bytes([data[at] ^ (1 << int(random.integers(8)))]) + data[at + 1 :]
        )
        try:
            found = labels(contam.scan(corpus, items, columns=HOW, workers=1))
        except ContamError:
            continue
        # Documents may be cut elsewhere; what is in them is read all the same.
        assert found["q0"] in {whole["q0"], "not_checkable"}, at


@pytest.mark.parametrize("name", ["megatron", "datatrove"])
def test_an_index_without_its_ids_is_a_shard_that_was_not_read(corpus, items, name):
    FORMATS[name](corpus, encoded([FILLER * 3]))
    pq.write_table(pa.table({"text": [FILLER]}), corpus / "a.parquet")
    for path in list(corpus.glob("part*")):
        shutil.copy(path, corpus / path.name.replace("part", "lost"))
    ids = ".bin" if name == "megatron" else ".ds"
    (corpus / f"lost{ids}").unlink()
    found = contam.scan(corpus, items, columns=HOW, workers=1)
    assert set(labels(found).values()) == {"not_checkable"}


def test_documents_are_listed_with_their_tokens_and_not_written(tmp_path, corpus, items):
    ids = encoded(TEXTS)
    datatrove(corpus, ids)
    with pytest.raises(UsageError):
        clean(corpus, items, tmp_path / "out", columns=HOW)
    clean(corpus, items, tmp_path / "out", columns=HOW, action="list")
    (row,) = pq.read_table(tmp_path / "out" / "removed" / "part.ds.parquet").to_pylist()
    assert row["row"] == 1
    assert (row["first_token"], row["last_token"]) == (
        len(ids[0]) + 1,
        len(ids[0]) + 1 + len(ids[1]),
    )


def test_models_beside_shards_are_left_out_by_name(corpus, items):
    pq.write_table(pa.table({"text": TEXTS}), corpus / "a.parquet")
    (corpus / "pytorch_model.bin").write_bytes(b"PK\x03\x04" + bytes(400))
    (corpus / "other.bin").write_bytes(bytes(range(256)) * 4)
    np.save(corpus / "vectors.npy", np.zeros((4, 4), np.float32))
    found = contam.scan(corpus, items, workers=1)
    assert labels(found) == {"q0": "contaminated", "q1": "clean"}
    skipped = {Path(one["path"]).name for one in found.run["inputs"]["skipped_files"]}
    assert skipped == {"pytorch_model.bin", "other.bin", "vectors.npy"}


def alone(folder):
    """Megatron without its index."""
    raw(folder, encoded(TEXTS))
    (folder / "part.bin").rename(folder / "a.bin")
    megatron(folder, encoded(TEXTS[:1]))


def begins(folder, head):
    """Ids whose first bytes other files have too."""
    tokens = np.append(np.array([head], "<u2"), flat(encoded(TEXTS), "<u2"))
    tokens.tofile(folder / "a.bin")
    flat(encoded(TEXTS[:1]), "<u2").tofile(folder / "b.bin")


def big_endian(folder):
    np.save(folder / "a.npy", flat(encoded(TEXTS), ">u2"))
    np.save(folder / "b.npy", flat(encoded(TEXTS[:1]), "<u2"))


def with_an_empty_row(folder):
    lines(folder, [[], *encoded(TEXTS)])


def rows_of_a_book(folder):
    """A document longer than its rows, of which the last is shorter."""
    (ids,) = encoded([FILLER * 5 + QUESTION + " " + FILLER * 2])
    at = (len(encoded([FILLER * 5])[0]) + 20) // 2
    rows = [ids[n : n + at] for n in range(0, len(ids), at)]
    pq.write_table(pa.table({"input_ids": rows}), folder / "a.parquet")


def repeated(folder):
    """A text that repeats itself, with tokens at its joints that it would not have there."""
    tokens = np.concatenate(encoded([TEXTS[0], *TEXTS[2:]] * 20))
    np.concatenate([tokens, *encoded(TEXTS[1:2])]).astype("<u2").tofile(folder / "a.bin")


ODD = {
    "repeated": repeated,
    "alone": alone,
    "begins like a pickle": lambda folder: begins(folder, 0x280),
    "begins like JSON": lambda folder: begins(folder, 0x7B),
    "big-endian": big_endian,
    "empty row": with_an_empty_row,
    "book": rows_of_a_book,
}


@pytest.mark.parametrize("name", ODD)
def test_ids_are_read_however_they_lie(corpus, items, name):
    ODD[name](corpus)
    found = labels(contam.scan(corpus, items, columns=HOW, workers=1))
    assert found == {"q0": "contaminated", "q1": "clean"}


def test_documents_that_an_index_ends_do_not_run_on(tmp_path, items):
    ids = encoded(TEXTS)
    np.concatenate(ids).astype("<u2").tofile(tmp_path / "part.ds")
    np.cumsum([len(one) for one in ids]).astype("<u8").tofile(tmp_path / "part.ds.index")
    found = contam.scan(tmp_path / "part.ds", items, columns=HOW, workers=1)
    assert found.evidence.column("row").to_pylist() == [1]


def test_ids_beside_text_are_not_left_out_where_ids_are_wanted(tmp_path, corpus, items):
    pq.write_table(pa.table({"text": TEXTS[:1]}), corpus / "a.parquet")
    raw(corpus, encoded(TEXTS))
    with pytest.raises(ContamError):
        contam.scan(corpus, items, columns=HOW, workers=1)
    with pytest.raises(ContamError):
        build(corpus, tmp_path / "index", load_recipe("complete"), columns=HOW, workers=1)
    found = contam.scan([corpus, corpus / "part.bin"], items, columns=HOW, workers=1)
    assert labels(found)["q0"] == "contaminated"


@pytest.mark.parametrize("name", ["llm.c", "megatron", "matrix"])
def test_the_size_of_groups_changes_nothing(corpus, items, monkeypatch, name):
    FORMATS[name](corpus, encoded(TEXTS))
    whole = contam.scan(corpus, items, columns=HOW, workers=1)
    monkeypatch.setattr(token_file, "GROUP", 64)
    monkeypatch.setattr(token_file, "_STEP", 5)
    token_file._counted.cache_clear()
    found = contam.scan(corpus, items, columns=HOW, workers=2)
    token_file._counted.cache_clear()
    assert found.evidence.equals(whole.evidence)
    assert found.coverage["rows"] == whole.coverage["rows"]


@pytest.mark.parametrize("width", ["int32", "uint16"])
def test_bytes_of_another_width_are_not_passed_over(tmp_path, items, width):
    ids = [np.array([*one, END], width).tobytes() for one in encoded(TEXTS)]
    fields = ["tokens"], ["bytes"], [None]
    about = json.dumps(
        dict(zip(("column_names", "column_encodings", "column_sizes"), fields, strict=True))
    ).encode()
    records = [len(one).to_bytes(4, "little") + one for one in ids]
    offsets = np.cumsum([4 * (len(ids) + 2) + len(about), *map(len, records)]).astype("<u4")
    head = len(ids).to_bytes(4, "little") + offsets.tobytes()
    (tmp_path / "shard.mds").write_bytes(head + about + b"".join(records))
    try:
        found = contam.scan(tmp_path / "shard.mds", items, text="tokens", columns=HOW, workers=1)
    except ContamError:
        return
    assert "clean" not in labels(found).values()


def test_an_index_of_tokens_takes_more_of_them(tmp_path, items):
    corpus, more = tmp_path / "corpus", tmp_path / "more"
    for folder, texts in ((corpus, [FILLER * 3]), (more, TEXTS)):
        folder.mkdir()
        datatrove(folder, encoded(texts))
        (folder / "part.ds").rename(folder / f"{folder.name}.ds")
        (folder / "part.ds.index").rename(folder / f"{folder.name}.ds.index")
    build(corpus, tmp_path / "index", load_recipe("complete"), columns=HOW, workers=1)
    assert labels(contam.query(tmp_path / "index", items))["q0"] == "clean"
    add(tmp_path / "index", more, workers=1)
    assert labels(contam.query(tmp_path / "index", items))["q0"] == "contaminated"
