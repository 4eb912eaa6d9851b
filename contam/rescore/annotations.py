"""Read labels of items from files, and use them as verdicts.

They are one's own, decon's report, or a published list. Annotations rarely name every item: the
items of a re-scoring are those of the file and, behind them, those of the logs that it does not
name.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.keys import KEY_VERSION, content_keys, text_key
from contam.benchmark.mapping import ITEM_ID, plain
from contam.detect.given import IN_MEMORY
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.errors import LogError, Names, Public, Statement, UsageError
from contam.facts import counted
from contam.rescore.join import MOST_UNMATCHED, Joined, Joiner, ResultItems
from contam.rescore.logs.log_files import LogFile, PartsReader, Texts
from contam.rescore.logs.model import LoggedItem
from contam.rescore.logs.plain_tables import load, text_of
from contam.rescore.panel import Flags
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.errors import Place
    from contam.rescore import Ints
    from contam.rescore.logs.model import Log
    from contam.rescore.logs.plain_tables import Table


ROLES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("item_id", "instance_id", "sample_id", "doc_id", *ITEM_ID),
    "benchmark": ("benchmark", "task", "dataset", "eval", "eval_key", "eval_name"),
    "split": ("split",),
    "policy": ("policy",),
    "label": (
        *("contamination_label", "verdict", "contaminated", "is_contaminated", "contamination"),
        *("leaked", "is_leaked", "dirty", "is_dirty", "label"),
    ),
    "score": ("contamination_score", "overlap", "overlap_score", "similarity", "score"),
}
"""What a column is -> the names it usually has; the first that is there counts."""

MAPPABLE: Final = (*ROLES, "question")

_CONTAMINATED: Final = LABELS.index("contaminated")
_CLEAN: Final = LABELS.index("clean")
_SAID: Final = {
    # The last two are the labels of OpenCompass.
    _CONTAMINATED: (
        *("contaminated", "dirty", "leaked", "leak", "true", "yes", "y", "1"),
        *("input contamination", "input and label contamination"),
    ),
    _CLEAN: (
        *("clean", "not contaminated", "uncontaminated", "not leaked", "false", "no", "n", "0"),
    ),
    LABELS.index("suspect"): ("suspect", "suspicious", "suspected"),
    NOT_CHECKABLE: (
        *("not checkable", "unchecked", "unknown", "n/a", "na", "nan", "null", "none", ""),
    ),
}
_WORDS: Final = {word: label for label, words in _SAID.items() for word in words}
_ANSWERS: Final = "label"
_BARE: Final = frozenset({"0", "1", "true", "false"})
_DECON: Final = frozenset({"eval_key", "contamination_score", "eval_question_text"})
_DECON_MARKS: Final = str.maketrans(
    dict.fromkeys(string.punctuation + "\u201c\u201d\u2018\u2019\u2014", " ")
)
_DECON_WORDS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One item as the file names it, with a label (an index into LABELS) and score per policy.

    row  where it stands first
    """

    benchmark: str
    split: str
    item: LoggedItem
    row: Place
    label: dict[str, int]
    score: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Annotations:
    """All items of a file.

    n_rows    rows it has, those of one item counted singly
    by_text   whether the items are identified by questions, not by ids alone
    listed    whether it has no labels and names contaminated items only
    of_decon  whether its texts are as decon cleans them, cut to 1,000 words
    """

    path: Path
    sha256: str
    items: tuple[Annotation, ...]
    policies: tuple[str, ...]
    columns: dict[str, str]
    n_rows: int
    threshold: float | None
    by_text: bool
    listed: bool
    of_decon: bool


