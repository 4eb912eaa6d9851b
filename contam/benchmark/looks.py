"""Look at the rows of a file before any is read: which of its texts tell them apart?

A column is known by more than its name: a question that several rows share is a template, and then
the text that differs is what is asked; a message that most rows repeat is no part of any item. So
each text that tells rows apart gets its place in the item, or it is said that it is not read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from contam.benchmark import mapping as usual
from contam.benchmark.mapping import is_left_out, is_question, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from contam.benchmark.fields import FieldPath, FieldPlan
    from contam.benchmark.mapping import FieldMap

_CLOSE: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff"
#: Words: what stands between spaces and has a letter; of scripts without spaces two letters each.
#: It is looked for from the beginning of a run alone: else a run of n digits takes n² steps.
_WORD: Final = re.compile(
    rf"[{_CLOSE}]{{1,2}}|(?<![^\s{_CLOSE}])[^\s{_CLOSE}]*?[^\W\d_{_CLOSE}][^\s{_CLOSE}]*"
)
#: What has fewer words, as a rule, is a name, a label or a number.
_SEVERAL_WORDS: Final = 4
#: Two words are rare together where no larger share of the rows has them; so many such pairs make
#: a question its own. A template filled in with a name and a number has none.
_RARE_SHARE: Final = 0.02
_RARE_PAIRS: Final = 2
_WORDS_COMPARED: Final = 2000
#: A text of which rows have no more different values, and that has no more words, is a category.
_DIFFERENT_SHARE: Final = 0.05
_LONG: Final = 13
#: Rows whose words are kept, and names of texts inside that are.
_ROWS_COMPARED: Final = 1000
_NAMES: Final = 1000
#: Rows after which every 8th, and then every 64th, is looked at.
_MANY, _VERY_MANY = 20_000, 200_000


def texts_in(value: object, ignored: Sequence[str] = (), at: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a value at any depth, in order, each with its dotted path.

    What its name leaves out, or `ignored` does, is not among them.
    """
    left: list[tuple[str, object]] = [(at, value)]
    while left:
        path, here = left.pop()
        if isinstance(here, str):
            yield path, here
        elif isinstance(here, Mapping):
            inner = [
                (f"{path}.{name}" if path else str(name), one)
                for name, one in here.items()
                if not is_left_out(str(name))
            ]
            left += [pair for pair in reversed(inner) if pair[0] not in ignored]
        elif isinstance(here, Sequence) and not isinstance(here, bytes):
            left += ((path, one) for one in reversed(here))


def keys_are_texts(column: str) -> bool:
    """Whether the names in a column's records are choices, and their values scores."""
    return plain(column) == "target_scores"


