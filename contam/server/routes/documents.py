"""Serve the text of a document around a span, for reviewing evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Path, Query, Response

from contam.detect.indexed.quote import document_at, places_of, quote
from contam.server.middleware.auth import Needs
from contam.server.problems.failures import RequestError
from contam.server.schemas.common import problems
from contam.server.schemas.indexes import DocumentAnswer
from contam.server.state import CurrentState, registry_of

if TYPE_CHECKING:
    from contam.server.indexes.registry import IndexSnapshot

router = APIRouter(
    prefix="/v1/documents", tags=["documents"], dependencies=[Depends(Needs("read-documents"))]
)

_MOST = (1 << 53) - 1
Offset = Annotated[int, Query(ge=0, le=_MOST)]


@router.get(
    "/{index_id}/{document_id:path}",
    response_class=Response,
    responses={200: {"model": DocumentAnswer}, **problems(401, 403, 404, 409, 413, 422, 429, 503)},
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
    most = state.settings.max_context
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
    return Response(
        orjson.dumps(answer),
        headers={"ETag": snapshot.etag, "Cache-Control": "no-store"},
        media_type="application/json",
    )


def _place_of(snapshot: IndexSnapshot, document_id: str) -> tuple[str, int]:
    places = places_of(snapshot.opened, document_id)
    if not places:
        raise _nothing()
    if len(places) > 1:
        raise RequestError(
            409, f"{len(places)} documents have this id", code="ambiguous",
        )  # fmt: skip
    return places[0]


def _checked(snapshot: IndexSnapshot, document_id: str, place: tuple[str, int]) -> tuple[str, int]:
    meta = document_at(snapshot.opened, place)
    if meta is None or document_id not in {"-", meta.document_id or f"{place[0]}:{place[1]}"}:
        raise _nothing()
    return place


def _nothing() -> RequestError:
    return RequestError(404, "the index counts no such document", code="no-document")


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
