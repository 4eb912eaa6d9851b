"""Every policy but the default against its vectors: invented texts, boundaries included."""

import pytest

from contam.detect.policies.policy import DEFAULT, list_policies
from tests.detect.policies.conformance import harness

#: The default has more tests of its own than vectors could say.
POLICIES = [spec.id for spec in list_policies() if spec.id != DEFAULT]
VECTORS = [
    pytest.param(vector, id=f"{vector['policy']}: {vector['name']}")
    for path in sorted(harness.VECTORS.glob("*.jsonl"))
    for vector in harness.load(path)
]


def test_every_policy_has_vectors_and_every_vector_file_a_policy():
    assert {path.stem for path in harness.VECTORS.glob("*.jsonl")} == set(POLICIES)


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
