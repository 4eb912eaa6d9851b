"""Turn merged evidence into verdicts, evidence rows and the record of a run."""

from __future__ import annotations

import platform
import resource
import time
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.benchmark.items import PARTS, ItemName
from contam.benchmark.key_table import KeyTable
from contam.benchmark.keys import KEY_VERSION
from contam.benchmark.packed import column_of, text_column
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.detect.model import Judgements
from contam.detect.plan import SEED
from contam.detect.policies.exposure import (
    EXPOSURES,
    KINDS,
    NONE,
    QUESTION_AND_ANSWER,
    QUESTION_ONLY,
    exposures,
    kinds,
)
from contam.detect.result import ONE_QUESTION, SKIPPED, ScanResult
from contam.detect.sources import describe
from contam.tables.schemas import Repeated, hex_column
from contam.text.text_tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import Benchmark, SkippedRow
    from contam.corpus.coverage import Coverage
    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float64s, Int8s, Matches, Totals, ViewItems
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy
    from contam.detect.sources import Documents, Sources
    from contam.tables.schemas import Column


# By the codes of `contam.kernels.match_rows`: AS_LETTER, AS_NUMBER.
_MARKS = ("letter", "number")
#: Fewer may well share a question.
_FEW_ITEMS = 5
#: Columns of keys, as the table has them.
_KEYS = ("passage_key", "question_key", "choices_key", "answer_key", "item_key", "full_key")
_PACKAGES = ("contam", "numpy", "numba", "pyarrow", "tokenizers")


def finish(  # noqa: PLR0913 - what an answer is made of, and options by name
    plan: Plan,
    sources: Sources,
    collections: Sequence[Collection],
    *,
    started: float,
    workers: int,
    index: Callable[[], dict[str, Any]] | None = None,
    late: bool = False,
    used_up: bool = False,
) -> ScanResult:
    """Judge every item under every policy and describe the documents kept as evidence.

    sources      the documents that were searched; collections  what was found, one a view
    started      when the run began, seconds since 1970; workers  threads it had
    index        makes what the record says of indexes
    late         make the record and the items' columns when somebody reads them: they may cost more
                 than a short answer, but what they are made of is held until then
    used_up      let go of what the plan and the collections hold as soon as it is not needed
    """
    notes = [*sources.notes, *_long_seed(plan.parameters.seed)]
    notes += [note for benchmark in plan.benchmarks for note in _one_question(benchmark)]
    documents = describe(sources, collections, notes)
    verdicts = verdict_columns(plan, sources.coverage, collections, documents)
    if used_up:
        for view, collection in zip(plan.views, collections, strict=True):
            view.release_tokens()
            collection.release_runs()
    evidence = _evidence(plan, sources, collections, documents)
    for benchmark in plan.benchmarks:
        notes += [
            f"{benchmark.name}{SKIPPED}{row.source}:{row.line}: {row.reason}"
            for row in benchmark.skipped
        ]
    timings = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        "workers": workers,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }

    about = cache(index) if index is not None else None

    def record() -> dict[str, Any]:
        run = {
            "parameters": parameters_of(plan),
            "inputs": {**sources.inputs(), "benchmarks": benchmarks_of(plan)},
            "versions": versions(),
            "coverage": sources.coverage.to_dict(),
            "notes": notes,
            "timings": timings,
        }
        return run if about is None else {**run, "index": about()}

    return ScanResult(
        verdict_columns=verdicts,
        evidence_columns=evidence,
        item_columns=partial(_item_columns, plan) if late else _item_columns(plan),
        run=record if late else record(),
        covered=sources.coverage,
        about_index=about or dict,
        items_in_order=plan.items,
        sorted_by_item=True,
    )


def _long_seed(seed: int) -> Iterator[str]:
    """What a seed longer than the usual one may cost; no verdict tells it."""
    if seed > SEED:
        yield (
            f"seed {seed}: an edited copy of which no {seed} tokens stand together is not found,"
            f" and its item may be called clean (the usual seed is {SEED})"
        )


def _one_question(benchmark: Benchmark) -> Iterator[str]:
    """A doubt whether the field of the question is the right one; no verdict tells it.

    An instruction that every item has is found nowhere, or everywhere, whatever was leaked.
    """
    n_items = len(benchmark.items)
    if n_items < _FEW_ITEMS or benchmark.keys is None:
        return
    n_same = max(map(len, benchmark.keys.equal("text_key")), default=1)
    if 2 * n_same <= n_items:
        return
    fields = {dict(source.fields).get("question") for source in benchmark.sources}
    named = [field for field in fields if field]
    where = f" ({named[0]})" if len(named) == 1 else ""
    yield (
        f"{benchmark.name}: {n_same} of {n_items} {ONE_QUESTION}{where}, which does"
        " not tell them apart; if another field holds what they ask, name both:"
        " --map question=FIELD+FIELD"
    )


