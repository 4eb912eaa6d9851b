"""Small invented items and a way to write them down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class WriteRows(Protocol):
    def __call__(self, name: str, rows: Sequence[Mapping[str, object]]) -> Path: ...


@pytest.fixture
def write_jsonl(tmp_path: Path) -> WriteRows:
    """Writes rows as JSON lines under a name in the test's folder."""

    def write(name: str, rows: Sequence[Mapping[str, object]]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8"
        )
        return path

    return write


@pytest.fixture
def rivers() -> list[dict[str, object]]:
    """Three items without ids in the form of a plain question-and-answer benchmark."""
    return [
        {"question": "Which river of Veltmark runs north?", "answer": "the Oder Brook"},
        {"question": "How long is the Oder Brook in miles?", "answer": "41"},
        {"question": "Who first mapped “Veltmark’s” springs?", "answer": "Ilse Quarn"},
    ]
