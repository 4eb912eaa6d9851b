"""The tables of a re-scoring over made-up panels: every column, and what it refuses to say."""

import re
from dataclasses import replace

import numpy as np
import pytest

from contam.rescore.join import Joiner
from contam.rescore.logs.read import read_logs
from contam.rescore.panel import RescoreSettings, Series, group_series
from contam.rescore.summary import beyond_words, markdown
from contam.tables import schemas
from tests.rescore.logs.small import item, items_table, lm_eval_group
from tests.rescore.panels import flags_of, scores_in, series_of
from tests.rescore.panels import tables_of as made

FAST = RescoreSettings(permutations=199, draws=50, sweep_permutations=50)


def tables_of(series, flags, settings=FAST):
    return made(series, flags, settings)


def whole(tables):
    return [row for row in scores_in(tables) if row["subset_by"] == "all"]


@pytest.fixture
def leak():
    """Three models on 400 items, 100 flagged; the first one remembers the flagged ones."""
    rng = np.random.default_rng(3)
    labels = ["contaminated"] * 100 + ["clean"] * 290 + ["not_checkable"] * 10
    skill = {"memo": 0.5, "better": 0.57, "worse": 0.3}
    scores = {name: (rng.random(400) < p).astype(float) for name, p in skill.items()}
    scores["memo"][:100] = 1
    series = [series_of(values, model=name) for name, values in scores.items()]
    return series, flags_of(labels), scores


def test_full_clean_and_flagged_are_what_they_are(leak):
    series, flags, scores = leak
    for row in whole(tables_of(series, [flags])):
        values = scores[row["model"]]
        assert (row["n"], row["n_clean"], row["n_flagged"]) == (400, 290, 100)
        assert row["n_not_checkable"] == 10
        assert row["full"] == pytest.approx(values.mean())
        assert row["clean"] == pytest.approx(values[100:390].mean())
        assert row["flagged"] == pytest.approx(values[:100].mean())
        # The gain is over the items that could be checked.
        assert row["epg"] == pytest.approx(values[:390].mean() - values[100:390].mean())
        assert row["gain"] == row["full"] - row["clean"]
        assert row["gap_low"] < row["gap"] < row["gap_high"]
        assert row["clean_with_unchecked"] == pytest.approx(values[100:].mean())
        assert row["full_lo"] < row["full"] < row["full_hi"]
        assert row["bound_low"] <= row["full"] <= row["bound_high"]
        assert "10 " in row["note"]


def test_the_leak_is_found_and_the_ranking_flips(leak):
    series, flags, _ = leak
    tables = tables_of(series, [flags])
    rows = {row["model"]: row for row in whole(tables)}
    assert rows["memo"]["gap_p_holm"] < 0.05
    assert rows["better"]["gap_p_holm"] > 0.05
    ranks = {row["model"]: row for row in schemas.rows(tables["rankings"])}
    assert (ranks["memo"]["rank_full"], ranks["memo"]["rank_clean"]) == (1, 2)
    assert ranks["memo"]["kendall_tau"] < 1
    pairs = {(row["first"], row["second"]): row for row in schemas.rows(tables["pairs"])}
    assert pairs["memo", "worse"]["lead_full"]
    text = markdown(tables)
    assert "memo over worse" in text
    # Lead, n, all items, p Holm, clean items, p Holm, stands.
    (cells,) = [line.split(" | ") for line in text.splitlines() if "| memo over worse" in line]
    p = pairs["memo", "worse"]["p_full_holm"]
    assert p < 0.00005
    assert cells[3] == f"{p:.0e}"


FIGURE = r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-\d+)?"


