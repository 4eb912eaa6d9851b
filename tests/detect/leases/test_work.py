"""Parts of a plan, done anywhere, by anybody and more than once, merge to the bytes of one scan."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.detect.leases import work
from contam.detect.leases.cut import share_of
from contam.detect.leases.part_file import part_bytes, part_of
from contam.detect.leases.parts_folder import PARTS_FILE, part_path, question_of_parts
from contam.detect.leases.plan_folder import PLAN_FILE, open_plan, worker_files, write_plan
from contam.detect.leases.work import (
    failed_part,
    lease_by_number,
    merge_parts,
    scan_lease,
    work_on,
)
from contam.detect.parameters import ScanParameters
from contam.detect.scan import open_scan
from contam.detect.sources import named_documents
from contam.errors import OutputError, UsageError
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import ALL_POLICIES, folder, write_items, write_shard
from tests.text.tokenizer_files import save_tokenizer

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")


def planned(corpus, items, out, policies=ALL_POLICIES, size=1, **more):
    parameters = ScanParameters(policies=tuple(policies), max_evidence=2, **more)
    opened, plan = open_scan([corpus], [items], parameters)
    return write_plan(plan, opened, out, lease_bytes=size)


def published(result, out):
    contam.write_report(result, out, overwrite=True)
    run = json.loads((out / "run.json").read_bytes())
    del run["timings"]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


def merged(plan, parts, out):
    return published(merge_parts(open_plan(plan, with_items=True), parts), out)


def in_one(corpus, items, out, policies=ALL_POLICIES, **more):
    result = contam.scan(corpus, items, policies=policies, max_evidence=2, workers=1, **more)
    return published(result, out)


@given(worlds, st.data())
@few
def test_any_leases_on_any_workers_give_the_bytes_of_one_scan(world, more):
    rows, texts = world
    with folder() as home:
        for number in range(3):
            write_shard(home / "corpus" / f"part-{number}.parquet", [*texts, None, *texts[::-1]])
        items = write_items(home / "bench.jsonl", rows)
        record = planned(home / "corpus", items, home / "plan", size=more.draw(st.integers(1, 999)))
        count = more.draw(st.integers(1, 4))
        folders = [home / f"parts{n}" for n in range(2)]
        for index in more.draw(st.permutations(range(count))):
            opened = open_plan(home / "plan")
            mine = share_of(opened.leases, index, count)
            for parts in folders[: more.draw(st.integers(1, 2))]:
                work_on(opened, mine, parts, workers=more.draw(st.integers(1, 2)))
        there = [parts for parts in folders if parts.exists()]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(work, "_LEAST_KEPT", more.draw(st.sampled_from([0, 9, 100_000])))
            found = merged(home / "plan", there, home / "a")
        assert found == in_one(home / "corpus", items, home / "b")
        assert len(record["leases"]) == len(opened.leases)


@pytest.fixture
def world(tmp_path):
    """A corpus of three shards, two items it contains and one it does not, and their plan."""
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(3)
    ]
    for number in range(3):
        texts = [f"{number} {rows[0]['question']}", "nothing of it", rows[1]["question"]]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    write_items(tmp_path / "bench.jsonl", rows)
    planned(tmp_path / "corpus", tmp_path / "bench.jsonl", tmp_path / "plan", ("contam",))
    return tmp_path


def all_done(world, name="parts"):
    opened = open_plan(world / "plan")
    return work_on(opened, opened.leases, world / name, workers=1)


def test_a_plan_needs_neither_the_benchmark_nor_the_list_of_the_corpus(world):
    whole = in_one(world / "corpus", world / "bench.jsonl", world / "b", ("contam",))
    (world / "bench.jsonl").unlink()
    write_shard(world / "corpus" / "part-9.parquet", ["a shard that came later"])
    assert all_done(world).failures == ()
    assert merged(world / "plan", [world / "parts"], world / "a") == whole


def test_a_merge_needs_no_corpus(world):
    whole = in_one(world / "corpus", world / "bench.jsonl", world / "b", ("contam",))
    all_done(world)
    shutil.rmtree(world / "corpus")
    assert merged(world / "plan", [world / "parts"], world / "a") == whole


def test_a_second_run_keeps_the_parts_that_are_there(world):
    first = all_done(world)
    times = {path: path.stat().st_mtime_ns for path in (world / "parts").iterdir()}
    again = all_done(world)
    assert (again.done, again.kept) == ((), first.done)
    assert times == {path: path.stat().st_mtime_ns for path in (world / "parts").iterdir()}


def test_equal_answers_are_equal_bytes_whoever_gives_them(world):
    opened = open_plan(world / "plan")
    for lease in opened.leases:
        one, two = (part_bytes(scan_lease(opened, lease, workers=n)) for n in (1, 3))
        assert one == two


def test_a_missing_lease_leaves_its_shards_unread_and_nothing_clean(world):
    all_done(world)
    part_path(world / "parts", 2).unlink()
    result = merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    assert result.exit_code() == 4
    (failed,) = result.coverage["shards_failed"]
    assert failed["shard"] == "part-1.parquet"
    assert "lease 2" in failed["reason"]
    assert "clean" not in {verdict.label for verdict in result}


def test_allowing_unread_shards_does_not_allow_leases_that_nobody_did(world):
    planned(
        world / "corpus", world / "bench.jsonl", world / "plan2", ("contam",), allow_missing=True
    )
    opened = open_plan(world / "plan2")
    work_on(opened, opened.leases, world / "parts", workers=1)
    kept = part_path(world / "parts", 2).rename(world / "kept")
    result = merge_parts(open_plan(world / "plan2", with_items=True), [world / "parts"])
    assert result.exit_code() == 4
    assert "clean" not in {verdict.label for verdict in result}
    kept.rename(part_path(world / "parts", 2))
    result = merge_parts(open_plan(world / "plan2", with_items=True), [world / "parts"])
    assert (result.exit_code(), result.run["parameters"]["allow_missing"]) == (0, True)


@pytest.mark.parametrize(
    "spoil",
    ["cut", "flip", "flip of its list", "longer", "begun before", "empty", "text", "no zip"],
)
def test_a_damaged_part_is_named_and_made_again(world, spoil):
    all_done(world)
    path = part_path(world / "parts", 1)
    data = path.read_bytes()
    path.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "flip": data[:60] + bytes([data[60] ^ 255]) + data[61:],
            "flip of its list": data[:-66] + bytes([data[-66] ^ 1]) + data[-65:],
            "longer": data + b"\n",
            "begun before": b"\n" + data,
            "empty": b"",
            "text": b"{}",
            "no zip": bytes(len(data)),
        }[spoil]
    )
    with pytest.raises(OutputError, match=r"lease-00001\.part") as named:
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    assert named.value.hint == "repeat the call of its worker, which does such a lease again"
    assert all_done(world).done == (1,)
    assert path.read_bytes() == data


def test_parts_under_each_other_s_names_are_made_again(world):
    all_done(world)
    one, two = (part_path(world / "parts", number) for number in (1, 2))
    whole = one.read_bytes(), two.read_bytes()
    one.write_bytes(whole[1])
    two.write_bytes(whole[0])
    with pytest.raises(OutputError, match=r"lease-00001\.part"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    assert all_done(world).done == (1, 2)
    assert (one.read_bytes(), two.read_bytes()) == whole


def test_parts_that_do_not_say_of_which_plan_they_are_are_not_taken_for_none(world):
    all_done(world)
    (world / "parts" / PARTS_FILE).unlink()
    with pytest.raises(OutputError, match=r"holds parts, but not the parts\.json"):
        question_of_parts(world / "parts")
    with pytest.raises(OutputError, match="holds no parts"):
        question_of_parts(world / "plan")
    assert all_done(world).done == ()
    assert question_of_parts(world / "parts")[0] == open_plan(world / "plan").question


@pytest.mark.parametrize("instead", ["a folder", "a pipe", "a broken link"])
def test_what_is_in_the_place_of_a_part_cannot_be_read(world, instead):
    all_done(world)
    path = part_path(world / "parts", 1)
    path.unlink()
    {
        "a folder": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a broken link": lambda: path.symlink_to("nowhere"),
    }[instead]()
    with pytest.raises(OutputError, match=r"lease-00001\.part: cannot be read"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


@pytest.mark.parametrize("spoil", ["beyond", "twice", "too long", "none", "lacking"])
def test_a_part_with_runs_that_its_plan_cannot_have_is_refused(world, spoil):
    all_done(world)
    opened = open_plan(world / "plan")
    path = part_path(world / "parts", 1)
    part = part_of(path.read_bytes(), path, opened.plan, opened.question)
    (view, *_), (collected, *others) = opened.plan.views, part.answer.collected
    at, runs = np.array([0, 1]), np.array([1, 1], np.uint32)
    if spoil == "beyond":
        at[1] = len(view.gram_table.token)
    elif spoil == "twice":
        at[1] = 0
    elif spoil == "too long":
        runs[1] = view.longest + 1
    elif spoil == "none":
        runs[1] = 0
    else:
        runs = runs[:1]
    spoilt = dataclasses.replace(collected, runs_at=at, runs=runs)
    answer = dataclasses.replace(part.answer, collected=(spoilt, *others))
    path.write_bytes(part_bytes(dataclasses.replace(part, answer=answer)))
    with pytest.raises(OutputError, match=r"lease-00001\.part: is no part of a scan"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


def rewritten(path, **changes):
    """A part whose record says something else."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["part.json"] = json.dumps({**json.loads(files["part.json"]), **changes}).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    path.write_bytes(packed.getvalue() + hashlib.sha256(packed.getvalue()).digest())


