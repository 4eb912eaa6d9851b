"""List indexes and policies, reload, and show the text of a document around a span."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse

from contam.detect.indexed.quote import document_at, places_of, quote
from contam.index.describe import describe
from contam.server.answers import summary
from contam.server.auth import Needs
from contam.server.check import known_policies
from contam.server.problems import RequestError
from contam.server.schemas import (
    MOST_CONTEXT,
    DocumentAnswer,
    IndexAnswer,
    IndexList,
    PolicyAnswer,
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
    "/{index_id}", responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 503)}
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


@policy_router.get(
    "/{policy_id}", responses={200: {"model": PolicyAnswer}, **problems(401, 403, 404)}
)
def show_policy(policy_id: str) -> Response:
    """One policy, or a preset of it (`decon-default:olmo-web`)."""
    spec = known_policies().get(policy_id)
    if spec is None:
        raise RequestError(404, "no such policy", hint="GET /v1/policies lists them")
    return JSONResponse(_policy_answer(spec))


def _policy_answer(spec: PolicySpec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint()}


document_router = APIRouter(
    prefix="/v1/documents",
    tags=["documents"],
    default_response_class=Response,
    dependencies=[Depends(Needs("read-documents"))],
)

_MOST = (1 << 53) - 1
Offset = Annotated[int, Query(ge=0, le=_MOST)]


@document_router.get(
    "/{index_id}/{document_id:path}",
    responses={200: {"model": DocumentAnswer}, **problems(401, 403, 404, 409, 413, 422, 503)},
)
def show_document(
    state: CurrentState,
    index_id: str,
    document_id: Annotated[
        str,
        Path(
            min_length=1,
            description="As evidence names it, percent-encoded, slashes too (%2F). Where evidence "
            "names the shard and the row, give them as well: then no id has to be looked for, and "
            "`-` will do.",
            examples=["doc-0043"],
        ),
    ],
    shard: Annotated[str | None, Query(description="The shard it stands in.")] = None,
    row: Annotated[int | None, Query(ge=0, le=_MOST, description="The row there.")] = None,
    start: Annotated[Offset, Query(description="First code point of the span.")] = 0,
    end: Annotated[Offset | None, Query(description="The one behind the span.")] = None,
    context: Annotated[Offset, Query(description="Code points before and after it.")] = 0,
) -> Response:
    """A span of a document, and what stands around it; without `end`, as much as is allowed."""
    most = MOST_CONTEXT
    end = start + most - 2 * min(context, most // 2) if end is None else end
    if end < start:
        raise RequestError(422, "the span ends before it starts")
    if end - start + 2 * context > most:
        raise RequestError(413, f"one answer shows at most {most} characters", hint="ask for less")
    if (shard is None) != (row is None):
        raise RequestError(422, "shard and row go together")
    with registry_of(state).snapshot([index_id]) as snapshot:
        place = (
            _place_of(snapshot, document_id)
            if shard is None or row is None
            else _checked(snapshot, document_id, (shard, row))
        )
        answer = _shown(snapshot, place, (start, end), context)
    return JSONResponse(answer)


def _place_of(snapshot: IndexSnapshot, document_id: str) -> tuple[str, int]:
    places = places_of(snapshot.opened, document_id)
    if not places:
        raise _nothing()
    if len(places) > 1:
        raise RequestError(
            409, f"{len(places)} documents have this id", code="ambiguous",
            hint="say which by shard and row, as evidence names them",
        )  # fmt: skip
    return places[0]


def _checked(snapshot: IndexSnapshot, document_id: str, place: tuple[str, int]) -> tuple[str, int]:
    meta = document_at(snapshot.opened, place)
    if meta is None or document_id not in {"-", meta.document_id or f"{place[0]}:{place[1]}"}:
        raise _nothing()
    return place


def _nothing() -> RequestError:
    return RequestError(
        404, "the index has no such document", code="no-document",
        hint="evidence names the documents there are, by id, shard and row",
    )  # fmt: skip


def _shown(
    snapshot: IndexSnapshot, place: tuple[str, int], span: tuple[int, int], context: int
) -> dict[str, Any]:
    text = quote(snapshot.opened, [place]).get(place)
    meta = document_at(snapshot.opened, place)
    if text is None or meta is None:
        raise RequestError(
            503, "its shard is gone, or is not what was indexed", code="shard",
        )  # fmt: skip
    start, end = (min(offset, len(text)) for offset in span)
    return {
        "index": snapshot.names[0],
        "state": snapshot.states[0],
        "document_id": meta.document_id or f"{place[0]}:{place[1]}",
        "shard": place[0],
        "row": place[1],
        "url": meta.url,
        "date": meta.date,
        "source": meta.source,
        "n_characters": len(text),
        "start": start,
        "end": end,
        "text": text[start:end],
        "before": text[max(start - context, 0) : start],
        "after": text[end : end + context],
    }
