"""Do a job with the functions behind `contam query` and `contam rescore`."""

from __future__ import annotations

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
    options = request["options"]
    with report_draft(RESULT) as draft:
        report.phase("reading items")
        result = query(
            order["indexes"],
            items,
            policies=request["policies"],
            corpus=order["corpus"] or None,
            workers=order["threads"] or None,
            mapping=options["mapping"],
            name=options["name"],
            split=options["split"],
            allow_missing=options["allow_missing"],
            max_evidence=options["max_evidence"],
            keep_text=options["keep_text"],
            progress=report,
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
    if any(one.partition("+")[0] == "json" for one in formats):
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
    options = request["options"]
    report.phase("re-scoring")
    try:
        with offering(Remedy.SKIP_DAMAGED):
            result = run_rescore(
                VERDICTS,
                LOGS,
                policies=request["policies"],
                columns=options["columns"],
                allow_unmatched=options["allow_unmatched"],
                allow_partial=options["allow_partial"],
                skip_damaged=options["skip_damaged"],
                separate_runs=options["separate_runs"],
                lower_is_better=options["lower_is_better"],
                higher_is_better=options["higher_is_better"],
                settings=RescoreSettings(
                    least=options["least"],
                    permutations=options["permutations"],
                    seed=options["seed"],
                    references=tuple(options["references"]),
                    metrics=tuple(options["metrics"]),
                    all_metrics=options["all_metrics"],
                    mixed_setups=options["mixed_setups"],
                ),
            )
    except OutputError as error:
        if request["job"] is not None:
            raise
        # The verdicts were sent: that they cannot be read is not the service's failure.
        raise UsageError(error.statement, hint="send the files as contam wrote them") from error
    report.phase("writing")
    write_rescore(result, RESULT)