@pytest.mark.parametrize(
    "changes",
    [
        {"question": "0" * 64},
        {"machine": "vax-little"},
        {"format": "contam-part-0"},
        {"lease": 2},
        {"chunks": [1]},
        {"chunks": [0, 1]},
        {"n_tokens": []},
        {"read": [[0]]},
    ],
)
def test_a_part_that_does_not_fit_is_refused(world, changes):
    all_done(world)
    rewritten(part_path(world / "parts", 1), **changes)
    with pytest.raises(OutputError, match=r"lease-00001\.part"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


def test_two_answers_to_one_lease_are_refused(world):
    all_done(world)
    all_done(world, "more")
    opened = open_plan(world / "plan")
    path = part_path(world / "more", 1)
    part = part_of(path.read_bytes(), path, opened.plan, opened.question)
    other = dataclasses.replace(part, documents={})
    path.write_bytes(part_bytes(other))
    with pytest.raises(OutputError, match="differ"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts", world / "more"])


def test_parts_of_another_plan_are_refused(world):
    all_done(world)
    planned(world / "corpus", world / "bench.jsonl", world / "other", ("contam",), min_run=9)
    with pytest.raises(OutputError, match="another plan"):
        merge_parts(open_plan(world / "other", with_items=True), [world / "parts"])
    opened = open_plan(world / "other")
    with pytest.raises(OutputError, match="another plan"):
        work_on(opened, opened.leases, world / "parts", workers=1)


def test_a_part_of_an_unknown_lease_is_refused(world):
    all_done(world)
    shutil.copy(part_path(world / "parts", 1), part_path(world / "parts", 77))
    with pytest.raises(OutputError, match="no such lease"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


def test_leases_of_another_size_are_another_question(world):
    """A part is of consecutive chunks: of plans that cut otherwise none can be taken for another."""
    planned(world / "corpus", world / "bench.jsonl", world / "other", ("contam",), size=1 << 30)
    opened = open_plan(world / "other")
    work_on(opened, opened.leases, world / "parts", workers=1)
    with pytest.raises(OutputError, match="another plan"):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


# ---------------------------------------------------------------------------- the corpus changed


def write_again(path):
    write_shard(path, ["a text of another day"] * 3)


def shift_time(path):
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("change", [write_again, shift_time, os.unlink])
def test_a_shard_that_is_not_as_planned_is_a_failure_by_name(world, change):
    change(world / "corpus" / "part-1.parquet")
    work = all_done(world)
    assert {failure.name for failure in work.failures} == {"part-1.parquet"}
    result = merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    assert result.exit_code() == 4
    assert [failed["shard"] for failed in result.coverage["shards_failed"]] == ["part-1.parquet"]
    assert "clean" not in {verdict.label for verdict in result}


def test_what_another_worker_could_read_is_not_replaced_by_a_failure(world, monkeypatch):
    opened = open_plan(world / "plan")
    real = work.scan_lease

    def meanwhile(opened, lease, **how):
        """Another worker does all leases, and then a shard is gone for this one."""
        with monkeypatch.context() as patch:
            patch.setattr(work, "scan_lease", real)
            work_on(opened, opened.leases, world / "parts", workers=1)
        gone = dataclasses.replace(opened.corpus.shards[0], uri=str(world / "gone.parquet"))
        shards = (gone, *opened.corpus.shards[1:])
        corpus = dataclasses.replace(opened.corpus, shards=shards)
        return real(dataclasses.replace(opened, corpus=corpus), lease, **how)

    monkeypatch.setattr(work, "scan_lease", meanwhile)
    done = work_on(opened, opened.leases[:1], world / "parts", workers=1)
    assert (done.done, done.kept, done.failures) == ((), (1,), ())
    merged_parts = merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    assert merged_parts.exit_code() == 0


def test_leases_with_failures_are_done_again(world):
    path = world / "corpus" / "part-1.parquet"
    kept = path.with_name("aside")
    path.rename(kept)
    assert all_done(world).failures
    kept.rename(path)
    again = all_done(world)
    assert not again.failures
    assert again.done == (2,)
    whole = in_one(world / "corpus", world / "bench.jsonl", world / "b", ("contam",))
    assert merged(world / "plan", [world / "parts"], world / "a") == whole


def test_a_shard_that_changes_during_its_lease_is_a_failure(world, monkeypatch):
    opened = open_plan(world / "plan")

    def change_first(found):
        write_again(world / "corpus" / "part-0.parquet")
        return named_documents(found)

    monkeypatch.setattr("contam.detect.leases.work.named_documents", change_first)
    part = scan_lease(opened, opened.leases[0], workers=1)
    assert [failure.name for failure in part.answer.failures] == ["part-0.parquet"]


# ------------------------------------------------------------------------------------- the plan


@pytest.mark.parametrize("name", ["corpus.bin", "views.bin", "items.bin"])
@pytest.mark.parametrize("spoil", ["cut", "flip", "gone"])
def test_a_plan_that_is_not_as_written_is_refused(world, name, spoil):
    path = world / "plan" / name
    data = path.read_bytes()
    if spoil == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if spoil == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(OutputError, match=name):
        open_plan(world / "plan", with_items=True)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("format", "contam-plan-0"),
        ("machine", "vax-little"),
        ("versions", {"contam": "0.0.1"}),
        ("versions", {}),
        ("versions", None),
        ("files", []),
        ("files", None),
    ],
)
def test_a_plan_of_another_version_is_refused(world, fact, value):
    path = world / "plan" / PLAN_FILE
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps({**record, fact: value}))
    with pytest.raises(OutputError) as caught:
        open_plan(world / "plan")
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tool": "contam"}', "\0"])
def test_a_folder_that_holds_no_plan_is_refused(world, text):
    (world / "plan" / PLAN_FILE).write_text(text)
    with pytest.raises(OutputError, match="no plan"):
        open_plan(world / "plan")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda leases: leases.pop(),
        lambda leases: leases.clear(),
        lambda leases: leases.reverse(),
        lambda leases: leases.append(leases[0]),
        lambda leases: leases[1].update(first=0),
        lambda leases: leases[0].update(end=0),
        lambda leases: leases[-1].update(end=99),
        lambda leases: leases[0].update(number=-2),
        lambda leases: leases[0].update(number="../x"),
        lambda leases: leases[0].update(n_bytes="many"),
        lambda leases: leases[0].pop("end"),
        lambda leases: leases.append("a lease"),
    ],
)
def test_leases_that_are_not_the_whole_corpus_once_are_refused(world, spoil):
    path = world / "plan" / PLAN_FILE
    record = json.loads(path.read_bytes())
    spoil(record["leases"])
    path.write_text(json.dumps(record))
    with pytest.raises(OutputError, match="plan"):
        open_plan(world / "plan")


