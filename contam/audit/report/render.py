"""Write report.html, which holds all evidence, report.md, and what is exported of a pack."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import SCORES, STUDIES, to_tree
from contam.audit.report.build import estimated, scores_of
from contam.audit.report.pages import (
    COLUMNS,
    TEMPLATES,
    inert,
    items_section,
    script,
    script_digest,
    style,
)
from contam.audit.spec import TOGETHER
from contam.audit.verify import checked_facts
from contam.corpus.dates import UNKNOWN
from contam.detect.policies.common import EXPOSURES
from contam.detect.report import RUN_FILE, load_report
from contam.errors import Statement, UsageError
from contam.rescore.stats.gain import too_few
from contam.rescore.summary import GAIN, cell, figure, planned, small, smallest_words
from contam.tables import schemas, score_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from jinja2 import Environment

    from contam.audit.facts import CleanedFacts, Facts

    Tree = dict[str, Any]
    Row = dict[str, Any]
    from contam.detect.report import Report


_MOST_LEADS: Final = 20
_NONE: Final = "\N{EN DASH}"


def write_html(
    path: Path, facts: Facts, rows: Sequence[Tree], pages: Sequence[Sequence[Tree]], pack: Path
) -> None:
    """Write the report.

    rows, pages  what `contam.audit.report.pages.make_pages` gives
    pack         its folder, with the re-scoring and the studies there are
    """
    tree = to_tree(facts)
    own, others = chapters(tree, pack / SCORES)
    names = metric_names(tree["scores"])
    leads = [row for row in tree["leads"] if not row["lead_clean"] or row["lead_falls"]]
    leads = [row for row in leads if _metric(row, names)]
    own_leads = [row for row in leads if _is_own(row, tree)][:_MOST_LEADS]
    page = _rendered(
        "report.html",
        facts,
        _environment(autoescape=True),
        policies=list(facts.policies),
        style=style(),
        script=script(),
        allowed=script_digest(),
        items_section=items_section(COLUMNS),
        rows=inert(rows),
        pages=[inert(page) for page in pages],
        n_flagged=len(rows),
        chapters=own,
        others=others,
        changes=largest_changes(tree),
        leads=own_leads,
        n_other_leads=len(leads) - len(own_leads),
        studies=study_chapters(tree, pack / STUDIES),
        rows_drawn=overview(tree),
        picture_key=key_of,
        picture_months=months,
    )
    path.write_text(page, "utf-8", errors="replace")


def write_markdown(path: Path, facts: Facts) -> None:
    """Write the tables as text. Text of items and documents is not in it."""
    scores = scores_shown(facts.scores, facts.least, facts.ours)
    text = markdown("report.md", facts, scores=scores, policy=facts.first_policy)
    path.write_text(text, "utf-8", errors="replace")


def markdown(name: str, facts: Facts, **more: object) -> str:
    """The text that a template makes of the facts."""
    text = _rendered(name, facts, _environment(autoescape=False), **more)
    # A chapter without a table or a list leaves its empty lines.
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def _rendered(name: str, facts: Facts, environment: Environment, **more: object) -> str:
    template = environment.from_string((TEMPLATES / name).read_text("utf-8"))
    cleaned = [
        {**to_tree(corpus), "flagged": before_and_after(facts, corpus)} for corpus in facts.cleaned
    ]
    return template.render(
        facts=to_tree(facts), cleaned=cleaned, together=TOGETHER, advice=ADVICE, roles=ROLES, **more
    )


def _environment(*, autoescape: bool) -> Environment:
    """HTML escapes what it is given; in Markdown nothing can break out of its cell."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=autoescape,  # noqa: S701 - Markdown escapes each value by `finalize`
        finalize=None if autoescape else lambda value: cell(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": _known(lambda share: f"{100 * share:.1f} %"),
        "figure": _known(lambda value, digits=3: figure(value, digits)),
        "count": _known(_count),
        "clean_missing": clean_missing,
        "small": _known(small),
        "smallest": smallest_words,
        "css": lambda name: name.replace("+", "-"),
        "words": lambda name: name.replace("_", " "),
    }
    return environment


