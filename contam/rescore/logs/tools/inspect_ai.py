"""Read Inspect AI: `.eval` (a ZIP of JSON) and `.json`, schema version 2.

Scores are taken from the reductions, which have one row per item whatever the epochs: dropping an
item drops all of its epochs, and no reducer is re-implemented.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contam.errors import LogError
from contam.files.compression import DamagedError, unpack
from contam.rescore.logs.item_parts import real_choices
from contam.rescore.logs.json_values import (
    CUT_OR_CHANGED,
    Row,
    as_dict,
    as_list,
    number_or_none,
    parsed,
    put_once,
    text_or_none,
)
from contam.rescore.logs.log_files import LogReader, NoScoresError, check_count, document
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column, no_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.rescore.logs.log_files import LogFile
    from contam.rescore.logs.model import Setup

_FINISH_INSPECT_RUN: Final = "finish it with `inspect eval-retry`, or leave the log out"
_ZSTD: Final = 93
_DAMAGE: Final = (struct.error, zlib.error, DamagedError, NotImplementedError)
_LOCAL_HEADER: Final = 30
_NAME_LENGTHS: Final = 26


class ZipMembers:
    """A ZIP file in memory. Raises LogError for anything that is not whole."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        try:
            with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
                self._infos = {info.filename: info for info in archive.infolist()}
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise LogError(
                "{}: no whole ZIP file ({})", file.path, error, hint=CUT_OR_CHANGED
            ) from error

    @property
    def names(self) -> list[str]:
        """Names of the members, in their order in the file."""
        return list(self._infos)

    def read(self, name: str) -> bytes:
        """A member's bytes, checked against its CRC."""
        info = self._infos[name]
        data = self._file.data
        start = info.header_offset
        try:
            name_length, extra_length = struct.unpack_from("<HH", data, start + _NAME_LENGTHS)
            begin = start + _LOCAL_HEADER + name_length + extra_length
            packed = data[begin : begin + info.compress_size]
            content = _unpacked(packed, info.compress_type)
        except _DAMAGE as error:
            raise LogError(
                "{}: cannot unpack {} ({})", self._file.path, name, error, hint=CUT_OR_CHANGED
            ) from error
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise LogError(
                "{}: {} is not what its checksum says", self._file.path, name, hint=CUT_OR_CHANGED
            )
        return content


