"""Cut a corpus into pieces, and name the part that a search of each gives.

A piece is whole shards, or consecutive chunks of one large shard. Where it ends depends on the
shards near by alone, so that of a corpus that grows most pieces stay. It is searched as a corpus of
its own: its part fits every corpus that has these shards, and is named by a digest of all that
decides what is in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam import kernels
from contam.benchmark.items import ItemName
from contam.corpus.coverage import Coverage
from contam.text.text_tables import NORMALISER
from contam.version import contam_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.corpus.formats.base import Chunk
    from contam.detect.corpus import Corpus
    from contam.detect.plan import Plan

#: Bytes of text of a piece, at least: a part costs a plan's memory and a file.
LEAST_BYTES: Final = 512 << 20
#: A piece has so many times `LEAST_BYTES` at most: 3 minutes of work of a core.
_MOST: Final = 32
#: Pieces of a corpus between the two, so that 100 workers end at about the same time.
_WANTED: Final = 256
#: Names of items that are written at a time.
_ROWS: Final = 1 << 12


def versions() -> dict[str, str]:
    """What must be the same wherever parts are computed for one result."""
    return {
        "contam": contam_version(),
        "normaliser": NORMALISER,
        "kernels": _kernels_digest(),
        "numpy": np.__version__,
        # Only on the same kind of processor are all sums rounded the same way.
        "machine": f"{platform.machine()}-{sys.byteorder}",
    }


@cache
def _kernels_digest() -> str:
    """Digest of the source of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(kernels.__path__[0]).glob("*.py")):
        digest.update(f"{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Piece:
    """Consecutive chunks of a corpus.

    name     digest of all that decides what is found in it
    shards   their numbers in the corpus;  first  number there of its first chunk
    corpus   of its shards alone, numbered from 0
    """

    name: str
    shards: tuple[int, ...]
    first: int
    corpus: Corpus

    @property
    def n_bytes(self) -> int:
        """Bytes of its text."""
        return sum(chunk.n_bytes for chunk in self.corpus.chunks)


def cut_pieces(plan: Plan, corpus: Corpus, size: int | None = None) -> tuple[Piece, ...]:
    """All chunks of a corpus, in order, as pieces that are searched for what a plan looks for.

    size  bytes of text of a piece, at most; None takes about a 256th of the corpus, but 512 MiB at
          least and 16 GiB at most
    """
    asked = json.dumps([question_of(plan), versions()])
    found = []
    first = 0
    for chunks in _cut(corpus, size or _size_for(corpus)):
        shards = tuple(dict.fromkeys(chunk.shard for chunk in chunks))
        number = {shard: at for at, shard in enumerate(shards)}
        own = _alone(corpus, shards, [replace(one, shard=number[one.shard]) for one in chunks])
        found.append(Piece(name=_name(asked, own), shards=shards, first=first, corpus=own))
        first += len(chunks)
    return tuple(found)


def question_of(plan: Plan) -> str:
    """Digest of everything that decides what is found in a corpus: items, policies, options."""
    parameters = plan.parameters
    tokenizers = [
        used.sha256
        for view in plan.views
        for used in (view.tokenizer, view.reads_with)
        if used is not None
    ]
    asked = {
        "options": [parameters.max_evidence, parameters.seed, parameters.min_run, parameters.text],
        "policies": [[policy.spec.id, policy.spec.fingerprint()] for policy in plan.policies],
        "views": [[view.unit, *view.spec[:4]] for view in plan.views],
        "every_hit": parameters.every_hit,
        "columns": dict(parameters.columns or {}),
        "tokenizers": tokenizers,
        # What a policy reads of the texts themselves is not in their tokens.
        "benchmarks": [[one.sha256 for one in each.sources] for each in plan.benchmarks],
    }
    digest = hashlib.sha256(json.dumps(asked).encode())
    for name in ItemName._fields:
        names = plan.items.column(name)
        # Those of millions of items would take a gigabyte as one.
        for begin in range(0, len(names), _ROWS):
            digest.update(json.dumps(names[begin : begin + _ROWS]).encode())
    for view in plan.search_views:
        grams, facts = view.gram_table, view.facts
        for array in (grams.token, grams.part_start, facts.letter, facts.number):
            digest.update(array.dtype.str.encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def question_of_search(plan: Plan, corpus: Corpus) -> str:
    """Digest of all that decides what a search finds in a corpus."""
    pieces = [piece.name for piece in cut_pieces(plan, corpus)]
    asked = [pieces, versions(), [_known(corpus, number) for number in range(len(corpus.shards))]]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _size_for(corpus: Corpus) -> int:
    """Bytes of text of a piece, at most."""
    total = sum(chunk.n_bytes for chunk in corpus.chunks)
    # By powers of two: a corpus that grows a little is cut as before.
    times = 1 << (total // (_WANTED * LEAST_BYTES)).bit_length()
    return LEAST_BYTES * min(_MOST, times)


def _cut(corpus: Corpus, most: int) -> Iterator[list[Chunk]]:
    """The chunks of each piece."""
    held: list[Chunk] = []
    n_held = 0
    for shard, group in groupby(corpus.chunks, key=lambda chunk: chunk.shard):
        own = list(group)
        n_own = sum(chunk.n_bytes for chunk in own)
        if held and n_held + n_own > most:
            yield held
            held, n_held = [], 0
        if n_own > most:
            yield from _cut_shard(own, most)
            continue
        held += own
        n_held += n_own
        if 2 * n_held >= most and _ends_piece(corpus.shards[shard].name, n_own / most):
            yield held
            held, n_held = [], 0
    if held:
        yield held


def _cut_shard(chunks: Sequence[Chunk], most: int) -> Iterator[list[Chunk]]:
    held: list[Chunk] = []
    n_held = 0
    for chunk in chunks:
        if held and n_held + chunk.n_bytes > most:
            yield held
            held, n_held = [], 0
        held.append(chunk)
        n_held += chunk.n_bytes
    yield held


def _ends_piece(name: str, share: float) -> bool:
    """Whether a piece that is half full ends behind this shard, which is a share of a full one.

    Decided by the shard's name: behind one that was added or removed, pieces soon end where they
    did before.
    """
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < 4 * share


def _alone(corpus: Corpus, shards: Sequence[int], chunks: list[Chunk]) -> Corpus:
    """These shards of a corpus, and no others."""
    own = tuple(corpus.shards[shard] for shard in shards)
    return replace(
        corpus,
        paths=(),
        shards=own,
        digests=tuple(corpus.digests[shard] for shard in shards),
        selections=[corpus.selections[shard] for shard in shards],
        chunks=chunks,
        coverage=Coverage.expect(own, chunks),
        notes=(),
        skipped=(),
    )


def _name(asked: str, alone: Corpus) -> str:
    """Digest of what is asked of a piece, and of everything that is known of its shards."""
    known = [_known(alone, number) for number in range(len(alone.shards))]
    told = json.dumps([asked, known, repr(alone.chunks)])
    return hashlib.sha256(told.encode()).hexdigest()


def _known(corpus: Corpus, number: int) -> list[str | None]:
    """What is known of a shard.

    Its stamp is the same on all machines; its digest does not see its middle.
    """
    shard = corpus.shards[number]
    stamp = shard.state.stamp if shard.state else None
    selection = repr(corpus.selections[number])
    return [shard.name, shard.format, stamp, corpus.digests[number], selection]
