"""Read what a judge has to see of flagged items, and what it answered."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.benchmark.items import ItemName
from contam.detect.show.reread import Library
from contam.errors import ConfigError, Plain
from contam.files.single import read_file, reading, whole_file
from contam.tables import schemas
from contam.tables.judged_schema import JUDGED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contam.audit.review.sample import Case
    from contam.detect.report import Report
    from contam.detect.show.reread import Place

    Spans = list[tuple[int, int]]
    Row = dict[str, Any]


#: Code points around what matches, and of a stretch in all.
_AROUND: Final = 300
_MOST: Final = 4_000
#: Documents that are in memory at once.
_AT_ONCE: Final = 128


@dataclass(frozen=True, slots=True)
class Pair:
    """A flagged item and a document; `digest` also changes with the item's evidence."""

    key: ItemName
    place: Place
    digest: str


@dataclass(frozen=True, slots=True)
class PairText:
    """What there is to compare: the question, its choices below it, and a stretch of the document.

    problem  why one of them cannot be read; both are empty then
    """

    pair: Pair
    document_id: str = ""
    question: str = ""
    document: str = ""
    problem: str = ""


def flagged_pairs(cases: Sequence[Case], policies: Collection[str]) -> list[Pair]:
    """The pairs of the items that these policies flag, each once."""
    found = {
        case.pair: Pair(case.key, case.place, case.pair)
        for case in cases
        if case.place is not None and case.judged[3] in policies
    }
    return [found[digest] for digest in sorted(found)]


def read_pairs(report: Report, pairs: Sequence[Pair]) -> Iterator[PairText]:
    """The texts of the pairs, in order; documents are read again from the shards of the run."""
    questions = _questions(report, {pair.key for pair in pairs})
    spans = _spans(report, {(pair.key, pair.place) for pair in pairs})
    library = Library(report.run, report.folder)
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        library.fetch(pair.place for pair in some)
        for pair in some:
            document_id, of_question, others = spans.get((pair.key, pair.place), ("", [], []))
            document = library.document(pair.place)
            problem = ""
            if pair.key not in questions:
                problem = "the result holds no texts of items"
            elif document is None:
                problem = library.problem(pair.place) or ""
            elif not (of_question or others):
                problem = "its evidence was not read again from the document"
            if problem or document is None:
                yield PairText(pair, problem=problem)
                continue
            stretch = _stretch(document.text, of_question or others)
            yield PairText(pair, document_id, questions[pair.key], stretch)


def _questions(report: Report, keys: Collection[ItemName]) -> dict[ItemName, str]:
    return {
        key: "\n".join([row["question"], *(row["choices"] or ())])
        for row in schemas.iter_rows(report.items)
        if (key := ItemName(row["benchmark"], row["split"], row["item_id"])) in keys
        and row["question"]
    }


def _spans(
    report: Report, wanted: Collection[tuple[ItemName, Place]]
) -> dict[tuple[ItemName, Place], tuple[str, Spans, Spans]]:
    """Id of the document, and where the question and the other parts match in it."""
    ids: dict[tuple[ItemName, Place], str] = {}
    found: defaultdict[tuple[ItemName, Place], tuple[Spans, Spans]] = defaultdict(lambda: ([], []))
    for row in schemas.iter_rows(report.evidence):
        key = ItemName(row["benchmark"], row["split"], row["item_id"]), (row["shard"], row["row"])
        # Other rows count tokens of a text that was gone, not its characters.
        if key in wanted and row["verified"]:
            ids[key] = row["document_id"]
            found[key][row["part"] != "question"].append(
                (row["document_start"], row["document_end"])
            )
    return {key: (ids[key], *both) for key, both in found.items()}


def _stretch(text: str, spans: Spans) -> str:
    """The part of a document where most of the matches stand together, and what is around it."""
    ordered = sorted(spans)
    best, first, held = (0, 0), 0, 0
    most_held = -1
    for at, (begin, end) in enumerate(ordered):
        held += end - begin
        while first < at and end - ordered[first][0] > _MOST - 2 * _AROUND:
            held -= ordered[first][1] - ordered[first][0]
            first += 1
        if held > most_held:
            best, most_held = (ordered[first][0], end), held
    start = max(0, best[0] - _AROUND)
    return text[start : min(best[1] + _AROUND, start + _MOST)]


_ANSWERS_OF_JUDGE: Final = (
    "a row has benchmark, split, item_id, pair, model, and an answer: yes, no or no answer"
)


YES: Final = "yes"
NO: Final = "no"
NO_ANSWER: Final = "no answer"
ANSWERS: Final = (YES, NO, NO_ANSWER)


@dataclass(frozen=True, slots=True)
class _Judgment:
    """A line of a JSONL file."""

    benchmark: str
    split: str
    item_id: str
    pair: str
    model: str
    answer: Literal["yes", "no", "no answer"]


def read_judged(paths: Sequence[str | Path]) -> list[Row]:
    """The rows of these files.

    Raises ConfigError naming a file that is none, or not whole, and where one model has answered
    twice about one pair.
    """
    found: dict[tuple[str, str], Row] = {}
    for path in map(Path, paths):
        read = _parquet_rows if path.suffix == ".parquet" else _json_rows
        for row in read(path):
            if row["answer"] not in ANSWERS:
                raise ConfigError(
                    "{}: {!r} is no answer of a judge", path, row["answer"],
                    hint=_ANSWERS_OF_JUDGE,
                )  # fmt: skip
            if (row["pair"], row["model"]) in found:
                raise ConfigError(
                    "{}: {!r} has two answers about item {}", path, row["model"], row["item_id"],
                    hint=_ANSWERS_OF_JUDGE,
                )  # fmt: skip
            found[row["pair"], row["model"]] = row
    return list(found.values())


def _parquet_rows(path: Path) -> list[Row]:
    try:
        return schemas.rows(schemas.read_parquet(path, JUDGED))
    except (OSError, ValueError) as error:
        raise ConfigError(
            "cannot read {}: {}", path, Plain(error), hint=_ANSWERS_OF_JUDGE
        ) from error


def _json_rows(path: Path) -> Iterator[Row]:
    from pydantic import TypeAdapter, ValidationError

    known = TypeAdapter(_Judgment)
    with reading(path, ConfigError):
        lines = read_file(path).splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield asdict(known.validate_json(line, strict=True))
        except ValidationError as error:
            raise ConfigError(
                "{}:{} is no answer of a judge", path, number, hint=_ANSWERS_OF_JUDGE
            ) from error


def write_judged(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as one Parquet file. Raises OutputError."""
    table = schemas.table_of({name: [row[name] for row in rows] for name in JUDGED.names}, JUDGED)
    with whole_file(path, overwrite=True) as file:
        schemas.write_parquet(table, file)


def tally(rows: Sequence[Row]) -> list[Row]:
    """How often each judge gave each answer."""
    found: dict[str, Row] = {}
    for row in rows:
        counts = {f"n_{answer.replace(' ', '_')}": 0 for answer in ANSWERS}
        judge = found.setdefault(row["model"], {"model": row["model"], **counts})
        judge[f"n_{row['answer'].replace(' ', '_')}"] += 1
    return [found[name] for name in sorted(found)]


def mean_answers(rows: Sequence[Row]) -> dict[str, float]:
    """Pair -> 1 for yes and 0 for no, of several judges the mean; none where there is no answer."""
    said: dict[str, list[float]] = {}
    for row in rows:
        if row["answer"] != NO_ANSWER:
            said.setdefault(row["pair"], []).append(float(row["answer"] == YES))
    return {pair: sum(answers) / len(answers) for pair, answers in said.items()}
