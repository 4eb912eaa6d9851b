"""Write a service's answer as the result folder that `contam query --out` writes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from contam.client.failures import AnswerError
from contam.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def result_folder(out: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to be filled, which appears as `out` when its files are what run.json says.

    Raises OutputError when `out` cannot be written, AnswerError when a file came altered.
    """
    # Reads and writes Arrow, which a client that only asks does without.
    from contam.detect.report import FILES, RUN_FILE, load_report
    from contam.files.publish import output_errors, publishing

    with (
        publishing(out, names=FILES, last=RUN_FILE, overwrite=overwrite) as folder,
        output_errors(Path(out)),
    ):
        yield folder
        try:
            load_report(folder)
        except OutputError as error:
            raise AnswerError(
                "the result of the job is not what it says it is: a file came altered",
                hint="ask for it again; if it stays so, the service's data folder is damaged",
            ) from error
