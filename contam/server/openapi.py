"""Write the OpenAPI 3.1 document, the same bytes as `service/openapi.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from contam.server.jobs.schemas import CheckJob, RescoreJob
from contam.server.schemas import CheckRequest, Problem, problems

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

#: Models of bodies that handlers read themselves; FastAPI does not know of them.
_READ_BY_HANDLERS: tuple[type[BaseModel], ...] = (CheckRequest, CheckJob, RescoreJob, Problem)
_NEVER_SENT: Final = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Let the app describe its bodies and failures in full."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]  # the documented way to extend it


def _described(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title,
        version=app.version,
        summary="Which test items does a pretraining corpus already contain?",
        routes=app.routes,
    )
    _, found = models_json_schema(
        [(model, "validation") for model in _READ_BY_HANDLERS],
        ref_template="#/components/schemas/{model}",
    )
    components = schema.setdefault("components", {}).setdefault("schemas", {})
    components.update(found["$defs"])
    for name in _NEVER_SENT:
        components.pop(name, None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            _describe_problems(operation["responses"])
    return schema


def _describe_problems(responses: dict[str, Any]) -> None:
    """What the framework says of requests that do not fit is not what the service answers."""
    schema = (
        responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    )
    if schema.get("$ref", "").endswith("/HTTPValidationError"):
        responses["422"] = problems(422)[422]
