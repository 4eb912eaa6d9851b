"""The study of log-probabilities: its input, its guards, and what a written study says."""

import json

import numpy as np
import pytest

from contam.errors import LogError, UsageError
from contam.study import likelihood, write_study
from tests.cli.processes import contam_here


def shard_records(*, gain=0.0, shards=12, orders=20, seed=0, **more):
    """A file in shards; `gain` is what the published order is worth to the model."""
    rng = np.random.default_rng(seed)
    for shard in range(shards):
        level = -200 + 20 * rng.normal()
        names = [("canonical", 0), *(("shuffled", order) for order in range(orders))]
        for kind, perm in names:
            logprob = level + rng.normal() + gain * (kind == "canonical")
            yield {
                "shard": shard, "kind": kind, "perm": perm, "logprob": logprob, "n_tokens": 90,
                **more,
            }  # fmt: skip


def text_records(*, shift=0.5, n=120, days=0, seed=0):
    """Texts, every second one a member whose tokens are `shift` likelier."""
    rng = np.random.default_rng(seed)
    for at in range(n):
        member = at % 2 == 0
        logprob = np.minimum(-0.01, -2 + shift * member + rng.normal(0, 1, 60)).round(4)
        yield {
            "item": f"t{at}", "logprob": logprob.tolist(), "mu": [-3.0] * 60,
            "sigma": [1.5] * 60, "ref_logprob": -2.0, "lower_logprob": -2.6,
            "text": " ".join(f"word{at}{place}" for place in range(40)), "member": member,
            "date": f"2024-{1 + (at // 2 + days * (not member)) % 12:02d}-01",
        }  # fmt: skip


def lines(path, records):
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    return path


def test_a_model_that_prefers_the_published_order_is_found_and_one_that_does_not_is_not(tmp_path):
    records = [
        *shard_records(gain=1.5, model="quokka-7b"),
        *shard_records(seed=1, model="heron-8b"),
    ]
    study = likelihood(shards=records, exchangeable=True)
    rows = {row["model"]: row for row in study.rows("order")}
    assert rows["quokka-7b"]["p_holm"] < 0.001
    assert rows["quokka-7b"]["permutation_p"] == pytest.approx(1 / 21)
    assert rows["heron-8b"]["p"] > 0.05
    assert rows["heron-8b"]["p_ddof0"] <= rows["heron-8b"]["p"]
    assert study.finding.found.startswith("1 of 2 models prefer the published order")
    path = lines(tmp_path / "shards.jsonl", records)
    done = contam_here(
        "study", "likelihood", "--shards", path, "--exchangeable", "--out", "out", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["order"] == study.rows("order")
    assert (tmp_path / "out" / "order.png").stat().st_size > 5_000


def items(*texts):
    return [{"text": text} for text in texts]


SHUFFLED = [
    f"{word} is where the {word} lives"
    for word in ("kiwi", "ash", "yew", "oak", "fir", "elm", "bay")
]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([*SHUFFLED, SHUFFLED[0]], "twice"),
        (sorted(SHUFFLED), "sorted by their texts"),
        ([f"Question {at}. {text}" for at, text in enumerate(SHUFFLED)], "numbered"),
        (["x" * at for at in range(1, 40)], "sorted by"),
    ],
)
def test_a_file_whose_order_means_something_is_refused(texts, says):
    study = likelihood(shards=list(shard_records()), items=items(*texts))
    assert [table for table in study.tables if study.rows(table)] == []
    (refusal,) = study.refusals
    assert refusal.what == "exchangeability of the file"
    assert says in refusal.reason
    assert says in study.finding.found


def test_without_items_somebody_has_to_say_that_any_order_would_do():
    records = list(shard_records())
    assert "any order" in likelihood(shards=records).refusals[0].reason
    assert not likelihood(shards=records, exchangeable=True).refusals
    assert not likelihood(shards=records, items=items(*SHUFFLED)).refusals


def test_scores_of_texts_and_how_they_tell_members_apart(tmp_path):
    study = likelihood(texts=list(text_records()))
    first = study.rows("texts")[0]
    record = next(iter(text_records()))
    values = np.sort(record["logprob"])
    assert first["loss"] == pytest.approx(values.mean())
    assert first["min_k"] == pytest.approx(values[:12].mean())
    assert first["min_k_plus"] == pytest.approx((values[:12].mean() + 3) / 1.5)
    assert first["reference"] == pytest.approx(values.mean() + 2)
    assert first["lowercase"] == pytest.approx(-2.6 / values.mean())
    rows = {row["method"]: row for row in study.rows("separation")}
    assert {"loss", "zlib", "min_k", "min_k_plus", "reference", "date alone"} <= set(rows)
    assert rows["min_k"]["auroc_low"] > 0.5
    assert "not alike" not in study.finding.found
    out = write_study(study, tmp_path / "out")
    assert (out / "separation.png").stat().st_size > 5_000


