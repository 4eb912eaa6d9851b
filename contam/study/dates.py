"""Study scores by the dates of their items: before and after a cutoff, month by month."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.dates import LEAK, SHARED, UNKNOWN, class_of, span_of
from contam.errors import LogError, Names, Public, Remedy, UsageError
from contam.rescore.stats.gain import LEAST, gain
from contam.rescore.stats.intervals import interval_of
from contam.rescore.stats.multiple import adjust
from contam.study.dated_input import days_of, iso, read_dated
from contam.study.dated_words import finding, pictures
from contam.study.model import Refusal, Study, table_of
from contam.study.stats.dated import control_chart, drop, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.given import Source
    from contam.rescore.judging import Verdicts
    from contam.rescore.stats.clusters import Estimate
    from contam.study.dated_input import Dated

    Row = dict[str, Any]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

MONTHS: Final[Mapping[str, int]] = {"month": 1, "quarter": 3, "half-year": 6, "year": 12}
"""Windows by name -> their months."""

AFTER: Final = "after_cutoff"
CLASSES: Final = (LEAK, SHARED, UNKNOWN, AFTER)
"""What the documents of a flagged item are to a model, worst first."""

_NAN: Final = float("nan")
_TWO: Final = 2
_DECEMBER: Final = 12
_LEAST_BASELINE: Final = 3
_LONGEST: Final = 31

_ESTIMATE: Final = ("", "_error", "_low", "_high", "_p")
_DROPS: Final[Mapping[str, type]] = {
    "model": str,
    "cutoff": str,
    **dict.fromkeys(("n_before", "n_after", "n_between"), int),
    **dict.fromkeys(("before", "after"), float),
    **{
        f"{kind}{end}": float
        for kind in ("drop", "stratified", "against_references", "drop_clean")
        for end in _ESTIMATE
    },
    **dict.fromkeys(("stratified_share",), float),
    **{
        f"{kind}_p_{name}": float
        for kind in ("drop", "against_references")
        for name in ("holm", "bh")
    },
    "note": str,
}
_WINDOWS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "window", "start", "end"), str),
    "n": int,
    **dict.fromkeys(("score", "low", "high"), float),
    "may_be_known": str,
}
_SCAN: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "scores", "last_day_before"), str),
    **dict.fromkeys(("n", "n_cutoffs"), int),
    **dict.fromkeys(("z", "p", "p_holm", "p_bh"), float),
}
_COHORTS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "month", "scores"), str),
    "n": int,
    **dict.fromkeys(("value", "centre", "low", "high"), float),
    **dict.fromkeys(("out", "baseline"), bool),
}
_SOURCES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "documents"), str),
    **dict.fromkeys(("n_items", "n_documents", "n_clean"), int),
    **dict.fromkeys(("score", "score_clean", "epg", "p", "p_holm", "p_bh"), float),
    "note": str,
}


def time(  # noqa: PLR0913 - the options of a study, all but two by name
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
    least: int = LEAST,
    permutations: int = 2_000,
    seed: int = 0,
) -> Study:
    """Whether scores fall where a model's data end, and what came out of step by month.

    logs        per-item scores of models on one benchmark: shares between 0 and 1
    dates       a table of items with the date each came out, and their strata; that of the logs
                themselves when None
    cutoffs     model -> last day of its data, or a table with the columns model and cutoff
    references  models that cannot have seen the items: their mean score is taken off
    strata      columns of `dates`; platform and difficulty, where there are such, when None
    window      "month", "quarter", "half-year" or "year"
    verdicts    of the items: adds drops on clean items, and gains by the date of documents
    least       items needed on either side of a cutoff

    Raises LogError for scores or dates that are none, UsageError for unknown names.
    """
    if window not in MONTHS:
        raise UsageError(
            "there is no window {!r}", window, remedy=Remedy.CHOOSE_KNOWN(known=", ".join(MONTHS))
        )
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
    _refuse_scores(given)
    for name in references:
        if name not in given.models:
            raise UsageError(
                "no scores of the reference model {!r}", name,
                remedy=Remedy.CHOOSE_MODEL(known=Names(given.models)),
            )  # fmt: skip
    tested = [model for model in given.models if model not in references]
    if not tested:
        raise UsageError("all models are references, and none is left to study")
    notes = [*given.notes, *_reference_notes(given, references)]
    usual = _reference_score(given, references)
    refusals: list[Refusal] = []
    drops = list(_drop_rows(given, tested, usual, least, refusals))
    adjust(drops, ("drop_p", "against_references_p"), lambda _: "all")
    scans = list(_scan_rows(given, tested, usual, least, permutations, seed, refusals))
    adjust(scans, ("p",), lambda row: row["scores"])
    cohorts = list(_cohort_rows(given, tested, usual, refusals))
    tables = {
        "drops": table_of(drops, _DROPS),
        "windows": table_of(_window_rows(given, MONTHS[window]), _WINDOWS),
        "scan": table_of(scans, _SCAN),
        "cohorts": table_of(cohorts, _COHORTS),
    }
    if given.documents is not None:
        sources = list(_source_rows(given, tested, least, seed))
        adjust(sources, ("p",), lambda row: row["documents"])
        tables["sources"] = table_of(sources, _SOURCES)
    return Study(
        name="time",
        finding=finding(drops, scans, cohorts, references=bool(references)),
        tables=tables,
        refusals=refusals,
        pictures=pictures(drops, cohorts),
        columns=_columns(references=bool(references), strata=bool(given.strata_names)),
        run={
            "parameters": {
                "references": list(references),
                "strata": list(given.strata_names),
                "window": window,
                "policy": given.policy,
                "least": least,
                "permutations": permutations,
                "seed": seed,
            },
            "inputs": list(given.sources),
            "notes": notes,
            "coverage": dict(given.coverage),
        },
    )


def _columns(*, references: bool, strata: bool) -> tuple[str, ...]:
    best = "against_references" if references else "drop"
    more = ("stratified",) if strata else ()
    limits = (f"{best}_low", f"{best}_high", f"{best}_p_holm")
    kinds = ("drop", *more, *(("against_references",) if references else ()))
    return ("model", "cutoff", "n_before", "n_after", *kinds, *limits)


def _refuse_scores(given: Dated) -> None:
    for model, scores in zip(given.models, given.score, strict=True):
        known = scores[~np.isnan(scores)]
        if len(known) < _TWO:
            raise LogError("{} has {} scores of items with a date", Public(model), len(known))


def _reference_notes(given: Dated, references: Sequence[str]) -> Iterator[str]:
    """A reference whose data end after the first items is none for these."""
    for name in references:
        if name in given.cutoffs:
            n = int(np.count_nonzero(given.first <= given.cutoffs[name][1]))
            if n:
                yield f"reference {name} may have seen {n} items that came out before its cutoff"


def _reference_score(given: Dated, references: Sequence[str]) -> Floats | None:
    """float64[n]: mean score of the references; nan for items that one of them lacks."""
    if not references:
        return None
    at = [given.models.index(name) for name in references]
    mean: Floats = given.score[at].mean(axis=0)
    return mean


def _sides(given: Dated, model: str) -> tuple[Bools, Bools]:
    """Items that came out surely before and surely after the model's data end."""
    first, last = given.cutoffs[model]
    return given.last <= first, given.first > last


