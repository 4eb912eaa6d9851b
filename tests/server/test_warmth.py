"""A service that says it is ready does not compile anything for those who ask."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from contam.kernels._jit import INTERPRETED
from tests.server.running import serving

ASK = """
import json, sys
from dataclasses import replace
from pathlib import Path
from importlib import import_module
from pkgutil import iter_modules
import contam.kernels
from numba.core.registry import CPUDispatcher
from contam.benchmark.items import BenchItem
from contam.config import Settings
from contam.detect.indexed.blind import check_blind, hash_items
from contam.detect.warm import match_a_little
from contam.server.indexes.registry import IndexRegistry

def counts():
    found = {}
    for module in iter_modules(contam.kernels.__path__):
        for name, value in vars(import_module(f"contam.kernels.{module.name}")).items():
            if isinstance(value, CPUDispatcher):
                found[f"{module.name}.{name}"] = len(value.signatures)
    return found

registry = IndexRegistry.open(Settings(index=(sys.argv[1],)))
match_a_little()
before = counts()
rows = [json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]
items = [
    BenchItem(benchmark="b", split="", item_id=one["id"], question=one["question"],
              answer=one["answer"]) for one in rows
]
items.append(replace(items[0], item_id="formula", question="(" + "frac{x}{y}{z} " * 9 + ")"))
with registry.snapshot() as snapshot:
    labels = {verdict.label for verdict in snapshot.reader.check(items)}
    check_blind(snapshot.opened, hash_items(items, snapshot.opened.recipe))
assert "contaminated" in labels
print(sorted(name for name, n in counts().items() if n != before[name]))
"""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_opening_an_index_loads_every_kernel_that_a_check_needs(
    small_index, bench_fixtures, repository
):
    items = bench_fixtures / "items" / "brook_math.jsonl"
    run = subprocess.run(
        [sys.executable, "-c", ASK, str(small_index), str(items)],
        capture_output=True,
        text=True,
        cwd=repository,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[]\n"


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_service_that_compiles_says_so_with_what_would_have_spared_it(small_index, tmp_path):
    cold = {"CONTAM_CACHE_DIR": str(tmp_path / "cache")}
    with (
        serving(small_index, data=tmp_path / "data", environ=cold, ready=False) as service,
        service.client() as client,
    ):
        while "compiling" not in client.get("/readyz").json()["detail"]:
            assert service.process.poll() is None
        problem = client.get("/readyz").json()
        assert (problem["status"], problem["code"]) == (503, "not-ready")
        assert "contam warm" in problem["hint"]
        # It would go on for a minute.
        service.stop(signal.SIGKILL)
    assert sum('"compiling kernels' in line for line in service.lines) == 1
