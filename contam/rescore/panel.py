"""Arrange scores and verdicts as the arrays behind every re-scoring table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import ItemName
from contam.corpus.dates import year_of
from contam.detect.labels import CLEAN, FLAGGED, LABELS, NOT_CHECKABLE
from contam.errors import OutputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore.logs.setup import Setup
    from contam.tables.schemas import Table

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Int8s = NDArray[np.int8]
    Bools = NDArray[np.bool_]

ALL: Final = "all"
"""Name of the subset that holds every item, and of what it is a subset by."""

_FLAGGED_CODES: Final = tuple(LABELS.index(name) for name in FLAGGED)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flags:
    """What one policy says of the N items of a result, in the order of `items.parquet`.

    label          int8[N], an index into LABELS
    contamination  float64[N], the policy's score; nan where it gave none
    groups         what items can be told apart by -> a name for each item ("" for none)
    cluster        int64[N], equal for items that stand and fall together
    length         float64[N], tokens of the question
    """

    policy: str
    label: Int8s
    contamination: Floats
    groups: Mapping[str, NDArray[np.object_]]
    cluster: Ints
    length: Floats
    threshold: float | None = None

    @property
    def flagged(self) -> Bools:
        """bool[N]: contaminated or suspect."""
        return np.isin(self.label, _FLAGGED_CODES)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Series:
    """One model's scores under one metric, over the n items of its log that were scored.

    score      float64[n], the tool's own per-item value after its reduction of repeats
    item       int64[n], place in the result's items, -1 where the log's item is not among them
    aggregate  the metric over a mask of the log's items: the mean, or a corpus metric's function
    additive   whether the metric is the mean of `score`
    strata     int64[n], parts of the items within which flags are dealt out; None for one part
    setup      examples, prompt and version, as far as the log records them
    named_main  the metric that the log calls its main one, None where it names none
    """

    model: str
    benchmark: str
    metric: str
    score: Floats
    item: Ints
    aggregate: Callable[[Bools], float]
    additive: bool
    notes: tuple[str, ...] = ()
    higher_is_better: bool = True
    strata: Ints | None = None
    setup: Setup = ()
    named_main: str | None = None

    @classmethod
    def unscored(
        cls, model: str, benchmark: str, metric: str, item: Ints, why: str, *, higher: bool = True
    ) -> Series:
        """A metric that cannot be scored again, over the items it was logged for."""
        return cls(
            model=model,
            benchmark=benchmark,
            metric=metric,
            score=np.full(len(item), np.nan),
            item=item,
            aggregate=lambda _: float("nan"),
            additive=False,
            notes=(f"not estimable: {why}",),
            higher_is_better=higher,
        )

    @property
    def is_share(self) -> bool:
        """Whether every score lies within 0 and 1, and the metric is their mean."""
        return self.additive and bool(((self.score >= 0) & (self.score <= 1)).all())

    def labels(self, flags: Flags) -> Int8s:
        """int8[n]: the label of each scored item; what is not among the items is not checkable."""
        return labels_at(flags, self.item)


def labels_at(flags: Flags, places: Ints) -> Int8s:
    """int8[n]: the labels at places in the result's items; -1 is what was not judged."""
    found = np.full(len(places), NOT_CHECKABLE, np.int8)
    known = places >= 0
    found[known] = flags.label[places[known]]
    return found


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Split:
    """Masks of the scored items of one series under one policy: bool[n] each."""

    clean: Bools
    flagged: Bools
    unchecked: Bools

    @classmethod
    def of(cls, labels: Int8s) -> Split:
        """Split by label; `suspect` counts as flagged, as everywhere."""
        return cls(
            clean=labels == CLEAN,
            flagged=np.isin(labels, _FLAGGED_CODES),
            unchecked=labels == NOT_CHECKABLE,
        )


