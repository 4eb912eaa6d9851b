"""Tests of what runs the service: `make service` runs them, `make test` leaves them out."""

from pathlib import Path

import pytest

from tests.server.conftest import fixture_items, small_index  # noqa: F401 - fixtures

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.operations)
