"""Check items sent as hashes of their grams, when their text must not leave its owner.

Of each item part only the 40-bit keys of its grams are sent, in order, and four bits of each token:
what an index keeps of documents. Tokens are then names: two are the same if equal grams show it.
Documents are not read; only their keys are compared, so nothing is `verified`, and
an item of which anything was seen is flagged or not checkable, never clean.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import PARTS, BenchItem
from contam.detect.indexed.candidates import Lookup
from contam.detect.indexed.guarantee import refuse_blind, refuse_unanswerable
from contam.detect.indexed.search import search_hashes
from contam.detect.match.deadline import Deadline
from contam.detect.match.grams import GramPlaces
from contam.detect.match.item_tokens import Block, known_spans
from contam.detect.match.token_view import build_view, draft_of, finished_view
from contam.detect.model import N_PARTS
from contam.detect.plan import (
    CHAR_MIN_RUN,
    CHAR_SEED,
    MIN_RUN,
    SEED,
    ScanParameters,
    ordered,
    plan_of,
)
from contam.detect.policies.policy import get_policy
from contam.detect.query import answered
from contam.errors import IndexMismatchError, Public, Remedy, UsageError
from contam.files.single import whole_file
from contam.index.model import KEY_BITS
from contam.kernels.match_rows import ItemFacts
from contam.kernels.pretokenized import PRETOKENIZED
from contam.kernels.score_item import ViewSpec
from contam.kernels.tokens import CHARS, WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.indexed.indexes import IndexSet
    from contam.detect.match.token_view import TokenView
    from contam.detect.result import ScanResult
    from contam.index.model import Recipe

KEY_BYTES: Final = KEY_BITS // 8
_CODES: Final = {"word": WORDS, "char": CHARS, "tokenizer": PRETOKENIZED}
_DROPPED: Final = np.uint64(64 - KEY_BITS)
_TOP: Final = np.uint64(60)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_REST: Final = np.uint64((1 << 60) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class BlindPart:
    """One part: keys uint64[grams] of its grams in order, bits uint8[tokens] with four of each."""

    keys: NDArray[np.uint64]
    bits: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindItem:
    """An item without its text; `parts` has those of PARTS that hold a token."""

    benchmark: str
    split: str
    item_id: str
    parts: Mapping[str, BlindPart]


def spelling(recipe: Recipe) -> dict[str, Any]:
    """What decides the hashes of an item: they can be looked up only where all of it is equal."""
    sha256 = None if recipe.tokenizer is None else recipe.tokenizer["sha256"]
    return {
        "unit": recipe.unit,
        "normaliser": recipe.normaliser,
        "gram": recipe.gram,
        "tokenizer_sha256": sha256,
    }


def hash_items(items: Sequence[BenchItem], recipe: Recipe) -> list[BlindItem]:
    """The items as an index of this recipe can be asked for them blind.

    Raises UsageError or ConfigError when the recipe's tokenizer file cannot be used.
    """
    unit = recipe.unit if recipe.tokenizer is None else recipe.tokenizer["path"]
    view = build_view(items, unit=unit, seed=recipe.gram, min_run=recipe.gram)
    tokens, starts = view.gram_table.token, view.gram_table.part_start.tolist()
    grams = GramPlaces.of(tokens, view.gram_table.part_start, recipe.gram)
    key_at = np.zeros(len(tokens), np.uint64)
    grams.spread(grams.key >> _DROPPED, key_at)
    bits = (tokens >> _TOP).astype(np.uint8)
    found = []
    for i, item in enumerate(items):
        parts = {}
        for p, name in enumerate(PARTS):
            begin, end = starts[N_PARTS * i + p : N_PARTS * i + p + 2]
            n_grams = max(end - begin - recipe.gram + 1, 0)
            if end > begin:
                parts[name] = BlindPart(key_at[begin : begin + n_grams], bits[begin:end])
        found.append(
            BlindItem(benchmark=item.benchmark, split=item.split, item_id=item.item_id, parts=parts)
        )
    return found


def check_blind(
    opened: IndexSet,
    items: Sequence[BlindItem],
    *,
    policies: Sequence[str] = ("contam",),
    max_evidence: int = 20,
    allow_missing: bool = False,
    deadline: float | None = None,
) -> ScanResult:
    """Judge hashed items by the indexes alone: evidence counts tokens, and nothing is verified.

    deadline  as for `IndexReader.check`

    All tokens of an item weigh the same, since nobody knows which are common.
    Raises UsageError when the hashes do not fit one another, PolicyError when a policy needs text,
    IndexMismatchError when the index cannot answer a policy.
    """
    started = time.time()
    items = ordered(items)
    parameters = ScanParameters(
        policies=tuple(policies),
        unit=opened.unit,
        max_evidence=max_evidence,
        allow_missing=allow_missing,
        keep_text=False,
    )
    chosen = tuple(get_policy(name) for name in parameters.policies)
    refuse_blind(chosen)
    refuse_unanswerable(chosen, opened.recipe)
    view, key_at = _view(items, opened.recipe, opened.unit)
    without_text = [
        BenchItem(benchmark=item.benchmark, split=item.split, item_id=item.item_id, question="")
        for item in items
    ]
    plan = plan_of(without_text, parameters, chosen, view)
    lookup = Lookup.of(view, opened.recipe)
    keys = key_at[lookup.grams.place[lookup.grams.start[:-1]]]
    lookup = replace(lookup, keys=keys, order=np.argsort(keys, kind="stable"))
    ask = partial(search_hashes, opened, plan, lookup, Deadline(deadline))
    return answered(opened, plan, ask, started=started)


def refuse_other_spelling(hashed_with: Mapping[str, Any], recipe: Recipe) -> None:
    """Raise IndexMismatchError when hashes were made otherwise than the index's."""
    for name, mine in spelling(recipe).items():
        if hashed_with.get(name) != mine:
            raise IndexMismatchError(
                "the index needs hashes with {} {}", name, Public(mine),
                remedy=Remedy.MAKE_HASHES_BY_RECIPE,
            )  # fmt: skip


