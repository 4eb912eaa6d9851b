"""Write a log in the Every Eval Ever format, with clean scores and item flags.

The schema is closed, so what it has no field for goes into `metadata` and `details`, as text: the
question apart from the prompt, the passage, and what contam says of the item.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import LogError, Place
from contam.rescore.logs.tools.every_eval import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn

SCHEMA_VERSION: Final = "0.3.0"
_CLEAN: Final = "contam/clean"
"""Beginning of the description of a score over the clean items alone."""

_NO_TIME: Final = "0"
"""Not all logs say when they were made, and the time of the export is not the time of the run."""


def every_eval_files(
    log: Log,
    *,
    labels: Sequence[str | None] | None = None,
    clean: NDArray[np.bool_] | None = None,
    policy: str = "",
) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    """The names and bytes of `UUID_samples.jsonl` and `UUID.json`.

    labels  per item what contam says of it, written into its metadata
    clean   bool[n]: adds the score over these items to every metric that has one, as a further
            result;  policy: who says so

    The names follow from the log's digest, so that the same log gives the same files. Metrics that
    no item has by itself are left out. Raises LogError when nothing is left.
    """
    columns = [column for column in log.columns if column.kind == "mean"]
    if not columns:
        raise LogError("{} has no score per item to write", Place(log.path))
    developer, _, model = log.model.rpartition("/")
    name = _name_of_files(log)
    evaluation = f"{log.benchmark}/{log.model}/{log.run_id or log.digest[:16]}"
    lines = [
        json.dumps(_line(log, place, column, evaluation, labels), ensure_ascii=False)
        for column in columns
        for place in range(len(log.items))
        if column.scored[place]
    ]
    samples = "".join(f"{line}\n" for line in lines).encode()
    results = [_result(log, column) for column in columns]
    if clean is not None:
        # Without a clean item there is no score, and the schema has no way to say so.
        results += [
            _result(log, column, clean=clean, policy=policy)
            for column in columns
            if (clean & column.scored).any()
        ]
    aggregate = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "retrieved_timestamp": _NO_TIME,
        "source_metadata": {
            "source_name": "contam",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": log.tool, "version": log.tool_version or "unknown"},
        "model_info": {
            "name": log.model,
            "id": log.model,
            "developer": developer or "unknown",
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "log_sha256": log.digest,
            },
        },
        "evaluation_results": results,
        "detailed_evaluation_results": {
            "format": "jsonl",
            # Where the shared store keeps it; here it lies beside the aggregate.
            "file_path": "/".join(
                ("data", *map(_folder, (log.benchmark, developer, model)), name + SUFFIX)
            ),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(samples).hexdigest(),
            "total_rows": len(lines),
        },
    }
    whole = json.dumps(aggregate, indent=2, ensure_ascii=False).encode()
    return (name + SUFFIX, samples), (f"{name}.json", whole)


def _name_of_files(log: Log) -> str:
    """A UUID of the form that the schema asks for (version 4), made of the log's content."""
    content = f"{log.digest}/{log.model}/{log.benchmark}/{log.split}"
    return str(uuid.UUID(bytes=hashlib.sha256(content.encode()).digest()[:16], version=4))


def _folder(name: str) -> str:
    return name.replace("/", "_") or "unknown"


def _result(
    log: Log,
    column: ScoreColumn,
    *,
    clean: NDArray[np.bool_] | None = None,
    policy: str = "",
) -> dict[str, Any]:
    mask = np.ones(len(log.items), np.bool_) if clean is None else clean
    low, high = _bounds(column)
    details: dict[str, Any] = {
        "score": column.aggregate(mask),
        "uncertainty": {"num_samples": int(np.count_nonzero(mask & column.scored))},
    }
    about = f"{column.metric} of {log.benchmark}"
    if clean is not None:
        about = f"{_CLEAN}: {about} without the items found in the training corpus"
        n_dropped = int(np.count_nonzero(column.scored & ~mask))
        details["details"] = {"n_dropped": str(n_dropped), "tool": "contam", "policy": policy}
    return {
        "evaluation_result_id": column.metric + ("" if clean is None else ":clean"),
        "evaluation_name": _name(log, column) + ("" if clean is None else "/clean"),
        "source_data": {"dataset_name": log.benchmark, "source_type": "other"},
        "metric_config": {
            "evaluation_description": about,
            "metric_name": column.metric,
            "lower_is_better": column.higher_is_better is False,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": details,
    }


def _bounds(column: ScoreColumn) -> tuple[float, float]:
    known = column.score[column.scored]
    return min(0.0, float(known.min(initial=0.0))), max(1.0, float(known.max(initial=1.0)))


def _name(log: Log, column: ScoreColumn) -> str:
    return f"{log.benchmark}/{column.metric}"


def _line(
    log: Log, place: int, column: ScoreColumn, evaluation: str, labels: Sequence[str | None] | None
) -> dict[str, Any]:
    item = log.items[place]
    score = float(column.score[place])
    best = 0.0 if column.higher_is_better is False else 1.0
    raw = item.prompt or item.question or ""
    reference = [item.answer] if item.answer is not None else []
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "model_id": log.model,
        "evaluation_name": _name(log, column),
        "evaluation_result_id": column.metric,
        "sample_id": item.item_id,
        "sample_hash": hashlib.sha256((raw + "".join(reference)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "formatted": None,
            "reference": reference,
            "choices": list(item.choices) if item.choices else None,
        },
        "output": {"raw": [], "reasoning_trace": None},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == best},
        "metadata": _metadata(item, None if labels is None else labels[place]),
    }


def _metadata(item: LoggedItem, label: str | None) -> dict[str, str]:
    known = {
        "contam_question": item.question,
        "contam_passage": item.passage,
        "contam_label": label,
        "doc_hash": item.doc_hash,
    }
    return {name: text for name, text in known.items() if text is not None}
