"""A gate passes only what it could judge, and says so to people and to machines."""

import dataclasses
import datetime as dt
import json

import numpy as np
import pytest

from contam.audit import gate
from contam.audit.facts import read_facts
from contam.audit.gate import load_rules, run_gate
from contam.audit.report.build import headline
from contam.audit.report.render import largest_changes
from contam.cli.main import main
from contam.errors import ConfigError, OutputError
from contam.rescore.stats.gain import gain
from tests.audit.conftest import relabel, reseal

NOW = dt.date(2026, 11, 1)


def rules_of(tmp_path, text):
    path = tmp_path / "RULES.toml"
    path.write_text(text, "utf-8")
    return load_rules(path)


def rule(tmp_path, check, **keys):
    lines = [f"{name} = {json.dumps(value)}" for name, value in keys.items()]
    return rules_of(tmp_path, "\n".join(["[[rule]]", f'check = "{check}"', *lines])).rule[0]


def with_policy(facts, **changes):
    """The facts with other figures of the first benchmark by contam in all corpora."""
    first = facts.benchmarks[0]
    policies = tuple(
        dataclasses.replace(policy, **changes)
        if (policy.policy, policy.corpus) == ("contam", "together")
        else policy
        for policy in first.policies
    )
    benchmarks = (dataclasses.replace(first, policies=policies), *facts.benchmarks[1:])
    return dataclasses.replace(facts, benchmarks=benchmarks)


def with_scores(facts, **changes):
    return dataclasses.replace(facts, scores=tuple({**row, **changes} for row in facts.scores))


def statuses(parts):
    return [part.status for part in parts]


@pytest.fixture(scope="module")
def facts(audited):
    return read_facts(audited.folder / "report.json")


COUNTS = {"contaminated": 0, "suspect": 0, "clean": 49, "not_checkable": 0}


@pytest.mark.parametrize(
    ("counts", "keys", "status"),
    [
        ({}, {}, "pass"),
        ({"contaminated": 1}, {"most_percent": 100 / 49}, "pass"),
        ({"contaminated": 1}, {"most_percent": 2}, "fail"),
        ({"suspect": 1}, {}, "fail"),
        ({"not_checkable": 1}, {}, "unknown"),
        ({"not_checkable": 1}, {"unchecked": "ignore"}, "pass"),
        ({"not_checkable": 1}, {"most_percent": 3}, "pass"),
        ({"n_items": 0, "clean": 0}, {}, "unknown"),
        ({}, {"benchmark": "nobody"}, "unknown"),
        ({}, {"policy": "gpt3-test"}, "unknown"),
        ({}, {"corpus": "nowhere"}, "unknown"),
    ],
)
def test_a_share_is_judged_with_what_could_not_be_checked(facts, tmp_path, counts, keys, status):
    known = {"benchmark": "brook_math", "most_percent": 0, **keys}
    found = gate.flagged_share(
        rule(tmp_path, "flagged_share", **known), with_policy(facts, **{**COUNTS, **counts})
    )
    assert statuses(found) == [status]


def test_rows_that_could_not_be_read_as_items_may_be_flagged(facts, tmp_path):
    strict = rule(tmp_path, "flagged_share", benchmark="brook_math", most_percent=0)
    clean = with_policy(facts, **COUNTS)
    bench = dataclasses.replace(clean.benchmarks[0], n_skipped=1)
    skipped = dataclasses.replace(clean, benchmarks=(bench, *clean.benchmarks[1:]))
    assert statuses(gate.flagged_share(strict, clean)) == ["pass"]
    assert statuses(gate.flagged_share(strict, skipped)) == ["unknown"]


def test_a_share_of_one_corpus_is_that_corpus_s(facts, tmp_path):
    found = gate.flagged_share(
        rule(tmp_path, "flagged_share", benchmark="brook_math", corpus="early", most_percent=1),
        facts,
    )
    (own,) = [
        policy
        for policy in facts.benchmarks[0].policies
        if (policy.policy, policy.corpus) == ("contam", "early")
    ]
    assert f"({own.contaminated + own.suspect} of 49)" in found[0].said


