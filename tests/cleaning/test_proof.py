"""What is written wrong is refused: nothing is published."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.cleaning.choice import Choice
from contam.corpus.formats.registry import FORMATS
from contam.errors import ContamError
from contam.tables.parquet_splice import (
    CHUNK_META,
    META_VALUES,
    Output,
    ParquetBytes,
    Splicer,
    chunks_of,
)
from contam.tables.thrift import I64, Value
from tests.cleaning.inputs import N_ROWS, PLANTED, write_corpus

NAMES = ("a.parquet", "b.jsonl", "more/d.arrow")


def moved(edits, **change):
    """The edits with their first one changed."""
    return [edits[0]._replace(**change), *edits[1:]]


def wrong_row(write, source, target, edits):
    row = edits[0].row + (1 if edits[0].row + 1 not in PLANTED["a.parquet"] else 3)
    return write(source, target, sorted(moved(edits, row=row)))


def one_row_left(write, source, target, edits):
    return write(source, target, edits[1:])


def one_row_too_many(write, source, target, edits):
    return write(source, target, sorted([*edits, edits[0]._replace(row=80, drop=True)]))


def stretch_off_by_one(write, source, target, edits):
    begin, end = edits[0].spans[0]
    return write(source, target, moved(edits, spans=((begin + 1, end + 1), *edits[0].spans[1:])))


def stretch_too_long(write, source, target, edits):
    begin, end = edits[0].spans[0]
    return write(source, target, moved(edits, spans=((begin, end + 1), *edits[0].spans[1:])))


def other_value(row):
    """Write from a shard that has another value in a column that holds no text."""

    def work(write, source, target, edits):
        path = target.with_suffix(f".other{target.suffix}")
        if target.suffix == ".parquet":
            table = pq.read_table(source)
            scores = table["score"].to_pylist()
            scores[row] += 1e-9
            table = table.set_column(3, "score", pa.array(scores))
            pq.write_table(table, path, row_group_size=25, compression="zstd")
        elif target.suffix == ".arrow":
            with pa.ipc.open_file(source) as reader:
                batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            at = row // 25
            scores = batches[at]["score"].to_pylist()
            scores[row % 25] += 1e-9
            batches[at] = batches[at].set_column(3, "score", pa.array(scores))
            with pa.ipc.new_file(path, batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        else:
            rows = [json.loads(line) for line in Path(source).read_text().splitlines()]
            rows[row]["score"] += 1e-9
            lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in rows)
            path.write_text("".join(lines))
        done = write(str(path), target, edits)
        path.unlink()
        return done

    return work


def spliced(change):
    """Put what was written together once more, with its row groups changed."""

    def work(write, source, target, edits):
        done = write(source, target, edits)
        right = target.rename(target.with_suffix(".right"))
        with right.open("rb") as old, target.open("xb") as new:
            file = ParquetBytes.of(old)
            splicer = Splicer(Output(new, target))
            splicer.begin()
            groups = file.groups
            change(groups)
            for group in groups:
                n_rows = group[3].value
                splicer.add(group, n_rows, [(file, chunk) for chunk in chunks_of(group)])
            splicer.end(file.footer)
        right.unlink()
        return done

    return work


def swap_groups(groups):
    # Neither has an edit: both were copied.
    groups[1], groups[3] = groups[3], groups[1]


def swap_columns(groups):
    # Identifiers and sources, both text: their bytes, in each other's place.
    chunks = chunks_of(groups[1])
    chunks[0], chunks[2] = chunks[2], chunks[0]


def tell_of_more_values(groups):
    meta = chunks_of(groups[1])[3][CHUNK_META].value
    meta[META_VALUES] = Value(I64, meta[META_VALUES].value + 1)


def lose_a_group(groups):
    del groups[3]


ANY = {
    "wrong row": wrong_row,
    "one row left": one_row_left,
    "one row too many": one_row_too_many,
    "other value": other_value(90),
}
MASKED = {
    "stretch off by one": stretch_off_by_one,
    "stretch too long": stretch_too_long,
    "other value of an edited row": other_value(5),
}
SPLICED = {
    "row groups swapped": spliced(swap_groups),
    "columns swapped": spliced(swap_columns),
    "more values": spliced(tell_of_more_values),
    "a row group is lost": spliced(lose_a_group),
}


def alone(folder, name):
    """A corpus of one shard."""
    shard = folder / "corpus" / name
    shard.parent.mkdir(parents=True)
    (write_corpus(folder / "whole") / name).rename(shard)
    return shard


def cleaned_wrong(monkeypatch, tmp_path, items, name, action, mistake):
    """Clean a corpus of one shard whose writer makes a mistake; returns what it was told."""
    shard = alone(tmp_path, name)
    kind = next(kind for kind in FORMATS if shard.suffix in kind.suffixes)
    right, n_calls = type(kind).rewrite, []

    def wrong(self, path, target, edits, sources, *, replacement):
        n_calls.append(len(edits))

        def write(source, target, edits):
            return right(self, source, target, edits, sources, replacement=replacement)

        return mistake(write, path, target, edits)

    monkeypatch.setattr(type(kind), "rewrite", wrong)
    with pytest.raises(ContamError) as told:
        contam.clean(tmp_path / "corpus", items, tmp_path / "out", action=action)
    assert n_calls == [len(PLANTED[name])]
    assert not (tmp_path / "out").exists()
    return str(told.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("action", ["drop", "mask"])
@pytest.mark.parametrize("mistake", ANY)
def test_what_is_written_wrong_is_refused(monkeypatch, tmp_path, items, name, action, mistake):
    assert name in cleaned_wrong(monkeypatch, tmp_path, items, name, action, ANY[mistake])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mistake", MASKED)
def test_a_text_that_is_edited_wrong_is_refused(monkeypatch, tmp_path, items, name, mistake):
    assert name in cleaned_wrong(monkeypatch, tmp_path, items, name, "mask", MASKED[mistake])


@pytest.mark.parametrize("action", ["drop", "mask"])
@pytest.mark.parametrize("mistake", SPLICED)
def test_parts_of_a_file_in_the_wrong_place_are_refused(
    monkeypatch, tmp_path, items, action, mistake
):
    told = cleaned_wrong(monkeypatch, tmp_path, items, "a.parquet", action, SPLICED[mistake])
    assert "a.parquet" in told


@pytest.mark.parametrize("name", NAMES)
def test_a_hit_with_a_wrong_row_is_found_by_searching_again(monkeypatch, tmp_path, items, name):
    right = Choice.documents

    def wrong(self, hits):
        return sorted(one._replace(row=(one.row + 9) % N_ROWS) for one in right(self, hits))

    alone(tmp_path, name)
    monkeypatch.setattr(Choice, "documents", wrong)
    with pytest.raises(ContamError, match="still match"):
        contam.clean(tmp_path / "corpus", items, tmp_path / "out", action="drop")
    assert not (tmp_path / "out").exists()
