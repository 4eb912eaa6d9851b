"""Who stands in one ranking: short runs and other set-ups change nothing for the others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.rescore.panel import RescoreSettings
from contam.rescore.rankings import matrices
from contam.rescore.summary import markdown
from contam.tables import schemas
from tests.matrix import sampled
from tests.rescore.panels import flags_of, series_of
from tests.rescore.panels import tables_of as made
from tests.rescore.stats.by_hand import mcnemar

FAST = RescoreSettings(permutations=199, draws=50, sweep_permutations=99, least=20)
LABELS = ["contaminated"] * 100 + ["clean"] * 300


def run_of(model, *, items=None, seed=0, p=0.5, setup=(), benchmark="b"):
    rng = np.random.default_rng([seed, *map(ord, model)])
    score = (rng.random(400) < p).astype(float)
    item = np.arange(400) if items is None else np.asarray(items)
    one = series_of(score[item], model=model, item=item, benchmark=benchmark)
    return replace(one, setup=tuple(setup))


def tables_of(series, settings=FAST):
    return made(series, [flags_of(LABELS)], settings)


def without_notes(rows):
    """What a row says of its own; p is adjusted over all models there are."""
    own = ({k: v for k, v in row.items() if k not in ("note", "p_holm", "p_bh")} for row in rows)
    return sorted(map(str, own))


@pytest.mark.parametrize(
    ("n", "seed", "first"), sampled(3, [(10, 0, True), (115, 1, False), (330, 2, True)])
)
def test_a_short_run_changes_no_figure_of_the_others(n, seed, first):
    """Ranking and pairs of seven whole runs, with and without a run over n items."""
    whole = [run_of(f"m{at}", seed=seed, p=0.3 + 0.05 * at) for at in range(7)]
    order = np.random.default_rng(seed).permutation(400)
    short = run_of("limited", items=np.sort(order[:n]), seed=seed)
    alone = tables_of(whole)
    together = tables_of([short, *whole] if first else [*whole, short])
    rows = schemas.rows(together["rankings"])
    others = [row for row in rows if row["model"] != "limited"]
    assert without_notes(others) == without_notes(schemas.rows(alone["rankings"]))
    pairs = schemas.rows(together["pairs"])
    others = [row for row in pairs if "limited" not in (row["first"], row["second"])]
    assert without_notes(others) == without_notes(schemas.rows(alone["pairs"]))
    # It is named, with what it was scored on, by itself and to the others.
    rows = {row["model"]: row for row in schemas.rows(together["rankings"])}
    assert (rows["limited"]["rank_full"], rows["limited"]["n"]) == (None, n)
    assert rows["limited"]["full"] == pytest.approx(short.score.mean())
    assert f"{n:,} of the 400 items" in rows["limited"]["note"]
    assert f"limited ({n:,} items)" in rows["m0"]["note"]
    assert f"limited \\({n:,} items" in markdown(together) or "limited (" in markdown(together)
    assert not [row for row in pairs if "limited" in (row["first"], row["second"])]


def test_models_that_each_lack_some_items_are_compared_pair_by_pair():
    rng = np.random.default_rng(5)
    skill = np.linspace(0.3, 0.7, 9)
    runs = [
        run_of(f"m{at:02}", items=np.sort(rng.permutation(400)[:388]), p=p)
        for at, p in enumerate(skill)
    ]
    whole = {run.model: run for run in runs}
    tables = tables_of(runs)
    rows = schemas.rows(tables["rankings"])
    assert {row["n"] for row in rows} == {388}
    assert all(row["rank_full"] for row in rows)
    pairs = schemas.rows(tables["pairs"])
    assert len(pairs) == 36
    for row in pairs[::3]:
        first, second = whole[row["first"]], whole[row["second"]]
        both, one, other = np.intersect1d(first.item, second.item, return_indices=True)
        assert row["n"] == len(both) >= 376
        assert row["n_clean"] == np.count_nonzero(both >= 100)
        apart = first.score[one] - second.score[other]
        assert row["difference_full"] == pytest.approx(apart.mean())
        assert row["p_full"] == pytest.approx(mcnemar(first.score[one], second.score[other]))


@given(st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=1, max_size=6))
def test_every_run_is_ranked_or_named(sets):
    series = [run_of(f"m{at}", items=sorted(own)) for at, own in enumerate(sets)]
    (found,) = matrices(series)
    names = [*found.models, *(one.model for one in found.short)]
    assert sorted(names) == [one.model for one in series]
    for one, scores in zip(found.series, found.scores, strict=True):
        held = set(found.items[~np.isnan(scores)].tolist())
        assert held == set(found.items.tolist()) & set(one.item.tolist())
    # The order of the logs does not matter.
    (again,) = matrices(series[::-1])
    assert again.models == found.models
    assert again.items.tolist() == found.items.tolist()


@pytest.mark.parametrize(
    ("name", "values"),
    sampled(3, [("few-shot", ("0", "5")), ("version", ("2", "3")), ("prompt", ("ab12", "cd34"))]),
)
def test_runs_of_other_set_ups_have_rankings_of_their_own(name, values):
    series = [
        run_of(
            f"{value}-{at}",
            p=0.3 + 0.1 * at,
            setup=[("version", "9"), (name, value)][name == "version" :],
        )
        for value in values
        for at in range(3)
    ]
    tables = tables_of([*series, run_of("plain")])
    rows = schemas.rows(tables["rankings"])
    rankings = {row["setup"]: [] for row in rows}
    for row in rows:
        rankings[row["setup"]].append(row["model"])
    # What a log does not record is no difference: the plain table is with the larger set-up.
    first, second = values
    assert {frozenset(own) for own in rankings.values()} == {
        frozenset({f"{first}-{at}" for at in range(3)} | {"plain"}),
        frozenset({f"{second}-{at}" for at in range(3)}),
    }
    for row in rows:
        assert value_in(row["setup"], row["model"]) or row["model"] == "plain"
        assert row["note"]
    for row in schemas.rows(tables["pairs"]):
        models = {row["first"], row["second"]} - {"plain"}
        assert len({model.partition("-")[0] for model in models}) == 1
    # Two set-ups of one benchmark are not two benchmarks to be put together.
    assert not schemas.rows(tables["aggregate"])
    mixed = schemas.rows(
        tables_of(series, RescoreSettings(permutations=199, draws=50, least=20, mixed_setups=True))[
            "rankings"
        ]
    )
    assert {row["setup"] for row in mixed} == {""}
    assert max(row["rank_full"] for row in mixed) > 3
    assert all(row["note"] for row in mixed)


def value_in(setup, model):
    return model.partition("-")[0] in setup
