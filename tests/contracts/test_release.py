"""What a release says of itself agrees, and the forge's workflow runs what our CI runs."""

import re
import tomllib

import pytest

import contam
from tests.cli.processes import python

yaml = pytest.importorskip("yaml")

_VERSION = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d{2}-\d{2})$", re.MULTILINE)


@pytest.fixture(scope="module")
def version(repository):
    """The one place that says it."""
    return tomllib.loads((repository / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def workflow(repository):
    return yaml.safe_load((repository / ".github" / "workflows" / "ci.yml").read_text())


def test_the_version_is_said_once(repository, version):
    assert contam.__version__ == version
    for path in (repository / "contam").rglob("*.py"):
        assert f'"{version}"' not in path.read_text(encoding="utf-8"), path


def test_the_newest_heading_of_the_changelog_is_this_version(repository, version):
    text = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = _VERSION.findall(text)
    # Every heading of a version has the one form.
    assert len(headings) == len(re.findall(r"^## ", text, re.MULTILINE))
    assert headings[0][0] == version
    numbers = [tuple(map(int, number.split("."))) for number, _ in headings]
    assert numbers == sorted(set(numbers), reverse=True)
    assert all(date != "unreleased" for _, date in headings[1:])


def test_the_workflow_runs_every_stage_of_our_ci_that_needs_no_labelled_data(repository, workflow):
    script = (repository / ".ci" / "run").read_text()
    stages = {
        name
        for line in re.findall(r"^ *checks=\((.*)\)$", script, re.MULTILINE)
        for name in line.split()
    }
    check = workflow["jobs"]["check"]["strategy"]["matrix"]
    ran = {*check["target"], *(more["target"] for more in check["include"])}
    ran |= set(re.findall(r"make ([a-z]+)", str(workflow["jobs"]["container"]["steps"])))
    assert ran == stages - {"quality"}


def test_the_workflow_tries_every_python_that_we_name(repository, workflow):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"])))
    matrix = workflow["jobs"]["check"]["strategy"]["matrix"]
    assert {*matrix["python"], *(more["python"] for more in matrix["include"])} == named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("vendor.github-workflows", ".github/workflows/ci.yml"),
        ("vendor.github-workflows", ".github/workflows/names.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_a_file_for_the_forge_fits_its_schema(repository, schema, name):
    pytest.importorskip("check_jsonschema", reason="pip install '.[service]'")
    done = python("-m", "check_jsonschema", "--builtin-schema", schema, repository / name)
    assert done.returncode == 0, done.stdout + done.stderr
