"""Use annotations as verdicts: items, labels and the places of the logs' items.

Annotations rarely name every item. The items of a re-scoring are therefore those of the file and,
behind them, those of the logs that the file does not name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.benchmark.keys import KEY_VERSION, content_keys, text_key
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.errors import LogError, Place, Public, Statement, UsageError
from contam.rescore.annotations import decon_text
from contam.rescore.complete import ResultItems
from contam.rescore.join import MOST_UNMATCHED, Joined, Joiner
from contam.rescore.logs.model import LoggedItem
from contam.rescore.panel import Flags
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.keys import ContentKeys
    from contam.rescore.annotations import Annotation, Annotations
    from contam.rescore.logs.model import Log

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
) -> Judging:
    """Join logs to annotations, by content where these have questions, else by id.

    unlisted         what the logs' items are that the file does not name, one of `UNLISTED`
    allow_unmatched  go on although more than 1 % of the file's rows fit no item of the logs, or
                     of a log's items none of the file's while nothing is said of those

    Raises LogError for more than that, for a file that fits no item at all, and for ids that may
    mean several items.
    """
    if unlisted not in {None, *UNLISTED}:
        raise UsageError(
            "unlisted items cannot be {!r}", unlisted,
            hint=Statement("{}", " or ".join(UNLISTED)),
        )  # fmt: skip
    joiner = Joiner(_base_table(found))
    universe = _Universe(found)
    joined: list[Joined] = []
    for log in logs:
        own = joiner.match(_with_stated_labels(log, found))
        if own.share_unmatched > MOST_UNMATCHED and unlisted is None and not allow_unmatched:
            raise _not_in_file(found, log, own)
        texts = any(item.question or item.prompt for item in log.items)
        joined.append(replace(own, index=universe.take(log, own), has_texts=texts))
    n_unmatched = universe.check(allow_unmatched=allow_unmatched)
    named = {log.benchmark for log, own in zip(logs, joined, strict=True) if own.n_matched}
    unnamed = {
        log.benchmark: f"it names none of the {len(log.items)} items of {log.benchmark or 'a log'}"
        for log in logs
        if unlisted == LABELS[CLEAN] and log.benchmark not in named
    }
    if unnamed and not allow_unmatched:
        more = f", nor of {len(unnamed) - 1} more benchmarks" if len(unnamed) > 1 else ""
        raise LogError(
            "{}: {}{}, all of which would be clean",
            found.path,
            next(iter(unnamed.values())),
            more,
            hint=(
                "does the file cover it? --unlisted not_checkable, or leave its logs out; "
                "--allow-unmatched if nothing of it is contaminated"
            ),
        )
    label = NOT_CHECKABLE if unlisted is None else LABELS.index(unlisted)
    flags = {name: universe.flags(name, label) for name in found.policies}
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined=tuple(joined),
        judged=ResultItems(universe.table()),
        source=_source(found, flags, n_unmatched, unlisted),
        notes=(
            *_notes(found, n_unmatched, universe, unlisted),
            *(f"{found.path}: {said}, {unlisted}" for said in unnamed.values()),
        ),
    )


@dataclass(slots=True)
class _Universe:
    """The items of a file and, behind them, those of logs that it does not name.

    sets    benchmark and split of every item; keys: what tells it from others
    unsure  those beyond the file's that may be one of the file's
    """

    found: Annotations
    sets: list[tuple[str, str]] = field(init=False)
    keys: list[str] = field(init=False)
    names: list[str] = field(init=False)
    texts: list[LoggedItem | None] = field(init=False)
    matched: set[int] = field(default_factory=set)
    extra: dict[tuple[tuple[str, str], str], int] = field(default_factory=dict)
    unsure: set[int] = field(default_factory=set)
    numbered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        items = self.found.items
        self.sets = [(item.benchmark, item.split) for item in items]
        self.keys = _keys_of_file(self.found)
        self.names = [item.item_id for item in items]
        self.texts = [None] * len(items)

    def take(self, log: Log, joined: Joined) -> Any:  # noqa: ANN401 - int64[n]
        """int64[n]: places of the log's items, of which those without one get a new one."""
        index = joined.index.copy()
        known = [int(row) for row in index if row >= 0]
        if not self.found.by_text:
            for at in np.flatnonzero(index >= 0).tolist():
                item = log.items[at]
                if self.texts[int(index[at])] is None and (item.question or item.prompt):
                    self.texts[int(index[at])] = item
        for row in known:
            if not self.found.columns.get("benchmark"):
                self.sets[row] = self.sets[row] if row in self.matched else _set_of(log)
            self.matched.add(row)
        self._refuse_bare_numbers(log, known)
        home = self.sets[known[0]] if known else _set_of(log)
        for at in np.flatnonzero(index < 0).tolist():
            key = _key_of_log(log.items[at])
            place = self.extra.setdefault((home, key), len(self.sets))
            if place == len(self.sets):
                self.sets.append(home)
                self.keys.append(key)
                self.names.append(log.items[at].item_id)
                self.texts.append(log.items[at])
            index[at] = place
        self.unsure.update(int(index[at]) for at in joined.unsure)
        return index

    def _refuse_bare_numbers(self, log: Log, known: list[int]) -> None:
        """Numbers of a file that names no benchmark could be those of any."""
        if self.found.by_text or self.found.columns.get("benchmark") or not known:
            return
        if all(self.names[row].isdecimal() for row in known):
            self.numbered.add(log.benchmark)
            if len(self.numbered) > 1:
                raise LogError(
                    "{}: its ids are numbers, and the logs are of {}", self.found.path,
                    Public(", ".join(sorted(self.numbered))),
                    hint="add a column `benchmark`, or the questions",
                )  # fmt: skip

    def check(self, *, allow_unmatched: bool) -> int:
        """How many of the file's items of the benchmarks met fit no item of a log."""
        items = self.found.items
        met = {items[row].benchmark for row in self.matched}
        loose = [
            item
            for row, item in enumerate(items)
            if row not in self.matched and item.benchmark in met
        ]
        named = "; ".join(item.item_id or str(item.texts.question)[:60] for item in loose[:_SHOWN])
        if not self.matched:
            raise LogError(
                "{}: none of its {} items is in the logs", self.found.path, len(items),
                hint="are its ids those of the logs? questions join better than ids",
            )  # fmt: skip
        n_met = sum(item.benchmark in met for item in items)
        if len(loose) > MOST_UNMATCHED * n_met and not allow_unmatched:
            raise LogError(
                "{}: {} of its {} items are not in the logs ({})",
                self.found.path,
                len(loose),
                n_met,
                named,
                hint="is it the same version of the benchmark? --allow-unmatched goes on",
            )
        return len(loose)

    def flags(self, policy: str, unlisted: int) -> Flags:
        """The labels of one policy over all items.

        Not checkable is what it does not label, and what may be an item that it does label.
        """
        n_items, n_all = len(self.found.items), len(self.sets)
        label = np.full(n_all, unlisted, np.int8)
        label[:n_items] = [item.label.get(policy, NOT_CHECKABLE) for item in self.found.items]
        label[list(self.unsure)] = NOT_CHECKABLE
        score = np.full(n_all, np.nan)
        score[:n_items] = [item.score.get(policy, np.nan) for item in self.found.items]
        subjects = np.array([name.rpartition("/")[0] for name in self.names], object)
        return Flags(
            policy=policy,
            label=label,
            contamination=score,
            groups={"subject": subjects},
            cluster=np.unique(self._clusters(), return_inverse=True)[1].astype(np.int64),
            length=np.array([len(self._question(row).split()) for row in range(n_all)], np.float64),
            threshold=self.found.threshold,
        )

    def table(self) -> schemas.Table:
        """What identifies the items, as an items table."""
        questions = [self._question(row) for row in range(len(self.sets))]
        return _items_table(
            self.sets, self.names, self.keys, [text_key(q) if q else None for q in questions]
        )

    def _clusters(self) -> list[str]:
        """The passage of every item, or what tells it from others: copies have one, too."""
        passages = [item.texts.passage for item in self.found.items]
        passages += [None] * (len(self.texts) - len(passages))
        return [
            passage or (text and (text.passage or _key_of_log(text))) or key
            for passage, text, key in zip(passages, self.texts, self.keys, strict=True)
        ]

    def _question(self, row: int) -> str:
        item = self.texts[row]
        if item is None:
            return self.found.items[row].texts.question or ""
        return item.question or item.prompt or ""


