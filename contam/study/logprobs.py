"""Study log-probabilities: does a model know a file's order, or texts word by word?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import UsageError
from contam.rescore.stats.multiple import adjust
from contam.study.logprob_input import ordered, read_shards, read_texts
from contam.study.model import (
    Chart,
    Finding,
    Line,
    Panel,
    Points,
    Refusal,
    Study,
    rows_of,
    table_of,
)
from contam.study.stats.logprobs import exchangeability, min_k, min_k_plus, separation
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.detect.given import Source
    from contam.study.logprob_input import Record, Shards
    from contam.study.model import Row
    from contam.tables.schemas import Table


METHODS: Final = ("loss", "zlib", "min_k", "min_k_plus", "reference", "lowercase")
"""Scores of a text, higher for one that was more likely seen."""

BLIND: Final = ("date alone", "length alone")
"""What tells members apart without any model: if these do, the scores may measure the same."""

GUARD: Final = "These tests change no verdict: they see a model, and no document."

_NAN: Final = float("nan")
_SURE: Final = 0.05
_HALF: Final = 0.5
_LEAST: Final = 20

_ORDER: Final = {
    "model": str, "n_shards": int, "n_orders": int, "n_tokens": int,
    "difference": float, "t": float, "p": float, "p_holm": float, "p_bh": float,
    "t_ddof0": float, "p_ddof0": float, "permutation_p": float,
}  # fmt: skip
_SHARDS: Final = {
    "model": str, "shard": str, "n_tokens": int,
    "canonical": float, "shuffled_mean": float, "difference": float,
}  # fmt: skip
_TEXTS: Final = {
    "model": str, "item": str, "member": str, "n_tokens": int, **dict.fromkeys(METHODS, float),
}  # fmt: skip
_SEPARATION: Final = {
    "model": str, "method": str, "n_members": int, "n_others": int, "n_without": int,
    "auroc": float, "auroc_low": float, "auroc_high": float,
    "tpr_at_fpr_05": float, "fpr_at_tpr_95": float,
}  # fmt: skip
_TABLES: Final = {
    "order": _ORDER, "shards": _SHARDS, "separation": _SEPARATION, "texts": _TEXTS,
}  # fmt: skip


def likelihood(
    *,
    shards: Source | None = None,
    texts: Source | None = None,
    items: Source | None = None,
    exchangeable: bool = False,
    k: float = 0.2,
) -> Study:
    """What a model's log-probabilities say: of the order of a file, of single texts, or of both.

    shards  JSON lines {shard, kind, perm, logprob, n_tokens[, model]}: the log-probability of each
            shard of a file as published (kind canonical) and with its items shuffled
    texts   JSON lines {item, logprob: [...]}, one number a token, and as far as wanted tokens, mu,
            sigma, ref_logprob, lower_logprob, text, member, date, model
    items   JSON lines {text}: the file's items in the published order, to see whether they could
            stand in another;  exchangeable  say so without them
    k       share of the tokens that Min-K % is the mean of

    Raises LogError for a log-probability above 0, a number that is none, records that are missing
    or twice.
    """
    if shards is None and texts is None:
        raise UsageError("log-probabilities are needed: give `shards`, `texts` or both")
    if not 0 < k <= 1:
        raise UsageError("k is a share of the tokens above 0 and at most 1, not {}", k)
    refusals: list[Refusal] = []
    sources: list[Mapping[str, Any]] = []
    rows: dict[str, list[Row]] = {}
    if shards is not None:
        of_shards, source = read_shards(shards)
        sources.append(source)
        reason = "" if exchangeable else "nothing shows that its items could stand in any order"
        if items is not None:
            reason, source = ordered(items)
            sources.append(source)
        if reason:
            refusals.append(Refusal("exchangeability of the file", reason))
        else:
            rows["order"] = [_order_row(model, own) for model, own in of_shards.items()]
            adjust(rows["order"], ("p",), lambda _: "all")
            rows["shards"] = [row for pair in of_shards.items() for row in _shard_rows(*pair)]
    if texts is not None:
        of_texts, source = read_texts(texts)
        sources.append(source)
        by_model = {
            model: [_text_row(model, *pair, k) for pair in own.items()]
            for model, own in of_texts.items()
        }
        every = [row for own in by_model.values() for row in own]
        refusals += _without(every, k)
        separated = [row for own in by_model.values() for row in _separation_rows(own, refusals)]
        rows |= {"separation": separated, "texts": every} if separated else {"texts": every}
    tables = {name: table_of(own, _TABLES[name]) for name, own in (rows or {"order": []}).items()}
    order, separated = rows.get("order", []), rows.get("separation", [])
    return Study(
        name="likelihood",
        finding=_finding(order, separated, refusals),
        tables=tables,
        refusals=refusals,
        pictures=_pictures(order, separated, rows.get("shards", [])),
        columns=_shown(tables),
        run={
            "parameters": {"k": k, "exchangeable": exchangeable},
            "inputs": sources,
            "notes": [GUARD],
        },
    )


def _shown(tables: Mapping[str, Table]) -> list[str]:
    """Columns of the main table; models are left out where none is named."""
    main = next(iter(tables.values()))
    named = any(schemas.column(main, "model"))
    hidden = {"n_tokens", "n_without", "p_bh", "t_ddof0", *(() if named else ("model",))}
    return [name for name in main.column_names if name not in hidden]


def _order_row(model: str, own: Shards) -> Row:
    found = exchangeability(own.canonical, own.shuffled)
    return {
        "model": model,
        "n_shards": len(own.names),
        "n_orders": own.shuffled.shape[1],
        "n_tokens": sum(own.n_tokens),
        **asdict(found),
        "difference": float(found.difference.mean()),
    }


def _shard_rows(model: str, own: Shards) -> list[Row]:
    mean = own.shuffled.mean(axis=1)
    return rows_of(
        {
            "model": [model] * len(mean),
            "shard": own.names,
            "n_tokens": own.n_tokens,
            "canonical": own.canonical,
            "shuffled_mean": mean,
            "difference": own.canonical - mean,
        }
    )


def _text_row(model: str, item: str, record: Record, k: float) -> Row:
    logprob = record.tokens()
    loss, lowercase = float(logprob.mean()), record.mean("lower_logprob")
    return {
        "model": model,
        "item": item,
        "member": record.member(),
        "n_tokens": len(logprob),
        "loss": loss,
        "zlib": loss / record.n_bytes(),
        "min_k": min_k(logprob, k),
        "min_k_plus": min_k_plus(logprob, *record.vocabulary(len(logprob)), k),
        "reference": loss - record.mean("ref_logprob"),
        # A text that is certain has no ratio.
        "lowercase": lowercase / loss if loss else _NAN,
        **dict(zip(BLIND, (record.day(), len(logprob)), strict=True)),
    }


def _without(rows: Sequence[Row], k: float) -> Iterator[Refusal]:
    needs = {
        "zlib": "its text",
        "min_k": f"{int(np.ceil(1 / k))} tokens",
        "min_k_plus": f"mu and sigma, and {int(np.ceil(1 / k))} tokens",
        "reference": "ref_logprob",
        "lowercase": "lower_logprob",
    }
    for method, need in needs.items():
        n = sum(np.isnan(row[method]) for row in rows)
        if n:
            yield Refusal(f"{method} of {n} of {len(rows)} texts", f"it needs {need}")


def _separation_rows(rows: Sequence[Row], refusals: list[Refusal]) -> Iterator[Row]:
    """How well each score of the texts of one model tells members apart."""
    labelled = [row for row in rows if row["member"]]
    member = np.array([row["member"] == "yes" for row in labelled], np.bool_)
    model = rows[0]["model"]
    of = f", {model}" if model else ""
    counts = int(member.sum()), int((~member).sum())
    if min(counts) < _LEAST:
        reason = f"{counts[0]} members and {counts[1]} others are labelled, {_LEAST} are needed"
        refusals.append(Refusal(f"how well scores tell members apart{of}", reason))
        return
    for method in (*METHODS, *BLIND):
        values = np.array([row[method] for row in labelled], np.float64)
        known = ~np.isnan(values)
        n_members, n_others = int(member[known].sum()), int((~member[known]).sum())
        if min(n_members, n_others) >= _LEAST:
            yield {
                "model": model,
                "method": method,
                "n_members": n_members,
                "n_others": n_others,
                "n_without": int((~known).sum()),
                **asdict(separation(values[known], member[known])),
            }
        if method == BLIND[0] and not known.all():
            reason = "texts without a date: members and others may differ in time alone"
            refusals.append(Refusal(f"whether dates alone tell members apart{of}", reason))


def _blind(rows: Sequence[Row]) -> list[Row]:
    """Rows that tell members apart without a model, surely so."""
    return [
        row
        for row in rows
        if row["method"] in BLIND
        and row["auroc"] != _HALF
        # Without limits every member is on one side of every other.
        and (np.isnan(row["auroc_low"]) or not row["auroc_low"] <= _HALF <= row["auroc_high"])
    ]


def _finding(order: Sequence[Row], rows: Sequence[Row], refusals: Sequence[Refusal]) -> Finding:
    parts = []
    if order:
        known = sum(row["p_holm"] < _SURE for row in order)
        best = _best(order)
        first = _PREFERRED[bool(known)]
        if len(order) > 1:
            first = f"{known} of {len(order)} models prefer the published order of the file (Holm)"
        parts.append(
            f"{first}; {best['model'] or 'the model'}: t {best['t']:.2f} over {best['n_shards']}"
            f" shards, p {best['p']:.2g}."
        )
    if scores := [row for row in rows if row["method"] in METHODS]:
        best = max(scores, key=lambda row: float(row["auroc"]))
        parts.append(
            f"{best['method']} tells members from others best, with an area of"
            f" {best['auroc']:.2f} (0.5: not at all)."
        )
    if blind := _blind(rows):
        shown = ", ".join(f"{row['method']} {row['auroc']:.2f}" for row in blind)
        parts.append(
            f"But members and others are not alike: {shown} without a model. The scores may"
            " measure that instead of membership."
        )
    if not parts:
        why = f": {refusals[0].reason}." if refusals else "."
        parts.append(f"The log-probabilities say nothing by themselves{why}")
    return Finding(found=" ".join(parts), sure=_SEES, change=_CHANGE)


_PREFERRED: Final = {
    True: "The published order of the file is preferred",
    False: "The published order of the file is not shown to be preferred",
}
_SEES: Final = (
    "The test of the order sees only a file that was learnt as published, and not one copy in a"
    " large corpus. Scores of single texts are near chance where members and others are alike in"
    " time and topic."
)
_CHANGE: Final = f"Members and others from one time and topic; more shards. {GUARD}"


def _best(order: Sequence[Row]) -> Row:
    return min(order, key=lambda row: (np.isnan(row["p"]), row["p"]))


def _pictures(order: Sequence[Row], separated: Sequence[Row], shards: Sequence[Row]) -> list[Chart]:
    pictures = []
    if order:
        best = _best(order)["model"]
        own = [row for row in shards if row["model"] == best]
        panel = Panel(
            title=best,
            x="shard of the file",
            y="log-probability, published less shuffled order",
            marks=[Line.level(len(own)), Points.of(enumerate(own), "difference")],
        )
        caption = "Does the model prefer the published order?"
        pictures.append(Chart(name="order", caption=caption, panels=[panel]))
    if separated:
        model = separated[0]["model"]
        own = [row for row in separated if row["model"] == model]
        areas = Points.of(enumerate(own), "auroc", limits="auroc")
        panel = Panel(
            title=model,
            x="",
            y="area under the curve",
            marks=[Line.level(len(own), _HALF), areas],
            x_names=[row["method"] for row in own],
        )
        caption = "How well scores tell members from others"
        pictures.append(Chart(name="separation", caption=caption, panels=[panel]))
    return pictures