def _evidence(
    plan: Plan, sources: Sources, collections: Sequence[Collection], documents: Documents
) -> dict[str, Column]:
    """The columns of `contam.tables.schemas.EVIDENCE`, by item, view and rank of the document.

    Millions of rows: what a row has from its item or document is looked up when it is written.
    """
    near = any(sources.near(collection.evidence()[0]).any() for collection in collections)
    parts = [
        _view_evidence(sources, view, collection, documents, near=near)
        for view, collection in zip(plan.views, collections, strict=True)
    ]
    flat = _joined(parts)
    item, document, mark = flat.pop("item"), flat.pop("document"), flat.pop("mark")
    columns: dict[str, Column] = {
        **flat,
        **_names(plan, item),
        "part": Repeated(PARTS, flat["part"]),
        "answer_mark": Repeated(_MARKS, mark),
        "document_id": Repeated(documents.document_id, document),
        "shard": Repeated(documents.shard, document),
        "row": Repeated(documents.row, document),
        "url": Repeated(documents.url, document),
        "date": Repeated(documents.date, document),
        "source": Repeated(documents.source, document),
    }
    if not near:
        columns["similarity"] = Repeated((), np.full(len(item), -1, np.int8))
    return columns


def _names(plan: Plan, item: NDArray[Any]) -> dict[str, Column]:
    """The columns that name the item of each row; item  its number."""
    return {name: Repeated(list(column_of(plan.items, name)), item) for name in ItemName._fields}


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The rows of all views by item; a column is let go once it is in its place."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part["item"] for part in parts]), kind="stable")
    return {
        name: np.concatenate([part.pop(name) for part in parts])[order] for name in list(parts[0])
    }


def _view_evidence(
    sources: Sources, view: TokenView, collection: Collection, documents: Documents, *, near: bool
) -> dict[str, NDArray[Any]]:
    """Columns of one view's rows; near  whether any row of any view has a similarity to tell."""
    matches, pieces = collection.evidence()
    owner = pieces.match
    item = matches.item[owner]
    first = view.items.token_start[item, pieces.part] + pieces.item_token
    spans = view.spans(np.concatenate([first, first + pieces.length - 1]))
    return {
        "item": item,
        "document": documents.at(matches.shard, matches.row).astype(np.int32)[owner],
        "part": pieces.part,
        "alignment": np.maximum(pieces.alignment, 0),
        "mark": np.where(pieces.alignment < 0, -1 - pieces.alignment, -1).astype(np.int8),
        "item_start": spans[: len(first), 0].copy(),
        "item_end": spans[len(first) :, 1].copy(),
        "document_start": pieces.start,
        "document_end": pieces.end,
        "n_tokens": pieces.length,
        "verified": sources.verified(matches)[owner],
        **({"similarity": _similarity(sources, matches)[owner, pieces.part]} if near else {}),
    }


def _similarity(sources: Sources, matches: Matches) -> Float64s:
    """How much of each part its document holds, float64[m, 4]; NaN unless a sketch led there."""
    held: Float64s = matches.coverage.astype(np.float64).round(4)
    held[~sources.near(matches)] = np.nan
    return held


def _item_columns(plan: Plan) -> dict[str, Column]:
    items = plan.items
    keys = plan.keys or KeyTable.of(items)
    tokens = plan.views[0].items.n_tokens
    columns: dict[str, Column] = {
        **{name: list(column_of(items, name)) for name in ItemName._fields},
        "key_version": Repeated([KEY_VERSION], np.zeros(len(items), np.int8)),
        **{
            name: hex_column(*keys.column("text_key" if name == "question_key" else name))
            for name in _KEYS
        },
    }
    for at, part in enumerate(PARTS):
        columns[f"{part}_tokens"] = tokens[:, at]
    if plan.parameters.keep_text:
        columns |= {name: text_column(items, name) for name in PARTS}
    return columns


def parameters_of(plan: Plan) -> dict[str, Any]:
    """What was asked of a plan, as run.json records it."""
    parameters = asdict(plan.parameters)
    for name in ("columns", "exclude", "every_hit"):
        # Older results do not have them: they are written where they say something.
        if not parameters[name]:
            del parameters[name]
    parameters["policies"] = [policy.spec.id for policy in plan.policies]
    parameters["policy_definitions"] = {
        policy.spec.id: {**policy.spec.to_dict(), "fingerprint": policy.spec.fingerprint()}
        for policy in plan.policies
    }
    parameters["lanes"] = [
        {
            "seed": view.spec.seed,
            "min_run": view.spec.min_run,
            "unit": view.unit,
            **(view.tokenizer.fingerprint if view.tokenizer else {}),
            **({"rephrasings": True} if view.rephrasings else {}),
            **({"reads_with": view.reads_with.sha256} if view.reads_with else {}),
        }
        for view in plan.views
    ]
    parameters["normaliser"] = NORMALISER
    return parameters


def benchmarks_of(plan: Plan) -> list[dict[str, Any]]:
    """The benchmarks of a plan, as run.json records them."""
    return [
        {
            "name": benchmark.name,
            "n_items": len(benchmark.items),
            "n_skipped": len(benchmark.skipped),
            **_skipped(benchmark.skipped),
            "duplicates": [
                [benchmark.items[i].item_id for i in group] for group in benchmark.duplicates
            ],
            "sources": [asdict(source) for source in benchmark.sources],
        }
        for benchmark in plan.benchmarks
    ]