def _known(shown: Callable[..., str]) -> Callable[..., str]:
    """A filter that shows numbers, and a dash where there is none."""
    return lambda number, *more: _NONE if number is None else shown(number, *more)


def _count(number: float) -> str:
    """A number of things, which may be half a one."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def chapters(facts: Tree, scores: Path) -> tuple[list[Tree], list[Tree]]:
    """(a chapter for each benchmark of the audit, those for other names that logs have for theirs).

    facts   `contam.audit.facts.Facts` as a tree
    scores  folder of the re-scoring; it need not exist

    A chapter has `name`, `scores`, `rankings`, what is to be said of them (`notes`), runs that are
    in no ranking (`unranked`) and `plots`; logs may name one benchmark otherwise,
    or its parts, so that scores do not always stand under a name that was checked.
    """
    plots = _plots(scores)
    shown = scores_shown(facts["scores"], facts["least"], facts["ours"])
    names = metric_names(facts["scores"])
    ranked = [{**row, "metric": _metric(row, names)} for row in facts["rankings"]]
    ranked = [row for row in ranked if row["metric"]]
    rankings = [row for row in ranked if row["rank_clean"] is not None]

    def chapter(name: str) -> Tree:
        own = sorted(
            (row for row in rankings if row["benchmark"] == name),
            key=lambda row: (row["policy"], row["metric"], row["setup"], row["rank_full"]),
        )
        return {
            "name": name,
            "scores": [row for row in shown if row["benchmark"] == name],
            "rankings": own,
            "notes": list(dict.fromkeys(row["note"] for row in own if row["note"])),
            "unranked": [
                row for row in ranked if row["benchmark"] == name and row["rank_full"] is None
            ],
            "plots": [plot for plot in plots if plot["benchmark"] == name],
        }

    known = [bench["name"] for bench in facts["benchmarks"]]
    others = sorted({row["benchmark"] for row in facts["scores"]} - set(known))
    return [chapter(name) for name in known], [chapter(name) for name in others]


def before_and_after(facts: Facts, cleaned: CleanedFacts) -> list[Row]:
    """Of a cleaned corpus, the items flagged before and here; None: not asked here."""
    corpus = cleaned.corpus if len(facts.corpora) > 1 else TOGETHER
    here = {
        (bench.name, policy.policy): policy.contaminated + policy.suspect
        for bench in facts.benchmarks
        for policy in bench.policies
        if policy.corpus == corpus
    }
    return [
        {
            "benchmark": row["benchmark"],
            "policy": row["policy"],
            "before": row["n"],
            "here": here.get((row["benchmark"], row["policy"])),
        }
        for row in cleaned.flagged_before
    ]


def largest_changes(facts: Tree) -> list[Tree]:
    """Of each benchmark and metric the score that changes most, by the first policy.

    Only of our models, where the audit says which they are and they have scores.
    """
    first = next(iter(facts["policies"]), "")
    found: dict[tuple[str, str], Tree] = {}
    names = metric_names(facts["scores"])
    for row in scores_of(facts["ours"], facts["scores"]):
        key = (row["benchmark"], _metric(row, names))
        if row["policy"] != first or not key[1] or not estimated(row, facts["least"]):
            continue
        if key not in found or abs(row["gain"]) > abs(found[key]["gain"]):
            found[key] = {**row, "metric": key[1]}
    return list(found.values())


def _plots(folder: Path) -> list[Tree]:
    """Plots as images: what is drawn in an image runs nothing."""
    if not folder.is_dir():
        return []
    kinds = {
        "scores": score_schemas.SCORES,
        "sweep": score_schemas.SWEEP,
        "rankings": score_schemas.RANKINGS,
    }
    tables = {
        name: schemas.read_parquet(folder / f"{name}.parquet", kind) for name, kind in kinds.items()
    }
    run = json.loads((folder / RUN_FILE).read_bytes())
    return [
        {
            "benchmark": plot.benchmark,
            "caption": plot.caption,
            "gaps_by": plot.policy if plot.kind == GAIN else "",
            "data": base64.b64encode((folder / f"{plot.name}.svg").read_bytes()).decode(),
        }
        for plot in planned(tables, run)
    ]


def study_chapters(facts: Tree, folder: Path) -> list[Tree]:
    """The studies of an audit with their pictures; folder  of all studies in the pack."""
    return [
        {
            **study,
            "pictures": [
                base64.b64encode((folder / study["name"] / f"{name}.svg").read_bytes()).decode()
                for name in study["pictures"]
            ],
        }
        for study in facts["studies"]
    ]


_SIDES: Final = ("clean", "flagged")


def scores_shown(
    rows: Sequence[Mapping[str, Any]], least: int, ours: Sequence[str] = ()
) -> list[Row]:
    """Rows of scores without the figures over fewer than `least` items; the note says why.

    Of each benchmark and metric ours come first, and then the best; metrics of equal figures are
    one.
    """
    names = metric_names(rows)
    shown = [_shown({**row, "metric": _metric(row, names)}, least) for row in rows]

    def place(row: Row) -> tuple[Any, ...]:
        best = -row["full"] if row["higher_is_better"] else row["full"]
        return (row["benchmark"], row["metric"], row["model"] not in ours, best, row["model"])

    return sorted((row for row in shown if row["metric"]), key=place)


def metric_names(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(benchmark, metric) -> its name, and those of metrics that have the same figures.

    Of these one is shown, the one whose corrected p is largest; the name of the others is "".
    """
    tested: dict[tuple[str, str], float] = {}
    figures: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        key = (row["benchmark"], row["metric"])
        tested[key] = tested.get(key, 0.0) + (row.get("gap_p_holm") or 0.0)
        plain = {name: value for name, value in row.items() if not name.endswith("_holm")}
        figures.setdefault(key, []).append({**plain, "metric": ""})
    names: dict[tuple[str, str], str] = {}
    for key, own in figures.items():
        same = [other for other in figures if figures[other] == own]
        first = max(same, key=lambda each: tested[each])
        others = [metric for _, metric in same if metric != first[1]]
        names[key] = " = ".join([key[1], *others]) if key == first else ""
    return names


