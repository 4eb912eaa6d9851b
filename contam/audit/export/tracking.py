"""Log an audit as an MLflow run: figures, parameters, tags and flagged items, without texts."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from contam.audit.gate.judge import first_policy
from contam.audit.report.chapters import clean_missing
from contam.audit.spec import TOGETHER
from contam.audit.verify import REPORT, checked_facts
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.errors import Plain, Remedy, UsageError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contam.audit.facts import Facts

_FOLDER: Final = "contamination"
_ODD: Final = re.compile(r"[^A-Za-z0-9_. -]")
_COLUMNS: Final = ("benchmark", "split", "item_id", "policy", "label", "exposure", "kind")


def log_audit(
    folder: Path,
    *,
    uri: str | None = None,
    experiment: str | None = None,
    run_id: str | None = None,
) -> str:
    """Log a pack to MLflow; returns the id of the run.

    uri     the tracking server, or a local store; None is what MLflow's environment says
    run_id  an existing run, that of the evaluation; else a new one in `experiment`

    Raises UsageError when MLflow is not installed or refuses, OutputError when the pack does not
    hold.
    """
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise UsageError("MLflow is not installed", remedy=Remedy.INSTALL_MLFLOW) from error
    facts, manifest = checked_facts(folder)
    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
        run = run_id or _new_run(client, experiment or "contamination", facts.title)
        for name, value in metrics(facts):
            client.log_metric(run, name, value)
        for name, text in _parameters(facts).items():
            client.log_param(run, name, text)
        client.set_tag(run, "contam.verdict", facts.headline.status)
        client.set_tag(run, "contam.digest", manifest["digest"])
        client.log_dict(run, {"flagged": _flagged(folder, facts)}, f"{_FOLDER}/flagged.json")
        client.log_artifact(run, str(folder / REPORT), _FOLDER)
        if run_id is None:
            client.set_terminated(run)
    except MlflowException as error:
        raise UsageError(
            "MLflow refused: {}", Plain(error.message), remedy=Remedy.SEE_TRACKING_URI
        ) from error
    return run


def metrics(facts: Facts) -> Iterator[tuple[str, float]]:
    """The figures of an audit under names that MLflow takes; no two share one."""
    for bench in facts.benchmarks:
        for policy in bench.policies:
            if policy.corpus == TOGETHER:
                place = f"{_FOLDER}/{_safe(bench.name)}/{_safe(policy.policy)}"
                yield f"{place}/rate", policy.flagged_share
                yield f"{place}/not_checkable", float(policy.not_checkable)
                yield f"{place}/waived", float(policy.waived)
    for row in facts.scores:
        names = (row["model"], row["benchmark"], row["metric"], row["policy"])
        place = "/".join(map(_safe, names))
        full = row["full"]
        clean = None if clean_missing(row, facts.least) else row["clean"]
        for name, value in (("full", full), ("clean", clean)):
            if value is not None:
                yield f"{place}/{name}", float(value)
        if full is not None and clean is not None:
            yield f"{place}/delta", float(full - clean)


def _new_run(client: Any, experiment: str, title: str) -> str:  # noqa: ANN401 - MLflow is optional
    found = client.get_experiment_by_name(experiment)
    own = found.experiment_id if found else client.create_experiment(experiment)
    return str(client.create_run(own, run_name=title).info.run_id)


def _parameters(facts: Facts) -> dict[str, str]:
    return {
        "contam.normaliser": facts.tool.get("normaliser", ""),
        "contam.policy": first_policy(facts),
        **{
            f"contam.policy.{_safe(name)}": str(policy["fingerprint"])
            for name, policy in facts.policies.items()
        },
        **{f"contam.corpus.{_safe(corpus.name)}": corpus.stage for corpus in facts.corpora},
    }


def _flagged(folder: Path, facts: Facts) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in _COLUMNS}
        for row in schemas.rows(load_report(folder / facts.verdicts).verdicts)
        if row["label"] in FLAGGED
    ]


def _safe(name: str) -> str:
    """A name without characters that MLflow refuses; a digest is added where some were replaced."""
    kept = _ODD.sub("_", name)
    if kept == name:
        return name
    return f"{kept}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
