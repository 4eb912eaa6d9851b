"""Plan many items in blocks, so that no more than one of them is in memory as it is made.

A block is whole benchmarks: items weigh and compete within their benchmark. What counts over all
items, which grams are common and which words are numbers, is worked out before any block's table is
filled, so that blocks find what one table of all items finds. A block that is done lies in a file
that is mapped into memory: the system takes from it what it needs elsewhere.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from contam.benchmark.packed import column_of
from contam.detect.leases.mapped import MappedFile, write_tree
from contam.detect.match.common_grams import GramCensus
from contam.detect.match.token_view import (
    NoSpans,
    draft_view,
    finished_view,
    numbers_of,
    tokenizer_of,
)
from contam.errors import UsageError
from contam.files.addresses import Address
from contam.files.publish import output_errors, work_folder
from contam.kernels.tokens import WORDS
from contam.memory import trim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.match.token_view import TokenView

Tree = TypeVar("Tree")

#: Items that are planned in one block where nothing else was asked for: they take 4 GB.
MOST_ITEMS: Final = 1_000_000
#: Items of a block where there are more: each takes 2 GB while it is made.
BLOCK_ITEMS: Final = 500_000


@dataclass(frozen=True, slots=True)
class Blocks:
    """How items are divided into blocks.

    most    items of a block, unless one benchmark has more; None divides more than `MOST_ITEMS`
            into blocks of `BLOCK_ITEMS`
    folder  gets the files of the blocks, which have no name there; None takes the folder for
            temporary files
    """

    most: int | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise UsageError("block_items must be 1 or more, not {}", self.most)

    def cut(self, items: Sequence[BenchItem]) -> list[Sequence[BenchItem]]:
        """The items, which are in order, in blocks of whole benchmarks; at least one."""
        most = self.most or (BLOCK_ITEMS if len(items) > MOST_ITEMS else MOST_ITEMS)
        if len(items) <= most:
            return [items]
        sizes: dict[str, int] = {}
        for name in column_of(items, "benchmark"):
            sizes[name] = sizes.get(name, 0) + 1
        edges, end = [0], 0
        for size in sizes.values():
            if end > edges[-1] and end + size - edges[-1] > most:
                edges.append(end)
            end += size
        return [items[begin:after] for begin, after in pairwise([*edges, end])]

    def keep(self, tree: Tree, known: dict[str, object]) -> Tree:
        """The same tree with its arrays in a file; known  as for `write_tree`. Raises OutputError.

        The file has no name: it is gone with whoever has it mapped, also if that is killed.
        """
        folder = self.folder or _folder_for_temporary_files()
        with output_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
            write_tree(file, tree, known)
            file.flush()
            kept: Tree = MappedFile(file).read(known)
            return kept


def _folder_for_temporary_files() -> Path:
    with output_errors(Path("$TMPDIR")):
        return Path(tempfile.gettempdir())


def folder_near(path: Path) -> Path | None:
    """The nearest folder to a path that is there, on its disk; None for the address of a store."""
    if isinstance(path, Address):
        return None
    beside = work_folder(path, "blocks").absolute()
    return next(folder for folder in beside.parents if folder.is_dir())


def views_in_blocks(
    parts: Sequence[Sequence[BenchItem]],
    blocks: Blocks,
    *,
    unit: str,
    seed: int,
    min_run: int,
    stride: int,
    with_variants: bool,
) -> list[TokenView]:
    """The view of each of these parts of the items: see `match.token_view.build_view`.

    Raises UsageError or ConfigError as that does, and OutputError where the disk is full.
    """
    tokenizer = tokenizer_of(unit)
    known: dict[str, object] = {} if tokenizer is None else {"tokenizer": tokenizer}
    census = GramCensus(len(parts))
    drafts = []
    for items in parts:
        draft = draft_view(
            items,
            unit=unit,
            seed=seed,
            min_run=min_run,
            stride=stride,
            with_variants=with_variants,
            tokenizer=tokenizer,
        )
        draft.weigh(census)
        drafts.append(blocks.keep(draft, known))
        del draft
        trim()
    common = census.common((draft.block_tokens() for draft in drafts), seed)
    questions = chain.from_iterable(column_of(items, "question") for items in parts)
    numbers = numbers_of(questions) if drafts[0].spec.unit == WORDS else None
    views = []
    for items in parts:
        draft = drafts.pop(0)
        view = finished_view(draft, NoSpans(), common=common, numbers=numbers).bare()
        kept = blocks.keep(view, known)
        kept.restore()
        kept.spans = draft.spans(items)
        views.append(kept)
        del view, draft
        trim()
    return views
