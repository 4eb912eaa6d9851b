"""Which tool wrote a file, by its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from contam.benchmark.naming import format_of
from contam.errors import LogError
from contam.rescore.logs import (
    eval_plus,
    every_eval,
    helm,
    human_eval,
    inspect_ai,
    lighteval,
    lm_eval,
    olmes,
    openai_evals,
    opencompass,
    swe_bench,
    unread,
)
from contam.tables.files import open_file
from contam.tables.lfs import LFS_FACT, LFS_HEAD, LFS_HINT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contam.rescore.logs.files import LogFile, Row

Kind = Literal[
    "lm-eval",
    "inspect",
    "inspect-zip",
    "helm",
    "lighteval",
    "openai-evals",
    "human-eval",
    "evalplus",
    "swe-bench",
    "swe-bench-instance",
    "olmes",
    "opencompass",
    "every-eval-ever",
    "table",
    "companion",
    "unread",
    "",
]
"""`companion` belongs to a log beside it, `unread` is known and cannot be scored again."""

_TABLES: Final = frozenset({"csv", "tsv", "parquet"})
_LINES: Final[tuple[tuple[Kind, Callable[[Row], bool]], ...]] = (
    ("lm-eval", lm_eval.is_samples),
    ("olmes", olmes.is_predictions),
    ("openai-evals", openai_evals.is_spec),
    ("human-eval", human_eval.is_results),
    ("every-eval-ever", every_eval.is_instance),
    ("companion", olmes.is_beside),
)
_DOCUMENTS: Final[tuple[tuple[Kind, Callable[[object], bool]], ...]] = (
    ("inspect", inspect_ai.is_log),
    ("evalplus", eval_plus.is_results),
    ("swe-bench", swe_bench.is_report),
    ("companion", lm_eval.is_results),
    ("companion", every_eval.is_aggregate),
    ("companion", lighteval.is_results),
    ("companion", olmes.is_metrics),
)


def kind_of(file: LogFile) -> Kind:
    """What a file is; "" when it is nothing known here. Raises LogError when it cannot be read."""
    path = file.path
    try:
        with open_file(path) as stream:
            start = stream.read(len(LFS_HEAD))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LogError(f"cannot read {path}: {reason}", hint="check the path") from error
    family = format_of(path)
    if start == LFS_HEAD and (family or path.suffix == ".eval"):
        raise LogError(f"{path} {LFS_FACT}", hint=LFS_HINT)
    if start.startswith(b"PK") or path.suffix == ".eval":
        return "inspect-zip"
    if start.startswith(b"PAR1"):
        return "lighteval" if lighteval.is_details(file) else "table"
    if path.name in helm.FILES and helm.is_run(path.parent):
        return "helm" if path.name == helm.ROWS else "companion"
    if family == "json":
        return _kind_of_json(file)
    return "table" if family in _TABLES else ""


def _kind_of_json(file: LogFile) -> Kind:
    row = file.first_line()
    if row is not None and ".json" not in file.path.suffixes[-1:]:
        return next((kind for kind, fits in _LINES if fits(row)), "table")
    head = file.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if head == b"[":
        return "table"
    if head != b"{":
        return ""
    return _kind_of_document(file.path, file.document)


def _kind_of_document(path: Path, value: object) -> Kind:
    if unread.what_it_is(value) is not None:
        return "unread"
    if opencompass.is_part(path, value):
        return "opencompass"
    if swe_bench.is_instance(path, value):
        return "swe-bench-instance"
    return next((kind for kind, fits in _DOCUMENTS if fits(value)), "")
