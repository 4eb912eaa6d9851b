"""Defaults of scan, query and rescore: who beats whom, what is refused, and that it is said."""

import json
import shlex

import pytest

from contam.cli.defaults import TYPED
from contam.config import TABLES
from tests.cli.processes import assert_one_line_error, contam, contam_here


@pytest.fixture
def here(tmp_path, bench_fixtures):
    """An empty folder to run in, and a function that writes its contam.toml."""
    (tmp_path / "data").symlink_to(bench_fixtures)

    def write(text):
        (tmp_path / "contam.toml").write_text(text)
        return tmp_path

    return write


def run_of(folder):
    return json.loads((folder / "run.json").read_text())


SCAN = '[scan]\ncorpus = ["data/corpus"]\nbenchmark = "data/items"\nout = "out"\n'


def test_a_file_supplies_what_is_not_typed_and_stderr_says_so(here):
    folder = here(f'{SCAN}policy = ["contam", "lmeval-13"]\nno_text = true\nworkers = 1\n')
    done = contam_here("scan", cwd=folder)
    assert done.returncode == 0, done.stderr
    line = done.stderr.splitlines()[0]
    assert line == (
        "contam.toml gives --corpus=data/corpus --benchmark=data/items --out=out --policy=contam "
        "--policy=lmeval-13 --no-text --workers=1"
    )
    run = run_of(folder / "out")
    assert run["parameters"]["policies"] == ["contam", "lmeval-13"]
    assert run["parameters"]["keep_text"] is False
    typed = ["scan", *shlex.split(line.removeprefix("contam.toml gives ")), "--overwrite"]
    (folder / "contam.toml").unlink()
    before = run_of(folder / "out")
    assert contam_here(*typed, cwd=folder).returncode == 0
    after = run_of(folder / "out")
    del before["timings"], after["timings"]
    assert before == after


def test_it_is_said_even_of_a_quiet_run(here):
    done = contam_here("scan", "--quiet", cwd=here(SCAN))
    assert done.stderr.startswith("contam.toml gives --corpus=data/corpus")


