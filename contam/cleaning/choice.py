"""Choose the documents to take out, and where in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np

from contam.detect.labels import FLAGGED, LABELS
from contam.detect.policies.common import EXPOSURES
from contam.detect.policies.policy import sees_rephrasings
from contam.errors import PolicyError, Statement, UsageError
from contam.text.text_tables import FoldKind, load_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contam.benchmark.items import ItemName
    from contam.detect.match.collect import Collection as Collected
    from contam.detect.match.pieces import Hits
    from contam.detect.model import Bools, Float64s, Int8s, Int64s
    from contam.detect.plan import Plan
    from contam.tables.edits import Span

ACTIONS: Final = ("drop", "mask", "cut", "list")

#: What stands where a stretch was masked: punctuation, which no policy reads as a word.
MASK: Final = "[...]"
#: A document goes when the weights of its items reach it; sums of tenths fall short of 1.
_ENOUGH: Final = 1 - 1e-9
_MOST: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%|[0-9]+")


@dataclass(frozen=True, kw_only=True)
class CleanOptions:
    """What is done with which documents.

    labels         of the items whose documents go
    exposures      what a document must show of an item; empty: anything
    sources        those whose documents go; empty: of any or none
    weights        benchmark -> what each of its items weighs, others weigh 1: a document goes when
                   the items in it weigh 1 or more together
    most           stop when more documents would go: a share ("0.1%") or a number; None: never
    around         code points to cut on both sides of a stretch, besides, and to the end of a word
    min_piece      code points of the shortest piece that a cut leaves; what is shorter goes, too
    max_cuts       cuts in a document from more of which on it is dropped; None: any number
    keep_removed   whether `removed/` holds the text that was taken out
    """

    action: str = "drop"
    labels: tuple[str, ...] = FLAGGED
    exposures: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    most: str | None = None
    around: int = 0
    min_piece: int = 0
    max_cuts: int | None = None
    keep_removed: bool = False

    def __post_init__(self) -> None:
        _refuse_unknown("action", [self.action], ACTIONS)
        _refuse_unknown("label", self.labels, LABELS)
        _refuse_unknown("exposure", self.exposures, EXPOSURES)
        if not self.labels:
            raise UsageError(
                "no label was asked for", hint=Statement("known: {}", ", ".join(LABELS))
            )
        for name, weight in self.weights.items():
            if not 0 <= weight < float("inf"):
                raise UsageError("the weight of {} must be 0 or more, not {}", name, weight)
        for name in ("around", "min_piece", "max_cuts"):
            value = getattr(self, name)
            if value is not None and (value < 0 or (value and self.action != "cut")):
                raise UsageError("`{}` is a number from 0, and only for cutting", name)
        self.most_documents(0)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Those among the keywords of a call that are fields of this one."""
        given = {one.name: options[one.name] for one in fields(cls) if one.name in options}
        for name in {"labels", "exposures", "sources"} & given.keys():
            given[name] = tuple([given[name]] if isinstance(given[name], str) else given[name])
        return cls(**{**given, "weights": dict(given.get("weights") or {})})

    def most_documents(self, n_documents: int) -> float:
        """How many of so many documents may go. Raises UsageError for a limit that is none."""
        if self.most is None:
            return float("inf")
        found = _MOST.fullmatch(self.most.strip())
        if found is None or (found[1] and float(found[1]) > 100):  # noqa: PLR2004 - per cent
            raise UsageError(
                "{} is neither a share such as 0.1% nor a number of documents", self.most
            )
        return float(found[1]) / 100 * n_documents if found[1] else float(found[0])

    @property
    def replacement(self) -> str | None:
        """What stands in place of a stretch; None where it is cut."""
        return MASK if self.action == "mask" else None


def _refuse_unknown(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                "{!r} is no {}", name, what, hint=Statement("known: {}", ", ".join(known))
            )


SparedRows: TypeAlias = Mapping[int, frozenset[tuple[int, int]]]
"""Row of a shard -> the items and policies by which the document in it is harmless."""