def _unpacked(packed: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        return zlib.decompress(packed, -zlib.MAX_WBITS)
    if method != _ZSTD:
        raise NotImplementedError(f"compression method {method}")
    return unpack("zstd", packed)


_VERSION: Final = 2
_MEANS: Final = frozenset({"accuracy", "mean"})
_SPREADS: Final = frozenset({"stderr", "std", "var", "bootstrap_stderr", "ci", "clustered_stderr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of the results.

    name      the part of a score with several values, else the scorer's name
    title     scorer, `/part` where they differ, `,reducer` where there is one
    why_not   why it cannot be scored again, "" when it can
    """

    scorer: str
    name: str
    reducer: str | None
    title: str
    reported: float | None
    n_scored: int | None
    why_not: str = ""


def metrics_of(results: Row) -> Iterator[Metric]:
    """The mean of every score in the results, and every other metric with why it is left out."""
    for score in map(as_dict, as_list(results.get("scores"))):
        name, scorer = str(score.get("name")), str(score.get("scorer"))
        reducer = score.get("reducer")
        title = name if name == scorer else f"{scorer}/{name}"
        title += f",{reducer}" if reducer else ""
        counted = number_or_none(score.get("scored_samples"))
        metrics = {str(k): as_dict(v) for k, v in as_dict(score.get("metrics")).items()}
        mean = _mean(metrics)
        no_others = all(
            metric.get("group") or _plain(metric, key) in _SPREADS
            for key, metric in metrics.items()
        )
        whole = Metric(
            scorer=scorer,
            name=name,
            reducer=str(reducer) if reducer else None,
            title=title,
            reported=mean,
            n_scored=None if counted is None else int(counted),
        )
        if mean is not None or no_others:
            yield whole
        for key, metric in metrics.items():
            plain = _plain(metric, key)
            if plain in _MEANS | _SPREADS or metric.get("group"):
                continue
            yield replace(
                whole,
                title=f"{title}:{key}",
                reported=number_or_none(metric.get("value")),
                n_scored=None,
                why_not=f"metric {plain!r} needs the package that defines it",
            )


def _mean(metrics: dict[str, Row]) -> float | None:
    """The reported mean over all items; under `grouped` it may be the entry called `all`."""
    for key, metric in metrics.items():
        if _plain(metric, key) in _MEANS and not metric.get("group"):
            return number_or_none(metric.get("value"))
    for metric in metrics.values():
        parameters = as_dict(metric.get("params"))
        inner = as_dict(parameters.get("metric")).get("name")
        whole = metric.get("name") == "all" and parameters.get("all") == "samples"
        if metric.get("group") and whole and _last(str(inner)) in _MEANS:
            return number_or_none(metric.get("value"))
    return None


def _plain(metric: Row, key: str) -> str:
    return _last(str(metric.get("name") or key))


def _last(name: str) -> str:
    return name.rpartition("/")[2]


_ATTACHED: Final = "attachment://"
_WORDS: Final = {
    **dict.fromkeys(("C", "yes", "true"), 1.0),
    **dict.fromkeys(("I", "N", "no", "false"), 0.0),
    "P": 0.5,
}


def is_log(value: object) -> bool:
    """Whether a JSON file is a log of Inspect."""
    found = as_dict(value)
    return "eval" in found and "status" in found and "plan" in found


def read(file: LogFile) -> Log:
    """Read either form. The header of a ZIP is written last: without one the run did not end."""
    whole = _unzipped(file) if file.form == "zip" else as_dict(file.document)
    if whole.get("version", _VERSION) < _VERSION:
        raise LogError(
            "{}: an Inspect log of schema version {}", file.path, whole["version"],
            hint="version 2 is read: write it anew with `inspect log convert`",
        )  # fmt: skip
    samples = [as_dict(sample) for sample in as_list(whole.get("samples"))]
    return _log(file, whole, samples, as_list(whole.get("reductions")))


def _unzipped(file: LogFile) -> Row:
    archive = ZipMembers(file)

    def member(name: str) -> Any:  # noqa: ANN401 - whatever JSON can say
        return parsed(archive.read(name), f"{file.path}: {name}")

    if "header.json" not in archive.names:
        if not any(name.startswith(("samples/", "_journal/")) for name in archive.names):
            raise NoScoresError("{}: a ZIP archive, and no log of Inspect: unpack it", file.path)
        raise LogError(
            "{}: the run did not end (no header.json)", file.path, hint=_FINISH_INSPECT_RUN
        )
    samples = [
        member(name)
        for name in archive.names
        if name.startswith("samples/") and name.endswith(".json")
    ]
    reductions = member("reductions.json") if "reductions.json" in archive.names else []
    return {**as_dict(member("header.json")), "samples": samples, "reductions": reductions}


def _log(file: LogFile, header: Row, samples: list[Row], reductions: list[Any]) -> Log:
    status = header.get("status")
    if status != "success":
        raise LogError(
            "{}: the run ended with status {!r}", file.path, status, hint=_FINISH_INSPECT_RUN
        )
    spec = as_dict(header.get("eval"))
    results = as_dict(header.get("results"))
    if not samples:
        raise LogError(
            "{}: the log is empty",
            file.path,
            hint="run without --no-log-samples; was it limited to 0?",
        )
    check_count(file, len(samples), "samples", results.get("total_samples"))
    by_item = _by_item(file, samples)
    shuffled = as_dict(spec.get("dataset")).get("shuffled") is not False
    items = tuple(_item(epochs[0], shuffled=shuffled) for epochs in by_item.values())
    n_errors = sum(any(sample.get("error") for sample in epochs) for epochs in by_item.values())
    columns = _columns(results, reductions, by_item)
    notes = []
    if n_errors:
        notes.append(f"{n_errors} items ended in an error and have no score")
    epochs = number_or_none(as_dict(spec.get("config")).get("epochs")) or 1
    if epochs > 1:
        notes.append(f"{int(epochs)} epochs, reduced as the log says; an item is dropped with all")
    return Log(
        tool="inspect",
        tool_version=text_or_none(as_dict(spec.get("packages")).get("inspect_ai")),
        model=text_or_none(spec.get("model")) or "",
        benchmark=_benchmark(spec),
        run_id=text_or_none(spec.get("eval_id")) or text_or_none(spec.get("run_id")),
        items=items,
        columns=tuple(columns),
        notes=tuple(notes),
        n_errors=n_errors,
        setup=_setup(spec, as_dict(header.get("plan"))),
    )


def _setup(spec: Row, plan: Row) -> Setup:
    """The task's version, and the solvers with their parameters, which make the prompt."""
    steps = [as_dict(step) for step in as_list(plan.get("steps"))]
    return setup_of(
        version=spec.get("task_version"),
        prompt={"steps": [[step.get("solver"), step.get("params")] for step in steps]},
    )


def _benchmark(spec: Row) -> str:
    """The task and what it was called with: one task function may serve many data sets."""
    passed = as_dict(spec.get("task_args_passed"))
    arguments = ",".join(f"{key}={value}" for key, value in sorted(passed.items()))
    task = text_or_none(spec.get("task")) or ""
    return f"{task}:{arguments}" if arguments else task


def _by_item(file: LogFile, samples: list[Row]) -> dict[str, list[Row]]:
    """Samples by id, epochs in order; LogError when an epoch is there twice."""
    by_item: dict[str, dict[str, Row]] = {}
    for sample in samples:
        name = str(sample.get("id"))
        epochs = by_item.setdefault(name, {})
        put_once(epochs, str(sample.get("epoch")), sample, f"{file.path}: sample {name}", "epoch")
    return {name: [*epochs.values()] for name, epochs in by_item.items()}


def _item(sample: Row, *, shuffled: bool) -> LoggedItem:
    question, prompt = _question(sample)
    choices = [str(choice) for choice in as_list(sample.get("choices"))]
    number = sample.get("id")
    known = isinstance(number, int) and not isinstance(number, bool) and not shuffled
    return LoggedItem(
        item_id=str(number),
        # Ids that Inspect gives itself count from 1.
        position=number - 1 if known and isinstance(number, int) else None,
        question=question,
        choices=real_choices(choices),
        answer=_answer(sample, choices),
        prompt=prompt,
    )


def _question(sample: Row) -> tuple[str | None, str | None]:
    """(question, prompt): of several turns the last is what is asked, with what may surround it."""
    given = sample.get("input")
    if isinstance(given, str):
        return text_or_none(_attached(sample, given)), None
    texts = [
        _attached(sample, _content(message))
        for message in map(as_dict, as_list(given))
        if message.get("role") == "user"
    ]
    if len(texts) == 1 and len(as_list(given)) == 1:
        return text_or_none(texts[0]), None
    return None, text_or_none(texts[-1]) if texts else None


def _content(message: Row) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(as_dict(part).get("text", "")) for part in as_list(content))


def _attached(sample: Row, text: str) -> str:
    if not text.startswith(_ATTACHED):
        return text
    return str(as_dict(sample.get("attachments")).get(text.removeprefix(_ATTACHED), text))


def _answer(sample: Row, choices: list[str]) -> str | None:
    target = sample.get("target")
    targets = [str(text) for text in target] if isinstance(target, list) else [str(target or "")]
    named = [
        choices[ord(letter) - ord("A")]
        for letter in targets
        if len(letter) == 1 and 0 <= ord(letter) - ord("A") < len(choices)
    ]
    return text_or_none("\n".join(named or targets))


def _columns(
    results: Row, reductions: list[Any], by_item: Mapping[str, list[Row]]
) -> list[ScoreColumn]:
    columns: list[ScoreColumn] = []
    for metric in metrics_of(results):
        values = None if metric.why_not else _reduced(metric, reductions, by_item)
        if values is None:
            why = metric.why_not or "the log has no reductions, and its reducer is not known here"
            columns.append(no_column(metric.title, len(by_item), why))
            continue
        numbers = [_number(_part(values.get(name), metric)) for name in by_item]
        epochs = zip(numbers, by_item.values(), strict=True)
        columns.append(
            mean_column(
                metric.title,
                numbers,
                repeats=[0 if math.isnan(number) else len(asked) for number, asked in epochs],
                reported=metric.reported,
                reported_n=metric.n_scored,
            )
        )
    return columns


def _reduced(
    metric: Metric, reductions: list[Any], by_item: Mapping[str, list[Row]]
) -> dict[str, object] | None:
    """Value per item id, None when the log does not hold it."""
    for reduction in map(as_dict, reductions):
        if reduction.get("scorer") == metric.scorer and reduction.get("reducer") == metric.reducer:
            rows = map(as_dict, as_list(reduction.get("samples")))
            return {str(row.get("sample_id")): row.get("value") for row in rows}
    if all(len(epochs) == 1 for epochs in by_item.values()):
        return {
            name: as_dict(as_dict(epochs[0].get("scores")).get(metric.scorer)).get("value")
            for name, epochs in by_item.items()
        }
    return None


def _part(value: object, metric: Metric) -> object:
    """The part of a score with several values that the metric is about."""
    if isinstance(value, list):
        value = {str(place): part for place, part in enumerate(value)}
    return value.get(metric.name) if isinstance(value, dict) else value


def _number(value: object) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return math.nan
    word = value if value in _WORDS else value.lower()
    try:
        return _WORDS[word] if word in _WORDS else float(word)
    except ValueError:
        return math.nan


def _fits(file: LogFile) -> bool:
    return file.form == "zip" or document(is_log)(file)


READER: Final = LogReader(title="Inspect", fits=_fits, read=read)
