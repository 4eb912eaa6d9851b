"""A policy that reads documents gets those that words find, and reads them with a file's tokens."""

import hashlib
import json

import pytest

import contam
from tests.text.tokenizer_files import save_word_level

QUESTION = (
    "which of the red kettles did the miller carry over the old bridge before the first bell of the"
    " morning rang and who held the lamp for him while he did it"
)

OTHERS = [
    (
        "how many stone steps lead from the harbour wall up to the door of the small chapel on the hill"
        " where the fishing boats are blessed every spring by two priests"
    ),
    (
        "why would a careful gardener water the tall beans at dusk and never at noon when the summer is"
        " hot and dry and the well behind the house is nearly empty"
    ),
]


@pytest.fixture
def tokenizer(tmp_path):
    """A tokenizer of lower-case words: a text in capitals is unknown to it."""
    words = sorted({word for text in [QUESTION, *OTHERS] for word in text.split()})
    vocab = {"[UNK]": 0, " ": 1, **{f" {word}": 2 + n for n, word in enumerate(words)}}
    return save_word_level(tmp_path / "tokenizer.json", vocab, " ?[^ ]+|\\s")


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.jsonl"
    rows = [{"id": str(n), "question": text} for n, text in enumerate([QUESTION, *OTHERS])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scan(tmp_path, bench, text, **options):
    shard = tmp_path / "corpus.jsonl"
    shard.write_text(json.dumps({"text": text}) + "\n")
    return contam.scan(shard, bench, workers=1, **options)


@pytest.mark.parametrize("change", [str.upper, lambda text: text.replace(" ", ", ")])
def test_case_and_marks_hide_no_copy_from_a_policy_with_tokens_of_a_file(
    tmp_path, bench, tokenizer, change
):
    result = scan(
        tmp_path, bench, change(QUESTION), policies=["decon-default"], unit=str(tokenizer)
    )
    assert {v.item_id: v.label for v in result} == {"0": "contaminated", "1": "clean", "2": "clean"}


def test_the_record_of_a_run_names_the_file_that_was_read_with(tmp_path, bench, tokenizer):
    result = scan(
        tmp_path, bench, QUESTION, policies=["decon-default", "lmeval-13"], unit=str(tokenizer)
    )
    words, tokens = result.run["parameters"]["lanes"]
    digest = hashlib.sha256(tokenizer.read_bytes()).hexdigest()
    assert (words["unit"], words["reads_with"]) == ("word", digest)
    assert (tokens["unit"], tokens["sha256"]) == (str(tokenizer), digest)
    assert "reads_with" not in tokens


def test_a_policy_says_the_same_in_company(tmp_path, bench):
    together = ["contam", "decon-default:olmo-web", "decon-default", "tulu3-50"]
    result = scan(tmp_path, bench, f"{QUESTION} {OTHERS[0][:70]}", policies=together)
    for policy in together:
        alone = scan(tmp_path, bench, f"{QUESTION} {OTHERS[0][:70]}", policies=[policy])
        mine = [(v.item_id, v.label, v.score, v.reason) for v in result if v.policy == policy]
        assert mine == [(v.item_id, v.label, v.score, v.reason) for v in alone]


def test_the_number_of_workers_changes_nothing(tmp_path, bench):
    corpus = tmp_path / "many"
    corpus.mkdir()
    for n, text in enumerate([QUESTION, OTHERS[0], f"{OTHERS[1]} {QUESTION}", "nothing"]):
        (corpus / f"{n}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    one, four = (
        contam.scan(corpus, bench, policies=["decon-default"], workers=workers)
        for workers in (1, 4)
    )
    assert one.verdicts.to_pylist() == four.verdicts.to_pylist()
    assert [v.n_documents for v in one] == [2, 1, 1]