def _with_stated_labels(log: Log, found: Annotations) -> Log:
    """The log as the file can name its items: by id alone, or by decon's cleaned questions."""
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


def _base_table(found: Annotations) -> schemas.Table:
    items = found.items
    keys = [_content_keys(item) for item in items]
    return _items_table(
        [(item.benchmark, item.split) for item in items],
        [item.item_id for item in items],
        _keys_of_file(found),
        [key.text_key if key else None for key in keys],
        passage_key=[key.passage_key if key else None for key in keys],
        choices_key=[key.choices_key if key else None for key in keys],
        answer_key=[key.answer_key if key else None for key in keys],
        question=[item.texts.question for item in items],
        choices=[list(item.texts.choices or ()) or None for item in items],
    )


def _items_table(
    sets: Sequence[tuple[str, str]],
    names: Sequence[str],
    keys: Sequence[str],
    questions: Sequence[str | None],
    **more: Sequence[Any],
) -> schemas.Table:
    empty: list[str | None] = [None] * len(names)
    zeros = [0] * len(names)
    columns: dict[str, Any] = {
        "benchmark": [benchmark for benchmark, _ in sets],
        "split": [split for _, split in sets],
        "item_id": list(names),
        "key_version": [KEY_VERSION] * len(names),
        "question_key": questions,
        "item_key": keys,
        "full_key": keys,
        **dict.fromkeys(("passage_key", "choices_key", "answer_key"), empty),
        **dict.fromkeys((f"{part}_tokens" for part in schemas.ITEM_TEXTS), zeros),
        **more,
    }
    return schemas.item_table(columns)


