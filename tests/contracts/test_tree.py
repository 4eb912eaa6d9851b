"""What the tree promises: where code may live, how long a file may be, what no file may say."""

from __future__ import annotations

import re
import subprocess

import pytest

MAX_LINES = 500
MAX_TEST_LINES = 600

# Written in pieces, so that this file does not say it either.
_MACHINE_PATHS = ["/" + "work/", "/" + "root/", "/" + "tmp/", "/" + "home/", "/" + "Users/"]
_REGISTRIES = ["pypi" + ".org", "files.python" + "hosted"]
FORBIDDEN = re.compile(
    "|".join(rf"(?<![\w.}}~-]){p}[\w.]" for p in _MACHINE_PATHS)
    + "|"
    + "|".join(map(re.escape, _REGISTRIES))
)
# A licence is quoted as it is; binary files hold no prose.
NOT_READ = {".parquet", ".npz", ".png", ".zst", ".gz", ".bz2", ".xz", ".arrow"}


def tracked(repository):
    """Every file of the checkout that git knows, or every file where there is no git."""
    found = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z"], capture_output=True, text=True
    )
    if found.returncode == 0 and found.stdout:
        paths = [repository / name for name in found.stdout.split("\0") if name]
    else:
        skipped = {".venv", "build", "dist", "__pycache__"}
        paths = [p for p in repository.rglob("*") if not skipped & set(p.parts)]
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("folder", ["indexes", "service"])
def test_folders_that_hold_no_code_hold_no_package(repository, folder):
    assert (repository / folder / "README.md").is_file()
    assert not list((repository / folder).rglob("__init__.py"))


def test_every_package_says_that_it_is_one(repository):
    folders = {path.parent for path in (repository / "contam").rglob("*.py")}
    assert [f.name for f in folders if not (f / "__init__.py").is_file()] == []


def test_no_file_of_the_package_is_long(repository):
    for path in (repository / "contam").rglob("*.py"):
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MAX_LINES, f"{path.name} has {n_lines} lines"


def test_no_test_file_is_very_long(repository):
    for path in (repository / "tests").rglob("*.py"):
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MAX_TEST_LINES, f"{path.name} has {n_lines} lines"


def test_every_module_opens_with_its_one_job(repository):
    for path in (repository / "contam").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not text or text.startswith(('"""', 'r"""')), path


def test_no_file_names_a_machine_or_a_registry(repository):
    for path in tracked(repository):
        if path.suffix in NOT_READ:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        said = FORBIDDEN.search(text)
        assert said is None, f"{path.relative_to(repository)} says {said[0]}"


def test_nothing_is_left_for_later(repository):
    later = re.compile(r"#.*\b(" + "TO" + "DO|FIX" + "ME|X" + r"XX)\b")
    for path in tracked(repository):
        if path.suffix == ".py":
            found = later.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path.relative_to(repository)}: {found[0]}"
