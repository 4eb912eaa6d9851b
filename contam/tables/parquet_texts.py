"""Take rows out of a column chunk of long texts, or put other texts in, page by page.

The library decodes and encodes every text of a row group. Here texts that stay are moved as bytes,
and pages in which nothing changes are not even unpacked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.tables import parquet_pages as pages
from contam.tables import parquet_splice as splice
from contam.tables.parquet_pages import LENGTH_BYTES, Page, UnfitError
from contam.tables.parquet_splice import ParquetBytes, number
from contam.tables.thrift import BINARY, I32, I64, LIST, STRUCT, TRUE, Listed, Struct, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from contam.tables.parquet_pages import Packing
    from contam.tables.parquet_splice import Raw

    #: Given rows and their texts, the texts to have instead.
    EditTexts = Callable[[Sequence[int], Sequence[bytes]], Sequence[bytes]]

#: Below so many bytes a text, the library is faster.
_LONG: Final = 512
#: Longer texts are not among the statistics, as the library has it.
_MOST_STATISTICS: Final = 4096
#: Texts are compared by so many bytes first, which spares copying them.
_TELLING: Final = 8

_N_NULLS, _GREATEST, _LEAST, _GREATEST_IS_EXACT, _LEAST_IS_EXACT = 3, 5, 6, 7, 8
_BOUNDS: Final = ((min, _LEAST, _LEAST_IS_EXACT), (max, _GREATEST, _GREATEST_IS_EXACT))
_EXACT: Final = (_LEAST_IS_EXACT, _GREATEST_IS_EXACT)
_KNOWN: Final = {_N_NULLS, _GREATEST, _LEAST, *_EXACT}
_TEXT_BYTES, _PRESENCE = 1, 3


@dataclass(frozen=True, slots=True)
class NewPages(ParquetBytes):
    """A column chunk in memory, beside the file that it was made from."""

    pages: tuple[Page, ...]

    def chunk(self, chunk: Struct) -> Iterator[Raw]:  # noqa: ARG002 - there is one
        """Its pages."""
        for page in self.pages:
            yield page.head
            yield page.body


class Change(NamedTuple):
    """What is to change in the rows of a row group.

    keep  bool[n], of each row
    rows  whose texts change, ascending; all of them are kept
    edit  gives their texts
    """

    keep: NDArray[np.bool_]
    rows: Sequence[int]
    edit: EditTexts


def are_long(chunk: Struct) -> bool:
    """Whether texts of a column chunk are long enough, and nothing else leads into its pages."""
    meta = chunk[splice.CHUNK_META].value
    return (
        number(meta, splice.META_SIZE) >= _LONG * number(meta, splice.META_VALUES)
        and not meta.keys() & {splice.META_BLOOM_AT, splice.META_INDEX_AT}
        and not chunk.keys() & {splice.COLUMNS_AT, splice.OFFSETS_AT, splice.CHUNK_PATH}
    )


def with_change(
    source: ParquetBytes, chunk: Struct, change: Change, packing: Packing, *, is_nullable: bool
) -> tuple[ParquetBytes, Struct]:
    """A column chunk with the change; the same one where it changes nothing.

    is_nullable  whether rows may be without a text

    Raises UnfitError for what the library has to do, ValueError where the chunk is damaged.
    """
    old = list(pages.pages_of(source.whole(chunk)))
    new, meta = _Chunk(chunk, old, change, packing, is_nullable).changed()
    if len(new) == len(old) and all(map(is_, new, old)):
        return source, chunk
    made = {**chunk, splice.CHUNK_META: Value(STRUCT, meta)}
    return NewPages(source.file, source.footer, tuple(new)), made


class _Texts:
    """Texts that lie one behind the other in a page, each behind its length, by their numbers.

    new  texts that are not among them, numbered from `n_old` on
    """

    def __init__(self, raw: memoryview, n_texts: int) -> None:
        self._raw = raw
        self._places = pages.places_of(raw, n_texts)
        self._numbers: dict[bytes, int] = {}
        self.n_old = n_texts
        self.new: list[bytes] = []

    def __getitem__(self, number: int) -> bytes:
        if number >= self.n_old:
            return self.new[number - self.n_old]
        return bytes(self._raw[self._places[number] + LENGTH_BYTES : self._places[number + 1]])

    def add(self, text: bytes) -> int:
        """The number of a new text."""
        self.new.append(text)
        return self.n_old + len(self.new) - 1

    def number_of(self, text: bytes) -> int:
        """The number of a text, which is new or not."""
        if text not in self._numbers:
            alike = np.flatnonzero(self._lengths == len(text)).tolist()
            same = next((number for number in alike if self[number] == text), None)
            self._numbers[text] = self.add(text) if same is None else same
        return self._numbers[text]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return np.diff(self._places) - LENGTH_BYTES

    def encoded(self, numbers: NDArray[np.int64]) -> list[Raw]:
        """Some of the texts, each behind its length."""
        pieces: list[Raw] = []
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        for begin, end in ((int(run[0]), int(run[-1]) + 1) for run in runs if len(run)):
            if begin < self.n_old:
                pieces.append(self._raw[self._places[begin] : self._places[min(end, self.n_old)]])
            pieces += [pages.after_length(self[n]) for n in range(max(begin, self.n_old), end)]
        return pieces

    def bounds(self, numbers: NDArray[np.int64]) -> list[bytes]:
        """The least and the greatest of some texts, ascending; nothing where there is none."""
        if not len(numbers):
            return []
        heads = self._heads(numbers)
        least, greatest = (numbers[heads == head].tolist() for head in (heads.min(), heads.max()))
        return [min(self[number] for number in least), max(self[number] for number in greatest)]

    def _heads(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """What texts begin with, as numbers in the same order; bytes behind their end are 0."""
        n_old = int(np.searchsorted(numbers, self.n_old))
        starts = np.array(self._places)
        begins, ends = (starts[numbers[:n_old] + step, None] for step in (0, 1))
        places = begins + LENGTH_BYTES + np.arange(_TELLING)
        found = np.frombuffer(self._raw, np.uint8).take(places, mode="clip")
        old = np.where(places < ends, found, 0).astype(np.uint8).view(">u8")[:, 0]
        new = [
            self[number][:_TELLING].ljust(_TELLING, b"\0") for number in numbers[n_old:].tolist()
        ]
        return np.concatenate([old, np.frombuffer(b"".join(new), ">u8")]).astype(np.uint64)


class _Chunk:
    """Changes a column chunk, given with its pages."""

    def __init__(
        self,
        chunk: Struct,
        old: Sequence[Page],
        change: Change,
        packing: Packing,
        is_nullable: bool,  # noqa: FBT001 - as `with_change` has it
    ) -> None:
        self._meta: Struct = chunk[splice.CHUNK_META].value
        self._keep, self._rows, self._edit = change
        self._packing, self._is_nullable = packing, is_nullable
        has_dictionary = old[0].kind == pages.DICTIONARY_PAGE
        self._dictionary = old[0] if has_dictionary else None
        self._pages = old[has_dictionary:]
        self._coded = [page.encoding in pages.BY_DICTIONARY for page in self._pages]
        self._first = np.cumsum([0, *(page.n_values for page in self._pages)]).tolist()
        said = self._meta.get(splice.META_STATISTICS)
        self._statistics: Struct | None = None if said is None else said.value
        every = [self._statistics, *(page.statistics for page in self._pages)]
        self._is_exact = any(one is not None and one.keys() & set(_EXACT) for one in every)
        self._refuse_unknown([one for one in every if one is not None])
        self._removed: list[bytes] = []
        self._added: list[bytes] = []
        self._nulls_removed = 0
        #: Least and greatest text of pages that were opened, by number.
        self._bounds: dict[int, list[bytes]] = {}

    def _refuse_unknown(self, statistics: Sequence[Struct]) -> None:
        n_rows = len(self._keep)
        has_dictionary = self._dictionary is not None
        fits = (
            self._first[-1] == n_rows == number(self._meta, splice.META_VALUES)
            and has_dictionary == (number(self._meta, splice.META_DICTIONARY_AT) > 0)
            and all(
                page.kind != pages.DICTIONARY_PAGE
                and (has_dictionary if coded else page.encoding == pages.PLAIN)
                for page, coded in zip(self._pages, self._coded, strict=True)
            )
            and not any(one.keys() - _KNOWN for one in statistics)
            and all(one[key].kind == TRUE for one in statistics for key in _EXACT if key in one)
        )
        if not fits:
            raise UnfitError("pages or statistics of another kind")

    def changed(self) -> tuple[list[Page], Struct]:
        """Its pages as they are to be, and what is to be said of it."""
        touched = [*np.flatnonzero(~self._keep).tolist(), *self._rows]
        hit = set((np.searchsorted(self._first, touched, side="right") - 1).tolist())
        made: dict[int, Page | None] = {}
        for n in sorted(hit):
            if not self._coded[n]:
                present, texts = self._opened(n)
                old = np.arange(texts.n_old)
                numbers = self._changes(n, present, texts, old)
                if numbers is not old:
                    made[n] = self._remade(n, present, texts, numbers, texts.encoded(numbers))
        dictionary = self._dictionary
        if dictionary is not None and any(self._coded[n] for n in hit):
            dictionary = self._by_dictionary(dictionary, hit, made)
        final = [made.get(n, page) for n, page in enumerate(self._pages)]
        left = [page for page in (dictionary, *final) if page is not None]
        return left, self._described(left)

    def _opened(self, n: int) -> tuple[NDArray[np.bool_], _Texts]:
        """A page of texts: which rows have one, and they."""
        values = pages.values_of(self._pages[n], self._packing, is_nullable=self._is_nullable)
        return values.present, _Texts(values.raw, int(values.present.sum()))

    def _opened_codes(self, n: int, n_texts: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """A page of numbers of texts: which rows have one, and they."""
        values = pages.values_of(self._pages[n], self._packing, is_nullable=self._is_nullable)
        n_values = int(values.present.sum())
        width = values.raw[0] if n_values else 0
        codes = pages.read_numbers(values.raw[1:], width, n_values)
        if len(codes) and codes.max() >= n_texts:
            raise ValueError("a page has a text that its dictionary does not have")
        return values.present, codes

    @cached_property
    def _texts(self) -> _Texts:
        """Those of the dictionary."""
        page = self._dictionary
        if page is None:
            raise UnfitError("no dictionary")
        return _Texts(pages.dictionary_of(page, self._packing), page.n_values)

    def _by_dictionary(self, dictionary: Page, hit: set[int], made: dict[int, Page | None]) -> Page:
        """The dictionary without texts that no row has any more; puts its pages into `made`."""
        texts = self._texts
        old = {
            n: self._opened_codes(n, texts.n_old) for n, coded in enumerate(self._coded) if coded
        }
        new = {
            n: self._changes(n, present, texts, codes) if n in hit else codes
            for n, (present, codes) in old.items()
        }
        used = np.unique(np.concatenate(list(new.values())))
        if not len(used):
            raise UnfitError("no text is left in the dictionary")
        width = max(1, int(len(used) - 1).bit_length())
        is_same = np.array_equal(used, np.arange(texts.n_old))
        for n, numbers in new.items():
            if numbers is not old[n][1] or not is_same:
                codes = pages.written_numbers(np.searchsorted(used, numbers), width)
                made[n] = self._remade(n, old[n][0], texts, numbers, [bytes([width]), codes])
        if is_same:
            return dictionary
        return pages.dictionary_page(dictionary, texts.encoded(used), len(used), self._packing)

    def _changes(
        self,
        n: int,
        present: NDArray[np.bool_],
        texts: _Texts,
        numbers: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The numbers of the texts that a page is to have, given those that it has.

        Where nothing changes it is the same array.
        """
        first, end = self._first[n], self._first[n + 1]
        keep = self._keep[first:end]
        rows = self._rows[bisect_left(self._rows, first) : bisect_left(self._rows, end)]
        places = (np.cumsum(present) - 1)[[row - first for row in rows]].tolist()
        if not all(present[row - first] for row in rows):
            raise UnfitError("a row that is to be changed has no text")
        was = [texts[number] for number in numbers[places].tolist()]
        left, n_added = numbers.copy(), len(self._added)
        edited = self._edit(rows, was) if rows else []
        for place, before, after in zip(places, was, edited, strict=True):
            if before != after:
                left[place] = texts.number_of(after) if self._coded[n] else texts.add(after)
                self._removed.append(before)
                self._added.append(after)
        stays = keep[present]
        self._removed += [texts[number] for number in numbers[~stays].tolist()]
        self._nulls_removed += int((~keep & ~present).sum())
        return numbers if keep.all() and len(self._added) == n_added else left[stays]

    def _remade(
        self,
        n: int,
        present: NDArray[np.bool_],
        texts: _Texts,
        numbers: NDArray[np.int64],
        values: Sequence[Raw],
    ) -> Page | None:
        """A page with other values, those of some texts; None where no row of it stays."""
        like, keep = self._pages[n], self._keep[self._first[n] : self._first[n + 1]]
        if not keep.any():
            self._bounds[n] = []
            return None
        present = present[keep]
        statistics = None if like.statistics is None else Struct()
        if self._statistics is not None:
            bounds = self._bounds[n] = texts.bounds(np.unique(numbers))
            if like.statistics is not None:
                n_nulls = len(present) - len(numbers)
                statistics = self._said(like.statistics, n_nulls, bounds or [None, None])
        return pages.data_page(
            like, present, values, statistics, self._packing, is_nullable=self._is_nullable
        )

    def _said(self, old: Struct, n_nulls: int, bounds: Sequence[bytes | None]) -> Struct:
        """Statistics as there were some."""
        new: Struct = {_N_NULLS: Value(I64, n_nulls)} if _N_NULLS in old else {}
        for bound, (_, key, exact) in zip(bounds, _BOUNDS, strict=True):
            if bound is not None and len(bound) <= _MOST_STATISTICS:
                new[key] = Value(BINARY, bound)
                if self._is_exact:
                    new[exact] = Value(TRUE, None)
        return new

    def _described(self, left: Sequence[Page]) -> Struct:
        """What is to be said of the chunk of these pages."""
        old = self._meta
        meta = {
            **old,
            splice.META_VALUES: Value(I64, int(self._keep.sum())),
            splice.META_SIZE: Value(I64, sum(page.size for page in left)),
            splice.META_PACKED: Value(I64, sum(len(page.head) + len(page.body) for page in left)),
        }
        if left[0].kind == pages.DICTIONARY_PAGE:
            begin = number(old, splice.META_DICTIONARY_AT) + len(left[0].head) + len(left[0].body)
            meta[splice.META_DATA_AT] = Value(I64, begin)
        if splice.META_PAGES in old:
            found = Counter((page.kind, page.encoding) for page in left)
            entries = [
                {at + 1: Value(I32, one) for at, one in enumerate((*what, count))}
                for what, count in found.items()
            ]
            meta[splice.META_PAGES] = Value(LIST, Listed(STRUCT, entries))
        if self._statistics is not None:
            n_nulls = number(self._statistics, _N_NULLS) - self._nulls_removed
            bounds = self._bounds_of_all(self._statistics)
            meta[splice.META_STATISTICS] = Value(
                STRUCT, self._said(self._statistics, n_nulls, bounds)
            )
        if splice.META_SIZES in old:
            meta[splice.META_SIZES] = Value(STRUCT, self._sizes(old[splice.META_SIZES].value))
        return meta

    def _bounds_of_all(self, old: Struct) -> list[bytes | None]:
        """The least and the greatest text; None where it was not known and would need reading."""
        if len(self._bounds) < len(self._pages):
            was = [old[key].value if key in old else None for _, key, _ in _BOUNDS]
            if not any(one in self._removed for one in was if one is not None):
                return [
                    None if one is None else pick([one, *self._added])
                    for one, (pick, _, _) in zip(was, _BOUNDS, strict=True)
                ]
            for n in range(len(self._pages)):
                if n not in self._bounds:
                    self._bounds[n] = self._bounds_of(n)
        known = [bounds for bounds in self._bounds.values() if bounds]
        return [
            pick((bounds[at] for bounds in known), default=None)
            for at, (pick, _, _) in enumerate(_BOUNDS)
        ]

    def _bounds_of(self, n: int) -> list[bytes]:
        if self._coded[n]:
            _, codes = self._opened_codes(n, self._texts.n_old)
            return self._texts.bounds(np.unique(codes))
        _, texts = self._opened(n)
        return texts.bounds(np.arange(texts.n_old))

    def _sizes(self, old: Struct) -> Struct:
        """What is said of sizes of texts, and of how many rows have one."""
        new = dict(old)
        if _TEXT_BYTES in old:
            more = sum(map(len, self._added)) - sum(map(len, self._removed))
            new[_TEXT_BYTES] = Value(I64, old[_TEXT_BYTES].value + more)
        counts = old[_PRESENCE].value.entries if _PRESENCE in old else []
        if counts and self._is_nullable:
            n_nulls = counts[0] - self._nulls_removed
            entries = [n_nulls, int(self._keep.sum()) - n_nulls]
            new[_PRESENCE] = Value(LIST, Listed(I64, entries))
        elif counts:
            raise UnfitError("rows are counted by depth where none may be empty")
        return new
