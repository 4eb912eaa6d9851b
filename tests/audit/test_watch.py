"""A watch: what changed is audited again, runs exclude each other, and a killed one loses nothing."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from contam.audit import watch as watching
from contam.audit.gate.rules import load_rules
from contam.audit.spec import load_spec
from contam.audit.watch import watch
from contam.audit.watch_page import LEAST_RUNS, limits
from contam.errors import OutputError

AUDIT = """\
[audit]
out = "watched"
least = 10
decoys = 0

[[corpus]]
name = "web"
paths = ["corpus"]

[[benchmark]]
paths = ["items/lantern_quiz.jsonl"]

[logs]
paths = ["logs"]
"""


@pytest.fixture
def home(bench_fixtures, tmp_path):
    shutil.copytree(bench_fixtures / "corpus", tmp_path / "corpus")
    for name in ("items", "logs"):
        (tmp_path / name).mkdir()
    shutil.copy(bench_fixtures / "items/lantern_quiz.jsonl", tmp_path / "items")
    shutil.copy(bench_fixtures / "logs/lantern_quiz.csv", tmp_path / "logs")
    (tmp_path / "AUDIT.toml").write_text(AUDIT, encoding="utf-8")
    return tmp_path


def run(home, **options):
    return watch(load_spec(home / "AUDIT.toml"), workers=1, **options)


def history(home, name="runs"):
    return pq.read_table(home / "watched" / f"{name}.parquet").to_pylist()


@pytest.mark.slow
def test_a_history_grows_by_what_changed_and_nothing_else_is_run_again(home):
    shard = home / "corpus/part-001.parquet"
    later = home / "later.parquet"
    shutil.move(shard, later)
    first = run(home)
    assert (first.run, first.changed) == (1, True)
    same = run(home)
    assert (same.run, same.changed) == (2, False)
    assert {"checks/web", "scores"} <= set(same.pack.reused)
    assert [row["said"] for row in history(home)][1] == "nothing changed"
    n_figures = len(history(home, "figures"))

    shutil.move(later, shard)
    grown = run(home)
    assert grown.changed
    assert "checks/web" not in grown.pack.reused
    last = history(home)[-1]
    assert "shards: 1 new" in last["said"]
    assert "newly flagged" in last["said"]
    assert {row["run"] for row in history(home, "figures")} == {1, 3}
    assert len(history(home, "figures")) == 2 * n_figures

    log = home / "logs/lantern_quiz.csv"
    lines = log.read_text().splitlines()
    right = [line + (",1" if at else ",avocet-9b") for at, line in enumerate(lines)]
    log.write_text("\n".join(right) + "\n")
    model = run(home)
    assert "checks/web" in model.pack.reused
    assert "scores" not in model.pack.reused
    assert "avocet-9b" in {row["model"] for row in history(home, "figures") if row["run"] == 4}
    page = (home / "watched/index.html").read_text()
    assert "shards: 1 new" in page
    assert "data:image/svg+xml" in page
    assert (home / "watched/report/study.json").is_file()


def test_two_runs_exclude_each_other_and_a_damaged_history_is_refused(home):
    run(home)
    before = history(home)
    with watching._alone(home / "watched"), pytest.raises(OutputError, match="under way"):
        run(home)
    assert history(home) == before
    path = home / "watched/runs.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(OutputError, match=r"runs\.parquet"):
        run(home)
    assert len(path.read_bytes()) == 100


@pytest.mark.slow
def test_a_run_that_is_stopped_anywhere_is_taken_up_by_the_next(home, monkeypatch):
    shutil.move(home / "corpus/part-001.parquet", home / "later.parquet")
    run(home)
    shutil.move(home / "later.parquet", home / "corpus/part-001.parquet")
    whole = watching.write_study

    def stopped(*_args, **_options):
        raise KeyboardInterrupt

    # After the new pack is published and before the history knows of it.
    monkeypatch.setattr(watching, "write_study", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(home)
    assert len(history(home)) == 1
    monkeypatch.setattr(watching, "write_study", whole)
    after = run(home)
    assert (after.run, after.changed) == (2, True)
    assert "checks/web" in after.pack.reused
    assert "shards: 1 new" in history(home)[-1]["said"]
    assert {row["run"] for row in history(home, "figures")} == {1, 2}


def test_the_gate_is_asked_every_time_and_decides_the_exit_code(home, monkeypatch, capsys):
    from contam.cli.main import main

    (home / "RULES.toml").write_text('[[rule]]\ncheck = "flagged_share"\nmost_percent = 1\n')
    monkeypatch.chdir(home)
    assert main(["watch", "AUDIT.toml", "--rules", "RULES.toml", "--quiet", "--json"]) == 3
    tree = json.loads(capsys.readouterr().out)
    assert (tree["run"], tree["changed"]) == (1, True)
    assert "gate fails" in tree["finding"]["found"]
    rules = load_rules(home / "RULES.toml").rules
    assert run(home, rules=rules).gate.passed is False
    assert [row["gate"] for row in history(home)] == ["failed", "failed"]
    assert main(["watch", "AUDIT.toml", "--quiet"]) == 0
    assert main(["watch", "gone.toml"]) == 2
    assert "gone.toml" in capsys.readouterr().err


@pytest.mark.parametrize(("runs", "one_in"), [(LEAST_RUNS, 32), (25, 127)])
def test_limits_hold_a_steady_figure_as_often_as_the_page_says(runs, one_in):
    rng = np.random.default_rng(2)
    outside, n_sims = 0, 5_000
    for _ in range(n_sims):
        values = rng.normal(0.3, 0.01, runs + 1)
        _, low, high = limits(values[:-1])
        outside += not low <= values[-1] <= high
    share = 1 / one_in
    assert outside / n_sims == pytest.approx(share, abs=3 * np.sqrt(share / n_sims))


def test_limits_need_runs():
    assert np.isnan(limits([0.1] * (LEAST_RUNS - 1))).all()
    assert limits([0.1] * LEAST_RUNS) == pytest.approx((0.1, 0.1, 0.1))


def test_what_jumps_out_of_its_limits_is_named():
    from contam.audit.watch_page import _charts

    key = {"figure": "flagged", "benchmark": "b", "policy": "p", "model": "", "metric": "", "n": 9}
    values = [0.10, 0.11, 0.10, 0.09, 0.10, 0.11, 0.10, 0.10, 0.30]
    rows, pictures = _charts([{**key, "run": at, "value": v} for at, v in enumerate(values, 1)])
    assert [row["out"] for row in rows] == [True]
    assert pictures[0].panels[0].marks[-1].tone == "alarm"
    rows, _ = _charts([{**key, "run": at, "value": v} for at, v in enumerate(values[:-1], 1)])
    assert [row["out"] for row in rows] == [False]
