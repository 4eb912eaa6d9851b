"""What the tests of the service share: a small index, and a service over it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.server.running import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from tests.server.running import Service

ADMIN_KEY = "k" * 40


@pytest.fixture(scope="session")
def small_index(bench_fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index over the committed corpus, of the recipe that ships. Nobody may change it."""
    folder = tmp_path_factory.mktemp("served") / "small"
    build(bench_fixtures / "corpus", folder, load_recipe("complete"), workers=1)
    return folder


@pytest.fixture(scope="session")
def service(small_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over the small index, in open mode; tests may ask it, and must not stop it."""
    with serving(small_index, data=tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(small_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that asks for keys: ADMIN_KEY, and those that a test adds to its folder."""
    data = tmp_path_factory.mktemp("guarded")
    with serving(small_index, data=data, environ={"CONTAM_ADMIN_KEY": ADMIN_KEY}) as running:
        yield running


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[httpx.Client]:
    """A client of the shared service."""
    with service.client() as one:
        yield one


@pytest.fixture(scope="session")
def fixture_items(bench_fixtures: Path) -> list[dict]:
    """Items of the small corpus's benchmarks as requests have them, 49 with a short name each."""
    path = bench_fixtures / "items" / "brook_math.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{**row, "benchmark": "brook_math"} for row in rows]
