import json

from contam.detect.policies.policy import list_policies
from tests.cli.processes import contam_here


def test_every_policy_is_listed_and_second_hand_ones_say_approximate():
    text = contam_here("policies").stdout
    for spec in list_policies(optional=True):
        (line,) = (line for line in text.splitlines() if line.split(" ")[0] == spec.id)
        assert spec.unit in line
    assert "approximate" in text


def test_json_lists_the_specs_in_full():
    told = json.loads(contam_here("policies", "--json").stdout)
    assert [spec["id"] for spec in told] == [spec.id for spec in list_policies(optional=True)]
    assert all(len(spec["fingerprint"]) == 16 for spec in told)


def test_one_policy_is_described():
    text = contam_here("policies", "lmeval-13").stdout
    for word in ("lmeval-13, version", "source", "13", "too short"):
        assert word in text
    assert json.loads(contam_here("policies", "lmeval-13", "--json").stdout)["id"] == "lmeval-13"
