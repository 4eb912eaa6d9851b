"""Read HELM run folders: `per_instance_stats.json` and `scenario_state.json`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from contam.errors import LogError, Public
from contam.rescore.logs.json_values import Row, as_dict, as_list, number_or_none, text_or_none
from contam.rescore.logs.log_files import OTHER_RUN, LogFile, LogReader, digest_of
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_ROWS: Final = "per_instance_stats.json"
_STATE: Final = "scenario_state.json"
_SPEC: Final = "run_spec.json"
_STATS: Final = "stats.json"
_PARTS: Final = frozenset({_STATE, _SPEC, _STATS, "scenario.json"})
_MODEL: Final = re.compile(r",?model=[^,]*")
_PROMPT: Final = (
    *("method", "instructions", "global_prefix", "global_suffix", "instance_prefix"),
    *("input_prefix", "input_suffix", "reference_prefix", "reference_suffix"),
    *("output_prefix", "output_suffix", "chain_of_thought_prefix", "chain_of_thought_suffix"),
)
_ABOUT_THE_RUN: Final = re.compile(
    r"num_.*|finish_reason_.*|training_.*|inference_.*|batch_size|logprob|max_prob|prompt_truncated"
    r"|predicted_index|perplexity|bits_per_byte|log_prob.*"
)
"""Statistics of a request, not of how good its answer is."""


def is_run(folder: Path) -> bool:
    """Whether a folder is the run folder of a model and scenario."""
    return (folder / _ROWS).is_file() and (folder / _SPEC).is_file()


def read(file: LogFile) -> list[Log]:
    """Read a run folder, given its `per_instance_stats.json`: a log per split it was scored on."""
    folder = file.path.parent
    spec_file, state_file = LogFile(folder / _SPEC), LogFile(folder / _STATE)
    if not state_file.path.is_file():
        raise LogError(
            "{} lacks {}, which holds the texts", folder, Public(_STATE), hint="copy the file again"
        )
    spec, state = as_dict(spec_file.document), as_dict(state_file.document)
    adapter = as_dict(spec.get("adapter_spec"))
    texts = _texts(state, multiple=str(adapter.get("method", "")).startswith("multiple_choice"))
    reported, note = _reported(folder / _STATS)
    by_split = _by_split(file, texts)
    logs = []
    for split, rows in by_split.items():
        names = dict.fromkeys(metric for stats in rows.values() for metric in stats)
        items = tuple(texts[split, name] for name in rows)
        numbers = reported.get(split, {})
        columns = [_column(metric, rows.values(), numbers.get(metric)) for metric in names]
        without = {name for key, name in texts if key == split} - set(rows)
        if without:
            raise LogError(
                "{}: no scores for {} instances of {}", file.path, len(without), Public(_STATE),
                hint=OTHER_RUN,
            )  # fmt: skip
        logs.append(
            Log(
                tool="helm",
                path=str(folder),
                digest=digest_of(file, state_file),
                model=text_or_none(adapter.get("model")) or "",
                benchmark=_MODEL.sub("", str(spec.get("name", folder.name))).rstrip(":,"),
                split=split or None,
                run_id=folder.parent.name or None,
                items=items,
                columns=tuple(columns),
                notes=(note,) if note else (),
                setup=setup_of(
                    examples=adapter.get("max_train_instances"),
                    prompt={name: adapter.get(name) for name in _PROMPT},
                ),
            )
        )
    return logs


def _texts(state: Row, *, multiple: bool) -> dict[tuple[str, str], LoggedItem]:
    """Items by split and id; an item is asked several times when options are scored one by one."""
    found: dict[tuple[str, str], LoggedItem] = {}
    for request in map(as_dict, as_list(state.get("request_states"))):
        instance = as_dict(request.get("instance"))
        if instance.get("perturbation"):
            continue
        name, split = str(instance.get("id")), str(instance.get("split") or "")
        references = [as_dict(reference) for reference in as_list(instance.get("references"))]
        texts = [_text(reference) for reference in references]
        right = [_text(one) for one in references if "correct" in as_list(one.get("tags"))]
        item = LoggedItem(
            item_id=name,
            question=text_or_none(as_dict(instance.get("input")).get("text")),
            choices=tuple(texts) if multiple and len(texts) > 1 else None,
            answer=right[0] if right else None,
        )
        found.setdefault((split, name), item)
    return found


def _text(reference: Row) -> str:
    return str(as_dict(reference.get("output")).get("text", "")).strip()


def _by_split(
    file: LogFile, texts: Mapping[tuple[str, str], LoggedItem]
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Split -> instance -> metric -> a mean per trial; copies with perturbed texts are left out."""
    splits: dict[str, dict[str, dict[str, list[float]]]] = {}
    seen = set()
    for place, row in enumerate(map(as_dict, as_list(file.document)), 1):
        if row.get("perturbation"):
            continue
        name, trial = str(row.get("instance_id")), row.get("train_trial_index")
        for entry in map(as_dict, as_list(row.get("stats"))):
            title = as_dict(entry.get("name"))
            split, metric = str(title.get("split") or ""), str(title.get("name"))
            if title.get("perturbation"):
                continue
            if (split, name) not in texts:
                raise LogError(
                    "{}, row {}: instance {} is not in {}", file.path, place, name, Public(_STATE),
                    hint="the files are of two runs",
                )  # fmt: skip
            if (split, name, trial, metric) in seen:
                raise LogError("{}, row {}: instance {} stands here again", file.path, place, name)
            seen.add((split, name, trial, metric))
            known = splits.setdefault(split, {}).setdefault(name, {})
            mean = _mean(entry)
            if mean is not None and not _ABOUT_THE_RUN.fullmatch(metric):
                known.setdefault(metric, []).append(mean)
    return splits


def _mean(entry: Row) -> float | None:
    """Mean of a statistic, None for one without a value or with NaN, which HELM drops."""
    count, total = number_or_none(entry.get("count")), number_or_none(entry.get("sum"))
    if not count or total is None or math.isnan(total):
        return None
    return total / count


def _column(
    metric: str, rows: Iterable[Mapping[str, list[float]]], reported: float | None
) -> ScoreColumn:
    values = [stats.get(metric, []) for stats in rows]
    score = [sum(v) / len(v) if v else None for v in values]
    return mean_column(metric, score, repeats=[*map(len, values)], reported=reported)


def _reported(path: Path) -> tuple[dict[str, dict[str, float]], str]:
    """Split -> metric -> the run's own mean, and what to say when there is no such file."""
    if not path.is_file():
        return {}, f"no {_STATS} beside it: nothing to check the rows against"
    found: dict[str, dict[str, float]] = {}
    for entry in map(as_dict, as_list(LogFile(path).document)):
        title = as_dict(entry.get("name"))
        mean = _mean(entry)
        if not title.get("perturbation") and mean is not None:
            found.setdefault(str(title.get("split") or ""), {})[str(title.get("name"))] = mean
    return found, ""


def _fits(file: LogFile) -> bool:
    return file.path.name == _ROWS and is_run(file.path.parent)


def _is_part(file: LogFile) -> bool:
    return file.path.name in _PARTS and is_run(file.path.parent)


def _rows_of(path: Path) -> list[Path]:
    return [path.parent / _ROWS]


READER: Final = LogReader(title="HELM", fits=_fits, read=read, is_part=_is_part, rows_of=_rows_of)
