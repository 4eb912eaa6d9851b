"""What every study shares: result, files, pictures, and tables that are refused."""

import datetime as dt
import inspect
import json

import numpy as np
import pytest

from contam.errors import ContamError, LogError, OutputError, UsageError
from contam.study import Study, write_study
from contam.study.by_name import KINDS, checked, paths_of, run_named, with_paths
from contam.study.inputs import Rows, read_scores
from contam.study.model import Bump, Chart, Finding, Line, Panel, Points, Refusal, table_of


@pytest.fixture
def study():
    table = table_of(
        [
            {"model": "a", "gap": 0.1, "p_holm": 0.00001, "n": 5, "sure": True},
            {"model": "<b>", "gap": None, "p_holm": float("nan"), "n": 6, "sure": False},
        ],
        {"model": str, "gap": float, "p_holm": float, "n": int, "sure": bool},
    )
    marks = [
        Points(x=[0.1, 0.2], y=[0.3, 0.1], names=["a", "$b$"], low=[0.2, 0.0], high=[0.4, 0.2]),
        Line(x=[0, 1], y=[0, 1], dashed=True, label="y = x"),
    ]
    return Study(
        name="example",
        finding=Finding(found="Found.", sure="Sure.", change="Change."),
        tables={"models": table},
        refusals=[Refusal("ConStat", "2 reference models")],
        pictures=[
            Chart(
                name="scatter", caption="c", panels=[Panel(title="t", x="x", y="y", marks=marks)]
            ),
            Bump(name="ranks", caption="r", rankings=["x", "y"], ranks={"a": [1, 2], "b": [2, 1]}),
        ],
        run={"tool": "contam", "notes": ["a note"]},
    )


def test_a_study_is_written_whole_and_equal_studies_alike(study, tmp_path):
    out = write_study(study, tmp_path / "out")
    names = {path.name for path in out.iterdir()}
    pictures = {"scatter.svg", "ranks.svg"}
    assert names == {"models.parquet", "study.json", "summary.md", "run.json"} | pictures
    run = json.loads((out / "run.json").read_bytes())
    assert set(run["outputs"]) == names - {"run.json"}
    summary = (out / "summary.md").read_text()
    assert "Found." in summary
    assert "2 reference models" in summary
    assert "<b>" not in summary
    again = write_study(study, tmp_path / "again")
    for name in run["outputs"]:
        assert (out / name).read_bytes() == (again / name).read_bytes(), name
    with pytest.raises(OutputError):
        write_study(study, out)


TOTALS = "model,correct,n\na,8,10\nb,5,10\n"


def write(folder, text, name="totals.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_totals_are_read_by_role_and_in_memory_alike(tmp_path):
    path = write(tmp_path, TOTALS.replace("correct", "hits_top1"))
    found = read_scores(path, "fresh", columns={"correct": "hits_top1"})
    rows = [{"model": "a", "correct": 8, "n": 10}, {"model": "b", "correct": 5, "n": 10}]
    held = read_scores(rows, "fresh")
    for one in (found, held):
        assert one.models == ("a", "b")
        assert one.score.tolist() == [0.8, 0.5]
        assert one.binary(0)
    assert found.sources[0]["columns"]["correct"] == "hits_top1"


@pytest.mark.parametrize(
    "text",
    [
        "model,score,n\na,81.5,10\n",
        "model,score,n\na,-0.1,10\n",
        "model,score,n\na,nan,10\n",
        "model,score,n\na,,10\n",
        "model,score,n\na,inf,10\n",
        "model,score,n\na,high,10\n",
        "model,score,n\na,0.5,0\n",
        "model,score,n\na,0.5,2.5\n",
        "model,correct,n\na,11,10\n",
        "model,correct,n\na,5,10\na,6,10\n",
        "model,correct,n\n,5,10\n",
        "model,correct,n\n",
        "model,n\na,5\n",
        "model,correct,n\na,5\n",
    ],
)
def test_a_table_that_is_none_is_refused_and_never_guessed(tmp_path, text):
    with pytest.raises(ContamError) as caught:
        read_scores(write(tmp_path, text), "fresh")
    assert caught.value.hint or "rows" in caught.value.message


def test_rows_name_the_place_of_a_bad_cell(tmp_path):
    rows = Rows(write(tmp_path, "model,score\na,0.5\nb,50\n"), "t")
    with pytest.raises(LogError, match=":3"):
        rows.shares("score")
    with pytest.raises(UsageError):
        rows.numbers("n")
    assert np.array_equal(rows.numbers("score"), [0.5, 50])
    with pytest.raises(LogError, match="'a'"):
        rows.refuse_doubles(["a", "a"], "model")
    with pytest.raises(UsageError):
        Rows(write(tmp_path, TOTALS), "t", columns={"nothing": "model"})
    with pytest.raises(LogError):
        Rows(write(tmp_path, TOTALS), "t", columns={"score": "gone"})


OPTIONS = {
    "fresh": {
        "original": "fresh_original.csv", "fresh": ["fresh_new.csv"],
        "easier": {"same": "fresh_new.csv"}, "references": ["dunlin-1b"], "chance": 0.1, "draws": 200,
    },
    "preparation": {
        "scores": "preparation.csv", "chance": {"brook": 0.25, "lantern": 0.2}, "knots": [22, 22.5],
        "draws": 200,
    },
    "board": {"scores": "board.csv"},
    "time": {
        "logs": "problems.csv", "references": ["plover-3b", "avocet-3b"], "window": "half-year",
        "cutoffs": {"quokka-7b": dt.date(2023, 12, 31)},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_study_runs_by_its_name(bench_fixtures, name):
    folder = bench_fixtures / "studies"
    options = with_paths(name, OPTIONS[name], lambda path: str(folder / path))
    assert all(path.startswith(str(folder)) for path in paths_of(name, options))
    checked(name, options, "a file")
    study = run_named(
        name, options, verdicts=folder, policy="contam", rescored=None, seed=1, least=20
    )
    assert study.name == name
    assert study.rows()
    assert study.finding.found


SHARED = {"out", "overwrite", "as_json", "quiet", "debug"}
FORMS = {"cutoff", "knots"}


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_command_is_one_of_the_study_with_its_default(name):
    from contam.cli.commands import study

    (command,) = [one for one in study.app.registered_commands if one.name == name]
    options = inspect.signature(command.callback).parameters
    known = KINDS[name].defaults()
    assert set(options) - SHARED - FORMS <= set(known)
    for key, option in options.items():
        if type(option.default) in (int, float, str, bool) and key not in SHARED | FORMS:
            assert known[key] == option.default, key


def test_a_value_that_is_typed_twice_or_badly_is_refused(capsys):
    from contam.cli.main import main

    time = ["study", "time", "--logs", "a.csv", "--out", "out"]
    for call, said in (
        ([*time, "--cutoff", "a=2024,a=2023"], "twice"),
        (["study", "fresh", "--original", "a", "--fresh", "b", "--easier", "c", "--out", "o"], "c"),
        (["study", "preparation", "--scores", "a", "--knots", "22", "--out", "o"], "--knots"),
        (["study", "preparation", "--scores", "a", "--chance", "x", "--out", "o"], "'x'"),
    ):
        assert main(call) == 2
        assert said in capsys.readouterr().err