SCORE = {
    "n_clean": 400,
    "n_flagged": 100,
    "n_not_checkable": 0,
    "clean_with_unchecked": 0.60,
    "full": 0.62,
    "clean": 0.60,
    "clean_lo": 0.55,
    "clean_hi": 0.65,
    "flagged": 0.70,
    "flagged_lo": 0.60,
    "flagged_hi": 0.78,
    "n": 500,
    "gain": 0.02,
    "gap": 0.1,
    "gap_low": -0.015,
    "gap_high": 0.205,
}


@pytest.mark.parametrize(
    ("row", "keys", "status"),
    [
        ({}, {}, "pass"),
        ({}, {"most_points": 1.9}, "fail"),
        ({"full": 0.58}, {}, "pass"),
        ({"full": 0.579}, {}, "fail"),
        ({"n_clean": 49}, {}, "unknown"),
        ({"n_clean": 49}, {"least_clean": 49}, "pass"),
        ({"clean": None}, {}, "unknown"),
        ({"full": 62.0}, {}, "unknown"),
        ({"n_not_checkable": 5, "clean_with_unchecked": 0.5}, {}, "fail"),
        ({}, {"bound": True}, "fail"),
        ({}, {"bound": True, "most_points": 4.2}, "pass"),
        ({"gap_low": None}, {"bound": True}, "unknown"),
        ({"n": 400, "n_flagged": 0, "full": 0.6, "flagged": None}, {"bound": True}, "pass"),
    ],
)
def test_a_gap_is_judged_in_points(facts, tmp_path, row, keys, status):
    known = {"benchmark": "brook_math", "models": ["heron-8b"], "most_points": 2, **keys}
    found = gate.gap(rule(tmp_path, "gap", **known), with_scores(facts, **{**SCORE, **row}))
    assert statuses(found) == [status]


def test_the_bound_of_a_gap_is_that_of_simulated_evaluations():
    draw = np.random.default_rng(3)
    n_flagged, n_clean, right_flagged, right_clean = 150, 450, 0.8, 0.55
    share = n_flagged / (n_flagged + n_clean)
    true = share * (right_flagged - right_clean)
    inside = 0
    for _ in range(400):
        right = draw.binomial([n_flagged, n_clean], [right_flagged, right_clean])
        scores = np.repeat(
            [1.0, 0.0, 1.0, 0.0], np.stack([right, [n_flagged, n_clean] - right], 1).ravel()
        )
        found = gain(scores, np.arange(n_flagged + n_clean) < n_flagged)
        row = {"n": len(scores), "n_clean": n_clean, "gain": found.epg, "gap": found.epg / share}
        inside += (
            gate._far_end(row | {"gap_low": found.low / share, "gap_high": found.high / share})
            >= true
        )
    # One end of a 95 % interval: 97.5 % of 400, less four standard errors.
    assert inside / 400 > 0.975 - 4 * np.sqrt(0.975 * 0.025 / 400)


def test_benchmarks_and_models_without_scores_are_not_judged(facts, tmp_path):
    alone = dataclasses.replace(
        facts, scores=tuple(row for row in facts.scores if row["benchmark"] == "brook_math")
    )
    wide = rule(tmp_path, "gap", most_points=100, least_clean=1)
    assert set(statuses(gate.gap(wide, facts))) == {"pass"}
    assert statuses(gate.gap(wide, alone)) == ["pass"] * 3 + ["unknown"]
    named = rule(tmp_path, "gap", most_points=100, least_clean=1, models=["nobody"])
    assert statuses(gate.gap(named, facts)) == ["unknown", "unknown"]


def test_rules_follow_the_join_where_logs_call_a_benchmark_otherwise(facts, tmp_path):
    def local(rows):
        return tuple({**row, "benchmark": f"{row['benchmark']}_local"} for row in rows)

    assert facts.logged == {name.name: (name.name,) for name in facts.benchmarks}
    renamed = dataclasses.replace(
        facts,
        scores=local(facts.scores),
        rankings=local(facts.rankings),
        leads=local(facts.leads),
        logged={f"{name}_local": held for name, held in facts.logged.items()},
    )
    wide = rule(tmp_path, "gap", most_points=100, least_clean=1)
    ours = rule(tmp_path, "leads", benchmark="brook_math")
    assert statuses(gate.gap(wide, renamed)) == statuses(gate.gap(wide, facts))
    assert statuses(gate.leads(ours, renamed)) == statuses(gate.leads(ours, facts)) == ["fail"]
    by_task = rule(tmp_path, "gap", benchmark="brook_math_local", most_points=100, least_clean=1)
    assert set(statuses(gate.gap(by_task, renamed))) == {"pass"}
    one_log = dataclasses.replace(
        renamed, logged={"brook_math_local": tuple(name.name for name in facts.benchmarks)}
    )
    n_scores = len([row for row in renamed.scores if row["benchmark"] == "brook_math_local"])
    both = [part.of for part in gate.gap(rule(tmp_path, "gap", most_points=100), one_log)]
    assert len(both) == len(set(both)) <= n_scores
    elsewhere = dataclasses.replace(renamed, logged={"brook_math_local": ("another",)})
    assert "unknown" in statuses(gate.gap(wide, elsewhere))