def test_a_folder_with_other_files_gets_no_parts(world):
    (world / "mine").mkdir()
    (world / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="thesis"):
        all_done(world, "mine")
    assert [entry.name for entry in (world / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "contam-parts-0"}'])
def test_a_folder_that_says_nothing_of_its_plan_is_refused(world, text):
    all_done(world)
    (world / "parts" / PARTS_FILE).write_text(text)
    with pytest.raises(OutputError):
        merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])


@pytest.mark.parametrize("number", [0, -1, 7])
def test_a_lease_that_is_not_there_is_refused(world, number):
    with pytest.raises(UsageError):
        lease_by_number(open_plan(world / "plan"), number)


def test_no_text_of_items_is_in_what_workers_read(world):
    data = (world / "plan" / "views.bin").read_bytes() + (
        world / "plan" / "corpus.bin"
    ).read_bytes()
    assert b"lantern of the old" not in data
    assert b"lantern of the old" in (world / "plan" / "items.bin").read_bytes()


def test_a_failure_in_planning_is_one_of_the_merge(tmp_path, world):
    (world / "corpus" / "part-5.parquet").write_bytes(b"PAR1 no")
    planned(world / "corpus", world / "bench.jsonl", world / "again", ("contam",))
    opened = open_plan(world / "again")
    work_on(opened, opened.leases, world / "parts5", workers=1)
    found = merged(world / "again", [world / "parts5"], tmp_path / "a")
    assert found == in_one(world / "corpus", world / "bench.jsonl", tmp_path / "b", ("contam",))
    assert not found["run"]["coverage"]["complete"]


