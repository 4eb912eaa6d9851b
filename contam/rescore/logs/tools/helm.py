"""Read HELM run folders: `per_instance_stats.json` and `scenario_state.json`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from contam.errors import Public
from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    Record,
    digest_of,
    records,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Items = Mapping[tuple[str, str], LoggedItem]

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


def _is_run(folder: Path) -> bool:
    """Whether a folder is the run folder of a model and scenario."""
    return (folder / _ROWS).is_file() and (folder / _SPEC).is_file()


def read(file: LogFile) -> list[Log]:
    """Read a run folder, given its `per_instance_stats.json`: a log per split it was scored on."""
    folder = file.path.parent
    state = file.beside(_STATE)
    if state is None:
        raise file.fault("no {} beside it, which holds the texts", Public(_STATE))
    spec = LogFile(folder / _SPEC).record
    adapter = spec.inside("adapter_spec")
    multiple = str(adapter.get("method", "")).startswith("multiple_choice")
    texts = _texts(state.record, multiple=multiple)
    stats = file.beside(_STATS)
    means = _means(records(stats.document)) if stats else ()
    reported = {(split, metric): mean for split, metric, mean in means if mean is not None}
    logs = []
    for split, rows in _by_split(file, texts).items():
        if without := {name for key, name in texts if key == split} - set(rows):
            raise file.fault("no scores for {} instances of {}", len(without), Public(_STATE))
        columns = []
        for metric in dict.fromkeys(metric for own in rows.values() for metric in own):
            values = [own.get(metric, []) for own in rows.values()]
            score = [sum(v) / len(v) if v else None for v in values]
            number = reported.get((split, metric))
            columns.append(mean_column(metric, score, repeats=[*map(len, values)], reported=number))
        logs.append(
            Log(
                tool="helm",
                path=str(folder),
                digest=digest_of(file, state),
                model=adapter.text("model") or "",
                benchmark=_MODEL.sub("", str(spec.get("name", folder.name))).rstrip(":,"),
                split=split or None,
                run_id=folder.parent.name or None,
                items=tuple(texts[split, name] for name in rows),
                columns=tuple(columns),
                notes=() if stats else (_UNCHECKED,),
                setup=setup_of(
                    examples=adapter.get("max_train_instances"),
                    prompt={name: adapter.get(name) for name in _PROMPT},
                ),
            )
        )
    return logs


_UNCHECKED: Final = f"no {_STATS} beside it: nothing to check the rows against"


def _texts(state: Record, *, multiple: bool) -> Items:
    """Items by split and id; an item is asked several times when options are scored one by one."""
    found: dict[tuple[str, str], LoggedItem] = {}
    for request in state.records("request_states"):
        instance = request.inside("instance")
        if instance.get("perturbation"):
            continue
        name, split = str(instance.get("id")), str(instance.get("split") or "")
        references = instance.records("references")
        texts = [str(one.inside("output").get("text", "")).strip() for one in references]
        tags = [one.array("tags") for one in references]
        right = [text for text, own in zip(texts, tags, strict=True) if "correct" in own]
        item = LoggedItem(
            item_id=name,
            question=instance.inside("input").text("text"),
            choices=tuple(texts) if multiple and len(texts) > 1 else None,
            answer=right[0] if right else None,
        )
        found.setdefault((split, name), item)
    return found


def _by_split(file: LogFile, texts: Items) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Split -> instance -> metric -> a mean per trial; copies with perturbed texts are left out."""
    splits: dict[str, dict[str, dict[str, list[float]]]] = {}
    seen = set()
    for place, row in enumerate(records(file.document), 1):
        if row.get("perturbation"):
            continue
        name, trial = str(row.get("instance_id")), row.get("train_trial_index")
        for split, metric, mean in _means(row.records("stats")):
            if (split, name) not in texts:
                said = "instance {} is not in {}"
                raise file.fault(said, name, Public(_STATE), row=place)
            if (split, name, trial, metric) in seen:
                raise file.fault("instance {} stands here again", name, row=place)
            seen.add((split, name, trial, metric))
            known = splits.setdefault(split, {}).setdefault(name, {})
            if mean is not None and not _ABOUT_THE_RUN.fullmatch(metric):
                known.setdefault(metric, []).append(mean)
    return splits


def _means(stats: list[Record]) -> Iterator[tuple[str, str, float | None]]:
    """(split, metric, mean) of statistics of texts that are not perturbed.

    None for one without a value or with NaN, which HELM drops.
    """
    for entry in stats:
        title = entry.inside("name")
        if not title.get("perturbation"):
            count, total = entry.number("count"), entry.number("sum")
            mean = total / count if count and total is not None else math.nan
            known = None if math.isnan(mean) else mean
            yield str(title.get("split") or ""), str(title.get("name")), known


READER: Final = LogReader(
    title="HELM",
    fits=lambda file: file.path.name == _ROWS and _is_run(file.path.parent),
    read=read,
    is_part=lambda file: file.path.name in _PARTS and _is_run(file.path.parent),
    rows_of=lambda path: [path.parent / _ROWS],
)
