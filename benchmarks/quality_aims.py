"""What the classes of the labelled pack are, and how well they are to be judged."""

from __future__ import annotations

from typing import Final

#: How the class of a plant ends that holds less than half of the question.
QUESTION_GONE: Final = ":question gone"
#: Items of this many words and more are held to the aims.
LEAST_WORDS: Final = 8

_VERBATIM = (
    "verbatim_q verbatim_qa quiz dataset_dump case punct fullwidth zero_width soft_hyphen"
    " nfd_accents repeat_verbatim second_item sibling_source in_control_chars in_crlf_bom in_emoji"
    " in_mixed_scripts in_newlines in_rtl in_single_line_5mb found"
)
_GROUPS: Final = (
    ("verbatim", 0.995, _VERBATIM),
    ("markup", 0.98, "markup escape whitespace hyphen_break homoglyph"),
    ("in part", 0.97, "trunc_first60 trunc_last60 split_two sent_shuffle"),
    ("edited", 0.97, "edit10 numbers_changed names_changed"),
    ("edited more", 0.92, "edit6"),
    (
        "reworded",
        None,
        """synonym code_comments code_renamed natural_rephrase natural_rephrase_code
        natural_translation_code""",
    ),
)
#: Transformation -> (group, least share found); groups without an aim have None.
RECALL_AIMS: Final[dict[str, tuple[str, float | None]]] = {
    name: (group, aim) for group, aim, names in _GROUPS for name in names.split()
}

_NOT_THE_QUESTION = "passage_only answer_only choices_only code_only generic_stem"
_HARD = "hardneg_template same_template sibling shared_ngram same_topic same_passage"
#: Class of pairs that do not contaminate -> (group, largest share called contaminated).
FALSE_FLAG_AIMS: Final[dict[str, tuple[str, float]]] = {
    **dict.fromkeys(_NOT_THE_QUESTION.split(), ("not the question", 0.01)),
    **dict.fromkeys(_HARD.split(), ("another question", 0.05)),
}
#: Largest share of absent items that may be called suspect or contaminated.
ABSENT_AIM: Final = 0.001


def false_flag_aim(name: str) -> tuple[str, float]:
    """Group and aim of a class of pairs (`collateral:passage_only` counts as `passage_only`).

    A class this file does not know is held to the strictest aim.
    """
    return FALSE_FLAG_AIMS.get(_bare(name), ("other", 0.01))


def false_flag_rank(name: str) -> tuple[int, str]:
    """Where such a class stands in the report."""
    order = list(FALSE_FLAG_AIMS)
    bare = _bare(name)
    return (order.index(bare) if bare in FALSE_FLAG_AIMS else len(order), name)


def recall_rank(name: str) -> tuple[int, str]:
    """Where a transformation stands in the report: by group, then by name."""
    order = list(RECALL_AIMS)
    bare = _bare(name)
    return (order.index(bare) if bare in RECALL_AIMS else len(order), name)


def recall_aim(name: str) -> tuple[str, float | None]:
    """Group and aim of a transformation (`natural:found` counts as `found`).

    A cut that left less than half of the question (`split_two:question gone`) has no aim.
    """
    group, aim = RECALL_AIMS.get(_bare(name), ("other", None))
    return group, None if name.endswith(QUESTION_GONE) else aim


def _bare(name: str) -> str:
    return name.removesuffix(QUESTION_GONE).rpartition(":")[2]
