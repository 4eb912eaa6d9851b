"""Study scores by the dates of their items: before and after a cutoff, month by month."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.dates import LEAK, SHARED, UNKNOWN, class_of, span_of
from contam.errors import LogError, Names, Public, Statement, UsageError
from contam.facts import counted
from contam.rescore.field import LEAST_FIELD, beyond_field
from contam.rescore.stats.clusters import SURE, interval_of
from contam.rescore.stats.gain import LEAST, gain
from contam.rescore.stats.permutation import adjust, most_draws
from contam.study.dated import Dated, drop, iso, read_dated, scan, stratified_drop
from contam.study.model import (
    Chart,
    Finding,
    Line,
    Panel,
    Points,
    Refusal,
    Study,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.detect.given import Source
    from contam.rescore import Bools, Floats, Row
    from contam.rescore.judging import Verdicts
    from contam.rescore.stats.clusters import Estimate

MONTHS: Final[Mapping[str, int]] = {"month": 1, "quarter": 3, "half-year": 6, "year": 12}
"""Windows by name -> their months."""

AFTER: Final = "after_cutoff"
CLASSES: Final = (LEAK, SHARED, UNKNOWN, AFTER)
"""What the documents of a flagged item are to a model, worst first."""

_YEAR: Final = 12
_LONGEST: Final = 31

_ESTIMATE: Final = ("", "_error", "_low", "_high", "_p")
_BEYOND: Final = ("", "_low", "_high", "_p")
_ADJUSTED: Final = ("drop_p", "stratified_p", "against_references_p")
_DROPS: Final = {
    "model": str, "cutoff": str, "n_before": int, "n_after": int, "n_between": int,
    "before": float, "after": float,
    **{f"{kind}{end}": float for kind in ("drop", "stratified") for end in _ESTIMATE},
    **{f"against_references{end}": float for end in _BEYOND},
    **{f"drop_clean{end}": float for end in _ESTIMATE},
    "stratified_share": float,
    **{f"{p}_{name}": float for p in _ADJUSTED for name in ("holm", "bh")},
    "note": str,
}  # fmt: skip
_WINDOWS: Final = {
    "model": str, "window": str, "start": str, "end": str, "n": int,
    "score": float, "low": float, "high": float, "may_be_known": str,
}  # fmt: skip
_SCAN: Final = {
    "model": str, "last_day_before": str, "n": int, "n_cutoffs": int,
    "z": float, "p": float, "p_holm": float, "p_bh": float,
}  # fmt: skip
_SOURCES: Final = {
    "model": str, "documents": str, "n_items": int, "n_documents": int, "n_clean": int,
    "score": float, "score_clean": float, "epg": float,
    "p": float, "p_holm": float, "p_bh": float, "note": str,
}  # fmt: skip
TABLES: Final[Mapping[str, Mapping[str, type]]] = {
    "drops": _DROPS, "windows": _WINDOWS, "scan": _SCAN, "sources": _SOURCES,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSettings:
    """What the tests of a study of dated scores rest on.

    least         items needed on either side of a cutoff
    permutations  draws of the search for a cutoff
    """

    least: int = LEAST
    permutations: int = 2_000
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Question:
    """What is asked of dated scores.

    references  models that cannot have seen the items
    """

    given: Dated
    references: Sequence[str]
    settings: TimeSettings
    refusals: list[Refusal] = field(default_factory=list)

    def scores(self) -> Iterator[tuple[str, Floats]]:
        """Every tested model with its scores, float64[n]."""
        for model, own in zip(self.given.models, self.given.score, strict=True):
            if model not in self.references:
                yield model, own


def time(
    logs: str | Path | Sequence[str | Path],
    dates: Source | None = None,
    *,
    cutoffs: Mapping[str, str] | Source | None = None,
    references: Sequence[str] = (),
    strata: Sequence[str] | None = None,
    window: str = "quarter",
    verdicts: Verdicts | None = None,
    policy: str = "",
    metric: str = "",
    columns: Mapping[str, str] | None = None,
    settings: TimeSettings | None = None,
) -> Study:
    """Whether scores fall where a model's data end, and what came out of step by month.

    logs        per-item scores of models on one benchmark: shares between 0 and 1
    dates       a table of items with the date each came out, and their strata; that of the logs
                themselves when None
    cutoffs     model -> last day of its data, or a table with the columns model and cutoff
    references  models that cannot have seen the items, two or more: they show how hard these are
    strata      columns of `dates`; platform and difficulty, where there are such, when None
    window      "month", "quarter", "half-year" or "year"
    verdicts    of the items: adds drops on clean items, and gains by the date of documents
    settings    what the tests rest on

    Raises LogError for scores or dates that are none, UsageError for unknown names.
    """
    if window not in MONTHS:
        hint = Statement("known: {}", ", ".join(MONTHS))
        raise UsageError("there is no window {!r}", window, hint=hint)
    given = read_dated(
        logs,
        dates,
        cutoffs=cutoffs,
        strata=strata,
        verdicts=verdicts,
        policy=policy,
        metric=metric,
        columns=columns,
    )
    for model, n in zip(given.models, (~np.isnan(given.score)).sum(axis=1).tolist(), strict=True):
        if n <= 1:
            raise LogError("{} has {} scores of items with a date", Public(model), n)
    for name in references:
        if name not in given.models:
            hint = Statement("models: {}", Names(given.models))
            raise UsageError("no scores of the reference model {!r}", name, hint=hint)
    if set(given.models) <= set(references):
        raise UsageError("all models are references, and none is left to study")
    settings = settings or TimeSettings()
    asked = _Question(given=given, references=references, settings=settings)
    drops, scans = list(_drop_rows(asked)), list(_scan_rows(asked))
    adjust(drops, _ADJUSTED, lambda _: "all")
    adjust(scans, ("p",), lambda _: "all")
    # The fairest that is at hand.
    kind = next((one for one in _SURENESS if _estimated(drops, one)), _PLAIN)
    windows = _window_rows(given, MONTHS[window])
    rows = {"drops": drops, "windows": windows, "scan": scans}
    if given.documents is not None and given.clean is not None:
        sources = list(_source_rows(asked, given.documents, given.clean))
        adjust(sources, ("p",), lambda row: row["documents"])
        rows["sources"] = sources
    return Study(
        name="time",
        finding=_finding(kind, drops, scans, _lost(kind, given, references)),
        tables={name: table_of(own, TABLES[name]) for name, own in rows.items()},
        refusals=asked.refusals,
        pictures=_pictures(drops),
        columns=_columns(kind, references=bool(references), strata=bool(given.strata_names)),
        run={
            "parameters": {
                "references": list(references),
                "strata": list(given.strata_names),
                "window": window,
                "policy": given.policy,
                **asdict(settings),
            },
            "inputs": list(given.sources),
            "notes": [*given.notes, *_reference_notes(given, references)],
            "coverage": dict(given.coverage),
        },
    )


def _estimated(drops: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in drops if not np.isnan(row[f"{kind}_p"])]


def _columns(kind: str, *, references: bool, strata: bool) -> list[str]:
    kinds = ["drop"] + ["stratified"] * strata + ["against_references"] * references
    limits = (f"{kind}_{end}" for end in ("low", "high", "p_holm"))
    return ["model", "cutoff", "n_before", "n_after", *kinds, *limits]


def _reference_notes(given: Dated, references: Sequence[str]) -> Iterator[str]:
    """A reference whose data end after the first items is none for these."""
    for name in references:
        if name in given.cutoffs and (n := int((given.first <= given.cutoffs[name][1]).sum())):
            yield f"reference {name} may have seen {n} items that came out before its cutoff"


def _drop_rows(asked: _Question) -> Iterator[Row]:
    given, least = asked.given, max(asked.settings.least, 2)
    for model, scores in asked.scores():
        if model not in given.cutoffs:
            asked.refusals.append(Refusal(f"drop of {model}", "no cutoff of its data is given"))
            continue
        known = ~np.isnan(scores)
        first, last = given.cutoffs[model]
        # Surely before and surely after the model's data end.
        sides = known & (given.last <= first), known & (given.first > last)
        n_before, n_after = (int(side.sum()) for side in sides)
        row: Row = dict.fromkeys(_DROPS, np.nan) | {
            "model": model,
            "cutoff": _shown(given.cutoffs[model]),
            "n_before": n_before,
            "n_after": n_after,
            "n_between": int(known.sum()) - n_before - n_after,
            "note": "",
        }
        if min(n_before, n_after) < least:
            reason = f"{n_before} items before and {n_after} after, {least} are needed"
            asked.refusals.append(Refusal(f"drop of {model}", reason))
            yield row | {"note": f"not estimable: {reason}"}
            continue
        before, after = (scores[side] for side in sides)
        row["before"], row["after"] = float(before.mean()), float(after.mean())
        row |= _told("drop", drop(before, after))
        if given.strata_names:
            kinds = given.strata[sides[0]], given.strata[sides[1]]
            found, row["stratified_share"] = stratified_drop(before, after, kinds)
            row |= _told("stratified", found)
        if asked.references:
            row |= _against_references(asked, scores, sides)
        if given.clean is not None:
            before, after = (scores[side & given.clean] for side in sides)
            if min(len(before), len(after)) >= least:
                row |= _told("drop_clean", drop(before, after))
        yield row


def _against_references(asked: _Question, own: Floats, sides: tuple[Bools, Bools]) -> Row:
    """What a model scores more before than after, beyond how much easier its references find it."""
    before, after = sides
    models = asked.given.models
    usual = asked.given.score[[models.index(name) for name in asked.references]]
    known = ~np.isnan(usual)
    enough = np.minimum((known & before).sum(axis=1), (known & after).sum(axis=1))
    usual = usual[enough >= max(asked.settings.least, 2)]
    if len(usual) < LEAST_FIELD:
        said = counted(len(usual), "reference model")
        return {"note": f"not against references: {said}, at least {LEAST_FIELD} needed"}
    inside = before | after
    scores = np.vstack([usual, own])[:, inside]
    found = beyond_field(scores, before[inside], references=range(len(usual)))[-1]
    if found is None:
        return {}
    figures = (found.points, found.low, found.high, found.p)
    return {f"against_references{end}": x for end, x in zip(_BEYOND, figures, strict=True)}


def _told(name: str, found: Estimate) -> Row:
    figures = (found.value, found.error, *found.limits(), found.p)
    return {f"{name}{end}": figure for end, figure in zip(_ESTIMATE, figures, strict=True)}


def _shown(days: tuple[int, int]) -> str:
    return iso(days[0]) if days[0] == days[1] else f"{iso(days[0])} to {iso(days[1])}"


def _window_rows(given: Dated, months: int) -> Iterator[Row]:
    """Every model in every window that an item lies in as a whole, empty ones left out."""
    for start, end in _windows(int(given.first.min()), int(given.last.max()), months):
        inside = (given.first >= start) & (given.last <= end)
        for model, scores in zip(given.models, given.score, strict=True):
            own = scores[inside & ~np.isnan(scores)]
            if not len(own):
                continue
            found = interval_of(own)
            cutoff = given.cutoffs.get(model)
            may = "unknown" if cutoff is None else "yes" if cutoff[1] >= start else "no"
            yield {
                "model": model,
                "window": f"{iso(start)[:7]}" if months == 1 else f"{iso(start)} to {iso(end)}",
                "start": iso(start),
                "end": iso(end),
                "n": len(own),
                "score": found.estimate,
                "low": found.low,
                "high": found.high,
                "may_be_known": may,
            }


def _windows(first: int, last: int, months: int) -> Iterator[tuple[int, int]]:
    """The first and last day of each window from one day to another."""
    ends = (dt.date.fromordinal(day) for day in (first, last))
    begin, end = (day.year * _YEAR + day.month - 1 for day in ends)
    for month in range(begin // months * months, end + 1, months):
        start, then = (dt.date(at // _YEAR, at % _YEAR + 1, 1) for at in (month, month + months))
        yield start.toordinal(), then.toordinal() - 1


def _scan_rows(asked: _Question) -> Iterator[Row]:
    """The sharpest cutoff of each model; days known to a month at least."""
    given = asked.given
    short = given.last - given.first < _LONGEST
    family = len(given.models) - len(asked.references)
    for model, values in asked.scores():
        known = short & ~np.isnan(values)
        found = scan(
            values[known],
            given.last[known],
            strata=given.strata[known],
            least=max(asked.settings.least, 2),
            permutations=asked.settings.permutations,
            most=most_draws(family),
            seed=asked.settings.seed,
        )
        if found is None:
            least = asked.settings.least
            reason = f"no day has {least} items on either side, or all scores are equal"
            asked.refusals.append(Refusal(f"search for a cutoff of {model}", reason))
            continue
        yield {
            "model": model,
            "last_day_before": iso(found.day),
            "n": int(known.sum()),
            **asdict(found),
        }


def _source_rows(
    asked: _Question, documents: Mapping[int, Sequence[str | None]], is_clean: Bools
) -> Iterator[Row]:
    """Gain from flagged items whose documents are older than them, younger, or undated."""
    given, settings = asked.given, asked.settings
    for model, scores in asked.scores():
        known = ~np.isnan(scores)
        cutoff = given.cutoffs.get(model)
        flagged = {name: np.zeros(len(scores), np.bool_) for name in CLASSES}
        n_documents: Counter[str] = Counter()
        for at, dates in documents.items():
            if known[at]:
                kinds = [_class_for(date, given, at, cutoff) for date in dates]
                n_documents.update(kinds)
                flagged[min(kinds or [UNKNOWN], key=CLASSES.index)][at] = True
        clean = is_clean & known
        for name, own in flagged.items():
            inside = clean | own
            found = gain(scores[inside], own[inside], least=settings.least, seed=settings.seed)
            yield {
                "model": model,
                "documents": name,
                "n_items": int(own.sum()),
                "n_documents": n_documents[name],
                "n_clean": int(clean.sum()),
                "score": float(scores[own].mean()) if own.any() else np.nan,
                "score_clean": float(scores[clean].mean()) if clean.any() else np.nan,
                **asdict(found),
            }


def _class_for(date: str | None, given: Dated, at: int, cutoff: tuple[int, int] | None) -> str:
    """What a document is to an item, or that it is younger than the model's data."""
    when = span_of(date)
    if cutoff is not None and when is not None and when[0].toordinal() > cutoff[1]:
        return AFTER
    first, last = iso(int(given.first[at])), iso(int(given.last[at]))
    kinds = {class_of(date, first), class_of(date, last)}
    return kinds.pop() if len(kinds) == 1 else UNKNOWN


