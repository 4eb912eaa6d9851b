"""The small corpus, written once."""

import pytest

from tests.cleaning.inputs import write_corpus, write_items


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder of shards of several formats."""
    return write_corpus(tmp_path_factory.mktemp("cleaning") / "corpus")


@pytest.fixture(scope="session")
def items(tmp_path_factory):
    """Two benchmark files."""
    return write_items(tmp_path_factory.mktemp("items"))
