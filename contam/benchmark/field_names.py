"""List the field names that known benchmarks use for each part of an item.

Names are compared in the form `plain` gives: lower case, blanks and hyphens as underscores.
"""

from __future__ import annotations

import re

QUESTION = (
    "question",
    "question_stem",
    "query",
    "problem",
    "goal",
    "ctx",
    "sentence",
    "instruct_prompt",
    "prompt",
    "instruction",
    "question_content",
    "question_text",
    "hypothesis",
    "claim",
    "input",
    "turns",
    "text",
    "premise",
)
PASSAGE = (
    "passage",
    "context",
    "article",
    "support",
    "story",
    "paragraph",
    "background",
    "premise",
    "document",
)
CHOICE_LISTS = (
    "choices",
    "options",
    "endings",
    "answer_choices",
    "candidates",
    "mc1_targets",
)
# A worked solution ends in the short answer, so it is preferred where a row has both.
ANSWER = (
    "canonical_solution",
    "solution",
    "answer",
    "answers",
    "answerkey",
    "answer_key",
    "label",
    "target",
    "targets",
    "gold",
    "correct_answer",
    "correct_option",
    "correct",
    "cop",
    "best_answer",
    "code",
    "reference_code",
    "reference_solution",
    "solutions",
    "final_answer",
    "ideal",
    "expected_answer",
    "reference_answer",
    "answerrightending",
    "answers_spans",
    "output",
    "completion",
)
ANSWER_INDEX = (
    "answer_index",
    "answer_idx",
    "gold_index",
    "correct_index",
    "correct_answer_index",
)
ITEM_ID = (
    "id",
    "item_id",
    "task_id",
    "question_id",
    "qid",
    "native_id",
    "unique_id",
    "example_id",
    "problem_id",
    "record_id",
    "query_id",
    "uid",
    "pairid",
    "ind",
    "idx",
    "index",
)
BENCHMARK = ("benchmark",)
SPLIT = ("split",)

LABEL_FIELDS = frozenset(
    {
        "answerkey",
        "answer_key",
        "label",
        "cop",
        "correct_option",
        "correct",
        "gold",
        "answerrightending",
    }
)
"""Answer fields that hold a letter or number, never the text of a choice."""

CHOICE_COLUMNS: dict[str, int] = {
    "": 0,
    "option": 1,
    "choice": 0,
    "sol": 0,
    "answer": 1,
    "ans": 0,
    "op": 0,
    "ending": 0,
    "sentence_quiz": 1,
}
"""Beginnings of one-column-per-choice names -> number by which their answers call the first."""

WRONG_ANSWERS = ("incorrect_answers", "distractor", "incorrect_answer")
"""Fields, or beginnings of numbered fields, that hold the choices besides the right answer."""

_BLANKS = re.compile(r"[\s\-]+")


def plain(name: str) -> str:
    """Form in which field names are compared."""
    return _BLANKS.sub("_", name.strip().lower())


def is_question(name: str) -> bool:
    """Whether a column of this name is taken as the question when nothing is mapped."""
    return plain(name) in _QUESTION_SET


_QUESTION_SET = frozenset(QUESTION)
