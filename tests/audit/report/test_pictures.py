"""The pictures of a report are the counts of its verdicts."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.audit.facts import read_facts, to_tree
from contam.audit.report import pictures
from contam.corpus.dates import month_of
from contam.detect.policies.exposure import EXPOSURES
from contam.detect.report import load_report
from contam.tables import schemas


def test_every_exposure_and_label_has_a_colour_and_a_meaning():
    assert set(EXPOSURES) | set(pictures.LABELS) == set(pictures.MEANINGS)


@given(st.lists(st.integers(0, 10_000), min_size=4, max_size=4).filter(any))
def test_the_parts_of_a_bar_are_shares_of_all_items_and_do_not_overlap(counts):
    found = pictures.segments(
        pictures.LABELS, dict(zip(pictures.LABELS, counts, strict=True)), sum(counts)
    )
    assert [part["n"] for part in found] == [n for n in counts if n]
    end = 0.0
    for part in found:
        assert part["x"] == pytest.approx(end, abs=0.002)
        assert part["width"] == pytest.approx(100 * part["n"] / sum(counts), abs=0.002)
        end = part["x"] + part["width"]
    assert end == pytest.approx(100)


MONTHS = st.dates(date(1900, 1, 1), date(2030, 12, 31)).map(lambda day: f"{day:%Y-%m}")


@given(st.dictionaries(MONTHS, st.integers(1, 50), max_size=12), st.integers(0, 5), st.dates())
def test_columns_stand_in_order_within_the_picture(months, unknown, released):
    counted = [{"name": name, "n": n} for name, n in sorted(months.items())]
    counted += [{"name": "unknown", "n": unknown}] if unknown else []
    drawn = pictures.months({"months": counted, "n_items": 100}, released.isoformat())
    if not months:
        assert drawn is None
        return
    assert drawn["unknown"] == unknown
    assert {one["month"]: one["n"] for one in drawn["columns"]} == months
    assert max(one["height"] for one in drawn["columns"]) == 100
    assert drawn["top"] == max(months.values()) / 100
    ends = [(one["x"], one["x"] + one["width"]) for one in drawn["columns"]]
    assert ends == sorted(ends)
    assert all(-0.01 <= low < high <= 100.01 for low, high in ends)
    # Documents left of the line are of an earlier month, those right of it of a later one.
    if drawn["released"] is not None:
        for column in drawn["columns"]:
            if column["month"] < released.isoformat()[:7]:
                assert column["x"] + column["width"] <= drawn["released"] + 0.01
            elif column["month"] > released.isoformat()[:7]:
                assert column["x"] >= drawn["released"] - 0.01


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("2021-06-01", "2021-06"),
        ("2021-06", "2021-06"),
        ("20210630", "2021-06"),
        ("2021", "unknown"),
        ("soon", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_month_is_known_only_where_the_date_says_it(text, month):
    assert month_of(text) == month


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


def test_an_overview_row_holds_the_counts_of_its_policy(audited):
    tree = to_tree(read_facts(audited.folder / "report.json"))
    rows = pictures.overview(tree)
    together = [
        policy
        for bench in tree["benchmarks"]
        for policy in bench["policies"]
        if policy["corpus"] == "together"
    ]
    for row, policy in zip(rows, together, strict=True):
        assert sum(part["n"] for part in row["labels"]) == policy["n_items"]
        assert sum(part["n"] for part in row["exposures"]) == row["n_flagged"]
        assert {part["name"] for part in row["exposures"]} <= {
            name for name, _ in pictures.key_of(rows, "exposures")
        }
