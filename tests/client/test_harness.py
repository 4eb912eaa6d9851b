"""lm-eval and Inspect themselves, run offline; then clean scores beside theirs, by a real service."""

import hashlib
import json
import os
import shutil

import pytest

from tests.cli import processes
from tests.rescore.export.test_harness import REPLAY, TASK, ended, needs, run, write_questions
from tests.server.running import serving

MOCK = """
import hashlib, sys
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr

path, folder, form, epochs = sys.argv[1:]
data = json_dataset(path, FieldSpec(input="question", target="answer"))
targets = {sample.input: sample.target for sample in data}
asked = {}

def reply(messages, *_):
    text = messages[-1].text
    turn = asked[text] = asked.get(text, 0) + 1
    known = (hashlib.sha256(text.encode()).digest()[0] + turn) % 3
    output = ModelOutput.from_content("mockllm/replay", targets[text] if known else "no idea")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

@scorer(metrics={"right": [accuracy(), stderr()], "length": [mean()]})
def two_parts():
    async def score(state, target):
        text = state.output.completion
        return Score(value={"right": float(text == target.text), "length": float(len(text))})
    return score

(log,) = eval(
    Task(dataset=data, scorer=[match(location="exact"), two_parts()], name="lantern_local"),
    model=get_model("mockllm/replay", custom_outputs=reply),
    epochs=Epochs(int(epochs), ["mean", "mode"]) if int(epochs) > 1 else None,
    log_dir=folder,
    log_format=form,
    display="none",
)
assert log.status == "success", log.error
"""

#: The same run, in which Inspect finds contam's hook by itself.

READ = """
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
scores = [
    [score.name, score.scorer, score.reducer, key, metric.value, score.scored_samples]
    for score in log.results.scores
    for key, metric in score.metrics.items()
]
reasons = sorted({
    score.reason or "" for sample in log.samples for score in sample.scores.values()
})
print("FOUND" + json.dumps([scores, log.tags, log.metadata.get("contam"), reasons, len(log.samples)]))
"""
LIST = """
import sys
from inspect_ai.log import list_eval_logs
print("FOUND" + str(len(list_eval_logs(sys.argv[1]))))
"""


@pytest.fixture(scope="module")
def questions(bench_fixtures, tmp_path_factory):
    return write_questions(bench_fixtures, tmp_path_factory.mktemp("items") / "lantern.jsonl")


@pytest.fixture(scope="module")
def server(bench_fixtures, tmp_path_factory):
    from contam.index.build import build
    from contam.index.recipe import load_recipe

    folder = tmp_path_factory.mktemp("served")
    build(bench_fixtures / "corpus", folder / "small", load_recipe("complete"), workers=1)
    with serving(folder / "small", data=folder / "data") as running:
        yield running.url


def digests(folder):
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def annotate(*arguments):
    process = processes.contam("annotate", *arguments)
    assert process.returncode == 0, process.stderr
    return process


def lm_eval(questions, out, home, *more):
    arguments = ["run", "--model", "replay", "--model_args", "pretrained=replay/tiny"]
    arguments += ["--tasks", "lantern_local", "--include_path", home / "tasks", "--log_samples"]
    run(REPLAY, questions, *arguments, "--output_path", out, *more, home=home)
    (results,) = out.rglob("results_*.json")
    return results


@pytest.mark.slow
def test_clean_scores_stand_beside_those_of_lm_eval_and_are_what_it_scores_itself(
    server, questions, tmp_path
):
    needs("lm_eval")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "lantern.yaml").write_text(TASK.replace("FILE", str(questions)))
    out = tmp_path / "out"
    results = lm_eval(questions, out, tmp_path)
    before = digests(out)
    process = annotate(out, "--server", server, "--out", tmp_path / "verdicts")
    clean_file = results.with_name(results.name.replace("results_", "clean_results_"))
    assert str(clean_file) in process.stdout
    after = digests(out)
    assert after.items() >= before.items(), "a file of lm-eval was touched"
    assert set(after) - set(before) == {clean_file.relative_to(out)}
    clean = json.loads(clean_file.read_bytes())
    # lm-eval itself, run on the clean items alone, gives the same score and the same error.
    samples = tmp_path / "samples.json"
    export = ("--verdicts", tmp_path / "verdicts", "--logs", out)
    assert processes.contam("export", *export, "--out", samples).returncode == 0
    again = lm_eval(questions, tmp_path / "again", tmp_path, "--samples", samples)
    theirs = json.loads(again.read_bytes())
    ours = clean["results"]["lantern_local"]
    for name in ("exact_match,none", "exact_match_stderr,none"):
        assert ours[name] == pytest.approx(theirs["results"]["lantern_local"][name], abs=1e-12)
    assert clean["n-samples"]["lantern_local"]["effective"] == len(
        json.loads(samples.read_bytes())["lantern_local"]
    )
    whole = json.loads(results.read_bytes())["results"]["lantern_local"]
    assert clean["full"]["lantern_local"]["exact_match,none"] == whole["exact_match,none"]
    assert ours["exact_match,none"] != pytest.approx(whole["exact_match,none"], abs=1e-3)
    assert sum(clean["items"]["lantern_local"].values()) == 48
    # Asked again, its own file is no log, and is not replaced unless that is said.
    processes.assert_one_line_error(processes.contam("annotate", out, "--server", server), 1)
    annotate(out, "--verdicts", tmp_path / "verdicts", "--overwrite")
    assert json.loads(clean_file.read_bytes()) == clean
    logs = processes.contam("logs", out)
    assert logs.returncode == 0, "the clean scores are not taken for another run"