def test_a_lease_that_nobody_could_do_leaves_its_shards_unread_until_somebody_does_it(world):
    whole = in_one(world / "corpus", world / "bench.jsonl", world / "b", ("contam",))
    all_done(world)
    opened = open_plan(world / "plan")
    part = failed_part(opened, opened.leases[1], "lost 3 times")
    part_path(world / "parts", 2).write_bytes(part_bytes(part))
    result = merge_parts(open_plan(world / "plan", with_items=True), [world / "parts"])
    (failure,) = result.coverage["shards_failed"]
    assert failure["reason"] == "lost 3 times"
    assert failure["shard"] == opened.corpus.names[opened.corpus.chunks[1].shard]
    assert not {"clean"} & {verdict.label for verdict in result}
    assert all_done(world).done == (2,)
    assert merged(world / "plan", [world / "parts"], world / "a") == whole


def test_what_is_sent_to_a_worker_is_a_plan_without_items(world, tmp_path):
    files = worker_files(world / "plan")
    assert "items.bin" not in files
    (tmp_path / "sent").mkdir()
    for name, data in files.items():
        (tmp_path / "sent" / name).write_bytes(data)
    sent, kept = open_plan(tmp_path / "sent"), open_plan(world / "plan")
    for lease in kept.leases:
        answers = {part_bytes(scan_lease(opened, lease, workers=1)) for opened in (sent, kept)}
        assert len(answers) == 1
    (world / "plan" / "views.bin").unlink()
    with pytest.raises(OutputError, match=r"views\.bin"):
        worker_files(world / "plan")


