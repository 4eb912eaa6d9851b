"""Say which field is what: mappings such as `question=prompt,answer=meta.solution`, usual names.

Names are compared in the form `plain` gives: lower case, blanks and hyphens as underscores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from contam.benchmark.items import PARTS
from contam.errors import Public, Statement, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MAPPABLE = (*PARTS, "answer_index", "id", "benchmark", "split", "incomplete")


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Checked form of a mapping.

    fields  target -> fields of the file, each a name or a dotted path; () means "there is none"
    ignored  fields that are no part of an item
    first    number by which answers call the first of mapped choices; None goes by their names
    """

    fields: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...] = ()
    first: int | None = None


def parse_mapping(texts: Iterable[str]) -> dict[str, str]:
    """Turn `target=field` lists, as typed on a command line, into a mapping.

    One text may hold several pairs, separated by commas. Raises UsageError when a piece has
    no `=` or a target is named twice.
    """
    mapping: dict[str, str] = {}
    for text in texts:
        for piece in text.split(","):
            if not piece.strip():
                continue
            target, equals, field = piece.partition("=")
            target = target.strip()
            if not equals:
                raise UsageError(
                    "cannot read the mapping {!r}",
                    piece.strip(),
                    hint=(
                        "write pairs: --map question=prompt,answer=solution, --columns "
                        "model=name,score=acc"
                    ),
                )
            if target in mapping:
                raise UsageError("the mapping names {!r} twice", target)
            mapping[target] = field.strip()
    return mapping


def check_mapping(mapping: Mapping[str, str] | None, ignored: Iterable[str] = ()) -> FieldMap:
    """Check the targets of a mapping; `question=body+ask` joins fields, `id=` means none.

    Raises UsageError for an unknown target and for a question mapped to nothing.
    """
    fields: dict[str, tuple[str, ...]] = {}
    for target, field in (mapping or {}).items():
        if target not in MAPPABLE:
            raise UsageError(
                "cannot map {!r}", target,
                hint=Statement("targets of a mapping: {}", Public(", ".join(MAPPABLE))),
            )  # fmt: skip
        names = tuple(name.strip() for name in field.split("+") if name.strip())
        if target == "question" and not names:
            raise UsageError("the question must be mapped to a field", hint="--map question=FIELD")
        if len(names) > 1 and target not in PARTS:
            raise UsageError("{!r} can be mapped to one field only, got {!r}", target, field)
        fields[target] = names
    return FieldMap(fields, tuple(name.strip() for name in ignored if name.strip()))


def resolve(field: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Path of keys to a mapped field: the name itself where a column has it, else split at dots."""
    return (field,) if field in columns else tuple(field.split("."))


# The names that known benchmarks use for each part of an item.
_QUESTION = """
question question_stem query problem goal ctx sentence instruct_prompt prompt instruction
question_content question_text problem_statement hypothesis claim input turns text premise
"""
QUESTION = tuple(_QUESTION.split())
_PASSAGE = "passage context article support story paragraph background premise document"
PASSAGE = tuple(_PASSAGE.split())
_CHOICE_LISTS = "choices options endings answer_choices candidates mc1_targets target_scores"
CHOICE_LISTS = tuple(_CHOICE_LISTS.split())
# A worked solution ends in the short answer, so it is preferred where a row has both.
_ANSWER = """
canonical_solution solution answer answers answerkey answer_key label target targets gold
correct_answer correct_option correct_answer_num correct cop best_answer answer_choice code
reference_code reference_solution solutions final_answer ideal expected_answer reference_answer
answerrightending answers_spans ground_truth output completion
"""
ANSWER = tuple(_ANSWER.split())
_ANSWER_INDEX = "answer_index answer_idx gold_index correct_index correct_answer_index"
ANSWER_INDEX = tuple(_ANSWER_INDEX.split())
_ITEM_ID = """
id item_id task_id question_id qid native_id unique_id example_id problem_id record_id query_id uid
pairid ind idx index
"""
ITEM_ID = tuple(_ITEM_ID.split())
BENCHMARK = ("benchmark",)
SPLIT = ("split",)

_LABEL_FIELDS = """
answerkey answer_key label cop correct_option correct gold answerrightending correct_answer_num
"""
LABEL_FIELDS = frozenset(_LABEL_FIELDS.split())
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
    "mc_answer": 1,
    "holding": 0,
}
"""Beginnings of one-column-per-choice names -> number by which their answers call the first."""

WRONG_ANSWERS = ("incorrect_answers", "distractor", "incorrect_answer")
"""Fields, or beginnings of numbered fields, that hold the choices besides the right answer."""

_LEFT_OUT = """
explanation explanations explain rationale rationales reasoning cot feedback hint hints rubric
rubrics checklist canary lecture metadata meta citation citations license licence comment comments
"""
# Words of names whose texts are left out on purpose: they tell of an item, or how to judge it.
LEFT_OUT = frozenset(_LEFT_OUT.split())

_LEFT_OUT_HEADS = """
answer answers solution solutions target targets gold label labels reference references prediction
predictions truth expected generation response responses test tests assertion assertions patch id
ids uid uuid guid idx index hash sha commit date dates time timestamp created updated url urls uri
link links href filename image images audio video author authors tag tags keyword keywords meshes
category categories topic topics type types role name names title titles tokens format version
language dataset subset split subject subjects domain difficulty level model
"""
# The same for the word that a name is about: the last that is none of `_FILLERS`.
LEFT_OUT_HEADS = frozenset(_LEFT_OUT_HEADS.split())

_FILLERS_OF_NAMES = """
text texts list lists string info data value values content html raw json at on of the
"""
_FILLERS = frozenset(_FILLERS_OF_NAMES.split())
_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_BLANKS = re.compile(r"[\s\-]+")


def plain(name: str) -> str:
    """Form in which field names are compared."""
    return _BLANKS.sub("_", name.strip().lower())


@cache
def is_left_out(name: str) -> bool:
    """Whether texts of this name are no part of an item where nothing is mapped."""
    words = [word.lower() for word in _NAME_WORDS.findall(name)]
    head = [word for word in words if word not in _FILLERS][-1:]
    return not LEFT_OUT.isdisjoint(words) or not LEFT_OUT_HEADS.isdisjoint(head)


def is_question(name: str) -> bool:
    """Whether a column of this name is taken as the question when nothing is mapped."""
    return plain(name) in _QUESTION_SET


def is_usual(name: str) -> bool:
    """Whether a column of this name is taken as a part of some kind."""
    return plain(name) in USUAL


_QUESTION_SET = frozenset(QUESTION)
USUAL = frozenset(
    (*QUESTION, *PASSAGE, *CHOICE_LISTS, *ANSWER, *ANSWER_INDEX, *ITEM_ID, *BENCHMARK, *SPLIT)
)
