"""Read labels of items from files: one's own, decon's report, or a published list."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.field_names import ITEM_ID, plain
from contam.detect.given import IN_MEMORY
from contam.detect.labels import LABELS, NOT_CHECKABLE
from contam.errors import LogError, Names, Place, Public, Statement, UsageError
from contam.rescore.logs.item_parts import PartsReader, Texts
from contam.rescore.logs.log_files import LogFile
from contam.rescore.logs.tools.plain_tables import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.rescore.logs.tools.plain_tables import Table

ROLES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("item_id", "instance_id", "sample_id", "doc_id", *ITEM_ID),
    "benchmark": ("benchmark", "task", "dataset", "eval", "eval_key", "eval_name"),
    "split": ("split",),
    "policy": ("policy",),
    "label": (
        "contamination_label",
        "verdict",
        "contaminated",
        "is_contaminated",
        "contamination",
        "leaked",
        "is_leaked",
        "dirty",
        "is_dirty",
        "label",
    ),
    "score": ("contamination_score", "overlap", "overlap_score", "similarity", "score"),
}
"""What a column is -> the names it usually has; the first that is there counts."""

MAPPABLE: Final = (*ROLES, "question")

_CONTAMINATED: Final = LABELS.index("contaminated")
_CLEAN: Final = LABELS.index("clean")
_WORDS: Final = {
    **dict.fromkeys(
        ("contaminated", "dirty", "leaked", "leak", "true", "yes", "y", "1"), _CONTAMINATED
    ),
    # The labels of OpenCompass.
    **dict.fromkeys(("input contamination", "input and label contamination"), _CONTAMINATED),
    **dict.fromkeys(
        ("clean", "not contaminated", "uncontaminated", "not leaked", "false", "no", "n", "0"),
        _CLEAN,
    ),
    **dict.fromkeys(("suspect", "suspicious", "suspected"), LABELS.index("suspect")),
    **dict.fromkeys(
        ("not checkable", "unchecked", "unknown", "n/a", "na", "nan", "null", "none", ""),
        NOT_CHECKABLE,
    ),
}
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

    row  where it stands first, as messages say it
    """

    benchmark: str
    split: str
    item_id: str
    texts: Texts
    row: str
    label: dict[str, int]
    score: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Annotations:
    """All items of a file.

    n_rows    rows it has, those of one item counted singly
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
    listed: bool
    of_decon: bool

    @property
    def by_text(self) -> bool:
        """Whether the items are identified by questions, not by ids alone."""
        return any(item.texts.question for item in self.items)


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
            raise UsageError(
                "verdicts have no {!r}", role,
                hint=Statement("known: {}", Public(", ".join(MAPPABLE))),
            )  # fmt: skip
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(
            "the threshold {} is no score", threshold, hint="give a number, such as 0.8"
        )
    file = LogFile(path, data)
    table = load(file)
    if not len(table):
        raise LogError("{}: the file has no rows", path, hint="is it the right file, and whole?")
    of_decon = not mapping and set(table.columns) >= _DECON
    found = _columns(table, mapping, of_decon=of_decon)
    listed = "label" not in found and (of_decon or "score" not in found)
    if listed and not of_decon and unlisted is None:
        raise UsageError(
            "{} has neither labels nor scores (columns: {})",
            path,
            _names(table),
            hint=(
                "name the columns: --verdict-columns label=COLUMN,id=COLUMN; if it lists "
                "contaminated items only, say what all others are: --unlisted clean or "
                "--unlisted not_checkable"
            ),
        )
    if "label" not in found and not listed and threshold is None:
        raise UsageError(
            "{} has scores in {!r} and no labels", path, found["score"],
            hint="say from which score on an item is contaminated: --threshold 0.8",
        )  # fmt: skip
    if threshold is not None and "score" not in found:
        raise UsageError(
            "{} has no scores to compare with a threshold (columns: {})",
            path,
            _names(table),
            hint=(
                "leave out --threshold, or name the column of scores: --verdict-columns "
                "score=COLUMN"
            ),
        )
    if "label" in found and "label" not in mapping:
        _refuse_answers(table, found["label"], threshold)
    reader = PartsReader(found.get("question", ""))
    rows = [
        _row(table, place, found, threshold, reader, of_decon=of_decon)
        for place in range(len(table))
    ]
    items = _merged(rows, of_decon=of_decon)
    _check_alike(path, items)
    return Annotations(
        path=path,
        sha256=file.digest,
        items=items,
        policies=tuple(dict.fromkeys(name for item in items for name in item.label)),
        columns=found,
        n_rows=len(table),
        threshold=threshold,
        listed=listed,
        of_decon=of_decon,
    )


def decon_text(text: str) -> str:
    """A text as decon's report quotes it: lower case, punctuation as blanks, 1,000 words."""
    return " ".join(text.lower().translate(_DECON_MARKS).split()[:_DECON_WORDS])


def _columns(table: Table, mapping: Mapping[str, str], *, of_decon: bool) -> dict[str, str]:
    """Role -> column, as mapped or by the usual names."""
    for name in mapping.values():
        if name and not table.has(name):
            raise LogError(
                "{}: no column {!r}", table.file.path, name,
                hint=Statement("columns there: {}", _names(table)),
            )  # fmt: skip
    found = {role: name for role, name in mapping.items() if name or role == "question"}
    by_name = {plain(name): name for name in reversed(list(table.columns))}
    taken = set(found.values())
    for role, usual in ROLES.items():
        there = [by_name[name] for name in usual if name in by_name and by_name[name] not in taken]
        if role not in mapping and there:
            found[role] = there[0]
            taken.add(there[0])
    if of_decon:
        found.pop("id", None)
        found.pop("label", None)
        found["question"] = "eval_question_text"
    return found


