"""Use annotations as verdicts: items, labels and the places of the logs' items.

Annotations rarely name every item. The items of a re-scoring are therefore those of the file and,
behind them, those of the logs that the file does not name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.keys import KEY_VERSION, content_keys, text_key
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.errors import LogError, Public, Statement, UsageError
from contam.rescore.annotations import decon_text
from contam.rescore.complete import ResultItems
from contam.rescore.join import MOST_UNMATCHED, Joined, Joiner
from contam.rescore.logs.model import LoggedItem
from contam.rescore.panel import Flags
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.rescore.annotations import Annotations
    from contam.rescore.arrays import Ints
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
    named = {log.benchmark for log, own in zip(logs, joined, strict=True) if own.n_matched}
    unnamed = {
        log.benchmark: f"it names none of the {len(log.items)} items of {log.benchmark or 'a log'}"
        for log in logs
        if unlisted == LABELS[CLEAN] and log.benchmark not in named
    }
    if unnamed and not allow_unmatched:
        more = f", nor of {len(unnamed) - 1} more benchmarks" if len(unnamed) > 1 else ""
        raise LogError(
            "{}: {}{}, all of which would be clean", found.path, next(iter(unnamed.values())), more,
            hint="does the file cover it? --unlisted not_checkable, or leave its logs out; "
            "--allow-unmatched if nothing of it is contaminated",
        )  # fmt: skip
    unlisted = unlisted or LABELS[NOT_CHECKABLE]
    flags = {name: items.flags(name, LABELS.index(unlisted)) for name in found.policies}
    return Judging(
        flags=tuple(flags[name] for name in policies),
        joined=tuple(joined),
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
        # Numbers of a file that names no benchmark could be those of any.
        numbers = all(self.items[row].item_id.isdecimal() for row in known)
        if known and numbers and not (self.found.by_text or names_benchmark):
            self.numbered.add(log.benchmark)
            if len(self.numbered) > 1:
                said = "{}: its ids are numbers, and the logs are of {}"
                named = Public(", ".join(sorted(self.numbered)))
                hint = "add a column `benchmark`, or the questions"
                raise LogError(said, self.found.path, named, hint=hint)
        home = self.homes[known[0]] if known else _home(log)
        for at in np.flatnonzero(index < 0).tolist():
            item = log.items[at]
            key = item.content_key if _text(item) else text_key(f"id {item.item_id}")
            place = self.extra.setdefault((home, key), len(self.items))
            if place == len(self.items):
                self.homes.append(home)
                self.items.append(item)
                self.keys.append(key)
            index[at] = place
        self.unsure.update(index[list(joined.unsure)].tolist())
        return index

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
            length=np.array([len(_text(item).split()) for item in self.items], np.float64),
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
        yield f"{n_extra} items of the logs not in it, {unlisted}"
    if items.unsure:
        label = LABELS[NOT_CHECKABLE]
        yield f"{len(items.unsure)} items of the logs may be some of its items, {label}"
