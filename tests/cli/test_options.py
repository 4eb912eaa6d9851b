import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.cli.options import spread_values
from contam.cli.results import parse_share
from contam.corpus.formats.registry import FORMATS
from contam.errors import UsageError
from contam.rescore.logs.read import READERS
from tests.cli.processes import contam_here

OPTIONS = ("--corpus", "--benchmark")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("scan --corpus a b --out o", "scan --corpus a --corpus b --out o"),
        ("--corpus a --corpus b", "--corpus a --corpus b"),
        ("--corpus a b --benchmark c d", "--corpus a --corpus b --benchmark c --benchmark d"),
        ("--corpus=a b --out o", "--corpus a --corpus b --out o"),
        ("--corpus a=b c", "--corpus a=b --corpus c"),
        ("--corpus a -q", "--corpus a -q"),
        ("--corpus a - b", "--corpus a --corpus - --corpus b"),
        ("--corpus a -- --corpus b c", "--corpus a -- --corpus b c"),
        ("--corpus-name a b", "--corpus-name a b"),
        ("--out=--corpus x", "--out=--corpus x"),
        ("", ""),
    ],
)
def test_every_word_after_an_option_is_its_value(typed, meant):
    assert spread_values(typed.split(), OPTIONS) == meant.split()


@pytest.mark.parametrize("typed", ["--corpus", "--corpus --out o", "--corpus -- a", "--corpus -q"])
def test_an_option_without_a_value_is_refused(typed):
    with pytest.raises(UsageError, match="--corpus"):
        spread_values(typed.split(), OPTIONS)


@given(st.lists(st.sampled_from(["a", "b c", "--x", "--corpus v", "--benchmark=w", "-q", "é"])))
def test_spreading_twice_changes_nothing(words):
    line = [word for group in words for word in group.split()]
    once = spread_values(line, OPTIONS)
    assert spread_values(once, OPTIONS) == once


@pytest.mark.parametrize("command", ["logs", "rescore"])
def test_help_lists_every_tool_whose_logs_are_read(command):
    # Written by hand, since importing the readers would make every `--help` wait.
    text = "".join(contam_here(command, "--help").stdout.split())
    kinds = ("samples", "results", "details", "reports")
    titles = [reader.title for reader in READERS if reader.title]
    names = ["".join(word for word in title.split() if word not in kinds) for title in titles]
    assert [name for name in [*names, "tables"] if name not in text] == []


@pytest.mark.parametrize("command", [("scan",), ("index", "build")])
def test_help_lists_every_corpus_format(command):
    text = " ".join(contam_here(*command, "--help").stdout.split())
    assert [one.title for one in FORMATS if one.title.split()[0] not in text] == []


SLURM = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": "9"}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("1/1", {}, (0, 1)),
        ("7/256", {}, (6, 256)),
        ("256/256", {}, (255, 256)),
        ("auto", SLURM, (6, 9)),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_MIN": "0"}, (7, 9)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "2"}, (0, 2)),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_STEP": "2"}, (3, 9)),
        ("auto/9", SLURM, (6, 9)),
        ("auto/64", {"JOB_COMPLETION_INDEX": "0"}, (0, 64)),
        ("auto/64", {"JOB_COMPLETION_INDEX": "63"}, (63, 64)),
    ],
)
def test_a_worker_knows_its_number(text, environment, expected):
    assert parse_share(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("7/5", {}),
        ("0/5", {}),
        ("0/0", {}),
        ("-1/5", {}),
        ("5", {}),
        ("", {}),
        ("1/2/3", {}),
        ("a/b", {}),
        ("auto", {}),
        ("auto/x", SLURM),
        ("auto/100", SLURM),
        # Of tasks 7, 8 and 12, submitted again.
        (
            "auto",
            SLURM
            | {
                "SLURM_ARRAY_TASK_ID": "12",
                "SLURM_ARRAY_TASK_MIN": "7",
                "SLURM_ARRAY_TASK_COUNT": "3",
            },
        ),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_ID": "x"}),
        ("auto", {"SLURM_ARRAY_TASK_ID": "1"}),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_ID": "10"}),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_ID": "0"}),
        ("auto", {"JOB_COMPLETION_INDEX": "3"}),
        ("auto/3", {"JOB_COMPLETION_INDEX": "3"}),
        ("auto/3", {"JOB_COMPLETION_INDEX": ""}),
    ],
)
def test_a_number_that_cannot_be_is_refused(text, environment):
    with pytest.raises(UsageError) as caught:
        parse_share(text, environment)
    assert caught.value.hint
