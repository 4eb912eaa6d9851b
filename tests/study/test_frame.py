"""What every study shares: result, files, pictures, and tables that are refused."""

import json

import numpy as np
import pytest

from contam.errors import ContamError, LogError, OutputError, UsageError
from contam.study import Study, write_study
from contam.study.inputs import Rows, columns_of, refuse_doubles, refuse_unknown_sides
from contam.study.model import Bump, Chart, Finding, Line, Panel, Points, Refusal, table_of
from contam.study.scored import read_scores


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
        Line(x=[0, 1], y=[0, 1], low=[-0.1, 0.9], high=[0.1, 1.1], dashed=True, label="y = x"),
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
    pictures = {f"{name}.{kind}" for name in ("scatter", "ranks") for kind in ("svg", "png")}
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


def test_a_study_shows_itself_and_hands_out_frames(study):
    html = study._repr_html_()
    assert "Found." in html
    assert "&lt;b&gt;" in html
    assert study.rows()[1]["p_holm"] is None
    assert list(study.to_pandas()["model"]) == ["a", "<b>"]
    assert study.to_polars("models").height == 2
    assert study.plot().axes
    for ask in (study.to_arrow, study.plot):
        with pytest.raises(UsageError, match="gone"):
            ask("gone")


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


def test_columns_of_one_input_go_before_those_of_all():
    given = {"score": "acc", "fresh.score": "acc2"}
    assert columns_of(given, "fresh") == {"score": "acc2"}
    assert columns_of(given, "original") == {"score": "acc"}
    with pytest.raises(UsageError):
        refuse_unknown_sides(given, ["original"])


def test_rows_name_the_place_of_a_bad_cell(tmp_path):
    rows = Rows(write(tmp_path, "model,score\na,0.5\nb,50\n"), "t")
    with pytest.raises(LogError, match=":3"):
        rows.shares("score")
    with pytest.raises(UsageError):
        rows.numbers("n")
    assert np.array_equal(rows.numbers("score"), [0.5, 50])
    with pytest.raises(LogError, match="'a'"):
        refuse_doubles(rows, ["a", "a"], "model")
    with pytest.raises(UsageError):
        Rows(write(tmp_path, TOTALS), "t", columns={"nothing": "model"})
    with pytest.raises(LogError):
        Rows(write(tmp_path, TOTALS), "t", columns={"score": "gone"})
