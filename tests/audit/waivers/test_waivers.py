"""A waived flag stays in sight, and a waiver holds only for what was looked at, for a while."""

import dataclasses
import datetime as dt
import json
import tomllib

import pytest

from contam.audit.init import starting_file
from contam.audit.manifest import MANIFEST, TIMES, files_of
from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.waivers.register import Waiver, parse_waivers
from contam.audit.waivers.waive import append, entry
from contam.cli.main import main
from contam.detect.report import load_report
from contam.errors import ConfigError, UsageError
from contam.tables import schemas
from tests.audit.conftest import write_spec

NOW = dt.date(2026, 11, 1)
LATER = "2027-03-01"


def verdicts(folder, **wanted):
    return [
        row
        for row in schemas.rows(load_report(folder / "checks" / "together").verdicts)
        if all(row[name] == value for name, value in wanted.items())
    ]


def flagged(folder, policy="contam"):
    return [
        row
        for row in verdicts(folder, policy=policy)
        if row["label"] in {"contaminated", "suspect"}
    ]


def waive(pack, item, *more, to):
    words = ["--reason", 'template of "quizzes", not the item \U0001f600', "--reviewer", "Anna"]
    dates = ["--expires", LATER, "--today", NOW.isoformat()]
    return main(["audit", "waive", str(pack), item, *words, *dates, "--to", str(to), *more])


def again(folder, **more):
    """The audit in the folder beside its waivers; the stages of the pack there are taken over."""
    path = write_spec(folder, audit='waivers = "waivers.toml"')
    return run_audit(load_spec(path), overwrite=True, today=more.get("today", NOW))


def facts_of(pack, benchmark, policy, corpus="together"):
    (found,) = [
        one
        for bench in pack.facts.benchmarks
        for one in bench.policies
        if (bench.name, one.policy, one.corpus) == (benchmark, policy, corpus)
    ]
    return found


def test_a_waived_flag_is_counted_and_stays_in_sight(pack, tmp_path, audited):
    to = tmp_path / "waivers.toml"
    first, second = flagged(pack)[:2]
    assert waive(pack, first["item_id"], "--policy", "contam", to=to) == 0
    assert waive(pack, second["item_id"], "--kind", "accepted", to=to) == 0
    done = again(tmp_path)
    assert done.facts.calibration == audited.facts.calibration
    stages = {"checks/early", "checks/late", "checks/together", "scores"}
    assert set(done.reused) == stages | {"decoys/early", "decoys/late", "calibration"}
    before = facts_of(audited, "brook_math", "contam")
    found = facts_of(done, "brook_math", "contam")
    assert (found.waived, found.accepted) == (2, 1)
    assert (found.contaminated, found.suspect) == (before.contaminated, before.suspect)
    assert found.flagged_share == before.flagged_share
    assert "2 of them are waived by a reviewer: 1 as a false alarm, 1 as an accepted leak." in (
        done.facts.headline.text
    )
    assert "63 of 97 items" in done.facts.headline.text
    rows = {row["item"]: row for row in done.facts.waivers}
    assert rows[first["item_id"]]["policies"] == ["contam"]
    assert rows[first["item_id"]]["reason"] == 'template of "quizzes", not the item \U0001f600'
    assert all(row["waives"] for row in rows.values())
    page = (done.folder / "report.html").read_text("utf-8")
    assert "Anna, until 2027-03-01" in page
    assert "Anna" in (done.folder / "report.md").read_text("utf-8")
    assert (done.folder / "waivers.toml").read_bytes() == to.read_bytes()
    assert "waivers.toml" in json.loads((done.folder / MANIFEST).read_bytes())["files"]


def test_the_day_of_the_run_is_not_in_the_pack(pack, tmp_path):
    waive(pack, flagged(pack)[0]["item_id"], to=tmp_path / "waivers.toml")

    def contents(folder):
        return {name: path.read_bytes() for name, path in files_of(folder) if name != TIMES}

    first = contents(again(tmp_path).folder)
    assert contents(again(tmp_path, today=dt.date(2026, 12, 1)).folder) == first


