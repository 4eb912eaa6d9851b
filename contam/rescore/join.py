"""Join items of a result to rows of a log by text; ids only cross-check.

No two tools number items alike (from 0, from 1, across splits), so a number alone proves nothing.
The order of proof: question with choices and passage; question alone, where that leaves one item;
a whole prompt that is the question; the question at the very end of a prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from string import ascii_uppercase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.jsonrows import row_hashes
from contam.benchmark.keys import KEY_VERSION, normalise, text_key
from contam.errors import LogError, Public, Statement
from contam.tables.schemas import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.rescore import Ints
    from contam.rescore.logs.model import Log, LoggedItem
    from contam.tables.schemas import Table

_ADD_QUESTION_TO_LOG: Final = "numbers of two tools may be one off: add the question to the log"


KINDS: Final = ("item", "question", "prompt", "prompt_end", "id")
"""What a match rests on, the strongest first."""

MOST_UNMATCHED: Final = 0.01
SAME_ANSWERS: Final = 0.95
"""Share of right answers that must agree where only numbers, and no name, join a log."""
_NAMED: Final = 20
_SHOWN: Final = 3


MOST_MISSING: Final = 0.01


class ResultItems:
    """The items of a result by benchmark and split, identified by content."""

    def __init__(self, sets: Sequence[tuple[str, str]], keys: Sequence[str]) -> None:
        self._sets = sorted(set(sets))
        places = {name: at for at, name in enumerate(self._sets)}
        self._set: Ints = np.array([places[name] for name in sets], np.int64)
        self._key: Ints = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        pairs = np.unique(np.stack([self._key, self._set]), axis=1)
        # An item that two benchmarks hold does not tell which of them a log is of.
        self._alone = np.bincount(pairs[0])[self._key] == 1

    def missing(self, rows: Ints, met: Ints | None = None) -> Iterator[tuple[str, int, int]]:
        """(benchmark, items missing in these rows of the table, all its items) of every set met.

        met  the rows that tell which sets are meant, where these are only a part of them

        A set is met when an item that only it holds is among them, or, where no item tells its
        set, when any is.
        """
        met = rows if met is None else met
        own = met[self._alone[met]]
        there = np.zeros(int(self._key.max(initial=-1)) + 1, np.bool_)
        there[self._key[rows]] = True
        absent = np.bincount(self._set[~there[self._key]], minlength=len(self._sets))
        sizes = np.bincount(self._set, minlength=len(self._sets))
        for at in np.unique(self._set[own if len(own) else met]).tolist():
            yield self._sets[at][0], int(absent[at]), int(sizes[at])


def refuse_partial(log: Log, index: Ints, judged: ResultItems) -> None:
    """Demand a score for all but 1 % of the items, where the tool reports no number to check by.

    index  int64[n], places of the log's items in the result, -1 for none

    Raises LogError with both counts. A tool's own number that its rows give again shows that the
    rows are all it scored, so a run over a part of a benchmark is then no error.
    """
    if any(scores.reported is not None or scores.reported_n is not None for scores in log.columns):
        return
    for scores in log.columns:
        if scores.kind == "none":
            continue
        known = index >= 0
        there = index[known & scores.scored]
        for benchmark, n_missing, n_items in judged.missing(there, index[known]):
            if n_missing > MOST_MISSING * n_items:
                said = "{} has no {} for {} of the {} items of {} that were judged"
                facts = Public(log.model), Public(scores.metric), n_missing, n_items
                hint = (
                    "is the log whole? it reports no number to check that by; --allow-partial "
                    "scores what is there"
                )
                raise log.fault(said, *facts, Public(benchmark), hint=hint)


@dataclass(frozen=True, eq=False, kw_only=True)
class Joined:
    """A log's items in the order of a result's.

    index       int64[n_log], row of the items table, -1 for none
    by          how many matches rest on each of `KINDS`
    n_changed   unmatched items whose question is there with other choices or another passage
    n_ambiguous unmatched items that fit several different items
    n_duplicate log items that share an item of the result with an earlier one
    n_missing   items of the benchmarks and splits met that the log does not have
    unmatched   ids of the first of them, with the reason
    unsure      places in the log of those that are changed or ambiguous
    benchmarks  names of the benchmarks met
    has_texts   whether the log has texts, though its items were joined by id
    """

    index: Ints
    by: dict[str, int]
    n_unmatched: int
    n_changed: int
    n_ambiguous: int
    n_duplicate: int
    n_missing: int
    unmatched: tuple[tuple[str, str], ...]
    unsure: tuple[int, ...]
    benchmarks: tuple[str, ...]
    has_texts: bool = False

    @property
    def n_matched(self) -> int:
        """Log items that are an item of the result."""
        return sum(self.by.values())

    @property
    def share_unmatched(self) -> float:
        """Share of the log's items that are no item of the result."""
        return self.n_unmatched / len(self.index) if len(self.index) else 0.0

    @property
    def shown(self) -> str:
        """The first items that are none of the result, with the reason."""
        return "; ".join(f"{name}: {why}" for name, why in self.unmatched[:_SHOWN])

    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in sentences."""
        counts = [
            (self.n_unmatched, "log items are not in the verdicts"),
            (self.n_ambiguous, "of them fit several items"),
            (self.n_changed, "of them have another text there"),
            (self.n_duplicate, "log items share an item with another"),
            (self.n_missing, "items of the benchmark are not in the log"),
            (self.by["prompt_end"], "items were found only at the end of their prompts"),
            (
                0 if self.has_texts else self.by["id"],
                "items were joined by id alone, without a text to check it",
            ),
        ]
        return tuple(f"{number} {words}" for number, words in counts if number)


def sources_of(run: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The files of each benchmark of a result, from its run.json."""
    read = run.get("inputs", {}).get("benchmarks", ())
    return {one["name"]: one.get("sources", ()) for one in read}