def _metric(row: Mapping[str, Any], names: Mapping[tuple[str, str], str]) -> str:
    return names.get((row["benchmark"], row["metric"]), row["metric"])


def _is_own(row: Mapping[str, Any], facts: Tree) -> bool:
    """Whether a lead is by the first policy, and of a model of ours where these are named."""
    ours = facts["ours"]
    return row["policy"] == next(iter(facts["policies"])) and (not ours or row["first"] in ours)


ADVICE: Final = {
    "contaminated": "The corpora contain the item. Report scores without it, or take its documents "
    "out (contam clean) and train again. Who finds the flag wrong or harmless accepts it, with a "
    "name, a reason and a last day (contam review --accept).",
    "suspect": "Somebody should read the item beside its document. Until then it counts as "
    "flagged, and clean scores leave it out.",
    "not checkable": "Nothing is known of the item, so it is in no clean score. The reasons are "
    "listed: shards can be read again, and an item that is too short for one policy may be long "
    "enough for another.",
}
"""What to do with items of each label."""

ROLES: Final = ("made by", "reviewed by", "approved by")
"""Of the people who put their names under a report."""


def clean_missing(row: Mapping[str, Any], least: int) -> str:
    """Why a row has no clean score to show, "" where it has one."""
    return too_few(row["n_clean"], "clean", least)


def _shown(row: Row, least: int) -> Row:
    for side in _SIDES:
        reason = too_few(row[f"n_{side}"], side, least)
        if not reason:
            continue
        row |= dict.fromkeys((side, f"{side}_lo", f"{side}_hi"))
        if side == "clean":
            row |= dict.fromkeys(("clean_with_unchecked", "gain", "gap", "gap_low", "gap_high"))
            if reason not in row["note"]:
                row["note"] = "; ".join(filter(None, (row["note"], reason)))
    return row


LABELS: Final = ("contaminated", "suspect", "not_checkable", "clean")
"""From left to right in a bar."""