def clean_of(path, home):
    return json.loads(run(READ, path, home=home).partition("FOUND")[2])


@pytest.mark.slow
@pytest.mark.parametrize(("form", "epochs"), [("eval", 1), ("json", 1), ("eval", 4)])
def test_a_clean_copy_of_an_inspect_log_stands_beside_its_folder(
    server, questions, tmp_path, form, epochs
):
    needs("inspect_ai")
    logs = tmp_path / "logs"
    run(MOCK, questions, logs, form, epochs, home=tmp_path)
    (log,) = logs.iterdir()
    before = digests(logs)
    process = annotate(logs, "--server", server, "--out", tmp_path / "verdicts")
    assert digests(logs) == before, "Inspect's own folder was touched"
    copy = tmp_path / "logs-clean" / log.name
    assert str(copy) in process.stdout
    assert list(copy.parent.iterdir()) == [copy]
    scores, tags, about, reasons, n_samples = clean_of(copy, tmp_path)
    assert n_samples == 48 * epochs
    assert tags == ["contam-clean"]
    assert about["policy"] == "contam"
    assert about["complete"] is True
    assert set(reasons) == {"", "contaminated", "suspect", "not_checkable"} - (
        set() if about["items"]["suspect"] else {"suspect"}
    )
    n_clean = about["items"]["clean"]
    told = json.loads(
        annotate(logs, "--verdicts", tmp_path / "verdicts", "--overwrite", "--json").stdout
    )
    ours = {row["metric"]: row for row in told["scores"]}
    n_compared = 0
    for name, scorer, reducer, metric, value, n_scored in scores:
        if metric in {"accuracy", "mean"}:
            title = name if name == scorer else f"{scorer}/{name}"
            row = ours[f"{title},{reducer}" if reducer else title]
            assert value == pytest.approx(row["clean"], abs=1e-12)
            assert value != pytest.approx(row["full"], abs=1e-6), "a test that could not fail"
            assert n_scored == row["n_clean"] == n_clean
            n_compared += 1
    assert n_compared == len(ours) == (3 if epochs == 1 else 6)
    # The copies are no runs of their own, neither for Inspect's folder nor for us.
    assert run(LIST, logs, home=tmp_path).partition("FOUND")[2].strip() == "1"
    both = processes.contam("annotate", tmp_path, "--server", server, "--overwrite")
    assert both.returncode == 0, both.stderr
    assert not (tmp_path / "logs-clean-clean").exists()


@pytest.fixture
def installed():
    from importlib.metadata import entry_points

    if "contam.client.inspect_hook" not in {
        point.value for point in entry_points(group="inspect_ai")
    }:
        pytest.skip("contam is not installed here, so Inspect cannot find its hook")


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_inspect_finds_the_hook_and_writes_the_clean_copy_at_the_end_of_a_task(
    server, questions, tmp_path, monkeypatch
):
    needs("inspect_ai")
    logs = tmp_path / "logs"
    monkeypatch.setenv("CONTAM_SERVER", server)
    told = ended(MOCK, questions, logs, "eval", 1, home=tmp_path).stderr
    (log,) = logs.iterdir()
    (line,) = [line for line in told.splitlines() if line.startswith("contam: ")]
    place = tmp_path / "logs-clean" / log.name
    assert "17 clean, " in line
    assert "by contam" in line
    assert str(place) in line
    by_hook = clean_of(tmp_path / "logs-clean" / log.name, tmp_path)
    shutil.rmtree(tmp_path / "logs-clean")
    annotate(logs, "--server", server)
    by_command = clean_of(tmp_path / "logs-clean" / log.name, tmp_path)
    assert by_hook == by_command


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_a_hook_that_gets_no_answer_leaves_the_run_as_it_is(questions, tmp_path, monkeypatch):
    needs("inspect_ai")
    logs = tmp_path / "logs"
    monkeypatch.setenv("CONTAM_SERVER", "http://127.0.0.1:1")
    run(MOCK, questions, logs, "eval", 1, home=tmp_path)
    (log,) = logs.iterdir()
    assert not (tmp_path / "logs-clean").exists()
    monkeypatch.delenv("CONTAM_SERVER")
    scores, tags, *_ = clean_of(log, tmp_path)
    assert scores
    assert tags == []
    assert "CONTAM_SERVER" not in os.environ
