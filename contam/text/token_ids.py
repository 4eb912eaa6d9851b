"""Turn the token ids of a training file into text, and tell whether a tokenizer made them.

Byte-level BPE and SentencePiece are decoded from a table of the bytes of every id, which is used
only where it gives what the library gives; other tokenizers are decoded by the library.
"""

from __future__ import annotations

import hashlib
import os
import re
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from contam.errors import ConfigError, Place, Plain, UsageError
from contam.tables.blocks import block_of_bytes
from contam.text.bpe import build_tokenizer, is_refusal, refusals_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from contam.kernels.token_texts import TokenTable
    from contam.tables.blocks import TextBlock

    Ids = NDArray[np.uint32]

#: Special tokens that end or begin a document, whatever else a chat has.
_ENDS: Final = (
    "<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|eos|>", "[EOS]", "<|end_of_document|>",
    "<|endofdoc|>", "<eod>", "<|eod|>", "<s>", "<|begin_of_text|>", "<bos>", "<|bos|>", "[BOS]",
    "<|begin_of_sentence|>", "<|end_of_sentence|>", "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>", "<|startoftext|>",
)  # fmt: skip
_MARK: Final = "▁"
_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")
_BAD: Final = re.compile("\N{REPLACEMENT CHARACTER}+")
_PROOFS, _PROOF_IDS = 40, 100
_PROVING: Final = ("Ünï çødé ☃ 漢字 𓀀", " two  blanks\n\tand a tab", "plain words, 123")

_SAMPLE_IDS: Final = 256
#: Tokens at either end of a stretch that may be others when it is encoded alone.
_EDGE: Final = 4
_MOST_WRONG: Final = 0.02
_FEW_IDS: Final = 64
_TIMES_WORSE: Final = 4
_LEAST_BYTES: Final = 1.25
_LEAST_WORDS: Final = 0.5
_MOST_BAD: Final = 0.02


class UnknownIdError(ValueError):
    """An id that a tokenizer does not have; `place` is where it stands among those given."""

    def __init__(self, place: int, found: int) -> None:
        # -1 of 32 bits, and what does not fit them, arrives as the highest of all.
        super().__init__(f"token id {found if found < 1 << 31 else found - (1 << 32):,}")
        self.place = place
        self.found = found