def test_coverage_is_whole_or_fails(facts, tmp_path):
    all_of = rule(tmp_path, "coverage", corpora=["early", "late"])
    assert statuses(gate.coverage(all_of, facts)) == ["pass", "pass"]
    more = rule(tmp_path, "coverage", corpora=["early", "books"])
    assert statuses(gate.coverage(more, facts)) == ["unknown", "pass", "pass"]
    part = {**facts.corpora[0].coverage, "complete": False, "shards_read": 1}
    corpora = (dataclasses.replace(facts.corpora[0], coverage=part), facts.corpora[1])
    found = gate.coverage(all_of, dataclasses.replace(facts, corpora=corpora))
    assert statuses(found) == ["fail", "pass"]


def test_a_lead_that_is_gone_on_clean_items_fails(facts, tmp_path):
    ours = rule(tmp_path, "leads", benchmark="brook_math")
    assert statuses(gate.leads(ours, facts)) == ["fail"]
    stands = tuple(
        {**row, "lead_clean": True} if row["benchmark"] == "brook_math" else row
        for row in facts.leads
    )
    assert statuses(gate.leads(ours, dataclasses.replace(facts, leads=stands))) == ["pass"]
    few = tuple({**row, "lead_falls": False} for row in facts.leads)
    assert statuses(gate.leads(ours, dataclasses.replace(facts, leads=few))) == ["unknown"]
    blind = tuple({**row, "difference_clean": None} for row in facts.leads)
    assert statuses(gate.leads(ours, dataclasses.replace(facts, leads=blind))) == ["unknown"]
    assert statuses(gate.leads(ours, dataclasses.replace(facts, leads=()))) == ["pass"]
    assert statuses(gate.leads(ours, dataclasses.replace(facts, ours=()))) == ["unknown"]
    unranked = dataclasses.replace(facts, rankings=(), leads=())
    assert statuses(gate.leads(ours, unranked)) == ["unknown"]
    last = rule(tmp_path, "leads", models=["plover-3b"])
    assert set(statuses(gate.leads(last, facts))) == {"pass"}


RULES = """
pack = "pack"

[[rule]]
check = "coverage"

[[rule]]
name = "odd | name, 100 %: \\u0007<b>"
check = "flagged_share"
most_percent = 1

[[rule]]
check = "flagged_share"
benchmark = "brook_math"
policy = "lmeval-13"
most_percent = 62
"""


def test_the_command_says_a_line_for_each_rule_and_exits_with_3(pack, tmp_path, capsys):
    rules_of(tmp_path, RULES)
    words = ["audit", "gate", str(tmp_path / "RULES.toml")]
    assert main(words) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["pass", "FAIL", "CANNOT BE JUDGED"]
    rules_of(tmp_path, RULES.split("[[rule]]\nname", maxsplit=1)[0])
    assert main([*words, str(pack)]) == 0
    assert main([*words, "--digest", "0" * 64]) == 1


