"""Rows in the shapes of well-known benchmarks, with invented content, become the right parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from contam.benchmark.read_files import read_benchmarks

if TYPE_CHECKING:
    from conftest import WriteRows

    from contam.benchmark.items import BenchItem


class Want(NamedTuple):
    question: str
    answer: str | None = None
    choices: tuple[str, ...] = ()
    answer_index: int | None = None
    passage: str | None = None
    item_id: str | None = None


ABCD = ("moss", "fern", "reed", "palm")
LAYOUTS: dict[str, tuple[dict[str, object], Want]] = {
    "gsm8k": ({"question": "Mo has 3 hats and buys 4. How many?",
        "answer": "3+4=<<3+4=7>>7\n#### 7"},
        Want("Mo has 3 hats and buys 4. How many?", "3+4=<<3+4=7>>7\n#### 7")),
    "mmlu": ({"question": "Which one floats?", "subject": "ponds", "choices": list(ABCD),
        "answer": 2}, Want("Which one floats?", "reed", ABCD, 2)),
    "mmlu_with_number_choices": ({"question": "What is 1+1?", "choices": ["0", "4", "2", "6"],
        "answer": 2}, Want("What is 1+1?", "2", ("0", "4", "2", "6"), 2)),
    "mmlu_pro": ({"question_id": 70, "question": "Q?", "options": list(ABCD), "answer": "D",
        "answer_index": 3}, Want("Q?", "palm", ABCD, 3, item_id="70")),
    "arc": ({"id": "Merc_7", "question": "Which one floats?",
        "choices": {"text": list(ABCD), "label": ["A", "B", "C", "D"]}, "answerKey": "B"},
        Want("Which one floats?", "fern", ABCD, 1, item_id="Merc_7")),
    "arc_numbered": ({"id": "NY_7", "question": "Q?",
        "choices": {"text": list(ABCD), "label": ["1", "2", "3", "4"]}, "answerKey": "4"},
        Want("Q?", "palm", ABCD, 3, item_id="NY_7")),
    "arc_original": ({"id": "x",
        "question": {"stem": "Q?", "choices": [
            {"text": t, "label": c} for t, c in zip(ABCD, "ABCD", strict=True)]},
        "answerKey": "C"}, Want("Q?", "reed", ABCD, 2, item_id="x")),
    "openbookqa": ({"id": "8", "question_stem": "Q is",
        "choices": {"text": list(ABCD), "label": list("ABCD")}, "answerKey": "A"},
        Want("Q is", "moss", ABCD, 0, item_id="8")),
    "hellaswag": ({"ind": 24, "activity_label": "Rafting", "ctx_a": "A man ties",
        "ctx_b": "then he", "ctx": "A man ties then he", "endings": list(ABCD), "label": "3",
        "source_id": "v_1"}, Want("A man ties then he", "palm", ABCD, 3, item_id="24")),
    "hellaswag_hidden_answer": ({"ind": 25, "ctx": "A man ties", "endings": list(ABCD),
        "label": ""}, Want("A man ties", None, ABCD, None, item_id="25")),
    "humaneval": ({"task_id": "Inv/0", "prompt": "def hop(n):\n", "entry_point": "hop",
        "canonical_solution": "    return n\n", "test": "assert 1"},
        Want("def hop(n):\n", "    return n\n", item_id="Inv/0")),
    "mbpp": ({"task_id": 11, "text": "Write a hop.", "code": "def hop(): pass",
        "test_list": ["assert hop"], "challenge_test_list": []},
        Want("Write a hop.", "def hop(): pass", item_id="11")),
    "mbpp_sanitized": ({"source_file": "f", "task_id": 12, "prompt": "Write a hop.",
        "code": "def hop(): pass"}, Want("Write a hop.", "def hop(): pass", item_id="12")),
    "truthfulqa_mc": ({"question": "Do owls knit?",
        "mc1_targets": {"choices": ["no", "yes"], "labels": [1, 0]},
        "mc2_targets": {"choices": ["no", "yes"], "labels": [1, 0]}},
        Want("Do owls knit?", "no", ("no", "yes"), 0)),
    "truthfulqa_generation": ({"type": "A", "question": "Do owls knit?",
        "best_answer": "No, never", "correct_answers": ["No, never", "No"],
        "incorrect_answers": ["Yes", "At night"]},
        Want("Do owls knit?", "No, never", ("No, never", "Yes", "At night"), 0)),
    "bbh": ({"input": "Sort: b a", "target": "a b"}, Want("Sort: b a", "a b")),
    "squad": ({"id": "5f", "title": "T", "context": "Owls hoot.", "question": "What do owls do?",
        "answers": {"text": ["hoot", "they hoot"], "answer_start": [5, 5]}},
        Want("What do owls do?", "hoot", passage="Owls hoot.", item_id="5f")),
    "squad_without_answer": ({"id": "60", "context": "Owls hoot.", "question": "Why?",
        "answers": {"text": [], "answer_start": []}},
        Want("Why?", None, passage="Owls hoot.", item_id="60")),
    "winogrande": ({"sentence": "Moss outgrew fern, so _ won.", "option1": "moss",
        "option2": "fern", "answer": "1"},
        Want("Moss outgrew fern, so _ won.", "moss", ("moss", "fern"), 0)),
    "piqa": ({"goal": "dry a reed", "sol1": "sun", "sol2": "pond", "label": 1},
        Want("dry a reed", "pond", ("sun", "pond"), 1)),
    "piqa_hidden_answer": ({"goal": "dry a reed", "sol1": "sun", "sol2": "pond", "label": -1},
        Want("dry a reed", None, ("sun", "pond"))),
    "siqa": ({"context": "Bo wept.", "question": "Why?", "answerA": "rain", "answerB": "loss",
        "answerC": "onion", "label": "3"},
        Want("Why?", "onion", ("rain", "loss", "onion"), 2, "Bo wept.")),
    "boolq": ({"question": "is moss a plant", "passage": "Moss is one.", "answer": True},
        Want("is moss a plant", "True", passage="Moss is one.")),
    "math": ({"problem": "Find $x$.", "level": "Level 1", "type": "Algebra",
        "solution": "It is $\\boxed{4}$."}, Want("Find $x$.", "It is $\\boxed{4}$.")),
    "math_500": ({"problem": "Find $x$.", "solution": "It is $\\boxed{4}$.", "answer": "4",
        "unique_id": "test/a/1.json"},
        Want("Find $x$.", "It is $\\boxed{4}$.", item_id="test/a/1.json")),
    "agieval": ({"passage": "Bo hid.", "question": "Where?",
        "options": ["(A)barn", "(B)loft", "(C)well"], "label": "C", "answer": None, "other": None},
        Want("Where?", "well", ("barn", "loft", "well"), 2, "Bo hid.")),
    "agieval_cloze": ({"passage": None, "question": "2+2?", "options": None, "label": None,
        "answer": "4"}, Want("2+2?", "4")),
    "agieval_several_right": ({"question": "Which?", "options": ["(A)barn", "(B)loft", "(C)well"],
        "label": ["A", "C"]}, Want("Which?", "barn\nwell", ("barn", "loft", "well"), None)),
    "logiqa": ({"context": "All owls hoot.", "query": "Which follows?", "options": list(ABCD),
        "correct_option": 1}, Want("Which follows?", "fern", ABCD, 1, "All owls hoot.")),
    "gpqa": ({"Record ID": "rec1", "Question": "Which?", "Correct Answer": "reed",
        "Incorrect Answer 1": "moss", "Incorrect Answer 2": "fern", "Incorrect Answer 3": "palm"},
        Want("Which?", "reed", ("reed", "moss", "fern", "palm"), 0, item_id="rec1")),
    "sciq": ({"question": "Which?", "distractor3": "moss", "distractor1": "fern",
        "distractor2": "palm", "correct_answer": "reed", "support": "Reeds float."},
        Want("Which?", "reed", ("reed", "fern", "palm", "moss"), 0, "Reeds float.")),
    "svamp": ({"ID": "chal-1", "Body": "Mo has 3 hats.", "Question": "How many?", "Answer": 3.0},
        Want("Mo has 3 hats.\nHow many?", "3.0", item_id="chal-1")),
    "copa": ({"premise": "It rained.", "choice1": "wet", "choice2": "dry", "question": "effect",
        "idx": 4, "label": 0}, Want("It rained.", "wet", ("wet", "dry"), 0, item_id="4")),
    "medmcqa": ({"id": "m", "question": "Q?", "opa": "moss", "opb": "fern", "opc": "reed",
        "opd": "palm", "cop": 0, "exp": None}, Want("Q?", "moss", ABCD, 0, item_id="m")),
    "race": ({"example_id": "high1.txt", "article": "Long ago.", "question": "When?",
        "options": list(ABCD), "answer": "B"},
        Want("When?", "fern", ABCD, 1, "Long ago.", "high1.txt")),
    "bbq": ({"example_id": 3, "context": "Two met.", "question": "Who?", "ans0": "moss",
        "ans1": "fern", "ans2": "reed", "label": 2},
        Want("Who?", "reed", ("moss", "fern", "reed"), 2, "Two met.", "3")),
    "mathqa": ({"Problem": "Find a.", "Rationale": "r",
        "options": "a ) 38 , b ) 27.5 , c ) vitamin a , d ) none", "correct": "b"},
        Want("Find a.", "27.5", ("38", "27.5", "vitamin a", "none"), 1)),
    "nli": ({"premise": "Owls hoot.", "hypothesis": "Owls are loud.", "label": 1, "idx": 0},
        Want("Owls are loud.", "1", passage="Owls hoot.", item_id="0")),
    "triviaqa": ({"question_id": "t1", "question": "Who?",
        "answer": {"value": "Ilse", "aliases": ["I. Quarn"]}}, Want("Who?", "Ilse", item_id="t1")),
    "mt_bench": ({"question_id": 81, "turns": ["Write.", "Shorten."]},
        Want("Write.\nShorten.", item_id="81")),
    "chat": ({"input": [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who?"}], "ideal": "Ilse"}, Want("Who?", "Ilse")),
    "own_form": ({"benchmark": "b", "split": "s", "id": "b/s/1", "passage": "P.", "question": "Q?",
        "choices": ["x ", "y"], "answer": "x", "answer_index": 0, "group": "g"},
        Want("Q?", "x", ("x ", "y"), 0, "P.", "b/s/1")),
    "choices_as_letters": ({"question": "Q?", "choices": {"A": "moss", "B": "fern", "C": None},
        "answer": "B"}, Want("Q?", "fern", ("moss", "fern"), 1)),
    "label_is_read_as_label": ({"question": "Q?", "choices": ["B", "A"], "label": "A"},
        Want("Q?", "B", ("B", "A"), 0)),
    "answer_is_read_as_text": ({"question": "Q?", "choices": ["B", "A"], "answer": "A"},
        Want("Q?", "A", ("B", "A"), 1)),
    "answer_outside_the_choices": ({"question": "Q?", "choices": ["x", "y"],
        "answer": "neither of them"}, Want("Q?", "neither of them", ("x", "y"), None)),
}  # fmt: skip


def only_item(path: object) -> BenchItem:
    (benchmark,) = read_benchmarks([str(path)])
    (item,) = benchmark.items
    return item


@pytest.mark.parametrize("layout", LAYOUTS)
def test_known_layout_is_understood(write_jsonl: WriteRows, layout: str):
    row, want = LAYOUTS[layout]
    item = only_item(write_jsonl(f"{layout}.jsonl", [row]))
    assert item.question == want.question
    assert item.answer == want.answer
    assert item.choices == want.choices
    assert item.answer_index == want.answer_index
    assert item.passage == want.passage
    if want.item_id is not None:
        assert item.item_id == want.item_id


def test_part_text_gives_every_part_or_nothing(write_jsonl: WriteRows):
    item = only_item(
        write_jsonl("m.jsonl", [{"question": "Q?", "choices": ["x", "y"], "answer": "y"}])
    )
    assert [item.part_text(part) for part in ("passage", "question", "choices", "answer")] == [
        "",
        "Q?",
        "x\ny",
        "y",
    ]
