"""A small scan result made by hand: two benchmarks, three items, two policies, one document."""

from __future__ import annotations

from typing import Any

import numpy as np

from contam.detect.result import ScanResult

DOCUMENT = "Some quiz.\n\nHow many apples does Zoë hold if she buys twelve and eats three? Answer: 9. More."
QUESTION = "How many apples does Zoë hold if she buys twelve and eats three?"
START = DOCUMENT.index(QUESTION)

ITEMS: list[tuple[str, str, str]] = [
    ("maths", "", "m1"),
    ("quiz", "test", "q9"),
    ("quiz", "test", "q10"),
]
POLICIES = ("contam", "lmeval-13")


def make_result(
    *,
    complete: bool = True,
    allow_missing: bool = False,
    keep_text: bool = True,
    shard: dict[str, Any] | None = None,
    document_id: str = "urn:1",
    document_url: str | None = "https://example.org/1",
) -> ScanResult:
    """Q9 is contaminated under both policies."""
    items = ITEMS
    matches = [(item, policy) for item in items for policy in POLICIES]
    hit = [item[2] == "q9" for item, _ in matches]
    verdicts = {
        "benchmark": [item[0] for item, _ in matches],
        "split": [item[1] for item, _ in matches],
        "item_id": [item[2] for item, _ in matches],
        "policy": [policy for _, policy in matches],
        "label": ["contaminated" if h else "clean" for h in hit],
        "score": np.array([1.0 if h else 0.0 for h in hit]),
        "exposure": ["question+answer" if h else "none" for h in hit],
        "kind": ["exact" if h else None for h in hit],
        "n_documents": np.array(hit, np.int64),
        "n_occurrences": np.array(hit, np.int32),
        "best_document_id": [document_id if h else None for h in hit],
        "best_shard": ["a.parquet" if h else None for h in hit],
        "best_row": np.array([0 if h else -1 for h in hit]),
        "best_url": [document_url if h else None for h in hit],
        "best_date": [None for _ in hit],
        "reason": [
            "the whole question stands in one document" if h else "nothing found" for h in hit
        ],
    }
    evidence = {
        "benchmark": ["quiz"],
        "split": ["test"],
        "item_id": ["q9"],
        "part": ["question"],
        "document_id": [document_id],
        "shard": ["a.parquet"],
        "row": np.array([0]),
        "url": [document_url],
        "date": ["2024-01-31"],
        "source": [None],
        "alignment": [0],
        "item_start": [0],
        "item_end": [len(QUESTION)],
        "document_start": [START],
        "document_end": [START + len(QUESTION)],
        "n_tokens": np.array([12], np.int32),
        "similarity": [None],
        "answer_mark": [None],
        "document_token": [None],
    }
    n = len(items)
    columns: dict[str, Any] = {
        "benchmark": [item[0] for item in items],
        "split": [item[1] for item in items],
        "item_id": [item[2] for item in items],
        "key_version": ["ck1"] * n,
        "passage_key": [None] * n,
        "question_key": [f"key-{item[2]}" for item in items],
        "choices_key": [None] * n,
        "answer_key": [None] * n,
        "item_key": [f"key-{item[2]}" for item in items],
        "full_key": [f"full-{item[2]}" for item in items],
        "passage_tokens": [0] * n,
        "question_tokens": np.full(n, 12, np.int32),
        "choices_tokens": [0] * n,
        "answer_tokens": [1] * n,
    }
    if keep_text:
        columns |= {
            "passage": [None] * n,
            "question": [
                QUESTION if item[2] == "q9" else f"Question of {item[2]}" for item in items
            ],
            "choices": [["8", "9"] if item[2] == "m1" else None for item in items],
            "answer": ["9"] * n,
        }
    run = {
        "parameters": {"policies": list(POLICIES), "allow_missing": allow_missing, "text": None,
            "keep_text": keep_text},
        "inputs": {"shards": [shard] if shard else []},
        "versions": {"contam": "0"},
        "coverage": {"complete": complete, "shards": {"expected": 1, "read": int(complete)}},
        "timings": {"started": "2026-01-01T00:00:00Z", "seconds": 1.5},
    }  # fmt: skip
    return ScanResult(
        verdict_columns=verdicts, evidence_columns=evidence, item_columns=columns, run=run
    )
