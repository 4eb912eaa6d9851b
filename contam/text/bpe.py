"""Tokenise with any Hugging Face `tokenizer.json`: unit `bpe-1` of docs/normaliser.md.

A text is cut at white space other than one single space, each stretch is encoded by itself with
the same space before it, and every token gets a hash of its id and its bytes of the original text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import ConfigError, Place, Plain, UsageError
from contam.text.token_hash import hash_chunks, token_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

_GIVE_UNIT_OR_TOKENIZER: Final = "give word, char or the path of a Hugging Face tokenizer.json"


UNIT_VERSION: Final = "bpe-1"
BUILT_IN_UNITS: Final = ("word", "char")

#: The code points with the Unicode property White_Space, apart from the space itself.
_OTHER_BLANKS: Final = "\t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BREAK: Final = re.compile(f"[ {_OTHER_BLANKS}]{{2,}}|[{_OTHER_BLANKS}]")
#: A stretch is cut when it is longer than this: the library takes about 200 bytes a byte of text.
LONGEST_STRETCH: Final = 1 << 16
_ENCODE_AT_ONCE: Final = 1 << 18
_SPACE: Final = 0x20

#: Top byte of what is hashed for a known token, first byte of what is hashed for an unknown one:
#: no UTF-8 text holds it, so neither can be taken for a word.
_MARK: Final = 0xFF
_MARK_BYTE: Final = bytes([_MARK])
_MOST_REMEMBERED: Final = 64

_PROBES: Final = ("the", "What", "a", "of", "Which", "number", "0", "12", "def", "x", "und", "是")


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Tokens of consecutive texts.

    hashes  uint64[t], never 0
    spans   int32[t, 2], first byte of each token in its own text and the byte behind its last;
            whole code points, never empty, starts ascending; neighbours may share a code point
    starts  int64[texts + 1], the tokens of text i are those from starts[i] to starts[i + 1]
    """

    hashes: NDArray[np.uint64]
    spans: NDArray[np.int32]
    starts: NDArray[np.int64]


