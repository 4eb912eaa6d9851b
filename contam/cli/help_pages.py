"""Lay out help: commands in groups by what a reader wants, two examples on every page."""

from __future__ import annotations

import re
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperGroup

if TYPE_CHECKING:
    import typer

_END: Final = re.compile(r"[;:.](?=\s|$)")
"""What ends the line about a command in the list of all."""


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


class GroupedHelp(TyperGroup):
    """Lists the commands under the headings that they were given."""

    # Both are classes of click, or of the copy of it that newer versions of typer have.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write a section for each heading, all with the same indent."""
        longest = max(map(len, self.commands))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            said = _END.split(command.help or "", maxsplit=1)[0]
            panels.setdefault(getattr(command, "rich_help_panel", ""), []).append(
                (name.ljust(longest), said)
            )
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)
