"""`--shard`, as a user and a scheduler give it."""

from __future__ import annotations

import pytest

from contam.cli.shares import parse_share
from contam.errors import UsageError

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
