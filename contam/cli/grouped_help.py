"""Group the commands of `contam --help` by what a reader wants."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

GROUPS: Final = {
    "Find what a corpus contains": (
        "scan", "plan", "merge", "query", "index", "show", "sql", "dupes", "policies", "warm",
    ),
    "Take it out of a corpus": ("clean",),
    "Score models on clean items": ("logs", "items", "rescore", "export", "annotate", "study"),
    "Serve answers, and ask for them": ("serve", "keys", "check", "hash"),
    "Sign off a release": ("audit", "review", "judge", "watch"),
}  # fmt: skip


class GroupedHelp(TyperGroup):
    """Lists the commands under headings."""

    # Both are classes of click, or of the copy of it that newer versions of typer have.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write a section for each group, all with the same indent."""
        longest = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    (name.ljust(longest), self.commands[name].get_short_help_str(100))
                    for name in names
                )
