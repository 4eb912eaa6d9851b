"""A plan is made in pieces: they decide its memory, never its content."""

from __future__ import annotations

import sys
from dataclasses import fields

import numpy as np
import pytest

from contam.benchmark.item_table import ItemTable
from contam.detect.match import grams, token_view, variants
from contam.detect.match.token_view import SearchView, build_view
from contam.detect.policies import common
from contam.detect.result_columns import spans_of
from contam.kernels.gram_table import find_hits, hash_gram, place_of
from tests.cli.processes import python
from tests.kernels.support import make_item

LATEX = (
    r"Let $\frac{%d}{%d}$ of the %d lanterns on quay %d be lit, $\sqrt{%d}$ of them red; how many?"
)
PROSE = "How many of the %d lanterns on quay %d does the keeper of the %d boats light at dusk?"


def items():
    return [
        make_item(
            n,
            question=LATEX % (n, n + 1, n % 7, n % 3, n) if n % 2 else PROSE % (n % 5, n % 3, n),
            passage="Sparrows nest above the old observatory." if n % 4 == 0 else None,
            choices=("one", f"{n} boats") if n % 3 else (),
            answer=str(n),
            answer_index=0 if n % 3 else None,
        )
        for n in range(40)
    ]


#: They depend on the order in which grams are entered.
OF_GRAMS = ("slot_tag", "slot_place", "place", "place_skip")


def grams_of(view: SearchView) -> dict[int, tuple[object, ...]]:
    """What is known of each gram: it is found by its hash, whatever its number."""
    table = view.gram_table
    size = view.spec.seed - view.spec.stride + 1
    found = {}
    begin = 0
    for last in np.flatnonzero(table.place < 0).tolist():
        places = [place_of(value) for value in table.place[begin : last + 1].tolist()]
        keys = [hash_gram(table.token, at, size) for at in places]
        assert set(keys) == {keys[0]}
        at, gram = np.zeros(1, np.int32), np.zeros(1, np.int32)
        asked = np.array(keys[:1], np.uint64)
        assert find_hits(asked, 1, size, table, at, gram, (0, 0)) == 1
        assert gram[0] == begin
        found[int(keys[0])] = places, table.place_skip[begin : last + 1].tolist()
        begin = last + 1
    assert begin == len(table.place)
    return found


def arrays(view: SearchView) -> dict[str, np.ndarray]:
    table = view.gram_table._asdict()
    for name in OF_GRAMS:
        del table[name]
    spans = spans_of(ItemTable.of(items()), view, np.arange(len(view.gram_table.token)))
    found = {**table, "letter": view.facts.letter, "spans": spans}
    for part in filter(None, (view.items, view.variants)):
        found |= {f"{type(part).__name__}.{f.name}": getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize(("unit", "stride"), [("word", 1), ("char", 2)])
def test_a_plan_in_small_pieces_is_the_same_plan(monkeypatch, unit, stride):
    def make() -> SearchView:
        return build_view(
            items(), unit=unit, seed=5, min_run=8, stride=stride, with_variants=unit == "word"
        )

    view = make()
    whole, whole_grams = arrays(view), grams_of(view)
    monkeypatch.setattr(token_view, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(grams, "_PIECE", 7)
    for module in (grams, variants, common):
        monkeypatch.setattr(module, "_AT_ONCE", 7)
    view = make()
    pieces = arrays(view)
    assert whole_grams == grams_of(view)
    assert whole.keys() == pieces.keys()
    for name, array in whole.items():
        assert array.dtype == pieces[name].dtype, name
        np.testing.assert_array_equal(array, pieces[name], err_msg=name)


SCAN = """
import resource, sys
from contam.cli.main import main
folder = sys.argv[1]
call = ["scan", "--corpus", folder + "/corpus.jsonl", "--workers", "1", "--quiet"]
code = main([*call, "--benchmark", folder + "/few.jsonl", "--out", folder + "/first"])
assert code == 0, code
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# Enough to read the items; with too little, the parser of JSON ends the process by a fault.
resource.setrlimit(resource.RLIMIT_AS, (used + (80 << 20), -1))
sys.exit(main([*call, "--benchmark", folder + "/many.jsonl", "--out", folder + "/second"]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
def test_a_plan_without_room_says_to_split_the_benchmark(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"text": "the lanterns are lit"}\n', encoding="utf-8")
    for name, n in (("few", 2), ("many", 140_000)):
        lines = (f'{{"id": "{i}", "question": "{PROSE % (i, i, i)}"}}\n' for i in range(n))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    done = python("-c", SCAN, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "out of memory" in done.stderr
    assert "split the benchmark" in done.stderr
    assert "--workers" not in done.stderr
    assert not (tmp_path / "second").exists()
