"""Read what a judge answered about flagged items."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.errors import ConfigError, Plain
from contam.files.single import read_file, reading, whole_file
from contam.tables import schemas
from contam.tables.score_schemas import JUDGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Row = dict[str, Any]


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
