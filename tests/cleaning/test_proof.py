"""What is written wrong is refused: nothing is published."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.cleaning.choice import Choice
from contam.corpus.formats.registry import FORMATS
from contam.errors import ContamError
from tests.cleaning.inputs import N_ROWS, PLANTED, write_corpus
from tests.matrix import sampled

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


def changed(change):
    """Write rows again with something changed in them, in the layout that they had."""

    def work(write, source, target, edits):
        done = write(source, target, edits)
        table = change(pq.read_table(target))
        target.unlink()
        pq.write_table(table, target, row_group_size=25, compression="zstd")
        return done

    return work


def swapped_rows(table):
    return pa.concat_tables(
        [table.slice(0, 90), table.slice(91, 1), table.slice(90, 1), table.slice(92)]
    )


def swapped_columns(table):
    return table.set_column(0, "id", table["source"]).set_column(2, "source", table["id"])


def other_schema(table):
    return table.replace_schema_metadata({"made by": "another"})


def other_type(table):
    return table.set_column(1, "text", table["text"].cast(pa.large_string()))


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
CHANGED = {
    "rows swapped": changed(swapped_rows),
    "columns swapped": changed(swapped_columns),
    "other metadata": changed(other_schema),
    "another type": changed(other_type),
    "rows lost": changed(lambda table: table.slice(0, len(table) - 25)),
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

    def wrong(self, path, target, how):
        n_calls.append(len(how.edits))

        def write(source, target, edits):
            return right(self, source, target, replace(how, edits=edits))

        return mistake(write, path, target, how.edits)

    monkeypatch.setattr(type(kind), "rewrite", wrong)
    with pytest.raises(ContamError) as told:
        contam.clean(tmp_path / "corpus", items, tmp_path / "out", action=action)
    assert n_calls == [len(PLANTED[name])]
    assert not (tmp_path / "out").exists()
    return str(told.value)


@pytest.mark.parametrize(
    ("mistake", "action", "name"), sampled(5, itertools.product(ANY, ["drop", "mask"], NAMES))
)
def test_what_is_written_wrong_is_refused(monkeypatch, tmp_path, items, name, action, mistake):
    assert name in cleaned_wrong(monkeypatch, tmp_path, items, name, action, ANY[mistake])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mistake", MASKED)
def test_a_text_that_is_edited_wrong_is_refused(monkeypatch, tmp_path, items, name, mistake):
    assert name in cleaned_wrong(monkeypatch, tmp_path, items, name, "mask", MASKED[mistake])


@pytest.mark.parametrize("action", ["drop", "mask"])
@pytest.mark.parametrize("mistake", CHANGED)
def test_a_table_that_differs_anywhere_is_refused(monkeypatch, tmp_path, items, action, mistake):
    told = cleaned_wrong(monkeypatch, tmp_path, items, "a.parquet", action, CHANGED[mistake])
    assert "a.parquet" in told


@pytest.mark.parametrize("name", NAMES)
def test_a_hit_with_a_wrong_row_is_found_by_searching_again(monkeypatch, tmp_path, items, name):
    right = Choice.documents

    def wrong(self, *given):
        return sorted(one._replace(row=(one.row + 9) % N_ROWS) for one in right(self, *given))

    alone(tmp_path, name)
    monkeypatch.setattr(Choice, "documents", wrong)
    with pytest.raises(ContamError, match="still match"):
        contam.clean(tmp_path / "corpus", items, tmp_path / "out", action="drop")
    assert not (tmp_path / "out").exists()
