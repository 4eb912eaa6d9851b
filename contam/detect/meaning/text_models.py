"""Vectors of whole texts, from an ONNX model in a local folder.

Rare words still come from a static model: their lengths say how much a word says, which a model of
texts does not. It replaces the similarity alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.detect.meaning.models import damaged, tokenizer_of
from contam.errors import PolicyError, Public, Remedy
from contam.extras import require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from contam.detect.meaning.vectors import StaticEmbedder
    from contam.detect.model import Float32s

POOLINGS: Final = ("mean", "cls")

_MOST_TOKENS: Final = 512
_POOLED: Final = 2
_BY_TOKEN: Final = 3


class OnnxEmbedder:
    """The words of a static model, and texts by a model that reads them whole.

    The model takes `input_ids`, and where it has them `attention_mask` and `token_type_ids`. Its
    first output, or the one called `sentence_embedding`, is a vector of the text, or one for each
    token. Of a longer text than 512 tokens the end is not read.
    """

    def __init__(
        self,
        words: StaticEmbedder,
        model: tuple[Path, bytes],
        tokenizer: tuple[Path, bytes],
        pooling: str,
    ) -> None:
        """Raises MissingExtraError without onnxruntime, ConfigError for files that are no model."""
        if pooling not in POOLINGS:
            raise PolicyError(
                "text_pooling cannot be {!r}", pooling,
                remedy=Remedy.CHOOSE_KNOWN(known=Public(", ".join(POOLINGS))),
            )  # fmt: skip
        self._words, self._pooling = words, pooling
        self._session = _session(*model)
        self._tokenizer: Tokenizer = tokenizer_of(*tokenizer)
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._inputs = [one.name for one in self._session.get_inputs()]
        outputs = [one.name for one in self._session.get_outputs()]
        self._output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
        if not set(self._inputs) <= {"input_ids", "attention_mask", "token_type_ids"}:
            raise damaged(model[0], "it asks for more than the tokens of a text")

    @cached_property
    def n_dimensions(self) -> int:
        """Numbers of the vector of a text."""
        return len(self.text_vector("text"))

    def word_vectors(self, words: Sequence[str]) -> Float32s:
        """The vectors of the static model, by which words are rare."""
        return self._words.word_vectors(words)

    def text_vector(self, text: str) -> Float32s:
        """The vector of a text, float32[dimensions], of length 1; zeros for one without tokens."""
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], np.int64)
        known = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        if not ids.size:
            return np.zeros(self.n_dimensions, np.float32)
        (found,) = self._session.run([self._output], {name: known[name] for name in self._inputs})
        if found.ndim == _BY_TOKEN:
            found = found[:, 0] if self._pooling == "cls" else found.mean(axis=1)
        vector: Float32s = np.asarray(found, np.float32).reshape(-1)
        length = np.sqrt((vector * vector).sum())
        return vector / length if length > 0 else vector


def _session(path: Path, content: bytes) -> Any:  # noqa: ANN401 - the library has no types
    """A model, run by one thread so that its numbers are the same wherever it runs here."""
    require("onnx")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4
    try:
        # From bytes: those whose digest is known, and no file beside them.
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # What the library raises has no common class.
    except Exception as error:
        raise damaged(path, "not an ONNX model in one file") from error
    if any(len(one.shape) not in {_POOLED, _BY_TOKEN} for one in session.get_outputs()[:1]):
        raise damaged(path, "it gives no vectors of texts")
    return session