def _drop_rows(
    given: Dated,
    tested: Sequence[str],
    usual: Floats | None,
    least: int,
    refusals: list[Refusal],
) -> Iterator[Row]:
    for model in tested:
        if model not in given.cutoffs:
            refusals.append(Refusal(f"drop of {model}", "no cutoff of its data is given"))
            continue
        scores = given.score[given.models.index(model)]
        known = ~np.isnan(scores)
        before, after = (side & known for side in _sides(given, model))
        numbers = int(before.sum()), int(after.sum())
        row: Row = dict.fromkeys(_DROPS, _NAN)
        row |= {
            "model": model,
            "cutoff": _shown(given.cutoffs[model]),
            "n_before": numbers[0],
            "n_after": numbers[1],
            "n_between": int(known.sum()) - sum(numbers),
            "note": "",
        }
        if min(numbers) < max(least, _TWO):
            reason = f"{numbers[0]} items before and {numbers[1]} after, {least} are needed"
            refusals.append(Refusal(f"drop of {model}", reason))
            row["note"] = f"not estimable: {reason}"
            yield row
            continue
        kinds = (given.strata[before], given.strata[after]) if given.strata_names else None
        found = drop(scores[before], scores[after], kinds)
        row["before"], row["after"] = float(scores[before].mean()), float(scores[after].mean())
        row |= _told("drop", found.estimate)
        row["stratified_share"] = found.share
        if found.stratified is not None:
            row |= _told("stratified", found.stratified)
        if usual is not None:
            row |= _told_of(scores - usual, before, after, "against_references", least)
        if given.clean is not None:
            clean = np.where(given.clean, scores, _NAN)
            row |= _told_of(clean, before, after, "drop_clean", least)
        yield row


def _told_of(values: Floats, before: Bools, after: Bools, name: str, least: int) -> Row:
    first, second = (values[side & ~np.isnan(values)] for side in (before, after))
    if min(len(first), len(second)) < max(least, _TWO):
        return {}
    return _told(name, drop(first, second).estimate)


def _told(name: str, found: Estimate) -> Row:
    low, high = found.limits()
    figures = (found.value, found.error, low, high, found.p)
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
    day = dt.date.fromordinal(first)
    year, month = day.year, (day.month - 1) // months * months
    while dt.date(year, month + 1, 1).toordinal() <= last:
        start = dt.date(year, month + 1, 1).toordinal()
        month += months
        year, month = year + month // _DECEMBER, month % _DECEMBER
        yield start, dt.date(year, month + 1, 1).toordinal() - 1


