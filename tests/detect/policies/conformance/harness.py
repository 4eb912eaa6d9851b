"""Runs a policy on texts: match, shape as the scan does, judge, explain."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from contam.benchmark.items import BenchItem
from contam.detect.labels import LABELS
from contam.detect.model import Matches, Totals, ViewItems
from contam.detect.policies.policy import Policy, get_policy, list_policies, reads_text
from tests.twins import brute

VECTORS = Path(__file__).parent
SEEDS = {"word": 5, "char": 24}
MIN_RUNS = {"word": 8, "char": 50}
DOCUMENTS_PER_SHARD = 3
READING = tuple(
    name
    for spec in list_policies()
    if reads_text(get_policy(spec.id))
    for name in (spec.id, *(f"{spec.id}:{preset}" for preset in spec.presets))
)


@dataclass
class Row:
    """What a policy says of one item."""

    label: str
    score: float
    n_documents: int
    reason: str


def load(path: Path) -> list[dict]:
    """The vectors of one policy. A row has `name`, `items`, `corpus`, `expect`, and `policy` if not the file's."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [{"policy": path.stem, **json.loads(line)} for line in lines if line]


def judge(policy: Policy, items: list[dict], corpus: list[str]) -> list[Row]:
    """The policy's answer for every item against this corpus, by brute force."""
    reading = (policy.spec.id,) if reads_text(policy) else ()
    view, matches, longest_at = evidence(items, corpus, policy.spec.unit, reading)
    totals = totals_for(policy, view, matches, longest_at)
    judgement = policy.judge(view, totals)
    reasons = policy.reasons(view, totals, judgement, np.arange(view.n_items))
    return [
        Row(
            label=LABELS[judgement.label[i]],
            score=float(judgement.score[i]),
            n_documents=int(totals.n_documents[i]),
            reason=reasons[i],
        )
        for i in range(view.n_items)
    ]


def run_vector(vector: dict) -> list[Row]:
    """The rows that a vector's policy gives."""
    return judge(get_policy(vector["policy"]), vector["items"], vector["corpus"])


def part_texts(item: dict) -> list[str]:
    return [
        item.get("passage") or "",
        item.get("question") or "",
        "\n".join(item.get("choices") or ()),
        item.get("answer") or "",
    ]


def evidence(
    items: list[dict], corpus: list[str], unit: str, reading: tuple[str, ...] = READING
) -> tuple[ViewItems, Matches, np.ndarray]:
    """The brute-force matcher's findings in the shapes that policies read.

    reading  policies that read the documents for themselves
    """
    names = sorted({item.get("benchmark", "bench") for item in items})
    benchmark = [names.index(item.get("benchmark", "bench")) for item in items]
    texts = [part_texts(item) for item in items]
    seed, min_run = SEEDS[unit], MIN_RUNS[unit]
    found = brute.match(texts, corpus, unit, seed, min_run)
    n_tokens = np.array([[len(p.tokens) for p in item] for item in found.parts], np.int32)
    n_tokens = n_tokens.reshape(-1, brute.N_PARTS)
    ends = np.cumsum(n_tokens.reshape(-1), dtype=np.int64)
    flat = [token for item in found.parts for part in item for token in part.tokens]
    view = ViewItems(
        n_items=len(items),
        benchmark=np.array(benchmark, np.int32),
        n_tokens=n_tokens,
        n_words=np.array([[len(t.split()) for t in item] for item in texts], np.int32),
        token_start=(ends - n_tokens.reshape(-1)).reshape(-1, brute.N_PARTS),
        token_hash=np.array([brute.token_hash(token) for token in flat], np.uint64),
        part_weight=n_tokens.astype(np.float64),
        n_single=np.zeros_like(n_tokens),
        stretch=n_tokens[:, :3].max(axis=1),
        item_ids=tuple(str(number) for number in range(len(items))),
        word_start=np.array(
            [s for item in found.parts for part in item for s in part.word_start], np.bool_
        ),
        seed=seed,
        min_run=min_run,
    )
    longest_at = [n for item in found.longest_at for part in item for n in part]
    readers = _readers(items, reading) if unit == "word" else []
    view = replace(view, read=tuple(reader.known for reader in readers))
    read = np.zeros((len(found.pairs), len(readers), 4), np.float32)
    for row, pair in enumerate(found.pairs):
        for number, reader in enumerate(readers):
            text = corpus[pair.document].encode()
            read[row, number] = reader.read([text], np.array([pair.item]), np.arange(2))[0]
    return view, _pairs(found.pairs, view, read), np.array(longest_at, np.int32)


