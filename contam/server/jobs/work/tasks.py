"""Do a job with the functions behind `contam query` and `contam rescore`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.errors import OutputError, UsageError
from contam.server.jobs.work.run import RESULT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.server.jobs.work.run import ProgressWriter

_ITEMS: Final = ("items.jsonl", "items.jsonl.gz", "items.parquet")
VERDICTS: Final = "verdicts"
LOGS: Final = "logs"


def check(request: Mapping[str, Any], order: Mapping[str, Any], report: ProgressWriter) -> None:
    """Judge the uploaded items by the indexes, into a folder as `contam query --out` writes it."""
    from contam.detect.query import query
    from contam.detect.report import report_draft

    items = next(Path(name) for name in _ITEMS if Path(name).exists())
    with report_draft(RESULT) as draft:
        report.phase("reading items")
        result = query(
            order["indexes"],
            items,
            policies=request["policies"],
            corpus=order["corpus"] or None,
            workers=order["threads"] or None,
            progress=report,
            **request["options"],
        )
        _refuse_documents(result.run)
        report.phase("writing")
        draft.write(result)


def _refuse_documents(run: Mapping[str, Any]) -> None:
    """Raise UsageError for a line that is a list of items, and so may be an item besides."""
    formats = {
        source["format"]
        for benchmark in run["inputs"]["benchmarks"]
        for source in benchmark["sources"]
    }
    if any(name.partition("+")[0] == "json" for name in formats):
        raise UsageError(
            "the upload is one JSON document that holds a list", hint="send an item a line"
        )


def rescore(request: Mapping[str, Any], order: Mapping[str, Any], report: ProgressWriter) -> None:  # noqa: ARG001 - as every task
    """Re-score the uploaded logs into a folder as `contam rescore --out` writes it."""
    from contam.remedies import Remedy
    from contam.rescore.run import rescore as run_rescore
    from contam.rescore.run import write_rescore
    from contam.rescore.tables import RescoreSettings
    from contam.rescore.whole import offering

    report.phase("reading verdicts")
    if request["inline"] is not None:
        from contam.server.jobs.intake.inline import write_inline

        write_inline(request["inline"], Path(VERDICTS))
    if request["scores"] is not None:
        from contam.server.jobs.intake.inline import write_scores

        write_scores(request["scores"], Path(LOGS))
    options = dict(request["options"])
    settings: dict[str, Any] = {
        field.name: options.pop(field.name)
        for field in fields(RescoreSettings)
        if field.name in options
    }
    settings |= {name: tuple(settings[name]) for name in ("references", "metrics")}
    report.phase("re-scoring")
    try:
        with offering(Remedy.SKIP_DAMAGED):
            result = run_rescore(
                VERDICTS,
                LOGS,
                policies=request["policies"],
                settings=RescoreSettings(**settings),
                **options,
            )
    except OutputError as error:
        if request["job"] is not None:
            raise
        # The verdicts were sent: that they cannot be read is not the service's failure.
        raise UsageError(error.statement, hint="send the files as contam wrote them") from error
    report.phase("writing")
    # An answer has tables and the summary: no picture ever leaves the service.
    write_rescore(result, RESULT, plots=False)