def read_annotations(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    threshold: float | None = None,
    unlisted: str | None = None,
    data: bytes | None = None,
) -> Annotations:
    """Read CSV, TSV, JSON lines, a JSON list or Parquet with a row per item, or decon's report.

    columns    role -> column where the usual names do not fit, see `MAPPABLE`
    threshold  an item whose score is at least this is contaminated, any other clean
    unlisted   whether the caller says what items are that the file does not name; without that a
               file without labels and scores is refused
    data       the bytes of the file, where they are in memory

    Raises LogError, with file and row, for anything that is not a label of an item, and for two
    labels of one; UsageError for columns that cannot be told and for a threshold that is no number.
    """
    mapping = dict(columns or {})
    for role in mapping:
        if role not in MAPPABLE:
            known = Statement("known: {}", Public(", ".join(MAPPABLE)))
            raise UsageError("verdicts have no {!r}", role, hint=known)
    if threshold is not None and not math.isfinite(threshold):
        hint = "give a number, such as 0.8"
        raise UsageError("the threshold {} is no score", threshold, hint=hint)
    table = load(LogFile(path, data))
    if not len(table):
        raise table.fault("the file has no rows", hint="is it the right file, and whole?")
    of_decon = not mapping and set(table.columns) >= _DECON
    found = _columns(table, mapping, of_decon=of_decon)
    listed = "label" not in found and (of_decon or "score" not in found)
    if listed and not of_decon and unlisted is None:
        raise UsageError(
            "{} has neither labels nor scores (columns: {})", path, Names([*table.columns]),
            hint="name the columns: --verdict-columns label=COLUMN,id=COLUMN; if it lists "
            "contaminated items only, say what all others are: --unlisted clean or "
            "--unlisted not_checkable",
        )  # fmt: skip
    if "label" not in found and not listed and threshold is None:
        hint = "say from which score on an item is contaminated: --threshold 0.8"
        raise UsageError("{} has scores in {!r} and no labels", path, found["score"], hint=hint)
    if threshold is not None and "score" not in found:
        raise UsageError(
            "{} has no scores to compare with a threshold (columns: {})", path,
            Names([*table.columns]),
            hint="leave out --threshold, or name the column of scores: --verdict-columns "
            "score=COLUMN",
        )  # fmt: skip
    if "label" in found and "label" not in mapping:
        _refuse_answers(table, found["label"], threshold)
    reader = PartsReader(found.get("question", ""))
    rows = [
        _row(table, row, found, threshold, reader, of_decon=of_decon) for row in range(len(table))
    ]
    items = _merged(table, rows, of_decon=of_decon)
    bare = [item for item in items if not item.item.question]
    if bare and len(bare) < len(items):
        # Items by text and others by id alone would be found by two different rules.
        hint = "give all of them the question, or leave the column out"
        raise table.fault("some rows have a question and others none ({})", bare[0].row, hint=hint)
    return Annotations(
        path=path,
        sha256=table.file.digest,
        items=items,
        policies=tuple(dict.fromkeys(name for item in items for name in item.label)),
        columns=found,
        n_rows=len(table),
        threshold=threshold,
        by_text=not bare,
        listed=listed,
        of_decon=of_decon,
    )


def decon_text(text: str) -> str:
    """A text as decon's report quotes it: lower case, punctuation as blanks, 1,000 words."""
    return " ".join(text.lower().translate(_DECON_MARKS).split()[:_DECON_WORDS])


def _columns(table: Table, mapping: Mapping[str, str], *, of_decon: bool) -> dict[str, str]:
    """Role -> column, as mapped or by the usual names."""
    found = table.roles(ROLES, mapping)
    found = {role: name for role, name in found.items() if name or role == "question"}
    if of_decon:
        found.pop("id", None)
        found.pop("label", None)
        found["question"] = "eval_question_text"
    return found


