"""Read log files, values in them and texts of items, and define what reads a tool's logs."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import orjson

from contam.benchmark.fields import RowError, make_plan
from contam.benchmark.looks import Look
from contam.benchmark.mapping import check_mapping
from contam.benchmark.paths import format_of, read_unpacked
from contam.benchmark.rows import read_parts
from contam.errors import BenchmarkError, LogError, Place, Public, UsageError
from contam.files.doubled_keys import doubled_key, may_repeat
from contam.files.listed import LFS_FACT, LFS_HEAD
from contam.files.single import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from contam.benchmark.fields import FieldPlan
    from contam.errors import Hint
    from contam.rescore.logs.model import Log


CUT_OR_CHANGED: Final = "the file is not whole, or was changed: copy it again"
OTHER_RUN: Final = "the log is not whole, or belongs to another run: copy it again"
GIVE_ROWS: Final = "rows of scores per item are needed, not only their means"
"""Ways out that several readers name."""

_BOM = b"\xef\xbb\xbf"
_TABLES: Final = frozenset({"csv", "tsv", "parquet"})

Form = Literal["zip", "parquet", "lines", "list", "object", "table", ""]


@dataclass(frozen=True, eq=False)
class LogFile:
    """One file of a log, read once.

    given  its bytes, where it is in memory: `path` is then what messages call it
    """

    path: Path
    given: bytes | None = None

    @cached_property
    def start(self) -> bytes:
        """Its first bytes as they are on disk.

        Raises LogError when it cannot be read, or only stands for a log in Git LFS.
        """
        try:
            with open_file(self.path) as stream:
                start = stream.read(len(LFS_HEAD))
        except OSError as error:
            reason = Public(error.strerror or type(error).__name__)
            hint = "check the path and its rights"
            raise LogError("cannot read {}: {}", self.path, reason, hint=hint) from error
        if start == LFS_HEAD and (format_of(self.path) or self.path.suffix == ".eval"):
            hint = "fetch the file: run `git lfs pull` in its repository"
            raise LogError("{} {}", self.path, Public(LFS_FACT), hint=hint)
        return start

    @cached_property
    def form(self) -> Form:
        """What is in it: JSON `lines`, a JSON `list` or `object`, a text `table`; "" unknown."""
        if self.start.startswith(b"PK") or self.path.suffix == ".eval":
            return "zip"
        if self.start.startswith(b"PAR1"):
            return "parquet"
        family = format_of(self.path)
        if family != "json":
            return "table" if family in _TABLES else ""
        return self.json_form or ""

    @cached_property
    def json_form(self) -> Literal["lines", "list", "object"] | None:
        """What JSON is in it, by content; the name decides for one object on one line."""
        text = self.data.removeprefix(_BOM).strip()
        if text[:1] not in {b"[", b"{"}:
            return None
        if text[:1] == b"[":
            return "list"
        one = b"\n" not in text
        lines = self.path.name.find(".jsonl") > 0 if one else self.first_line is not None
        return "lines" if lines else "object"

    @cached_property
    def data(self) -> bytes:
        """All bytes, unpacked where a codec packs the whole file; LogError when unreadable."""
        return self._read[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes on disk."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[bytes, str]:
        if self.given is not None:
            return self.given, hashlib.sha256(self.given).hexdigest()
        try:
            found = read_unpacked(self.path)
        except BenchmarkError as error:
            raise LogError(error.statement, hint=error.hints) from error
        return found.data, found.sha256

    @cached_property
    def document(self) -> Any:  # noqa: ANN401 - whatever JSON can say
        """The file as one JSON value."""
        return parsed(self.data.removeprefix(_BOM), str(self.path))

    @property
    def record(self) -> Record:
        """The file as one object, an empty one for any other value."""
        return Record.of(self.document)

    @cached_property
    def lines(self) -> list[tuple[int, Record]]:
        """Every line as an object, with its 1-based number; empty lines are left out."""
        found = []
        for number, text in enumerate(self.data.removeprefix(_BOM).split(b"\n"), 1):
            if not text.strip():
                continue
            value = parsed(text, f"{self.path}:{number}")
            if not isinstance(value, dict):
                raise self.fault("expected a JSON object", line=number, hint=CUT_OR_CHANGED)
            found.append((number, Record(value)))
        return found

    @cached_property
    def first_line(self) -> Record | None:
        """The first object of JSON lines, None when the file begins with anything else."""
        for text in self.data.removeprefix(_BOM).split(b"\n", 50)[:50]:
            if text.strip():
                try:
                    value = loads(text)
                except (ValueError, RecursionError):
                    return None
                return Record(value) if isinstance(value, dict) else None
        return None

    def beside(self, name: str) -> LogFile | None:
        """Another file of its folder, None when it is not there."""
        path = self.path.with_name(name)
        return LogFile(path) if path.is_file() else None

    def fault(
        self, said: str, *facts: object, line: int = 0, row: int = 0, hint: Hint = OTHER_RUN
    ) -> LogError:
        """What is wrong with it, or with one of its lines or rows."""
        at = f":{line}" if line else f", row {row}" if row else ""
        return LogError(f"{{}}: {said}", Place(f"{self.path}{at}"), *facts, hint=hint)

    def put_once(
        self, found: dict[str, Any], name: str, value: object, what: str, *, line: int = 0
    ) -> None:
        """Add a value under a name; LogError where that has one."""
        if name in found:
            hint = "two runs in one file, or parts of one run put together twice"
            raise self.fault("{} {} stands here again", Public(what), name, line=line, hint=hint)
        found[name] = value

    def check_count(self, n: int, what: str, counted: object, hint: Hint = OTHER_RUN) -> None:
        """LogError where the tool counts another number of something than there is."""
        number = number_or_none(counted)
        if number is not None and int(number) != n:
            raise self.fault("{} {}, its tool counts {}", n, Public(what), int(number), hint=hint)


def digest_of(*files: LogFile) -> str:
    """One SHA-256 for a log of several files."""
    return hashlib.sha256("".join(file.digest for file in files).encode()).hexdigest()


class NoScoresError(LogError):
    """A sound file in a folder that holds no scores: passed over unless it was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """How the logs of one tool are recognised and read.

    title      what it reads, as an error lists it; "" where another reader's title covers it
    fits       whether a file holds scores of this tool; may look at its name, form and content
    read       the logs of a file that fits. A log that is not whole is a LogError: cut off, not
               ended, or with other rows than its tool counts. NoScoresError for a sound file
               without scores per item
    first_of   the file to read a log from, given any file with its scores
    is_part    whether a file belongs to a log of this tool and holds no scores per item
    rows_of    files with the scores that such a part belongs to
    elsewhere  whether those may lie where `rows_of` does not look, so that a part that is alone in
               a folder is nothing to speak of
    decimals   decimal places that the tool rounds its own means to, as `ScoreColumn.reported` has
               them; None where it writes them in full
    """

    title: str = ""
    fits: Callable[[LogFile], bool]
    read: Callable[[LogFile], Log | list[Log]]
    first_of: Callable[[Path], Path] = lambda path: path
    is_part: Callable[[LogFile], bool] = lambda _file: False
    rows_of: Callable[[Path], list[Path]] = lambda _path: []
    elsewhere: bool = False
    decimals: int | None = None


