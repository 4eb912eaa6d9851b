"""What the units `word` and `char` make of items and documents, seen from outside."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.detect.parameters import ScanParameters
from contam.detect.plan import make_plan
from contam.errors import PolicyError, UsageError


@pytest.mark.parametrize("options", [{"seed": 4}, {"min_run": 60}])
@pytest.mark.parametrize("asked", [{"unit": "char"}, {"policies": "gpt4-50char,igmini-50"}])
def test_run_lengths_that_would_change_nothing_are_refused(repository, asked, options):
    here = repository / "bench_fixtures"
    with pytest.raises(UsageError, match="would change nothing"):
        contam.scan(here / "corpus", here / "items" / "brook_math.jsonl", **asked, **options)


@pytest.mark.parametrize(("seed", "noted"), [(4, False), (5, False), (6, True), (13, True)])
def test_a_long_seed_that_may_miss_copies_is_noted(repository, seed, noted):
    """brook-004 stands there with a strange word after every few of its own, 11 at most."""
    here = repository / "bench_fixtures"
    items = here / "items" / "brook_math.jsonl"
    result = contam.scan(here / "corpus", items, seed=seed, min_run=13)
    label = {verdict.item_id: verdict.label for verdict in result}["brook-004"]
    assert label == ("contaminated" if seed < 13 else "clean")
    found = [note for note in result.run["notes"] if note.startswith(f"seed {seed}: ")]
    assert len(found) == noted
    assert not noted or f"no {seed} tokens stand together" in found[0]


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [
        ("tulu3-50", {"min_run": 9}),
        ("openr1-8", {"seed": 9, "min_run": 9}),
        ("gpt3-test", {"seed": 9, "min_run": 9}),
        ("llama3-8gram", {"seed": 9, "min_run": 9}),
    ],
)
def test_a_policy_that_needs_other_runs_is_refused_before_the_corpus_is_read(
    tmp_path, policy, sizes
):
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps({"id": "q", "question": "one two three four"}) + "\n")
    parameters = ScanParameters(policies=("contam", policy), **sizes)
    with pytest.raises(PolicyError, match=policy):
        make_plan([path], parameters)


def test_evidence_quotes_the_marks_of_its_last_character(tmp_path):
    question = "जब हिमालय में बर्फ़ पिघलती है तो नदियों का पानी कितना बढ़ता जाता है और कहाँ पहुँचती हैं नदी"
    pq.write_table(pa.table({"text": [f"पहले। {question}। बाद में।"]}), tmp_path / "a.parquet")
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps({"id": "h", "question": question}) + "\n", encoding="utf-8")
    (run,) = contam.scan(tmp_path / "a.parquet", path).evidence.to_pylist()
    assert question[run["item_start"] : run["item_end"]] == question
    assert run["document_end"] - run["document_start"] == len(question)


def test_persian_typed_on_an_arabic_keyboard_is_found(tmp_path):
    question = "کدام یک از این کتاب‌های قدیمی در سال ۱۳۴۲ در یکی از شهرهای کویری ایران چاپ شده است"
    typed = question.translate(str.maketrans("کی۱۲۳۴", "كي١٢٣٤")).replace("قدیم", "قديـــم")
    pq.write_table(pa.table({"text": [f"مقدمه {typed} پایان"]}), tmp_path / "a.parquet")
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps({"id": "p", "question": question}) + "\n", encoding="utf-8")
    (verdict,) = contam.scan(tmp_path / "a.parquet", path)
    assert (verdict.label, verdict.kind) == ("contaminated", "exact")
