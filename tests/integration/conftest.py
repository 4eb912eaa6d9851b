"""The benchmark that most tests here ask about: an item to plant, and one to miss."""

import pytest

from tests.integration.inputs import ABSENT, QUESTION, write_items


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
