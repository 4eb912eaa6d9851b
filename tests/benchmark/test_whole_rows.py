"""Every text that tells the rows of a benchmark apart is part of its item, or named."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.benchmark.rows import read_item
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import WriteRows

    from contam.benchmark.items import Benchmark

_WORDS = [
    "kelp", "barge", "sexton", "lantern", "turnip", "quarry", "heron", "saddle", "cobbler",
    "orchard", "thistle", "anvil", "magpie", "ferry", "gravel", "bramble", "pulpit", "otter",
    "cinder", "loom", "mortar", "parsnip", "weir", "tallow", "hamlet", "furrow",
]  # fmt: skip
SHARED = "Which of the two keepers is right about the lamp?"
N = 12


def story(k: int) -> str:
    chosen = random.Random(k)
    return f"Chapter {k}: " + " ".join(chosen.choices(_WORDS, k=24)) + "."


def own(k: int) -> str:
    chosen = random.Random(1000 + k)
    return f"Why did the {' '.join(chosen.sample(_WORDS, 8))} of {chr(97 + k) * 4}ton matter?"


def only(path: Path, **options: Any) -> Benchmark:
    (benchmark,) = read_benchmarks([path], **options)
    return benchmark


def fields(benchmark: Benchmark) -> set[tuple[str, str]]:
    return {pair for pair in benchmark.sources[0].fields if pair[0] != "id"}


@pytest.mark.parametrize("name", ["narrative", "contract", "input", "code", "text", "claim"])
def test_beside_a_question_that_rows_share_a_text_is_what_is_asked(
    write_jsonl: WriteRows, name: str
):
    questions = [SHARED, "What does the chronicle say of salt?", "Who would agree with this?"]
    rows = [{"question": questions[k % 3], name: story(k), "answer": "yes"} for k in range(N)]
    found = only(write_jsonl("tales.jsonl", rows))
    assert fields(found) >= {("question", "question"), ("question", name)}
    for k, item in enumerate(found.items):
        assert story(k) in item.question
        assert questions[k % 3] in item.question
        assert item.passage is None


@pytest.mark.parametrize("name", ["narrative", "flores_passage", "table"])
def test_beside_a_question_of_its_own_a_text_is_passage(write_jsonl: WriteRows, name: str):
    rows = [{"question": own(k), name: story(k), "answer": "no"} for k in range(N)]
    found = only(write_jsonl("tales.jsonl", rows))
    assert [item.question for item in found.items] == [own(k) for k in range(N)]
    assert [item.passage for item in found.items] == [story(k) for k in range(N)]


def test_a_question_that_differs_only_in_its_numbers_is_a_template(write_jsonl: WriteRows):
    rows = [
        {"question": f"Who lives in house {k}?", "puzzle": story(k), "answer": "Olav"}
        for k in range(N)
    ]
    found = only(write_jsonl("houses.jsonl", rows))
    assert all(story(k) in item.question for k, item in enumerate(found.items))


@pytest.mark.parametrize("name", ["rationale", "hint", "rubrics", "metadata", "source_url"])
def test_what_a_name_leaves_out_is_no_part_and_said(write_jsonl: WriteRows, name: str):
    rows = [{"question": own(k), name: story(k), "answer": "no"} for k in range(N)]
    (source,) = only(write_jsonl("quiz.jsonl", rows)).sources
    assert source.left_out == (name,)
    assert source.unread == ()
    assert {field for _, field in source.fields} == {"question", "answer"}


def test_what_is_ignored_is_no_part_and_said(write_jsonl: WriteRows):
    rows = [{"question": own(k), "gloss": story(k), "answer": "no"} for k in range(N)]
    path = write_jsonl("quiz.jsonl", rows)
    (source,) = only(path, ignore=["gloss"]).sources
    assert source.left_out == ("gloss",)
    assert ("passage", "gloss") not in source.fields
    with pytest.raises(BenchmarkError, match="'glos'") as caught:
        only(path, ignore=["glos"])
    assert "gloss" in caught.value.hint


def test_a_template_and_nothing_else_is_never_clean(write_jsonl: WriteRows):
    rows = [
        {"question": SHARED, "hint": story(k), "answer": ["left", "right"][k % 2]} for k in range(N)
    ]
    found = only(write_jsonl("lamps.jsonl", rows))
    assert all("--map" in item.incomplete for item in found.items)
    whole = only(write_jsonl("lamps.jsonl", rows), mapping={"question": "question+hint"})
    assert not any(item.incomplete for item in whole.items)
    assert all(story(k) in item.question for k, item in enumerate(whole.items))


def test_unread_text_that_outweighs_the_rest_makes_an_item_incomplete(write_jsonl: WriteRows):
    rows = [{"ask": {"task": own(k), "notes": story(k)}, "answer": "no"} for k in range(N)]
    mapping = {"question": "ask.task"}
    found = only(write_jsonl("asks.jsonl", rows), mapping=mapping)
    ((unread, share),) = found.sources[0].unread
    assert unread == "ask.notes"
    assert 0.5 < share < 1
    assert all("ask.notes" in item.incomplete for item in found.items)
    told = only(write_jsonl("asks.jsonl", rows), mapping=mapping, ignore=["ask.notes"])
    assert not any(item.incomplete for item in told.items)
    assert told.sources[0].left_out == ("ask.notes",)


CHAT_RULE = {"role": "system", "content": "Answer with one word, and without any explanation."}


@pytest.mark.parametrize("place", ["system", "user, before", "turns", "parts"])
def test_of_chats_what_differs_is_the_item(write_jsonl: WriteRows, place: str):
    last = {"role": "user", "content": "Would the council agree with this text?"}
    chats: dict[str, Any] = {
        "system": lambda k: [CHAT_RULE, {"role": "system", "content": story(k)}, last],
        "user, before": lambda k: [CHAT_RULE, {"role": "user", "content": story(k)}, last],
        "turns": lambda k: [[CHAT_RULE], [{"role": "user", "content": story(k)}], [last]],
        "parts": lambda k: [
            CHAT_RULE,
            {"role": "user", "content": [{"type": "text", "text": story(k)}]},
        ],
    }
    rows = [{"input": chats[place](k), "ideal": "no"} for k in range(N)]
    found = only(write_jsonl("chats.jsonl", rows))
    assert [item.question for item in found.items] == [story(k) for k in range(N)]


def _halves(k: int) -> list[str]:
    text = story(k)
    return [text[:60], text[60:]]


NESTED: dict[str, Any] = {
    "a list": lambda k: {"query": SHARED, "memories": _halves(k)},
    "records in a list": lambda k: {
        "query": SHARED,
        "inbox": [{"from": "a@example.org", "body": half} for half in _halves(k)],
    },
    "a record of names": lambda k: {"query": SHARED, "store": {f"n{k}": story(k)}},
    "a record that is the question": lambda k: {"input": {"task": "Sum up.", "text": story(k)}},
    "deep in a record": lambda k: {"scenario": {"instructions": {"task_instructions": story(k)}}},
}


@pytest.mark.parametrize("name", NESTED)
def test_texts_at_any_depth_are_read(write_jsonl: WriteRows, name: str):
    found = only(write_jsonl("deep.jsonl", [NESTED[name](k) for k in range(N)]))
    for k, item in enumerate(found.items):
        assert all(half in item.question for half in _halves(k)) or story(k) in item.question


@pytest.mark.parametrize("kind", ["json", "jsonl", "key", "frame", "parquet"])
def test_a_table_kept_by_columns_is_a_table(tmp_path: Path, kind: str):
    columns = {"question": [own(k) for k in range(N)], "answer": [str(k) for k in range(N)]}
    frame = {name: dict(enumerate(cells)) for name, cells in columns.items()}
    path = tmp_path / f"quiz.{'parquet' if kind == 'parquet' else kind.replace('key', 'json')}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist([columns]), path)
    else:
        path = path.with_suffix(".jsonl" if kind == "jsonl" else ".json")
        value = {"key": {"data": columns}, "frame": frame}.get(kind, columns)
        path.write_text(json.dumps(value))
    found = only(path)
    assert [item.question for item in found.items] == columns["question"]
    assert [item.answer for item in found.items] == columns["answer"]


@pytest.mark.parametrize("key", ["", "data"])
def test_columns_of_different_lengths_are_no_table(tmp_path: Path, key: str):
    path = tmp_path / "quiz.json"
    columns = {"question": [own(1), own(2)], "answer": ["1"]}
    path.write_text(json.dumps({key: columns} if key else columns))
    with pytest.raises(BenchmarkError, match=r"quiz\.json.* 'answer' is a list of 1 rows"):
        read_benchmarks([path])


CANARY = "# These rows are for tests alone. canary 0000"
BEFORE = {
    "tsv": (f"{CANARY}\n\nquestion\tanswer\n", lambda k: f"{own(k)}\t{k}\n", "tsv"),
    "jsonl": (f"{CANARY}\n", lambda k: json.dumps({"question": own(k)}) + "\n", "jsonl"),
    "csv": ('"Please do not publish",,\n,,\nid,question,answer\n', lambda k: f'{k},"{own(k)}",x\n', "csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE)
def test_what_stands_before_the_data_is_skipped_and_said(tmp_path: Path, name: str):
    head, row, suffix = BEFORE[name]
    path = tmp_path / f"quiz.{suffix}"
    path.write_text(head + "".join(map(row, range(N))))
    found = only(path)
    assert [item.question for item in found.items] == [own(k) for k in range(N)]
    assert [row.line for row in found.skipped] == [1]


def test_items_or_texts_that_stand_twice_under_one_name_are_a_fault(tmp_path: Path):
    path = tmp_path / "quiz.json"
    rows = json.dumps([{"input": own(k), "target": "x"} for k in range(N)])
    others = json.dumps([{"input": story(k), "target": "x"} for k in range(N)])
    for twice, text in (
        ("examples", f'{{"append": 1, "append": 2, "examples": {rows}, "examples": {others}}}'),
        ("input", f'{{"name": "x", "examples": [{{"input": "{own(0)}", "input": "{own(1)}"}}]}}'),
        ("question", f'{{"question": "{own(0)}", "question": "{own(1)}"}}'),
    ):
        path.write_text(text)
        with pytest.raises(BenchmarkError, match=f"'[^']*{twice}' occurs twice"):
            read_benchmarks([path])


@pytest.mark.parametrize("asked", ["", "In which of them does one cause the other?"])
def test_scores_by_choice_where_the_choices_are_the_item(write_jsonl: WriteRows, asked: str):
    rows = [{"input": asked, "target_scores": {story(k): 1, own(k): 0}} for k in range(N)]
    for k, item in enumerate(only(write_jsonl("pairs.jsonl", rows)).items):
        assert item.choices == (story(k), own(k))
        assert item.answer_index == 0
        assert item.question == "\n".join([*([asked] if asked else []), story(k), own(k)])


def test_further_references_are_said_and_the_item_stays_whole(write_jsonl: WriteRows):
    rows = [{"input": own(k), "target": [story(k), story(50 + k)]} for k in range(N)]
    found = only(write_jsonl("sums.jsonl", rows))
    assert [item.answer for item in found.items] == [story(k) for k in range(N)]
    assert [name for name, _ in found.sources[0].unread] == ["target"]
    assert not any(item.incomplete for item in found.items)


SHAPES: dict[str, tuple[Any, str | None, str | None]] = {
    "hotpot": (
        lambda k: {"question": own(k), "context": {"title": ["T"], "sentences": [[story(k)]]}},
        own(0), story(0),
    ),
    "pubmed": (
        lambda k: {"question": own(k), "context": {"contexts": [story(k)], "labels": ["RESULTS"]}},
        own(0), story(0),
    ),
    "narrative": (
        lambda k: {"question": {"text": own(k), "tokens": own(k).split()},
                   "document": {"id": str(k), "summary": {"text": story(k)}},
                   "answers": [{"text": "by boat"}]},
        own(0), story(0),
    ),
    "coqa": (
        lambda k: {"story": story(k), "questions": [{"input_text": own(k)}],
                   "answers": [{"input_text": "x"}]},
        own(0), story(0),
    ),
    "two sentences": (
        lambda k: {"sentence1": own(k), "sentence2": story(k), "label": 1},
        f"{own(0)}\n{story(0)}", None,
    ),
    "issues": (
        lambda k: {"problem_statement": story(k), "patch": "+ a b c d e", "hints_text": own(k)},
        story(0), None,
    ),
    "contests": (
        lambda k: {"name": "x", "description": story(k), "public_tests": {"input": [own(k)]},
                   "solutions": {"language": [1], "solution": ["print(2)"]}},
        story(0), None,
    ),
    "finance": (
        lambda k: {"pre_text": [story(k)], "qa": {"question": own(k), "answer": "3"}},
        own(0), story(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_rows_in_published_shapes_are_read(write_jsonl: WriteRows, name: str):
    row, question, passage = SHAPES[name]
    first = only(write_jsonl("shape.jsonl", [row(k) for k in range(N)])).items[0]
    assert (first.question, first.passage) == (question, passage)


CONTAINERS: dict[str, Any] = {
    "Data": lambda: {"Data": [{"Question": own(k), "Answer": {"Value": "x"}} for k in range(N)]},
    "example": lambda: {"example": [{"question": own(k), "answer": ["x"]} for k in range(N)]},
    "by name": lambda: {f"q{k}": {"question": own(k), "answer": "x"} for k in range(N)},
    "pairs": lambda: {
        f"p{k}": {"passage": story(k), "qa_pairs": [{"question": own(k), "answer": {"spans": ["x"]}}]}
        for k in range(N)
    },
    "one": lambda: {"problem": own(0), "level": "Level 5", "solution": "x"},
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_published_files_are_opened(tmp_path: Path, name: str):
    path = tmp_path / "quiz.json"
    path.write_text(json.dumps(CONTAINERS[name](), indent=1))
    items = only(path).items
    assert [item.question for item in items] == [own(k) for k in range(len(items))]
    assert {item.answer for item in items} == {"x"}


def test_answers_beside_a_label_are_choices(write_jsonl: WriteRows):
    rows = [
        {"context": story(k), "question": SHARED, "answers": [own(k), "rope", "salt"], "label": 1}
        for k in range(N)
    ]
    for k, item in enumerate(only(write_jsonl("logic.jsonl", rows)).items):
        assert (item.choices, item.answer_index) == ((own(k), "rope", "salt"), 1)


def test_several_texts_and_no_question_are_refused_with_the_way_out(write_jsonl: WriteRows):
    rows = [{"good": own(k), "bad": story(k)} for k in range(N)]
    with pytest.raises(BenchmarkError, match="'good', 'bad'"):
        read_benchmarks([write_jsonl("pairs.jsonl", rows)])


def test_alone_a_longer_text_of_an_unknown_name_makes_an_item_incomplete():
    item = read_item({"id": "1", "question": SHARED, "narrative": story(1)}, "b")
    assert item.passage == story(1)
    assert "narrative" in item.incomplete
    whole = read_item({"id": "1", "question": SHARED, "passage": story(1)}, "b")
    assert not whole.incomplete
    assert not read_item({"id": "1", "question": own(1), "rationale": story(1)}, "b").incomplete


def test_of_a_chat_alone_more_than_the_user_writes_makes_it_incomplete():
    chat = [{"role": "system", "content": story(1)}, {"role": "user", "content": "Yes or no?"}]
    assert "input" in read_item({"id": "1", "input": chat}, "b").incomplete
    short = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": own(1)}]
    item = read_item({"id": "1", "input": short}, "b")
    assert (item.question, item.incomplete) == (own(1), "")


def test_a_long_text_that_many_rows_share_in_turn_is_read(write_jsonl: WriteRows):
    rows = [{"question": own(k), "contract": story(k % 3)} for k in range(120)]
    found = only(write_jsonl("law.jsonl", rows))
    assert {item.passage for item in found.items} == {story(k) for k in range(3)}


@pytest.mark.parametrize("between", ["", " ", "\n\n"])
def test_objects_in_any_layout_one_after_another_are_rows(tmp_path: Path, between: str):
    rows = [{"question": own(k), "answer": "no"} for k in range(N)]
    path = tmp_path / "t.jsonl"
    path.write_text(between.join(json.dumps(row, indent=k % 3) for k, row in enumerate(rows)))
    assert [item.question for item in only(path).items] == [own(k) for k in range(N)]
    path.write_text(path.read_text()[:-9])
    with pytest.raises(BenchmarkError):
        read_benchmarks([path])


def test_a_text_among_words_is_named(write_jsonl: WriteRows):
    rows = [{"question": own(k), "task": own(k) if k == 1 else f"do{k}"} for k in range(N)]
    found = only(write_jsonl("t.jsonl", rows))
    assert [name for name, _ in found.sources[0].unread] == ["task"]
    assert not any(item.passage for item in found.items)


@pytest.mark.parametrize("first", ["train", "examples", "data"])
def test_every_list_of_an_object_is_read_as_a_split(tmp_path: Path, first: str):
    rows = [{"question": own(k), "answer": "no"} for k in range(N)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"keywords": ["a"], first: rows[:5], "more": rows[5:]}))
    items = only(path).items
    assert [item.question for item in items] == [own(k) for k in range(N)]
    assert [item.split for item in items] == [first] * 5 + ["more"] * (N - 5)
