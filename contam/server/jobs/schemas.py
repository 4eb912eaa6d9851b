"""Define the requests for jobs, and a job as answers show it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from contam.server.body import read_json
from contam.server.schemas import MOST_EVIDENCE, Open, Strict

MOST_PERMUTATIONS: Final = 100_000

Name = Annotated[str, Field(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(min_length=1, max_length=64)]


class CheckOptions(Strict):
    """How the items are read and judged; the names are those of `contam query`.

    keep_text  whether the result repeats the items' texts
    name       benchmark of items that state none;  split  as `contam query --split`
    mapping    part -> field of the upload, where the usual names do not fit;  ignore  fields of
               it that are no part of an item
    """

    allow_missing: bool = False
    max_evidence: Annotated[int, Field(ge=1, le=MOST_EVIDENCE)] = 20
    keep_text: bool = False
    name: Name | None = None
    split: Name | None = None
    mapping: dict[str, str] | None = None
    ignore: tuple[Name, ...] = ()


class CheckJob(Strict):
    """Judge the uploaded items by what the indexes hold of them."""

    kind: Literal["check"] = "check"
    index: Name | Names | None = None
    policies: Names = Field(default=["contam"])
    options: CheckOptions = CheckOptions()

    @property
    def names(self) -> list[str] | None:
        """The indexes asked, None for all."""
        return [self.index] if isinstance(self.index, str) else self.index


class RescoreOptions(Strict):
    """What decides the figures; the names are those of `contam rescore`."""

    references: list[Name] = Field(default=[])
    columns: dict[str, str] | None = None
    benchmark_as: dict[str, str] | None = None
    least: Annotated[int, Field(ge=1)] = 50
    permutations: Annotated[int, Field(ge=99, le=MOST_PERMUTATIONS)] = 10_000
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    allow_unmatched: bool = False
    allow_partial: bool = False
    skip_damaged: bool = False
    separate_runs: bool = False
    lower_is_better: list[Name] = Field(default=[])
    higher_is_better: list[Name] = Field(default=[])
    metrics: list[Name] = Field(default=[])
    all_metrics: bool = False
    mixed_setups: bool = False


class RescoreJob(Strict):
    """What models score without the flagged items, by logs that are uploaded.

    job       id of a finished check job whose verdicts count; without it, they are uploaded
    policies  judge by these; all that the verdicts hold when empty
    """

    kind: Literal["rescore"] = "rescore"
    job: Name | None = None
    policies: Annotated[list[Name], Field(max_length=64)] = Field(default=[])
    options: RescoreOptions = RescoreOptions()


_ANY: Final[TypeAdapter[CheckJob | RescoreJob]] = TypeAdapter(
    Annotated[CheckJob | RescoreJob, Field(discriminator="kind")]
)


def parse_job(body: bytes) -> CheckJob | RescoreJob:
    """The request that a body spells. Raises RequestError or RequestValidationError."""
    return read_json(_ANY, body)


class ProgressAnswer(Open):
    """What a running job does, and how much of the documents to be read it has read."""

    phase: str = Field(examples=["searching"])
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
    coverage  what its verdicts rest on, once it is done
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
    progress: ProgressAnswer | None
    coverage: dict[str, Any] | None
    counts: dict[str, Any] | None
    error: JobErrorAnswer | None


class JobList(Open):
    """Jobs, the newest first."""

    jobs: list[JobAnswer]


def form_schema(files: dict[str, str]) -> dict[str, Any]:
    """OpenAPI of the body of a job: one part of JSON, the others files.

    files  name of a part -> what it holds
    """
    models = ("CheckJob", "RescoreJob")
    parts: dict[str, Any] = {
        "job": {"oneOf": [{"$ref": f"#/components/schemas/{model}"} for model in models]}
    }
    for name, text in files.items():
        file = {"type": "string", "format": "binary"}
        parts[name] = {"type": "array", "items": file, "description": text}
    return {
        "schema": {"type": "object", "properties": parts, "required": ["job"]},
        "encoding": {"job": {"contentType": "application/json"}},
    }