def test_waived_flags_alone_leave_nothing_flagged_unless_a_leak_was_accepted():
    from contam.audit.facts import BenchmarkFacts, PolicyFacts
    from contam.audit.report.headline import headline

    def status(waived, accepted):
        counts = {"contaminated": 2, "suspect": 1, "clean": 7, "not_checkable": 0}
        empty = {"exposures": (), "kinds": (), "dates": (), "sources": ()}
        one = PolicyFacts(
            policy="contam",
            corpus="together",
            n_items=10,
            flagged_share=0.3,
            **counts,
            **empty,
            not_checkable_reasons=(),
            waived=waived,
            accepted=accepted,
        )
        bench = BenchmarkFacts(name="b", n_items=10, n_skipped=0, released=None, policies=(one,))
        return headline([bench], {"complete": True}, "contam", [])

    assert status(0, 0).status == "flagged"
    assert status(2, 0).status == "flagged"
    assert status(3, 0).status == "clear"
    assert status(3, 1).status == "flagged"
    assert "The corpora contain 3 of 10 items (30.0 %)" in status(3, 0).text


def test_an_expired_waiver_stops_the_audit_by_name(pack, tmp_path):
    item = flagged(pack)[0]["item_id"]
    waive(pack, item, to=tmp_path / "waivers.toml")
    assert again(tmp_path, today=dt.date.fromisoformat(LATER)).facts.waivers
    with pytest.raises(ConfigError, match=f"expired by 2027-03-02.*brook_math/{item}"):
        again(tmp_path, today=dt.date(2027, 3, 2))


def test_a_waiver_of_other_evidence_is_refused_by_name(pack, tmp_path):
    to = tmp_path / "waivers.toml"
    item, other = (row["item_id"] for row in flagged(pack)[:2])
    waive(pack, item, to=to)
    text = to.read_text("utf-8")
    to.write_text(text.replace(f'item = "{item}"', f'item = "{other}"'), "utf-8")
    with pytest.raises(ConfigError, match=f"brook_math/{other}: its evidence is not what"):
        again(tmp_path)
    clean = verdicts(pack, policy="contam", label="clean", benchmark="brook_math")[0]["item_id"]
    to.write_text(text.replace(f'item = "{item}"', f'item = "{clean}"'), "utf-8")
    with pytest.raises(ConfigError, match=f"brook_math/{clean}: .*(is not flagged|not what)"):
        again(tmp_path)
    to.write_text(text.replace(f'item = "{item}"', 'item = "nobody"'), "utf-8")
    with pytest.raises(ConfigError, match="brook_math/nobody: there is no such item"):
        again(tmp_path)


def test_one_more_leaking_document_changes_the_digest(pack):
    from contam.audit.waivers.reviewed import Reviewed

    report = load_report(pack / "checks" / "together")
    corpora = ["early", "late"]
    row = next(row for row in flagged(pack) if row["n_documents"] > 1)
    name = (row["benchmark"], row["split"], row["item_id"], "contam")
    found = Reviewed(report, corpora).find(*name)
    whole, one = found.digest(), found.digest(found.documents[0])
    assert len({whole, one, found.digest(found.documents[1])}) == 3
    fewer = [
        document != found.documents[1]
        for document in schemas.column(report.evidence, "document_id")
    ]
    less = dataclasses.replace(
        report,
        evidence=schemas.take(report.evidence, [at for at, keep in enumerate(fewer) if keep]),
    )
    again_found = Reviewed(less, corpora).find(*name)
    assert again_found.digest() != whole
    assert again_found.digest(found.documents[0]) == one


