"""`contam audit export`: write a pack in the formats of other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options
from contam.errors import UsageError


class ExportFormat(StrEnum):
    """Who is to read it."""

    CONDA = "conda"
    MODEL_CARD = "model-card"
    MLFLOW = "mlflow"


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The pack.")],
    *,
    fmt: Annotated[
        ExportFormat,
        typer.Option("--format", help="Rows for the CONDA database, Markdown, or MLflow."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output file. [default: standard output]")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Policy whose verdicts are used. [default: the audit's first]"
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="model-card: models to list. [default: ours, else all]"),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(metavar="URL", help="conda: address of a description of the audit."),
    ] = None,
    tracking_uri: Annotated[
        str | None,
        typer.Option(metavar="URI", help="mlflow: the server or store. [default: MLflow's own]"),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(metavar="NAME", help="mlflow: experiment for a new run.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="mlflow: an existing run to use instead.")
    ] = None,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Export the result of an audit for others, without any text of items or documents."""
    from contam.cli.terminal import emit, visible

    if fmt == ExportFormat.MLFLOW:
        from contam.audit.export.tracking import log_audit

        if out is not None:
            raise UsageError("MLflow has its own place", hint="leave --out out")
        found = log_audit(folder, uri=tracking_uri, experiment=experiment, run_id=run_id)
        emit(f"run {visible(found)}\n")
        return
    from contam.audit.export.conda_and_cards import conda, model_card
    from contam.audit.verify import refuse_inside
    from contam.cli.output_file import refuse_replacing
    from contam.files.single import write_file

    if out is not None:
        refuse_inside(out, folder)
        refuse_replacing(out)
    if fmt == ExportFormat.CONDA:
        text = conda(folder, policy, reference or "")
    else:
        text = model_card(folder, policy, model or ())
    if out is None:
        emit(visible(text))
        return
    write_file(out, text.encode("utf-8", "replace"), overwrite=True)
    emit(f"wrote {visible(str(out))}\n")
