"""An audit takes items and scores from the logs it is given, and from no others."""

import json

import pytest

from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import MANIFEST, read_verified
from contam.errors import LogError
from tests.audit.conftest import FIXTURES
from tests.rescore.logs.small import lm_eval, write_lines

SPEC = """
[audit]
out = "pack"
least = 1
permutations = 99
decoys = 0
[[corpus]]
name = "web"
paths = ["{corpus}"]
[[benchmark]]
{benchmark}
[logs]
paths = ["{logs}"]
"""


def write(folder, *, benchmark="from_logs = true", logs="logs"):
    path = folder / "AUDIT.toml"
    corpus = FIXTURES / "corpus" / "part-000.parquet"
    path.write_text(SPEC.format(corpus=corpus, benchmark=benchmark, logs=logs))
    return load_spec(path)


def docs(name):
    lines = (FIXTURES / "items" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [
        {"question": row["question"], "answer": row["answer"]} for row in map(json.loads, lines)
    ]


def test_logs_alone_give_the_items(tmp_path):
    own = docs("brook_math")[:30]
    lm_eval(tmp_path / "logs" / "m", [1.0] * 30, docs=own, task="brook")
    done = run_audit(write(tmp_path))
    (bench,) = done.facts.benchmarks
    assert (bench.name, bench.n_items) == ("brook", 30)
    assert bench.policies[0].contaminated > 5
    assert {row["n"] for row in done.facts.scores} == {30}
    files = read_verified(done.folder / MANIFEST)["inputs"]["logs"]
    assert len(files) == 2


def test_an_audit_that_was_stopped_leaves_no_items_of_other_logs(tmp_path, monkeypatch):
    own = docs("brook_math")
    lm_eval(tmp_path / "logs" / "m", [1.0] * 20, docs=own[:20], task="brook")
    with monkeypatch.context() as patch:
        patch.setattr("contam.audit.checks.scan_opened", _stopped)
        with pytest.raises(KeyboardInterrupt):
            run_audit(write(tmp_path))
    assert (tmp_path / "pack.work").is_dir()
    lm_eval(tmp_path / "logs" / "m", [1.0] * 30, docs=own[10:40], task="brook")
    done = run_audit(write(tmp_path))
    assert done.facts.benchmarks[0].n_items == 30


def _stopped(*_given, **_named):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_logs_given_as_a_pattern_are_inputs_like_others(tmp_path):
    own = docs("brook_math")
    for name in ("one", "two"):
        lm_eval(tmp_path / "logs" / name, [1.0] * len(own), docs=own, task="brook", model=name)
    items = f'paths = ["{FIXTURES}/items/brook_math.jsonl"]'
    spec = write(tmp_path, benchmark=items, logs="logs/*/samples*.jsonl")
    before = run_audit(spec)
    assert len(read_verified(before.folder / MANIFEST)["inputs"]["logs"]) == 2
    lm_eval(tmp_path / "logs" / "two", [0.0] * len(own), docs=own, task="brook", model="two")
    after = run_audit(spec, overwrite=True)
    assert "scores" not in after.reused
    scores = {row["model"]: row["full"] for row in after.facts.scores}
    assert scores == {"one": 1.0, "two": 0.0}


@pytest.mark.parametrize("from_logs", [True, False])
def test_a_damaged_log_stops_an_audit_or_is_named_in_every_report(tmp_path, from_logs):
    lm_eval(tmp_path / "logs", [1, 0] * 24 + [1], docs=docs("brook_math"), task="brook_math")
    cut = tmp_path / "logs" / "cut.json"
    cut.write_text('{"status": "success", "eval": {', encoding="utf-8")
    entry = f'paths = ["{FIXTURES}/items/brook_math.jsonl"]'
    spec = write(tmp_path, benchmark="from_logs = true" if from_logs else entry)
    with pytest.raises(LogError, match=str(cut)) as caught:
        run_audit(spec)
    assert "skip_damaged = true" in caught.value.hint
    path = tmp_path / "AUDIT.toml"
    path.write_text(path.read_text() + "skip_damaged = true\n")
    pack = run_audit(load_spec(path))
    (left_out,) = pack.facts.logs_left_out
    assert left_out["path"] == "logs/cut.json"
    assert "1 log is damaged" in pack.facts.headline.text
    for name in ("report.json", "report.md", "report.html", "scores/summary.md"):
        assert "cut.json" in (pack.folder / name).read_text("utf-8"), name
    (row,) = [score for score in pack.facts.scores if score["policy"] == "contam"]
    assert row["n"] == 49


def test_a_log_numbered_through_names_the_benchmark_it_belongs_to(tmp_path):
    items = [{"id": str(i), **row} for i, row in enumerate(docs("brook_math"))]
    write_lines(tmp_path / "river.jsonl", items)
    rows = "".join(f"{row['id']},m,{i % 2}\n" for i, row in enumerate(items))
    (tmp_path / "brook.csv").write_text("id,model,score\n" + rows, "utf-8")
    entry = f'name = "river"\npaths = ["{tmp_path}/river.jsonl"]'
    spec = write(tmp_path, benchmark=entry, logs="brook.csv")
    with pytest.raises(LogError) as caught:
        run_audit(spec)
    assert "benchmark_as" in caught.value.hint
    path = tmp_path / "AUDIT.toml"
    path.write_text(path.read_text() + 'benchmark_as = { brook = "river" }\n')
    done = run_audit(load_spec(path))
    assert {(row["benchmark"], row["n"]) for row in done.facts.scores} == {("river", len(items))}
