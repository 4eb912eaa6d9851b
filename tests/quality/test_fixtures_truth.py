"""A real scan of bench_fixtures says of every plant what truth.jsonl wants said, and proves it."""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import contam
from contam.text.tokenizer import tokenize_bytes

FIXTURES = Path(__file__).resolve().parents[2] / "bench_fixtures"
TRUTH = [json.loads(line) for line in (FIXTURES / "truth.jsonl").read_text("utf-8").splitlines()]
FLAGGED = ("contaminated", "suspect")
ACCEPTED = {
    "contaminated": ("contaminated",),
    "flagged": FLAGGED,
    "not_contaminated": ("clean", "suspect", "not_checkable"),
    "clean": ("clean", "not_checkable"),
}
SEVERITY = ("clean", "not_contaminated", "flagged", "contaminated")
PLANTS = [row for row in TRUTH if row["expected"] in ("contaminated", "flagged")]
ITEMS = defaultdict(list)
for _row in TRUTH:
    ITEMS[_row["item_id"]].append(_row)


def plant_name(row):
    return f"{row['item_id']}-{row['transformation']}-{row['document_id']}"


@pytest.fixture(scope="module")
def result():
    return contam.scan(FIXTURES / "corpus", FIXTURES / "items", workers=2)


@pytest.fixture(scope="module")
def verdicts(result):
    return {verdict.item_id: verdict for verdict in result}


@pytest.fixture(scope="module")
def evidence(result):
    found = defaultdict(list)
    for row in result.evidence.to_pylist():
        found[row["item_id"]].append(row)
    return found


@pytest.fixture(scope="module")
def documents():
    texts = {}
    for path in (FIXTURES / "corpus").rglob("*.parquet"):
        table = pq.read_table(path, columns=["id", "text"])
        texts |= dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return texts


@pytest.fixture(scope="module")
def items(result):
    return {row["item_id"]: row for row in result.items.to_pylist()}


def test_the_whole_corpus_was_read(result):
    assert result.complete
    assert {verdict.item_id for verdict in result} == set(ITEMS)


@pytest.mark.parametrize("item_id", ITEMS)
def test_an_item_gets_the_verdict_its_worst_plant_deserves(verdicts, item_id):
    worst = max((row["expected"] for row in ITEMS[item_id]), key=SEVERITY.index)
    verdict = verdicts[item_id]
    assert verdict.label in ACCEPTED[worst], verdict.reason


@pytest.mark.parametrize("row", PLANTS, ids=plant_name)
def test_the_evidence_of_a_plant_lies_in_its_document_on_its_span(evidence, row):
    there = [one for one in evidence[row["item_id"]] if one["document_id"] == row["document_id"]]
    assert {(one["shard"], one["row"]) for one in there} == {(row["shard"], row["row"])}
    spans = [(row["char_start"], row["char_end"]), (row["char_start2"], row["char_end2"])]
    for start, end in (span for span in spans if span[0] is not None):
        assert any(
            one["part"] == "question"
            and one["document_start"] < end
            and one["document_end"] > start
            for one in there
        )


@pytest.mark.parametrize(
    "row", [row for row in PLANTS if len(ITEMS[row["item_id"]]) == 1], ids=plant_name
)
def test_exposure_and_kind_of_a_plant_are_told(verdicts, row):
    verdict = verdicts[row["item_id"]]
    assert verdict.best_document_id == row["document_id"]
    # Two halves close together read as one copy with something put in between.
    kinds = {row["kind"], "near"} if row["transformation"] == "split" else {row["kind"]}
    assert verdict.exposure == row["exposure"]
    assert verdict.kind in kinds


@pytest.mark.parametrize(
    "row",
    [row for row in TRUTH if row["exposure"] in ("passage_only", "answer_only")],
    ids=plant_name,
)
def test_a_passage_or_an_answer_alone_is_told_as_that(verdicts, row):
    assert verdicts[row["item_id"]].exposure == row["exposure"]


def test_every_piece_of_evidence_has_equal_tokens_on_both_sides(evidence, documents, items):
    def text_of(item, part):
        return "\n".join(item[part]) if part == "choices" else item[part]

    def tokens(text):
        return tokenize_bytes(text.encode()).hashes.tolist()

    unequal = []
    for item_id, rows in evidence.items():
        for row in rows:
            ours = text_of(items[item_id], row["part"])[row["item_start"] : row["item_end"]]
            theirs = documents[row["document_id"]][row["document_start"] : row["document_end"]]
            if tokens(ours) != tokens(theirs) or len(tokens(ours)) != row["n_tokens"]:
                unequal.append((item_id, row["document_id"], row["part"], ours, theirs))
    assert unequal == []
    assert evidence
