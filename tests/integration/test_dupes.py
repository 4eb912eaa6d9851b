"""`contam dupes`: what stands nearly the same in two benchmarks or splits, and nothing else."""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import numpy as np
import pytest

from contam.cli.main import main
from contam.detect.dupes import find_dupes
from contam.errors import UsageError

LEAK = (
    "A baker in Lyon sells forty loaves every morning and eighty rolls in the afternoon. How many?"
)
EDITED = LEAK.replace("Lyon", "Nantes").replace("eighty", "ninety")
OTHER = "Which river runs through the largest number of capital cities on its way to the sea?"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def row(name, question, split="test", **more):
    return {"id": name, "question": question, "split": split, "benchmark": "bakery", **more}


def names(found):
    return [(found.items[p.one].item_id, found.items[p.other].item_id) for p in found.pairs]


def test_an_edited_copy_in_the_other_split_is_found_with_its_similarity(tmp_path):
    rows = [row("a", LEAK), row("b", OTHER), row("c", EDITED, "train")]
    found = find_dupes([write(tmp_path / "b.jsonl", rows)])
    assert names(found) == [("a", "c")]
    assert 0.5 <= found.pairs[0].similarity < 1
    assert found.pairs[0].parts == {"question": found.pairs[0].similarity}
    assert [[found.items[i].item_id for i in group] for group in found.groups] == [["a", "c"]]


def test_items_of_one_split_are_compared_only_when_asked(tmp_path):
    path = write(tmp_path / "b.jsonl", [row("a", LEAK), row("c", EDITED), row("b", OTHER)])
    assert names(find_dupes([path])) == []
    assert names(find_dupes([path], within=True)) == [("a", "c")]


def test_the_same_stem_with_other_choices_is_another_question(tmp_path):
    stem = "Which of these is true?"
    one = row("a", stem, choices=["the sea is dry in winter", "gold is a metal"], answer="A")
    other = row(
        "b", stem, "train", choices=["mice can read maps", "iron burns in water"], answer="A"
    )
    assert names(find_dupes([write(tmp_path / "b.jsonl", [one, other])])) == []


def test_the_same_question_on_another_passage_is_another_question(tmp_path):
    one = row("a", LEAK, passage="Bread was dear that year and nobody bought cake.")
    other = row("b", LEAK, "train", passage="The mill stood still for want of wind and water.")
    assert names(find_dupes([write(tmp_path / "b.jsonl", [one, other])])) == []


def test_every_pair_above_the_threshold_is_found_however_many_there_are(tmp_path):
    rng = np.random.default_rng(1)
    rows, words = [], {}
    for stem in range(12):
        base = [f"s{stem}w{word}" for word in rng.integers(0, 10_000, 40)]
        for copy in range(6):
            text = list(base)
            for at in rng.integers(0, 40, copy):
                text[at] = f"x{rng.integers(0, 10_000)}"
            name = f"{stem}-{copy}"
            words[name] = set(pairwise(text))
            rows.append(row(name, " ".join(text), f"split{copy}"))
    found = find_dupes([write(tmp_path / "b.jsonl", rows)], threshold=0.7)
    want = set()
    for one, other in combinations(words, 2):
        shared = len(words[one] & words[other])
        if shared / len(words[one] | words[other]) >= 0.7:
            want.add(frozenset((one, other)))
    assert len(want) > 60
    assert {frozenset(pair) for pair in names(found)} == want
    assert len(found.pairs) == len(want)


def test_the_command_prints_a_table_json_and_exit_codes(tmp_path, capsys):
    path = write(tmp_path / "b.jsonl", [row("a", LEAK), row("c", EDITED, "train")])
    assert main(["dupes", "--benchmark", path]) == 0
    assert "1 pair of near-duplicates in 1 group" in capsys.readouterr().out
    assert main(["dupes", "--benchmark", path, "--json", "--fail-on-flagged"]) == 3
    tree = json.loads(capsys.readouterr().out)
    assert tree["pairs"][0]["one"] == {"benchmark": "bakery", "split": "test", "item_id": "a"}
    assert tree["groups"] == [[tree["pairs"][0]["one"], tree["pairs"][0]["other"]]]
    assert main(["dupes", "--benchmark", path, "--threshold", "1", "--fail-on-flagged"]) == 0
    assert "0 pairs" in capsys.readouterr().out
    assert main(["dupes", "--benchmark", str(tmp_path / "none.jsonl")]) == 1
    assert main(["dupes", "--benchmark", path, "--threshold", "0"]) == 2


def test_a_threshold_out_of_range_is_refused(tmp_path):
    with pytest.raises(UsageError, match="threshold"):
        find_dupes([write(tmp_path / "b.jsonl", [row("a", LEAK)])], threshold=1.5)