def test_every_figure_of_the_summary_stands_in_a_table(leak):
    series, flags, _ = leak
    tables = tables_of(series, [flags])
    known = set()
    for table in tables.values():
        for row in schemas.rows(table):
            for value in row.values():
                if isinstance(value, float):
                    known |= {f"{value:.{digits}f}" for digits in (2, 3, 4)} | {f"{value:.0e}"}
                if isinstance(value, float | int):
                    known.add(f"{value:g}")
                if isinstance(value, str):
                    known |= {*re.findall(FIGURE, value)}
    # What could have been found is worked out from the intervals.
    text = re.sub(r"tau-b|not checkable|- By .* would be found .*", "", markdown(tables))
    shown = re.findall(FIGURE, text)
    assert shown
    assert set(shown) <= known | {"-0.0000"}


def test_subsets_tell_kinds_of_leak_apart(leak):
    series, flags, scores = leak
    exposure = np.array(["question+answer"] * 60 + ["question"] * 40 + [""] * 300, object)
    flags = flags_of(
        ["contaminated"] * 100 + ["clean"] * 300,
        exposure=exposure,
        subject=np.repeat(["x", "y"], 200),
    )
    rows = schemas.rows(tables_of(series, [flags])["scores"])
    found = {(row["subset_by"], row["subset"]): row for row in rows if row["model"] == "better"}
    both = found["exposure", "question+answer"]
    assert (both["n_flagged"], both["n_clean"]) == (60, 300)
    assert both["flagged"] == pytest.approx(scores["better"][:60].mean())
    assert found["subject", "y"]["n_flagged"] == 0
    assert found["subject", "y"]["note"]


@pytest.mark.parametrize(
    "labels",
    [
        ["clean"] * 100,
        ["contaminated"] * 100,
        ["not_checkable"] * 100,
        ["clean"] * 51 + ["suspect"] * 49,
    ],
)
def test_what_cannot_be_estimated_is_not(labels):
    scores = (np.arange(100) % 3 == 0).astype(float)
    tables = tables_of([series_of(scores), series_of(1 - scores, model="n")], [flags_of(labels)])
    for row in whole(tables):
        assert row["epg"] is None
        assert row["gap_p"] is None
        assert row["note"]
        assert (row["clean"] is None) == ("clean" not in labels)
    if "clean" not in labels:
        for row in schemas.rows(tables["rankings"]):
            assert row["rank_clean"] is None
            assert row["note"]
    markdown(tables)


def test_a_corpus_metric_is_recomputed_and_never_mixed():
    scores = np.zeros(200)
    one = Series(
        model="m",
        benchmark="b",
        metric="f1",
        score=scores,
        item=np.arange(200),
        aggregate=lambda mask: float(mask.sum()) / 1_000,
        additive=False,
    )
    labels = ["contaminated"] * 80 + ["clean"] * 120
    (row,) = whole(tables_of([one], [flags_of(labels)]))
    assert (row["full"], row["clean"]) == pytest.approx((0.2, 0.12))
    assert row["epg"] == pytest.approx(0.08)
    assert row["epg_z"] is None
    assert row["bound_low"] is None
    assert (row["gap_p"] < 0.05) == (row["gap_low"] > 0)


def test_items_outside_the_benchmark_are_not_clean():
    scores = np.ones(120)
    item = np.concatenate([np.arange(100), np.full(20, -1)])
    labels = ["clean"] * 100
    (row,) = whole(tables_of([series_of(scores, item=item)], [flags_of(labels)]))
    assert (row["n"], row["n_clean"], row["n_not_checkable"]) == (120, 100, 20)


def test_reference_models_share_what_is_easy(leak):
    _, flags, _ = leak
    rng = np.random.default_rng(9)
    easy = np.where(np.arange(400) < 100, 0.9, 0.5)
    series = [
        series_of((rng.random(400) < easy).astype(float), model=name)
        for name in ("tested", "old-1", "old-2", "old-3")
    ]
    settings = RescoreSettings(
        permutations=199, draws=50, sweep_permutations=50, references=("old-1", "old-2", "old-3")
    )
    rows = {row["model"]: row for row in whole(tables_of(series, [flags], settings))}
    assert rows["tested"]["gap"] > 0.2
    assert rows["tested"]["gap_p_holm"] < 0.05
    assert abs(rows["tested"]["adjusted"]) < 0.15
    assert rows["tested"]["adjusted_p_holm"] > 0.05
    assert rows["old-1"]["adjusted"] is None
    first = next(beyond_words([*rows.values()]))
    assert all(f"{name} {rows[name]['gap']:+.3f}" in first for name in settings.references)