def _keys_of_file(found: Annotations) -> list[str]:
    return [
        keys.item_key
        if (keys := _content_keys(item))
        else text_key(f"id {item.benchmark} {item.split} {item.item_id}")
        for item in found.items
    ]


def _content_keys(item: Annotation) -> ContentKeys | None:
    """None for an item without a question."""
    texts = item.texts
    if not texts.question:
        return None
    return content_keys(
        BenchItem(
            benchmark="",
            split="",
            item_id=item.item_id,
            question=texts.question,
            choices=texts.choices or (),
            passage=texts.passage,
            answer=texts.answer,
        )
    )


def _key_of_log(item: LoggedItem) -> str:
    return item.content_key if item.question or item.prompt else text_key(f"id {item.item_id}")


def _set_of(log: Log) -> tuple[str, str]:
    return log.benchmark, log.split or ""


def _not_in_file(found: Annotations, log: Log, joined: Joined) -> LogError:
    named = "; ".join(f"{name}: {why}" for name, why in joined.unmatched[:_SHOWN])
    return LogError(
        "{}: {} of {} items are not in {} ({})",
        Place(log.path),
        joined.n_unmatched,
        len(log.items),
        found.path,
        named,
        hint=(
            "is it the same version of the benchmark? Say what unlisted items are: "
            "--unlisted not_checkable, or clean where the file names every contaminated one"
        ),
    )


def _source(
    found: Annotations, flags: dict[str, Flags], n_unmatched: int, unlisted: str | None
) -> dict[str, Any]:
    return {
        "file": str(found.path),
        "sha256": found.sha256,
        "rows": found.n_rows,
        "items": len(found.items),
        "unmatched": n_unmatched,
        "columns": found.columns,
        "threshold": found.threshold,
        "unlisted": unlisted or NOT_CHECKABLE_NAME,
        "labels": {
            policy: {
                name: int(np.sum(own.label[: len(found.items)] == code))
                for code, name in enumerate(LABELS)
            }
            for policy, own in flags.items()
        },
    }


NOT_CHECKABLE_NAME: Final = LABELS[NOT_CHECKABLE]


def _notes(
    found: Annotations, n_unmatched: int, universe: _Universe, unlisted: str | None
) -> list[str]:
    notes = [f"{found.path}: labels from elsewhere; what was read to make them is not known here"]
    if found.listed:
        notes.append(f"{found.path}: no labels in it, all its items are taken as contaminated")
    if not found.by_text:
        alone = "by id, copies by the logs' texts" if any(universe.texts) else "by id alone"
        notes.append(f"{found.path}: no questions in it, items were joined {alone}")
    if n_unmatched:
        notes.append(f"{found.path}: {n_unmatched} of its items are not in the logs")
    n_extra = len(universe.extra) - len(universe.unsure)
    if n_extra:
        label = unlisted or NOT_CHECKABLE_NAME
        notes.append(f"{found.path}: {n_extra} items of the logs not in it, {label}")
    if universe.unsure:
        notes.append(
            f"{found.path}: {len(universe.unsure)} items of the logs may be some of its items, "
            f"{NOT_CHECKABLE_NAME}"
        )
    return notes