def _refuse_answers(table: Table, name: str, threshold: float | None) -> None:
    """Raise UsageError for a `label` of 0 and 1, as of answers, and for labels beside a threshold.

    Benchmarks keep their answers in a column `label`: with a threshold, that is what it is.
    """
    words = {text_of(value).lower() for value in table.column(name)} - {""}
    answers = plain(name) == _ANSWERS and bool(words) and words <= _BARE
    if threshold is not None and not answers and words & _WORDS.keys():
        said = "{} has labels in {!r}, and a threshold is given for its scores"
        hint = "leave --threshold out, or --verdict-columns label="
        raise UsageError(said, table.file.path, name, hint=hint)
    if threshold is None and answers:
        raise UsageError(
            "{}: does its column {!r} say what is contaminated? It holds only {}, as answers of a"
            " benchmark do", table.file.path, name, " and ".join(sorted(words)),
            hint=Statement(
                "if it does: --verdict-columns label={}; if all rows are contaminated items: "
                "--verdict-columns label=", name,
            ),
        )  # fmt: skip


def _row(
    table: Table,
    at: int,
    found: Mapping[str, str],
    threshold: float | None,
    reader: PartsReader,
    *,
    of_decon: bool,
) -> Annotation:
    cells = {role: table.column(name)[at] for role, name in found.items() if name}
    names = {role: text_of(cells.get(role)) for role in ("id", "benchmark", "split", "policy")}
    score = _score(table, at, cells["score"]) if "score" in found else math.nan
    label = _label(table, at, cells["label"]) if "label" in found else _CONTAMINATED
    if threshold is not None:
        label = _CONTAMINATED if score >= threshold else _CLEAN
        label = NOT_CHECKABLE if math.isnan(score) else label
    texts = Texts()
    if of_decon:
        texts = Texts(question=decon_text(str(cells["question"])))
    elif found.get("question") != "":
        other = set(found.values()) - {found.get("question")}
        texts = reader.read({n: own[at] for n, own in table.columns.items() if n not in other})
    if not names["id"] and not texts.question:
        hint = "name the columns: --verdict-columns label=COLUMN,id=COLUMN,question=COLUMN"
        raise table.fault("neither an id nor a question", row=at, hint=hint)
    policy = names["policy"] or table.file.path.stem.removeprefix(IN_MEMORY)
    return Annotation(
        benchmark=names["benchmark"],
        split=names["split"],
        item=LoggedItem(item_id=names["id"], **texts._asdict()),
        row=table.at(at),
        label={policy: label},
        score={policy: score},
    )


def _merged(table: Table, rows: list[Annotation], *, of_decon: bool) -> tuple[Annotation, ...]:
    """An item for all its rows. Raises LogError for two labels of one under a policy."""
    items: dict[tuple[object, ...], Annotation] = {}
    for at, row in enumerate(rows):
        known = items.setdefault((row.benchmark, row.split, row.item.item_id or row.item), row)
        if known is row:
            continue
        if known.item != row.item:
            said = "item {} has another text than in {}"
            hint = "two versions of a benchmark, or two benchmarks without a column for it"
            raise table.fault(said, row.item.item_id, known.row, row=at, hint=hint)
        for policy, label in row.label.items():
            first = known.label.setdefault(policy, label)
            # decon reports every match of an item: the best one decides.
            if first != label and not of_decon:
                name = row.item.item_id or row.item.question
                both = Public(LABELS[label]), Public(LABELS[first]), known.row
                hint = "keep one label of each item"
                raise table.fault("item {} is {} here and {} in {}", name, *both, row=at, hint=hint)
            known.label[policy] = max(first, label)
            scores = known.score.get(policy, math.nan), row.score[policy]
            known.score[policy] = float(np.fmax(*scores))
    return tuple(items.values())


def _label(table: Table, at: int, value: object) -> int:
    word = text_of(value).lower().replace("_", " ").replace("-", " ")
    if word not in _WORDS:
        hint = (
            "known are contaminated, dirty, leaked, true, yes and 1; clean, false, no and "
            "0; suspect, suspicious; not_checkable, unknown and an empty cell"
        )
        raise table.fault("{!r} is no label", str(value)[:40], row=at, hint=hint)
    return _WORDS[word]


def _score(table: Table, at: int, value: object) -> float:
    word = text_of(value)
    try:
        score = float(word) if word else math.nan
    except ValueError:
        score = math.inf
    if math.isinf(score):
        raise table.fault("{!r} is no score", str(value)[:40], row=at, hint="scores are numbers")
    return score


