"""What others are given of a pack: right figures, nothing claimed that was not measured, no text."""

import csv
import io

import pytest

from contam.audit.report.render import conda, model_card
from contam.audit.verify import MANIFEST, read_verified
from contam.cli.main import main
from contam.detect.report import load_report
from contam.errors import UsageError
from contam.tables import schemas
from tests.audit.conftest import rewrite


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


def test_the_card_has_the_figures_and_the_seal(audited, capsys):
    text = model_card(audited.folder)
    assert "## Benchmark overlap" in text
    assert audited.digest in text
    assert "| quokka-7b | brook\\_math | score | 0.7551 | 0.2308 | 13 |" in text
    assert "heron-8b" not in text.split("Corpora:")[0].split("| model |")[1]
    assert "| heron-8b |" in model_card(audited.folder, models=["heron-8b"])
    with pytest.raises(UsageError, match="nobody"):
        model_card(audited.folder, models=["nobody"])
    with pytest.raises(UsageError, match="gpt3-test"):
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
