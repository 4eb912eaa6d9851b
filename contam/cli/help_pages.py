"""Lay out help: commands in groups by what a reader wants, two examples on every page."""

from __future__ import annotations

from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperGroup

if TYPE_CHECKING:
    import typer


def add_examples(app: typer.Typer) -> None:
    """Show the examples that docstrings end with below the options of every command of an app."""
    for command in app.registered_commands:
        text, _, examples = (getdoc(command.callback) or "").partition("\n\nExamples:\n")
        command.help = text
        # The mark keeps the lines as they are.
        command.epilog = "\n".join(["\b", "Examples:", *map(str.strip, examples.splitlines())])
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance)


GROUPS: Final = {
    "Find what a corpus contains": (
        "items", "scan", "plan", "merge", "query", "index", "show", "sql", "policies", "warm",
    ),
    "Take it out of a corpus": ("clean",),
    "Score models on clean items": ("logs", "rescore", "export", "annotate", "study"),
    "Serve answers, and ask for them": ("serve", "keys", "check"),
    "Sign off a release": ("audit", "review"),
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