class IdDecoder:
    """A tokenizer that reads ids.

    n_ids    the highest id that it knows, and one;  special  ids that are no text
    ends     those of them that end or begin a document
    by_table whether texts come from a table, which is many times faster
    """

    def __init__(self, tokenizer: Tokenizer, added: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        known = tokenizer.get_added_tokens_decoder()
        own = {number: token.content for number, token in known.items() if token.special}
        self.special = frozenset((*own, *added))
        names = {content: number for number, content in own.items()}
        ends = [names[one] for one in _ENDS if one in names]
        self.ends = np.array(sorted({*ends, *added}), np.uint32)
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self.n_ids = max((*vocabulary.values(), *self.special, 0)) + 1
        pieces: list[str | None] = [None] * self.n_ids
        for piece, number in vocabulary.items():
            pieces[number] = piece
        self._table, self._strips, self.by_table = self._chosen(pieces)

    def decode(self, ids: Ids, offsets: NDArray[np.int64]) -> TextBlock:
        """The texts of documents: document i is ids[offsets[i] : offsets[i + 1]].

        A special token is a line feed between texts. Raises UnknownIdError.
        """
        return block_of_bytes(*self._written(ids, offsets, np.empty(0, np.int64)))

    def places(self, ids: Ids) -> Callable[[int], int]:
        """What tells the code point of its text at which token 0 to n of one document begins.

        Of a token in the middle of a code point, the next one. Raises UnknownIdError.
        """
        if not self.by_table:
            return lambda n: len(self._text(ids[:n]))
        where = np.empty(len(ids) + 1, np.int64)
        raw, _ = self._written(ids, np.array([0, len(ids)], np.int64), where)
        leads = np.flatnonzero((raw & np.uint8(0xC0)) != np.uint8(0x80))
        return cast("Callable[[int], int]", np.searchsorted(leads, where).__getitem__)

    def ends_in(self, ids: Ids) -> NDArray[np.bool_]:
        """Whether each is the id of a token that ends a document, bool[n]."""
        found = np.zeros(len(ids), np.bool_)
        for one in self.ends:
            found |= ids == one
        return found

    def problem(self, documents: Sequence[Ids]) -> str:
        """Why these documents were not made by this tokenizer; "" where it is likely to have.

        Their text must give the same tokens again, but for a few. Some tokenizers give back nearly
        all of any ids: so the same tokens in another order must come back far worse.
        """
        random = np.random.default_rng(1)
        total = wrong = mixed = 0
        texts = []
        for document in documents:
            ids = document[:_SAMPLE_IDS]
            cuts = np.flatnonzero(np.isin(ids, list(self.special)))
            for begin, end in pairwise([-1, *cuts.tolist(), len(ids)]):
                piece = ids[begin + 1 : end]
                if not len(piece):
                    continue
                try:
                    texts.append(self._text(piece))
                except UnknownIdError as error:
                    return f"{error} is not in its vocabulary of {self.n_ids:,}"
                total += len(piece)
                wrong += self._n_wrong(piece)
                mixed += self._n_wrong(random.permutation(piece))
        is_any = total >= _FEW_IDS and wrong >= mixed / _TIMES_WORSE
        if wrong > _MOST_WRONG * total or is_any:
            same, others = (100 * (total - n) // total for n in (wrong, mixed))
            said = f"{same} of 100 tokens are the same when their text is encoded again"
            return (
                f"{said}, and {others} in another order, which proves nothing" if is_any else said
            )
        text = "".join(texts)
        if total >= _FEW_IDS and len(text.encode()) < _LEAST_BYTES * total:
            return "tokens of one byte each are the same in any order, which proves nothing"
        n_words = sum(one.isalnum() or one.isspace() for one in text)
        is_bad = text.count("\N{REPLACEMENT CHARACTER}") > _MOST_BAD * len(text)
        return "its text has no words" if is_bad or n_words < _LEAST_WORDS * len(text) else ""

    def _text(self, ids: Ids) -> str:
        return self.decode(ids, np.array([0, len(ids)], np.int64)).data.tobytes().decode()

    def _n_wrong(self, ids: Ids) -> int:
        """How many tokens are others when their text is encoded again, but at its ends."""
        again = np.array(self._encoded(self._text(ids)), np.uint32)
        same = np.zeros(len(ids), np.bool_)
        found = SequenceMatcher(None, ids.tolist(), again.tolist(), autojunk=False)
        for block in found.get_matching_blocks():
            same[block.a : block.a + block.size] = True
        edge = _EDGE if len(ids) > 4 * _EDGE else 0
        n_wrong = np.count_nonzero(~same[edge : len(ids) - edge])
        if n_wrong and self.by_table:
            # Where a text repeats itself, blocks may match one repetition with another.
            same = np.isin(self._placed(ids), self._placed(again))
            n_wrong = min(n_wrong, np.count_nonzero(~same[edge : len(ids) - edge]))
        return int(n_wrong)

    def _placed(self, ids: Ids) -> NDArray[np.int64]:
        """Each id with the number of bytes behind it."""
        sizes = np.maximum(self._table.length[ids], 0).astype(np.int64)
        placed: NDArray[np.int64] = (sizes.sum() - np.cumsum(sizes)) << 32 | ids
        return placed

    def _encoded(self, text: str) -> list[int]:
        try:
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        except BaseException as error:
            if not is_refusal(error):
                raise
            return []

    def _written(
        self, ids: Ids, offsets: NDArray[np.int64], where: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        from contam.kernels.token_texts import measure_texts, write_texts

        size, unknown = measure_texts(ids, self._table)
        if unknown >= 0:
            raise UnknownIdError(unknown, int(ids[unknown]))
        if not self.by_table:
            return self._by_library(ids, offsets)
        out = np.empty(size, np.uint8)
        bounds = np.empty(len(offsets), np.int64)
        write_texts(ids, offsets, self._table, self._strips, out, bounds, where)
        return out[: bounds[-1]], bounds

    def _by_library(
        self, ids: Ids, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        texts, special = [], self.special
        for begin, end in pairwise(offsets.tolist()):
            spoken = groupby(ids[begin:end].tolist(), key=special.__contains__)
            pieces = [list(some) for is_special, some in spoken if not is_special]
            found = self._tokenizer.decode_batch(pieces, skip_special_tokens=False)
            texts.append("\n".join(found).encode())
        bounds = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
        return np.frombuffer(b"".join(texts), np.uint8), bounds

    def _chosen(self, pieces: Sequence[str | None]) -> tuple[TokenTable, bool, bool]:
        """A table that gives what the library gives, whether it strips, whether there is one."""
        for meaning in (_byte_level, _sentence_piece):
            self._table = _table([None if p is None else meaning(p) for p in pieces], self.special)
            for self._strips in (False, True):
                self.by_table = True
                if self._is_proved(pieces):
                    return self._table, self._strips, True
        return self._table, False, False

    def _is_proved(self, pieces: Sequence[str | None]) -> bool:
        """Whether the table gives what the library gives, of random ids and of what was encoded."""
        plain = np.array(
            [
                number
                for number, piece in enumerate(pieces)
                if piece is not None and number not in self.special and not _BYTE.fullmatch(piece)
            ],
            np.uint32,
        )
        if not len(plain):
            return False
        random = np.random.default_rng(1)
        proofs = [random.choice(plain, _PROOF_IDS) for _ in range(_PROOFS)]
        proofs += [
            np.array([one for one in self._encoded(text) if one not in self.special], np.uint32)
            for text in _PROVING
        ]
        for ids in proofs:
            text = self._text(ids)
            wanted = self._tokenizer.decode(ids.tolist(), skip_special_tokens=False)
            if _BAD.sub("?", text) != _BAD.sub("?", wanted):
                return False
        return True


def _table(found: Sequence[bytes | None], special: frozenset[int]) -> TokenTable:
    from contam.kernels.token_texts import BREAK, HEAD, MISSING, TokenTable

    length = np.array([MISSING if one is None else len(one) for one in found], np.int32)
    length[sorted(special)] = BREAK
    data = b"".join(one or b"" for one in found)
    size = np.array([len(one or b"") for one in found], np.int64)
    heads = b"".join((one or b"")[:HEAD].ljust(HEAD, b"\0") for one in found)
    return TokenTable(
        length=length,
        head=np.frombuffer(heads, "<u8").reshape(-1, 2),
        start=np.cumsum(size) - size,
        data=np.frombuffer(data + b"\0", np.uint8),
    )


def _sentence_piece(piece: str) -> bytes:
    if byte := _BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    return piece.replace(_MARK, " ").encode()


@lru_cache(maxsize=1)
def _byte_letters() -> dict[str, int]:
    """The letters byte-level BPE writes bytes as: printable Latin-1 as it is, then from 256."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): b for n, b in enumerate(others)}


def _byte_level(piece: str) -> bytes:
    letters = _byte_letters()
    if all(one in letters for one in piece):
        return bytes(letters[one] for one in piece)
    return piece.encode()


def tokenizer_file(given: str) -> Path:
    """The `tokenizer.json` of a file, a folder, or a name in the cache of the Hugging Face Hub.

    Raises UsageError when there is none.
    """
    path = Path(given).expanduser()
    if path.is_dir():
        path /= "tokenizer.json"
    if path.is_file():
        return path.absolute()
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    folder = cache / f"models--{given.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text().strip()
        found = folder / "snapshots" / commit / "tokenizer.json"
        if found.is_file():
            return found
    except (OSError, ValueError):
        pass
    raise UsageError(
        "tokenizer {} not found: no such file or folder, and no such name in {}",
        Place(given), Place(cache),
        hint="name the tokenizer.json that the corpus was made with, or download it first",
    )  # fmt: skip


def file_digest(path: Path) -> str:
    """SHA-256 of a tokenizer file, hexadecimal. Raises UsageError when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(
            "tokenizer file {} cannot be read: {}", Place(path), Plain(error.strerror),
            hint="name a tokenizer.json",
        ) from error  # fmt: skip


@lru_cache(maxsize=4)
def load_decoder(path: str, sha256: str, special: tuple[int, ...]) -> IdDecoder:
    """Read a `tokenizer.json`.

    special  ids that a pipeline added

    Raises ConfigError when it is another file than its digest says, no tokenizer, or calls one of
    `special` a text.
    """
    place = Path(path)
    if file_digest(place) != sha256:
        raise ConfigError(
            "tokenizer file {} is not the one that was named first", Place(place),
            hint="name the tokenizer that the corpus was made with",
        )  # fmt: skip
    with refusals_named(place):
        tokenizer, _ = build_tokenizer(place.read_bytes())
        decoder = IdDecoder(tokenizer, special)
    known = tokenizer.get_added_tokens_decoder()
    for one in special:
        piece = tokenizer.id_to_token(one) or ""
        if one not in known and piece.strip("Ġ▁#").isalpha():
            raise ConfigError(
                "token {:,} is the text {!r}, so special must not name it", one, piece,
                hint="name only ids that are no text",
            )  # fmt: skip
    return decoder
