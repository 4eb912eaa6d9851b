"""A cleaning takes the result of a scan, and keeps what a person found harmless in it."""

import datetime as dt
import gzip
import json
import os
import shutil

import pyarrow.parquet as pq
import pytest

import contam
from contam.detect.accepted import AcceptedRow, Seen, add_accepted
from contam.detect.parts.part_store import Division
from contam.detect.report import load_report, write_report
from contam.errors import IncompleteError, OutputError, UsageError
from tests.cleaning.inputs import (
    N_PLANTED,
    PLANTED,
    documents,
    question,
    rows_of,
    tree,
    whole,
    write_corpus,
    write_items,
)
from tests.cli.processes import contam_here

POLICIES = ["gpt3-test", "contam", "gpt4-50char"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a corpus, two benchmarks and a result of them that has every hit."""
    home = tmp_path_factory.mktemp("given")
    write_corpus(home / "corpus")
    write_items(home / "items")
    found = contam.scan(
        home / "corpus", home / "items", policies=POLICIES, max_evidence=2, every_hit=True
    )
    write_report(found, home / "found")
    return home


def clean(home, out, **options):
    options = {"policies": POLICIES, "keep_removed": True, **options}
    return contam.clean(home / "corpus", home / "items", out, **options)


@pytest.mark.parametrize("action", ["drop", "mask", "cut", "list"])
def test_a_result_with_every_hit_gives_what_a_search_gives(home, tmp_path, action):
    clean(home, tmp_path / "searched", action=action)
    clean(home, tmp_path / "given", action=action, verdicts=home / "found")
    assert tree(tmp_path / "given") == tree(tmp_path / "searched")


def test_nothing_of_a_search_is_left_where_too_much_would_go(home, tmp_path):
    done = clean(home, tmp_path / "out", verdicts=home / "found", most="1")
    assert (done.too_many, done.kept) == (True, None)
    parts = Division(folder=str(tmp_path / "parts"))
    assert clean(home, tmp_path / "out", division=parts, most="1").kept is None
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_the_table_of_hits_does_not_depend_on_the_parts(home, tmp_path):
    for name, size in (("small", 20_000), ("large", None)):
        found = contam.scan(
            home / "corpus", home / "items", policies=POLICIES, max_evidence=2, every_hit=True,
            division=Division(folder=str(tmp_path / f"{name}-parts"), size=size), workers=2,
        )  # fmt: skip
        write_report(found, tmp_path / name)
        assert (tmp_path / name / "hits.parquet").read_bytes() == (
            home / "found" / "hits.parquet"
        ).read_bytes()
    places = pq.read_table(home / "found" / "hits.parquet", columns=["shard", "row"]).to_pylist()
    assert {(one["shard"], one["row"]) for one in places} == {
        (shard, row) for shard, rows in PLANTED.items() for row in rows
    }


def test_a_result_loses_the_hits_of_the_one_it_replaces(home, tmp_path):
    shutil.copytree(home / "found", tmp_path / "found")
    found = contam.scan(home / "corpus", home / "items", policies=POLICIES)
    write_report(found, tmp_path / "found", overwrite=True)
    assert not (tmp_path / "found" / "hits.parquet").exists()
    with pytest.raises(UsageError, match="every-hit"):
        clean(home, tmp_path / "out", verdicts=tmp_path / "found")
    assert not (tmp_path / "out").exists()


def add_item(home):
    path = home / "items" / "harbour.jsonl"
    row = {"id": "new", "question": "What did the harbour master write down at noon on Sundays?"}
    path.write_text(path.read_text() + json.dumps(row) + "\n")


def grow(home):
    with (home / "corpus" / "b.jsonl").open("a") as file:
        file.write(json.dumps({"text": "One line more."}) + "\n")


def rewrite(home):
    """At equal size, and with its time put back."""
    path = home / "corpus" / "b.jsonl"
    was, raw = path.stat(), path.read_bytes()
    assert raw.count(b"Note 60.") == 1
    path.write_bytes(raw.replace(b"Note 60.", b"Note XX."))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def add_shard(home):
    shutil.copy(home / "corpus" / "b.jsonl", home / "corpus" / "new.jsonl")


def remove_shard(home):
    (home / "corpus" / "b.jsonl").unlink()


def cut_hits(home):
    path = home / "found" / "hits.parquet"
    path.write_bytes(path.read_bytes()[:-9])


def lose_hits(home):
    (home / "found" / "hits.parquet").unlink()


@pytest.mark.parametrize(
    ("harm", "options", "error", "named"),
    [
        (None, {"min_run": 7}, UsageError, "min_run"),
        (None, {"policies": ["contam"]}, UsageError, "policies"),
        (None, {"exclude": "more"}, UsageError, "exclude"),
        (add_item, {}, UsageError, "harbour"),
        (grow, {}, IncompleteError, r"b\.jsonl"),
        (rewrite, {}, IncompleteError, r"b\.jsonl"),
        (add_shard, {}, IncompleteError, r"new\.jsonl"),
        (remove_shard, {}, IncompleteError, r"b\.jsonl"),
        (cut_hits, {}, OutputError, r"hits\.parquet"),
        (lose_hits, {}, OutputError, r"hits\.parquet"),
    ],
)
def test_a_result_of_something_else_is_refused(home, tmp_path, harm, options, error, named):
    for name in ("corpus", "items", "found"):
        shutil.copytree(home / name, tmp_path / name, copy_function=shutil.copy2)
    # Shards are told apart by what is in them and by when they were written.
    found = contam.scan(tmp_path / "corpus", tmp_path / "items", policies=POLICIES, every_hit=True)
    write_report(found, tmp_path / "found", overwrite=True)
    if harm is not None:
        harm(tmp_path)
    with pytest.raises(error, match=named):
        clean(tmp_path, tmp_path / "out", verdicts=tmp_path / "found", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "found", "items"]


def test_a_shard_that_the_scan_could_not_read_is_named(home, tmp_path):
    shutil.copytree(home / "corpus", tmp_path / "corpus")
    texts = documents({}, 20_000)
    torn = bytearray(gzip.compress("".join(json.dumps({"text": t}) + "\n" for t in texts).encode()))
    torn[-8:-4] = bytes(4)
    (tmp_path / "corpus" / "torn.jsonl.gz").write_bytes(torn)
    found = contam.scan(
        tmp_path / "corpus", home / "items", every_hit=True, allow_missing=True, policies=POLICIES
    )
    write_report(found, tmp_path / "found")
    shutil.copytree(home / "items", tmp_path / "items")
    with pytest.raises(IncompleteError, match=r"torn\.jsonl\.gz"):
        clean(tmp_path, tmp_path / "out", verdicts=tmp_path / "found")


def test_shards_done_by_the_result_of_other_bytes_are_written_anew(home, tmp_path):
    """A label that a changed shard raises takes documents out of the other shards, too."""
    half, fog = " ".join(question("orchard", 0).split()[:10]), "Fog lay on the fields. " * 9
    folder = tmp_path / "corpus"
    folder.mkdir()
    first, changing = folder / "a.jsonl", folder / "b.jsonl"
    planted = {first: documents({5: half, 9: whole("harbour", 0)}), changing: documents({}, 2000)}
    planted[changing][1000] = fog
    for path, texts in planted.items():
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    shutil.copytree(home / "items", tmp_path / "items")
    options = {"policies": ["contam"], "labels": "contaminated", "workers": 1}

    def scan():
        found = contam.scan(folder, tmp_path / "items", policies=["contam"], every_hit=True)
        write_report(found, tmp_path / "found", overwrite=True)

    scan()
    was, raw = changing.stat(), changing.read_bytes()
    changing.write_bytes(raw.replace(fog.encode(), question("orchard", 0).ljust(len(fog)).encode()))
    os.utime(changing, ns=(was.st_atime_ns, was.st_mtime_ns))
    with pytest.raises(IncompleteError, match=r"b\.jsonl"):
        clean(tmp_path, tmp_path / "out", verdicts=tmp_path / "found", **options)
    scan()
    clean(tmp_path, tmp_path / "out", verdicts=tmp_path / "found", **options)
    clean(tmp_path, tmp_path / "searched", **options)
    assert tree(tmp_path / "out") == tree(tmp_path / "searched")


def accept(home, path, benchmark, item="", document="", policy="", **changed):
    """Write a row of the file as a person who looked at the result would."""
    seen = Seen(load_report(home / "found"), [benchmark])
    row = AcceptedRow(
        benchmark=benchmark, split="", item=item, document=document, policy=policy,
        reason="a proverb", reader="Anna", until=dt.date(2100, 1, 1), evidence="",
    )  # fmt: skip
    digest = seen.digest(seen.items(row), document, policy)
    fields = {name: getattr(row, name) for name in AcceptedRow.__slots__}
    add_accepted(path, [AcceptedRow(**{**fields, "evidence": digest, **changed})])
    return path


@pytest.mark.parametrize("action", ["drop", "mask", "cut"])
def test_what_a_person_found_harmless_stays(home, tmp_path, action):
    path = tmp_path / "accepted.csv"
    # o2 stands in one document, h0 in two, beside o0 in the one of a.parquet.
    accept(home, path, "orchard", "o2")
    accept(home, path, "harbour", "h0", "d-100")
    accept(home, path, "orchard", "o1", "a-60")
    done = clean(home, tmp_path / "out", action=action, verdicts=home / "found", spare=path)
    spared = {"more/c.jsonl.gz": {30}, "more/d.arrow": {100}, "a.parquet": {60}}
    assert done.record["documents"]["found"] == N_PLANTED - 3
    assert [row["state"] for row in done.record["spared"]] == ["accepted"] * 3
    for shard, planted in PLANTED.items():
        old, new = rows_of(home / "corpus" / shard), rows_of(tmp_path / "out" / "corpus" / shard)
        gone = set(planted) - spared.get(shard, set())
        kept = [row for number, row in enumerate(old) if number not in gone]
        left = new if action == "drop" else [r for n, r in enumerate(new) if n not in gone]
        assert left == kept


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"until": dt.date(2020, 1, 1)}, "expired"),
        ({"evidence": "0" * 64}, "its evidence has changed"),
        ({"policy": "palm-70"}, "not flagged"),
    ],
)
def test_a_row_that_holds_no_more_spares_nothing_and_is_named(home, tmp_path, changed, state):
    path = accept(home, tmp_path / "accepted.csv", "orchard", "o2", **changed)
    done = clean(home, tmp_path / "out", action="list", verdicts=home / "found", spare=path)
    assert done.record["documents"]["found"] == N_PLANTED
    assert [row["state"] for row in done.record["spared"]] == [state]
    assert any("orchard/o2" in note and state in note for note in done.record["notes"])


def test_a_flag_that_one_policy_raises_is_spared_by_that_policy_alone(home, tmp_path):
    path = accept(home, tmp_path / "accepted.csv", "orchard", "o2", policy="contam")
    found = {}
    for labels in ("contaminated", "suspect"):
        done = clean(
            home, tmp_path / labels, action="list", labels=labels, verdicts=home / "found",
            spare=path,
        )  # fmt: skip
        found[labels] = done.record["documents"]["found"]
    assert found["contaminated"] == N_PLANTED
    table = pq.read_table(tmp_path / "contaminated" / "removed" / "more" / "c.jsonl.gz.parquet")
    assert "contam" not in table.column("policy")[0].as_py()


def test_the_commands_from_the_scan_to_the_cleaned_corpus(home, tmp_path):
    inputs = ("--corpus", home / "corpus", "--benchmark", home / "items", "--policy", *POLICIES)
    done = contam_here("scan", *inputs, "--every-hit", "--out", tmp_path / "found", "--quiet")
    assert done.returncode == 0, done.stderr
    path = accept(tmp_path, tmp_path / "accepted.csv", "orchard", "o2")
    call = ("clean", *inputs, "--out", tmp_path / "out", "--spare", path)
    assert contam_here(*call).returncode == 2
    given = (*call, "--verdicts", tmp_path / "found")
    assert contam_here(*given, "--parts", tmp_path / "parts").returncode == 2
    done = contam_here(*given, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["documents"]["found"] == N_PLANTED - 1