def _view(
    items: Sequence[BlindItem], recipe: Recipe, unit: str
) -> tuple[TokenView, NDArray[np.uint64]]:
    """A view whose tokens are names, and the key of the gram at each token (0 where none is)."""
    none = BlindPart(np.empty(0, np.uint64), np.empty(0, np.uint8))
    parts = [item.parts.get(name, none) for item in items for name in PARTS]
    lengths = np.array([len(part.bits) for part in parts], np.int64)
    for part, n_tokens in zip(parts, lengths.tolist(), strict=True):
        if len(part.keys) != max(n_tokens - recipe.gram + 1, 0):
            raise UsageError(
                "a part of {} tokens has {} grams of {}",
                n_tokens,
                len(part.keys),
                recipe.gram,
                remedy=Remedy.MAKE_HASHES,
            )
    starts = np.concatenate([[0], np.cumsum(lengths)])
    key_at = np.zeros(int(starts[-1]), np.uint64)
    for part, begin in zip(parts, starts.tolist(), strict=False):
        key_at[begin : begin + len(part.keys)] = part.keys
    bits = np.concatenate([part.bits for part in parts])
    n_grams = np.maximum(lengths - recipe.gram + 1, 0)
    at = np.repeat(starts[:-1] - np.cumsum(n_grams) + n_grams, n_grams) + np.arange(n_grams.sum())
    hashes = _names(key_at, at, bits, recipe.gram)
    counts = lengths.reshape(-1, N_PARTS).astype(np.int32)
    within = (np.arange(len(bits)) - np.repeat(starts[:-1], lengths)).astype(np.int32)
    tokens = Block(
        hashes=hashes,
        n_tokens=lengths,
        points=np.empty((0, 2), np.int32),
        weight=np.ones(len(bits), np.float32),
        n_words=counts,
        n_single=np.zeros_like(counts),
        word_start=np.ones(len(bits), np.bool_),
        stretch=counts[:, :3].max(axis=1),
    )
    nobody = np.zeros(len(items), np.uint64)
    facts = ItemFacts(letter=nobody, number=nobody, answer_words=np.empty(0, np.uint64))
    seed, min_run = (CHAR_SEED, CHAR_MIN_RUN) if recipe.unit == "char" else (SEED, MIN_RUN)
    draft = draft_of(
        tokens,
        benchmarks=[item.benchmark for item in items],
        item_ids=tuple(item.item_id for item in items),
        facts=facts,
        spec=ViewSpec(unit=_CODES[recipe.unit], seed=seed, min_run=min_run),
        unit=unit,
    )
    spans = partial(known_spans, np.stack([within, within + 1], axis=1))
    return finished_view(draft, spans), key_at


def _names(
    key_at: NDArray[np.uint64], at: NDArray[np.int64], bits: NDArray[np.uint8], gram: int
) -> NDArray[np.uint64]:
    """A name for every token, the same for two that equal grams show to be the same word.

    key_at  of the gram that begins at a token;  at  int64[grams], where grams begin
    bits    of each token; they become the highest of its name
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    order = np.argsort(key_at[at], kind="stable")
    here, there = at[order[:-1]], at[order[1:]]
    same = key_at[here] == key_at[there]
    steps = np.arange(gram)
    here, there = ((side[same][:, np.newaxis] + steps).reshape(-1) for side in (here, there))
    fits = bits[here] == bits[there]
    here, there = here[fits], there[fits]
    edges = coo_array((np.ones(len(here), np.int8), (here, there)), shape=(len(bits), len(bits)))
    _, label = connected_components(edges, directed=False)
    mixed = (label.astype(np.uint64) + np.uint64(1)) * _SPREAD
    mixed ^= mixed >> np.uint64(29)
    names: NDArray[np.uint64] = (mixed & _REST) | (bits.astype(np.uint64) << _TOP)
    names[names == 0] = np.uint64(1)
    return names


def write_bodies(
    path: Path, items: Sequence[BenchItem], recipe: Recipe, asked: Mapping[str, Any], at_once: int
) -> int:
    """Write bodies for `POST /v1/check`, a line each; returns how many.

    asked    what else each body says;  at_once  items in one body

    The file appears whole. Raises OutputError when it cannot be written.
    """
    n_lines = 0
    with whole_file(path, overwrite=True) as file:
        for begin in range(0, len(items), at_once):
            hashed = hash_items(items[begin : begin + at_once], recipe)
            grams = {**spelling(recipe), "items": [_plain(item) for item in hashed]}
            file.write(json.dumps({**asked, "grams": grams}).encode("ascii") + b"\n")
            n_lines += 1
    return n_lines


def _plain(item: BlindItem) -> dict[str, Any]:
    """The item as `contam.server.schemas.check.BlindItem` has it."""
    parts = {}
    for name, part in item.parts.items():
        raw = part.keys.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - KEY_BYTES :].tobytes()
        bits = "".join(f"{bit:x}" for bit in part.bits.tolist())
        parts[name] = {"keys": base64.b64encode(raw).decode("ascii"), "bits": bits}
    return {"id": item.item_id, "benchmark": item.benchmark, "split": item.split, "parts": parts}