def test_items_of_few_passages_are_scored_without_an_adjustment(leak):
    series, flags, _ = leak
    alone = replace(flags, cluster=np.arange(400) // 100)
    for row in whole(tables_of([*series, series_of(np.ones(400), model="third")], [alone])):
        assert row["gap"] is not None
        assert row["adjusted"] is None
        assert row["adjusted_by"]


@pytest.mark.parametrize("sign", [1, -1])
def test_only_a_better_score_on_flagged_items_is_told_as_a_gain(sign):
    flags = flags_of(["contaminated"] * 60 + ["clean"] * 60)
    right = np.repeat([1.0, 0.0] if sign > 0 else [0.0, 1.0], 60)
    rows = whole(tables_of([series_of(right)], [flags]))
    assert rows[0]["gap_p_holm"] < 0.05
    assert len(list(beyond_words(rows))) == (sign > 0)


def test_equal_inputs_give_equal_tables_in_any_order(leak):
    series, flags, _ = leak
    one = tables_of(series, [flags])
    two = tables_of(series[::-1], [flags])
    for name, table in one.items():
        left, right = (sorted(map(str, schemas.rows(t))) for t in (table, two[name]))
        assert left == right, name


def test_one_benchmark_with_few_clean_items_ends_the_clean_side_over_all():
    rng = np.random.default_rng(5)
    series = [
        series_of((rng.random(300) < 0.3 + 0.5 * rng.random()), model=f"m{at}", benchmark=name)
        for at in range(12)
        for name in "abcde"
    ]
    short = tables_of(series, [flags_of(["contaminated"] * 270 + ["clean"] * 30)])
    for row in schemas.rows(short["aggregate"]):
        assert row["mean_full"] is not None
        assert (row["mean_clean"], row["win_rate_clean"], row["borda_clean"]) == (None, None, None)
        assert "30 clean items of a" in row["note"]


def test_scores_that_are_no_shares_are_not_pressed_into_0_and_1():
    scores = np.repeat(np.linspace(10, 90, 60), 2)
    labels = ["contaminated"] * 60 + ["clean"] * 60
    flags = flags_of(labels)
    flags.cluster[:] = np.arange(120) // 2
    (row,) = whole(tables_of([series_of(scores)], [flags]))
    assert row["full_lo"] < row["full"] < row["full_hi"]
    assert row["full_hi"] > 1
    assert row["bound_high"] is None


QUICK = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=2)
TASKS = {"one": [1, 1, 1, 0, 1, 0, 1, 1], "two": [0, 1, 0, 1]}
LABELS = ["contaminated"] * 3 + ["clean"] * 5 + ["contaminated"] + ["clean"] * 3
MICRO, MACRO = 8 / 12, (6 / 8 + 2 / 4) / 2


def docs_of(task, n):
    return [{"question": f"Question {at} of {task}?", "answer": "x"} for at in range(n)]


@pytest.fixture
def tables(tmp_path):
    def make(reported, *, keep=tuple(TASKS), labels=tuple(LABELS)):
        docs = {task: docs_of(task, len(scores)) for task, scores in TASKS.items()}
        lm_eval_group(tmp_path, TASKS, reported, docs=docs)
        logs = [log for log in read_logs([tmp_path]) if log.benchmark in keep]
        items = [
            item(at, doc["question"], answer="x", benchmark=task)
            for task, own in docs.items()
            for at, doc in enumerate(own)
        ]
        joiner = Joiner(items_table(items))
        indices = {log: joiner.join(log).index for log in logs}
        groups = list(group_series(indices))
        return made(groups, [flags_of(list(labels))], QUICK)

    return make