def bench_items(items: list[dict]) -> list[BenchItem]:
    """The items of a vector as a benchmark's reader gives them."""
    return [
        BenchItem(
            benchmark=item.get("benchmark", "bench"),
            split="",
            item_id=str(number),
            question=item.get("question") or "",
            passage=item.get("passage"),
            choices=tuple(item.get("choices") or ()),
            answer=item.get("answer"),
            answer_index=item.get("answer_index"),
        )
        for number, item in enumerate(items)
    ]


def _readers(items: list[dict], reading: tuple[str, ...]) -> list:
    readers = []
    for name in reading:
        policy = get_policy(name)
        assert reads_text(policy)
        readers.append(policy.reader(bench_items(items), None))
    return readers


def _pairs(found: list[brute.Pair], view: ViewItems, read: np.ndarray) -> Matches:
    def column(name: str, kind: type) -> np.ndarray:
        rows = [getattr(pair, name) for pair in found]
        return np.array(rows, kind).reshape(len(found), brute.N_PARTS)

    document = np.array([pair.document for pair in found], np.int64)
    item = np.array([pair.item for pair in found], np.int32)
    aligned = column("aligned", np.int32)
    return Matches(
        item=item,
        shard=(document // DOCUMENTS_PER_SHARD).astype(np.int32),
        row=document % DOCUMENTS_PER_SHARD,
        longest=column("longest", np.int32),
        covered=column("covered", np.int32),
        n_runs=column("n_runs", np.int32),
        coverage=(aligned / np.maximum(view.n_tokens[item], 1)).astype(np.float32),
        aligned=aligned,
        n_places=np.array([pair.n_places for pair in found], np.int32),
        answer_near=np.array([pair.answer_near for pair in found], np.bool_),
        exact=column("exact", np.bool_),
        split=np.zeros(len(found), np.bool_),
        scattered=np.zeros(len(found), np.float32),
        told=np.zeros(len(found), np.int32),
        renumbered=np.zeros(len(found), np.float32),
        competing_item=np.full(len(found), -1, np.int32),
        variant_words=np.zeros(len(found), np.int32),
        read=read,
    )


def totals_for(policy: Policy, view: ViewItems, matches: Matches, longest_at: np.ndarray) -> Totals:
    """All documents added up under one policy: the first of the best documents is the best."""
    score = policy.score_matches(matches, view)
    hits = policy.hits(matches, view, score)
    best_score = np.zeros(view.n_items)
    best = Matches.zeros(view.n_items, len(view.read))
    for i in range(view.n_items):
        mine = np.flatnonzero(matches.item == i)
        if mine.size:
            first = mine[np.argmax(score[mine])]
            best_score[i] = score[first]
            for name in ("item", "shard", "row", "covered", "longest", "read"):
                getattr(best, name)[i] = getattr(matches, name)[first]
    return Totals(
        longest_at=longest_at,
        n_documents=np.bincount(matches.item[hits], minlength=view.n_items).astype(np.int64),
        n_occurrences=np.bincount(
            matches.item[hits], weights=matches.n_runs[hits].sum(axis=1), minlength=view.n_items
        ).astype(np.int64),
        best_score=best_score,
        best_match=best,
    )


def empty_totals(items: ViewItems) -> Totals:
    """The totals of a corpus in which nothing was found."""
    n = items.n_items
    return Totals(
        longest_at=np.zeros(items.token_hash.shape[0], np.int32),
        n_documents=np.zeros(n, np.int64),
        n_occurrences=np.zeros(n, np.int64),
        best_score=np.zeros(n, np.float64),
        best_match=Matches.zeros(n, len(items.read)),
    )
