"""Read evaluation logs into one shape: `read_logs`, `self_check`, `find_groups`."""

from contam.rescore.logs.aggregate import TaskGroup, find_groups
from contam.rescore.logs.model import GroupClaim, Log, LoggedItem, ScoreColumn, self_check
from contam.rescore.logs.read import LogFiles, find_logs, read_logs

__all__ = [
    "GroupClaim",
    "Log",
    "LogFiles",
    "LoggedItem",
    "ScoreColumn",
    "TaskGroup",
    "find_groups",
    "find_logs",
    "read_logs",
    "self_check",
]
