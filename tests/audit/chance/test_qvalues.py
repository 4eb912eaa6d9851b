"""The report says of every flagged item how likely such a flag is chance, or why it cannot."""

import json
import re

import pyarrow.parquet as pq

from contam.audit.chance.qvalues import QValues, q_values
from contam.cli.main import main
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.tables import schemas


def embedded(pack, name):
    page = (pack / "report.html").read_text("utf-8")
    found = re.search(
        rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL
    )
    return json.loads(found[1])


def test_every_row_has_the_q_value_of_the_policy_that_speaks_for_it(audited):
    table = pq.read_table(audited.folder / "calibration" / "calibration.parquet").to_pylist()
    known = {(r["benchmark"], r["split"], r["item_id"], r["policy"]): r["q_value"] for r in table}
    rows = embedded(audited.folder, "rows")
    assert len(rows) > 50
    for row in rows:
        policy = next(p for p, label in row["labels"].items() if label in FLAGGED)
        q = known[row["benchmark"], row["split"], row["item"], policy]
        assert row["q"] == round(q, 6)
    assert len({row["q"] for row in rows}) > 2


def test_every_flag_of_every_policy_is_told_with_its_q_value(audited):
    chance = q_values(audited.folder)
    rows, page = embedded(audited.folder, "rows"), embedded(audited.folder, "page-0")
    for row, one in zip(rows[: len(page)], page, strict=True):
        flagged = {p for p, label in row["labels"].items() if label in FLAGGED}
        assert set(one["chance"]) == flagged
        for policy, said in one["chance"].items():
            key = (row["benchmark"], row["split"], row["item"], policy)
            assert said == f"q {chance.of(*key):.3g}"


def test_q_values_do_not_fall_from_a_found_item_to_one_found_better(audited):
    # Of the items of one benchmark and policy the better found cannot be the more accidental.
    chance = q_values(audited.folder)
    by_group = {}
    for row in schemas.rows(load_report(audited.folder / "checks" / "together").verdicts):
        if row["score"] is not None:
            key = (row["benchmark"], row["split"], row["item_id"], row["policy"])
            rank = (row["label"] in FLAGGED, row["score"])
            by_group.setdefault((row["benchmark"], row["policy"]), []).append(
                (rank, chance.of(*key))
            )
    for pairs in by_group.values():
        qs = [q for _, q in sorted(pairs, key=lambda one: one[0])]
        assert qs == sorted(qs, reverse=True)


def test_an_audit_without_decoys_says_that_nothing_is_estimated(tmp_path):
    chance = q_values(tmp_path)
    assert chance.of("b", "", "1", "contam") is None
    assert chance.describe("b", "", "1", "contam") == (
        "q not estimated: no decoys were searched for"
    )


def test_where_too_few_decoys_are_the_reason_is_said():
    chance = QValues({("b", "", "1", "p"): None}, {("b", "p"): "3 decoys, and 20 are needed"})
    assert chance.describe("b", "", "1", "p") == "q not estimated: 3 decoys, and 20 are needed"


def test_show_opens_a_pack_with_the_q_value_beside_each_flag(audited, capsys):
    assert main(["show", str(audited.folder), "brook-001", "--policy", "contam"]) == 0
    chance = q_values(audited.folder)
    q = chance.of("brook_math", "", "brook-001", "contam")
    assert f"q {q:.3g}" in " ".join(capsys.readouterr().out.split())
    assert main(["show", str(audited.folder), "--json", "--limit", "3"]) == 0
    for item in json.loads(capsys.readouterr().out)["items"]:
        for verdict in item["verdicts"]:
            key = (item["benchmark"], item["split"], item["item_id"], verdict["policy"])
            assert verdict["q_value"] == chance.of(*key)
    together = audited.folder / "checks" / "together"
    assert main(["show", str(together), "--json", "--limit", "1"]) == 0
    assert "q_value" not in json.loads(capsys.readouterr().out)["items"][0]["verdicts"][0]
