"""A model of a few words, installed as the package that holds the real one is."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

#: Words that say the same have nearly the same vector.
SAME = (
    ("buys", "purchases"),
    ("orchard", "plantation"),
    ("pears", "fruit"),
    ("basket", "hamper"),
    ("neighbour", "friend"),
)
PLAIN = """
merchant copper lantern harbour velvet curtain anchor barrel cinnamon saddle marble violin kettle
parcel feather thimble glacier meadow canyon turbine
"""
COMMON = "a the of in and how many at each to for with there has"
_DIMENSIONS = 24


def install(folder: Path, seed: int = 7) -> Path:
    """Write the package; returns a policy file that names the model by its digests."""
    rng = np.random.default_rng(seed)
    words = {"[none]": np.zeros(_DIMENSIONS)}
    for first, second in SAME:
        words[first] = _long(rng.normal(size=_DIMENSIONS), 14)
        words[second] = words[first] + _long(rng.normal(size=_DIMENSIONS), 3)
    words |= {word: _long(rng.normal(size=_DIMENSIONS), 13) for word in PLAIN.split()}
    words |= {word: _long(rng.normal(size=_DIMENSIONS), 2) for word in COMMON.split()}
    table = np.stack(list(words.values())).astype("<f4")
    vocabulary = {word: at for at, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[none]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    head = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "embedding.weight": {
                "dtype": "F32",
                "shape": list(table.shape),
                "data_offsets": [0, table.nbytes],
            },
        }
    ).encode()
    files = {
        "weights/l2_supercat_256.safetensors": len(head).to_bytes(8, "little")
        + head
        + table.tobytes(),
        "tokenizers/l2_supercat_tokenizer_config.json": tokenizer.to_str().encode(),
        "__init__.py": b"raise ImportError('nothing of the package may run')\n",
    }
    for name, content in files.items():
        path = folder / "wordllama" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    weights, tokens = (hashlib.sha256(content).hexdigest() for content in list(files.values())[:2])
    policy = folder / "small.toml"
    policy.write_text(
        'base = "contam-meaning"\nid = "small-meaning"\n'
        "thresholds = {suspect = 0.7}\n"
        "[parameters]\nrare_from = 10\ncode_similarity = 0.68\n"
        f'weights = "{weights}"\ntokenizer = "{tokens}"\n',
        encoding="utf-8",
    )
    return policy


def _long(vector: np.ndarray, length: float) -> np.ndarray:
    return vector / np.linalg.norm(vector) * length