#: How far to the right of a drop that against the references stands.
_BESIDE: Final = 0.18


def _lost(kind: str, given: Dated, references: Sequence[str]) -> str:
    """Which fairer comparison could not be made, as the finding begins to say how sure it is."""
    parts = []
    if references and kind != "against_references":
        parts.append("The references could not be used: the notes of the drops say why. ")
    if given.strata_names and kind == _PLAIN:
        names = " and ".join(given.strata_names)
        parts.append(f"No {names} has items both before and after, so unlike ones are compared. ")
    return "".join(parts)


def _finding(
    kind: str,
    drops: Sequence[Row],
    scans: Sequence[Row],
    lost: str,
) -> Finding:
    """What was found by one kind of drop, how sure it is, what would change it.

    lost  what is to be said of fairer kinds that were asked for, "" for none
    """
    known = _estimated(drops, kind)
    fallen = [row for row in known if row[f"{kind}_p_holm"] < SURE and row[kind] > 0]
    fall = "No drop at a known cutoff could be estimated."
    if known:
        fall = (
            f"None of {len(known)} models is shown to fall at its cutoff, after Holm's correction."
        )
    how, sure = _SURENESS[kind]
    sure = f"{lost}{sure}"
    if fallen:
        worst = max(fallen, key=lambda row: float(row[kind]))
        drop, low, high = (100 * worst[f"{kind}{end}"] for end in ("", "_low", "_high"))
        fall = (
            f"{worst['model']} falls by {drop:.1f} points at its cutoff{how}"
            f" (95 % {low:.1f} to {high:.1f});"
            f" {len(fallen)} of {len(known)} models fall after Holm's correction."
        )
    parts = [fall]
    if sharp := [row for row in scans if row["p_holm"] < SURE and row["z"] > 0]:
        best = min(sharp, key=lambda row: (row["p"], -row["z"]))
        parts.append(
            f"The sharpest fall without a cutoff given is that of {best['model']} after"
            f" {best['last_day_before']} (p = {best['p']:.2g}, adjusted for the search), which"
            " harder items may explain."
        )
    return Finding(found=" ".join(parts), sure=sure, change=_CHANGE)


