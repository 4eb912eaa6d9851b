"""Decide what an index can answer for: policies, and items it must not call clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.model import ANSWER, QUESTION
from contam.detect.policies.policy import sees_rephrasings, shortest_run
from contam.errors import IndexMismatchError, Statement
from contam.kernels.constants import ANSWER_RUN, ANSWER_WEIGHT, LEAST_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.indexed.candidates import Lookup
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Bools, Float32s, Float64s
    from contam.detect.policies.policy import Policy
    from contam.index.model import Recipe

#: Words that the recipe `standard` guarantees.
_STANDARD: Final = 8
_TOKENS: Final = {"word": "words", "char": "letters and digits", "tokenizer": "tokens"}


def refuse_unanswerable(policies: Sequence[Policy], recipe: Recipe) -> None:
    """Raise IndexMismatchError, naming every policy that needs what this index does not keep."""
    if rephrased := [policy.spec.id for policy in policies if sees_rephrasings(policy)]:
        raise IndexMismatchError(
            "{} looks for words in any order, and an index keeps only words in a row",
            ", ".join(rephrased),
            hint="search the corpus itself with `contam scan`",
        )
    refused = [
        f"{policy.spec.id} {why}"
        for policy in policies
        if (why := _why_refused(policy, recipe)) is not None
    ]
    if not refused:
        return
    kept = [policy.spec.id for policy in policies if _why_refused(policy, recipe) is None]
    lacking = [policy for policy in policies if policy.spec.id not in kept]
    keeps = " and ".join(dict.fromkeys(_recipe_for(policy) for policy in lacking))
    raise IndexMismatchError(
        "this index finds every run of {} {}: {}",
        recipe.guarantee,
        _TOKENS[recipe.unit],
        "; ".join(refused),
        hint=Statement(
            "ask for --policy {} alone, or search the corpus itself with `contam scan`, or "
            "build an index that keeps it ({})",
            ",".join(kept),
            keeps,
        )
        if kept
        else Statement(
            ("search the corpus itself with `contam scan`, or build an index that keeps it ({})"),
            keeps,
        ),
    )


def _recipe_for(policy: Policy) -> str:
    if policy.spec.unit == "char":
        return "--recipe chars"
    run = shortest_run(policy)
    if policy.traits.monotone or run >= _STANDARD:
        return "--recipe standard"
    return f"a recipe of your own with gram = {run} and stride = 1"


def _why_refused(policy: Policy, recipe: Recipe) -> str | None:
    unit = "char" if policy.spec.unit == "char" else "word"
    if (unit == "char") != (recipe.unit == "char"):
        return f"counts {_TOKENS[unit]}"
    run = shortest_run(policy)
    if run < recipe.guarantee and not policy.traits.monotone:
        return f"counts runs of {run} already"
    return None


#: How every reason begins for which an index does not call an item clean; a scan may well.
MAY_BE_MISSED: Final = "not found, but "


def may_be_missed(
    policy: Policy, view: TokenView, recipe: Recipe, at_risk: Bools, hashed: Bools | None
) -> dict[int, str]:
    """Items of which a document that this policy counts may have been missed, with the reason.

    at_risk  bool[items], see `items_at_risk`
    hashed   bool[items], items of which something was seen in documents that cannot be read
    """
    n_items = view.items.n_items
    unit = _TOKENS[recipe.unit]
    guarantee = recipe.guarantee
    if (run := shortest_run(policy)) < guarantee:
        reason = (
            f"{MAY_BE_MISSED}this index may miss runs of fewer than {guarantee} {unit}, "
            f"and {policy.spec.id} counts them from {run} on"
        )
        return dict.fromkeys(range(n_items), reason)
    doubts: dict[int, str] = {}
    for i in np.flatnonzero(at_risk).tolist():
        doubts[i] = (
            f"{MAY_BE_MISSED}it has wording that stands in more documents than the index keeps: "
            f"of a run made of that alone not every document was looked at (cap {recipe.cap})"
        )
    for i in np.flatnonzero(_too_short(policy, view, guarantee)).tolist():
        tokens = int(view.items.n_tokens[i, QUESTION])
        doubts[i] = (
            f"{MAY_BE_MISSED}its question has {tokens} {unit}, and this index finds every run "
            f"from {guarantee} on: a copy may have been missed"
        )
    for i, tokens in _short_variants(policy, view, guarantee).items():
        doubts.setdefault(
            i,
            f"{MAY_BE_MISSED}without its punctuation its question has {tokens} {unit} in a row, "
            f"and this index finds every run from {guarantee} on: a copy that lost it may have "
            "been missed",
        )
    for i in np.flatnonzero(hashed).tolist() if hashed is not None else ():
        doubts.setdefault(
            i, f"{MAY_BE_MISSED}something of it is in documents that were compared by hashes alone"
        )
    return doubts


def _too_short(policy: Policy, view: TokenView, guarantee: int) -> Bools:
    """Items that the policy looks for whole although that is shorter than the guarantee."""
    n_tokens = view.items.n_tokens
    short = np.zeros(view.items.n_items, np.bool_)
    match policy.traits.short_items:
        case "none":
            pass
        case "question":
            question = n_tokens[:, QUESTION]
            short = (question > 0) & (question < guarantee)
        case "item":
            judged = n_tokens[:, [PARTS.index(part) for part in policy.spec.parts]]
            short = judged.max(axis=1) < guarantee
    return short


def _short_variants(policy: Policy, view: TokenView, guarantee: int) -> dict[int, int]:
    """Items with a variant that a scan finds and an index may miss, and the longest run of it."""
    variants = view.variants
    if not policy.traits.sees_variants or variants is None:
        return {}
    short = np.flatnonzero((variants.sure >= view.spec.seed) & (variants.sure < guarantee))
    return dict(zip(variants.owner[short].tolist(), variants.sure[short].tolist(), strict=True))


def items_at_risk(policy: Policy, lookup: Lookup, capped: Bools) -> Bools:
    """Items of which a run that the policy counts may have been missed for the cap: bool[items].

    A run is at risk when, wherever the index happened to sample it, only capped grams were met at
    one of the possible phases. A policy that weighs what it found is only in doubt when what is at
    risk weighs as much as its lowest threshold asks, or is nearly all of the question.

    capped  bool[grams], grams of which the index keeps only some of the documents
    """
    view = lookup.view
    at_risk = np.zeros(view.items.n_items, np.bool_)
    if not capped.any():
        return at_risk
    spec, traits = policy.spec, policy.traits
    first = view.items.token_start
    last = first + view.items.n_tokens
    for part in (PARTS.index(name) for name in spec.parts):
        told = traits.needs_weights and part == ANSWER
        run = max(ANSWER_RUN if told else shortest_run(policy), lookup.recipe.guarantee)
        tokens = _tokens_at_risk(lookup, capped, run)
        weight = _sums(view.gram_table.weight * tokens)
        count = _sums(tokens)
        begin, end = first[:, part], last[:, part]
        some = count[end] > count[begin]
        if told:
            some &= weight[end] - weight[begin] >= ANSWER_WEIGHT
        elif traits.needs_weights:
            whole = view.gram_table.part_weight.reshape(-1, len(PARTS))[: len(first), part]
            least = spec.thresholds[0][0]
            heavy = weight[end] - weight[begin] >= least * np.maximum(whole, LEAST_WEIGHT)
            if traits.sufficient_share and part == QUESTION:
                words = spec.number(traits.sufficient_share) * view.items.n_tokens[:, part]
                heavy |= count[end] - count[begin] >= words
            some &= heavy
        at_risk |= some
    return at_risk


def _sums(values: Bools | Float32s) -> Float64s:
    """What all values before each place add up to, and all of them: float64[n + 1]."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])


def _tokens_at_risk(lookup: Lookup, capped: Bools, run: int) -> Bools:
    """Tokens that lie in a run of `run` tokens that may have been missed: bool[tokens]."""
    plan, grams, recipe = lookup.view.gram_table, lookup.grams, lookup.recipe
    gram, stride = recipe.gram, recipe.stride
    n = len(plan.token)
    met = np.zeros(n + run + 1, np.bool_)
    met[grams.place[np.repeat(capped, np.diff(grams.start))]] = True
    missed = np.zeros(n, np.bool_)
    for phase in range(stride):
        every = np.ones(n, np.bool_)
        for at in range(phase, run - gram + 1, stride):
            every &= met[at : at + n]
        missed |= every
    part_end = np.repeat(plan.part_start[1:], np.diff(plan.part_start))
    begins = np.flatnonzero(missed & (np.arange(n) + run <= part_end))
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, begins + run, -1)
    result: Bools = np.cumsum(change[:-1]) > 0
    return result
