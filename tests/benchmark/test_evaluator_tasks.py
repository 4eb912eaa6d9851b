"""A task of an evaluator is a benchmark: its items, its ids, and nothing that all rows share."""

import json

import pytest

from contam.harness import listed_choices, own_texts
from tests.cli import processes
from tests.rescore.export.test_harness import (
    REPLAY,
    clean_scores,
    ended,
    needs,
    write_questions,
)

LETTERS = ["A", "B", "C", "D"]
ANSWERS = REPLAY.replace("answers[text]", "answers.get(text, '')")
#: Three tasks of one group: free answers, listed choices, and choices that are the answers.
TASKS = {
    "lantern_free": """
output_type: generate_until
doc_to_text: "Answer in a word.\\n\\nQuestion: {{question}}\\nAnswer:"
doc_to_target: " {{answer}}"
generation_kwargs: {until: ["###"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
""",
    "lantern_letters": """
output_type: multiple_choice
doc_to_text: "{{question}}\\nA. {{choices[0]}}\\nB. {{choices[1]}}\\nC. {{choices[2]}}\\nD. {{choices[3]}}"
doc_to_choice: [A, B, C, D]
doc_to_target: 1
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "lantern_texts": """
output_type: multiple_choice
doc_to_text: question
doc_to_choice: choices
doc_to_target: 1
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
}
INSPECT_TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import match
import json

ROWS = [json.loads(line) for line in open(FILE, encoding="utf-8")]

@task
def lanterns():
    return Task(
        name="lanterns",
        dataset=[
            Sample(
                input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content=r["question"])],
                target=r["answer"],
            )
            for r in ROWS
        ],
        scorer=match(location="exact"),
    )

@task
def chosen():
    return [][0]
"""
EVAL = """
import sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from lantern_tasks import lanterns

def reply(*_):
    output = ModelOutput.from_content("mockllm/replay", "no idea")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

model = get_model("mockllm/replay", custom_outputs=reply)
(log,) = eval(lanterns(), model=model, log_dir=sys.argv[1], display="none")
assert log.status == "success", log.error
"""


def test_what_all_rows_share_is_no_part():
    rows = [f"Read with care. Q: Which tide is number {n}? Answer in a word.\nA:" for n in range(5)]
    assert own_texts(rows) == [f"Which tide is number {n}?" for n in range(5)]
    # Questions begin and end alike as well.
    alike = [f"How high is the tide at pier {n} in the morning?" for n in range(5)]
    assert own_texts(alike) == alike
    assert own_texts(rows[:3]) == rows[:3]
    assert own_texts(rows[:1] * 9) == rows[:1] * 9
    assert own_texts([]) == []


@pytest.mark.parametrize("form", ["{}. {}", "({}) {}", "{}) {}"])
def test_listed_choices_are_taken_apart(form):
    lines = [form.format(label, f"lamp {label * 2}") for label in LETTERS]
    text = "Which lamp?\n" + "\n".join(lines)
    assert listed_choices(text, LETTERS) == (
        "Which lamp?",
        [f"lamp {label * 2}" for label in LETTERS],
    )
    for cut in ("Which lamp?", text.replace("\n" + lines[2], ""), f"Which lamp? {lines[0]}"):
        assert listed_choices(cut, LETTERS) == (cut, [])
    assert listed_choices(text, ["yes", "no"]) == (text, [])
    assert listed_choices(text, []) == (text, [])


def contam(*words, home, **extra):
    """What the command prints, run without a network and with the library's cache below `home`."""
    offline = {"HF_HOME": str(home / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    process = processes.contam(*words, **offline, **extra)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture
def tasks(bench_fixtures, tmp_path):
    """A folder of tasks on local rows, and the rows."""
    rows = write_questions(bench_fixtures, tmp_path / "lantern.jsonl")
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name, rest in TASKS.items():
        head = f"task: {name}\ndataset_path: json\ntest_split: test\n"
        data = f"dataset_kwargs: {{data_files: {{test: {rows}}}}}\n"
        (folder / f"{name}.yaml").write_text(head + data + rest.strip() + "\n")
    (folder / "group.yaml").write_text(f"group: lanterns\ntask: [{', '.join(TASKS)}]\n")
    return folder, [json.loads(line) for line in rows.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_a_group_of_lm_eval_is_read_by_the_templates_of_its_tasks(tasks, tmp_path):
    needs("lm_eval")
    folder, rows = tasks
    asked = ["items", "lm-eval:lanterns", "--include-path", str(folder), "--json"]
    tree = json.loads(contam(*asked, home=tmp_path))
    found = {one["name"]: one for one in tree["benchmarks"]}
    assert found.keys() == TASKS.keys()
    for name, one in found.items():
        assert one["n_items"] == len(rows)
        for item in one["items"]:
            row = rows[int(item["item_id"])]
            assert item["question"] == row["question"]
            assert item["split"] == "test"
            free = name == "lantern_free"
            assert item["choices"] == ([] if free else row["choices"])
            assert item["answer"] == (row["answer"] if free else row["choices"][1])


@pytest.mark.slow
def test_the_verdicts_on_a_task_join_its_logs_without_a_question(tasks, bench_fixtures, tmp_path):
    needs("lm_eval")
    folder, rows = tasks
    out = tmp_path / "verdicts"
    asked = ["scan", "--corpus", bench_fixtures / "corpus", "--benchmark", "lm-eval:lantern_free"]
    contam(*asked, "--include-path", folder, "--out", out, home=tmp_path)
    logs = tmp_path / "logs"
    arguments = ["run", "--model", "replay", "--model_args", "pretrained=replay/tiny"]
    arguments += ["--tasks", "lantern_free", "--include_path", folder, "--log_samples"]
    ended(ANSWERS, tmp_path / "lantern.jsonl", *arguments, "--output_path", logs, home=tmp_path)
    ((_, n_clean, _),) = clean_scores(out, logs).values()
    assert 0 < n_clean < len(rows)


@pytest.mark.slow
def test_an_inspect_task_is_read_and_its_logs_join(tasks, bench_fixtures, tmp_path):
    needs("inspect_ai")
    _, rows = tasks
    home = tmp_path / "package"
    about = home / "lantern_tasks-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lantern-tasks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[inspect_ai]\nlantern_tasks = lantern_tasks\n")
    source = INSPECT_TASKS.replace("FILE", repr(str(tmp_path / "lantern.jsonl")))
    (home / "lantern_tasks.py").write_text(source)
    out, logs = tmp_path / "verdicts", tmp_path / "logs"
    asked = ["scan", "--corpus", bench_fixtures / "corpus", "--out", out]
    asked += ["--benchmark", "inspect:lantern_tasks/lanterns"]
    contam(*asked, home=tmp_path, PYTHONPATH=str(home))
    ended(EVAL, str(logs), home=tmp_path, PYTHONPATH=str(home))
    ((_, n_clean, _),) = clean_scores(out, logs).values()
    assert 0 < n_clean < len(rows)
    for name in ("lantern_tasks/chosen", "lantern_tasks/nothing", "no_package/x"):
        with pytest.raises(AssertionError, match="error:"):
            contam("items", f"inspect:{name}", home=tmp_path, PYTHONPATH=str(home))