def _skipped(skipped: Sequence[SkippedRow]) -> dict[str, Any]:
    """How many rows were skipped for which reason, and which files; only what there is."""
    reasons: dict[str, int] = {}
    for row in skipped:
        if row.n_rows:
            kind = row.kind or row.reason
            reasons[kind] = reasons.get(kind, 0) + row.n_rows
    files = [{"path": row.source, "reason": row.reason} for row in skipped if not row.n_rows]
    found = {"skipped": reasons, "skipped_files": files}
    return {name: value for name, value in found.items() if value}


def versions() -> dict[str, str]:
    """Versions of what has a part in the result."""
    return dict(_installed())


@cache
def _installed() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


_NOTHING = "no document shares enough of its wording to be compared"


class CoverageGap:
    """What was not read, and what that does to a clean label."""

    def __init__(self, coverage: Coverage, *, allowed: bool) -> None:
        n_unread = len(coverage.names) - len(coverage.shards_read)
        self.hides = n_unread > 0 and not allowed
        self.allowed = n_unread > 0 and allowed
        self.text = f"{n_unread} of {len(coverage.names)} shards unread"


def verdict_columns(
    plan: Plan, coverage: Coverage, collections: Sequence[Collection], documents: Documents
) -> dict[str, Column]:
    """The columns of `contam.detect.result.VERDICTS`: item by item, policies as asked."""
    gap = CoverageGap(coverage, allowed=plan.parameters.allow_missing)
    n_items, n_policies = len(plan.items), len(plan.policies)
    numbers: dict[str, list[NDArray[np.generic]]] = {}
    reasons: list[list[str]] = []
    seen = [0] * len(plan.views)
    for policy, at in zip(plan.policies, plan.view_of, strict=True):
        totals = collections[at].totals(seen[at])
        seen[at] += 1
        items = plan.views[at].items
        judged = policy.judge(items, totals)
        judged = Judgements(label=judged.label.copy(), score=judged.score)
        gone = (judged.label == CLEAN) & gap.hides
        reasons.append(_reasons(policy, items, totals, judged, gap))
        label = np.where(gone, NOT_CHECKABLE, judged.label).astype(np.int8)
        for name, values in _figures(items, totals, label, judged, documents).items():
            numbers.setdefault(name, []).append(values)
    # Column by column, and each is let go: never is all of it there twice.
    flat = {name: np.stack(numbers.pop(name), axis=1).reshape(-1) for name in list(numbers)}
    item = np.repeat(np.arange(n_items, dtype=np.int32), n_policies)
    policies = [policy.spec.id for policy in plan.policies]
    document = flat["document"]
    return {
        **_names(plan, item),
        "policy": Repeated(policies, np.tile(np.arange(n_policies, dtype=np.int16), n_items)),
        "label": Repeated(LABELS, flat["label"]),
        "score": flat["score"],
        "exposure": Repeated(EXPOSURES, flat["exposure"]),
        "kind": Repeated(KINDS, flat["kind"]),
        "n_documents": flat["n_documents"],
        "n_occurrences": flat["n_occurrences"],
        "best_document_id": Repeated(documents.document_id, document),
        "best_shard": Repeated(documents.shard, document),
        "best_row": flat["best_row"],
        "best_url": Repeated(documents.url, document),
        "best_date": Repeated(documents.date, document),
        "reason": [text for texts in zip(*reasons, strict=True) for text in texts],
    }


def _figures(
    items: ViewItems, totals: Totals, label: Int8s, judged: Judgements, documents: Documents
) -> dict[str, NDArray[np.generic]]:
    """Everything of one policy's verdicts but the reasons, arrays of n items."""
    best = totals.best_match
    exposure = exposures(best)
    asked = (exposure == QUESTION_ONLY) | (exposure == QUESTION_AND_ANSWER)
    exposure[asked & (label == CLEAN)] = NONE
    return {
        "label": label,
        "score": np.where(label == NOT_CHECKABLE, np.nan, judged.score),
        "exposure": exposure,
        "kind": kinds(best, exposure, items.n_tokens),
        "n_documents": totals.n_documents,
        "n_occurrences": totals.n_occurrences,
        "document": documents.at(best.shard, best.row),
        "best_row": best.row,
    }


def _reasons(
    policy: Policy, items: ViewItems, totals: Totals, judged: Judgements, gap: CoverageGap
) -> list[str]:
    clean = judged.label == CLEAN
    usual = gap.text if gap.hides else _NOTHING
    after = f"; {gap.text}, which was allowed" if gap.allowed else ""
    reasons = [usual + after] * items.n_items
    own = ~clean if gap.hides else ~clean | (totals.best_match.item >= 0)
    rows = np.flatnonzero(own)
    for i, text in zip(rows.tolist(), policy.reasons(items, totals, judged, rows), strict=True):
        reasons[i] = text + after if after and clean[i] else text
    return reasons