UNLISTED: Final = ("not_checkable", "clean")
"""What items that a file does not name may be called."""

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judging:
    """Logs joined to verdicts, those of a scan or of a file.

    flags     what each policy says of the items
    joined    for each log, the places of its items among those
    judged    the items by benchmark and split
    source    what run.json says of the verdicts; coverage  of the scan, where there was one
    """

    flags: tuple[Flags, ...]
    joined: tuple[Joined, ...]
    judged: ResultItems
    source: dict[str, Any]
    coverage: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def annotate(
    found: Annotations,
    logs: Sequence[Log],
    policies: Sequence[str],
    *,
    unlisted: str | None = None,
    allow_unmatched: bool = False,
    field: Sequence[Log] = (),
) -> Judging:
    """Join logs to annotations, by content where these have questions, else by id.

    unlisted         what the logs' items are that the file does not name, one of `UNLISTED`
    allow_unmatched  go on although more than 1 % of the file's rows fit no item of the logs, or
                     of a log's items none of the file's while nothing is said of those
    field            logs, joined behind the others, that may hold items which the file does not

    Raises LogError for more than that, for a file that fits no item at all, and for ids that may
    mean several items.
    """
    if unlisted not in {None, *UNLISTED}:
        known = Statement("{}", " or ".join(UNLISTED))
        raise UsageError("unlisted items cannot be {!r}", unlisted, hint=known)
    items = _Items(found)
    joiner = Joiner(items.table())
    joined: list[Joined] = []
    for log in logs:
        own = joiner.match(_as_the_file_can_name(log, found))
        if own.share_unmatched > MOST_UNMATCHED and unlisted is None and not allow_unmatched:
            hint = (
                "is it the same version of the benchmark? Say what unlisted items are: "
                "--unlisted not_checkable, or clean where the file names every contaminated one"
            )
            facts = own.n_unmatched, len(log.items), found.path, own.shown
            raise log.fault("{} of {} items are not in {} ({})", *facts, hint=hint)
        joined.append(
            replace(own, index=items.take(log, own), has_texts=any(map(_text, log.items)))
        )
    n_loose = items.check(allow_unmatched=allow_unmatched)
    beside = []
    for log in field:
        own = joiner.match(_as_the_file_can_name(log, found))
        beside.append(replace(own, index=items.find(log, own)))
    named = {log.benchmark for log, own in zip(logs, joined, strict=True) if own.n_matched}
    unnamed = {
        log.benchmark: f"it names none of the {len(log.items)} items of {log.benchmark or 'a log'}"
        for log in logs
        if unlisted == LABELS[CLEAN] and log.benchmark not in named
    }
    if unnamed and not allow_unmatched:
        more = f", nor of {counted(len(unnamed) - 1, 'more benchmark')}" if len(unnamed) > 1 else ""
        raise LogError(
            "{}: {}{}, all of which would be clean", found.path, next(iter(unnamed.values())), more,
            hint="does the file cover it? --unlisted not_checkable, or leave its logs out; "
            "--allow-unmatched if nothing of it is contaminated",
        )  # fmt: skip
    unlisted = unlisted or LABELS[NOT_CHECKABLE]
    flags = {name: items.flags(name, LABELS.index(unlisted)) for name in found.policies}
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined=(*joined, *beside),
        judged=ResultItems(items.homes, items.keys),
        source={
            "file": str(found.path),
            "sha256": found.sha256,
            "rows": found.n_rows,
            "items": len(found.items),
            "unmatched": n_loose,
            "columns": found.columns,
            "threshold": found.threshold,
            "unlisted": unlisted,
            "labels": {policy: _counts(own, len(found.items)) for policy, own in flags.items()},
        },
        notes=tuple(
            f"{found.path}: {said}"
            for said in (
                *_notes(found, n_loose, items, unlisted),
                *(f"{said}, {unlisted}" for said in unnamed.values()),
            )
        ),
    )