class Joiner:
    """The items table of a result, made ready to be looked up.

    sources  the files of each benchmark, as run.json names them
    judged   its items by benchmark and split

    Raises LogError for keys of another version.
    """

    def __init__(
        self,
        items: Table,
        sources: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
    ) -> None:
        self._sources = sources
        versions = set(column(items, "key_version"))
        if versions - {KEY_VERSION}:
            said = f"the verdicts have keys {', '.join(sorted(versions))}, not {KEY_VERSION}"
            raise LogError(said, hint="scan again with this version of contam")
        self._benchmark = column(items, "benchmark")
        self._split = column(items, "split")
        self._ids = column(items, "item_id")
        self._item_key = column(items, "item_key")
        sets = [*zip(self._benchmark, self._split, strict=True)]
        self.judged = ResultItems(sets, self._item_key)
        self._choices_key = column(items, "choices_key")
        self._passage_key = column(items, "passage_key")
        self._answer_key = column(items, "answer_key")
        self._choices = column(items, "choices")
        self._question = column(items, "question")
        self._by_question: dict[str, list[int]] = {}
        for row, key in enumerate(column(items, "question_key")):
            self._by_question.setdefault(key, []).append(row)
        self._by_id: dict[str, list[int]] = {}
        for row, name in enumerate(self._ids):
            self._by_id.setdefault(name, []).append(row)
        self._ends: PromptEnds | None = None
        self._known: dict[tuple[str, str | None, tuple[LoggedItem, ...]], Joined] = {}

    def match(self, log: Log) -> Joined:
        """Join one log, however many of its items are not in the result."""
        # Equal items are found at equal places; logs of many models mostly hold the same ones.
        key = (log.benchmark, log.split, log.items)
        joined = self._known.get(key)
        if joined is None:
            joined = self._known[key] = self._joined(log)
        return joined

    def join(self, log: Log, *, allow_unmatched: bool = False) -> Joined:
        """Join one log.

        Raises LogError when more than 1 % of its items are not in the result (unless allowed), when
        an item has the name of another text's, and for bare numbers without any text.
        """
        joined = self.match(log)
        if not joined.n_matched and len(log.items):
            bare = all(item.question is None and item.prompt is None for item in log.items)
            hint = "the log is of another benchmark, or of another version of it"
            if bare:
                hint = "it has ids only, and they are not the benchmark's: add the questions to it"
            raise log.fault("none of its {} items is in the verdicts", len(log.items), hint=hint)
        if joined.share_unmatched > MOST_UNMATCHED and not allow_unmatched:
            hint = "is it the same version of the benchmark? --allow-unmatched scores the rest"
            facts = joined.n_unmatched, len(log.items), joined.shown
            raise log.fault("{} of {} items are not in the verdicts ({})", *facts, hint=hint)
        return joined

    def _joined(self, log: Log) -> Joined:
        index = np.full(len(log.items), -1, np.int64)
        by: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        why: dict[int, str] = {}
        used: dict[int, int] = {}
        for at, item in enumerate(log.items):
            if item.question is None and item.prompt is None:
                continue
            kind, rows, reason = self._by_text(item)
            if not rows:
                why[at] = reason
                continue
            index[at] = self._one_of(rows, item, log, used)
            used[int(index[at])] = used.get(int(index[at]), 0) + 1
            by[kind] += 1
        self._at_ends(log, index, by, why, used)
        without = [
            at for at, item in enumerate(log.items) if item.question is None and item.prompt is None
        ]
        if without:
            self._by_ids(log, without, index, why)
            by["id"] += int(np.count_nonzero(index[without] >= 0))
        self._check_ids(log, index)
        return self._counted(log, index, by, why)

    def _by_text(self, item: LoggedItem) -> tuple[str, list[int], str]:
        """(kind, rows of one item and its duplicates, reason when there is none)."""
        text = item.question if item.question is not None else item.prompt
        rows = self._by_question.get(text_key(text or ""), [])
        if not rows and item.question is not None and item.prompt is not None:
            rows = self._by_question.get(text_key(item.prompt), [])
        if not rows:
            return "", [], "no such question"
        whole = item.content_key
        if not _is_number(item.item_id):
            # Of items with one question, the one that has the log's own name for it.
            named = [row for row in rows if self._ids[row] == item.item_id]
            rows = named if self._narrowed(named, item) else rows
        same = [row for row in rows if self._item_key[row] == whole]
        if same:
            return "item", same, ""
        kind = "question" if item.question is not None else "prompt"
        rows = self._narrowed(rows, item)
        if not rows:
            return "", [], "changed"
        if len({self._item_key[row] for row in rows}) > 1:
            return "", [], "ambiguous"
        return kind, rows, ""

    def _narrowed(self, rows: list[int], item: LoggedItem) -> list[int]:
        """Rows that agree with every part the log has."""
        for text, keys in (
            (_choices_text(item), self._choices_key),
            (item.passage, self._passage_key),
        ):
            if text is None:
                continue
            key = text_key(text)
            # A row without the part says nothing against it: logs put prompts together.
            rows = [row for row in rows if keys[row] in {key, None}]
            rows = [row for row in rows if keys[row] == key] or rows
        if len({self._item_key[row] for row in rows}) > 1 and item.answer:
            key = text_key(item.answer)
            rows = [row for row in rows if self._answer_key[row] == key] or rows
        if len({self._item_key[row] for row in rows}) > 1 and item.prompt:
            rows = [row for row in rows if self._choices_inside(row, item.prompt)] or rows
        return rows

    def _choices_inside(self, row: int, prompt: str) -> bool:
        choices = self._choices[row]
        return bool(choices) and all(choice.strip() in prompt for choice in choices)

    def _one_of(self, rows: Sequence[int], item: LoggedItem, log: Log, used: dict[int, int]) -> int:
        """One row of duplicates: the log's own benchmark and id first, then the least used."""
        return min(
            rows,
            key=lambda row: (
                self._benchmark[row] != log.benchmark,
                used.get(row, 0),
                self._ids[row] != item.item_id,
                row,
            ),
        )

    def _at_ends(
        self,
        log: Log,
        index: Ints,
        by: Counter[str],
        why: dict[int, str],
        used: dict[int, int],
    ) -> None:
        """The last resort: a question that ends a prompt, under the log's one template."""
        open_ = [
            at
            for at, reason in why.items()
            if reason == "no such question" and (log.items[at].prompt or log.items[at].question)
        ]
        if not open_:
            return
        if any(question is None for question in self._question):
            why.update(
                dict.fromkeys(
                    open_,
                    "no such question, and its prompt cannot be searched: "
                    "the verdicts were made without texts",
                )
            )
            return
        if self._ends is None:
            self._ends = PromptEnds(self._question, self._choices)
        texts = [log.items[at].prompt or log.items[at].question or "" for at in open_]
        for at, rows in zip(open_, self._ends.find(texts), strict=True):
            narrowed = self._narrowed(rows, log.items[at])
            if not narrowed:
                continue
            if len({self._item_key[row] for row in narrowed}) > 1:
                why[at] = "ambiguous"
                continue
            index[at] = self._one_of(narrowed, log.items[at], log, used)
            used[int(index[at])] = used.get(int(index[at]), 0) + 1
            by["prompt_end"] += 1
            del why[at]

    def _by_ids(self, log: Log, places: Sequence[int], index: Ints, why: dict[int, str]) -> None:
        """Items without any text: their ids must be the benchmark's own."""
        names = [log.items[at].item_id for at in places]
        benchmarks = {self._benchmark[row] for name in names for row in self._by_id.get(name, [])}
        if len(benchmarks) > 1:
            own = {name for name in benchmarks if _same_benchmark(name, log.benchmark)}
            if not own:
                said, named = (
                    "its ids are in {}, and it has no texts",
                    ", ".join(sorted(benchmarks)),
                )
                hint = "add the questions to the log, or rescore one benchmark at a time"
                raise log.fault(said, named, hint=hint)
            benchmarks = own
        known: dict[str, list[int]] = {}
        for row, name in enumerate(self._ids):
            fits = not log.split or self._split[row] in {log.split, ""}
            if fits and self._benchmark[row] in benchmarks:
                known.setdefault(name, []).append(row)
        bare = [at for at, name in zip(places, names, strict=True) if _BARE.fullmatch(name)]
        if known and all(map(_is_number, names)):
            _check_numbers(log, names, known)
        if any(log.items[at].item_id in known for at in bare):
            self._check_benchmark(log, bare, known, benchmarks)
        for at, name in zip(places, names, strict=True):
            rows = known.get(name, [])
            if len(rows) == 1:
                index[at] = rows[0]
            else:
                why[at] = "ambiguous" if rows else "no such id, and no text to go by"

    def _check_benchmark(
        self, log: Log, places: Sequence[int], known: dict[str, list[int]], benchmarks: set[str]
    ) -> None:
        """Demand that bare numbers are this benchmark's: by name, right answers or documents."""
        if any(not name or _same_benchmark(name, log.benchmark) for name in benchmarks):
            return
        pairs = [
            (log.items[at], row) for at in places for row in known.get(log.items[at].item_id, [])
        ]
        right = Counter(
            self._answer_key[row]
            for item, row in pairs
            if item.answer and self._answer_key[row] in self._meant(item.answer, row)
        )
        # A constant guess agrees as often as the commonest answer: rarer ones are what proves.
        rarer = right.total() - max(right.values(), default=0)
        if right.total() >= SAME_ANSWERS * len(pairs) and rarer >= _FEW:
            return
        if self._are_documents([item.doc_hash for item, _ in pairs], benchmarks):
            return
        (first, *_) = sorted(benchmarks)
        both = log.benchmark, first
        hint = Statement(
            "add the questions or the right answers to the log; if both are one benchmark: "
            "`contam rescore --benchmark-as {}={}`, or benchmark_as under [logs] of an audit",
            *both,
        )
        said = "its items are bare numbers, its benchmark is {!r}, and the verdicts' is {!r}"
        raise log.fault(said, *both, hint=hint)

    def _are_documents(self, hashes: list[str | None], benchmarks: set[str]) -> bool:
        """Whether a log's hashes of its documents are those of rows of the benchmarks' files."""
        if not any(hashes):
            return False
        rows = row_hashes(one for name in benchmarks for one in self._sources.get(name, ()))
        return sum(one in rows for one in hashes) >= SAME_ANSWERS * len(hashes)

    def _meant(self, answer: str, row: int) -> set[str]:
        """Keys of what an answer may stand for: itself, or the choice of its letter or number."""
        choices = self._choices[row] or ()
        named = [
            choice
            for place, choice in enumerate(choices)
            if answer.strip().strip("().").upper() in {str(place), ascii_uppercase[place % 26]}
        ]
        return {text_key(text) for text in (answer, *named)}

    def _check_ids(self, log: Log, index: Ints) -> None:
        """A name, unlike a number, means the same item everywhere: its text must be the same."""
        met = {self._benchmark[row] for row in index if row >= 0} | {log.benchmark}
        for at, item in enumerate(log.items):
            if _is_number(item.item_id) or item.question is None:
                continue
            rows = [row for row in self._by_id.get(item.item_id, []) if self._benchmark[row] in met]
            at_row = int(index[at])
            same = at_row >= 0 and self._item_key[at_row] in {self._item_key[row] for row in rows}
            if rows and not same:
                hint = "the verdicts are of another version of the benchmark: scan this one"
                said = "item {} has another text than in the verdicts"
                raise log.fault(said, item.item_id, hint=hint)

    def _counted(self, log: Log, index: Ints, by: Counter[str], why: dict[int, str]) -> Joined:
        matched = index[index >= 0]
        distinct = np.unique(matched)
        benchmarks = tuple(sorted({self._benchmark[row] for row in distinct}))
        words = {
            "changed": "its question is there with other choices or another passage",
            "ambiguous": "several items have its question",
        }
        listed = [
            (log.items[at].item_id, words.get(reason, reason)) for at, reason in sorted(why.items())
        ]
        return Joined(
            index=index,
            by={kind: by[kind] for kind in KINDS},
            n_unmatched=len(why),
            n_changed=sum(reason == "changed" for reason in why.values()),
            n_ambiguous=sum(reason == "ambiguous" for reason in why.values()),
            n_duplicate=len(matched) - len(distinct),
            n_missing=sum(n_missing for _, n_missing, _ in self.judged.missing(distinct)),
            unmatched=tuple(listed[:_NAMED]),
            unsure=tuple(at for at, reason in sorted(why.items()) if reason in words),
            benchmarks=benchmarks,
        )


