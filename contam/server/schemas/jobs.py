"""Schemas of jobs and the parts of an upload."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from contam.server.schemas.common import Open


class ProgressAnswer(Open):
    """How far a running job is.

    done_bytes, total_bytes  of the documents to be read; about as many as are shown
    """

    phase: str = Field(examples=["searching"])
    done_bytes: int
    total_bytes: int
    share: float = Field(ge=0, le=1)


class JobErrorAnswer(Open):
    """Why a job failed."""

    code: str = Field(examples=["benchmark"])
    message: str
    hint: str


class JobAnswer(Open):
    """A job.

    ended     whether its state is final;  expires  when it and its result are deleted
    attempts  how often it was begun
    coverage, guarantee_tokens, capped, notes  what its verdicts rest on, once it is done
    counts    items by benchmark, policy and label, once a check is done
    """

    id: str = Field(examples=["7d0f5ad2c1a94be83c60ab12"])
    kind: Literal["check", "rescore"]
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    ended: bool
    created: str = Field(examples=["2026-05-04T09:30:00Z"])
    started: str | None
    finished: str | None
    expires: str | None
    attempts: int
    index: list[str]
    policies: list[str]
    n_items: int | None
    n_bytes: int
    progress: ProgressAnswer | None
    coverage: dict[str, Any] | None
    counts: dict[str, Any] | None
    guarantee_tokens: int | None
    capped: dict[str, Any] | None
    notes: list[str]
    error: JobErrorAnswer | None
    links: dict[str, str]


class JobList(Open):
    """Jobs, the newest first.

    next  the `cursor` of the jobs behind these; null when there are none
    """

    jobs: list[JobAnswer]
    next: int | None


class RescoreAnswer(Open):
    """A re-scoring: the tables of `contam rescore` by name, row by row.

    job      its id, under which the tables can be had again
    summary  the same as a page of Markdown
    run      how it was made, and the coverage of the verdicts
    """

    job: str
    tables: dict[str, list[dict[str, Any]]]
    summary: str
    run: dict[str, Any]


def multipart(field: str, models: tuple[str, ...], files: dict[str, str]) -> dict[str, Any]:
    """OpenAPI of a body of parts: one of JSON, the others files.

    models  names of the schemas that the part `field` may have;  files  name -> what it holds
    """
    references = [{"$ref": f"#/components/schemas/{model}"} for model in models]
    parts: dict[str, Any] = {
        field: references[0] if len(references) == 1 else {"oneOf": references}
    }
    for name, text in files.items():
        file = {"type": "string", "format": "binary"}
        parts[name] = {"type": "array", "items": file, "description": text}
    return {
        "schema": {"type": "object", "properties": parts, "required": [field]},
        "encoding": {field: {"contentType": "application/json"}},
    }