def hash_ids(ids: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The frozen hash of token ids: `token_hash` of seven bytes of the id, low first, and 0xFF."""
    return hash_chunks(ids.astype(np.uint64) | np.uint64(_MARK << 56))


def hash_unknown(text: bytes) -> int:
    """Hash of a text that the vocabulary lacks: equal for equal bytes, not for all of them."""
    return _hash_short(text) if len(text) <= _MOST_REMEMBERED else token_hash(_MARK_BYTE + text)


@lru_cache(maxsize=1 << 14)
def _hash_short(text: bytes) -> int:
    return token_hash(_MARK_BYTE + text)


class FileTokenizer:
    """A `tokenizer.json`, ready to encode from several threads at once.

    path     as it was given
    sha256   of the file's bytes, hexadecimal
    n_ids    size of the vocabulary, added tokens included
    """

    def __init__(self, path: str, sha256: str, tokenizer: Tokenizer, unknown: int | None) -> None:
        self.path = path
        self.sha256 = sha256
        self.n_ids: int = tokenizer.get_vocab_size()
        self._tokenizer = tokenizer
        self._unknown = unknown
        self._prefix = self._choose_prefix()

    @property
    def fingerprint(self) -> dict[str, str]:
        """What a record of a run must hold to tell whether two runs had the same tokens."""
        return {"unit_version": UNIT_VERSION, "sha256": self.sha256}

    def encode(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> TokenBatch:
        """Tokens of concatenated texts: text i is data[offsets[i] : offsets[i + 1]].

        data  uint8[n], valid UTF-8. Raises ConfigError when the tokenizer refuses a text.
        """
        n_texts = len(offsets) - 1
        hashes: list[NDArray[np.uint64]] = []
        spans: list[NDArray[np.int32]] = []
        counts = np.zeros(n_texts, np.int64)
        first = 0
        while first < n_texts:
            limit = offsets[first] + _ENCODE_AT_ONCE
            last = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
            for piece in self._encode_group(data, offsets[first : last + 1]):
                hashes.append(piece.hashes)
                spans.append(piece.spans)
                counts[first:last] += np.diff(piece.starts)
            first = last
        return TokenBatch(
            np.concatenate(hashes) if hashes else np.empty(0, np.uint64),
            np.concatenate(spans) if spans else np.empty((0, 2), np.int32),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        )

    def encode_text(self, text: str) -> TokenBatch:
        """Tokens of one text."""
        raw = text.encode()
        data = np.frombuffer(raw or b"\0", np.uint8)
        return self.encode(data, np.array([0, len(raw)], np.int64))

    def token_ids(self, texts: Sequence[str]) -> list[NDArray[np.uint32]]:
        """The ids that the tokenizer gives each text exactly as it is, special tokens left out.

        Raises ConfigError when the tokenizer refuses a text.
        """
        return [np.array(encoding.ids, np.uint32) for encoding in self._run(list(texts))]

    def single_tokens(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        """Sorted hashes of those of the texts that are one token each."""
        found = [self.encode_text(text).hashes for text in texts]
        single = [hashes for hashes in found if len(hashes) == 1]
        return np.unique(np.concatenate(single)) if single else np.empty(0, np.uint64)

    def _encode_group(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64]
    ) -> Iterator[TokenBatch]:
        """Tokens of a few texts, in several pieces if they are long."""
        raw = data[offsets[0] : offsets[-1]]
        text = raw.tobytes().decode()
        lead = np.flatnonzero((raw & np.uint8(0xC0)) != np.uint8(0x80))
        place = _Places(
            raw=np.append(raw, np.uint8(0)),
            byte=np.append(lead, len(raw)),
            text=(offsets - offsets[0]).astype(np.int64),
        )
        limits = np.searchsorted(lead, place.text).tolist()
        stretches: list[tuple[int, int, int]] = []
        size = 0
        for number, (lo, hi) in enumerate(pairwise(limits)):
            for begin, end in find_stretches(text, lo, hi):
                stretches.append((number, begin, end))
                size += end - begin
                if size >= _ENCODE_AT_ONCE:
                    yield self._encode_stretches(text, stretches, place)
                    stretches, size = [], 0
        if stretches:
            yield self._encode_stretches(text, stretches, place)

    def _encode_stretches(
        self, text: str, stretches: Sequence[tuple[int, int, int]], place: _Places
    ) -> TokenBatch:
        encodings = self._run([self._prefix + text[begin:end] for _, begin, end in stretches])
        counts = [len(encoding) for encoding in encodings]
        total = sum(counts)
        ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.uint32, total)
        pairs = chain.from_iterable(e.offsets for e in encodings)
        points = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * total).reshape(total, 2)
        owner, begin, end = np.repeat(np.array(stretches, np.int64), counts, axis=0).T
        # The library counts code points of what it was given; the space before it is not ours.
        points += (begin - len(self._prefix))[:, None]
        points = np.clip(points, begin[:, None], end[:, None])
        first, last = points[:, 0], points[:, 1]
        first += (first < last) & (place.raw[place.byte[first]] == _SPACE)
        last -= (first < last) & (place.raw[place.byte[last] - 1] == _SPACE)
        keep = first < last
        ids, owner = ids[keep], owner[keep]
        start = np.maximum.accumulate(place.byte[first[keep]])
        stop = np.maximum(place.byte[last[keep]], start + 1)
        hashes = hash_ids(ids)
        if self._unknown is not None:
            raw = place.raw
            for at in np.flatnonzero(ids == self._unknown).tolist():
                hashes[at] = hash_unknown(raw[start[at] : stop[at]].tobytes())
        origin = place.text[owner]
        per_text = np.bincount(owner, minlength=len(place.text) - 1)
        return TokenBatch(
            hashes,
            np.stack([start - origin, stop - origin], axis=1).astype(np.int32),
            np.concatenate([[0], np.cumsum(per_text)]).astype(np.int64),
        )

    def _run(self, texts: list[str]) -> list[Encoding]:
        try:
            return self._tokenizer.encode_batch(texts, add_special_tokens=False)
        except BaseException as error:
            if not is_refusal(error):
                raise
            raise ConfigError(
                "{} cannot encode a text: {}", Place(self.path), Plain(_first_line(error)),
                hint="the tokenizer has no token for it, and none for unknown text",
            ) from error  # fmt: skip

    def _choose_prefix(self) -> str:
        """What makes the first word of a text read like the same word further on.

        One space for most; nothing for a tokenizer that puts a space there by itself.
        """

        def agreeing(prefix: str) -> int:
            alone = self._run([prefix + word for word in _PROBES])
            inside = self._run(["a b " + word for word in _PROBES])
            return sum(
                mid.ids[-len(own.ids) :] == own.ids
                for own, mid in zip(alone, inside, strict=True)
                if own.ids
            )

        return "" if agreeing("") > agreeing(" ") else " "


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Offsets in the bytes of a few texts.

    raw   uint8[n + 1], the bytes and a zero
    byte  int64[code points + 1], first byte of each code point, and n
    text  int64[texts + 1], first byte of each text, and n
    """

    raw: NDArray[np.uint8]
    byte: NDArray[np.int64]
    text: NDArray[np.int64]


def find_stretches(text: str, lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """The stretches of text[lo:hi]: parts whose only white space is single spaces between words.

    One longer than LONGEST_STRETCH is cut at its last space before that length, or there.
    """
    begin = lo
    for gap in _BREAK.finditer(text, lo, hi):
        yield from _cut(text, begin, gap.start())
        begin = gap.end()
    yield from _cut(text, begin, hi)


def _cut(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    if begin < end and text[begin] == " ":
        begin += 1
    if begin < end and text[end - 1] == " ":
        end -= 1
    while end - begin > LONGEST_STRETCH:
        space = text.rfind(" ", begin, begin + LONGEST_STRETCH)
        stop = space if space > begin else begin + LONGEST_STRETCH
        yield begin, stop
        begin = stop + (text[stop] == " ")
    if begin < end:
        yield begin, end


def load_tokenizer(path: str | Path) -> FileTokenizer:
    """Read a `tokenizer.json`, or the one in a folder.

    Raises UsageError when there is no such file, ConfigError when it is no tokenizer.
    """
    name = str(path)
    place = Path(path)
    if place.is_dir():
        place /= "tokenizer.json"
    try:
        raw = place.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            'unit "{}" is neither word nor char nor a file',
            Place(name),
            hint=_GIVE_UNIT_OR_TOKENIZER,
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            "tokenizer file {} cannot be read: {}", Place(place), Plain(reason),
            hint=_GIVE_UNIT_OR_TOKENIZER,
        ) from error  # fmt: skip
    with refusals_named(place):
        tokenizer, unknown = build_tokenizer(raw)
        return FileTokenizer(name, hashlib.sha256(raw).hexdigest(), tokenizer, unknown)


@contextlib.contextmanager
def refusals_named(place: Path) -> Iterator[None]:
    """Raise ConfigError for a file that the library refuses as a tokenizer."""
    try:
        yield
    except ConfigError:
        raise
    except BaseException as error:
        if not is_refusal(error):
            raise
        raise ConfigError(
            "{} is not a tokenizer file: {}", Place(place), Plain(_first_line(error)),
            hint="give the tokenizer.json of a Hugging Face model, as `Tokenizer.save` writes it",
        ) from error  # fmt: skip


def build_tokenizer(raw: bytes) -> tuple[Tokenizer, int | None]:
    """The tokenizer of a file's bytes, without anything random, and the id of unknown text.

    Raises what the library raises, see `is_refusal`.
    """
    # Workers are threads of ours: each encodes on its own thread, so that --workers holds.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    state: Any = json.loads(raw)
    model = state.get("model") if isinstance(state, dict) else None
    if not isinstance(model, dict):
        raise ValueError('it has no "model"')  # noqa: TRY004 - the file is wrong, not the call
    random = [key for key in ("dropout", "alpha", "nbest_size") if model.get(key)]
    for key in random:
        model[key] = None
    tokenizer = Tokenizer.from_str(json.dumps(state) if random else raw.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # "<s>" in a document is just its characters.
    tokenizer.encode_special_tokens = True
    unknown = model.get("unk_id")
    if unknown is None and isinstance(model.get("unk_token"), str):
        unknown = tokenizer.token_to_id(model["unk_token"])
    return tokenizer, unknown


def is_refusal(error: BaseException) -> bool:
    """Whether the library refused what it was given."""
    # A panic of the library's Rust code arrives as a BaseException of a class that has no name
    # to import.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