def test_json_says_whether_the_pack_passed(audited, tmp_path, capsys):
    rules_of(tmp_path, RULES)
    rules = str(tmp_path / "RULES.toml")
    assert main(["audit", "gate", rules, str(audited.folder), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert not found["passed"]
    assert [outcome["status"] for outcome in found["outcomes"]] == ["pass", "fail", "unknown"]


def test_a_pack_that_was_altered_is_not_judged(pack, tmp_path):
    rules = rules_of(tmp_path, RULES)
    report = pack / "report.json"
    report.write_text(report.read_text().replace('"contaminated": 31', '"contaminated": 0'))
    with pytest.raises(OutputError, match=r"report\.json"):
        run_gate(rules, pack, NOW)
    (pack / "manifest.json").unlink()
    with pytest.raises(OutputError, match=r"manifest\.json"):
        run_gate(rules, pack, NOW)


def test_only_new_contamination_fails_against_a_baseline(audited, pack, tmp_path):
    rules = rules_of(
        tmp_path,
        '[[rule]]\ncheck = "new_flags"\nbaseline = "base"\n'
        '[[rule]]\ncheck = "new_flags"\nbaseline = "base"\nmost = 2\n',
    )
    base = pack.rename(tmp_path / "base")
    assert run_gate(rules, audited.folder, NOW).passed
    cleaned = relabel(base, {"brook-004": "clean", "brook-017": "not_checkable"})
    verdict = run_gate(rules, audited.folder, NOW)
    assert [outcome.status for outcome in verdict.outcomes] == ["fail", "pass"]
    assert "brook-004" in verdict.outcomes[0].said
    assert "brook-017" in verdict.outcomes[0].said
    assert cleaned == 2
    tree = json.loads((base / "report.json").read_bytes())
    tree["policies"]["contam"]["fingerprint"] = "another"
    (base / "report.json").write_text(json.dumps(tree))
    reseal(base)
    assert {outcome.status for outcome in run_gate(rules, audited.folder, NOW).outcomes} == {
        "unknown"
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "RULES.toml"),
        ("[[rule]]", "rule 1"),
        ('[[rule]]\ncheck = "nothing"', "nothing"),
        ('[rule]\ncheck = "coverage"', "rule"),
        ('[[rule]]\ncheck = "coverage"\nmost = 1', "rule 1, coverage.most"),
        ('[[rule]]\ncheck = "flagged_share"', "most_percent"),
        ('[[rule]]\ncheck = "flagged_share"\nmost_percent = 101', "most_percent"),
        ('[[rule]]\ncheck = "gap"\nmost_points = -1', "most_points"),
        ('packs = "x"\n[[rule]]\ncheck = "coverage"', "packs"),
        ('pack = 1\n[[rule]]\ncheck = "coverage"', "pack"),
        ('accept = ["a"]\n[[rule]]\ncheck = "coverage"', "accept"),
        ("[[rule", "RULES.toml"),
        (
            '[[rule]]\ncheck = "flagged_share"\nmost_percnt = 5',
            r"rule 1, flagged_share\.most_percnt",
        ),
    ],
)
def test_wrong_rules_are_refused_with_their_key(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        rules_of(tmp_path, text)


def test_a_gate_without_a_pack_is_a_wrong_call(tmp_path):
    rules_of(tmp_path, '[[rule]]\ncheck = "coverage"')
    assert main(["audit", "gate", str(tmp_path / "RULES.toml")]) == 2


def score(model, full, clean, metric="acc"):
    return {
        "benchmark": "b", "policy": "contam", "model": model, "metric": metric,
        "full": full, "clean": clean, "gain": None if clean is None else full - clean,
        "n_clean": 9, "n_flagged": 9, "adjusted": 0.1, "adjusted_p_holm": 0.2,
        "higher_is_better": True,
    }  # fmt: skip


def test_where_our_models_are_named_the_headline_and_the_table_are_about_them():
    rows = [score("other", 0.9, 0.1), score("mine", 0.6, 0.5), score("mine", 0.7, 0.5, "f1")]
    coverage = {"complete": True, "shards_read": 1, "shards_expected": 1}

    def told(ours, rows=rows):
        return headline([], coverage, "contam", rows, ours=ours).text.replace(",", " ")

    assert {"other", "0.100", "0.900", "(acc)"} <= set(told(()).split())
    assert {"mine", "0.500", "0.700", "(f1)"} <= set(told(("mine",)).split())
    assert "other" not in told(("mine",))
    unsure = told(("mine",), [score("other", 0.9, 0.1), score("mine", 0.6, None)])
    assert "mine" in unsure
    assert "0.600" not in unsure
    tree = {"policies": {"contam": {}}, "ours": ["mine"], "scores": rows, "least": 0}
    assert {row["model"] for row in largest_changes(tree)} == {"mine"}
    assert {row["model"] for row in largest_changes({**tree, "ours": []})} == {"other", "mine"}