def test_typed_beats_the_environment_which_beats_the_file(here):
    folder = here(f'{SCAN}policy = "lmeval-13"\nseed = 4\nmin_run = 9\nmax_evidence = 3\n')
    done = contam_here(
        "scan", "--max-evidence", "7", "--benchmark=data/items", cwd=folder,
        CONTAM_SCAN_SEED="6", CONTAM_SCAN_MAX_EVIDENCE="5", CONTAM_SCAN_NO_TEXT="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = run_of(folder / "out")
    found = {name: run["parameters"][name] for name in ("seed", "min_run", "max_evidence")}
    assert found == {"seed": 6, "min_run": 9, "max_evidence": 7}
    assert "CONTAM_SCAN_SEED gives --seed=6" in done.stderr
    assert "--min-run=9" in done.stderr
    assert not [typed for typed in ("--max-evidence", "--benchmark") if typed in done.stderr]


def test_a_switch_of_the_file_can_be_turned_off(here):
    folder = here(f"{SCAN}no_text = true\n")
    assert contam_here("scan", cwd=folder, CONTAM_SCAN_NO_TEXT="false").returncode == 0
    assert run_of(folder / "out")["parameters"]["keep_text"] is True


def test_another_file_and_none(here):
    folder = here("[scan]\nnonsense = 1\n")
    (folder / "other.toml").write_text(SCAN)
    done = contam_here("scan", "--settings", "other.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("other.toml gives")
    typed = ("--corpus", "data/corpus", "--benchmark", "data/items", "--out", "typed")
    done = contam_here("scan", *typed, "--settings=/dev/null", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "gives" not in done.stderr
    gone = contam_here("scan", *typed, "--settings", "gone.toml", cwd=folder)
    assert_one_line_error(gone, 2, "gone.toml")


@pytest.mark.parametrize("command", TABLES)
def test_help_and_other_commands_read_no_file(here, command):
    folder = here("[nonsense\n")
    assert contam_here(command, "--help", cwd=folder).returncode == 0
    assert contam_here("policies", cwd=folder).returncode == 0
    assert_one_line_error(contam_here(command, cwd=folder), 2, "contam.toml", "cannot read")


@pytest.mark.parametrize("command", TABLES)
def test_options_that_are_to_be_typed_are_refused(here, command):
    for name in {*TYPED} - {"help"}:
        folder = here(f"[{command}]\n{name} = true\n")
        assert_one_line_error(contam_here(command, cwd=folder), 2, name)


@pytest.mark.parametrize("command", sorted({*TABLES} - {"serve"}))
def test_a_name_that_is_unknown_is_told_with_the_nearest_one(here, command):
    done = contam_here(command, cwd=here(f"[{command}]\nseedx = 1\n"))
    assert_one_line_error(done, 2, f"contam.toml: [{command}]", "'seedx'", "seed?")
    variable = f"CONTAM_{command.upper()}_SEEDX"
    done = contam_here(command, cwd=here(""), **{variable: "1"})
    assert_one_line_error(done, 2, variable, f"{variable[:-1]}?")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_unknown_is_told_with_the_nearest_one(here, table):
    for text in (f"[{table}x]\nseed = 1\n", f"{table}x = 3\n"):
        done = contam_here("scan", cwd=here(text))
        assert_one_line_error(done, 2, "contam.toml", repr(f"{table}x"))


@pytest.mark.parametrize(
    "line",
    ["seed = true", "workers = 1.5", "seed = [5]", "seed = 1", "name = {a = 1}", "no_text = 7"],
)
def test_a_value_of_another_type_or_out_of_range_names_where_it_is_from(here, line):
    done = contam_here("scan", cwd=here(f"{SCAN}{line}\n"))
    assert_one_line_error(done, 2, "contam.toml")
    done = contam_here("scan", cwd=here(SCAN), CONTAM_SCAN_WORKERS="many")
    assert_one_line_error(done, 2, "(from CONTAM_SCAN_WORKERS)")


def test_query_and_rescore_take_theirs(here):
    folder = here(
        '[query]\nindex = "./index"\nbenchmark = "data/items"\nout = "asked"\n'
        '[rescore]\nverdicts = "asked"\nlogs = ["data/logs"]\nout = "scores"\nleast = 12\n'
        "permutations = 99\n"
    )
    built = contam_here(
        "index", "build", "--corpus", "data/corpus", "--index", "./index", cwd=folder
    )
    assert built.returncode == 0, built.stderr
    assert "gives" not in built.stderr
    for command, out in (("query", "asked"), ("rescore", "scores")):
        done = contam_here(command, "--quiet", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert f"--out={out}" in done.stderr
    assert run_of(folder / "scores")["parameters"]["least"] == 12


def test_the_home_of_the_environment_beats_that_of_the_file(here):
    folder = here('[query]\nindex = "small"\nhome = "nowhere"\nbenchmark = "data/items"\n')
    built = contam_here(
        "index", "build", "--corpus", "data/corpus", "--index", "small", "--home", "homes",
        cwd=folder,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    found = contam_here("query", "--out", "out", cwd=folder, CONTAM_HOME=str(folder / "homes"))
    assert found.returncode == 0, found.stderr
    assert "--home" not in found.stderr


def test_a_word_that_looks_like_an_option_stays_a_value(here):
    folder = here(f'{SCAN}name = "--overwrite"\n')
    done = contam_here("scan", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert run_of(folder / "out")["parameters"]["name"] == "--overwrite"
    assert contam_here("scan", cwd=folder).returncode == 1


def test_a_real_process_says_it_before_anything_else(here):
    folder = here(SCAN)
    done = contam("scan", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("contam.toml gives --corpus=data/corpus")
    assert "contam.toml" not in done.stdout
