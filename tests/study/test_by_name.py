"""Studies by name: plain options, as a file has them, do what the functions do."""

import datetime as dt
import inspect

import pytest

from contam.study.by_name import KINDS, checked, paths_of, run_named, with_paths

OPTIONS = {
    "fresh": {
        "original": "fresh_original.csv", "fresh": ["fresh_new.csv"],
        "easier": {"same": "fresh_new.csv"}, "references": ["dunlin-1b"], "chance": 0.1, "draws": 200,
    },
    "preparation": {
        "scores": "preparation.csv", "chance": {"brook": 0.25, "lantern": 0.2}, "knots": [22, 22.5],
        "draws": 200,
    },
    "board": {"scores": "board.csv"},
    "time": {
        "logs": "problems.csv", "references": ["plover-3b"], "window": "half-year",
        "cutoffs": {"quokka-7b": dt.date(2023, 12, 31)},
    },
    "likelihood": {"shards": "shards.jsonl", "exchangeable": True},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_study_runs_by_its_name(bench_fixtures, name):
    folder = bench_fixtures / "studies"
    options = with_paths(name, OPTIONS[name], lambda path: str(folder / path))
    assert all(path.startswith(str(folder)) for path in paths_of(name, options))
    checked(name, options, "a file")
    study = run_named(
        name, options, verdicts=folder, policy="contam", rescored=None, seed=1, least=20
    )
    assert study.name == name
    assert study.rows()
    assert study.finding.found


SHARED = {"out", "overwrite", "as_json", "quiet", "debug"}
FORMS = {"cutoff", "knots"}


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_command_is_one_of_the_study_with_its_default(name):
    from contam.cli.commands import study

    (command,) = [one for one in study.app.registered_commands if one.name == name]
    options = inspect.signature(command.callback).parameters
    known = KINDS[name].defaults()
    assert set(options) - SHARED - FORMS <= set(known)
    for key, option in options.items():
        if type(option.default) in (int, float, str, bool) and key not in SHARED | FORMS:
            assert known[key] in (option.default, (option.default,) * 2), key


def test_a_value_that_is_typed_twice_or_badly_is_refused(capsys):
    from contam.cli.main import main

    time = ["study", "time", "--logs", "a.csv", "--out", "out"]
    for call, said in (
        ([*time, "--cutoff", "a=2024", "--cutoffs", "b.csv"], "exclude each other"),
        ([*time, "--cutoff", "a=2024,a=2023"], "twice"),
        (["study", "fresh", "--original", "a", "--fresh", "b", "--easier", "c", "--out", "o"], "c"),
        (["study", "preparation", "--scores", "a", "--knots", "22", "--out", "o"], "--knots"),
        (["study", "preparation", "--scores", "a", "--chance", "x", "--out", "o"], "'x'"),
    ):
        assert main(call) == 2
        assert said in capsys.readouterr().err


def test_every_study_of_the_package_has_a_name():
    import contam.study
    from contam.cli.commands import study

    named = {command.name for command in study.app.registered_commands}
    assert named == set(KINDS)
    assert set(KINDS) <= set(contam.study.__all__)