def first_line(test: Callable[[Record], bool]) -> Callable[[LogFile], bool]:
    """Whether a file is JSON lines and its first line passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "lines" and file.first_line is not None and test(file.first_line)

    return fits


def document(test: Callable[[object], bool]) -> Callable[[LogFile], bool]:
    """Whether a file is one JSON object and that passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "object" and test(file.document)

    return fits


def loads(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON, the bare NaN and Infinity of Python's own writer included. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        value = json.dumps(json.loads(text), ensure_ascii=False)
        # Halves of surrogate pairs, which a cut-off answer may end in, are replaced.
        return json.loads(value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def parsed(text: bytes, where: str) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON; LogError, with the place, for anything else and for a name given twice."""
    try:
        value = loads(text)
        doubled = doubled_key(text) if may_repeat(text, value) else None
    except RecursionError as error:
        raise LogError("{}: JSON nested too deeply", Place(where)) from error
    except ValueError as error:
        said, reason = "{}: not valid JSON ({})", Public(str(error).splitlines()[0])
        raise LogError(said, Place(where), reason, hint=CUT_OR_CHANGED) from error
    if doubled is not None:
        # Parsers give the last of the two: a score could count that nobody sees.
        name = ".".join(map(str, doubled))
        said, hint = "{}: the field {!r} occurs twice in one object", "remove one of the two"
        raise LogError(said, Place(where), name, hint=hint)
    return value


class Record(dict[str, Any]):
    """An object of JSON, whose fields are asked for by what they hold."""

    @classmethod
    def of(cls, value: object) -> Record:
        """The value when it is an object, else an empty one."""
        return cls(value) if isinstance(value, dict) else cls()

    def inside(self, *names: str) -> Record:
        """The object at a path of names, an empty one where there is none."""
        value: object = self
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return Record.of(value)

    def array(self, name: str) -> list[Any]:
        """A list, else an empty one."""
        return as_list(self.get(name))

    def records(self, name: str) -> list[Record]:
        """The objects in a list, an empty one for what is none."""
        return records(self.get(name))

    def text(self, name: str) -> str | None:
        """A text with something in it."""
        return text_or_none(self.get(name))

    def number(self, name: str) -> float | None:
        """A number (a truth value is none)."""
        return number_or_none(self.get(name))

    def truth(self, name: str) -> bool | None:
        """True or false."""
        value = self.get(name)
        return value if isinstance(value, bool) else None


def records(value: object) -> list[Record]:
    """The objects in a list, an empty one for what is none."""
    return [*map(Record.of, as_list(value))]


def as_list(value: object) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_or_none(value: object) -> str | None:
    """The value when it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def number_or_none(value: object) -> float | None:
    """The value when it is a number (a truth value is not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def is_number(value: object) -> bool:
    """Whether a value is a number or a truth value."""
    return isinstance(value, bool | int | float)


def fields(*names: str) -> Callable[[object], bool]:
    """A test of whether a value is an object with these fields."""
    return lambda value: Record.of(value).keys() >= {*names}


_FIELD = re.compile(r"\s*\{\{\s*(?:doc\.)?(\w+)\s*\}\}\s*|\s*(\w+)\s*")


class Texts(NamedTuple):
    """Texts of one item; None for what the row does not have."""

    question: str | None = None
    passage: str | None = None
    choices: tuple[str, ...] | None = None
    answer: str | None = None


class PartsReader:
    """Finds the parts in rows by the names benchmarks use; remembers the plan per set of fields.

    question  field that the tool itself names as the question, "" where it names none
    fields    part -> field for further parts, as a user names them
    rows      all rows of the data set: where they share one question, the text that tells them
              apart is part of it, as in the data set itself
    """

    def __init__(
        self,
        question: str = "",
        fields: Mapping[str, str] | None = None,
        rows: Iterable[Mapping[str, object]] = (),
    ) -> None:
        self._look = Look()
        for row in rows:
            self._look.add(row)
        self._fields = {**(fields or {}), **({"question": question} if question else {})}
        self._plans: dict[tuple[str, ...], FieldPlan | None] = {}

    def read(self, row: Mapping[str, object]) -> Texts:
        """Texts of a row; all None when no question is found in it."""
        names = tuple(row)
        if names not in self._plans:
            self._plans[names] = self._plan(names)
        plan = self._plans[names]
        try:
            parts = read_parts(row, plan) if plan else None
        except RowError:
            parts = None
        if parts is None or not parts.question:
            return Texts()
        return Texts(parts.question, parts.passage, parts.choices or None, parts.answer)

    def _plan(self, names: tuple[str, ...]) -> FieldPlan | None:
        mapping = {part: field for part, field in self._fields.items() if field in names}
        try:
            plan = make_plan(names, check_mapping(mapping))
            asked = [path[0] for path in plan.question]
            if self._look.n_rows <= 1 or self._look.is_own(asked):
                return plan
            return make_plan(names, check_mapping(mapping), self._look)
        except (RowError, UsageError):
            return None


def field_of_template(template: object) -> str:
    """Field that a template such as `{{question}}` consists of, "" when it is more than that."""
    found = _FIELD.fullmatch(template) if isinstance(template, str) else None
    return (found[1] or found[2]) if found else ""


def last_asked(prompt: object, asks: Callable[[Record], bool]) -> str | None:
    """A prompt that is a text, or the last turn of a chat that asks: those before are examples."""
    if isinstance(prompt, str):
        return text_or_none(prompt)
    turns = [turn for turn in map(Record.of, as_list(prompt)) if asks(turn)]
    return text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None


def is_of_user(turn: Record) -> bool:
    """Whether a turn of a chat is the user's."""
    return str(turn.get("role", "")).upper() in {"HUMAN", "USER"}


def real_choices(choices: list[str]) -> tuple[str, ...] | None:
    """Options as texts, None when they are only the letters A, B, C, ... that stand for them."""
    texts = tuple(choice.strip() for choice in choices)
    letters = tuple(ascii_uppercase[: len(texts)])
    return None if len(texts) <= 1 or texts == letters else texts
