"""Study log-probabilities: does a model know a file's order, or texts word by word?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import UsageError
from contam.rescore.stats.multiple import adjust
from contam.study.logprob_input import ordered, read_shards, read_texts
from contam.study.model import Chart, Finding, Line, Panel, Points, Refusal, Study, table_of
from contam.study.stats.logprobs import exchangeability, min_k, min_k_plus, separation
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.study.logprob_input import Records, Shards, Text
    from contam.tables.schemas import Table

    Row = dict[str, Any]

METHODS: Final = ("loss", "zlib", "min_k", "min_k_plus", "reference", "lowercase")
"""Scores of a text, higher for one that was more likely seen."""

BLIND: Final = ("date alone", "length alone")
"""What tells members apart without any model: if these do, the scores may measure the same."""

GUARD: Final = "These tests change no verdict: they see a model, and no document."

_NAN: Final = float("nan")
_SURE: Final = 0.05
_HALF: Final = 0.5
_LEAST: Final = 20

_ORDER: Final[Mapping[str, type]] = {
    "model": str,
    **dict.fromkeys(("n_shards", "n_orders", "n_tokens"), int),
    **dict.fromkeys(("difference", "t", "p", "p_holm", "p_bh"), float),
    **dict.fromkeys(("t_ddof0", "p_ddof0", "permutation_p"), float),
}
_SHARDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "shard"), str),
    "n_tokens": int,
    **dict.fromkeys(("canonical", "shuffled_mean", "difference"), float),
}
_TEXTS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "item", "member"), str),
    "n_tokens": int,
    **dict.fromkeys(METHODS, float),
}
_SEPARATION: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model", "method"), str),
    **dict.fromkeys(("n_members", "n_others", "n_without"), int),
    **dict.fromkeys(("auroc", "auroc_low", "auroc_high", "tpr_at_fpr_05", "fpr_at_tpr_95"), float),
}


def likelihood(
    *,
    shards: Records | None = None,
    texts: Records | None = None,
    items: Records | None = None,
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
        raise UsageError("log-probabilities of shards or of texts are needed")
    if not 0 < k <= 1:
        raise UsageError("k is a share of the tokens above 0 and at most 1, not {}", k)
    refusals: list[Refusal] = []
    sources: list[Mapping[str, Any]] = []
    tables: dict[str, Table] = {}
    order: list[Row] = []
    parts: list[Row] = []
    separated: list[Row] = []
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
            order = [_order_row(model, own) for model, own in of_shards.items()]
            adjust(order, ("p",), lambda _: "all")
            parts = [row for model, own in of_shards.items() for row in _shard_rows(model, own)]
            tables |= {"order": table_of(order, _ORDER), "shards": table_of(parts, _SHARDS)}
    if texts is not None:
        of_texts, source = read_texts(texts)
        sources.append(source)
        rows = [_text_row(model, text, k) for model, own in of_texts.items() for text in own]
        refusals += _without(rows, k)
        for model, own in of_texts.items():
            separated += _separation_rows(model, own, k, refusals)
        if separated:
            tables["separation"] = table_of(separated, _SEPARATION)
        tables["texts"] = table_of(rows, _TEXTS)
    if not tables:
        tables["order"] = table_of([], _ORDER)
    return Study(
        name="likelihood",
        finding=_finding(order, separated, refusals),
        tables=tables,
        refusals=refusals,
        pictures=_pictures(order, separated, parts),
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
        "difference": float(found.difference.mean()),
        "t": found.t,
        "p": found.p,
        "t_ddof0": found.t_ddof0,
        "p_ddof0": found.p_ddof0,
        "permutation_p": found.permutation_p,
    }


def _shard_rows(model: str, own: Shards) -> Iterator[Row]:
    for at, name in enumerate(own.names):
        mean = float(own.shuffled[at].mean())
        yield {
            "model": model,
            "shard": name,
            "n_tokens": own.n_tokens[at],
            "canonical": float(own.canonical[at]),
            "shuffled_mean": mean,
            "difference": float(own.canonical[at]) - mean,
        }


def _scores(text: Text, k: float) -> dict[str, float]:
    loss = float(text.logprob.mean())
    # A text that is certain has no ratio.
    lowercase = None if text.lowercase is None or loss == 0 else text.lowercase / loss
    return {
        "loss": loss,
        "zlib": _NAN if text.n_bytes is None else loss / text.n_bytes,
        "min_k": min_k(text.logprob, k),
        "min_k_plus": (
            _NAN
            if text.mu is None or text.sigma is None
            else min_k_plus(text.logprob, text.mu, text.sigma, k)
        ),
        "reference": _NAN if text.reference is None else loss - text.reference,
        "lowercase": _NAN if lowercase is None else lowercase,
    }


def _text_row(model: str, text: Text, k: float) -> Row:
    member = {None: "", True: "yes", False: "no"}[text.member]
    head = {"model": model, "item": text.item, "member": member, "n_tokens": len(text.logprob)}
    return {**head, **_scores(text, k)}


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


def _separation_rows(
    model: str, texts: Sequence[Text], k: float, refusals: list[Refusal]
) -> Iterator[Row]:
    labelled = [text for text in texts if text.member is not None]
    member = np.array([bool(text.member) for text in labelled], np.bool_)
    of = f", {model}" if model else ""
    counts = int(member.sum()), int((~member).sum())
    if min(counts) < _LEAST:
        reason = f"{counts[0]} members and {counts[1]} others are labelled, {_LEAST} are needed"
        refusals.append(Refusal(f"how well scores tell members apart{of}", reason))
        return
    scored = [_scores(text, k) for text in labelled]
    columns = {method: np.array([own[method] for own in scored]) for method in METHODS}
    days = [_NAN if text.day is None else float(text.day) for text in labelled]
    columns |= {
        BLIND[0]: np.array(days),
        BLIND[1]: np.array([float(len(text.logprob)) for text in labelled]),
    }
    for method, values in columns.items():
        known = ~np.isnan(values)
        inside = member[known]
        if min(int(inside.sum()), int((~inside).sum())) < _LEAST:
            continue
        found = separation(values[known], inside)
        yield {
            "model": model,
            "method": method,
            "n_members": int(inside.sum()),
            "n_others": int((~inside).sum()),
            "n_without": int((~known).sum()),
            "auroc": found.auroc,
            "auroc_low": found.low,
            "auroc_high": found.high,
            "tpr_at_fpr_05": found.tpr_at_fpr_05,
            "fpr_at_tpr_95": found.fpr_at_tpr_95,
        }
    if np.isnan(columns[BLIND[0]]).any():
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
        known = [row for row in order if row["p_holm"] < _SURE]
        best = min(order, key=lambda row: (np.isnan(row["p"]), row["p"]))
        name = best["model"] or "the model"
        first = (
            f"{len(known)} of {len(order)} models prefer the published order of the file (Holm)"
            if len(order) > 1
            else "The published order of the file is preferred"
            if known
            else "The published order of the file is not shown to be preferred"
        )
        parts.append(
            f"{first}; {name}: t {best['t']:.2f} over {best['n_shards']} shards, p {best['p']:.2g}."
        )
    blind = _blind(rows)
    scores = [row for row in rows if row["method"] in METHODS]
    if scores:
        best = max(scores, key=lambda row: float(row["auroc"]))
        parts.append(
            f"{best['method']} tells members from others best, with an area of"
            f" {best['auroc']:.2f} (0.5: not at all)."
        )
    if blind:
        shown = ", ".join(f"{row['method']} {row['auroc']:.2f}" for row in blind)
        parts.append(
            f"But members and others are not alike: {shown} without a model. The scores may"
            " measure that instead of membership."
        )
    if not parts:
        why = refusals[0].reason if refusals else ""
        parts.append(
            "The log-probabilities say nothing by themselves" + (f": {why}." if why else ".")
        )
    return Finding(
        found=" ".join(parts),
        sure=(
            "The test of the order sees only a file that was learnt as published, and not one copy"
            " in a large corpus. Scores of single texts are near chance where members and others"
            " are alike in time and topic."
        ),
        change=f"Members and others from one time and topic; more shards. {GUARD}",
    )


def _pictures(order: Sequence[Row], separated: Sequence[Row], shards: Sequence[Row]) -> list[Chart]:
    pictures = []
    if order:
        best = min(order, key=lambda row: (np.isnan(row["p"]), row["p"]))["model"]
        own = [row for row in shards if row["model"] == best]
        panel = Panel(
            title=best,
            x="shard of the file",
            y="log-probability, published less shuffled order",
            marks=[
                Line(x=[0, len(own) - 1], y=[0, 0], tone="faint", dashed=True),
                Points(x=range(len(own)), y=[row["difference"] for row in own]),
            ],
        )
        caption = "Does the model prefer the published order?"
        pictures.append(Chart(name="order", caption=caption, panels=[panel]))
    if separated:
        model = separated[0]["model"]
        own = [row for row in separated if row["model"] == model]
        known = [(at, row) for at, row in enumerate(own) if not np.isnan(row["auroc_low"])]
        panel = Panel(
            title=model,
            x="",
            y="area under the curve",
            marks=[
                Line(x=[0, len(own) - 1], y=[_HALF, _HALF], tone="faint", dashed=True),
                Points(
                    x=[at for at, _ in known],
                    y=[row["auroc"] for _, row in known],
                    low=[row["auroc_low"] for _, row in known],
                    high=[row["auroc_high"] for _, row in known],
                ),
            ],
            x_names=[row["method"] for row in own],
        )
        caption = "How well scores tell members from others"
        pictures.append(Chart(name="separation", caption=caption, panels=[panel]))
    return pictures
