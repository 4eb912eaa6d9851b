"""Every published policy against its vectors: invented texts, boundaries included."""

import pytest

from contam.detect.policy import get_policy
from tests.conformance import harness

PUBLISHED = (
    "gpt3-test",
    "lmeval-13",
    "openr1-8",
    "llama3-8gram",
    "palm-70",
    "igmini-50",
    "gpt4-50char",
    "tulu3-50",
    "decon-default",
)
VECTORS = [
    pytest.param(vector, id=f"{vector['policy']}: {vector['name']}")
    for name in PUBLISHED
    for vector in harness.load(harness.VECTORS / f"{name}.jsonl")
]


def test_every_vector_file_belongs_to_a_policy():
    files = {path.stem for path in harness.VECTORS.glob("*.jsonl")}
    assert set(PUBLISHED) <= files
    for name in files:
        get_policy(name)


@pytest.mark.parametrize("vector", VECTORS)
def test_vector(vector):
    rows = harness.run_vector(vector)
    assert len(rows) == len(vector["expect"])
    for row, expected in zip(rows, vector["expect"], strict=True):
        assert row.label == expected["label"], row.reason
        if "score" in expected:
            assert row.score == pytest.approx(expected["score"], abs=1e-6), row.reason
        if "n_documents" in expected:
            assert row.n_documents == expected["n_documents"], row.reason
        assert row.reason
        assert not row.reason.endswith(".")
