"""Counting what was read: sums that do not depend on order."""

import csv
import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

import contam
from contam.corpus.columns import Selection, select_columns
from contam.corpus.coverage import Coverage, CoverageCounter, ShardCoverage, ShardFailure
from contam.corpus.formats.base import Chunk
from contam.corpus.shards import Shard
from contam.detect.query import query
from contam.errors import CorpusError, ShardError
from contam.index.build import build
from tests.corpus_files import find_shards, plan_chunks, select_all

SHARDS = tuple(Shard(f"/c/{i}", f"{i}.parquet", "parquet", 10) for i in range(3))
UNITS = [Chunk(shard, (group,), group, 1, 5) for shard in range(2) for group in range(2)]
START = Coverage.expect(SHARDS, UNITS)


def read(*parts):
    """The coverage once these chunks were read, with these counts."""
    counter = CoverageCounter(START)
    for chunk, counts in parts:
        counter.add_chunk(chunk, counts)
    return counter.coverage()


def test_a_failed_shard_is_never_read_whole():
    coverage = read(*((unit, ShardCoverage(rows=1)) for unit in UNITS))
    assert coverage.complete
    failed = coverage.with_failures(ShardFailure.noted(1, "1.parquet", "cut"))
    assert failed.shards_read == (0, 2)
    assert failed.to_dict()["shards_failed"] == [{"shard": "1.parquet", "reason": "cut"}]
    assert failed.to_dict()["complete"] is False


events = st.lists(
    st.one_of(
        st.builds(
            lambda i, n: read((UNITS[i], ShardCoverage(rows=n, n_bytes=n * 3))),
            st.integers(0, 3),
            st.integers(0, 9),
        ),
        st.builds(
            lambda i, why: START.with_failures(ShardFailure.noted(i, f"{i}.parquet", why)),
            st.integers(0, 2),
            st.sampled_from(["cut", "gone"]),
        ),
    ),
    min_size=3,
    max_size=8,
)


@given(events, st.randoms())
def test_merging_is_associative_and_free_of_order(parts, random):
    left = START
    for part in parts:
        left = left.merge(part)
    shuffled = parts[:]
    random.shuffle(shuffled)
    right = shuffled[-1]
    for part in reversed(shuffled[:-1]):
        right = part.merge(right)
    assert left.to_dict() == START.merge(right).to_dict()


def test_a_text_column_that_no_shard_has_is_an_error(tmp_path):
    for i in range(2):
        pq.write_table(pa.table({"body_html": ["x"]}), tmp_path / f"{i}.parquet")
    with pytest.raises(CorpusError, match="columns seen: body_html"):
        select_all(find_shards([tmp_path]), "text")


def test_only_unreadable_shards_are_failures_not_a_wrong_column(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"nothing of the kind")
    found, failures = select_all(find_shards([tmp_path]))
    assert found == [None]
    assert [failure.name for failure in failures] == ["a.parquet"]
    assert plan_chunks(find_shards([tmp_path]), found) == ([], [])


def test_a_failure_keeps_the_facts_of_its_error_and_travels(tmp_path):
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1")
    shards = find_shards([path])
    _, (failure,) = plan_chunks(shards, Selection(text="text"))
    with pytest.raises(ShardError) as caught:
        raise failure.error()
    error = caught.value
    assert (failure.code, failure.reason) == ("shard", error.message)
    assert (error.shard, error.hints) == ("cut.parquet", failure.hints)
    assert not failure.statement.is_hidden
    assert not failure.statement.without_quotes().is_hidden, "its facts are known"
    assert pickle.loads(pickle.dumps(failure)) == failure  # noqa: S301 - of our own making
    noted = ShardFailure.noted(0, "a.parquet", "a.parquet: gone from 'here'", *failure.hints)
    assert noted.statement.without_quotes().is_hidden, "nobody knows what is in a sentence"


STORIES = [
    f"The {bird} of Varnholt kept {n} brass buttons under the third step of the old mill."
    for n, bird in enumerate(("jackdaw", "magpie", "heron", "bittern", "corncrake", "wryneck"), 3)
]
PAGES = [f"Page {n} of the almanac lists tides, fairs and the price of rope." for n in range(6)]


def turns(*texts):
    return [{"role": "user", "content": text} for text in texts]


SHAPES = {
    "title": lambda story, page: {"text": page, "title": story},
    "meta.abstract": lambda story, page: {"text": page, "meta": {"abstract": story}},
    "messages": lambda story, page: {"text": "short", "messages": turns(story, page)},
    "remark": lambda story, page: {"prompt": page, "response": "yes", "remark": story},
}


