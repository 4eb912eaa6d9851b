"""The figures of the accuracy run are counted as its tables say."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])


def measured(found=98, contaminated=1, flagged=2, suspect=3):
    return {
        "contam": {
            "recall": [
                {"class": "case", "tier": "core", "n": 60, "found": found - 40},
                {"class": "case", "tier": "hard", "n": 40, "found": 40},
            ],
            "false_flags": [
                {
                    "class": "answer_only",
                    "tier": "core",
                    "n": 100,
                    "contaminated": contaminated,
                    "flagged": suspect,
                }
            ],
            "absent": {"n": 1000, "flagged": flagged},
        }
    }


FLOOR = {
    "contam": {"recall": {"case": 0.98}, "false_flags": {"answer_only": 0.01}, "flagged": {
        "answer_only": 0.03}, "absent": 0.002},
    "another": {"recall": {"case": 1.0}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"found": 97}, "recall of case"),
        ({"contaminated": 2}, "answer_only"),
        ({"flagged": 3}, "absent"),
        ({"suspect": 4}, "answer_only flagged"),
    ],
)
def test_a_figure_below_its_floor_is_told(change, told):
    from quality_floor import regressions

    (line,) = regressions(measured(**change), FLOOR)
    assert told in line


def test_a_class_the_pack_lost_is_told():
    from quality_floor import regressions

    floor = {"contam": {"recall": {"renamed_class": 0.5}}}
    (line,) = regressions(measured(), floor)
    assert "renamed_class is not measured" in line


def test_the_committed_floors_name_known_classes():
    from quality_aims import FALSE_FLAG_AIMS, RECALL_AIMS
    from quality_floor import read_floor

    for limits in read_floor(BENCHMARKS / "quality_floor.json").values():
        assert {name.rpartition(":")[2] for name in limits["recall"]} <= set(RECALL_AIMS)
        for kind in ("false_flags", "flagged"):
            named = {name.rpartition(":")[2] for name in limits.get(kind, {})}
            assert named <= set(FALSE_FLAG_AIMS)


def test_a_share_is_never_rounded_up():
    from quality_report import share

    assert share(1999, 2000) == "99.9"
    assert share(2000, 2000) == "100.0"
    assert share(0, 0) == "-"


def index_part(found=(100, 90)):
    rows = [{"recall": [{"class": "edit6", "n": 60, "found": one - 40},
                        {"class": "edit6", "n": 40, "found": 40},
                        {"class": "case", "n": 5, "found": 5},
                        {"class": "punct", "n": 0, "found": 0}]} for one in found]  # fmt: skip
    from index_figures import INDEXED, side_by_side

    return {
        "recall": side_by_side(rows),
        "n_text_bytes": 1000,
        "n_documents": 50,
        "n_index_bytes": 420,
        "documents_read": 7,
        "open": 2,
        "n_items": 105,
        "answers": {INDEXED: measured(found=90)["contam"]},
    }


def test_an_index_is_set_beside_the_scan_class_by_class_with_its_bytes():
    from index_figures import index_rows

    assert index_rows(index_part()) == [
        ["case", "5", "100.0", "100.0"],
        ["edit6", "100", "100.0", "90.0"],
        ["bytes on disk", "", "0", "420"],
        ["for each byte of text", "", "0.000", "0.420"],
        ["documents read", "", "50", "7"],
    ]


def test_the_answers_of_an_index_have_floors_of_their_own(tmp_path, monkeypatch, capsys):
    import quality
    from index_figures import INDEXED

    answer = {"policies": measured(), "data": "pack"}
    monkeypatch.setattr(quality, "measure", lambda *_: answer)
    monkeypatch.setattr(quality, "build_index", lambda *_: 1.0)
    monkeypatch.setattr(quality, "measure_index", lambda *_: index_part())
    floor = tmp_path / "floor.json"
    floor.write_text(json.dumps({**FLOOR, INDEXED: {"recall": {"case": 0.95}}}))
    arguments = ["--data", "pack", "--out", str(tmp_path / "out"), "--floor", str(floor), "--json"]
    assert quality.main(arguments) == 1
    assert f"below the floor: {INDEXED}: recall of case is 0.9" in capsys.readouterr().err
    written = json.loads((tmp_path / "out" / "quality.json").read_text())
    assert written["index"]["build_cpu_seconds"] == 1.0
