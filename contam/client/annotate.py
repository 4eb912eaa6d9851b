"""Write clean scores beside a tool's logs when a run ends, without changing its files."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from contam.client.client import result_folder
from contam.detect.report import load_report
from contam.errors import IncompleteError, LogError, OutputError, UsageError
from contam.files.single import write_file
from contam.rescore.evaluator import clean_results, label_logs
from contam.rescore.judging import one_policy
from contam.rescore.logs.inspect_ai import ZipMembers
from contam.rescore.logs.log_files import LogFile, as_list
from contam.rescore.logs.read import benchmark_of, read_logs
from contam.rescore.summary import figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contam.client.client import Client, JobOptions, Watcher
    from contam.rescore.evaluator import LabelledLog
    from contam.rescore.logs.model import Log

    PathLike = str | Path


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


Runs: TypeAlias = "dict[Path, list[Log]]"
"""The logs of each run, by the file of clean scores that they share."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Written:
    """A file of clean scores, and the judged logs it is about."""

    out: Path
    judged: tuple[LabelledLog, ...]

    @property
    def notes(self) -> list[str]:
        """What the clean scores leave out although nothing was found of it."""
        return [note for judged in self.judged for note in judged.notes]

    def scores(self) -> list[dict[str, Any]]:
        """A row for each metric of each log: full and clean score, and the items by label."""
        found = []
        for judged in self.judged:
            clean = judged.scores()
            for column in judged.log.columns:
                if column.metric not in clean:
                    continue
                value, n_clean = clean[column.metric]
                full = column.aggregate(np.ones(len(judged.label), np.bool_))
                found.append(
                    {
                        "model": judged.log.model, "benchmark": judged.log.benchmark,
                        "metric": column.metric, "policy": judged.policy,
                        "n": int(np.count_nonzero(column.scored)),
                        "full": None if math.isnan(full) else full,
                        "n_clean": n_clean, "clean": None if math.isnan(value) else value,
                        "items": judged.counts,
                    }
                )  # fmt: skip
        return found

    def line(self) -> str:
        """The clean scores, the items by label, what was left out, and the file, on one line."""
        told = ", ".join(
            f"{row['metric']} {figure(row['clean'])} (all items {figure(row['full'])})"
            for row in self.scores()
        )
        labels = "; ".join(
            f"{judged.log.benchmark}: "
            + ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in judged.counts.items())
            + f", by {judged.policy}"
            for judged in self.judged
        )
        line = f"{told or 'no score'} on clean items; {labels}; in {self.out}"
        line = "; ".join([line, *self.notes])
        return "".join(char if char.isprintable() else "?" for char in line)


def find_runs(
    paths: Sequence[PathLike], *, overwrite: bool = False
) -> tuple[Runs, list[tuple[str, str]]]:
    """The runs of lm-eval and Inspect below files, folders and globs.

    Behind them (path, reason) of logs that no clean scores are written beside.

    Raises LogError when there are none, and OutputError for one that has clean scores already.
    """
    by_out: dict[Path, list[Log]] = {}
    skipped = []
    for log in read_logs(paths):
        path = Path(log.path)
        if log.tool == "inspect" and is_copy(path):
            skipped.append((log.path, "clean scores of an earlier time"))
        elif log.tool == "inspect":
            by_out[place_of(path)] = [log]
        elif log.tool == "lm-eval":
            name = f"clean_results_{log.run_id or path.stem}.json"
            by_out.setdefault(path.with_name(name), []).append(log)
        else:
            skipped.append((log.path, f"a log of {log.tool}: see `contam rescore`"))
    if not by_out:
        raise LogError(
            "no logs of lm-eval or Inspect among these",
            hint="lm-eval writes its items with --log_samples; `contam logs` says what is there",
        )
    for out in by_out:
        if out.exists() and not overwrite:
            raise OutputError(f"{out} already exists", hint="give --overwrite")
    return by_out, skipped


def annotate(
    paths: Sequence[PathLike],
    client: Client | None = None,
    *,
    verdicts: PathLike | None = None,
    policy: str | None = None,
    index: str | Sequence[str] | None = None,
    allow_missing: bool = False,
    allow_unmatched: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> list[Written]:
    """Write the clean scores of the runs below some paths.

    client    a service that judges their items; None: the verdicts are in a folder
    verdicts  that folder, or one to keep the verdicts of the service in, as `contam query --out`
              writes it
    policy    by which the items are clean or not; None: `contam`, or the only one of the folder
    index, allow_missing, watcher  as for the client
    note      is told of logs that are left out

    Each file is written whole. Raises ContamError subclasses: IncompleteError, before anything is
    written, when the verdicts leave out part of the corpus and that was not allowed, and whatever
    `contam rescore` refuses.
    """
    runs, skipped = find_runs(paths, overwrite=overwrite)
    for path, reason in skipped:
        note(f"{path}: left out, {reason}")
    with tempfile.TemporaryDirectory(prefix="contam-") as scratch:
        folder = Path(verdicts or Path(scratch) / "verdicts")
        if client is not None:
            with result_folder(folder, overwrite=overwrite) as draft:
                rows = benchmark_of([log for logs in runs.values() for log in logs]).rows
                asked: JobOptions = {"index": index, "allow_missing": allow_missing}
                asked["policies"] = [policy or "contam"]
                job = client.submit(rows, keep_text=True, **asked)
                client.download(client.wait(job, watcher=watcher), draft)
        report = load_report(folder)
        run = report.run
        chosen = one_policy(report, policy)
        if not run["coverage"]["complete"] and not run["parameters"].get("allow_missing"):
            raise IncompleteError(
                "part of the corpus was not read: no item is known to be clean",
                hint="judge without the missing part by --allow-missing",
            )
        judged = {
            out: label_logs(report, chosen, logs, allow_unmatched=allow_unmatched)
            for out, logs in runs.items()
        }
        # What judged the items, as far as two clean scores have to agree in it to be compared.
        index_used = run.get("index", {})
        about = {
            "contam_version": run["versions"]["contam"],
            "fingerprint": run["parameters"]["policy_definitions"][chosen]["fingerprint"],
            "indexes": index_used.get("ids"),
            "guarantee_tokens": index_used.get("guarantee_tokens"),
            "complete": run["coverage"]["complete"],
        }
        for out, found in judged.items():
            if found[0].log.tool == "inspect":
                write_copy(found[0], about, out, overwrite=overwrite)
            else:
                tree = clean_results(found, about)
                data = json.dumps(tree, indent=2, ensure_ascii=False).encode() + b"\n"
                write_file(out, data, overwrite=overwrite)
        return [Written(out=out, judged=tuple(found)) for out, found in judged.items()]
