"""Define the columns of re-scoring tables; a change needs a new `RESCORE_FORMAT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from contam.errors import InternalError
from contam.tables import schemas
from contam.tables.schemas import counts, figures, flags, texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.tables.schemas import Table

RESCORE_FORMAT: Final = 4


SCORES: Final = pa.schema(
    [
        *texts("model", "benchmark", "metric", "policy", "subset_by", "subset"),
        *counts("n", "n_clean", "n_flagged", "n_not_checkable"),
        *figures("full", "full_lo", "full_hi", "clean", "clean_lo", "clean_hi"),
        *figures("flagged", "flagged_lo", "flagged_hi"),
        *figures("clean_with_unchecked", "bound_low", "bound_high"),
        *figures("gap", "gap_low", "gap_high", "gap_p", "gap_p_holm", "gain"),
        *figures("adjusted", "adjusted_low", "adjusted_high", "adjusted_p", "adjusted_p_holm"),
        *texts("adjusted_by"),
        *counts("n_clusters"),
        *flags("higher_is_better"),
        *texts("note"),
    ]
)

AS_PUBLISHED: Final = pa.schema(
    [
        *texts("model", "benchmark", "metric", "policy", "subset_by", "subset"),
        *figures("epg", "epg_z", "epg_z_nested", "gap_p_bh"),
        *figures("relative_difference", "plain_relative_difference"),
        *figures("llama2_z_clean", "llama2_z_not_clean", "llama2_z_not_dirty", "llama2_z_dirty"),
        *flags("llama2_rule", null=True),
        *flags("higher_is_better"),
    ]
)

RANKINGS: Final = pa.schema(
    [
        *texts("benchmark", "metric", "policy", "model"),
        *counts("n", "n_clean"),
        *figures("full", "clean", "rank_full", "rank_full_lo", "rank_full_hi"),
        *figures("rank_clean", "rank_clean_lo", "rank_clean_hi", "deletion_sd"),
        *figures("rank_full_joint_lo", "rank_full_joint_hi"),
        *figures("rank_clean_joint_lo", "rank_clean_joint_hi"),
        *figures("kendall_tau", "spearman", "largest_rank_change"),
        *figures("deletion_tau_median", "deletion_p", "deletion_p_holm", "deletion_p_bh"),
        *texts("note", "setup"),
        *flags("higher_is_better"),
    ]
)

PAIRS: Final = pa.schema(
    [
        *texts("benchmark", "metric", "policy", "first", "second"),
        *(
            field
            for side in ("full", "clean")
            for field in figures(
                f"difference_{side}",
                f"error_{side}",
                f"p_{side}",
                f"p_{side}_holm",
            )
        ),
        *flags("lead_full", "lead_clean", "lead_falls"),
        *figures("detectable_clean", "change", "change_p", "change_p_holm", "detectable_change"),
        *texts("note", "setup"),
        *counts("n", "n_clean"),
        *flags("higher_is_better"),
    ]
)

SWEEP: Final = pa.schema(
    [
        *texts("model", "benchmark", "metric", "policy"),
        *figures("threshold"),
        *counts("n_flagged"),
        *figures("share_flagged", "epg", "epg_z", "epg_z_nested"),
        *flags("best"),
        *figures("best_p", "policy_threshold", "best_p_holm", "best_p_bh"),
        *flags("higher_is_better"),
    ]
)

AGGREGATE: Final = pa.schema(
    [
        *texts("policy", "model"),
        *counts("n_benchmarks"),
        *(
            field
            for side in ("full", "clean")
            for field in figures(
                f"mean_{side}", f"mean_{side}_error", f"win_rate_{side}", f"borda_{side}"
            )
        ),
        *texts("note", "metrics"),
        *flags("higher_is_better", null=True),
    ]
)

DOSE: Final = pa.schema(
    [
        *texts("model", "benchmark", "metric", "policy", "exposure"),
        *counts("n"),
        *figures("slope", "slope_low", "slope_high", "p", "p_holm"),
        *flags("higher_is_better"),
    ]
)

HOLDOUT: Final = pa.schema(
    [
        *texts("model", "benchmark", "metric", "reference_benchmark", "method"),
        *counts("n", "n_reference"),
        *figures("score", "score_reference", "expected", "gain", "gain_lo", "gain_hi"),
        *figures("p", "p_holm"),
        *texts("note"),
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


JUDGED: Final = pa.schema(texts("benchmark", "split", "item_id", "pair", "model", "answer"))
