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
    assert main(["dupes", "--benchmark", str(tmp_path / "none.jsonl")]) == 2
    assert main(["dupes", "--benchmark", path, "--threshold", "0"]) == 2


def test_a_threshold_out_of_range_is_refused(tmp_path):
    with pytest.raises(UsageError, match="threshold"):
        find_dupes([write(tmp_path / "b.jsonl", [row("a", LEAK)])], threshold=1.5)


class Heard:
    """Progress as it was heard."""

    def __init__(self):
        self.counted = []

    def count(self, total, thing):
        self.counted.append([thing, total, 0])

    def advance(self, n):
        self.counted[-1][2] += n


def many(n):
    """Items of which every tenth is a copy of its neighbour in the other split."""
    rows = []
    for at in range(n):
        text = f"Number {at} of {at * 7919 % 10007}: how far does cart {at * 31 % 977} roll?"
        rows.append(row(f"t{at}", text))
        if at % 10 == 0:
            rows.append(row(f"c{at}", text, "train"))
    return rows


@pytest.mark.parametrize("n", [0, 1, 300, 1000])
def test_progress_ends_where_it_said_it_would(tmp_path, n):
    heard = Heard()
    path = write(tmp_path / "b.jsonl", [row("x", LEAK), *many(n)])
    found = find_dupes([path], progress=heard)
    assert [thing for thing, _, _ in heard.counted] == ["item", "pair"]
    assert [total for _, total, _ in heard.counted] == [done for _, _, done in heard.counted]
    assert heard.counted[0][1] == len(found.items)
    assert found.pairs == find_dupes([path]).pairs


def test_a_file_has_all_pairs_in_every_form(tmp_path, capsys):
    import csv
    import io

    import pyarrow.parquet as pq

    path = write(tmp_path / "b.jsonl", many(700))
    found = find_dupes([path])
    assert len(found.pairs) > 50
    for name in ("a.csv", "a.json", "a.parquet"):
        assert main(["dupes", "--benchmark", path, "--out", str(tmp_path / name)]) == 0
    assert "all pairs written to" in capsys.readouterr().out
    assert main(["dupes", "--benchmark", path, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "a.json").read_text()) == tree
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    wanted = [
        (pair["one"]["item_id"], pair["other"]["item_id"], pair["similarity"], pair["parts"])
        for pair in tree["pairs"]
    ]
    parts = ("passage", "question", "choices", "answer")
    assert [
        (
            line["one_item_id"],
            line["other_item_id"],
            line["similarity"],
            {part: line[part] for part in parts if line[part] is not None},
        )
        for line in table
    ] == wanted
    for line in table:
        group = [item["item_id"] for item in tree["groups"][line["group"]]]
        assert {line["one_item_id"], line["other_item_id"]} <= set(group)
    read = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [dict.fromkeys(line) for line in read] == [dict.fromkeys(line) for line in table]
    shown = [{k: "" if v is None else str(v) for k, v in line.items()} for line in table]
    assert read == shown


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_without_pairs_has_its_columns(tmp_path, capsys, form):
    path = write(tmp_path / "b.jsonl", [row("a", LEAK), row("b", OTHER)])
    out = tmp_path / f"a.{form}"
    assert main(["dupes", "--benchmark", path, "--out", str(out)]) == 0
    assert out.stat().st_size > 0
    assert main(["dupes", "--benchmark", path, "--out", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err


def test_a_search_that_fails_leaves_no_file(tmp_path, capsys):
    path = tmp_path / "b.jsonl"
    path.write_text('{"id": "a", "question": "cut off')
    out = tmp_path / "out" / "a.csv"
    out.parent.mkdir()
    assert main(["dupes", "--benchmark", str(path), "--out", str(out)]) == 1
    assert list(out.parent.iterdir()) == []
    out.write_text("mine")
    call = ["dupes", "--benchmark", str(path), "--out", str(out), "--overwrite"]
    assert main(call) == 1
    assert [one.read_text() for one in out.parent.iterdir()] == ["mine"]
    assert main(["dupes", "--benchmark", str(path), "--out", "a.xlsx"]) == 2
    assert ".parquet" in capsys.readouterr().err


def test_a_log_gets_a_line_for_each_tenth_of_what_is_counted(capsys):
    from contam.cli.progress import LineReporter

    reporter = LineReporter()
    reporter.count(30_000, "item")
    for _ in range(30):
        reporter.advance(1_000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[3].startswith(" 40 %  12,000 of 30,000 items  ")
    assert "items/s" in lines[3]
    assert lines[-1].endswith("0:00 left")
    reporter.count(100, "pair")
    reporter.advance(100)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_terminal_gets_a_bar_of_what_is_counted(tmp_path):
    import os
    import pty
    import subprocess

    from tests.cli.processes import command, environment

    path = write(tmp_path / "b.jsonl", many(3000))
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="120")
    with subprocess.Popen(
        command("dupes", "--benchmark", path, "--json"),
        stdout=subprocess.DEVNULL, stderr=theirs, env=env,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:
            os.close(ours)
        assert process.wait() == 0
    assert b"items/s" in said
    assert b"of 3300" in said
