"""Pictures of a re-scoring: names that never meet, the same bytes twice, one metric unless asked."""

import functools
import re

import numpy as np
import pytest

from contam.rescore.figures import DRAWN, save
from contam.rescore.panel import RescoreSettings
from contam.rescore.summary import SHOWS, planned
from tests.rescore.panels import flags_of, series_of
from tests.rescore.panels import tables_of as made
from tests.rescore.test_direction import lowered

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=99)


def told(*, least=50, shown=None):
    """What run.json says of what is drawn: of one metric, or of all."""
    metrics = {"b": {"shown": shown}}
    return {"parameters": {"least": least, "all_metrics": shown is None}, "metrics": metrics}


RUN = told()
NAMES = (
    "llama-{}",
    "organisation/model-{}b",
    "a-very-long-organisation-name/and-a-longer-model-name-v2-{}",
    "$x_{}$",
)


@functools.cache
def tables_of(m, *, metrics=("acc",), settings=FAST, turn=None):
    rng = np.random.default_rng(m)
    labels = ["contaminated"] * 80 + ["clean"] * 160
    share = np.concatenate([rng.uniform(0.5, 1, 80), rng.uniform(0, 0.5, 160)]).round(2)
    series = []
    for at in range(m):
        for metric in metrics:
            score = (rng.random(240) < rng.uniform(0.3, 0.8)).astype(float)
            score[: 80 if at % 5 == 0 else 0] = 1
            one = series_of(score, model=NAMES[at % 4].format(at), metric=metric)
            series.append(lowered(one, 1.0) if turn else one)
    return made(series, [flags_of(labels, contamination=share)], settings)


def texts_of(figure):
    """Every text of a figure that is shown, with its box in pixels, without leader lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = []
    for axes in figure.axes:
        for one in (axes, *axes.child_axes):
            found += one.texts
            for axis in (one.xaxis, one.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
                # Matplotlib keeps labels just outside of the picture, and does not draw them.
                found += [label for place, label in ticks if low <= place <= high]
            found += [one.xaxis.label, one.yaxis.label]
        found += [axes.title, axes._left_title]
    renderer = canvas.get_renderer()
    return [
        (text.get_text(), Text.get_window_extent(text, renderer))
        for text in found
        if text.get_visible() and text.get_text().strip()
    ]


@pytest.mark.parametrize("m", [3, pytest.param(83, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", list(SHOWS))
def test_no_two_texts_meet_and_none_is_cut(kind, m):
    tables = tables_of(m)
    (plot,) = (one for one in planned(tables, RUN) if one.kind == kind)
    figure = DRAWN[kind](plot.rows)
    texts = texts_of(figure)
    width, height = figure.canvas.get_width_height()
    for text, box in texts:
        assert box.x0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= height + 1, text
    for at, (text, box) in enumerate(texts):
        for other, its in texts[at + 1 :]:
            meet = (
                min(box.x1, its.x1) - max(box.x0, its.x0),
                min(box.y1, its.y1) - max(box.y0, its.y0),
            )
            # The boxes of neighbouring lines may touch; letters do not.
            assert min(meet) < 3, (text, other)
    if kind != "sweep":
        for row in plot.rows:
            number = re.search(r"\d+b?\$?$", row["model"])[0].strip("$b")
            named = [text for text, _ in texts if re.search(rf"[-_]{number}b?(\\\$)?(\s|$)", text)]
            assert len(named) >= (2 if kind == "ranks" else 1), row["model"]


@pytest.mark.slow
def test_equal_tables_give_equal_bytes_and_one_metric_unless_asked(tmp_path):
    tables = tables_of(3, metrics=("f1", "acc"))
    for shown, metrics in (("acc", {"acc"}), (None, {"f1", "acc"})):
        assert {plot.metric for plot in planned(tables, told(shown=shown))} == metrics
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        plots = planned(tables, RUN)
        save(((plot.name, DRAWN[plot.kind](plot.rows)) for plot in plots), folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    assert sorted(written[0]) == sorted(f"{plot.name}.svg" for plot in planned(tables, RUN))
    for name, data in written[0].items():
        if name.endswith(".svg"):
            assert b"<dc:date>" not in data
