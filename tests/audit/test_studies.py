"""An audit takes studies up: stages of the pack, kept and verified, shown in its reports."""

import json
import shutil

import pytest

from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import compare_packs, verify_pack
from contam.cli.main import main
from contam.errors import ConfigError, LogError
from tests.audit.conftest import reseal

AUDIT = """\
[audit]
out = "pack"
least = 12
decoys = 0

[[corpus]]
name = "web"
paths = ["corpus"]

[[benchmark]]
paths = ["items/lantern_quiz.jsonl", "items/tinker_code.jsonl"]

[study.fresh]
original = "studies/fresh_original.csv"
fresh = "studies/fresh_new.csv"
references = ["dunlin-1b", "plover-3b"]
draws = 200

[study.preparation]
scores = "studies/preparation.csv"
chance = 0.25
draws = 200
"""


@pytest.fixture(scope="module")
def home(bench_fixtures, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for name in ("corpus", "items", "studies", "logs"):
        shutil.copytree(bench_fixtures / name, folder / name)
    return folder


def spec_of(home, text, name="AUDIT.toml"):
    (home / name).write_text(text, encoding="utf-8")
    return load_spec(home / name)


@pytest.fixture(scope="module")
def pack(home):
    return run_audit(spec_of(home, AUDIT), workers=1)


def test_studies_stand_in_the_pack_and_in_every_report(pack):
    facts = {study["name"]: study for study in pack.facts.studies}
    assert set(facts) == {"fresh", "preparation"}
    assert "quokka-7b" in facts["fresh"]["finding"]["found"]
    assert "goes with preparation" in facts["preparation"]["finding"]["found"]
    assert any(one["what"] == "ConStat" for one in facts["fresh"]["refused"])
    for name in ("report.md", "report.html"):
        text = (pack.folder / name).read_text()
        assert "quokka-7b" in text
        assert "ConStat" in text
    assert (pack.folder / "studies/fresh/models.parquet").is_file()
    manifest = json.loads((pack.folder / "manifest.json").read_bytes())
    assert "studies/preparation/effects.parquet" in manifest["files"]
    # Neither where the audit was made nor when is in what equal audits share.
    run = (pack.folder / "studies/fresh/run.json").read_text()
    assert str(pack.folder.parent) not in run
    assert "timings" not in run


def test_another_finding_or_refusal_of_a_study_is_a_difference(pack, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(pack.folder, copy)
    path = copy / "report.json"
    tree = json.loads(path.read_bytes())
    first = tree["studies"][0]
    before = first["finding"]["found"]
    first["finding"]["found"] = "Nothing fell."
    gone = first["refused"].pop(0)
    path.write_text(json.dumps(tree))
    reseal(copy)
    found = compare_packs(pack.folder, copy).studies
    assert {(change.of, change.what) for change in found} == {
        (first["name"], "found"), (first["name"], f"not estimated, {gone['what']}"),
    }  # fmt: skip
    assert [(one.before, one.after) for one in found if one.what == "found"] == [
        (before, "Nothing fell.")
    ]
    assert main(["diff", str(pack.folder), str(copy)]) == 0
    shown = capsys.readouterr().out
    assert "studies    2 changed" in shown
    assert "-> Nothing fell." in shown


def test_an_altered_study_is_found(pack, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(pack.folder, copy)
    path = copy / "studies/fresh/study.json"
    path.write_text(path.read_text().replace("quokka-7b", "heron-8b"))
    assert not verify_pack(copy).holds


@pytest.mark.slow
def test_a_study_is_made_again_when_its_input_changes_and_only_then(home, pack):
    again = run_audit(spec_of(home, AUDIT), workers=1, overwrite=True)
    assert {"studies/fresh", "studies/preparation"} <= set(again.reused)
    assert again.digest == pack.digest
    path = home / "studies/fresh_new.csv"
    before = path.read_text()
    path.write_text(before.replace("235,500", "300,500").replace("quokka-7b,2", "quokka-7b,3"))
    try:
        other = run_audit(spec_of(home, AUDIT), workers=1, overwrite=True)
    finally:
        path.write_text(before)
    assert "studies/fresh" not in other.reused
    assert "studies/preparation" in other.reused


@pytest.mark.slow
def test_a_study_of_logs_splits_items_by_the_verdicts_of_the_audit(home):
    text = AUDIT.partition("[study.fresh]")[0].replace('"pack"', '"clean"') + (
        '[study.fresh]\noriginal = ["logs/lantern_quiz.csv"]\nfresh = "logs/tinker_code.csv"\n'
        "by_verdicts = true\n"
    )
    made = run_audit(spec_of(home, text, "clean.toml"), workers=1)
    (study,) = made.facts.studies
    assert "On clean items" in study["finding"]["found"]


@pytest.mark.parametrize(
    "line",
    [
        "[study.nothing]\nx = 1",
        "[study.fresh]\noriginal = 'a'\nfresh = 'b'\nnothing = 1",
        "[study.fresh]\noriginal = 1\nfresh = 'b'",
        "[study.fresh]\noriginal = 'a'\nfresh = 'b'\ndraws = 'many'",
        "[study.fresh]\noriginal = 'a'\nfresh = 'b'\nreferences = 'dunlin-1b'",
        "[study.fresh]\noriginal = 'a'\nfresh = 'b'\nsettings = {}",
        "[study.preparation]\nscores = 'a'\nchance = 'low'",
        "[study.preparation]\nchance = 0.25",
        "[[study]]\nname = 'fresh'",
        "[study]\nfresh = 'a'",
    ],
)
def test_what_is_no_study_is_refused_before_anything_is_searched(home, line):
    head = AUDIT.partition("[study.fresh]")[0]
    with pytest.raises(ConfigError):
        spec_of(home, f"{head}{line}\n", "wrong.toml")


def test_input_that_is_not_there_leaves_no_pack(home):
    text = AUDIT.replace("fresh_new", "gone").replace('"pack"', '"never"')
    with pytest.raises(LogError, match="gone"):
        run_audit(spec_of(home, text, "gone.toml"), workers=1)
    assert not (home / "never").exists()
