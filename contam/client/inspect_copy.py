"""Copy an Inspect log with scores over clean items only, computed by Inspect itself.

Only this module and the hook load Inspect, which has to be installed where this runs.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from contam.errors import LogError, OutputError, UsageError
from contam.rescore.logs.log_files import LogFile, as_list
from contam.rescore.logs.tools.inspect_ai import ZipMembers

if TYPE_CHECKING:
    from pathlib import Path

    from contam.rescore.export.evaluator import LabelledLog

TAG: Final = "contam-clean"
"""The tag of a copy, so that it is never taken for a run."""

ABOUT: Final = "contam"
"""The entry of a copy's metadata that says what judged it."""


def is_copy(path: Path) -> bool:
    """Whether a log is a copy that was written here."""
    file = LogFile(path)
    if file.data.startswith(b"PK"):
        archive = ZipMembers(file)
        tree = json.loads(archive.read("header.json")) if "header.json" in archive.names else {}
    else:
        tree = file.document
    return TAG in as_list(tree.get("tags") if isinstance(tree, dict) else None)


def place_of(log: Path) -> Path:
    """Where the copy of a log goes: under its own name into a folder beside the log's.

    Not into the log's own: `eval_set` takes the newest log of a task for the task's, and may remove
    the others.
    """
    folder = log.resolve().parent
    return folder.with_name(f"{folder.name}-clean") / log.name


def write_copy(
    labelled_log: LabelledLog, about: dict[str, Any], out: Path, *, overwrite: bool = False
) -> None:
    """Write the copy: items that are not clean are unscored, with the label as the reason.

    Raises UsageError when Inspect is not installed, LogError when no item is clean or Inspect
    refuses the log, OutputError when the copy cannot be written.
    """
    if out.exists() and not overwrite:
        raise OutputError(f"{out} already exists", hint="give --overwrite")
    labels = labelled_log.not_clean
    if len(labels) == len(labelled_log.log.items):
        raise LogError(f"{labelled_log.log.path}: none of its {len(labels)} items is clean")
    try:
        from inspect_ai.log import (
            MetadataEdit,
            ProvenanceData,
            TagsEdit,
            edit_eval_log,
            edit_score,
            read_eval_log,
            recompute_metrics,
            write_eval_log,
        )
        from inspect_ai.scorer import ScoreEdit
    except ImportError as error:
        raise UsageError(
            "a log of Inspect is edited by Inspect, which is not installed here",
            hint="run this where inspect_ai is installed",
        ) from error

    def provenance(reason: str) -> Any:  # noqa: ANN401 - a class of Inspect
        return ProvenanceData(timestamp=datetime.now(UTC), author="contam", reason=reason)

    draft = out.with_name(f".draft-{out.name}")
    try:
        log = read_eval_log(labelled_log.log.path)
        for sample in log.samples or []:
            label = labels.get(str(sample.id))
            if label is None:
                continue
            for name, score in list((sample.scores or {}).items()):
                edit = ScoreEdit(
                    value=_unscored(score.value),
                    reason=label,
                    provenance=provenance(f"{label} by policy {labelled_log.policy}"),
                )
                edit_score(log, sample.id, name, edit, False, sample.epoch)  # noqa: FBT003 - its API
        recompute_metrics(log)
        own = {
            "policy": labelled_log.policy,
            "items": labelled_log.counts,
            "notes": labelled_log.notes,
        }
        metadata = {ABOUT: {**about, **own}}
        edits = [TagsEdit(tags_add=[TAG]), MetadataEdit(metadata_set=metadata)]
        log = edit_eval_log(log, edits, provenance("clean items alone"))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(draft))
        draft.replace(out)
    except OSError as error:
        raise OutputError(f"cannot write {out}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, LookupError) as error:
        # What Inspect says may quote a sample.
        raise LogError(
            f"{labelled_log.log.path}: Inspect does not take its edits ({type(error).__name__})",
            hint="is the scorer's package installed here? Its metrics need it",
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _unscored(value: object) -> Any:  # noqa: ANN401 - in the shape of the score
    """NaN in the shape of the score: one for each part of a score with several."""
    if isinstance(value, dict):
        return dict.fromkeys(value, float("nan"))
    if isinstance(value, list):
        return [float("nan")] * len(value)
    return float("nan")
