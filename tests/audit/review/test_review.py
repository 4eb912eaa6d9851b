"""A reader sees items and not verdicts; answers are kept at once and weighed by stratum."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from contam.audit import rates
from contam.audit.rates import reviewed
from contam.audit.sample import (
    Case,
    Label,
    append_label,
    draw,
    population,
    read_labels,
    write_labels,
)
from contam.cli.main import main
from contam.detect.intervals import wilson
from contam.detect.report import load_report
from contam.errors import ConfigError
from contam.rescore.stats.permutation import permutation_test


def ask(monkeypatch, folder, path, answers, *more, reader="anna"):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
    return main(
        [
            *("review", str(folder), "--labels", str(path), "--reader", reader),
            *("--clean", "3", "--flagged", "4", *more),
        ]
    )


def label(case, said, reader="anna", **changes):
    benchmark, split, item, policy = case.judged
    whole = {"benchmark": benchmark, "split": split, "item": item, "policy": policy}
    return Label(**{**whole, "evidence": case.digest, "reader": reader, "label": said, **changes})


def world(n_flagged=60, n_clean=340, seed=0):
    rng = np.random.default_rng(seed)
    made = [("contaminated", "question_only")] * n_flagged + [("clean", "none")] * n_clean
    return [
        Case(("b", "", f"i{at}", "contam"), ("b", *kind), float(rng.random()), f"d{at}")
        for at, kind in enumerate(made)
    ]


def test_answers_are_on_the_disk_at_once_and_the_next_call_goes_on(
    audited, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "anna.jsonl"
    said = ["t", "what?", "false only the  numbers", "s", "q"]
    assert ask(monkeypatch, audited.folder, path, said) == 0
    first = read_labels([path])
    assert [one.label for one in first] == [True, False, None]
    assert [one.note for one in first] == ["", "only the  numbers", ""]
    shown = capsys.readouterr()
    assert "3 answers written" in shown.out
    assert "⟦" in shown.out or "[[" in shown.out
    # Nothing says what the policy thinks of the item.
    for word in ("contaminated", "suspect", "clean", "score"):
        assert word not in shown.out
    assert ask(monkeypatch, audited.folder, path, ["t"]) == 0
    assert read_labels([path])[:3] == first
    assert len({read_label.judged for read_label in read_labels([path])}) == 4


def test_a_pack_that_was_altered_is_not_read(pack, tmp_path, monkeypatch, capsys):
    report = pack / "report.md"
    report.write_bytes(report.read_bytes() + b"\n")
    assert ask(monkeypatch, pack, tmp_path / "anna.jsonl", "ttff") == 1
    assert "report.md" in capsys.readouterr().err
    assert not (tmp_path / "anna.jsonl").exists()


def test_answers_go_into_no_pack(pack, tmp_path, monkeypatch, capsys):
    (tmp_path / "door").symlink_to(pack)
    for path in (pack / "anna.jsonl", tmp_path / "door" / "checks" / "anna.jsonl"):
        assert ask(monkeypatch, pack, path, ["t"]) == 2
        assert str(path.parent) in capsys.readouterr().err
        assert not path.exists()
    assert ask(monkeypatch, pack, tmp_path / "anna.jsonl", ["t"]) == 0
    assert main(["audit", "verify", str(pack), "--sample", "0"]) == 0


@pytest.mark.parametrize(
    "reader", ["", " ", "a\nb", "../../x", "a\\b", "..", "a\u202eb", "x" * 101]
)
def test_what_cannot_be_a_name_is_no_reader(audited, tmp_path, monkeypatch, reader):
    assert ask(monkeypatch, audited.folder, tmp_path / "x.jsonl", ["t"], reader=reader) == 2
    assert list(tmp_path.iterdir()) == []


def test_labels_of_other_evidence_are_counted_and_not_used():
    items = world()
    labels = [label(case, said=case.flagged) for case in draw(items, flagged=9, clean=9, seed=1)]
    old = [label(items[0], said=True, evidence="other"), label(items[1], said=True, item="gone")]
    found = reviewed(items, [*old, *labels])
    assert found["n_stale"] == 2
    assert found["n_read"] == 18
    assert found["policies"] == reviewed(items, labels)["policies"]


@pytest.mark.slow
def test_intervals_hold_the_truth_of_a_known_world():
    covered, precise, recalled = 0, 0, 0
    runs = 300
    for run in range(runs):
        items = world(seed=run)
        rng = np.random.default_rng(run)
        truth = {c.judged: bool(rng.random() < (0.85 if c.flagged else 0.04)) for c in items}
        labels = [label(c, truth[c.judged]) for c in draw(items, flagged=30, clean=60, seed=run)]
        (row,) = reviewed(items, labels)["policies"]
        rate = sum(truth.values()) / len(items)
        right = sum(truth[c.judged] for c in items if c.flagged)
        covered += row["rate_lo"] <= rate <= row["rate_hi"]
        precise += row["precision_lo"] <= right / 60 <= row["precision_hi"]
        recalled += row["recall_lo"] <= right / sum(truth.values())
    assert covered / runs >= 0.92
    assert precise / runs >= 0.95
    assert recalled / runs >= 0.97


@pytest.mark.parametrize(("right", "gap"), [(0.6, 0.3), (0.9, 0.3), (0.8, 0.0)])
def test_a_gap_of_which_flags_are_wrong_is_corrected(right, gap):
    """Of 150 flagged items 50 are read; only those that leaked are answered better."""
    rng, rounds, inside, naive = np.random.default_rng(4), 500, 0, 0
    flagged = np.arange(600) < 150
    for _ in range(rounds):
        leaked = flagged & (rng.random(600) < right)
        scores = (rng.random(600) < 0.5 + gap * leaked).astype(float)
        found = permutation_test(scores, flagged, permutations=99, seed=0)
        read = leaked[:50].mean()
        low, high = wilson(leaked[:50].sum(), 50)
        row = {"gap": found.gap, "gap_low": found.low, "gap_high": found.high}
        rate = {"precision": read, "precision_lo": low, "precision_hi": high}
        true = rates.with_precision(row, [rate])
        assert true["gap_true"] == pytest.approx(found.gap / read)
        inside += true["gap_true_low"] <= gap <= true["gap_true_high"]
        naive += found.low <= gap <= found.high
    assert inside / rounds >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert gap == 0 or right > 0.7 or naive / rounds < 0.8


def test_flags_that_nobody_read_correct_no_gap():
    row = {"gap": 0.2, "gap_low": 0.1, "gap_high": 0.3}
    for own in ([], [{"precision": None}], [{"precision": 0.0}]):
        assert rates.with_precision(row, own)["gap_true"] is None


def test_strata_are_weighed_by_their_size_and_not_by_what_was_read():
    items = world(n_flagged=20, n_clean=180)
    labels = [label(case, case.flagged) for case in draw(items, flagged=20, clean=20, seed=3)]
    (row,) = reviewed(items, labels)["policies"]
    assert row["precision"] == row["precision_lo"] == 1
    assert row["rate"] == pytest.approx(0.1)
    assert row["rate_hi"] > 0.1
    # None of 20 clean items leaked: at most 16.8 % of 180 did.
    assert row["recall_lo"] == pytest.approx(20 / (20 + 0.16843 * 180), abs=1e-4)
    assert row["saving_most"] is None
    assert 2 <= row["labels_needed"] <= 200


def test_two_readers_are_compared_where_both_read():
    items = world()
    drawn = draw(items, flagged=10, clean=10, seed=2)
    anna = [label(case, case.flagged) for case in drawn]
    ben = [label(case, not case.flagged, "ben") for case in drawn[:2]]
    ben += [label(case, case.flagged, "ben") for case in drawn[2:12]]
    found = reviewed(items, [*anna, *ben])
    (row,) = found["agreement"]
    assert (row["readers"], row["n"]) == (["anna", "ben"], 12)
    assert row["kappa"] < 1
    assert reviewed(items, anna)["agreement"] == []
    # A third reader takes nothing from the first two, and is compared with each.
    cleo = [label(case, case.flagged, "cleo") for case in drawn[:9]]
    rows = {
        tuple(row["readers"]): row for row in reviewed(items, [*anna, *ben, *cleo])["agreement"]
    }
    assert rows["anna", "ben"] == row
    assert rows["anna", "cleo"]["kappa"] == 1
    assert rows["ben", "cleo"]["n"] == 9
    one = [label(drawn[0], said=True, reader=name) for name in ("anna", "ben")]
    assert [row["kappa"] for row in reviewed(items, one)["agreement"]] == [None]


def test_a_line_that_is_no_label_is_named(tmp_path):
    path = tmp_path / "labels.jsonl"
    append_label(path, label(world()[0], said=True))
    assert set(json.loads(path.read_text())) >= {"item", "policy", "evidence", "reader", "label"}
    whole = path.read_text()
    for line in ('{"item": 3}\n', '{"benchmark": "b", "spl'):
        path.write_text(whole + line)
        with pytest.raises(ConfigError, match=r"labels\.jsonl:2"):
            read_labels([path])
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        read_labels([tmp_path / "none.jsonl"])


def test_many_who_answer_at_once_lose_nothing(tmp_path):
    path = tmp_path / "labels.jsonl"
    readers = [f"reader {at}" for at in range(8)]

    def read(reader):
        for case in world()[:20]:
            append_label(path, label(case, said=True, reader=reader))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, readers))
    found = read_labels([path])
    assert [sum(one.reader == reader for one in found) for reader in readers] == [20] * 8


def test_notes_stay_out_of_a_pack_without_texts(tmp_path):
    path = tmp_path / "labels.jsonl"
    said = [label(case, said=True, note="its words") for case in world()[:2]]
    write_labels(path, said)
    assert read_labels([path]) == said
    write_labels(path, said, notes=False)
    assert [read_label.note for read_label in read_labels([path])] == ["", ""]


def test_an_audit_reads_the_labels_of_all_readers(pack, tmp_path, monkeypatch):
    import dataclasses

    from contam.audit.pack import run_audit
    from contam.audit.spec import load_spec
    from tests.audit.conftest import write_spec

    path = tmp_path / "anna.jsonl"
    everything = ["--flagged", "100", "--clean", "100"]
    items = draw(
        population(load_report(pack / "checks" / "together"), "contam"),
        flagged=100,
        clean=100,
        seed=0,
    )
    ask(monkeypatch, pack, path, ["t" if item.flagged else "f" for item in items], *everything)
    spec = load_spec(write_spec(tmp_path))
    spec = dataclasses.replace(spec, labels=(str(path),), out=str(pack))
    done = run_audit(spec, overwrite=True)
    rows = [row for row in done.facts.review["policies"] if row["policy"] == "contam"]
    assert [row["precision"] for row in rows] == [1, 1]
    assert [row["rate"] for row in rows] == [row["n_flagged"] / row["n_items"] for row in rows]
    assert read_labels([done.folder / "labels.jsonl"]) == read_labels([path])
    assert "Reviewed by people" in (done.folder / "report.html").read_text()
