"""Define job requests and store them for the process that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError

from contam.server.problems.failures import RequestError
from contam.server.problems.known_fields import with_fields
from contam.server.problems.spelling import no_json
from contam.server.schemas.check import Item
from contam.server.schemas.common import Strict

if TYPE_CHECKING:
    from contam.config import Settings

MOST_PERMUTATIONS: Final = 100_000
_MOST_ROWS: Final = 1_000_000

Name = Annotated[str, Field(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(min_length=1, max_length=64)]


class CheckOptions(Strict):
    """How the items are read and judged; the names are those of `contam query`.

    keep_text  whether the result repeats the items' texts
    name       benchmark of items that state none;  split  as `contam query --split`
    mapping    part -> field of the upload, where the usual names do not fit
    """

    allow_missing: bool = False
    max_evidence: Annotated[int, Field(ge=1)] = 20
    keep_text: bool = False
    name: Name | None = None
    split: Name | None = None
    mapping: dict[str, str] | None = None


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


class Inline(Strict):
    """Verdicts as `POST /v1/check` gave them, with what they rest on.

    verdicts  rows of answers, all policies of an item;  coverage  of those answers
    items     the items that were asked; without them logs are joined by their ids alone
    """

    verdicts: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=_MOST_ROWS)]
    coverage: dict[str, Any]
    items: Annotated[list[Item], Field(max_length=_MOST_ROWS)] = Field(default=[])


class RescoreJob(Strict):
    """What models score without the flagged items.

    job       id of a finished check job whose verdicts count
    inline    verdicts in the request itself; with neither, they are uploaded as `verdicts`
    scores    rows of scores in the request itself: id, score, model, as in a plain table
    policies  judge by these; all that the verdicts hold when empty
    """

    kind: Literal["rescore"] = "rescore"
    job: Name | None = None
    inline: Inline | None = None
    scores: Annotated[list[dict[str, Any]], Field(max_length=_MOST_ROWS)] | None = None
    policies: Annotated[list[Name], Field(max_length=64)] = Field(default=[])
    options: RescoreOptions = RescoreOptions()


AnyJob = Annotated[CheckJob | RescoreJob, Field(discriminator="kind")]
_ANY: Final[TypeAdapter[CheckJob | RescoreJob]] = TypeAdapter(AnyJob)
_RESCORE: Final = TypeAdapter(RescoreJob)


def parse_job(body: bytes, settings: Settings, *, rescore: bool = False) -> CheckJob | RescoreJob:
    """The request that a body spells.

    rescore  only a re-scoring is taken, and `kind` need not be named

    Raises RequestError for what is no JSON or beyond a limit, RequestValidationError else.
    """
    adapter: TypeAdapter[Any] = _RESCORE if rescore else _ANY
    models: object = RescoreJob if rescore else CheckJob | RescoreJob
    try:
        asked: CheckJob | RescoreJob = adapter.validate_json(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        if found[0]["type"] == "json_invalid":
            raise no_json(body) from None
        raise RequestValidationError(with_fields(models, found)) from None
    if isinstance(asked, CheckJob) and asked.options.max_evidence > settings.max_evidence:
        raise RequestError(413, f"max_evidence: {settings.max_evidence} is the most")
    return asked