class Found(NamedTuple):
    """A document to take out.

    items, policies  numbers of the items and policies it is taken out for, ascending
    spans            stretches of its text: sorted, disjoint
    """

    row: int
    items: tuple[int, ...]
    policies: tuple[int, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """Which hits count, for the n items and p policies of a plan.

    policies   for each view, the numbers of its policies
    wanted     bool[n, p]
    exposures  bool, by code
    weight     float64[n]
    """

    policies: tuple[tuple[int, ...], ...]
    wanted: Bools
    exposures: Bools
    weight: Float64s

    def documents(self, hits: Mapping[int, Hits], spared: SparedRows) -> list[Found]:
        """The documents of one shard that go, by row.

        hits  of each view that has some;  spared  which of them do not count
        """
        items: dict[int, set[int]] = {}
        policies: dict[int, set[int]] = {}
        spans: dict[int, list[Span]] = {}
        for view, found in sorted(hits.items()):
            numbers = np.array(self.policies[view])
            counted = found.counted & self.wanted[found.item[:, np.newaxis], numbers]
            for at in np.flatnonzero(np.isin(found.row, list(spared))).tolist():
                kept = spared[int(found.row[at])]
                counted[at] &= [(int(found.item[at]), n) not in kept for n in numbers.tolist()]
            some = counted.any(axis=1) & self.exposures[found.exposure]
            some &= self.weight[found.item] > 0
            keep = np.flatnonzero(some)
            chosen = found.take(keep)
            ends = np.cumsum(chosen.n_spans).tolist()
            stretches = list(zip(chosen.start.tolist(), chosen.end.tolist(), strict=True))
            begin = 0
            for item, row, judged, end in zip(
                chosen.item.tolist(), chosen.row.tolist(), counted[keep], ends, strict=True
            ):
                items.setdefault(row, set()).add(item)
                policies.setdefault(row, set()).update(numbers[judged].tolist())
                spans.setdefault(row, []).extend(stretches[begin:end])
                begin = end
        return [
            Found(row, tuple(sorted(its)), tuple(sorted(policies[row])), joined(spans[row]))
            for row, its in sorted(items.items())
            if self.weight[sorted(its)].sum() >= _ENOUGH
        ]


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """What a run does with every shard.

    choice  which hits count in the corpus as it is;  after  and in what is written
    spared  hits that do not count, by shard
    """

    plan: Plan
    options: CleanOptions
    choice: Choice
    after: Choice
    spared: Mapping[int, SparedRows]

    @cached_property
    def names(self) -> list[ItemName]:
        """The names of the items by number."""
        return self.plan.items.names()


def refuse_unfit(plan: Plan, options: CleanOptions) -> None:
    """Refuse what a plan cannot be cleaned by.

    Raises UsageError for the weight of a benchmark that is not there, and PolicyError for a policy
    that looks for rephrased questions: it only says where people should look, and its evidence is
    single words.
    """
    if asked := [policy.spec.id for policy in plan.policies if sees_rephrasings(policy)]:
        raise PolicyError(
            "{} says where people should look; by itself it is no ground to take text out",
            ", ".join(asked),
            hint="`contam policies` lists them",
        )
    known = sorted(set(plan.items.column("benchmark")))
    _refuse_unknown("benchmark", tuple(options.weights), known)


def choice_of(
    plan: Plan,
    options: CleanOptions,
    labels: Int8s,
    spared: Collection[tuple[int, int]] = (),
    n_documents: Int64s | None = None,
) -> Choice:
    """Which hits count, for options that `refuse_unfit` let pass.

    labels       int8[n, p] of the corpus as it was
    spared       items and policies by which they are harmless
    n_documents  int64[n, p] of it: hits of items without any then count too, as cutting made them
    """
    wanted = np.isin(labels, [LABELS.index(label) for label in options.labels])
    if n_documents is not None:
        wanted |= n_documents == 0
    for item, policy in spared:
        wanted[item, policy] = False
    names = plan.items.column("benchmark")
    exposed = np.array([name in options.exposures or not options.exposures for name in EXPOSURES])
    return Choice(
        policies=tuple(
            tuple(n for n, at in enumerate(plan.view_of) if at == view)
            for view in range(len(plan.views))
        ),
        wanted=wanted,
        exposures=exposed,
        weight=np.array([options.weights.get(name, 1.0) for name in names]),
    )


def judged(plan: Plan, collections: Sequence[Collected]) -> tuple[Int8s, Int64s]:
    """Labels of all items, int8[n, p], and how many documents count, int64[n, p]."""
    labels = np.zeros((len(plan.items), len(plan.policies)), np.int8)
    counts = np.zeros(labels.shape, np.int64)
    seen = [0] * len(plan.views)
    for number, (policy, at) in enumerate(zip(plan.policies, plan.view_of, strict=True)):
        totals = collections[at].totals(seen[at])
        seen[at] += 1
        labels[:, number] = policy.judge(plan.views[at].items, totals).label
        counts[:, number] = totals.n_documents
    return labels, counts


def joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same stretches sorted, those that overlap or touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return tuple(found)


def widened(spans: Sequence[Span], around: int, length: int) -> tuple[Span, ...]:
    """The stretches with so many code points more on both sides, within a text of this length."""
    return joined([(max(0, start - around), min(length, end + around)) for start, end in spans])


def whole_words(spans: Sequence[Span], text: str) -> tuple[Span, ...]:
    """The stretches widened to whole words; what is left on both sides stays apart.

    Characters of scripts that are written without spaces are words of their own.
    """
    found = []
    for start, end in spans:
        while start > 0 and _in_word(text[start - 1]) and _in_word(text[start]):
            start -= 1  # noqa: PLW2901 - the stretch grows
        while end < len(text) and _in_word(text[end - 1]) and _in_word(text[end]):
            end += 1  # noqa: PLW2901
        if start > 0 and end < len(text) and _in_word(text[start - 1]) and _in_word(text[end]):
            # Neither edge of the stretch is part of a word: one of them stays.
            if text[end - 1].isspace():
                end -= 1  # noqa: PLW2901
            else:
                start += 1  # noqa: PLW2901
        found.append((start, end))
    return joined(found)


def _in_word(char: str) -> bool:
    tables = load_tables()
    code = ord(char)
    kind = tables.entry[int(tables.page[code >> 8]) * 256 + (code & 255)] & 7
    return kind not in (FoldKind.SEPARATOR, FoldKind.SINGLE)


def long_pieces(spans: Sequence[Span], bounds: Sequence[Span], least: int) -> tuple[Span, ...]:
    """The stretches, and what they would leave of their texts in pieces that are too short.

    bounds  where each text begins and ends in the whole, for instance the turns of a conversation
    """
    found = list(spans)
    for begin, end in bounds:
        own = [(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin]
        places = [begin, *(place for span in own for place in span), end]
        pieces = list(zip(places[::2], places[1::2], strict=True))
        found += [(a, b) for a, b in pieces if own and b - a < least]
    return joined(found)


def n_cuts(spans: Sequence[Span], text: str) -> int:
    """How many cuts these stretches are: those with nothing between them are one."""
    gaps = (text[end:start] for (_, end), (start, _) in pairwise(spans))
    return sum(not gap.isspace() for gap in gaps) + bool(spans)


def within_lines(spans: Sequence[Span], text: str) -> tuple[Span, ...]:
    """The stretches without the line feeds in them, each of which may join two texts.

    A conversation is read as its turns with line feeds between; these belong to no turn.
    """
    found = []
    for start, end in spans:
        at = start
        for line in text[start:end].split("\n"):
            if line:
                found.append((at, at + len(line)))
            at += len(line) + 1
    return tuple(found)


def in_original(
    spans: Sequence[Span], taken: Sequence[Span], replacement: str | None
) -> tuple[Span, ...]:
    """Stretches of an edited text as stretches of the original, together with those taken before.

    taken  the stretches that were replaced: sorted, disjoint
    """
    n_new = len(replacement or "")
    # Where each stretch that was taken begins in the edited text.
    begins: list[int] = []
    shift = 0
    for start, end in taken:
        begins.append(start - shift)
        shift += end - start - n_new

    def origin(place: int, *, is_end: bool) -> int:
        shift = 0
        for (start, end), begin in zip(taken, begins, strict=True):
            if place < begin or (place == begin and is_end):
                break
            if place < begin + n_new or (place == begin + n_new and is_end and n_new):
                return end if is_end else start
            shift += end - start - n_new
        return place + shift

    moved = [(origin(start, is_end=False), origin(end, is_end=True)) for start, end in spans]
    return joined([*moved, *taken])
