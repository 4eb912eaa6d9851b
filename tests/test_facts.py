"""An error is told whole to who may know all, and without private facts to everybody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import BenchmarkError, LogError, Names, Place, Plain, Public, Remedy, Statement
from contam.server.problems.telling import INSIDE, tell

UNPUBLISHED = "What is the airspeed of an unladen swallow?"

#: A template, its facts, and what is told: all of it, nothing quoted, no folder.
CASES = (
    (
        "{}:{}: no field {!r} for the {}",
        (Path("/srv/a/items.jsonl"), 3, "q", Public("answer")),
        "/srv/a/items.jsonl:3: no field 'q' for the answer",
        "/srv/a/items.jsonl:3: no field '...' for the answer",
        "items.jsonl:3: no field 'q' for the answer",
    ),
    (
        "{}: among {}",
        (Place("/srv/a.csv:2"), Names(["a", "b", "c"], 2)),
        "/srv/a.csv:2: among 'a', 'b' and 1 more",
        "/srv/a.csv:2: among '...', '...', '...'",
        "a.csv:2: among 'a', 'b' and 1 more",
    ),
    (
        "{}: {}",
        (Path("logs/run/x.jsonl"), Statement("item {} at {:,}", (UNPUBLISHED, 1234))),
        f"logs/run/x.jsonl: item {UNPUBLISHED} at 1,234",
        "logs/run/x.jsonl: item '...' at 1,234",
        f"logs/run/x.jsonl: item {UNPUBLISHED} at 1,234",
    ),
    ("{}", (Plain("the file is empty"),), *["the file is empty"] * 3),
    ("{}", (Plain(f"'{UNPUBLISHED}'"),), f"'{UNPUBLISHED}'", "'...'", f"'{UNPUBLISHED}'"),
    ("{}", (Plain("see /srv/a"),), "see /srv/a", "see /srv/a", "'...'"),
    (
        "{{}} of {}",
        (ValueError(UNPUBLISHED),),
        f"{{}} of {UNPUBLISHED}",
        "{} of '...'",
        f"{{}} of {UNPUBLISHED}",
    ),
)


@pytest.mark.parametrize(("template", "facts", "whole", "unquoted", "no_folder"), CASES)
def test_a_fact_is_told_to_whom_its_type_allows(template, facts, whole, unquoted, no_folder):
    said = Statement(template, facts)
    assert str(said) == whole
    assert str(said.without_quotes()) == unquoted
    assert str(said.without_folders()) == no_folder


class Unheard:
    """A fact of a type that nobody thought of."""

    def __str__(self) -> str:
        return UNPUBLISHED


PRIVATE = st.sampled_from(
    [UNPUBLISHED, UNPUBLISHED.encode(), Unheard(), [UNPUBLISHED], ValueError(UNPUBLISHED)]
)
SHOWN = st.one_of(st.integers(), st.floats(), st.builds(Public, st.text()), st.just(Path("/a/b")))


@given(st.lists(st.one_of(PRIVATE, SHOWN), min_size=1), st.booleans())
def test_what_is_not_said_to_be_public_is_never_told(facts, nested):
    said = Statement(" ".join(["{}"] * len(facts)), tuple(facts))
    if nested:
        said = Statement("{why}", named={"why": said})
    assert UNPUBLISHED not in str(said.without_quotes())
    error = BenchmarkError(said, remedy=Remedy.CHOOSE_KNOWN(known=UNPUBLISHED)).without_quotes()
    assert UNPUBLISHED not in f"{error} {error.message} {error.hint} {error.hint_of({})}"
    assert not any(UNPUBLISHED in str(arg) for arg in error.args)


name = st.text(st.characters(categories=["L", "N"], include_characters="._-"), min_size=1).filter(
    lambda one: one not in {".", ".."}
)


@given(st.lists(name, min_size=2, max_size=6), st.sampled_from([Path, Place]))
def test_of_a_path_outside_the_home_only_the_last_name_is_told(steps, kind):
    path = f"/{'/'.join(steps)}"
    said = Statement("{}: it is gone", (kind(path),))
    assert str(said.without_folders()) == f"{steps[-1]}: it is gone"
    home = Path(path).parent.parent
    within = "/".join(steps[-2:])
    assert str(said.without_folders(home)) == f"{within}: it is gone"


@pytest.mark.parametrize("message", [f"'{UNPUBLISHED}' is no item", "cannot read /srv/keys.db"])
@pytest.mark.parametrize("kind", [BenchmarkError, LogError])
def test_callers_of_the_service_hear_nothing_of_a_message_without_facts_that_may_hold_some(
    kind, message
):
    told, hint = tell(kind(message))
    assert told == "what was sent cannot be used"
    assert hint


def test_callers_of_the_service_hear_what_a_log_lacks_and_not_what_it_says():
    error = LogError(
        "{}:{}: item {} stands here again, {}", Path("/job/logs/a.jsonl"), 7, UNPUBLISHED, Names("abc"),
        remedy=Remedy.CHOOSE_AMONG_COLUMNS(columns=Names([UNPUBLISHED, "id"])),
    )  # fmt: skip
    message, hint = tell(error, Path("/job"))
    assert message == (
        "logs/a.jsonl:7: item '...' stands here again, 3 names that are not repeated here"
    )
    assert hint == "columns there: 2 names that are not repeated here"
    assert UNPUBLISHED in error.message
    assert UNPUBLISHED in error.hint
    assert set(INSIDE) == {"corpus", "shard", "incomplete", "index-damaged", "index-busy"}
