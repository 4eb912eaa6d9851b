"""Of what matches, the best documents stay in any order; and policies read with tokens of their own."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.detect.match import collect
from contam.detect.match.collect import Collection
from contam.detect.match.pieces import Grouped, Pieces, PolicyCount
from contam.detect.model import Matches
from contam.detect.plan import ScanParameters, make_plan
from contam.detect.policies.policy import get_policy
from contam.errors import PolicyError, UsageError
from tests.kernels.support import make_item, view_of
from tests.text.tokenizer_files import save_word_level

N_ITEMS, MOST = 3, 2

#: item, shard, row and rank of a pair: few of each, so that ranks tie.
places = st.tuples(st.integers(0, N_ITEMS - 1), st.integers(0, 2), st.integers(0, 9))
found = st.dictionaries(places, st.sampled_from((0.0, 0.5, 1.0)), max_size=40)


def tables(rows: list[tuple[tuple[int, int, int], float]]) -> tuple[Matches, Pieces, np.ndarray]:
    """Pairs, one piece for each that names its row, and the ranks."""
    matches = Matches.zeros(len(rows))
    matches.item[:], matches.shard[:], matches.row[:] = zip(*(at for at, _ in rows), strict=True)
    n = np.arange(len(rows))
    row = matches.row.astype(np.int32)
    pieces = Pieces(n, n.astype(np.int8), row, row, row, row, row)
    return matches, pieces, np.array([rank for _, rank in rows])


@pytest.fixture(scope="module", autouse=True)
def often():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "_PRUNE_ROWS", 3)
        yield


@given(found, st.booleans(), st.data())
def test_the_best_documents_stay_in_any_order_and_grouping(found, together, more):
    rows = more.draw(st.permutations(sorted(found.items())))
    cuts = more.draw(st.lists(st.integers(0, len(rows)), max_size=6).map(sorted))
    view = view_of([make_item(k, question=f"q{k}") for k in range(N_ITEMS)])
    first = Collection.start(view, [], get_policy("contam"), MOST)
    second = Collection.start(view, [], get_policy("contam"), MOST)
    workers = [first, first.empty_sibling() if together else second]
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        if begin < end:
            workers[number % 2].shared.top_documents.add(*tables(rows[begin:end]))
    whole, other = workers
    whole.merge(other)
    matches, pieces = whole.evidence()
    told = list(
        zip(matches.item.tolist(), matches.shard.tolist(), matches.row.tolist(), strict=True)
    )
    want = []
    for item in range(N_ITEMS):
        mine = [(-rank, shard, row) for (i, shard, row), rank in found.items() if i == item]
        want += [(item, shard, row) for _, shard, row in sorted(mine)[:MOST]]
    assert told == want
    assert pieces.match.tolist() == list(range(len(want)))
    assert pieces.start.tolist() == [row for _, _, row in want]


def counted(rows: list[tuple[tuple[int, int, int], float]], batches: list[int]) -> PolicyCount:
    """What is counted of pairs that come in batches; those with a score above 0 are hits."""
    count = PolicyCount.empty(N_ITEMS + 1)
    for begin, end in zip([0, *batches], [*batches, len(rows)], strict=True):
        if begin < end:
            matches, _, score = tables(rows[begin:end])
            matches.n_places[:] = matches.row + 1
            count.add(matches, score, score > 0.0, Grouped.of(matches))
    return count


@given(found, st.data())
def test_only_items_that_were_found_take_memory_and_all_is_counted(found, more):
    rows = more.draw(st.permutations(sorted(found.items())))
    cuts = more.draw(st.lists(st.integers(0, len(rows)), max_size=6).map(sorted))
    middle = more.draw(st.integers(0, len(rows)))
    count = counted(rows[:middle], [at for at in cuts if at < middle])
    count.merge(counted(rows[middle:], []))
    items = {item for item, _, _ in found}
    part, again = count.in_order(), PolicyCount.empty(N_ITEMS + 1)
    assert part.best.item.tolist() == sorted(items)
    assert part.n_rows == count.n_rows == len(part.n_documents) == len(items)
    again.merge(part)
    for totals in (one.totals(np.empty(0, np.int32)) for one in (count, again)):
        for item in range(N_ITEMS + 1):
            mine = [(-score, shard, row) for (i, shard, row), score in found.items() if i == item]
            hits = [row for score, _, row in mine if score < 0.0]
            assert totals.n_documents[item] == len(hits)
            assert totals.n_occurrences[item] == sum(hits) + len(hits)
            best_score, shard, row = min(mine, default=(0.0, -1, -1))
            assert totals.best_score[item] == -best_score
            match = totals.best_match
            place = (match.item[item], match.shard[item], match.row[item])
            assert place == (item if mine else -1, shard, row)


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


# -------------------------------------------------------------------------------------------- units


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
