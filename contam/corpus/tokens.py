"""Choose how the token ids of a shard are read, and prove that their tokenizer made them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.formats.base import are_cut, decoder_of
from contam.errors import ConfigError, CorpusError, Place, Plain, Public, Statement, UsageError
from contam.files.listed import opened
from contam.tables.columns import TokenIds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef
    from contam.text.token_ids import IdDecoder

TOKEN_NAMES: Final = ("input_ids", "tokens", "token_ids")
"""Columns of token ids that are read when a tokenizer is named."""

READING: Final = ("tokenizer", "tokenizer_sha256", "special", "token_bytes", "following")
"""What a run is told of token ids, beside the columns of documents."""

_WIDTHS: Final = ("2", "4")
_MOST_SPECIAL: Final = 1 << 20
_HEAD_BYTES: Final = 64 << 10


def settled(named: Mapping[str, str]) -> dict[str, str]:
    """What is said of token ids, with the tokenizer's place and digest. Raises UsageError."""
    found = {key: said(named[key]) for key in READING if key in named}
    if "tokenizer" not in found:
        if found:
            raise UsageError(
                "{} says how token ids are read, and no tokenizer is named",
                Public(next(iter(found))),
                hint="give --tokenizer FILE",
            )
        return {}
    if "tokenizer_sha256" not in found:
        from contam.text.token_ids import file_digest, tokenizer_file

        path = tokenizer_file(found["tokenizer"])
        found |= {"tokenizer": str(path), "tokenizer_sha256": file_digest(path)}
    if found.get("token_bytes", _WIDTHS[0]) not in _WIDTHS:
        raise UsageError("token_bytes must be 2 or 4", hint="give --token-bytes 2 or 4")
    _special(found)
    return found


def said(value: object) -> str:
    """What was given as an option says it, also for numbers and lists of them."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _special(named: Mapping[str, str]) -> tuple[int, ...]:
    given = named.get("special", "")
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) < _MOST_SPECIAL for part in parts):
        raise UsageError(
            "special must be ids of tokens below {:,}, with commas between: {}",
            _MOST_SPECIAL, given, hint="for example --special 50257,50258",
        )  # fmt: skip
    return tuple(sorted(set(map(int, parts))))


def following_of(shards: Sequence[Shard], number: int, named: Mapping[str, str]) -> dict[str, str]:
    """What is said of a shard, with the name of the next one of its folder.

    A document at its end may run on there.
    """
    told = dict(named)
    if "tokenizer" in told and number + 1 < len(shards):
        one, other = shards[number], shards[number + 1]
        (folder, _, _), (another, _, name) = one.uri.rpartition("/"), other.uri.rpartition("/")
        if folder == another and one.format == other.format:
            told["following"] = name
    return told


def prepared(shard: Shard, ref: ColumnRef, named: Mapping[str, str]) -> ColumnRef:
    """The column of token ids in an open shard, with all that is needed to read it.

    named  what `settled` gives

    Raises CorpusError where no tokenizer is named, or where it did not make these tokens, and
    ShardError where the shard cannot be read.
    """
    if "tokenizer" not in named:
        raise CorpusError(
            "{} holds token ids, and no tokenizer is named", Place(shard.name),
            hint="name the tokenizer they were made with: --tokenizer FILE",
        )  # fmt: skip
    kind, path = shard.kind, shard.path
    following = named.get("following", "")
    if following:
        following = f"{shard.uri.rpartition('/')[0]}/{following}"
    how = TokenIds(
        tokenizer=named["tokenizer"],
        sha256=named["tokenizer_sha256"],
        special=_special(named),
        following=following,
        beside=(*kind.beside(path), *((_head(following),) if following else ())),
    )
    widths = kind.widths(path)
    given = int(named.get("token_bytes", 0)) if widths != (0,) else 0
    tried = []
    # The widest that fits is right: of narrower ids, two make one that is unknown.
    for width in widths if given in (0, *widths) else (given,):
        one = replace(ref, tokens=replace(how, width=width))
        try:
            decoder = decoder_of(one)
        except (ConfigError, UsageError) as error:  # the file was moved or written again
            raise CorpusError(error.statement, hint=error.hints) from error
        sample = kind.sample(path, one)
        problem = decoder.problem(sample)
        if not problem and given not in (0, width):
            problem = f"they are ids of {width} bytes, and token_bytes says {given}"
        if not problem:
            packed = kind.is_cut(path)
            packed = _is_packed(sample, decoder) if packed is None else packed
            return replace(one, tokens=replace(how, width=width, packed=packed))
        tried.append(f"read as ids of {width} bytes: {problem}" if width else problem)
    raise CorpusError(
        "{}: its tokens were not made by {}: {}",
        Place(shard.name), Place(named["tokenizer"]), Plain("; ".join(tried)),
        hint=Statement(
            "name the tokenizer of this corpus with --tokenizer{}",
            Public("" if widths == (0,) else ", or the bytes of an id with --token-bytes"),
        ),
    )  # fmt: skip


def _is_packed(sample: Sequence[NDArray[np.uint32]], decoder: IdDecoder) -> bool:
    """Whether rows end inside documents: not all at an end token, or all cut to one length."""
    rows = [decoder.ends_in(ids) for ids in sample if len(ids)]
    if all(is_end[-1] for is_end in rows):
        return any(_is_joined(is_end) for is_end in rows)
    return any(is_end.any() for is_end in rows) or are_cut(np.array([*map(len, rows)], np.int64))


def _is_joined(is_end: NDArray[np.bool_]) -> bool:
    """Whether there is an end token between others."""
    spoken = np.flatnonzero(~is_end)
    return len(spoken) > 0 and bool(is_end[spoken[0] : spoken[-1]].any())


def _head(path: str) -> str:
    """A digest of the first bytes of the next shard, which a document may run on into."""
    try:
        with opened(path) as file:
            return hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()[:32]
    except OSError:
        return ""  # its own turn will tell