def test_a_tokenizer_travels_with_the_plan(world):
    tokenizer_file = save_tokenizer(world, "byte_bpe")
    more = {"unit": str(tokenizer_file)}
    planned(
        world / "corpus", world / "bench.jsonl", world / "bpe",
        ("contam", "decon-default"), **more,
    )  # fmt: skip
    whole = in_one(
        world / "corpus", world / "bench.jsonl", world / "b", ("contam", "decon-default"), **more
    )
    tokenizer_file.rename(tokenizer_file.with_name("elsewhere"))
    opened = open_plan(world / "bpe")
    assert not work_on(opened, opened.leases, world / "parts", workers=1).failures
    assert merged(world / "bpe", [world / "parts"], world / "a") == whole


@pytest.mark.slow
def test_a_merge_describes_documents_by_items_and_not_by_leases(tmp_path, monkeypatch):
    """Every document of every lease is the best there is for an item, until a better one comes."""
    question = "the lantern of the old harbour burns copper green at dusk and hums"
    write_items(tmp_path / "bench.jsonl", [{"id": "q", "question": question}])
    for number in range(30):
        texts = [f"{number}-{row} {question} {'and on ' * row}" for row in range(6)]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    planned(tmp_path / "corpus", tmp_path / "bench.jsonl", tmp_path / "plan")
    opened = open_plan(tmp_path / "plan")
    assert len(opened.leases) == 30
    work_on(opened, opened.leases, tmp_path / "parts", workers=1)
    described, real = [], work._still_named

    def still_named(documents, whole):
        kept = real(documents, whole)
        described.append((len(documents), len(kept)))
        return kept

    monkeypatch.setattr(work, "_still_named", still_named)
    whole = in_one(tmp_path / "corpus", tmp_path / "bench.jsonl", tmp_path / "b")
    assert merged(tmp_path / "plan", [tmp_path / "parts"], tmp_path / "a") == whole
    assert not described
    monkeypatch.setattr(work, "_LEAST_KEPT", 0)
    assert merged(tmp_path / "plan", [tmp_path / "parts"], tmp_path / "a") == whole
    before, kept = zip(*described, strict=True)
    assert len(described) > 10
    assert max(kept) <= 2 * len(ALL_POLICIES) + 2
    assert max(before) < 30