MEANINGS: Final = {
    "contaminated": "the corpora contain the item, by this policy",
    "suspect": "part of it, or a copy that was changed; counts as flagged, too",
    "not_checkable": "could not be decided, so it is not called clean",
    "clean": "not found in any corpus of this audit",
    "question+answer": "the question, and its answer nearby: a model can have learned the answer",
    "question": "the question without its answer",
    "passage_only": "only the passage that the question is about",
    "answer_only": "only the answer or the choices",
    "none": "less than half of any part",
}
"""Of labels and exposures, for the keys of pictures."""

_EXPOSED: Final = ("question+answer", *(name for name in EXPOSURES[1:] if "+" not in name), "none")


def overview(facts: Tree) -> list[Tree]:
    """A row for each benchmark and policy, all corpora together: verdicts and what leaked.

    A row has `benchmark`, `policy`, `n_items`, `flagged_share` and two lists of segments.
    """
    return [
        {
            "benchmark": bench["name"],
            "policy": policy["policy"],
            "n_items": policy["n_items"],
            "n_flagged": policy["contaminated"] + policy["suspect"],
            "flagged_share": policy["flagged_share"],
            "labels": segments(LABELS, policy, policy["n_items"]),
            "exposures": segments(_EXPOSED, _counts(policy["exposures"]), policy["n_items"]),
        }
        for bench in facts["benchmarks"]
        for policy in bench["policies"]
        if policy["corpus"] == TOGETHER
    ]


def key_of(rows: Iterable[Tree], kind: str) -> list[tuple[str, str]]:
    """(name, meaning) of every segment that some row has, in the order of the bars."""
    order = LABELS if kind == "labels" else _EXPOSED
    shown = {segment["name"] for row in rows for segment in row[kind]}
    return [(name, MEANINGS[name]) for name in order if name in shown]


def segments(order: Iterable[str], counts: Mapping[str, Any], n_items: int) -> list[Tree]:
    """The parts of a bar, `x` and `width` in percent of all items; none of what is not there."""
    found: list[Tree] = []
    done = 0
    for name in order:
        n = counts.get(name, 0)
        if n:
            x, end = (round(100 * at / n_items, 3) for at in (done, done + n))
            found.append({"name": name, "n": n, "x": x, "width": round(end - x, 3)})
        done += n
    return found


def months(policy: Tree, released: str | None) -> Tree | None:
    """Columns of flagged items by the month of their documents; None where no month is known.

    `x`, `width` and `height` are percent of the picture, whose top is the share `top`; `released`
    is where the benchmark came out, None outside of the picture.
    """
    known = {month["name"]: month["n"] for month in policy["months"] if month["name"] != UNKNOWN}
    if not known:
        return None
    first, last = _number(min(known)), _number(max(known))
    width = 100 / (last - first + 1)
    most = max(known.values())
    day = None if released is None else _number(released) - first + int(released[8:10]) / 31
    return {
        "first": min(known),
        "last": max(known),
        "top": most / policy["n_items"],
        "most": most,
        "unknown": _counts(policy["months"]).get(UNKNOWN, 0),
        "released": None if day is None or not 0 <= day * width <= 100 else round(day * width, 3),  # noqa: PLR2004 - percent
        "columns": [
            {
                "month": month,
                "n": n,
                "x": round((_number(month) - first) * width, 3),
                "width": round(width, 3),
                "height": round(100 * n / most, 3),
            }
            for month, n in known.items()
        ],
    }


def _counts(counted: Iterable[Tree]) -> dict[str, int]:
    return {entry["name"]: entry["n"] for entry in counted}


def _number(month: str) -> int:
    """Months since the year 0, of "2021-06" or a day of it."""
    return 12 * int(month[:4]) + int(month[5:7]) - 1


CONDA_FILE: Final = "conda.csv"
CARD_FILE: Final = "model_card.md"
CONDA: Final = (
    *("Evaluation Dataset", "Subset", "Contaminated Source", "Model or corpus"),
    *("Train Split", "Development Split", "Test Split", "Approach", "Reference", "PR"),
)
"""Columns of `contamination_report.csv`."""