def flags_in(report: Report) -> dict[str, Flags]:
    """`flags_of` a folder of results. Raises OutputError when it contradicts itself."""
    try:
        thresholds = {
            name: float(min(definition["thresholds"].values()))
            for name, definition in report.run["parameters"]["policy_definitions"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise OutputError(
            "{} does not say how its policies judge", report.folder,
            remedy=Remedy.GIVE_FOLDER_AS_WRITTEN,
        ) from error  # fmt: skip
    return flags_of(report.verdicts, report.items, report.evidence, thresholds)


def flags_of(
    verdicts: Table, items: Table, evidence: Table, thresholds: Mapping[str, float]
) -> dict[str, Flags]:
    """The verdicts of each policy as arrays over the rows of the items table.

    Raises OutputError for verdicts that are not one of each policy of items that are there.
    """
    from contam.tables import schemas

    places = zip(*(schemas.column(evidence, n) for n in ("shard", "row", "source")), strict=True)
    source = {(shard, row): name for shard, row, name in places}

    keys = list(zip(*(schemas.column(items, n) for n in ItemName._fields), strict=True))
    place = {key: at for at, key in enumerate(keys)}
    columns = {name: schemas.column(verdicts, name) for name in verdicts.schema.names}
    rows = np.array(
        [place.get(key, -1) for key in zip(*(columns[n] for n in ItemName._fields), strict=True)],
        np.int64,
    )
    policy = np.array(columns["policy"], object)
    known = set(columns["policy"]) <= thresholds.keys() and set(columns["label"]) <= set(LABELS)
    if not known or len(place) < len(keys) or np.any(rows < 0):
        raise _contradiction()
    length = np.array(schemas.column(items, "question_tokens"), np.float64)
    cluster = _clusters(items)
    subjects = _subjects(items)
    result = {}
    for name in sorted(set(columns["policy"])):
        chosen = np.flatnonzero(policy == name)
        at = rows[chosen]
        if len(np.unique(at)) < len(at):
            raise _contradiction()
        label = np.full(len(keys), NOT_CHECKABLE, np.int8)
        label[at] = [LABELS.index(columns["label"][i]) for i in chosen]
        score = np.full(len(keys), np.nan)
        score[at] = [np.nan if columns["score"][i] is None else columns["score"][i] for i in chosen]
        groups = {
            "exposure": _spread(at, [columns["exposure"][i] for i in chosen], len(keys)),
            "kind": _spread(at, [columns["kind"][i] or "" for i in chosen], len(keys)),
            "source": _spread(
                at,
                [
                    source.get((columns["best_shard"][i], columns["best_row"][i])) or ""
                    for i in chosen
                ],
                len(keys),
            ),
            "year": _spread(at, [year_of(columns["best_date"][i]) for i in chosen], len(keys)),
            "subject": subjects,
        }
        result[name] = Flags(
            policy=name,
            label=label,
            contamination=score,
            groups=groups,
            cluster=cluster,
            length=length,
            threshold=thresholds.get(name),
        )
    return result


def _spread(at: Ints, values: Sequence[str], n: int) -> NDArray[np.object_]:
    result = np.full(n, "", object)
    result[at] = values
    return result


def _clusters(items: Table) -> Ints:
    """Items that share a passage or their content are one cluster."""
    from contam.tables import schemas

    passages = schemas.column(items, "passage_key")
    contents = schemas.column(items, "item_key")
    names = [passage or content for passage, content in zip(passages, contents, strict=True)]
    return np.unique(np.array(names, object).astype(str), return_inverse=True)[1].astype(np.int64)


def _subjects(items: Table) -> NDArray[np.object_]:
    """What an item id says before its last part: `anatomy/12` is of the subject anatomy."""
    from contam.tables import schemas

    ids = schemas.column(items, "item_id")
    found = [item_id.rpartition("/")[0] for item_id in ids]
    result = np.empty(len(found), object)
    result[:] = found
    return result


def _contradiction() -> OutputError:
    return OutputError(
        "the verdicts and their items contradict each other",
        remedy=Remedy.GIVE_FOLDER_AS_WRITTEN,
    )
