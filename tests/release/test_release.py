"""What `make release` built: it installs where nothing of ours is, and works there."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import contam
from tests.waiting import HANG_S

pytestmark = pytest.mark.release

_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?(==\S+(?: ;.*?)?) \\$", re.MULTILINE)


def only(folder, pattern):
    """The one file of the release that fits."""
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"`make release` writes {folder}/{pattern}: {found}"
    return found[0]


@pytest.fixture(scope="module")
def dist(repository):
    """The folder that `make release` wrote."""
    return repository / "dist"


@pytest.fixture(scope="module")
def fresh(repository, tmp_path_factory):
    """An environment of its own without contam, with the core's dependencies at pinned releases."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True, timeout=HANG_S)
    pins = "\n".join(
        "".join(pin) for pin in _PIN.findall((repository / "requirements/image.txt").read_text())
    )
    (folder / "pins.txt").write_text(pins + "\n")
    return folder


def python(fresh, *arguments):
    """Run the environment's Python where no checkout is in reach."""
    return subprocess.run(
        [fresh / "env" / "bin" / "python", "-I", *arguments],
        cwd=fresh,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )


def install(fresh, archive):
    """Install an archive as a user would, with the dependencies that its metadata names."""
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    # What the other archive brought stays: only contam itself is installed anew.
    python(fresh, *pip, "uninstall", "--yes", "contam")
    done = python(fresh, *pip, "install", "--constraint", "pins.txt", archive)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pattern", ["contam-*.whl", "contam-*.tar.gz"])
def test_an_installed_archive_scans_the_fixtures_with_our_verdicts(
    dist, fresh, bench_fixtures, pattern
):
    install(fresh, only(dist, pattern))
    said = python(fresh, "-c", "import contam; print(contam.__file__, contam.__version__)")
    place, version = said.stdout.split()
    assert Path(place).is_relative_to(fresh / "env")
    assert version == contam.__version__
    done = python(
        fresh, "-m", "contam", "scan", "--overwrite", "--out", "result",
        "--corpus", bench_fixtures / "corpus", "--benchmark", bench_fixtures / "items",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items").verdicts
    assert pq.read_table(fresh / "result" / "verdicts.parquet").equals(ours)
    shown = python(fresh, "-m", "contam", "show", "result", "brook-004")
    assert (shown.returncode, "contaminated" in shown.stdout) == (0, True), shown.stderr
    built = python(
        fresh, "-m", "contam", "index", "build", "--corpus", bench_fixtures / "corpus",
        "--index", "./index", "--recipe", "compact", "--overwrite",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr


def test_the_core_names_the_extra_that_a_command_needs(fresh, bench_fixtures):
    done = python(fresh, "-m", "contam", "audit", "run", bench_fixtures / "AUDIT.toml")
    assert done.returncode != 0
    assert "[audit]" in done.stderr


def test_the_archives_hold_what_they_promise(dist, repository):
    with zipfile.ZipFile(only(dist, "contam-*.whl")) as wheel:
        names = set(wheel.namelist())
    assert "contam/py.typed" in names
    assert any(name.startswith("contam/index/recipes/") for name in names)
    assert {name.split("/")[0] for name in names} == {
        "contam",
        f"contam-{contam.__version__}.dist-info",
    }
    with tarfile.open(only(dist, "contam-*.tar.gz")) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    kept = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z"], capture_output=True, text=True
    )
    if kept.returncode == 0:
        # What only the forge and the CI read need not be shipped.
        left_out = {n for n in kept.stdout.split("\0") if n} - inside
        assert {name.split("/")[0] for name in left_out} <= {".ci", ".gitattributes", ".github"}, (
            left_out
        )
