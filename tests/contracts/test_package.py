"""What a project that uses contam meets: its types, and what an import costs."""

import pytest

from tests.cli.processes import python

PROJECT = """
import contam
from contam.client import Client

result = contam.scan("corpus", "items.jsonl", policies=["contam"])
reveal_type(result.complete)
wrong: int = contam.scan("corpus", "items.jsonl", workers="two")
Client(nobody=1)
contam.scan("corpus", "items.jsonl", polices=["contam"])
"""


@pytest.mark.slow
def test_what_contam_gives_and_takes_has_types(tmp_path):
    (tmp_path / "project.py").write_text(PROJECT)
    checked = python("-m", "mypy", "--strict", "--no-error-summary", "project.py", cwd=tmp_path)
    found = [line.split(": ", 1) for line in checked.stdout.splitlines()]
    lines = [int(place.split(":")[1]) for place, _ in found if place.startswith("project.py:")]
    assert sorted(set(lines)) == [6, 7, 8, 9], checked.stdout + checked.stderr
    assert 'Revealed type is "bool"' in checked.stdout.replace("builtins.", "")


HEAVY = {
    "numba",
    "llvmlite",
    "numpy",
    "pyarrow",
    "duckdb",
    "pandas",
    "polars",
    "tokenizers",
    "scipy",
    "rich",
    "fastapi",
    "uvicorn",
}

_REPORT = "; print(sorted({n.partition('.')[0] for n in sys.modules} | {*sys.modules} & {'scipy.linalg'}))"


def loaded_by(statement):
    done = python("-c", f"import sys; {statement}{_REPORT}")
    assert done.returncode == 0, done.stderr
    return set(eval(done.stdout.splitlines()[-1]))  # noqa: S307 - a list we printed ourselves


def test_neither_the_front_door_nor_any_help_loads_anything_heavy():
    calls = [
        [],
        ["--version"],
        ["--help"],
        *([name, "--help"] for name in ("scan", "show", "serve")),
    ]
    statement = f"import contam, contam.errors; from contam.cli.main import main; codes = [main(one) for one in {calls}]; assert not any(codes), codes"
    assert not loaded_by(statement) & HEAVY


RUN = "from contam.cli.main import run\ntry: run({arguments!r})\nexcept SystemExit as end: assert not end.code\n"


def run_by(arguments):
    return loaded_by(f"pass\n{RUN.format(arguments=[*map(str, arguments)])}pass")


@pytest.mark.slow
def test_neither_a_scan_nor_a_rescoring_loads_pandas(repository, tmp_path):
    pytest.importorskip("pandas")
    fixtures, out = repository / "bench_fixtures", tmp_path / "out"
    scan = ("scan", "--corpus", fixtures / "corpus", "--benchmark", fixtures / "items", "-q")
    loaded = run_by((*scan, "--out", out))
    assert {"numba", "pyarrow"} <= loaded
    assert not {"pandas", "scipy.linalg", "cffi", "pycparser"} & loaded
    logs = ("--logs", fixtures / "logs" / "brook_math.csv", "--least", "12", "-q")
    rescore = ("rescore", "--verdicts", out, *logs, "--out", tmp_path / "scores")
    given = ("--reference", "heron-8b,plover-3b")
    assert not {"pandas", "statsmodels"} & run_by((*rescore, *given))


def test_the_command_is_installed_under_its_name(repository):
    import tomllib

    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"contam": "contam.cli.main:run"}
