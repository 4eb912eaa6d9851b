"""Schemas of `POST /v1/check`; field names are those of the result tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from contam.benchmark.field_names import plain
from contam.benchmark.fields import RowError
from contam.benchmark.items import BenchItem
from contam.benchmark.one_item import read_item
from contam.detect.labels import SHOWN
from contam.detect.policies.verdict import Verdict
from contam.server.schemas.common import Open, Strict

Name = Annotated[str, Field(min_length=1, max_length=512)]
Turns: TypeAlias = str | list[Any] | dict[str, Any]

_AS_READ: Final = (
    "benchmark", "split", "passage", "question", "choices", "answer", "answer_index",
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
    field of the part's own name is not there, and further fields are passed over.

    question, passage  a text, or turns of which those of the user count
    choices       texts, or records as benchmarks have them: `{"label": [...], "text": [...]}`
    answer        the text, or the letter or number of a choice
    answer_index  0-based place of the right choice, -1 if it is not known
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

    _read: BenchItem = PrivateAttr()

    @model_validator(mode="after")
    def _as_files_are_read(self) -> Self:
        record = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            found = read_item(record, self.benchmark)
        except RowError as error:
            message = error.statement.without_quotes().tell()
            wrong = InitErrorDetails(
                type=PydanticCustomError("value_error", "{error}", {"error": message}),
                loc=(plain(error.field),) if error.field else (),
                input=None,
            )
            raise ValidationError.from_exception_data("Item", [wrong]) from None
        name = self.id if isinstance(self.id, str) else found.item_id
        self._read = replace(found, benchmark=self.benchmark, split=self.split, item_id=name)
        return self

    @property
    def read(self) -> BenchItem:
        """The item, as the library has it."""
        return self._read

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        item = self._read
        return {"id": item.item_id, **{name: getattr(item, name) for name in _AS_READ}}


class HashedPart(Strict):
    """One part of an item as `contam hash` writes it.

    keys  the 40-bit keys of its grams in order, five bytes each, highest first, as Base64
    bits  the four highest bits of each token's hash, as a hexadecimal digit each
    """

    keys: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]
    bits: Annotated[str, Field(pattern=r"^[0-9a-f]*$")]


class HashedItem(Strict):
    """One test item without its text."""

    id: Name
    benchmark: Name = "items"
    split: Annotated[str, Field(max_length=512)] = ""
    parts: dict[Literal["passage", "question", "choices", "answer"], HashedPart]


class Grams(Strict):
    """Hashed items, and how they were hashed: it must be as the index hashes."""

    unit: Name
    normaliser: Name
    gram: Annotated[int, Field(ge=1)]
    tokenizer_sha256: str | None = None
    items: Annotated[tuple[HashedItem, ...], Field(min_length=1)]


class Options(Strict):
    """How much an answer tells.

    evidence       whether documents are named at all
    max_evidence   documents kept for one item; counts stay exact
    context        characters of the document before and after each run
    allow_missing  judge although shards of the corpus could not be read
    """

    evidence: bool = True
    max_evidence: Annotated[int, Field(ge=1)] = 20
    context: Annotated[int, Field(ge=0)] = 0
    allow_missing: bool = False


class CheckRequest(Strict):
    """Items, one text, or hashed items to look for in an index, in several as one, or in all."""

    model_config = ConfigDict(json_schema_extra={"examples": [CHECK_EXAMPLE]})

    index: Name | Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    policies: Annotated[tuple[Name, ...], Field(min_length=1)] = ("contam",)
    items: Annotated[tuple[Item, ...], Field(min_length=1)] | None = None
    text: Annotated[str, Field(min_length=1)] | None = None
    grams: Grams | None = None
    options: Options = Options()

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(kind is not None for kind in (self.items, self.text, self.grams)) != 1:
            raise ValueError("give one of items, text and grams")
        return self

    @property
    def n_items(self) -> int:
        """How many items are asked for."""
        return len(self.items or (self.grams.items if self.grams else (self.text,)))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The indexes asked, None for all."""
        return (self.index,) if isinstance(self.index, str) else self.index


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
    n_tokens: int
    verified: bool
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
    """

    verdicts: list[VerdictAnswer]
    index: list[str]
    states: list[str]
    guarantee_tokens: int
    coverage: dict[str, Any]
    capped: dict[str, Any]
