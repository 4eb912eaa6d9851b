"""What a report draws and counts is what the verdicts and the dates of documents say."""

import dataclasses
import datetime as dt
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.audit.combine import merged_coverage
from contam.audit.facts import read_facts
from contam.audit.pack import run_audit
from contam.audit.report import render
from contam.audit.report.build import seen_by_models
from contam.audit.report.render import write_markdown
from contam.audit.spec import ModelSpec, load_spec
from contam.corpus.dates import month_of
from contam.detect.report import load_report
from contam.errors import ConfigError
from contam.tables import schemas
from tests.audit.conftest import write_spec


@given(st.lists(st.integers(0, 10_000), min_size=4, max_size=4).filter(any))
def test_the_parts_of_a_bar_are_shares_of_all_items_and_do_not_overlap(counts):
    found = render.segments(
        render.LABELS, dict(zip(render.LABELS, counts, strict=True)), sum(counts)
    )
    assert [part["n"] for part in found] == [n for n in counts if n]
    end = 0.0
    for part in found:
        assert part["x"] == pytest.approx(end, abs=0.002)
        assert part["width"] == pytest.approx(100 * part["n"] / sum(counts), abs=0.002)
        end = part["x"] + part["width"]
    assert end == pytest.approx(100)


def test_a_column_of_text_that_no_corpus_was_searched_for_is_named(audited, tmp_path):
    facts = audited.facts
    unread = {**facts.corpora[0].coverage, "unread_columns": ["abstract"]}
    together = merged_coverage({"pile": unread, "web": facts.corpora[0].coverage})
    write_markdown(tmp_path / "report.md", dataclasses.replace(facts, coverage=together))
    assert "pile/abstract" in (tmp_path / "report.md").read_text()
    write_markdown(tmp_path / "report.md", facts)
    assert "abstract" not in (tmp_path / "report.md").read_text()


def test_months_count_flagged_items_of_the_evidence(audited):
    facts = read_facts(audited.folder / "report.json")
    for bench in facts.benchmarks:
        for policy in bench.policies:
            report = load_report(audited.folder / "checks" / policy.corpus)
            flagged = {
                (row["split"], row["item_id"])
                for row in schemas.rows(report.verdicts)
                if (row["benchmark"], row["policy"]) == (bench.name, policy.policy)
                and row["label"] in {"contaminated", "suspect"}
            }
            pairs = {
                (month_of(row["date"]), row["item_id"])
                for row in schemas.rows(report.evidence)
                if row["benchmark"] == bench.name and (row["split"], row["item_id"]) in flagged
            }
            found = {count.name: count.n for count in policy.months}
            assert found == {
                name: len([1 for month, _ in pairs if month == name]) for name, _ in pairs
            }
            assert len(found) > 1


def test_the_headline_has_three_numbers_and_says_what_follows(audited):
    said = audited.facts.headline
    flagged = sum(
        one.contaminated + one.suspect
        for bench in audited.facts.benchmarks
        for one in bench.policies
        if (one.policy, one.corpus) == ("contam", "together")
    )
    assert str(flagged) in said.sentence
    assert said.text.startswith(said.sentence)
    assert len(said.numbers) == 3
    assert said.to_do


GROUPS = [("brook_math", "contam"), ("lantern_quiz", "contam")]


@pytest.fixture(scope="module")
def found(audited):
    spec = load_spec(write_spec(audited.folder.parent))
    reports = {name: load_report(audited.folder / "checks" / name) for name in ("early", "late")}
    flagged = {
        (bench.name, policy.policy): policy.contaminated + policy.suspect
        for bench in audited.facts.benchmarks
        for policy in bench.policies
        if policy.corpus == "together"
    }

    def of(**said):
        models = {"quokka-7b": ModelSpec(**said)}
        rows = seen_by_models(dataclasses.replace(spec, models=models), reports, GROUPS)
        assert [(row.benchmark, row.policy) for row in rows] == GROUPS
        for row in rows:
            own = row.before + row.unknown + row.after + row.elsewhere
            assert own == flagged[row.benchmark, row.policy]
        return rows

    return of


def test_a_model_cannot_have_seen_what_was_written_after_its_data_ended(found):
    (old, _), (new, _) = found(cutoff=dt.date(1990, 1, 1)), found(cutoff=dt.date(2090, 1, 1))
    assert (old.before, new.after) == (0, 0)
    assert old.after > 10
    assert new.before >= old.after  # one dated document is enough to have been there
    middle, _ = found(cutoff=dt.date(2021, 6, 1))
    assert 0 < middle.before < new.before
    assert middle.after > 0


def test_what_stands_in_other_corpora_only_was_not_seen(found):
    early, _ = found(cutoff=dt.date(2090, 1, 1), corpora=("early",))
    late, _ = found(cutoff=dt.date(2090, 1, 1), corpora=("late",))
    assert early.corpora == ("early",)
    assert min(early.elsewhere, late.elsewhere) > 0
    assert found(cutoff=dt.date(2090, 1, 1))[0].elsewhere == 0


def test_without_a_date_nothing_is_ruled_out(found):
    row, _ = found()
    assert (row.before, row.after) == (0, 0)
    assert row.unknown > 0


@pytest.mark.slow
def test_the_reports_say_it_and_a_model_without_logs_is_refused(audited, tmp_path):
    out = shutil.copytree(audited.folder, tmp_path / "pack")
    spec = dataclasses.replace(load_spec(write_spec(tmp_path)), out=str(out))
    models = {"quokka-7b": ModelSpec(cutoff=dt.date(2021, 6, 1), corpora=("early",))}
    done = run_audit(dataclasses.replace(spec, models=models), overwrite=True)
    assert {"checks/early", "decoys/late", "scores"} <= set(done.reused)
    row = read_facts(done.folder / "report.json").models[0]
    figures = [str(n) for n in (row.before, row.unknown, row.after, row.elsewhere)]
    assert f"| {' | '.join(figures)} |" in (done.folder / "report.md").read_text("utf-8")
    assert 'id="seen"' in (done.folder / "report.html").read_text("utf-8")
    for wrong in ({"models": {"quoka-7b": ModelSpec()}}, {"logs": ("quoka-7b",)}):
        logs = dataclasses.replace(spec.logs, ours=wrong.get("logs", spec.logs.ours))
        with pytest.raises(ConfigError, match="quoka-7b"):
            run_audit(
                dataclasses.replace(spec, models=wrong.get("models", {}), logs=logs),
                overwrite=True,
            )
