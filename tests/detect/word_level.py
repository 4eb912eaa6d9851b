"""Write a `tokenizer.json` whose tokens are whole words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def save_word_level(path: Path, vocab: Mapping[str, int], pattern: str) -> Path:
    """A tokenizer that splits by a pattern and looks the pieces up; `[UNK]` for all others."""
    split = {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip
    state = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": split, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }  # fmt: skip
    path.write_text(json.dumps(state))
    return path
