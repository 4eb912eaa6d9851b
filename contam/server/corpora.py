"""List indexes and policies, and reload."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse

from contam.index.shards import describe
from contam.server.answers import summary
from contam.server.auth import Needs
from contam.server.check import known_policies
from contam.server.schemas import (
    IndexAnswer,
    IndexList,
    PolicyList,
    problems,
)
from contam.server.state import CurrentState, registry_of

if TYPE_CHECKING:
    from contam.detect.policies.policy_spec import PolicySpec
    from contam.server.indexes import IndexSnapshot


index_router = APIRouter(
    prefix="/v1/indexes",
    tags=["indexes"],
    default_response_class=Response,
    dependencies=[Depends(Needs("check"))],
)


@index_router.get("", responses={200: {"model": IndexList}, **problems(401, 403, 503)})
def list_indexes(state: CurrentState) -> Response:
    """All indexes."""
    registry = registry_of(state)
    found = []
    for name in registry.names:
        with registry.snapshot([name]) as snapshot:
            found.append(index_answer(snapshot))
    return JSONResponse({"indexes": found})


@index_router.get(
    "/{index_id}", responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 422, 503)}
)
def show_index(index_id: str, state: CurrentState) -> Response:
    """One index: corpus, guarantee, coverage, sizes and dates."""
    with registry_of(state).snapshot([index_id]) as snapshot:
        return JSONResponse(index_answer(snapshot))


@index_router.post(
    "/{index_id}/reload",
    dependencies=[Depends(Needs("admin"))],
    responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 422, 503)},
)
def reload_index(index_id: str, state: CurrentState) -> Response:
    """Read the index's manifest anew; requests under way end with the state before."""
    return JSONResponse(index_answer(registry_of(state).reload(index_id)))


def index_answer(snapshot: IndexSnapshot) -> dict[str, Any]:
    """An index as `contam.server.schemas.IndexAnswer` has it: no path of this machine."""
    (index,) = snapshot.opened.indexes
    figures = describe(index)
    recipe = index.recipe
    kept = ("n_segments", "n_documents", "n_tokens", "n_text_bytes", "n_index_bytes")
    return {
        "id": snapshot.names[0],
        "state": snapshot.states[0],
        "recipe": recipe.name,
        "unit": recipe.unit,
        "normaliser": recipe.normaliser,
        "gram": recipe.gram,
        "tokenizer_sha256": None if recipe.tokenizer is None else recipe.tokenizer["sha256"],
        "stride": recipe.stride,
        "guarantee_tokens": recipe.guarantee,
        "near_copies": recipe.minhash,
        "corpus": [PurePath(path).name for path in figures["corpus"]],
        "coverage": {
            "not_indexed": [],
            "n_not_indexed": 0,
            **summary(snapshot.opened.coverage.totals),
        },
        **{name: figures[name] for name in kept},
        "capped_grams": figures["capped_grams"],
        "dates": figures["dates"],
        "n_unreadable_dates": figures["n_unreadable_dates"],
    }


policy_router = APIRouter(
    prefix="/v1/policies",
    tags=["policies"],
    default_response_class=Response,
    dependencies=[Depends(Needs("check"))],
)


@policy_router.get("", responses={200: {"model": PolicyList}, **problems(401, 403)})
def list_policies() -> Response:
    """All policies and presets, as `contam policies --json` describes them."""
    found = [_policy_answer(spec) for spec in known_policies().values()]
    return JSONResponse({"policies": found})


def _policy_answer(spec: PolicySpec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint()}
