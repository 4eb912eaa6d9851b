"""A watch: what changed is audited again, runs exclude each other, and a killed one loses nothing."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from contam.audit import watch as watching
from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.watch import watch
from contam.audit.watch_page import LEAST_RUNS, limits
from contam.errors import OutputError, UsageError
from tests.waiting import wait_until

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


def shards(home):
    return len(list((home / "corpus").rglob("*.*")))


def history(home, name="runs"):
    return pq.read_table(home / "watched" / f"{name}.parquet").to_pylist()


@pytest.mark.slow
def test_a_history_grows_by_what_changed_and_nothing_else_is_run_again(home):
    shard = home / "corpus/part-001.parquet"
    later = home / "later.parquet"
    shutil.move(shard, later)
    first = run(home)
    assert (first.run, first.changed) == (1, True)
    assert (first.searched, first.kept) == (shards(home), 0)
    same = run(home)
    assert (same.run, same.changed) == (2, False)
    assert (same.searched, same.kept) == (0, shards(home))
    assert {"checks/web", "scores"} <= set(same.pack.reused)
    assert [row["said"] for row in history(home)][1] == "nothing changed"
    n_figures = len(history(home, "figures"))

    shutil.move(later, shard)
    grown = run(home)
    assert grown.changed
    assert (grown.searched, grown.kept) == (1, shards(home) - 1)
    assert "checks/web" not in grown.pack.reused
    last = history(home)[-1]
    assert "shards: 1 new" in last["said"]
    assert (last["searched"], last["kept"]) == (grown.searched, grown.kept)
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


@pytest.mark.slow
def test_a_run_that_is_killed_frees_the_folder_and_the_next_one_goes_on(home):
    command = [sys.executable, "-m", "contam", "watch", "AUDIT.toml", "--quiet"]
    checks = home / "watched/pack.work/checks"
    process = subprocess.Popen(command, cwd=home)
    try:
        # Not before it holds the lock and has begun to search.
        wait_until(lambda: checks.exists() or process.poll() is not None)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert not (home / "watched/runs.parquet").exists()
    assert run(home).run == 1
    assert not checks.exists()


@pytest.mark.slow
def test_a_pack_whose_shards_were_kept_is_that_of_an_audit_of_all(home):
    made = home / "AUDIT.toml"
    made.write_text(AUDIT.replace("decoys = 0", "decoys = 1"), encoding="utf-8")
    first = home / "corpus/part-001.parquet"
    moved = shutil.move(first, home / "later.parquet")
    run(home)
    shutil.move(moved, first)
    (home / "corpus/part-000.parquet").rename(home / "corpus/renamed.parquet")
    watched = run(home)
    assert watched.kept
    whole = run_audit(replace(load_spec(made), out=str(home / "whole")), workers=1)
    assert watched.pack.digest == whole.digest
    assert sorted(one.name for one in (home / "watched/parts").glob("*/*")) == ["web", "web"]
    # A corpus that is watched no more leaves nothing behind.
    made.write_text(AUDIT.replace('"web"', '"other"'), encoding="utf-8")
    run(home)
    assert [one.name for one in (home / "watched/parts").glob("*/*")] == ["other"]


def test_the_gate_is_asked_every_time_and_decides_the_exit_code(home, monkeypatch, capsys):
    from contam.cli.main import main

    (home / "RULES.toml").write_text('[[rule]]\ncheck = "flagged_share"\nmost_percent = 1\n')
    monkeypatch.chdir(home)
    assert main(["watch", "AUDIT.toml", "--rules", "RULES.toml", "--quiet", "--json"]) == 3
    tree = json.loads(capsys.readouterr().out)
    assert (tree["run"], tree["changed"]) == (1, True)
    assert (tree["searched"], tree["kept"]) == (shards(home), 0)
    assert "gate fails" in tree["finding"]["found"]
    assert [row["gate"] for row in history(home)] == ["failed"]
    # Another item: nothing that was found for the others holds.
    with (home / "items/lantern_quiz.jsonl").open("a") as file:
        file.write(json.dumps({"id": "late", "question": "Who came later than all of them?"}))
    (home / "AUDIT.toml").write_text(AUDIT.partition("[logs]")[0])
    assert main(["watch", "AUDIT.toml"]) == 0
    assert f"shards: {shards(home)} searched, 0 kept" in capsys.readouterr().err
    shutil.copy(home / "corpus/part-000.parquet", home / "corpus/part-900.parquet")
    assert main(["watch", "AUDIT.toml"]) == 0
    said = capsys.readouterr().err
    assert f"shards: 1 to search, {shards(home) - 1} kept from earlier runs" in said
    assert main(["watch", "gone.toml"]) == 2
    assert "gone.toml" in capsys.readouterr().err
    # Two runs exclude each other, and a damaged history is refused and left as it is.
    with watching._alone(home / "watched"):
        assert main(["watch", "AUDIT.toml", "--quiet"]) == 1
    assert "under way" in capsys.readouterr().err
    assert len(history(home)) == 3
    path = home / "watched/runs.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(OutputError, match=r"runs\.parquet"):
        run(home)
    assert len(path.read_bytes()) == 100


@pytest.mark.slow
def test_a_history_of_which_a_part_is_lost_is_not_begun_anew(home):
    run(home)
    shard = home / "corpus/part-001.parquet"
    shard.rename(home / "gone.parquet")
    run(home)
    for name in ("runs.parquet", "figures.parquet"):
        lost = home / "watched" / name
        whole = lost.read_bytes()
        lost.unlink()
        with pytest.raises(OutputError, match="not of one history"):
            run(home)
        lost.write_bytes(whole)
    assert [row["run"] for row in history(home)] == [1, 2]
    # Without the newest pack there is nothing to compare with; the one before is no stand-in.
    shutil.rmtree(home / "watched/pack")
    (home / "gone.parquet").rename(shard)
    run(home)
    assert history(home)[-1]["said"] == "there is no run before to compare with"
    manifest = home / "watched/pack/manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    with pytest.raises(OutputError, match="was altered") as error:
        run(home)
    assert "remove it" in error.value.hint


def test_a_history_in_a_corpus_is_refused(home):
    text = (home / "AUDIT.toml").read_text().replace('"watched"', '"corpus/watched"')
    (home / "AUDIT.toml").write_text(text)
    with pytest.raises(UsageError, match="would lie in the corpus"):
        run(home)
    assert not (home / "corpus/watched").exists()


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
