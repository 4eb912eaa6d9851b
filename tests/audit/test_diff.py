"""Two audits side by side: what changed is named, and what cannot be compared is said first."""

import dataclasses
import json
import re

import pytest

from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import compare_packs
from contam.cli.main import main
from contam.errors import OutputError
from tests.audit.conftest import relabel, reseal, write_spec


def changes(found, change):
    return [item.item_id for item in found.items if item.change == change]


def edit(folder, change):
    """Change the facts of a pack, and seal it again."""
    path = folder / "report.json"
    tree = json.loads(path.read_bytes())
    change(tree)
    path.write_text(json.dumps(tree))
    reseal(folder)


def test_an_audit_differs_in_nothing_from_itself(audited, capsys):
    found = compare_packs(audited.folder, audited.folder)
    assert found.before == found.after
    assert not found.incomparable
    for name in (
        "items",
        "scores",
        "ranks",
        "coverage",
        "corpora",
        "policies",
        "studies",
    ):
        assert getattr(found, name) == ()
    assert main(["diff", str(audited.folder), str(audited.folder)]) == 0
    assert capsys.readouterr().out == "nothing changed\n"


def test_every_change_of_a_label_is_named(audited, pack):
    labels = {
        "brook-004": "clean",
        "brook-017": "not_checkable",
        "brook-023": "contaminated",
        "brook-007": "contaminated",
    }
    assert relabel(pack, labels) == 4
    there = compare_packs(audited.folder, pack)
    assert changes(there, "cleared") == ["brook-004"]
    assert changes(there, "unchecked") == ["brook-017"]
    assert changes(there, "relabelled") == ["brook-023"]
    assert changes(there, "newly_flagged") == ["brook-007"]
    assert {item.policy for item in there.items} == {"contam"}
    back = compare_packs(pack, audited.folder)
    assert changes(back, "newly_flagged") == ["brook-004", "brook-017"]
    assert changes(back, "cleared") == ["brook-007"]


def test_a_corpus_and_a_benchmark_less_are_named(audited, tmp_path, pack):
    spec = load_spec(write_spec(tmp_path))
    fewer = dataclasses.replace(
        spec,
        corpora=spec.corpora[:1],
        benchmarks=spec.benchmarks[:1],
        logs=dataclasses.replace(spec.logs, paths=()),
    )
    less = run_audit(fewer, overwrite=True).folder
    assert less == pack
    found = compare_packs(audited.folder, less)
    assert not found.incomparable
    gone = [item for item in found.items if item.benchmark == "lantern_quiz"]
    assert {one.change for one in gone} == {"removed"}
    assert len(gone) == 2 * 48
    assert {item.change for item in found.items if item.benchmark == "brook_math"} <= {
        "cleared",
        "relabelled",
    }
    assert changes(found, "cleared")
    assert {one.of for one in found.corpora} == {"late"}
    assert {one.what for one in found.coverage} >= {"shards_expected", "rows"}
    assert {score.what for score in found.scores} == {"full", "clean"}
    assert all(rank.after is None for rank in found.ranks)
    back = compare_packs(less, audited.folder)
    assert len(changes(back, "newly_flagged")) >= len(changes(found, "cleared"))
    assert {item.change for item in back.items if item.benchmark == "lantern_quiz"} == {
        "added",
        "newly_flagged",
    }


def test_items_of_one_name_and_other_text_are_new(audited, pack):
    from contam.detect.report import load_report
    from contam.tables import schemas
    from tests.audit.conftest import rewrite

    own = schemas.rows(load_report(pack / "checks" / "together").items)
    for row in own:
        if row["item_id"] in {"brook-004", "brook-007"}:
            row["full_key"] = "another"
    rewrite(pack, "items.parquet", own)
    found = compare_packs(audited.folder, pack)
    assert found.n_items_changed == 2
    assert set(changes(found, "newly_flagged")) == {"brook-004"}
    assert set(changes(found, "added")) >= {"brook-007"}


def test_another_version_of_a_policy_is_said_first(audited, pack, capsys):
    def other(tree):
        tree["policies"]["contam"] |= {"version": "0", "fingerprint": "0123"}
        tree["scores"][0]["clean"] += 0.25
        tree["rankings"][0]["rank_clean"] += 1

    edit(pack, other)
    found = compare_packs(audited.folder, pack)
    assert found.policies_alike == ("lmeval-13",)
    assert len(found.policies) == len(found.scores) == len(found.ranks) == 1
    assert main(["diff", str(audited.folder), str(pack)]) == 0
    out = capsys.readouterr().out
    assert {"contam", "0123"} <= set(re.findall(r"\w+", out.splitlines()[0]))
    assert "heron-8b" in out
    assert main(["diff", str(audited.folder), str(pack), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert not tree["comparable"]
    assert tree["counts"]["newly_flagged"] == 0


def test_another_normaliser_makes_no_policy_comparable(audited, pack):
    edit(pack, lambda tree: tree["tool"].update(normaliser="word-9"))
    found = compare_packs(audited.folder, pack)
    assert found.policies_alike == ()
    (why,) = found.incomparable
    assert "word-9" in why


def test_an_altered_pack_is_not_compared(audited, pack):
    (pack / "report.md").write_text("x")
    with pytest.raises(OutputError, match=r"report\.md"):
        compare_packs(audited.folder, pack)
