"""The evaluators themselves, run offline on what `contam export` gives them, make our clean score."""

import importlib.util
import json

import pytest

import contam
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from tests.cli import processes
from tests.cli.processes import python

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=1)
TASK = """
task: lantern_local
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["###"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
#: A model that knows two answers of three.
REPLAY = """
import hashlib, json, sys
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.__main__ import cli_evaluate

answers = {row["question"]: row["answer"] for row in map(json.loads, open(sys.argv[1]))}

@register_model("replay")
class Replay(LM):
    def __init__(self, pretrained, **_):
        super().__init__()

    def generate_until(self, requests, disable_tqdm=False):
        texts = [request.args[0] for request in requests]
        return [
            answers[text] if hashlib.sha256(text.encode()).digest()[0] % 3 else "no idea"
            for text in texts
        ]

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood

sys.argv = ["lm_eval", *sys.argv[2:]]
cli_evaluate()
"""


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (pip install '.[harness]')")


def run(script, *arguments, home):
    """What a script prints in its own process."""
    return ended(script, *arguments, home=home).stdout


def ended(script, *arguments, home, **extra):
    """A script in its own process, without a network and with its caches below `home`."""
    offline = dict.fromkeys(("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1")
    homes = {"HF_HOME": str(home / "hf"), "HOME": str(home)}
    process = python("-c", script, *arguments, cwd=home, **offline, **homes, **extra)
    assert process.returncode == 0, process.stderr[-3000:]
    return process


@pytest.fixture(scope="module")
def verdicts(bench_fixtures, tmp_path_factory):
    items = bench_fixtures / "items" / "lantern_quiz.jsonl"
    result = contam.scan(bench_fixtures / "corpus", items, workers=1)
    return contam.write_report(result, tmp_path_factory.mktemp("harness") / "verdicts")


def write_questions(bench_fixtures, path):
    """The invented items with their answers as text, in an order of their own."""
    source = bench_fixtures / "items" / "lantern_quiz.jsonl"
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    rows = [
        {
            "question": row["question"],
            "passage": row.get("passage"),
            "choices": row["choices"],
            "answer": f"answer {place}",
        }
        for place, row in enumerate(reversed(rows))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def questions(bench_fixtures, tmp_path_factory):
    return write_questions(bench_fixtures, tmp_path_factory.mktemp("items") / "lantern.jsonl")


def export(*arguments):
    process = processes.contam("export", *arguments)
    assert process.returncode == 0, process.stderr
    return process.stderr


def clean_scores(verdicts, logs):
    tables = rescore(verdicts, logs, settings=FAST)
    return {
        row["metric"]: (row["clean"], row["n_clean"], row["full"])
        for row in tables.rows("scores")
        if row["subset_by"] == "all"
    }


@pytest.mark.slow
def test_lm_eval_run_on_the_exported_samples_gives_our_clean_score(verdicts, questions, tmp_path):
    needs("lm_eval")
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "lantern.yaml").write_text(TASK.replace("FILE", str(questions)))

    def lm_eval(out, *more):
        arguments = ["run", "--model", "replay", "--model_args", "pretrained=replay/tiny"]
        arguments += ["--tasks", "lantern_local", "--include_path", tasks, "--log_samples"]
        run(REPLAY, questions, *arguments, "--output_path", out, *more, home=tmp_path)
        (results,) = out.rglob("results_*.json")
        tree = json.loads(results.read_bytes())
        return tree["results"]["lantern_local"]["exact_match,none"], tree["n-samples"]

    full, _ = lm_eval(tmp_path / "whole")
    samples = tmp_path / "samples.json"
    options = ("--verdicts", verdicts, "--logs", tmp_path / "whole")
    told = export(*options, "--out", samples)
    ids = json.loads(samples.read_bytes())["lantern_local"]
    clean, counted = lm_eval(tmp_path / "clean", "--samples", samples)
    ours, n_clean, ours_full = clean_scores(verdicts, tmp_path / "whole")["exact_match,none"]
    assert ours_full == pytest.approx(full, abs=1e-12)
    assert clean == pytest.approx(ours, abs=1e-12)
    assert clean != pytest.approx(full, abs=1e-3), "a test that could not fail"
    assert counted["lantern_local"]["effective"] == n_clean == len(ids) == 17
    assert f"{clean:.6f} on 17 clean items" in told
    # What the second run logged joins the verdicts with every item clean.
    again, n_again, _ = clean_scores(verdicts, tmp_path / "clean")["exact_match,none"]
    assert (again, n_again) == (pytest.approx(clean), 17)
