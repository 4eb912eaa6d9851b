"""Items that are planned in several blocks are found, judged and merged as if they were one."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.benchmark.items import BenchItem
from contam.detect.blocks import Blocks, folder_near, views_in_blocks
from contam.detect.leases.mapped import write_tree
from contam.detect.leases.part_file import part_bytes
from contam.detect.leases.parts_folder import part_path
from contam.detect.leases.plan_folder import open_plan, write_plan
from contam.detect.leases.work import failed_part, merge_parts, work_on
from contam.detect.match import common_grams, grams
from contam.detect.match.token_view import build_view
from contam.detect.parameters import ScanParameters
from contam.detect.plan import make_plan
from contam.detect.scan import open_scan
from contam.errors import OutputError, PlanMemoryError, UsageError
from tests.detect.leases.test_work import in_one, published
from tests.kernels.support import few
from tests.property.test_verdicts import worlds
from tests.property.worlds import folder, write_items, write_shard
from tests.text.tokenizer_files import save_tokenizer

#: All that look at no more than an item and what its benchmark shares.
POLICIES = tuple(
    spec.id for spec in contam.list_policies() if not contam.get_policy(spec.id).traits.reads_text
)
#: Few words, and formulas that are searched without their punctuation, too.
WORDS = ("red", "fox", "dog", "f(x)=2", r"\frac{1}{2}", "x^{2}+1", "3.5", "blue")
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=24).map(" ".join)
benchmarks = st.lists(st.lists(questions, min_size=1, max_size=5), min_size=2, max_size=5)


def items_of(texts: list[list[str]]) -> list[list[BenchItem]]:
    return [
        [
            BenchItem(benchmark=f"b{at}", split="", item_id=str(n), question=text, passage=text[:9])
            for n, text in enumerate(some)
        ]
        for at, some in enumerate(texts)
    ]


@given(benchmarks, st.sampled_from(["word", "char"]), st.integers(1, 4), st.integers(1, 6))
@few
def test_the_views_of_blocks_know_what_the_view_of_all_items_knows(texts, unit, owners, places):
    parts = items_of(texts)
    how = (
        {"seed": 3, "min_run": 5, "stride": 1, "with_variants": True}
        if unit == "word"
        else {"seed": 6, "min_run": 9, "stride": 3, "with_variants": False}
    )
    with pytest.MonkeyPatch.context() as patch:
        for module in (grams, common_grams):
            patch.setattr(module, "COMMON_OWNERS", owners)
            patch.setattr(module, "COMMON_PLACES", places)
        whole = build_view([item for part in parts for item in part], unit=unit, **how)
        views = views_in_blocks(parts, Blocks(), unit=unit, **how)
    assert pieces([whole]) == pieces(views)
    n_own = [int(view.items.n_items) for view in views]
    assert n_own == [len(part) for part in parts]


def pieces(views):
    """Of the items, and of their variants: tokens, weights, common grams and numbers by part."""
    own, variants = [], []
    for view in views:
        table, first, n_items = view.gram_table, len(own), view.items.n_items
        common = np.unpackbits(table.common_at, bitorder="little")
        numbers = np.unpackbits(view.is_number, bitorder="little")
        columns = (table.token, table.weight, common, numbers)
        parts = [
            [column[lo:hi].tolist() for column in columns] for lo, hi in pairwise(table.part_start)
        ]
        each = [parts[begin : begin + 4] for begin in range(0, len(parts), 4)]
        own += each[:n_items]
        owner = [] if view.variants is None else view.variants.owner.tolist()
        variants += zip([first + at for at in owner], each[n_items:], strict=True)
    return own, sorted(variants, key=lambda variant: variant[0])


@given(worlds, st.integers(1, 4))
@few
def test_blocks_of_any_size_give_the_bytes_of_one_scan(world, most):
    rows, texts = world
    with folder() as home:
        write_shard(home / "corpus" / "part-0.parquet", [*texts, None, *texts[::-1]])
        spread = [{**row, "benchmark": f"b{n % 3}"} for n, row in enumerate([*rows, *rows])]
        items = write_items(home / "bench.jsonl", [{**r, "id": n} for n, r in enumerate(spread)])
        asked = (home / "corpus", items, home / "out", POLICIES)
        assert in_one(*asked, block_items=most) == in_one(*asked)


@pytest.fixture
def world(tmp_path):
    """Three benchmarks, a shard with an item of each, and one of copies with other numbers."""
    rows = [
        {
            "benchmark": f"b{k % 3}",
            "id": k,
            "question": f"the {k}th lantern of the old harbour burns copper green at {k} o'clock",
        }
        for k in range(9)
    ]
    texts = [row["question"] for row in rows[:3]]
    write_shard(tmp_path / "corpus" / "part-0.parquet", texts)
    write_shard(tmp_path / "corpus" / "part-1.parquet", [*texts[::-1], "nothing of it"])
    write_items(tmp_path / "bench.jsonl", rows)
    return tmp_path


def planned(world, **more):
    parameters = ScanParameters(policies=("contam", "gpt4-50char"), max_evidence=2, **more)
    opened, plan = open_scan(
        [world / "corpus"], [world / "bench.jsonl"], parameters, Blocks(3, world)
    )
    write_plan(plan, opened, world / "plan", lease_bytes=1)
    opened = open_plan(world / "plan")
    work_on(opened, opened.leases, world / "parts", workers=1)
    return open_plan(world / "plan", with_items=True)


@pytest.mark.parametrize("unit", ["word", "file"])
def test_a_plan_in_blocks_merges_to_the_bytes_of_one_scan(world, unit):
    if unit == "file":
        unit = str(save_tokenizer(world, "byte_bpe"))
    opened = planned(world, unit=unit)
    assert len(opened.plan.views) == 3 * opened.plan.n_units
    found = published(merge_parts(opened, [world / "parts"]), world / "a")
    asked = (world / "corpus", world / "bench.jsonl", world / "b", ("contam", "gpt4-50char"))
    assert found == in_one(*asked, unit=unit)
    assert {path.name for path in world.iterdir() if path.name.startswith(".")} == set()


def test_a_lease_that_nobody_did_is_not_read_in_any_block(world):
    opened = planned(world)
    part_path(world / "parts", 2).unlink()
    result = merge_parts(opened, [world / "parts"])
    assert not result.complete
    found = {(verdict.benchmark, verdict.label) for verdict in result}
    assert {label for _, label in found} == {"contaminated", "not_checkable"}
    assert {name for name, _ in found} == {"b0", "b1", "b2"}


def test_a_part_that_changes_while_it_is_merged_is_refused(world, monkeypatch):
    opened = planned(world)
    part = part_path(world / "parts", 1)
    real = contam.detect.leases.work.one_part

    def changing(opened, paths, lease, block=0):
        if block:
            part.write_bytes(part_bytes(failed_part(opened, opened.leases[0], "another answer")))
        return real(opened, paths, lease, block)

    monkeypatch.setattr(contam.detect.leases.work, "one_part", changing)
    with pytest.raises(OutputError, match=part.name):
        merge_parts(opened, [world / "parts"])


def test_a_policy_that_looks_at_all_items_at_once_is_not_divided(world):
    asked = ScanParameters(policies=("contam", "decon-default"))
    plan = make_plan([world / "bench.jsonl"], asked, Blocks())
    assert len(plan.views) == plan.n_units
    with pytest.raises(UsageError, match="decon-default") as of_policy:
        make_plan([world / "bench.jsonl"], asked, Blocks(3))
    assert "looks at all items at once, so they cannot be" in str(of_policy.value)
    assert of_policy.value.hint == "leave out --block-items, or decon-default"
    with pytest.raises(UsageError, match="clean") as of_cleaning:
        make_plan([world / "bench.jsonl"], ScanParameters(every_hit=True), Blocks(3))
    assert of_cleaning.value.hint == "leave out --block-items"


def test_a_block_has_an_item_at_least(world):
    with pytest.raises(UsageError, match="block_items"):
        contam.scan(world / "corpus", world / "bench.jsonl", block_items=0)


def test_a_folder_that_takes_no_block_is_named(world):
    with pytest.raises(OutputError, match="gone"):
        make_plan([world / "bench.jsonl"], ScanParameters(), Blocks(3, world / "gone"))


def test_a_machine_without_a_folder_for_temporary_files_takes_no_block(world, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(world / "gone")])
    with pytest.raises(OutputError, match="TMPDIR"):
        make_plan([world / "bench.jsonl"], ScanParameters(), Blocks(3))


def test_a_block_that_finds_no_room_in_memory_is_no_fault_of_its_folder(world, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", full)
    with pytest.raises(PlanMemoryError, match="9 items"):
        make_plan([world / "bench.jsonl"], ScanParameters(), Blocks(3, world))


def test_a_block_has_no_name_while_it_is_written(world, monkeypatch):
    home = world / "results"
    home.mkdir()
    there = []

    def noting(*tree):
        there.append(list(home.iterdir()))
        write_tree(*tree)

    monkeypatch.setattr(contam.detect.blocks, "write_tree", noting)
    make_plan([world / "bench.jsonl"], ScanParameters(), Blocks(3, home))
    assert there
    assert not any(there)


def test_blocks_lie_on_the_disk_of_the_results(tmp_path):
    assert folder_near(tmp_path / "not" / "yet" / "there") == tmp_path
    assert folder_near(Path(tempfile.gettempdir(), "out")) == Path(tempfile.gettempdir())