def n_words(text: str) -> int:
    """Words of a text; data that stand in it as one long word count for nothing."""
    return len(_WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Told:
    """What of the texts inside a column's lists and records is no part of the item.

    shared   hashes of texts that most rows have;  at, ignored  as for `texts_in`
    drops    whether texts of plain lists may be left out, too
    is_lone  whether no other row tells what is shared
    """

    shared: frozenset[int] = frozenset()
    at: str = ""
    ignored: Sequence[str] = ()
    drops: bool = False
    is_lone: bool = False


LONE: Final = Told(is_lone=True)
"""Of a row that is read alone."""


class Texts:
    """Some texts; what is asked of them all is worked out once, when all are there."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.every = list(texts)

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.every)

    @cached_property
    def n_chars(self) -> int:
        """Their characters together."""
        return sum(map(len, self.every))

    @cached_property
    def _counts(self) -> list[int]:
        return list(map(n_words, self.every))

    @property
    def n_words(self) -> int:
        """Their words together."""
        return sum(self._counts)

    @property
    def most_words(self) -> int:
        """Words of the one that has most."""
        return max(self._counts, default=0)

    def is_text(self) -> bool:
        """Whether they are of several words."""
        # A word has a character: most labels and numbers are too short to be counted.
        enough = _SEVERAL_WORDS * self.n
        return self.n > 0 and self.n_chars >= enough and self.n_words >= enough


class Column(Texts):
    """What was seen of one column: of each row that has a text in it, all of it.

    pieces  the texts of each row that has them inside a list or a record
    paths   dotted name -> the texts of that name inside
    """

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[list[str]] = []
        self.paths: dict[str, Texts] = {}

    def add(self, text: str) -> None:
        """Take the text of a row, unless it is blank."""
        if text and not text.isspace():
            self.every.append(text)

    def add_inside(self, name: str, value: object, ignored: Sequence[str]) -> None:
        """Take the texts of a row's list or record; name  of the column."""
        pieces = []
        for path, text in texts_in(value, ignored, name):
            if not text or text.isspace():
                continue
            pieces.append(text)
            if path not in self.paths and len(self.paths) < _NAMES:
                self.paths[path] = Texts()
            if path in self.paths:
                self.paths[path].every.append(text)
        if pieces:
            self.pieces.append(pieces)
            self.every.append("\n".join(pieces))

    @cached_property
    def further(self) -> Texts:
        """All texts inside but the first of each row."""
        return Texts(text for pieces in self.pieces for text in pieces[1:])

    @cached_property
    def shared(self) -> frozenset[int]:
        """Hashes of the texts inside that most rows have."""
        n_rows = Counter(text for pieces in self.pieces for text in set(pieces))
        return frozenset(hash(text) for text, n in n_rows.items() if 2 * n > self.n > 1)

    @cached_property
    def _values(self) -> Counter[str]:
        return Counter(self.every)

    def differs(self) -> bool:
        """Whether the text is another one in most rows."""
        return self.n > 0 and 2 * len(self._values) >= self.n

    def tells_apart(self) -> bool:
        """Whether the text is no category, and no row is like most others."""
        different = len(self._values)
        most = max(self._values.values(), default=0)
        if self.n == 1 or not 0 < 2 * most <= self.n:
            return self.n == 1
        return different >= _DIFFERENT_SHARE * self.n or self.n_words >= _LONG * self.n

    @cached_property
    def is_own(self) -> bool:
        """Whether most rows have a text of their own, of words as hardly any other has them."""
        if not self.differs():
            return False
        of_rows = [
            set(pairwise(_WORD.findall(text)[:_WORDS_COMPARED]))
            for text in self.every[:_ROWS_COMPARED]
        ]
        n_rows = Counter(pair for pairs in of_rows for pair in pairs)
        limit = max(1, int(_RARE_SHARE * len(of_rows)))
        rare = [sum(n_rows[pair] <= limit for pair in pairs) >= _RARE_PAIRS for pairs in of_rows]
        return 2 * sum(rare) >= len(rare)


def _reaches(value: object, path: Sequence[str]) -> bool:
    if not path:
        return True
    if isinstance(value, Mapping):
        return path[0] in value and _reaches(value[path[0]], path[1:])
    return isinstance(value, list) and any(_reaches(one, path) for one in value)


class Look:
    """What the rows of one file have in common. Not for several threads."""

    def __init__(self, ignored: Sequence[str] = (), named: Iterable[str] = ()) -> None:
        """Ignored  as for `texts_in`;  named  dotted paths that rows are asked for."""
        self.ignored = ignored
        self._not_seen = set(named)
        self.columns: defaultdict[str, Column] = defaultdict(Column)
        self.n_rows = 0

    @classmethod
    def for_names(cls, fields: FieldMap) -> Look:
        """A look by which it is known whether rows have what was named."""
        named = [name for some in fields.fields.values() for name in some]
        return cls(fields.ignored, [*named, *fields.ignored])

    @property
    def is_lone(self) -> bool:
        """Whether there is nothing to compare a row with."""
        return self.n_rows == 1

    def add(self, row: Mapping[str, object]) -> None:
        """Look at a row; of very many, at some of them."""
        self.n_rows += 1
        every = 1 if self.n_rows < _MANY else 8 if self.n_rows < _VERY_MANY else 64
        if self._not_seen:
            seen = {name for name in self._not_seen if _reaches(row, name.split("."))}
            self._not_seen -= seen
        if self.n_rows % every:
            return
        for name, value in row.items():
            column = self.columns[name]
            if type(value) is str:
                column.add(value)
            elif isinstance(value, Mapping) and keys_are_texts(name):
                column.add("\n".join(map(str, value)))
            elif isinstance(value, Mapping | Sequence) and not isinstance(value, bytes):
                column.add_inside(name, value, self.ignored)

    def is_item_text(self, name: str) -> bool:
        """Whether a column that nobody knows holds text that tells rows apart."""
        column = self.columns[name]
        return column.tells_apart() and column.is_text()

    def has_texts(self, name: str) -> bool:
        """Whether a column tells rows apart and holds a text, among others of a word or two."""
        column = self.columns[name]
        return column.tells_apart() and column.most_words >= _SEVERAL_WORDS

    def is_own(self, names: Sequence[str]) -> bool:
        """Whether one of these columns says in most rows what no other row does."""
        return any(self.columns[name].is_own for name in names)

    @cached_property
    def n_chars(self) -> int:
        """Characters of all texts."""
        return sum(column.n_chars for column in self.columns.values())

    def differs(self, names: Sequence[str]) -> bool:
        """Whether the text of one of these columns is another one in most rows."""
        return any(self.columns[name].differs() for name in names)

    def questions_inside(self, names: Sequence[str]) -> dict[tuple[str, ...], None]:
        """Paths of texts inside columns, records of which call them the question."""
        paths = [tuple(path.split(".")) for name in names for path in self.columns[name].paths]
        asked = {path: None for path in paths if len(path) > 1 and is_question(path[-1])}
        return {path: None for path in asked if plain(path[-1]) == "question"} or asked

    def has(self, path: str) -> bool:
        """Whether a row had a value at a dotted path."""
        return path not in self._not_seen

    def texts(self, path: Sequence[str]) -> Texts:
        """The texts at a path."""
        column = self.columns[path[0]]
        return column if len(path) == 1 else column.paths.get(".".join(path), Texts())

    def share(self, texts: Texts) -> float:
        """Their share of the characters of all texts."""
        return round(texts.n_chars / max(1, self.n_chars), 4)


_NUMBER = re.compile(r"\d+")


def completed(plan: FieldPlan, columns: Sequence[str], fields: FieldMap, look: Look) -> FieldPlan:
    """The plan with a place for every column of texts that nobody knows by its name.

    Beside a question of its own such a text is passage. Beside one that rows share it is what is
    asked, as are choices where nothing else tells the rows apart. With one row nobody knows which:
    it is read as passage, and where it is longer than all else the item is incomplete. A column
    that is called `passage` or the like stays one; `flores_passage`, where each row of Belebele has
    its own text beside few questions, does not: leaked, it would be clean as a passage alone.
    """
    roots = plan.roots()
    others = [name for name in columns if name not in roots and name not in fields.ignored]
    unknown = [name for name in others if is_unknown_text(name, look)]
    asked = list(dict.fromkeys(path[0] for path in plan.question))
    question, passage, unread = plan.question, plan.passage, inner_unread(plan, look)
    doubtful: tuple[FieldPath, ...] = ()
    choices_ask = False
    paths = tuple((name,) for name in unknown)
    if "passage" in fields.fields and ("question" in fields.fields or look.is_own(asked)):
        unread += paths
    elif look.is_lone or (not paths and len(question) == 1 and look.differs(asked)):
        # Nothing is to be placed.
        passage += paths
        doubtful = paths
    elif look.is_own(asked):
        passage += paths
    else:
        question = _in_order((*question, *paths), columns)
        beside = [path[0] for path in passage]
        choices_ask = not (unknown or look.differs(asked)) and not any(
            look.is_item_text(name) for name in beside
        )
    unread += tuple(
        (name,)
        for name in others
        if name not in unknown and not usual.is_left_out(name) and look.has_texts(name)
    )
    nested = (*question, *passage)
    told = {
        path[0]: Told(
            shared=look.columns[path[0]].shared,
            at=".".join(path),
            ignored=tuple(fields.ignored),
            drops=path[0] in unknown,
            is_lone=look.is_lone,
        )
        for path in nested
    }
    chat = look.is_lone and any(look.columns[path[0]].further.n for path in nested)
    names = [".".join(path) for path in (*unread, *doubtful, *(question if chat else ()))]
    return replace(
        plan,
        question=question,
        passage=passage,
        choices_ask=choices_ask and _ask(plan, look),
        told=told,
        unread=unread,
        doubtful=doubtful,
        doubtful_chat=chat,
        missing=_missing(names, is_lone=look.is_lone),
        left_out=_left_out(columns, fields, plan, look),
    )


def is_unknown_text(name: str, look: Look) -> bool:
    """Whether a column holds text that tells rows apart, which no name leaves out."""
    return not usual.is_left_out(name) and look.is_item_text(name)


def questions_among(columns: Sequence[str], fields: FieldMap, look: Look) -> list[str]:
    """Columns that may hold what is asked where no name says so: one of them, or one numbered."""
    known = {*usual.ANSWER, *usual.CHOICE_LISTS, *usual.ITEM_ID}
    found = [
        name
        for name in columns
        if is_unknown_text(name, look)
        and usual.plain(name) not in known
        and name not in fields.ignored
    ]
    if unusual := [name for name in found if usual.plain(name) not in usual.PASSAGE]:
        found = unusual
    return found


def are_one(names: Collection[str]) -> bool:
    """Whether names differ in their number alone."""
    return len({_NUMBER.sub("", name) for name in names}) == 1


def inner_unread(plan: FieldPlan, look: Look) -> tuple[FieldPath, ...]:
    """Texts beside those that longer paths take out of a record."""
    taken = (*plan.question, *plan.passage, *plan.answer, *plan.choices.paths)
    whole = {path[0] for path in taken if len(path) == 1}
    found: list[FieldPath] = []
    for root in dict.fromkeys(path[0] for path in taken if path[0] not in whole):
        for dotted, texts in look.columns[root].paths.items():
            path = tuple(dotted.split("."))
            if texts.is_text() and not any(path[: len(one)] == one for one in taken):
                found.append(path)
    return tuple(found)


def unread_shares(plans: Collection[FieldPlan], look: Look) -> tuple[tuple[str, float], ...]:
    """Texts that no plan reads, and further texts of the answers, with their shares."""
    found = {".".join(path): look.share(look.texts(path)) for plan in plans for path in plan.unread}
    for name in {plan.answer[0][0] for plan in plans if plan.answer and not plan.choices.paths}:
        further = look.columns[name].further
        if further.is_text():
            found[name] = look.share(further)
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _in_order(paths: Sequence[FieldPath], columns: Sequence[str]) -> tuple[FieldPath, ...]:
    place = {name: at for at, name in enumerate(columns)}
    return tuple(sorted(paths, key=lambda path: place.get(path[0], -1)))


def _ask(plan: FieldPlan, look: Look) -> bool:
    """Whether the choices have words enough, and differ from row to row."""
    of = [look.columns[path[0]] for path in plan.choices.paths]
    enough = sum(column.n_words for column in of) >= 4 * max((one.n for one in of), default=1)
    return enough and any(column.tells_apart() for column in of)


def _missing(names: Sequence[str], *, is_lone: bool) -> str:
    if not names:
        return ""
    joined = "+".join(names)
    what = (
        f"with one row nobody knows how much of {joined} is what is asked"
        if is_lone
        else f"more of its text stands in {joined}, which is not read"
    )
    return f"{what} (--map question=FIELD+{names[0]} reads it, --ignore leaves it out)"


def _left_out(
    columns: Sequence[str], fields: FieldMap, plan: FieldPlan, look: Look
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    roots = {path[0] for path in (*plan.question, *plan.passage, *plan.choices.paths, *plan.answer)}
    for name in columns:
        column = look.columns[name]
        out = usual.is_left_out(name) or name in fields.ignored
        if name not in roots and out and column.tells_apart() and column.is_text():
            found[name] = None
        if name in roots:
            found |= {path: None for path in fields.ignored if path.startswith(f"{name}.")}
    return tuple(found)
