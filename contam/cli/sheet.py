"""Print tables that stay complete on a narrow terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

_UNBOUNDED = 1 << 16
_INDENT = "  "
_LEAST_RULE = 4


class Sheet:
    """Rows of names, to the left, and numbers; rich prints it.

    As a table where that fits, or as a closer one with headings of two lines; else one record below
    the other.

    grouped  a table shows the first name only where it is another than in the row above
    """

    def __init__(
        self, names: Sequence[str], numbers: Sequence[str], *, grouped: bool = False
    ) -> None:
        self._names = tuple(names)
        self._numbers = tuple(numbers)
        self._grouped = grouped
        self._rows: list[tuple[tuple[str, ...], tuple[Text, ...]]] = []

    def add(self, names: Sequence[str], numbers: Sequence[Text | str]) -> None:
        """Add a row: a name and a number, "" for none, for each heading."""
        from rich.text import Text

        texts = tuple(number if isinstance(number, Text) else Text(number) for number in numbers)
        self._rows.append((tuple(names), texts))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """What fits into the width of the console."""
        wide = options.update(max_width=_UNBOUNDED)
        for tall in (False, True):
            table = self._table(tall=tall)
            if console.measure(table, options=wide).maximum <= options.max_width:
                yield table
                return
        yield from self._records(options.max_width)

    def _table(self, *, tall: bool) -> Table:
        from contam.cli.render import new_table

        table = new_table(*self._names)
        table.collapse_padding = tall
        for heading in self._numbers:
            shown = heading.replace(" ", "\n") if tall else heading
            table.add_column(shown, justify="right", no_wrap=True)
        above = ""
        for names, numbers in self._rows:
            first = "" if self._grouped and names[0] == above else names[0]
            above = names[0]
            table.add_row(first, *names[1:], *numbers)
        return table

    def _records(self, width: int) -> Iterator[Text]:
        from rich.text import Text

        for names, numbers in self._rows:
            known = zip(self._names, names, strict=True)
            yield from _filled([Text(f"{heading} {name}") for heading, name in known], width, "")
            known_numbers = zip(self._numbers, numbers, strict=True)
            pairs = [
                Text(f"{heading} ").append(number)
                for heading, number in known_numbers
                if number.plain
            ]
            yield from _filled(pairs, width, _INDENT)


def _filled(pieces: Sequence[Text], width: int, indent: str) -> Iterator[Text]:
    """Lines of whole pieces, two blanks between them; only what is wider than a line is folded."""
    from rich.text import Text

    line = Text(indent, overflow="fold")
    for piece in pieces:
        filled = line.cell_len > len(indent)
        if filled and line.cell_len + 2 + piece.cell_len > width:
            yield line
            line, filled = Text(_INDENT, overflow="fold"), False
        line.append("  " if filled else "").append(piece)
    yield line


class Title:
    """A name in a line across the page; on lines of its own where it would be cut."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """The line, as wide as the console."""
        from rich.rule import Rule
        from rich.text import Text

        name = Text(self._name, style="bold", overflow="fold")
        fits = name.cell_len + _LEAST_RULE <= options.max_width
        yield Rule(name, align="left") if fits else name
