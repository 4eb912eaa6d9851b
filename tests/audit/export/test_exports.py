"""What others are given of a pack: right figures, nothing claimed that was not measured, no text."""

import csv
import dataclasses
import io
import json

import pytest

from contam.audit.export.conda_and_cards import CONDA, conda, model_card
from contam.audit.export.tracking import metrics
from contam.audit.facts import read_facts
from contam.audit.manifest import MANIFEST, read_verified
from contam.cli.main import main
from contam.detect.report import load_report
from contam.errors import UsageError
from contam.tables import schemas
from tests.audit.conftest import reseal, rewrite


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text), delimiter=";"))


def test_conda_gets_percent_of_each_corpus(audited):
    text = conda(audited.folder, reference="https://example.org/audit")
    assert text.splitlines()[0] == (
        "Evaluation Dataset;Subset;Contaminated Source;Model or corpus;Train Split;"
        "Development Split;Test Split;Approach;Reference;PR"
    )
    found = rows_of(text)
    assert [(row["Evaluation Dataset"], row["Contaminated Source"]) for row in found] == [
        ("brook_math", "early"),
        ("lantern_quiz", "early"),
        ("brook_math", "late"),
        ("lantern_quiz", "late"),
    ]
    for row in found:
        assert (row["Model or corpus"], row["Approach"]) == ("corpus", "data-based")
        assert (row["Train Split"], row["Development Split"], row["PR"]) == ("", "", "")
        labels = [
            one["label"]
            for one in schemas.rows(
                load_report(audited.folder / "checks" / row["Contaminated Source"]).verdicts
            )
            if (one["benchmark"], one["policy"]) == (row["Evaluation Dataset"], "contam")
        ]
        checked = len(labels) - labels.count("not_checkable")
        share = 100 * labels.count("contaminated") / checked
        assert float(row["Test Split"]) == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["clean", "clean"], "0"),
        (["clean", "suspect"], ""),
        (["clean", "not_checkable"], ""),
        (["not_checkable", "not_checkable"], ""),
        (["contaminated", "not_checkable"], "100"),
        (["contaminated", "clean"], "50"),
    ],
)
def test_no_evidence_of_absence_where_something_was_not_seen(pack, labels, said):
    own = [
        {**row, "label": labels[at % 2], "split": "validation"}
        for at, row in enumerate(
            row
            for row in schemas.rows(load_report(pack / "checks" / "early").verdicts)
            if (row["benchmark"], row["policy"]) == ("lantern_quiz", "contam")
        )
    ]
    rewrite(pack, "verdicts.parquet", own, "early")
    (found,) = [row for row in rows_of(conda(pack)) if row["Contaminated Source"] == "early"]
    assert (found["Development Split"], found["Test Split"]) == (said, "")


def test_a_reviewed_false_alarm_is_not_reported_as_contamination(pack):
    tree = json.loads((pack / "report.json").read_bytes())
    (first, *_) = rows_of(conda(pack))
    own = schemas.rows(load_report(pack / "checks" / "early").verdicts)
    item = next(
        row
        for row in own
        if (row["benchmark"], row["policy"], row["label"])
        == ("brook_math", "contam", "contaminated")
    )
    waiver = {"benchmark": "brook_math", "split": item["split"], "item": item["item_id"]}
    waiver |= {"waives": True, "policies": ["contam"], "kind": "accepted"}
    for kind, fewer in (("accepted", 0), ("false_positive", 1)):
        tree["waivers"] = [{**waiver, "kind": kind}]
        (pack / "report.json").write_text(json.dumps(tree))
        reseal(pack)
        (found, *_) = rows_of(conda(pack))
        less = float(first["Test Split"]) - float(found["Test Split"])
        assert less == pytest.approx(100 * fewer / 49, abs=0.01)


def test_the_card_has_the_figures_and_the_seal(audited, capsys):
    text = model_card(audited.folder)
    assert "## Benchmark overlap" in text
    assert audited.digest in text
    assert "| quokka-7b | brook\\_math | score | 0.7551 | 0.2000 | 15 |" in text
    assert "heron-8b" not in text.split("Corpora:")[0].split("| model |")[1]
    assert "| heron-8b |" in model_card(audited.folder, models=["heron-8b"])
    with pytest.raises(UsageError, match="no scores of nobody"):
        model_card(audited.folder, models=["nobody"])
    with pytest.raises(UsageError, match="no policy gpt3-test"):
        model_card(audited.folder, "gpt3-test")
    assert main(["audit", "export", str(audited.folder), "--format", "model-card"]) == 0
    assert capsys.readouterr().out == text


def test_both_stand_in_the_pack_as_they_are_exported(audited):
    own = audited.folder / "exports"
    assert (own / "conda.csv").read_text("utf-8") == conda(audited.folder)
    card, exported = (own / "model_card.md").read_text("utf-8"), model_card(audited.folder)
    assert card.replace("The digest of the pack is in its manifest.json.", "") == (
        exported.replace(f"Pack `{audited.digest}`.", "")
    )
    files = read_verified(audited.folder / MANIFEST)["files"]
    assert {"exports/conda.csv", "exports/model_card.md"} <= set(files)


def test_exports_go_to_a_file(audited, tmp_path):
    out = tmp_path / "conda.csv"
    assert (
        main(["audit", "export", str(audited.folder), "--format", "conda", "--out", str(out)]) == 0
    )
    assert tuple(rows_of(out.read_text())[0]) == CONDA


def test_figures_have_names_that_mlflow_takes_and_no_two_share_one(audited):
    facts = read_facts(audited.folder / "report.json")
    odd = tuple(
        dataclasses.replace(benchmark, name=name)
        for benchmark, name in zip(facts.benchmarks, ("a/b", "a:b"), strict=True)
    )
    names = [name for name, _ in metrics(dataclasses.replace(facts, benchmarks=odd))]
    assert len(set(names)) == len(names)
    assert not [name for name in names if set(name) & set(":%&?")]


def test_mlflow_has_the_figures_and_no_text(audited, tmp_path, capsys, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    # Its store of plain files needs no database, and is refused without this.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "store").as_uri()
    words = ["audit", "export", str(audited.folder), "--format", "mlflow", "--tracking-uri", uri]
    assert main([*words, "--experiment", "release"]) == 0
    run_id = capsys.readouterr().out.split()[-1]
    client = mlflow.MlflowClient(tracking_uri=uri)
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["contam.digest"] == audited.digest
    assert run.data.tags["contam.verdict"] == "flagged"
    assert run.data.metrics["contamination/brook_math/contam/rate"] == pytest.approx(34 / 49)
    place = "quokka-7b/brook_math/score/contam"
    figures = [run.data.metrics[f"{place}/{name}"] for name in ("full", "clean", "delta")]
    assert figures == pytest.approx([37 / 49, 0.2, 37 / 49 - 0.2])
    logged = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    (flagged,) = [path for path in logged if path.name == "flagged.json"]
    assert len(json.loads(flagged.read_bytes())["flagged"]) > 63
    texts = [
        row["question"].encode()
        for row in schemas.rows(load_report(audited.folder / "checks" / "together").items)
    ]
    for path in logged:
        raw = path.read_bytes()
        assert not [text for text in texts if text in raw]
    assert main([*words, "--run-id", run_id]) == 0
    assert capsys.readouterr().out.split()[-1] == run_id
    assert main([*words, "--run-id", "0" * 32]) == 2
    assert "MLflow refused" in capsys.readouterr().err