def _choices_text(item: LoggedItem) -> str | None:
    """What a result's `choices_key` is the key of."""
    return None if item.choices is None else "\n".join(sorted(item.choices))


_BARE: Final = re.compile(
    r"(?:(?:id|idx|q|question|item|doc|row|sample|example|test|train|dev|val)[-_ /:.#]*)?\d+",
    re.IGNORECASE,
)
"""An id that counts items, of whatever benchmark."""


def _same_benchmark(one: str, other: str) -> bool:
    """Whether two names are of one benchmark: spelling aside, with or without its owner."""
    first, second = (name.casefold().replace("-", "_").rpartition("/")[2] for name in (one, other))
    return first == second


def _is_number(name: str) -> bool:
    """Whether an id only counts; HELM writes `id` before its numbers."""
    bare = name.removeprefix("id")
    return bare.isascii() and bare.isdecimal()


def _check_numbers(log: Log, names: Sequence[str], known: dict[str, list[int]]) -> None:
    """Demand that bare numbers begin where the benchmark's do: else they may be one off."""
    numbers = {int(name.removeprefix("id")) for name in known if _is_number(name)}
    logged = {int(name.removeprefix("id")) for name in names}
    least = min(logged)
    if not numbers or least != min(numbers):
        begin = min(numbers) if numbers else "names"
        said = "items are bare numbers from {}, the benchmark's begin at {}"
        raise log.fault(said, least, begin, hint=_ADD_QUESTION_TO_LOG)
    if beyond := logged - numbers:
        said = "{} of its {} bare numbers, from {} on, are not among the items judged"
        facts = len(beyond), len(logged), min(beyond)
        raise log.fault(said, *facts, hint=_ADD_QUESTION_TO_LOG)


