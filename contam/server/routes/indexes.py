"""List the indexes and what each can answer, and reload them."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, Depends, Response

from contam.detect.indexed.blind import spelling
from contam.index.describe import describe
from contam.server.checks.answers import summary
from contam.server.middleware.auth import Needs
from contam.server.schemas.common import problems
from contam.server.schemas.indexes import IndexAnswer, IndexList
from contam.server.state import CurrentState, registry_of

if TYPE_CHECKING:
    from contam.server.indexes.registry import IndexSnapshot

router = APIRouter(prefix="/v1/indexes", tags=["indexes"], dependencies=[Depends(Needs("check"))])


@router.get(
    "",
    response_class=Response,
    responses={200: {"model": IndexList}, **problems(401, 403, 429, 503)},
)
def list_indexes(state: CurrentState) -> Response:
    """All indexes."""
    registry = registry_of(state)
    found = []
    for name in registry.names:
        with registry.snapshot([name]) as snapshot:
            found.append(index_answer(snapshot))
    return Response(orjson.dumps({"indexes": found}), media_type="application/json")


@router.get(
    "/{index_id}",
    response_class=Response,
    responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 429, 503)},
)
def show_index(index_id: str, state: CurrentState) -> Response:
    """One index: corpus, guarantee, coverage, sizes and dates."""
    with registry_of(state).snapshot([index_id]) as snapshot:
        return _response(snapshot)


@router.post(
    "/{index_id}/reload",
    response_class=Response,
    dependencies=[Depends(Needs("admin"))],
    responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 422, 429, 503)},
)
def reload_index(index_id: str, state: CurrentState) -> Response:
    """Read the index's manifest anew; requests under way end with the state before."""
    return _response(registry_of(state).reload(index_id))


def index_answer(snapshot: IndexSnapshot) -> dict[str, Any]:
    """An index as `contam.server.schemas.indexes.IndexAnswer` has it: no path of this machine."""
    (index,) = snapshot.opened.indexes
    figures = describe(index)
    recipe = index.recipe
    kept = ("n_segments", "n_documents", "n_tokens", "n_text_bytes", "n_index_bytes")
    return {
        "id": snapshot.names[0],
        "state": snapshot.states[0],
        "recipe": recipe.name,
        **spelling(recipe),
        "stride": recipe.stride,
        "guarantee_tokens": recipe.guarantee,
        "near_copies": recipe.minhash is not None,
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


def _response(snapshot: IndexSnapshot) -> Response:
    return Response(
        orjson.dumps(index_answer(snapshot)),
        headers={"ETag": snapshot.etag},
        media_type="application/json",
    )