def _refuse_answers(table: Table, name: str, threshold: float | None) -> None:
    """Raise UsageError for a `label` of 0 and 1, as of answers, and for labels beside a threshold.

    Benchmarks keep their answers in a column `label`: with a threshold, that is what it is.
    """
    words = {_name(value).lower() for value in table.column(name)} - {""}
    answers = plain(name) == _ANSWERS and bool(words) and words <= _BARE
    if threshold is not None and not answers and words & _WORDS.keys():
        raise UsageError(
            "{} has labels in {!r}, and a threshold is given for its scores", table.file.path, name,
            hint="leave --threshold out, or --verdict-columns label=",
        )  # fmt: skip
    if threshold is None and answers:
        raise UsageError(
            "{}: does its column {!r} say what is contaminated? It holds only {}, as answers of a"
            " benchmark do",
            table.file.path,
            name,
            " and ".join(sorted(words)),
            hint=Statement(
                "if it does: --verdict-columns label={}; if all rows are contaminated items: "
                "--verdict-columns label=",
                name,
            ),
        )


def _row(
    table: Table,
    place: int,
    found: Mapping[str, str],
    threshold: float | None,
    reader: PartsReader,
    *,
    of_decon: bool,
) -> Annotation:
    at = table.at(place)

    def value(role: str) -> object:
        return table.column(found[role])[place] if role in found else None

    score = _score(value("score"), at) if "score" in found else math.nan
    if threshold is not None:
        label = NOT_CHECKABLE if math.isnan(score) else _over(score, threshold)
    else:
        label = _label(value("label"), at) if "label" in found else _CONTAMINATED
    policy = _name(value("policy")) or table.file.path.stem.removeprefix(IN_MEMORY)
    mapped = set(found.values()) - {found.get("question")}
    row = {name: values[place] for name, values in table.columns.items() if name not in mapped}
    if of_decon:
        texts = Texts(question=decon_text(str(value("question"))))
    elif found.get("question") == "":
        texts = Texts()
    else:
        texts = reader.read(row)
    name = _name(value("id"))
    if not name and not texts.question:
        raise LogError(
            "{}: neither an id nor a question", Place(at),
            hint="name the columns: --verdict-columns label=COLUMN,id=COLUMN,question=COLUMN",
        )  # fmt: skip
    return Annotation(
        benchmark=_name(value("benchmark")),
        split=_name(value("split")),
        item_id=name,
        texts=texts,
        row=at,
        label={policy: label},
        score={policy: score},
    )


def _merged(rows: list[Annotation], *, of_decon: bool) -> tuple[Annotation, ...]:
    """An item for all its rows. Raises LogError for two labels of one under a policy."""
    items: dict[tuple[object, ...], Annotation] = {}
    for row in rows:
        key = (row.benchmark, row.split, row.item_id or row.texts)
        known = items.setdefault(key, row)
        if known is row:
            continue
        if known.texts != row.texts:
            raise LogError(
                "{}: item {} has another text than in {}",
                Place(row.row),
                row.item_id,
                Place(known.row),
                hint="two versions of a benchmark, or two benchmarks without a column for it",
            )
        for policy, label in row.label.items():
            first = known.label.setdefault(policy, label)
            # decon reports every match of an item: the best one decides.
            if first != label and not of_decon:
                raise LogError(
                    "{}: item {} is {} here and {} in {}", Place(row.row),
                    row.item_id or row.texts.question, Public(LABELS[label]), Public(LABELS[first]),
                    Place(known.row), hint="keep one label of each item",
                )  # fmt: skip
            known.label[policy] = max(first, label)
            known.score[policy] = float(
                np.fmax(known.score.get(policy, math.nan), row.score[policy])
            )
    return tuple(items.values())


def _check_alike(path: Path, items: tuple[Annotation, ...]) -> None:
    """Some items by text and others by id alone would be found by two different rules."""
    bare = next((item for item in items if not item.texts.question), None)
    if bare is not None and any(item.texts.question for item in items):
        raise LogError(
            "{}: some rows have a question and others none ({})", path, Place(bare.row),
            hint="give all of them the question, or leave the column out",
        )  # fmt: skip


def _over(score: float, threshold: float) -> int:
    return _CONTAMINATED if score >= threshold else _CLEAN


def _label(value: object, at: str) -> int:
    word = _name(value).lower().replace("_", " ").replace("-", " ")
    if word not in _WORDS:
        raise LogError(
            "{}: {!r} is no label",
            Place(at),
            str(value)[:40],
            hint=(
                "known are contaminated, dirty, leaked, true, yes and 1; clean, false, no and "
                "0; suspect, suspicious; not_checkable, unknown and an empty cell"
            ),
        )
    return _WORDS[word]


def _score(value: object, at: str) -> float:
    word = _name(value)
    try:
        score = float(word) if word else math.nan
    except ValueError:
        score = math.inf
    if math.isinf(score):
        raise LogError(
            "{}: {!r} is no score", Place(at), str(value)[:40], hint="scores are numbers"
        )
    return score


def _name(value: Any) -> str:  # noqa: ANN401 - a cell
    """A cell as text; 1 and 1.0 are the same."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else str(int(value) if value == int(value) else value)
    text = str(value).strip()
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def _names(table: Table) -> Names:
    return Names([*table.columns])
