"""What CI and the image install is pinned, by hash, and fits what pyproject.toml allows."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.cli.processes import python

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {
    "image": ("serve",),
    "dev": ("dev", "service", "docs", "release"),
    "harness": ("dev", "harness", "release"),
    "ray": ("dev", "ray", "release"),
    "lowest": ("dev", "release"),
}
_PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==(\S+)", re.IGNORECASE)


def wanted(extras):
    """Every requirement of the project with these extras, and with those that they bring."""
    optional = PROJECT["project"]["optional-dependencies"]
    found = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    todo = list(extras)
    while todo:
        for requirement in map(Requirement, optional[todo.pop()]):
            if requirement.name == PROJECT["project"]["name"]:
                todo += requirement.extras
            else:
                found.append(requirement)
    return found


def pins(name):
    """Package -> its versions, one for each platform or Python that needs another."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements" / f"{name}.txt").read_text()):
        if entry.startswith("#"):
            continue
        package, version = _PIN.match(entry).groups()
        assert "--hash=sha256:" in entry, entry
        found.setdefault(canonicalize_name(package), []).append(Version(version))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_dependency_is_pinned_to_a_release_that_the_project_allows(name):
    found = pins(name)
    for requirement in wanted(LOCKS[name]):
        versions = found[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in versions), requirement


def test_the_lowest_lock_holds_the_lower_bounds_themselves():
    found = pins("lowest")
    for requirement in wanted(LOCKS["lowest"]):
        lowest = max(Version(one.version) for one in requirement.specifier if one.operator == ">=")
        (version,) = found[canonicalize_name(requirement.name)]
        # A bound names a release series: the oldest of it that was published.
        assert version.release[: len(lowest.release)] == lowest.release, requirement


def test_what_builds_the_package_is_pinned():
    (builder,) = (Requirement(line) for line in PROJECT["build-system"]["requires"])
    for name in ("build", "dev", "harness", "ray", "lowest"):
        assert all(version in builder.specifier for version in pins(name)[builder.name])


def test_the_image_is_built_on_one_image_known_by_its_digest_and_from_locks():
    text = (ROOT / "service" / "Containerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    (base,) = re.findall(r"^ARG BASE=(.*)$", text, re.MULTILINE)
    assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", base)
    for line in re.findall(r"pip install (.*?)(?: && |$)", text, re.MULTILINE):
        assert line.startswith(("--require-hashes -r requirements/", "--no-deps /wheels/")), line


def test_nothing_installs_contam_from_a_package_index():
    texts = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.yml")]
    for room in ("contam", "service", "docs", "tests", "benchmarks"):
        texts += [
            path for path in (ROOT / room).rglob("*") if path.suffix in {".md", ".py", ".ipynb"}
        ]
    assert len(texts) > 400
    for path in texts:
        assert not re.search(r"pip install ['\"]?contam\b(?!/)", path.read_text()), path


@pytest.mark.slow
def test_a_release_lists_all_that_the_image_installs(tmp_path):
    pytest.importorskip("cyclonedx_py", reason="pip install '.[release]'")
    (recipe,) = re.findall(
        r"\$\(BIN\)/cyclonedx-py (requirements (?:.*\\\n)*.*)\n", (ROOT / "Makefile").read_text()
    )
    arguments = recipe.replace("\\\n", " ").replace("dist/", f"{tmp_path}/").split()
    done = python("-m", "cyclonedx_py", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    listed = json.loads((tmp_path / "contam.cdx.json").read_text())["components"]
    found = {(canonicalize_name(one["name"]), Version(one["version"])) for one in listed}
    assert found == {
        (name, version) for name, versions in pins("image").items() for version in versions
    }