_SPLITS: Final = {
    "train": "Train Split",
    "training": "Train Split",
    "dev": "Development Split",
    "development": "Development Split",
    "val": "Development Split",
    "valid": "Development Split",
    "validation": "Development Split",
}
_TEST: Final = "Test Split"


def conda(folder: Path, policy: str | None = None, reference: str = "") -> str:
    """A row for each benchmark and corpus: what share of each split is contaminated, in percent.

    Counted is what is labelled contaminated, of what could be checked. Empty means not measured: so
    is a split without a contaminated item when some of it is suspect or could not be checked, since
    0 is evidence of absence there.

    Raises UsageError for a policy the pack does not have, OutputError when the pack does not hold.
    """
    facts, _ = checked_facts(folder)
    reports = {
        corpus.name: load_report(folder / "checks" / corpus.name) for corpus in facts.corpora
    }
    return _conda(facts, reports, policy, reference)


def model_card(folder: Path, policy: str | None = None, models: Sequence[str] = ()) -> str:
    """A Markdown section: what the corpora contain of the benchmarks, and clean scores.

    models  those whose scores are shown; none are the audit's `ours`, else all

    Raises UsageError for a policy or model the pack does not have, OutputError when the pack does
    not hold. No text of items or documents is in it.
    """
    facts, manifest = checked_facts(folder)
    return _model_card(facts, policy, models, manifest["digest"])


def write_exports(folder: Path, facts: Facts, reports: Mapping[str, Report]) -> None:
    """Write both for the first policy into a pack that is not sealed yet. Raises OSError.

    reports  the verdicts of each corpus, by name
    """
    folder.mkdir()
    (folder / CONDA_FILE).write_text(_conda(facts, reports), "utf-8", errors="replace")
    (folder / CARD_FILE).write_text(_model_card(facts), "utf-8", errors="replace")


def _conda(
    facts: Facts, reports: Mapping[str, Report], policy: str | None = None, reference: str = ""
) -> str:
    policy = _policy(facts, policy)
    text = io.StringIO()
    writer = csv.DictWriter(text, CONDA, delimiter=";", lineterminator="\n")
    writer.writeheader()
    for corpus in facts.corpora:
        # Benchmark -> column -> labels.
        found: dict[str, dict[str, Counter[str]]] = {}
        names = ("benchmark", "split", "policy", "label")
        for row, n in schemas.tally(reports[corpus.name].verdicts, names):
            benchmark, split, judge, label = row
            if judge == policy:
                column = _SPLITS.get(split.lower(), _TEST)
                found.setdefault(benchmark, {}).setdefault(column, Counter())[label] += n
        for benchmark, columns in sorted(found.items()):
            writer.writerow(
                {
                    "Evaluation Dataset": benchmark,
                    "Contaminated Source": corpus.name,
                    "Model or corpus": "corpus",
                    "Approach": "data-based",
                    "Reference": reference,
                    **{column: _contaminated(labels) for column, labels in columns.items()},
                }
            )
    return text.getvalue()


def _model_card(
    facts: Facts, policy: str | None = None, models: Sequence[str] = (), digest: str = ""
) -> str:
    policy = _policy(facts, policy)
    rows = [row for row in facts.scores if row["policy"] == policy]
    wanted = set(models or facts.ours or {row["model"] for row in rows})
    if missing := set(models) - {row["model"] for row in rows}:
        raise UsageError("the audit has no scores of {}", min(missing), hint="see report.md")
    shown = [row for row in rows if row["model"] in wanted]
    return markdown(CARD_FILE, facts, policy=policy, scores=shown, digest=digest)


def _policy(facts: Facts, policy: str | None) -> str:
    if policy is not None and policy not in facts.policies:
        raise UsageError(
            "the audit has no policy {}",
            policy,
            hint=Statement("policies: {}", ", ".join(facts.policies)),
        )
    return policy or facts.first_policy


def _contaminated(labels: Counter[str]) -> str:
    checked = sum(labels.values()) - labels["not_checkable"]
    unsure = labels["suspect"] + labels["not_checkable"]
    if not checked or (not labels["contaminated"] and unsure):
        return ""
    return f"{100 * labels['contaminated'] / checked:.4g}"
