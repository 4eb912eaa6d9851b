"""Define requests and answers; field names are those of the result tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from contam.benchmark.fields import RowError
from contam.benchmark.items import BenchItem, SourceFile
from contam.benchmark.mapping import plain
from contam.benchmark.rows import USUAL_NAMES, read_record
from contam.detect.labels import SHOWN
from contam.detect.policies.verdict import Verdict

KNOWN_NAMES: Final = set(USUAL_NAMES)
"""Names of the fields of every request: others may be somebody's text, and are never told."""


class Strict(BaseModel):
    """A model of a request: an unknown field is a mistake, and a number is no text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        KNOWN_NAMES.update(cls.model_fields)


class Open(BaseModel):
    """A model of an answer: later versions may add fields."""

    model_config = ConfigDict(extra="allow")


class Wrong(Open):
    """One thing that does not fit, as pydantic says it; unknown names in its place are `?`."""

    loc: tuple[str | int, ...]
    type: str
    msg: str


class Problem(Open):
    """An RFC 9457 problem document."""

    type: str = Field(examples=["urn:contam:problem:too-large"])
    title: str = Field(examples=["The request is too large"])
    status: int = Field(examples=[413])
    detail: str = Field(examples=["too many items: 300 (limit 256)"])
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


Name = Annotated[str, Field(min_length=1, max_length=512)]
Turns: TypeAlias = str | list[Any] | dict[str, Any]

_AS_READ: Final = (
    "benchmark", "split", "passage", "question", "choices", "answer", "answer_index",
    "incomplete",
)  # fmt: skip

ITEM_EXAMPLE: dict[str, Any] = {
    "id": "brook-001",
    "question": "A mill grinds 14 sacks before noon and 9 after. How many does it grind in a day?",
    "answer": "23",
}
CHECK_EXAMPLE: dict[str, Any] = {"index": "corpus", "policies": ["contam"], "items": [ITEM_EXAMPLE]}


class Item(Strict):
    """One test item, by its parts; `benchmark`, `split` and `id` together name it.

    A row of a benchmark file can be sent as it is, and is read as `contam query` reads that file:
    fields under other usual names (`options`, `context`, `label`, ...) are parts, too, where the
    field of the part's own name is not there. A text of an unknown name is passage; longer than all
    else it makes the item incomplete, for one row does not tell whether it is what is asked.

    question, passage  a text, or turns: those of the user count, where there are any
    choices       texts, or records as benchmarks have them: `{"label": [...], "text": [...]}`
    answer        the text, or the letter or number of a choice
    answer_index  0-based place of the right choice, -1 if it is not known
    incomplete    why the item is not all here: it is then never called clean
    """

    model_config = ConfigDict(extra="allow")

    id: Name | int
    benchmark: Name = "items"
    split: Annotated[str, Field(max_length=512)] = ""
    passage: Turns | None = None
    question: Turns
    choices: list[Any] | dict[str, Any] | None = None
    answer: Any = None
    answer_index: int | str | None = None
    incomplete: Annotated[str, Field(max_length=512)] = ""

    _read: BenchItem = PrivateAttr()
    _source: SourceFile = PrivateAttr()

    @model_validator(mode="after")
    def _as_files_are_read(self) -> Self:
        own = {*self.model_fields_set} - {"incomplete"}
        record = {name: getattr(self, name) for name in own}
        try:
            found, self._source = read_record(record, self.benchmark)
        except RowError as error:
            message = error.statement.without_quotes().tell()
            wrong = InitErrorDetails(
                type=PydanticCustomError("value_error", "{error}", {"error": message}),
                loc=(plain(error.field),) if error.field else (),
                input=None,
            )
            raise ValidationError.from_exception_data("Item", [wrong]) from None
        name = self.id if isinstance(self.id, str) else found.item_id
        self._read = replace(
            found,
            benchmark=self.benchmark,
            split=self.split,
            item_id=name,
            incomplete=self.incomplete or found.incomplete,
        )
        return self

    @property
    def read(self) -> BenchItem:
        """The item, as the library has it."""
        return self._read

    @property
    def source(self) -> SourceFile:
        """Which of its fields were read."""
        return self._source

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        item = self._read
        return {"id": item.item_id, **{name: getattr(item, name) for name in _AS_READ}}


MOST_EVIDENCE: Final = 100
"""Documents that an answer may give as evidence of one item."""

MOST_CONTEXT: Final = 20_000
"""Characters of a document before and after each run."""


class Options(Strict):
    """How much an answer tells.

    evidence       whether documents are named at all
    max_evidence   documents kept for one item; counts stay exact
    context        characters of the document before and after each run
    allow_missing  judge although shards of the corpus could not be read
    """

    evidence: bool = True
    max_evidence: Annotated[int, Field(ge=1, le=MOST_EVIDENCE)] = 20
    context: Annotated[int, Field(ge=0, le=MOST_CONTEXT)] = 0
    allow_missing: bool = False


class CheckRequest(Strict):
    """Items, or one text, to look for in an index, in several as one, or in all."""

    model_config = ConfigDict(json_schema_extra={"examples": [CHECK_EXAMPLE]})

    # Lists: of a tuple the validator also says that it is empty where an entry is wrong.
    index: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    policies: Annotated[list[Name], Field(min_length=1)] = Field(default=["contam"])
    items: Annotated[list[Item], Field(min_length=1)] | None = None
    text: Annotated[str, Field(min_length=1)] | None = None
    options: Options = Options()

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.items is None) == (self.text is None):
            raise ValueError("give either items or text")
        return self

    @property
    def n_items(self) -> int:
        """How many items are asked for."""
        return len(self.items or (self.text,))

    @property
    def names(self) -> list[str] | None:
        """The indexes asked, None for all."""
        return [self.index] if isinstance(self.index, str) else self.index


class Evidence(Open):
    """One run of words that an item part shares with a document; offsets count code points."""

    part: Literal["passage", "question", "choices", "answer"]
    document_id: str
    shard: str
    row: int
    url: str | None
    date: str | None
    source: str | None
    alignment: int
    item_start: int
    item_end: int
    document_start: int
    document_end: int
    document_token: int | None
    n_tokens: int
    similarity: float | None
    answer_mark: Literal["letter", "number"] | None
    item_text: str | None = None
    document_text: str | None = None
    before: str | None = None
    after: str | None = None


if TYPE_CHECKING:
    VerdictAnswer = Open
else:
    # A service answers with every column, whatever files may lack.
    VerdictAnswer = create_model(
        "VerdictAnswer",
        __base__=Open,
        __module__=__name__,
        __doc__="What one policy says about one item.",
        **{name: (hint, ...) for name, hint in get_type_hints(Verdict).items()}
        | {"label": (Literal[SHOWN], ...)},
        evidence=(tuple[Evidence, ...], ()),
    )


class CheckAnswer(Open):
    """Verdicts, and what they rest on.

    index, states     the indexes asked, and the state of each that answered
    guarantee_tokens  runs of so many tokens are always found
    coverage          what of the corpus they answer for
    capped            wording so frequent that an index keeps only some of its documents
    read              how each benchmark was read: the fields of its parts, fields that are unread
                      (with the largest share of an item's text) or left out, incomplete items
    """

    verdicts: list[VerdictAnswer]
    index: list[str]
    states: list[str]
    guarantee_tokens: int
    coverage: dict[str, Any]
    capped: dict[str, Any]
    read: dict[str, Any]


class IndexAnswer(Open):
    """An index that is served.

    id, state         its name in requests, and the state that answers
    unit, gram, stride, guarantee_tokens  runs of `guarantee_tokens` of that unit are always found
    corpus            what was named as corpus when it was built
    coverage          what of that it answers for
    n_text_bytes, n_index_bytes  raw text, and all files of the index
    dates             first and last day of its documents' dates
    n_unreadable_dates  documents with a date that cannot be read
    """

    id: str = Field(examples=["corpus"])
    state: str = Field(examples=["0c7c1f6f6ad1c2c9"])
    recipe: str
    unit: str
    normaliser: str
    gram: int
    tokenizer_sha256: str | None
    stride: int
    guarantee_tokens: int
    near_copies: bool
    corpus: list[str]
    coverage: dict[str, Any]
    n_segments: int
    n_documents: int
    n_tokens: int
    n_text_bytes: int
    n_index_bytes: int
    capped_grams: int
    dates: list[str] | None
    n_unreadable_dates: int


class IndexList(Open):
    """The indexes, in the order in which they answer as one."""

    indexes: list[IndexAnswer]


class PolicyAnswer(Open):
    """A definition of contamination, in full."""

    id: str
    title: str
    description: str
    source: str
    version: str
    fingerprint: str
    unit: str
    n: int
    approximate: bool


class PolicyList(Open):
    """The policies; presets are behind the policy that they change."""

    policies: list[PolicyAnswer]


MOST_PERMUTATIONS: Final = 100_000

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
    """Judge items by what the indexes hold of them.

    benchmarks  names of `contam benchmarks`, which the service reads; nothing is uploaded then
    """

    kind: Literal["check"] = "check"
    benchmarks: Names | None = None
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

    job       id of a finished check whose verdicts count
    policies  judge by these; all that the verdicts hold when empty
    """

    kind: Literal["rescore"] = "rescore"
    job: Name
    policies: Annotated[list[Name], Field(max_length=64)] = Field(default=[])
    options: RescoreOptions = RescoreOptions()


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
