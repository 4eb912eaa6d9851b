"""What AUDIT.toml says of a model decides which leaks it can have seen."""

import dataclasses
import datetime as dt
import shutil

import pytest

from contam.audit.facts import read_facts
from contam.audit.pack import run_audit
from contam.audit.report.seen import seen_by_models
from contam.audit.spec import ModelSpec, load_spec
from contam.detect.report import load_report
from contam.errors import ConfigError
from tests.audit.conftest import write_spec

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
