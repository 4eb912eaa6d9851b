"""Shared schema parts: strict models and problem documents."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A model of a request: an unknown field is a mistake, and a number is no text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Open(BaseModel):
    """A model of an answer: later versions may add fields."""

    model_config = ConfigDict(extra="allow")


class Wrong(Open):
    """One thing that does not fit, by its place in the request; never with what stood there."""

    place: str
    message: str
    kind: str


class Problem(Open):
    """An RFC 9457 problem document."""

    type: str = Field(examples=["urn:contam:problem:too-large"])
    title: str = Field(examples=["The request is too large"])
    status: int = Field(examples=[413])
    detail: str = Field(examples=["300 items, and one check takes 256"])
    code: str = Field(examples=["too-large"])
    hint: str = Field(examples=["make a job of it: POST /v1/jobs"])
    request_id: str = Field(examples=["6f1e0c52b7d94a0e"])
    errors: tuple[Wrong, ...] = ()


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What `responses=` of a route says of the failures that it can give."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {
            "description": "A problem document.",
            "content": {"application/problem+json": {"schema": schema}},
        }
        for status in statuses
    }