def write(folder, rows, suffix):
    folder.mkdir()
    path = folder / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    else:
        save = pq.write_table if suffix == "parquet" else feather.write_feather
        save(pa.Table.from_pylist(rows), path)
    return path


def flag_of(notes):
    (note,) = notes
    return note.partition("--text ")[2].partition("`")[0]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "feather", "csv"])
@pytest.mark.parametrize("column", SHAPES)
def test_an_unread_text_is_named_and_its_flag_finds_what_stands_there(tmp_path, column, suffix):
    rows = [SHAPES[column](*pair) for pair in zip(STORIES, PAGES, strict=True)]
    if suffix == "csv" and any(not isinstance(value, str) for value in rows[0].values()):
        pytest.skip("a cell holds no structure")
    path = write(tmp_path / "corpus", rows, suffix)
    items = [{"question": story} for story in STORIES]
    unread = contam.scan(path, items)
    assert unread.counts()["items"]["contam"]["contaminated"] == 0
    (named,) = unread.run["coverage"]["unread_columns"]
    assert named.startswith(column)
    flag = flag_of(note for note in unread.run["notes"] if column in note)
    found = contam.scan(path, items, text=flag)
    assert found.counts()["items"]["contam"]["contaminated"] == len(STORIES)
    assert not [note for note in found.run["notes"] if column in note]
    assert "unread_columns" not in found.run["coverage"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "feather"])
def test_the_system_column_of_a_chat_is_its_first_turn(tmp_path, suffix):
    rows = [
        {"system": story, "conversations": [{"from": "human", "value": page}]}
        for story, page in zip(STORIES, PAGES, strict=True)
    ]
    found = contam.scan(
        write(tmp_path / "corpus", rows, suffix), [{"question": story} for story in STORIES]
    )
    assert found.counts()["items"]["contam"]["contaminated"] == len(STORIES)
    assert found.run["notes"] == []


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_what_describes_a_document_is_no_text(tmp_path, suffix):
    rows = [
        {
            "text": page, "url": f"https://pages.example/{story.replace(' ', '-')}",
            "license": "to be shared alike by all", "sha": "0123456789abcdef" * 4, "n": str(n),
            "kind": "one of few labels", "word": story.split()[1],
        }
        for n, (story, page) in enumerate(zip(STORIES, PAGES, strict=True))
    ]  # fmt: skip
    (shard,) = find_shards([write(tmp_path / "corpus", rows, suffix)])
    assert select_columns(shard).unread is None


def test_a_parquet_column_that_begins_empty_is_named_by_its_size(tmp_path):
    late = [*[None] * 300, *[STORIES[0] * 5] * 300]
    table = pa.table({"text": [*PAGES] * 100, "later": late})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100, use_dictionary=False)
    unread = select_columns(find_shards([tmp_path])[0]).unread
    assert unread.read == "text"
    assert unread.columns["later"] > 50


def test_columns_that_stand_in_for_each_other_are_all_read(tmp_path):
    rows = [{"text": page, "content": None} for page in PAGES]
    rows += [{"text": None, "content": story} for story in STORIES]
    for suffix in ("jsonl", "parquet"):
        (shard,) = find_shards([write(tmp_path / suffix, rows, suffix)])
        assert select_columns(shard).unread is None


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_records_in_lists_are_named_and_numbers_are_not(tmp_path, suffix):
    rows = [
        {"text": page, "steps": [{"tool": "log", "said": story}], "vector": [0.25] * 900}
        for story, page in zip(STORIES, PAGES, strict=True)
    ]
    found = contam.scan(write(tmp_path / "corpus", rows, suffix), [{"question": STORIES[0]}])
    (note,) = found.run["notes"]
    assert "steps[]" in note
    assert "vector" not in note


def test_an_index_keeps_the_note_of_an_unread_text(tmp_path):
    rows = [SHAPES["title"](*pair) for pair in zip(STORIES, PAGES, strict=True)]
    write(tmp_path / "x", rows, "jsonl")
    (note,) = contam.scan(tmp_path / "x", [{"question": STORIES[0]}]).run["notes"]
    build(tmp_path / "x", tmp_path / "ix")
    assert note in query(tmp_path / "ix", [{"question": STORIES[0]}]).run["notes"]


def test_a_joined_column_that_is_not_there_is_an_error(tmp_path):
    write(tmp_path / "x", [{"text": PAGES[0], "title": STORIES[0]}], "jsonl")
    with pytest.raises(contam.errors.CorpusError, match="titel"):
        contam.scan(tmp_path / "x", [{"question": STORIES[0]}], text="text+titel")