_PLAIN: Final = "drop"
_SURENESS: Final = {
    "against_references": (
        " beyond what harder items explain",
        (
            "How much harder the items became is read off the reference models; one that saw the"
            " items hides a drop."
        ),
    ),
    "stratified": (
        ", within strata",
        (
            "Items of a stratum that became harder with time also make scores fall, which only"
            " reference models tell apart."
        ),
    ),
    _PLAIN: (
        "",
        (
            "Drops come with Welch's error; items that became harder with time also make scores"
            " fall, which only strata and reference models tell apart."
        ),
    ),
}
_CHANGE: Final = (
    "Reference models of another cutoff, more items near it, or the day on which the data really"
    " end. A fall is no proof that items were seen."
)


def _pictures(drops: Sequence[Row]) -> list[Chart]:
    """The drops at the cutoffs."""
    charts = []
    known = [row for row in drops if not np.isnan(row["drop"])]
    if known:
        known.sort(key=lambda row: -row["drop"])
        beside = [(at + _BESIDE, row) for at, row in enumerate(known)]
        less = "against_references"
        panel = Panel(
            title="Mean before the cutoff less mean after it",
            x="",
            y="drop",
            marks=[
                Line.level(len(known)),
                Points.of(enumerate(known), "drop", limits="drop", label="drop"),
                Points.of(beside, less, limits=less, tone="alarm", label="beyond references"),
            ],
            x_names=[row["model"] for row in known],
        )
        charts.append(Chart(name="drops", caption="Drop at each model's cutoff", panels=[panel]))
    return charts
