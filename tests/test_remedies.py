"""Every remedy has a sentence for callers of each interface, in that interface's own words."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from contam import cli, errors, server
from contam.cli import remedies as on_the_command_line
from contam.cli.main import COMMANDS
from contam.errors import ContamError
from contam.remedies import Own, Remedy
from contam.server.jobs import model
from contam.server.problems import failures
from contam.server.problems import remedies as over_http
from contam.server.problems.remedies import BY_CODE, hint_for

TABLES = {cli: on_the_command_line.SENTENCES, server: over_http.SENTENCES}
OWN = {remedy for remedy in Remedy if isinstance(remedy.value, Own)}
#: Options of other programs, and a command of ours that prepares what the service is sent.
OTHERS = re.compile(r"--(log_samples|no-log-samples|save-details|samples|dump-eval-details)\b")
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(rf"\bcontam ({'|'.join(set(COMMANDS) - {'hash', 'keys'})})\b")
#: Packages that are called through any interface.
LIBRARY = (
    "audit", "benchmark", "corpus", "detect", "files", "index", "rescore", "study",
    "tables", "text",
)  # fmt: skip
REQUEST = re.compile(r"\boptions\.|\b(GET|POST) /")


def facts(sentence: str) -> set[str]:
    """Names of the facts that a sentence has gaps for."""
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("table", TABLES.values(), ids=["cli", "server"])
def test_an_interface_has_a_sentence_for_every_remedy_that_is_not_said_alike_to_all(table):
    assert set(table) == OWN
    assert len(OWN) > 60


@pytest.mark.parametrize("remedy", Remedy)
def test_every_sentence_of_a_remedy_is_told_with_the_facts_of_the_first(remedy):
    known = facts(remedy.value)
    for table in ({}, *TABLES.values()):
        sentence = table.get(remedy, remedy.value)
        assert facts(sentence) <= known
        advice = remedy(**dict.fromkeys(known, "SOMETHING"))
        told = ContamError("it failed", remedy=advice).hint_of(table)
        assert told
        assert "{{" not in told
        assert ("SOMETHING" in told) == bool(facts(sentence))


@pytest.mark.parametrize("remedy", Remedy)
def test_no_interface_is_spoken_of_where_others_hear_it(remedy):
    for table in ({}, over_http.SENTENCES):
        sentence = OTHERS.sub("", table.get(remedy, remedy.value))
        assert not FLAG.search(sentence)
        assert not COMMAND.search(sentence)
    for table in ({}, on_the_command_line.SENTENCES):
        assert not REQUEST.search(table.get(remedy, remedy.value))


@pytest.mark.parametrize("remedy", [Remedy.MAP_ID, Remedy.RETIRE_SHARD_FIRST(shard="a")])
def test_an_error_has_the_sentence_of_who_asks(remedy):
    error = ContamError("it failed", remedy=remedy)
    told = {error.hint, *(error.hint_of(table) for table in TABLES.values())}
    assert len(told) == 3
    assert on_the_command_line.hint(error) == error.hint_of(on_the_command_line.SENTENCES)


def test_several_remedies_are_told_one_after_the_other():
    first = ContamError("it failed", remedy=Remedy.CHECK_PATH_AND_RIGHTS)
    error = ContamError("it failed", remedy=(*first.remedies, *first.remedies))
    assert error.hint == "check the path and its rights; check the path and its rights"


def codes(*modules: object) -> set[str]:
    """Codes of the error classes in these modules."""
    found = [var for module in modules for var in vars(module).values() if isinstance(var, type)]
    return {one.code for one in found if issubclass(one, ContamError)}


def test_every_code_of_a_problem_or_a_failed_job_has_a_hint():
    known = set(failures.STATUS) | {code for code, _ in failures._OF_STATUS.values()}
    known |= codes(errors, model)
    assert len(known) > 30
    assert known - BY_CODE.keys() == set()


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_a_hint_of_a_code_says_something_that_can_be_done_over_http(code):
    assert len(BY_CODE[code]) > 10
    assert not FLAG.search(BY_CODE[code])
    assert not COMMAND.search(BY_CODE[code])
    assert hint_for(code, "") == BY_CODE[code]


@pytest.mark.parametrize("package", LIBRARY)
def test_the_library_has_remedies_and_the_interfaces_the_words(package):
    modules = list((Path(errors.__file__).parent / package).rglob("*.py"))
    assert modules
    assert [
        module.name for module in modules if re.search(r"\bhint=\(?f?[\"']", module.read_text())
    ] == []