class _Items:
    """The items of a file and, behind them, those of logs that it does not name.

    homes   benchmark and split of every item; keys: what tells it from others
    items   what is known of each: a log's texts where the file has its id alone
    unsure  those beyond the file's that may be one of the file's
    """

    def __init__(self, found: Annotations) -> None:
        self.found = found
        self.homes = [(own.benchmark, own.split) for own in found.items]
        self.items = [own.item for own in found.items]
        self.keys = [
            item.content_key if item.question else text_key(f"id {' '.join(home)} {item.item_id}")
            for home, item in zip(self.homes, self.items, strict=True)
        ]
        self.matched: set[int] = set()
        self.extra: dict[tuple[tuple[str, str], str], int] = {}
        self.unsure: set[int] = set()
        self.numbered: set[str] = set()

    def table(self) -> schemas.Table:
        """The items of the file as an items table."""
        n = len(self.items)
        keys = [content_keys(item.as_asked) if item.question else None for item in self.items]
        parts = ("passage_key", "choices_key", "answer_key")
        return schemas.item_table(
            {
                "benchmark": [benchmark for benchmark, _ in self.homes],
                "split": [split for _, split in self.homes],
                "item_id": [item.item_id for item in self.items],
                "key_version": [KEY_VERSION] * n,
                "question_key": [own and own.text_key for own in keys],
                "item_key": self.keys,
                "full_key": self.keys,
                **{part: [own and getattr(own, part) for own in keys] for part in parts},
                **dict.fromkeys((f"{part}_tokens" for part in schemas.ITEM_TEXTS), [0] * n),
                "question": [item.question for item in self.items],
                "choices": [list(item.choices or ()) or None for item in self.items],
            }
        )

    def take(self, log: Log, joined: Joined) -> Ints:
        """int64[n]: places of the log's items, of which those without one get a new one."""
        index = joined.index.copy()
        known = index[index >= 0].tolist()
        for row, item in zip(index.tolist(), log.items, strict=True):
            if row >= 0 and not _text(self.items[row]) and _text(item):
                self.items[row] = item
        names_benchmark = bool(self.found.columns.get("benchmark"))
        if not names_benchmark:
            for row in set(known) - self.matched:
                self.homes[row] = _home(log)
        self.matched.update(known)
        if self._by_number(known):
            self.numbered.add(log.benchmark)
            if len(self.numbered) > 1:
                said = "{}: its ids are numbers, and the logs are of {}"
                named = Public(", ".join(sorted(self.numbered)))
                hint = "add a column `benchmark`, or the questions"
                raise LogError(said, self.found.path, named, hint=hint)
        home = self.homes[known[0]] if known else _home(log)
        for at in np.flatnonzero(index < 0).tolist():
            item = log.items[at]
            key = _key(item)
            place = self.extra.setdefault((home, key), len(self.items))
            if place == len(self.items):
                self.homes.append(home)
                self.items.append(item)
                self.keys.append(key)
            index[at] = place
        self.unsure.update(index[list(joined.unsure)].tolist())
        return index

    def find(self, log: Log, joined: Joined) -> Ints:
        """int64[n]: places of the items of a log of the field, -1 for those that have none."""
        known = joined.index[joined.index >= 0].tolist()
        if self._by_number(known) and log.benchmark not in self.numbered:
            return np.full(len(log.items), -1, np.int64)
        index = joined.index.copy()
        home = self.homes[known[0]] if known else _home(log)
        for at in np.flatnonzero(index < 0).tolist():
            index[at] = self.extra.get((home, _key(log.items[at])), -1)
        return index

    def _by_number(self, rows: Sequence[int]) -> bool:
        """Whether numbers alone join these items: without a benchmark they could be of any."""
        named = self.found.by_text or bool(self.found.columns.get("benchmark"))
        numbers = all(self.items[row].item_id.isdecimal() for row in rows)
        return bool(rows) and numbers and not named

    def check(self, *, allow_unmatched: bool) -> int:
        """How many of the file's items of the benchmarks met fit no item of a log."""
        path, items = self.found.path, self.found.items
        if not self.matched:
            hint = "are its ids those of the logs? questions join better than ids"
            raise LogError("{}: none of its {} items is in the logs", path, len(items), hint=hint)
        met = {items[row].benchmark for row in self.matched}
        ours = [row for row, own in enumerate(items) if own.benchmark in met]
        loose = [items[row].item for row in ours if row not in self.matched]
        if len(loose) > MOST_UNMATCHED * len(ours) and not allow_unmatched:
            named = "; ".join(item.item_id or str(item.question)[:60] for item in loose[:_SHOWN])
            hint = "is it the same version of the benchmark? --allow-unmatched goes on"
            said = "{}: {} of its {} items are not in the logs ({})"
            raise LogError(said, path, len(loose), len(ours), named, hint=hint)
        return len(loose)

    def flags(self, policy: str, unlisted: int) -> Flags:
        """The labels of one policy over all items.

        Not checkable is what it does not label, and what may be an item that it does label.
        """
        named = self.found.items
        label = np.full(len(self.items), unlisted, np.int8)
        label[: len(named)] = [own.label.get(policy, NOT_CHECKABLE) for own in named]
        label[list(self.unsure)] = NOT_CHECKABLE
        score = np.full(len(self.items), np.nan)
        score[: len(named)] = [own.score.get(policy, np.nan) for own in named]
        # Copies of an item, and items of one passage, are a cluster.
        clusters = [
            item.passage or (item.content_key if _text(item) else key)
            for item, key in zip(self.items, self.keys, strict=True)
        ]
        subjects = [item.item_id.rpartition("/")[0] for item in self.items]
        return Flags(
            policy=policy,
            label=label,
            contamination=score,
            groups={"subject": np.array(subjects, object)},
            cluster=np.unique(clusters, return_inverse=True)[1].astype(np.int64),
            threshold=self.found.threshold,
        )


