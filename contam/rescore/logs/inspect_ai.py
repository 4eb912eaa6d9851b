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

from contam.facts import counted
from contam.files.compression import DamagedError, unpack
from contam.rescore.logs.log_files import (
    CUT_OR_CHANGED,
    LogReader,
    NoScoresError,
    Record,
    as_list,
    document,
    fields,
    parsed,
    real_choices,
    records,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column, no_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.rescore.logs.log_files import LogFile
    from contam.rescore.logs.model import ScoreColumn

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
            raise file.fault("no whole ZIP file ({})", error, hint=CUT_OR_CHANGED) from error

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
            said = "cannot unpack {} ({})"
            raise self._file.fault(said, name, error, hint=CUT_OR_CHANGED) from error
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            said = "{} is not what its checksum says"
            raise self._file.fault(said, name, hint=CUT_OR_CHANGED)
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
class _Metric:
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


def _metrics_of(results: Record) -> Iterator[_Metric]:
    """The mean of every score in the results, and every other metric with why it is left out."""
    for score in results.records("scores"):
        name, scorer = str(score.get("name")), str(score.get("scorer"))
        reducer = score.get("reducer")
        title = name if name == scorer else f"{scorer}/{name}"
        title += f",{reducer}" if reducer else ""
        counted = score.number("scored_samples")
        metrics = {str(k): Record.of(v) for k, v in score.inside("metrics").items()}
        mean = _mean(metrics)
        no_others = all(
            metric.get("group") or _plain(metric, key) in _SPREADS
            for key, metric in metrics.items()
        )
        whole = _Metric(
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
                reported=metric.number("value"),
                n_scored=None,
                why_not=f"metric {plain!r} needs the package that defines it",
            )


def _mean(metrics: dict[str, Record]) -> float | None:
    """The reported mean over all items; under `grouped` it may be the entry called `all`."""
    for key, metric in metrics.items():
        if _plain(metric, key) in _MEANS and not metric.get("group"):
            return metric.number("value")
    for metric in metrics.values():
        inner = _plain(metric.inside("params", "metric"))
        whole = metric.get("name") == "all" and metric.inside("params").get("all") == "samples"
        if metric.get("group") and whole and inner in _MEANS:
            return metric.number("value")
    return None


def _plain(metric: Record, key: str = "") -> str:
    return str(metric.get("name") or key).rpartition("/")[2]


_ATTACHED: Final = "attachment://"
_WORDS: Final = {
    **dict.fromkeys(("C", "yes", "true"), 1.0),
    **dict.fromkeys(("I", "N", "no", "false"), 0.0),
    "P": 0.5,
}


def read(file: LogFile) -> Log:
    """Read either form. The header of a ZIP is written last: without one the run did not end."""
    whole = _unzipped(file) if file.form == "zip" else file.record
    if whole.get("version", _VERSION) < _VERSION:
        hint = "version 2 is read: write it anew with `inspect log convert`"
        raise file.fault("an Inspect log of schema version {}", whole["version"], hint=hint)
    return _log(file, whole, whole.records("samples"), whole.records("reductions"))


def _unzipped(file: LogFile) -> Record:
    archive = ZipMembers(file)

    def member(name: str) -> Any:  # noqa: ANN401 - whatever JSON can say
        return parsed(archive.read(name), f"{file.path}: {name}")

    if "header.json" not in archive.names:
        if not any(name.startswith(("samples/", "_journal/")) for name in archive.names):
            raise NoScoresError("{}: a ZIP archive, and no log of Inspect: unpack it", file.path)
        raise file.fault("the run did not end (no header.json)", hint=_FINISH_INSPECT_RUN)
    samples = [
        member(name)
        for name in archive.names
        if name.startswith("samples/") and name.endswith(".json")
    ]
    reductions = member("reductions.json") if "reductions.json" in archive.names else []
    header = Record.of(member("header.json"))
    return Record(header | {"samples": samples, "reductions": reductions})


def _log(file: LogFile, header: Record, samples: list[Record], reductions: list[Record]) -> Log:
    if (status := header.get("status")) != "success":
        raise file.fault("the run ended with status {!r}", status, hint=_FINISH_INSPECT_RUN)
    spec = header.inside("eval")
    results = header.inside("results")
    if not samples:
        hint = "run without --no-log-samples; was it limited to 0?"
        raise file.fault("the log is empty", hint=hint)
    file.check_count(len(samples), "samples", results.get("total_samples"))
    by_item: dict[str, list[Record]] = {}
    seen: dict[str, Record] = {}
    for sample in samples:
        name = str(sample.get("id"))
        file.put_once(seen, f"{name}, epoch {sample.get('epoch')}", sample, "sample")
        by_item.setdefault(name, []).append(sample)
    items = tuple(_item(epochs[0]) for epochs in by_item.values())
    n_errors = sum(any(sample.get("error") for sample in epochs) for epochs in by_item.values())
    notes = []
    if n_errors:
        notes.append(f"{counted(n_errors, 'item')} ended in an error, without a score")
    epochs = spec.inside("config").number("epochs") or 1
    if epochs > 1:
        notes.append(f"{int(epochs)} epochs, reduced as the log says; an item is dropped with all")
    plan = header.inside("plan").records("steps")
    steps = [[step.get("solver"), step.get("params")] for step in plan]
    return Log(
        tool="inspect",
        tool_version=spec.inside("packages").text("inspect_ai"),
        model=spec.text("model") or "",
        benchmark=_benchmark(spec),
        run_id=spec.text("eval_id") or spec.text("run_id"),
        items=items,
        columns=tuple(_columns(results, reductions, by_item)),
        notes=tuple(notes),
        n_errors=n_errors,
        # Solvers and their parameters make the prompt.
        setup=setup_of(version=spec.get("task_version"), prompt={"steps": steps}),
    )


def _benchmark(spec: Record) -> str:
    """The task and what it was called with: one task function may serve many data sets."""
    passed = sorted(spec.inside("task_args_passed").items())
    arguments = ",".join(f"{key}={value}" for key, value in passed)
    task = spec.text("task") or ""
    return f"{task}:{arguments}" if arguments else task


def _item(sample: Record) -> LoggedItem:
    question, prompt = _question(sample)
    choices = [str(choice) for choice in sample.array("choices")]
    return LoggedItem(
        item_id=str(sample.get("id")),
        question=question,
        choices=real_choices(choices),
        answer=_answer(sample, choices),
        prompt=prompt,
    )


def _question(sample: Record) -> tuple[str | None, str | None]:
    """(question, prompt): of several turns the last is what is asked, with what may surround it."""
    given = sample.get("input")
    if isinstance(given, str):
        return text_or_none(_attached(sample, given)), None
    texts = [
        _attached(sample, _content(message))
        for message in records(given)
        if message.get("role") == "user"
    ]
    if len(texts) == 1 and len(as_list(given)) == 1:
        return text_or_none(texts[0]), None
    return None, text_or_none(texts[-1]) if texts else None


def _content(message: Record) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in records(content))