def test_an_item_is_waived_by_its_documents_only_when_all_are(pack, tmp_path):
    from contam.audit.waivers.reviewed import Reviewed

    reviewed = Reviewed(load_report(pack / "checks" / "together"), ["early", "late"])
    found = [
        (row, reviewed.find(row["benchmark"], row["split"], row["item_id"], "contam").documents)
        for row in flagged(pack)
    ]
    row, documents = min(
        ((row, names) for row, names in found if len(names) > 1), key=lambda one: len(one[1])
    )
    assert row["n_documents"] <= len(documents)
    to = tmp_path / "waivers.toml"
    more = ["--policy", "contam", "--document"]
    for document in documents[1:]:
        assert waive(pack, row["item_id"], *more, document, to=to) == 0
    done = again(tmp_path)
    assert facts_of(done, row["benchmark"], "contam").waived == 0
    assert not any(waiver["waives"] for waiver in done.facts.waivers)
    assert waive(pack, row["item_id"], *more, documents[0], to=to) == 0
    done = again(tmp_path)
    assert facts_of(done, row["benchmark"], "contam").waived == 1
    assert all(waiver["waives"] for waiver in done.facts.waivers)


def test_waiving_says_what_cannot_be(pack, tmp_path, capsys):
    to = tmp_path / "waivers.toml"
    item = flagged(pack)[0]["item_id"]
    assert waive(pack, "nobody", to=to) == 2
    said = capsys.readouterr().err
    assert "there is no such item" in said
    assert "ids of items stand in report.html and in checks/together/items.parquet" in said
    assert waive(pack, item, "--benchmark", "nobody", to=to) == 2
    assert "an item of that id is in brook_math" in capsys.readouterr().err
    assert waive(pack, item, "--policy", "nobody", to=to) == 2
    assert "it is flagged by contam" in capsys.readouterr().err
    assert waive(pack, item, to=pack / "waivers.toml") == 2
    assert "must stay as it was published" in capsys.readouterr().err
    assert waive(pack, item, "--document", "nowhere", to=to) == 2
    assert "no evidence" in capsys.readouterr().err
    assert waive(pack, item, "--expires", "2026-10-31", to=to) == 2
    assert "is over" in capsys.readouterr().err
    assert not to.exists()
    assert waive(pack, item, to=to) == 0
    before = to.read_bytes()
    assert waive(pack, item, to=to) == 2
    assert "waived twice" in capsys.readouterr().err
    assert to.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack", "waivers.toml"]


WAIVER = Waiver(
    benchmark="b",
    item='a"\\\n\x7f\U0001f600',
    kind="accepted",
    reason="because",
    reviewer="Anna",
    expires=NOW,
    evidence="0" * 64,
)


def test_any_text_survives_the_file(tmp_path):
    path = tmp_path / "w.toml"
    append(path, WAIVER)
    (found,) = parse_waivers(path.read_text("utf-8"), "w.toml")
    assert found == WAIVER
    with pytest.raises(UsageError, match="not text"):
        entry(dataclasses.replace(WAIVER, reason="\udc80"))


def test_a_starting_file_names_paths_in_any_script(tmp_path):
    corpus = tmp_path / "\U0001f600.jsonl"
    corpus.write_text('{"text": "a"}\n')
    text = starting_file(tmp_path / "A.toml", corpora=[str(corpus)], benchmarks=["b.jsonl"])
    assert tomllib.loads(text)["corpus"][0]["paths"] == ["\U0001f600.jsonl"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[waiver]]", "[waiver]", "tuple|list"),
        ('kind = "accepted"', 'kind = "fine"', "kind"),
        ('reviewer = "Anna"', 'reviewer = " "', "no reason or no reviewer"),
        ("reviewer", "reader", "reviewer|reader"),
        ("expires = 2026-11-01", 'expires = "soon"', "expires"),
        ("[[waiver]]", "x = 1\n[[waiver]]", "there is no x"),
        ("[[waiver]]", "[[waiver", "not TOML"),
    ],
)
def test_a_wrong_file_of_waivers_is_refused_with_its_key(old, new, said):
    with pytest.raises(ConfigError, match=said):
        parse_waivers(entry(WAIVER).replace(old, new), "w.toml")
