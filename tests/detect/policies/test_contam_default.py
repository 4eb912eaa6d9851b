"""The default policy's rules, each on the smallest corpus that shows it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.detect.model import Matches
from contam.detect.policies.contam_default import CONTAM, build
from tests.detect.policies.test_vectorised import view

PASSAGE = (
    "Ferries on the northern line were late on eleven of the last fourteen foggy mornings. The"
    " harbour master concludes that the crews oversleep whenever the lighthouse is hidden."
)
STEM = "Which of the following is most likely assumed by the above argument?"
#: A stem that several items share says less than one that stands alone.
SIBLINGS = [{"passage": f"{n} geese in a row.", "question": STEM} for n in range(7)]
OTHER = "A baker doubled the yeast and the loaves grew no larger, so the scales must be at fault."


def judged(folder, item, text, policy="contam", others=()):
    """The verdict on one item, beside others, against a corpus of one document."""
    pq.write_table(
        pa.table({"text": [f"Notes from the archive. {text} End of the notes."]}),
        folder / "a.parquet",
    )
    rows = [item, *others]
    (folder / "quiz.jsonl").write_text(
        "".join(json.dumps({"id": f"q{at}", **row}) + "\n" for at, row in enumerate(rows)),
        encoding="utf-8",
    )
    result = contam.scan(folder / "a.parquet", folder / "quiz.jsonl", policies=policy)
    return next(verdict for verdict in result if verdict.item_id == "q0")


def test_a_stem_on_another_passage_is_another_question(tmp_path):
    item = {"passage": PASSAGE, "question": STEM}
    verdict = judged(tmp_path, item, f"{OTHER} {STEM}", others=SIBLINGS)
    assert verdict.label == "clean"
    assert "nothing of the passage that it is asked of" in verdict.reason


def test_a_stem_with_its_passage_is_the_question(tmp_path):
    item = {"passage": PASSAGE, "question": STEM}
    verdict = judged(tmp_path, item, f"{PASSAGE}\n{STEM}", others=SIBLINGS)
    assert verdict.label == "contaminated"


@pytest.mark.parametrize("question", ["???", "\u2026 (*)"])
def test_an_item_whose_question_has_no_words_is_never_clean(tmp_path, question):
    for text in (PASSAGE, OTHER):
        verdict = judged(tmp_path, {"passage": PASSAGE, "question": question}, text)
        assert verdict.label == "not_checkable"
        assert verdict.reason == "there is nothing to look for: words in its question: 0"


def test_a_stem_without_a_passage_stays_a_doubt(tmp_path):
    verdict = judged(tmp_path, {"question": STEM}, f"{OTHER} {STEM}", others=SIBLINGS)
    assert verdict.label == "suspect"


def test_a_telling_question_needs_no_passage(tmp_path):
    question = "Which lighthouse keeper painted the northern ferry line's harbour bells violet?"
    item = {"passage": PASSAGE, "question": question}
    assert judged(tmp_path, item, f"{OTHER} {question}").label == "contaminated"


GOAL = "Polish copper kettles."
CHOICES = [
    "Rub half a lemon over the dull side to polish copper kettles, then rinse them warm.",
    "Rub half a potato over the dull side to polish copper kettles, then rinse them warm.",
]


@pytest.mark.parametrize("right", [0, 1])
def test_a_question_inside_its_own_answer_is_not_there(tmp_path, right):
    item = {"question": GOAL, "choices": CHOICES, "answer": right}
    assert judged(tmp_path, item, CHOICES[right]).exposure == "answer_only"
    assert judged(tmp_path, item, CHOICES[right]).label != "contaminated"


def test_a_question_before_its_own_answer_is_there(tmp_path):
    item = {"question": GOAL, "choices": CHOICES, "answer": 1}
    verdict = judged(tmp_path, item, f"{GOAL} {CHOICES[1]}")
    assert (verdict.label, verdict.exposure) == ("contaminated", "question+answer")


@pytest.mark.parametrize(
    ("tokens", "single", "needed"),
    [(30, 0, 8), (5, 0, 5), (40, 40, 16), (24, 24, 12), (18, 18, 9), (10, 10, 8), (40, 20, 12)],
)
def test_a_run_of_characters_is_longer_than_one_of_words(tokens, single, needed):
    n_single = np.array([[0, single, 0, 0]], np.int32)
    items = view([[0, tokens, 0, 0]], range(1, tokens + 1), n_single=n_single)
    matches = replace(Matches.zeros(1), item=np.zeros(1, np.int32))
    assert build(CONTAM).asked(matches, items).no_chance.tolist() == [needed]


LONG = (
    "Mara carried brass lanterns over the frozen harbour towards the old granite quarry while Tomas"
    " painted the northern lighthouse violet and counted every copper kettle on the windy pier"
)


def test_the_text_of_another_item_is_one_step_less_sure(tmp_path):
    twin = LONG
    for mine, other in (("brass", "paper"), ("frozen", "muddy"), ("violet", "green")):
        twin = twin.replace(mine, other)
    item = {"question": LONG}
    assert judged(tmp_path, item, twin).label == "contaminated"
    beside = judged(tmp_path, item, twin, others=[{"question": twin}])
    assert beside.label == "suspect"
    assert "text of another item, q1" in beside.reason


def test_common_words_without_a_run_are_a_doubt(tmp_path):
    question = "Is it so that most of them are the best and the first of all of these?"
    copy = question.replace("most", "many").replace("the first", "a last")
    verdict = judged(tmp_path, {"question": question}, copy)
    assert (verdict.label, verdict.kind) == ("suspect", "near")
    assert judged(tmp_path, {"question": question}, question).label == "contaminated"


SOLUTION = (
    "Each basket holds forty pears, so nine baskets hold 9 * 40 = 360 pears; the orchard sold a"
    " third, which leaves 240 for the cellar."
)
ASKED = {"question": "How many pears are left for winter?", "answer": SOLUTION}


def test_a_long_answer_alone_is_never_clean(tmp_path):
    verdict = judged(tmp_path, ASKED, SOLUTION)
    assert (verdict.label, verdict.exposure, verdict.n_documents) == ("suspect", "answer_only", 1)
    assert "24 words of its answer" in verdict.reason
    thirteen = " ".join(SOLUTION.split()[:15])
    assert judged(tmp_path, ASKED, thirteen).label == "suspect"


@pytest.mark.parametrize(
    ("item", "text"),
    [
        # Twelve words in a row.
        (ASKED, " ".join(SOLUTION.split()[:14])),
        ({**ASKED, "answer": "baskets hold pears"}, SOLUTION),
        # Wording without content, counting, and one thing over and over.
        ({**ASKED, "answer": "it is what it is and it was what it was to us all"}, ""),
        ({**ASKED, "answer": " ".join(["0"] * 400)}, ""),
        ({**ASKED, "answer": " ".join(["la"] * 400)}, ""),
        # A quotation of the passage, a choice: of these nothing is told.
        ({**ASKED, "passage": f"A farm. {SOLUTION} A barn."}, SOLUTION),
        ({**ASKED, "choices": ["None.", SOLUTION], "answer": 1}, SOLUTION),
    ],
)
def test_what_tells_no_answer_is_clean(tmp_path, item, text):
    assert judged(tmp_path, item, text or item["answer"]).label == "clean"


def test_an_answer_that_all_items_share_tells_nothing(tmp_path):
    others = [{"question": f"How many of {n}?", "answer": SOLUTION} for n in range(20)]
    assert judged(tmp_path, ASKED, SOLUTION, others=others).label == "clean"
    assert judged(tmp_path, ASKED, SOLUTION, others=others[:1]).label == "suspect"


def test_an_answer_of_characters_must_be_longer(tmp_path):
    answer = "每个篮子装四十个梨所以九个篮子装三百六十个果园卖掉三分之一剩下二百四十个"
    item = {"question": "冬天还剩多少个梨子呢请问", "answer": answer}
    assert judged(tmp_path, item, answer).label == "suspect"
    assert judged(tmp_path, item, answer[:20]).label == "clean"


CUBES = [
    {"question": f"What is the cube of {n}?", "answer": str(7 * n + 1)} for n in range(300, 340)
]


def test_a_short_question_that_many_share_is_never_clean_where_it_stands(tmp_path):
    first, *others = CUBES
    text = f"Who knows? {first['question']} Nobody but {others[0]['question']} came to mind."
    verdict = judged(tmp_path, {"question": first["question"]}, text, others=others)
    assert verdict.label == "not_checkable"
    assert "6 words" in verdict.reason
    text = f"{first['question']} {first['answer']}"
    assert judged(tmp_path, first, text, others=others).label == "suspect"
    assert judged(tmp_path, first, others[3]["question"], others=others).label == "clean"
