"""Verdicts and scores that come in a request: a result folder is made of them, or they are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.policies.verdict import COLUMNS
from contam.detect.report import load_report
from contam.detect.result import VERDICTS
from contam.errors import OutputError, UsageError
from contam.server.jobs.intake.inline import write_inline, write_scores

VERDICT = {
    "benchmark": "b", "split": "", "item_id": "1", "policy": "contam", "label": "clean", "score": 0.0,
    "exposure": "none", "kind": None, "n_documents": 0, "n_occurrences": 0, "best_document_id": None,
    "best_shard": None, "best_row": None, "best_url": None, "best_date": None, "reason": "r",
}  # fmt: skip
ITEM = {
    "benchmark": "b", "split": "", "id": "1", "passage": None, "question": "why is it so?",
    "choices": [], "answer": None,
}  # fmt: skip


def inline(verdicts=(VERDICT,), items=(), coverage=None):
    return {"verdicts": list(verdicts), "items": list(items), "coverage": coverage or {}}


def test_what_a_check_answered_becomes_the_result_it_was_part_of(tmp_path):
    write_inline(inline(items=[ITEM]), tmp_path / "out")
    report = load_report(tmp_path / "out")
    assert [one.to_dict() for one in report] == [dict.fromkeys(VERDICTS.names) | VERDICT]


def test_a_verdict_of_an_older_service_lacks_only_what_is_optional(tmp_path):
    for column in COLUMNS:
        row = {name: value for name, value in VERDICT.items() if name != column.name}
        if column.optional:
            write_inline(inline([row]), tmp_path / column.name)
            (verdict,) = load_report(tmp_path / column.name)
            assert getattr(verdict, column.name) is None
        else:
            with pytest.raises(UsageError, match=f"has no {column.name}"):
                write_inline(inline([row]), tmp_path / column.name)


@pytest.mark.parametrize(
    "asked",
    [
        inline([{**VERDICT, "evidence": 3}]),
        inline([{**VERDICT, "evidence": [3]}]),
        inline([{**VERDICT, "best_row": 10**30}]),
        inline([{**VERDICT, "score": "0"}]),
        inline([{**VERDICT, "label": "fine"}]),
        inline([VERDICT, VERDICT]),
        inline(items=[ITEM, {**ITEM, "question": "another?"}]),
        inline(items=[{**ITEM, "id": "2"}]),
    ],
)
def test_rows_that_are_no_verdicts_are_refused(tmp_path, asked):
    with pytest.raises(UsageError) as refused:
        write_inline(asked, tmp_path / "out")
    assert refused.value.hint
    assert list(tmp_path.iterdir()) == []


values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
)


@given(st.sampled_from([*VERDICT, "evidence"]).filter(lambda name: name != "policy"), values)
def test_any_value_in_a_verdict_is_kept_or_refused(tmp_path_factory, name, value):
    folder = tmp_path_factory.mktemp("inline") / "out"
    try:
        write_inline(inline([{**VERDICT, name: value}]), folder)
    except UsageError:
        return
    assert len(load_report(folder)) == 1


@pytest.mark.parametrize("coverage", [{"shards_failed": 3}, {"complete": "yes"}])
def test_a_coverage_that_is_none_makes_no_result(tmp_path, coverage):
    write_inline(inline(coverage=coverage), tmp_path / "out")
    with pytest.raises(OutputError):
        load_report(tmp_path / "out")


def test_scores_are_written_as_they_are_or_refused_by_their_row(tmp_path):
    rows = [{"id": "1", "score": 1}, {"id": "2", "score": 0.5}]
    write_scores(rows, tmp_path / "logs")
    lines = (tmp_path / "logs" / "scores.jsonl").read_text("utf-8").splitlines()
    assert list(map(json.loads, lines)) == rows
    with pytest.raises(UsageError, match="row 2 of the scores"):
        write_scores([*rows[:1], {"id": 10**30}], tmp_path / "logs")
