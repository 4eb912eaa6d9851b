"""Made-up scores and verdicts: a benchmark whose every figure is known."""

from contextlib import contextmanager

import numpy as np
import pytest

from contam.detect.labels import LABELS
from contam.rescore.metrics import main_metrics
from contam.rescore.panel import Flags, Series
from contam.rescore.tables import make_tables
from contam.tables import schemas


def flags_of(labels, *, policy="contam", contamination=None, **groups):
    """Labels by name -> Flags; every item is a cluster of its own."""
    n = len(labels)
    codes = np.array([LABELS.index(name) for name in labels], np.int8)
    shares = np.array([1.0 if label in ("contaminated", "suspect") else 0.0 for label in labels])
    nothing = np.full(n, "", object)
    return Flags(
        policy=policy,
        label=codes,
        contamination=shares if contamination is None else contamination,
        groups={
            name: groups.get(name, nothing) for name in ("exposure", "kind", "year", "subject")
        },
        cluster=np.arange(n),
        threshold=0.5,
    )


def series_of(scores, *, model="m", benchmark="b", metric="acc", item=None):
    """Scores of one model as a mean metric."""
    score = np.asarray(scores, float)
    return Series(
        model=model,
        benchmark=benchmark,
        metric=metric,
        score=score,
        item=np.arange(len(score)) if item is None else np.asarray(item),
        aggregate=lambda mask: float(score[mask].mean()),
        additive=True,
    )


def tables_of(series, flags, settings):
    """The tables of a re-scoring by name."""
    main = main_metrics(series, settings.metrics)
    return make_tables(series, flags, settings, main)[0]


def scores_in(tables):
    """The rows of the tables of scores, each with its figures as published."""
    both = (schemas.rows(tables[name]) for name in ("scores", "as_published"))
    return [{**published, **row} for row, published in zip(*both, strict=True)]


@contextmanager
def refused(error, *facts):
    """The block raises this error; numbers, names and flags stand in its message or hint."""
    with pytest.raises(error) as caught:
        yield
    said = f"{caught.value.message} {caught.value.hint}"
    assert all(str(fact) in said for fact in facts), said