def _attached(sample: Record, text: str) -> str:
    if not text.startswith(_ATTACHED):
        return text
    return str(sample.inside("attachments").get(text.removeprefix(_ATTACHED), text))


def _answer(sample: Record, choices: list[str]) -> str | None:
    target = sample.get("target")
    targets = [str(text) for text in target] if isinstance(target, list) else [str(target or "")]
    named = [
        choices[ord(letter) - ord("A")]
        for letter in targets
        if len(letter) == 1 and 0 <= ord(letter) - ord("A") < len(choices)
    ]
    return text_or_none("\n".join(named or targets))


def _columns(
    results: Record, reductions: list[Record], by_item: Mapping[str, list[Record]]
) -> Iterator[ScoreColumn]:
    for metric in _metrics_of(results):
        values = None if metric.why_not else _reduced(metric, reductions, by_item)
        if values is None:
            why = metric.why_not or "the log has no reductions, and its reducer is not known here"
            yield no_column(metric.title, len(by_item), why)
            continue
        numbers = [_number(_part(values.get(name), metric)) for name in by_item]
        epochs = zip(numbers, by_item.values(), strict=True)
        yield mean_column(
            metric.title,
            numbers,
            repeats=[0 if math.isnan(number) else len(asked) for number, asked in epochs],
            reported=metric.reported,
            reported_n=metric.n_scored,
        )


def _reduced(
    metric: _Metric, reductions: list[Record], by_item: Mapping[str, list[Record]]
) -> dict[str, object] | None:
    """Value per item id, None when the log does not hold it."""
    for reduction in reductions:
        if (reduction.get("scorer"), reduction.get("reducer")) == (metric.scorer, metric.reducer):
            rows = reduction.records("samples")
            return {str(row.get("sample_id")): row.get("value") for row in rows}
    if all(len(epochs) == 1 for epochs in by_item.values()):
        return {
            name: epochs[0].inside("scores", metric.scorer).get("value")
            for name, epochs in by_item.items()
        }
    return None


def _part(value: object, metric: _Metric) -> object:
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


READER: Final = LogReader(
    title="Inspect",
    fits=lambda file: file.form == "zip" or document(fields("eval", "status", "plan"))(file),
    read=read,
)
