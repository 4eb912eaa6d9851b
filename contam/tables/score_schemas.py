"""Define the columns of re-scoring tables; a change needs a new `RESCORE_FORMAT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from contam.errors import InternalError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.tables.schemas import Table

RESCORE_FORMAT: Final = 4


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string(), nullable=False) for name in names]


def _counts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in names]


def _flags(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.bool_(), nullable=False) for name in names]


def _figures(*names: str) -> list[pa.Field]:
    """Null where it does not apply."""
    return [pa.field(name, pa.float64()) for name in names]


SCORES: Final = pa.schema(
    [
        *_texts("model", "benchmark", "metric", "policy", "subset_by", "subset"),
        *_counts("n", "n_clean", "n_flagged", "n_not_checkable"),
        *_figures("full", "full_lo", "full_hi", "clean", "clean_lo", "clean_hi"),
        *_figures("flagged", "flagged_lo", "flagged_hi"),
        *_figures("clean_with_unchecked", "bound_low", "bound_high"),
        *_figures("gap", "gap_low", "gap_high", "gap_p", "gap_p_holm", "gain"),
        *_figures("adjusted", "adjusted_low", "adjusted_high", "adjusted_p", "adjusted_p_holm"),
        *_texts("adjusted_by"),
        *_counts("n_clusters"),
        *_flags("higher_is_better"),
        *_texts("note"),
    ]
)

AS_PUBLISHED: Final = pa.schema(
    [
        *_texts("model", "benchmark", "metric", "policy", "subset_by", "subset"),
        *_figures("epg", "epg_z", "epg_z_nested", "gap_p_bh"),
        *_figures("relative_difference", "plain_relative_difference"),
        *_figures("llama2_z_clean", "llama2_z_not_clean", "llama2_z_not_dirty", "llama2_z_dirty"),
        pa.field("llama2_rule", pa.bool_()),
        *_flags("higher_is_better"),
    ]
)

RANKINGS: Final = pa.schema(
    [
        *_texts("benchmark", "metric", "policy", "model"),
        *_counts("n", "n_clean"),
        *_figures("full", "clean", "rank_full", "rank_full_lo", "rank_full_hi"),
        *_figures("rank_clean", "rank_clean_lo", "rank_clean_hi", "deletion_sd"),
        *_figures("rank_full_joint_lo", "rank_full_joint_hi"),
        *_figures("rank_clean_joint_lo", "rank_clean_joint_hi"),
        *_figures("kendall_tau", "spearman", "largest_rank_change"),
        *_figures("deletion_tau_median", "deletion_p", "deletion_p_holm", "deletion_p_bh"),
        *_texts("note", "setup"),
        *_flags("higher_is_better"),
    ]
)

PAIRS: Final = pa.schema(
    [
        *_texts("benchmark", "metric", "policy", "first", "second"),
        *(
            field
            for side in ("full", "clean")
            for field in _figures(
                f"difference_{side}",
                f"error_{side}",
                f"p_{side}",
                f"p_{side}_holm",
            )
        ),
        *_flags("lead_full", "lead_clean", "lead_falls"),
        *_figures("detectable_clean", "change", "change_p", "change_p_holm", "detectable_change"),
        *_texts("note", "setup"),
        *_counts("n", "n_clean"),
        *_flags("higher_is_better"),
    ]
)

SWEEP: Final = pa.schema(
    [
        *_texts("model", "benchmark", "metric", "policy"),
        *_figures("threshold"),
        *_counts("n_flagged"),
        *_figures("share_flagged", "epg", "epg_z", "epg_z_nested"),
        *_flags("best"),
        *_figures("best_p", "policy_threshold", "best_p_holm", "best_p_bh"),
        *_flags("higher_is_better"),
    ]
)

AGGREGATE: Final = pa.schema(
    [
        *_texts("policy", "model"),
        *_counts("n_benchmarks"),
        *(
            field
            for side in ("full", "clean")
            for field in _figures(
                f"mean_{side}", f"mean_{side}_error", f"win_rate_{side}", f"borda_{side}"
            )
        ),
        *_texts("note", "metrics"),
        pa.field("higher_is_better", pa.bool_()),
    ]
)

DOSE: Final = pa.schema(
    [
        *_texts("model", "benchmark", "metric", "policy", "exposure"),
        *_counts("n"),
        *_figures("slope", "slope_low", "slope_high", "p", "p_holm"),
        *_flags("higher_is_better"),
    ]
)

HOLDOUT: Final = pa.schema(
    [
        *_texts("model", "benchmark", "metric", "reference_benchmark", "method"),
        *_counts("n", "n_reference"),
        *_figures("score", "score_reference", "expected", "gain", "gain_lo", "gain_hi"),
        *_figures("p", "p_holm"),
        *_texts("note"),
    ]
)


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> Table:
    """Rows as a table of this schema; not-a-numbers, and figures that a row lacks, become nulls.

    Raises InternalError for other keys.
    """
    needed = {field.name for field in schema if not field.nullable}
    for row in rows:
        if odd := sorted((row.keys() - {*schema.names}) | (needed - row.keys())):
            raise InternalError(f"a row does not fit its table: {odd}")
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    return schemas.table_of(columns, schema)


SUMMARY: Final = "summary.md"
TABLES: Final[Mapping[str, pa.Schema]] = {
    "scores": SCORES,
    "as_published": AS_PUBLISHED,
    "rankings": RANKINGS,
    "sweep": SWEEP,
    "pairs": PAIRS,
    "aggregate": AGGREGATE,
    "dose": DOSE,
    "holdout": HOLDOUT,
}
"""The tables of a re-scoring by name."""


JUDGED: Final = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("benchmark", "split", "item_id", "pair", "model", "answer")
    ]
)
