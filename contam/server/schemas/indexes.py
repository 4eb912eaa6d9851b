"""Schemas of indexes, policies and documents."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from contam.server.schemas.common import Open


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


class DocumentAnswer(Open):
    """A span of a document; offsets count code points of the text that was indexed."""

    index: str
    state: str
    document_id: str
    shard: str
    row: int
    url: str | None
    date: str | None
    source: str | None
    n_characters: int
    start: int
    end: int
    text: str
    before: str
    after: str
