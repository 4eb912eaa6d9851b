"""An error is told whole to who may know all, and without private facts to everybody else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam import errors
from contam.corpus.columns import select_columns
from contam.corpus.documents import read_documents
from contam.corpus.shards import survey
from contam.errors import (
    BenchmarkError,
    CorpusError,
    LogError,
    Names,
    Place,
    Plain,
    Public,
    ShardError,
    Statement,
)
from contam.server.problems import INSIDE, LOOK, tell

UNPUBLISHED = "What is the airspeed of an unladen swallow?"

#: A template, its facts, and what is told: all of it, nothing quoted, no folder.
CASES = (
    ("{}:{}: no field {!r} for the {}", (Path("/srv/a/items.jsonl"), 3, "q", Public("answer")),
        "/srv/a/items.jsonl:3: no field 'q' for the answer",
        "/srv/a/items.jsonl:3: no field '...' for the answer",
        "items.jsonl:3: no field 'q' for the answer"),
    ("{}: among {}", (Place("/srv/a.csv:2"), Names(["a", "b", "c"], 2)),
        "/srv/a.csv:2: among 'a', 'b' and 1 more", "/srv/a.csv:2: among '...', '...', '...'",
        "a.csv:2: among 'a', 'b' and 1 more"),
    ("{}: {}", (Path("logs/run/x.jsonl"), Statement("item {} at {:,}", UNPUBLISHED, 1234)),
        f"logs/run/x.jsonl: item {UNPUBLISHED} at 1,234", "logs/run/x.jsonl: item '...' at 1,234",
        f"logs/run/x.jsonl: item {UNPUBLISHED} at 1,234"),
    ("{}", (Plain("the file is empty"),), *["the file is empty"] * 3),
    ("{}", (Plain(f"'{UNPUBLISHED}'"),), f"'{UNPUBLISHED}'", "'...'", f"'{UNPUBLISHED}'"),
    ("{}", (Plain("see /srv/a"),), "see /srv/a", "see /srv/a", "'...'"),
    ("{{}} of {}", (ValueError(UNPUBLISHED),), f"{{}} of {UNPUBLISHED}", "{} of '...'",
        f"{{}} of {UNPUBLISHED}"),
)  # fmt: skip


@pytest.mark.parametrize(("template", "facts", "whole", "unquoted", "no_folder"), CASES)
def test_a_fact_is_told_to_whom_its_type_allows(template, facts, whole, unquoted, no_folder):
    said = Statement(template, *facts)
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
    said = Statement(" ".join(["{}"] * len(facts)), *facts)
    if nested:
        said = Statement("{why}", why=said)
    assert UNPUBLISHED not in str(said.without_quotes())
    error = BenchmarkError(said, hint=Statement("known: {}", UNPUBLISHED)).without_quotes()
    assert UNPUBLISHED not in f"{error} {error.message} {error.hint}"
    assert not any(UNPUBLISHED in str(arg) for arg in error.args)


name = st.text(st.characters(categories=["L", "N"], include_characters="._-"), min_size=1).filter(
    lambda one: one not in {".", ".."}
)


@given(st.lists(name, min_size=2, max_size=6), st.sampled_from([Path, Place]))
def test_of_a_path_outside_the_home_only_the_last_name_is_told(steps, kind):
    path = f"/{'/'.join(steps)}"
    said = Statement("{}: it is gone", kind(path))
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
        hint=Statement("columns there: {}", Names([UNPUBLISHED, "id"])),
    )  # fmt: skip
    message, hint = tell(error, Path("/job"))
    assert message == (
        "logs/a.jsonl:7: item '...' stands here again, 3 names that are not repeated here"
    )
    assert hint == "columns there: 2 names that are not repeated here"
    assert UNPUBLISHED in error.message
    assert UNPUBLISHED in error.hint
    assert set(INSIDE) == {
        "corpus",
        "shard",
        "incomplete",
        "index-damaged",
        "index-unreachable",
        "index-busy",
    }


#: The name and the bytes of a shard that cannot be read, and what callers of the service hear.
BROKEN = (
    ("a.jsonl", b"[1]\n", "a.jsonl, line 1: a JSON list, not an object"),
    ("a.jsonl", b'{"text": "a"', "a.jsonl, line 1: not JSON: "),
    ("a.csv", b"text,text\na,b\n", "a.csv, line 1: the header names 'text' twice"),
    ("a.csv", b"text\na", "a.csv, line 2: ends without a line break, and may have been cut"),
    ("a.tsv", b"\n", "a.tsv: no header"),
    ("a.warc.wet", b"WARC/1.0\r\n\r\n", "a.warc.wet, record 1: no WARC-Type"),
    ("a.parquet", b"PAR1", "a.parquet: cannot be read: not a Parquet file, or cut off"),
    ("a.arrow", b"ARROW1", "a.arrow: cannot be read: "),
    ("a.jsonl.gz", b"\x1f\x8b\x08", "a.jsonl.gz: gzip data ends in the middle"),
    ("a.jsonl.gz", b"text", "a.jsonl.gz: named as gzip but not that"),
    ("a.jsonl.part", b"", "a.jsonl.part: an unfinished download or copy"),
    ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", "a.csv is a Git LFS pointer"),
)


@pytest.mark.parametrize(("name", "data", "said"), BROKEN)
def test_callers_of_the_service_hear_what_is_wrong_with_a_shard_and_not_where_it_lies(
    tmp_path, name, data, said
):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_bytes(data)
    shard = survey([tmp_path])[0][0]
    with pytest.raises(ShardError) as caught:
        read_documents(shard, select_columns(shard), range(3))
    assert caught.value.message.startswith(f"deep/{said}")
    assert caught.value.shard == shard.name
    message, hint = tell(caught.value)
    assert message.startswith(f"deep/{said}")
    assert str(tmp_path) not in message + hint


def test_callers_of_the_service_hear_of_a_place_without_a_corpus_by_its_last_name(tmp_path):
    (tmp_path / "notes.log").write_text("text")
    for place, said in (
        (tmp_path / "gone", "gone: no such file or folder"),
        (tmp_path / "*.csv", "*.csv: no file matches"),
        (
            tmp_path,
            f"no corpus shard found: {tmp_path.name}; files seen: notes.log (unsupported format",
        ),
    ):
        with pytest.raises(CorpusError) as caught:
            survey([place])
        assert str(place) in caught.value.message
        assert tell(caught.value)[0].startswith(said)


def test_a_shard_has_its_name_also_in_what_a_library_said_of_its_place():
    reason = Statement("{}, {}", Plain("cannot open /srv/c4/a.csv"), 7)
    error = ShardError("{shard}: row {}: {}", 3, reason, shard="/srv/c4/a.csv")
    assert error.message == "/srv/c4/a.csv: row 3: cannot open /srv/c4/a.csv, 7"
    named = error.renamed("/srv/c4/a.csv", "c4/a.csv")
    assert named.message == "c4/a.csv: row 3: cannot open c4/a.csv, 7"
    assert tell(named)[0] == "c4/a.csv: row 3: '...', 7"


ERRORS = {name for name, each in vars(errors).items() if hasattr(each, "exit_code")}


@pytest.mark.parametrize(
    "package", ["audit", "benchmark", "corpus", "detect", "files", "index", "tables", "text"]
)
def test_readers_of_files_give_facts_and_no_finished_sentences(package):
    finished = [
        f"{module}:{call.lineno}"
        for module in (Path(errors.__file__).parent / package).rglob("*.py")
        for call in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") in {*ERRORS, "RowError"} - {"InternalError"}
        and any(
            isinstance(said, ast.JoinedStr)
            for said in (*call.args[:1], *(kw.value for kw in call.keywords if kw.arg == "hint"))
        )
    ]
    assert finished == []


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("check the path", "check the path"),
        ("leave it out, or --skip-damaged", "leave it out, or --skip-damaged"),
        (Statement("--columns score={}", UNPUBLISHED), "--columns score='...'"),
        ("run `contam index verify`", LOOK),
        ((Statement("run `contam items`"), Statement("mend it first")), "mend it first"),
    ],
)
def test_callers_of_the_service_hear_ways_out_that_they_can_take(hint, told):
    assert tell(LogError("it failed", hint=hint))[1] == told
