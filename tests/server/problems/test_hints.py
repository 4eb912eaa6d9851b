"""Whatever goes wrong, callers are told a way out that they can go: nothing for a command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import contam
from contam import errors
from contam.server.problems import failures
from contam.server.problems.hints import HINTS, hint_for

HOME = Path(contam.__file__).parent
#: Whose failures reach callers: the library without what only the command line or an audit calls.
LIBRARY = ("benchmark", "corpus", "detect", "files", "index", "rescore", "tables", "text")
CLI = re.compile(r"(?<![\w-])--[a-z]|\bcontam (scan|query|index|show|policies|serve|rescore)\b")
OTHER_PROGRAMS = re.compile(r"--(log_samples|no-log-samples|save-details)")


def keywords(folder: Path, name: str) -> set[str]:
    """The texts given under a name in any call, as far as they are written out."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            given = node.keywords if isinstance(node, ast.Call) else ()
            for one in given:
                if one.arg == name:
                    found |= written(one.value)
    return found


def written(value: ast.expr) -> set[str]:
    """A text with a letter for each part that is only known when it runs; both of two choices."""
    if isinstance(value, ast.Constant):
        return {value.value} if isinstance(value.value, str) else set()
    if isinstance(value, ast.IfExp):
        return written(value.body) | written(value.orelse)
    if isinstance(value, ast.JoinedStr):
        pieces = (one.value if isinstance(one, ast.Constant) else "X" for one in value.values)
        return {"".join(map(str, pieces))}
    return set()


def classes(*modules: object) -> set[str]:
    """Codes of the error classes in these modules."""
    return {one.code for module in modules for one in vars(module).values() if is_error(one)}


def is_error(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, errors.ContamError)


def test_every_code_of_a_problem_or_a_failed_job_has_a_hint():
    from contam.server.jobs import model, worker

    codes = set(failures.STATUS) | {code for code, _ in failures._OF_STATUS.values()}
    codes |= keywords(HOME / "server", "code") - {""}
    codes |= classes(errors, model)
    codes |= {worker._DEFECT["code"], "worker-crashed", "job-time", "memory"}
    assert len(codes) > 60
    assert codes - HINTS.keys() == set()


@pytest.mark.parametrize("code", sorted(HINTS))
def test_a_hint_says_something_that_can_be_done_over_http(code):
    assert len(HINTS[code]) > 10
    assert not CLI.search(HINTS[code])
    assert hint_for(code, "") == HINTS[code]


def test_what_the_library_advises_is_told_in_terms_of_the_api():
    hints = {hint for name in LIBRARY for hint in keywords(HOME / name, "hint")}
    assert len(hints) > 60
    assert any("--map" in hint for hint in hints)
    for hint in hints:
        told = hint_for("benchmark", hint)
        assert told
        assert not CLI.search(OTHER_PROGRAMS.sub("", told)), hint


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("name it, for example --map question=FIELD", 'name it, for example options.mapping: {"question": "FIELD"}'),
        ("a field per choice: --map choices=A+B", 'a field per choice: options.mapping: {"choices": "A+B"}'),
        ("--map id=FIELD, or --map id= (none)", 'options.mapping: {"id": "FIELD"}, or options.mapping: {"id": ""} (none)'),
        ("name it: --columns score=COLUMN,id=COLUMN (or else)", 'name it: options.columns: {"score": "COLUMN", "id": "COLUMN"} (or else)'),
        ("--allow-partial scores what is there", "options.allow_partial scores what is there"),
        ("make them with `contam hash` and the recipe of the index",) * 2,
        ("name the rows: lm-eval writes them under --log_samples",) * 2,
        ("give --index NAME or --index DIR", HINTS["usage"]),
        ("`contam policies` lists them", HINTS["usage"]),
        ("nothing is quoted under --no-text", HINTS["usage"]),
    ],
)  # fmt: skip
def test_options_are_named_as_requests_have_them(said, told):
    assert hint_for("usage", said) == told


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nowhere", 404),
        ("PUT", "/v1/check", 405),
        ("GET", "/v1/jobs/none", 404),
        ("GET", "/v1/documents/small/none", 404),
        ("GET", "/v1/documents/small/none?start=3&end=1", 422),
        ("GET", "/v1/jobs?limit=0", 422),
    ],
)
def test_a_problem_comes_with_a_hint(client, method, path, status):
    reply = client.request(method, path)
    assert reply.status_code == status
    assert reply.json()["hint"]