_HEAD: Final = 4
"""Words a question is looked up by."""

_MOST_BEHIND: Final = 12
"""Words a template may put behind the question and its choices."""

_FEW: Final = 3
"""Prompts that must share the text after their questions, where it is no `Answer:`."""

_LABEL: Final = re.compile(r"\(?[a-z0-9][).:]")


class PromptEnds:
    """Questions of a benchmark, looked for at the ends of prompts.

    A prompt with examples holds other questions too. The last question counts, and only when
    nothing follows it but its choices and a few words that are the same for the whole log.
    """

    def __init__(self, questions: Sequence[str], choices: Sequence[Sequence[str] | None]) -> None:
        self._questions = [normalise(question).split() for question in questions]
        self._choices = [
            sorted((normalise(choice) for choice in own or ()), key=len, reverse=True)
            for own in choices
        ]
        self._by_head: dict[tuple[str, ...], list[int]] = {}
        for row, words in enumerate(self._questions):
            if words:
                self._by_head.setdefault(tuple(words[:_HEAD]), []).append(row)
        self._head_sizes = sorted({len(head) for head in self._by_head})
        sizes = [
            len(words) + sum(len(choice.split()) + 1 for choice in own)
            for words, own in zip(self._questions, self._choices, strict=True)
        ]
        self._window = max(sizes, default=0) + _MOST_BEHIND

    def find(self, prompts: Sequence[str]) -> list[list[int]]:
        """Rows whose question ends each prompt, under the template most prompts share."""
        found = [self._last(normalise(prompt).split()) for prompt in prompts]
        templates = Counter(tail for _, tail in found if tail is not None)
        if not templates:
            return [[] for _ in prompts]
        usual, shared = templates.most_common(1)[0]
        # Words behind a lone question may as well be the rest of another question.
        if usual and not usual.endswith(":") and shared < _FEW:
            return [[] for _ in prompts]
        return [rows if tail == usual else [] for rows, tail in found]

    def _last(self, words: list[str]) -> tuple[list[int], str | None]:
        """Rows of the question that ends last, the longest of those, and the text after it."""
        words = words[-self._window :]
        best: tuple[int, int] = (0, 0)
        rows: list[int] = []
        for start in range(len(words)):
            for length in self._head_sizes:
                for row in self._by_head.get(tuple(words[start : start + length]), ()):
                    size = len(self._questions[row])
                    end = start + size
                    if (end, size) < best or words[start:end] != self._questions[row]:
                        continue
                    rows = [*rows, row] if (end, size) == best else [row]
                    best = (end, size)
        fitting = [
            (row, tail) for row in rows if (tail := self._tail(row, words[best[0] :])) is not None
        ]
        if not fitting:
            return [], None
        # Of two items with one question the right one has its choices there, and leaves less.
        shortest = min((tail for _, tail in fitting), key=len)
        return [row for row, tail in fitting if tail == shortest], shortest

    def _tail(self, row: int, behind: list[str]) -> str | None:
        """What is left behind a question without its choices and their letters; None when long."""
        text = f" {' '.join(behind)} "
        for choice in self._choices[row]:
            text = text.replace(f" {choice} ", " ", 1)
        left = [word for word in text.split() if not _LABEL.fullmatch(word)]
        return " ".join(left) if len(left) <= _MOST_BEHIND else None
