"""Without an extra its commands end in one line that names it; the core needs none."""

import re
import subprocess
import sys

import pytest

from contam.extras import _MODULES
from tests.contracts.test_locks import wanted
from tests.matrix import sampled

#: Runs the command line in a process that cannot import these modules.
WITHOUT = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in {missing} else self.finder.find_spec(name, *rest)
sys.meta_path[:] = map(Without, sys.meta_path)
from contam.cli.main import run
sys.argv = ["contam", *{arguments}]
run()
"""
EXTRA = sorted(
    {name for names in _MODULES.values() for name in names} | {"uvloop", "python_multipart"}
)


def contam_without(missing, *arguments):
    code = WITHOUT.format(missing=set(missing), arguments=[str(argument) for argument in arguments])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.fixture(scope="module")
def verdicts(bench_fixtures, tmp_path_factory):
    """What a scan with nothing but the core writes."""
    out = tmp_path_factory.mktemp("core") / "verdicts"
    done = contam_without(
        EXTRA, "scan", "--corpus", bench_fixtures / "corpus", "--benchmark",
        bench_fixtures / "items", "--out", out, "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
def test_the_core_scans_indexes_and_shows(verdicts, bench_fixtures, tmp_path):
    index = tmp_path / "index"
    for arguments in (
        ("show", verdicts, "--json"),
        ("show", verdicts, "--html", tmp_path / "items.html"),
        ("sql", verdicts, "select count(*) from verdicts"),
        ("index", "build", "--corpus", bench_fixtures / "corpus", "--index", index, "--quiet"),
        ("query", "--index", index, "--text", "of no account at all"),
        ("logs", bench_fixtures / "logs"),
        ("policies",),
    ):
        done = contam_without(EXTRA, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize("command", sampled(4, ["rescore", "audit", "serve", "scan"]))
def test_a_missing_extra_is_named_in_one_line(command, verdicts, bench_fixtures, tmp_path):
    out = tmp_path / "out"
    arguments, extra = {
        "rescore": (
            ("--verdicts", verdicts, "--logs", bench_fixtures / "logs", "--out", out),
            "scores",
        ),
        "audit": (("run", bench_fixtures / "AUDIT.toml", "--out", out), "audit"),
        "serve": (("--index", tmp_path), "serve"),
        "scan": (("--corpus", "c", "--benchmark", "b", "--engine", "ray", "--out", out), "ray"),
    }[command]
    done = contam_without(EXTRA, command, *arguments)
    assert done.returncode == 1
    assert re.findall(r"pip install '\.\[([\w-]+)\]'", done.stderr) == [extra]
    assert len(done.stderr.splitlines()) == 2
    assert not out.exists()


def test_each_module_of_an_extra_is_declared():
    for extra, modules in _MODULES.items():
        core = {requirement.name for requirement in wanted(())}
        listed = {requirement.name.replace("-", "_") for requirement in wanted((extra,))}
        assert set(modules) <= listed - core