def _as_the_file_can_name(log: Log, found: Annotations) -> Log:
    """The log with its items by id alone, or by decon's cleaned questions."""
    if not found.by_text:
        items = [LoggedItem(item_id=item.item_id) for item in log.items]
    elif found.of_decon:
        # decon has a row per option: neither choices nor ids tell more than the question.
        items = [
            LoggedItem(
                item_id=str(place),
                question=decon_text(item.question) if item.question else None,
                prompt=decon_text(item.prompt) if item.prompt else None,
            )
            for place, item in enumerate(log.items)
        ]
    else:
        return log
    return replace(log, items=tuple(items))


def _text(item: LoggedItem) -> str:
    return item.question or item.prompt or ""


def _key(item: LoggedItem) -> str:
    return item.content_key if _text(item) else text_key(f"id {item.item_id}")


def _home(log: Log) -> tuple[str, str]:
    return log.benchmark, log.split or ""


def _counts(flags: Flags, n: int) -> dict[str, int]:
    """How many of the first n items have each label."""
    return {name: int(np.sum(flags.label[:n] == code)) for code, name in enumerate(LABELS)}


def _notes(found: Annotations, n_loose: int, items: _Items, unlisted: str) -> Iterator[str]:
    yield "labels from elsewhere; what was read to make them is not known here"
    if found.listed:
        yield "no labels in it, all its items are taken as contaminated"
    if not found.by_text:
        alone = (
            "by id, copies by the logs' texts" if any(map(_text, items.items)) else "by id alone"
        )
        yield f"no questions in it, items were joined {alone}"
    if n_loose:
        yield f"{n_loose} of its items are not in the logs"
    if n_extra := len(items.extra) - len(items.unsure):
        yield f"{counted(n_extra, 'item')} of the logs not in it, {unlisted}"
    if items.unsure:
        label = LABELS[NOT_CHECKABLE]
        yield f"{len(items.unsure)} items of the logs may be some of its items, {label}"