def _scan_rows(
    given: Dated,
    tested: Sequence[str],
    usual: Floats | None,
    least: int,
    permutations: int,
    seed: int,
    refusals: list[Refusal],
) -> Iterator[Row]:
    """The sharpest cutoff of each model; days known to a month at least."""
    short = given.last - given.first < _LONGEST
    kinds: list[tuple[str, Floats]] = [("as they are", np.zeros(len(short)))]
    if usual is not None:
        kinds.append(("less references", usual))
    for model in tested:
        scores = given.score[given.models.index(model)]
        for name, off in kinds:
            values = scores - off
            known = short & ~np.isnan(values)
            found = scan(
                values[known],
                given.last[known],
                strata=given.strata[known],
                least=max(least, _TWO),
                permutations=permutations,
                seed=seed,
            )
            if found is None:
                reason = f"no day has {least} items on either side, or all scores are equal"
                refusals.append(Refusal(f"search for a cutoff of {model}, scores {name}", reason))
                continue
            yield {
                "model": model,
                "scores": name,
                "last_day_before": iso(found.day),
                "n": int(known.sum()),
                "n_cutoffs": found.n_cuts,
                "z": found.z,
                "p": found.p,
            }


def _cohort_rows(
    given: Dated, tested: Sequence[str], usual: Floats | None, refusals: list[Refusal]
) -> Iterator[Row]:
    """The control chart of each model: items by the month they came out."""
    months = np.array([iso(a)[:7] for a in given.first.tolist()])
    whole = months == np.array([iso(b)[:7] for b in given.last.tolist()])
    name = "as they are" if usual is None else "less references"
    for model in tested:
        scores = given.score[given.models.index(model)]
        values = scores if usual is None else scores - usual
        known = whole & ~np.isnan(values)
        names, code = np.unique(months[known], return_inverse=True)
        if len(names) < _TWO:
            reason = f"the items came out in {len(names)} months, and two are needed"
            refusals.append(Refusal(f"control chart of {model}", reason))
            continue
        baseline = np.ones(len(names), np.bool_)
        cutoff = given.cutoffs.get(model)
        if cutoff is not None:
            later = np.array([days_of(month) for month in names.tolist()])[:, 0] > cutoff[1]
            baseline = later if later.sum() >= _LEAST_BASELINE else baseline
        chart = control_chart(values[known], code, baseline)
        for at, month in enumerate(names.tolist()):
            yield {
                "model": model,
                "month": month,
                "scores": name,
                "n": int(np.count_nonzero(code == at)),
                "value": float(chart.mean[at]),
                "centre": float(chart.centre[at]),
                "low": float(chart.low[at]),
                "high": float(chart.high[at]),
                "out": bool(chart.out[at]),
                "baseline": bool(baseline[at]),
            }


def _source_rows(given: Dated, tested: Sequence[str], least: int, seed: int) -> Iterator[Row]:
    """Gain from flagged items whose documents are older than them, younger, or undated."""
    assert given.clean is not None  # noqa: S101 - with documents there are labels
    assert given.documents is not None  # noqa: S101 - asked for before
    for model in tested:
        scores = given.score[given.models.index(model)]
        known = ~np.isnan(scores)
        cutoff = given.cutoffs.get(model)
        of_item: dict[str, list[int]] = {name: [] for name in CLASSES}
        n_documents = dict.fromkeys(CLASSES, 0)
        for at, documents in given.documents.items():
            if not known[at]:
                continue
            kinds = [_class_for(date, given, at, cutoff) for date in documents] or [UNKNOWN]
            for kind in kinds[: len(documents)]:
                n_documents[kind] += 1
            of_item[min(kinds, key=CLASSES.index)].append(at)
        clean = given.clean & known
        for name, items in of_item.items():
            flagged = np.zeros(len(scores), np.bool_)
            flagged[items] = True
            inside = clean | flagged
            found = gain(scores[inside], flagged[inside], least=least, seed=seed)
            yield {
                "model": model,
                "documents": name,
                "n_items": len(items),
                "n_documents": n_documents[name],
                "n_clean": int(clean.sum()),
                "score": float(scores[flagged].mean()) if items else _NAN,
                "score_clean": float(scores[clean].mean()) if clean.any() else _NAN,
                "epg": found.epg,
                "p": found.p,
                "note": found.note,
            }


def _class_for(date: str | None, given: Dated, at: int, cutoff: tuple[int, int] | None) -> str:
    """What a document is to an item, or that it is younger than the model's data."""
    when = span_of(date)
    if cutoff is not None and when is not None and when[0].toordinal() > cutoff[1]:
        return AFTER
    first, last = iso(int(given.first[at])), iso(int(given.last[at]))
    kinds = {class_of(date, first), class_of(date, last)}
    return kinds.pop() if len(kinds) == 1 else UNKNOWN