def the_group(tables):
    (row,) = [row for row in scores_in(tables) if row["subset_by"] == "group"]
    return row


def test_items_alike_gives_a_group_all_that_a_benchmark_has(tables):
    found = tables(MICRO)
    row = the_group(found)
    assert (row["benchmark"], row["metric"], row["subset"]) == ("all", "acc,none", "micro")
    assert (row["n"], row["n_clean"], row["n_flagged"]) == (12, 8, 4)
    assert row["full"] == pytest.approx(MICRO, abs=1e-12)
    # Both tasks keep the weight that they have among all items.
    assert row["clean"] == pytest.approx((3 / 5 * 8 + 2 / 3 * 4) / 12, abs=1e-12)
    assert row["epg"] == pytest.approx(row["full"] - row["clean"])


def test_tasks_alike_stays_tasks_alike_without_the_flagged_items(tables):
    row = the_group(tables(MACRO))
    assert row["subset"] == "macro"
    assert row["full"] == pytest.approx(MACRO, abs=1e-12)
    assert row["clean"] == pytest.approx((3 / 5 + 2 / 3) / 2, abs=1e-12)
    assert row["epg"] == pytest.approx(row["full"] - row["clean"])
    assert row["clean_lo"] is None


def test_a_task_without_a_clean_item_has_no_part_in_a_mean_of_tasks(tables):
    labels = LABELS[:8] + ["contaminated"] * 4
    row = the_group(tables(MACRO, labels=labels))
    assert (row["clean"], row["epg"]) == (None, None)
    assert row["note"]


def test_flags_of_a_group_are_dealt_out_within_its_tasks(tmp_path):
    """One easy task is flagged more than a hard one: within each task the flag says nothing."""
    rng = np.random.default_rng(2)
    scores = {"one": [1] * 60, "two": [0] * 60}
    docs = {task: docs_of(task, 60) for task in scores}
    lm_eval_group(tmp_path, scores, 0.5, docs=docs)
    logs = read_logs([tmp_path])
    labels = np.where(rng.random(120) < np.repeat([0.8, 0.2], 60), "contaminated", "clean")
    indices = {log: np.arange(60) + 60 * (log.benchmark == "two") for log in logs}
    groups = list(group_series(indices))
    row = the_group(made(groups, [flags_of(list(labels))], QUICK))
    assert (row["gain"], row["clean"]) == pytest.approx((0.0, row["full"]))
    assert row["gap_p"] is None


@pytest.mark.slow
def test_the_gain_of_a_group_is_significant_as_often_as_said(tmp_path):
    """Easy tasks are flagged more: nothing is gained within any, and nothing is said."""
    rng, rounds, alarms, covered = np.random.default_rng(5), 200, 0, 0
    easy, often = np.linspace(0.3, 0.9, 6), np.linspace(0.1, 0.7, 6)
    for at in range(rounds):
        folder = tmp_path / str(at)
        folder.mkdir()
        scores = {f"t{k}": (rng.random(80) < p).astype(int).tolist() for k, p in enumerate(easy)}
        docs = {task: docs_of(task, 80) for task in scores}
        right = float(np.mean(list(scores.values())))
        lm_eval_group(folder, scores, right, docs=docs)
        labels = np.where(rng.random(480) < np.repeat(often, 80), "contaminated", "clean")
        indices = {log: np.arange(80) + 80 * int(log.benchmark[1:]) for log in read_logs([folder])}
        row = the_group(made(list(group_series(indices)), [flags_of(list(labels))], QUICK))
        alarms += row["gap_p"] < 0.05
        covered += row["gap_low"] <= 0 <= row["gap_high"]
        assert (row["gap_p"] < 0.05) == (not row["gap_low"] <= 0 <= row["gap_high"])
    assert alarms / rounds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert covered / rounds >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / rounds)