def test_members_of_another_time_than_the_others_are_named_before_any_score():
    apart = [
        {**row, "date": "2021-05-01" if row["member"] else "2024-05-01"} for row in text_records()
    ]
    study = likelihood(texts=apart)
    assert "date alone 0.00 without a model" in study.finding.found
    undated = [{k: v for k, v in row.items() if k != "date"} for row in text_records()]
    reasons = {refusal.what: refusal.reason for refusal in likelihood(texts=undated).refusals}
    assert "whether dates alone tell members apart" in reasons


def test_no_study_of_log_probabilities_has_a_verdict():
    """The guard of science.md 7: a flag is never raised by these tests alone."""
    both = likelihood(
        shards=list(shard_records(gain=9)), texts=list(text_records(shift=2)), exchangeable=True
    )
    words = {name for table in both.tables for name in both.to_arrow(table).column_names}
    assert not words & {"label", "verdict", "contaminated", "flagged"}
    assert "change no verdict" in both.finding.change
    assert "change no verdict" in both.run["notes"][0]


def test_what_a_text_lacks_is_refused_by_name():
    bare = [{"item": "a", "logprob": [-1.0, -2.0]}, {"item": "b", "logprob": [-1.0] * 5}]
    study = likelihood(texts=bare)
    what = {refusal.what: refusal.reason for refusal in study.refusals}
    assert what["min_k of 1 of 2 texts"] == "it needs 5 tokens"
    assert what["zlib of 2 of 2 texts"] == "it needs its text"
    assert "how well scores tell members apart" in what
    assert study.rows("texts")[0]["loss"] == -1.5
    assert study.rows("texts")[0]["min_k"] is None


GOOD = {"item": "x", "logprob": [-1.0, -2.0]}
SHARD = {"shard": 0, "kind": "shuffled", "perm": 0, "logprob": -1.0, "n_tokens": 90}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"logprob": [-1.0, 0.5]}, "above 0"),
        ({"logprob": [-1.0, float("nan")]}, "not finite"),
        ({"logprob": [-1.0, float("-inf")]}, "not finite"),
        ({"logprob": [None, -1.0]}, "no number"),
        ({"logprob": []}, "no list"),
        ({"logprob": -1.0}, "no list"),
        ({"tokens": ["a"]}, "for 1 tokens"),
        ({"mu": [-1.0, -1.0]}, "come together"),
        ({"mu": [-1.0, -1.0], "sigma": [1.0, 0.0]}, "sigma"),
        ({"mu": [-1.0], "sigma": [1.0]}, "mu has 1"),
        ({"ref_logprob": 3}, "above 0"),
        ({"ref_logprob": "3"}, "no number"),
        ({"member": "maybe"}, "neither"),
        ({"member": [1]}, "neither"),
        ({"date": "then"}, "is no date"),
        ({"item": "first"}, "has a row in"),
        ({"item": None}, "item is empty"),
    ],
)
def test_texts_that_are_no_such_thing_are_refused_with_their_line(tmp_path, change, says):
    path = lines(tmp_path / "texts.jsonl", [{**GOOD, "item": "first"}, {**GOOD, **change}])
    with pytest.raises(LogError, match=says) as error:
        likelihood(texts=path)
    assert "texts.jsonl:2" in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "sorted"}, "neither canonical nor shuffled"),
        ({"logprob": 0.1}, "above 0"),
        ({"n_tokens": 0}, "no number of tokens"),
        ({"n_tokens": 60}, "in another order"),
        ({}, "has a row in"),
        ({"kind": "canonical"}, "has a row in"),
        ({"logprob": "low"}, "no number"),
        ({"perm": 99}, "lacks an order"),
        ({"shard": 99}, "lacks an order"),
    ],
)
def test_shards_that_do_not_add_up_are_refused(change, says):
    records = [*shard_records(shards=2, orders=2), {**SHARD, **change}]
    with pytest.raises(LogError, match=says):
        likelihood(shards=records, exchangeable=True)


def test_one_shard_no_records_and_no_input_are_refused(tmp_path):
    with pytest.raises(LogError, match="no shuffled order"):
        likelihood(shards=list(shard_records(orders=0)), exchangeable=True)
    with pytest.raises(LogError, match="two shards"):
        likelihood(shards=list(shard_records(shards=1)), exchangeable=True)
    with pytest.raises(UsageError, match="one table with rows"):
        likelihood(texts=[])
    with pytest.raises(UsageError):
        likelihood()
    with pytest.raises(UsageError):
        likelihood(texts=[GOOD], k=0)
    path = tmp_path / "cut.jsonl"
    path.write_text('{"item": "x", "logprob": [-1.0, -2')
    with pytest.raises(LogError, match="valid JSON"):
        likelihood(texts=path)
