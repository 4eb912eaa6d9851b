"""Make decoys: items that look like a benchmark's but cannot be in a corpus.

A clone has other numbers and other names. Where its question has neither, the word that fewest
items have is another one. Where there is no such word, the question is joined to the choices and
the answer of another item. What a decoy is made into depends on nothing but the seed, the texts of
the benchmark and the item, so that equal audits make equal decoys.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contam.benchmark.items import PARTS, Benchmark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.benchmark.items import BenchItem

MAKER: Final = 1
"""Version of the way decoys are made; it is part of what a stage of decoys depends on."""

SWAP: Final = "swap"
JOIN: Final = "join"

_TRIES: Final = 8
_WORD_LENGTH: Final = 3
_NUMBER: Final = re.compile(r"(?<![^\W\d_])[0-9]+(?!st\b|nd\b|rd\b|th\b)")
_WORD: Final = re.compile(r"[^\W\d_]+")
_YEAR: Final = re.compile("(?:1[0-9]|20)[0-9]{2}")
_INSIDE: Final = re.compile(r"[\w,;)]\s+$")
"""Text before a word that does not begin a sentence."""

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Decoys:
    """One decoy for each item that can have one, under the split and id of its item.

    kinds    (split, item id) -> "swap" or "join"
    donors   (split, item id) -> those of the item that gave choices and answer
    n_items  items of the benchmark, those without a decoy included
    """

    benchmark: Benchmark
    of: str
    kinds: Mapping[Name, str]
    donors: Mapping[Name, Name]
    n_items: int

    def digest(self) -> str:
        """SHA-256 of every text of every decoy."""
        texts = [[item.split, item.item_id, *_texts(item)] for item in self.benchmark.items]
        return hashlib.sha256(json.dumps(texts).encode("ascii")).hexdigest()


def make_decoys(benchmark: Benchmark, *, draw: int, seed: int) -> Decoys:
    """The decoys of one draw; another draw gives other ones.

    They are a benchmark of their own, so that no decoy is judged beside the item it was made of.
    """
    words = _Words(benchmark.items)
    known = {_folded(item.question) for item in benchmark.items}
    alike: defaultdict[tuple[int, bool], list[BenchItem]] = defaultdict(list)
    for item in sorted(benchmark.items, key=_texts):
        alike[_shape(item)].append(item)
    made: list[BenchItem] = []
    kinds: dict[Name, str] = {}
    donors: dict[Name, Name] = {}
    for item in benchmark.items:
        chance = _chance(seed, draw, item)
        key = (item.split, item.item_id)
        found = _clone(item, words, known, chance)
        if found is not None:
            kinds[key] = SWAP
        elif donor := _donor(item, alike[_shape(item)], chance):
            kinds[key] = JOIN
            donors[key] = (donor.split, donor.item_id)
            found = replace(
                item, choices=donor.choices, answer=donor.answer, answer_index=donor.answer_index
            )
        made += [found] if found else []
    name = f"{benchmark.name} (decoys {draw})"
    return Decoys(
        Benchmark(
            name=name,
            items=tuple(replace(item, benchmark=name) for item in made),
            sources=benchmark.sources,
        ),
        benchmark.name,
        kinds,
        donors,
        len(benchmark.items),
    )


class _Words:
    """The words of a benchmark: names, and how many items have each of the others.

    A name is written with a capital inside sentences, and nowhere without one.
    """

    def __init__(self, items: Sequence[BenchItem]) -> None:
        inside: set[str] = set()
        self._spread: Counter[str] = Counter()
        for item in items:
            for text in _texts(item):
                inside.update(_capitals(text))
            self._spread.update({word for text in _texts(item) for word in _WORD.findall(text)})
        self.names = sorted(name for name in inside if name.lower() not in self._spread)
        rarest = {self.rarest(item) for item in items}
        self._others = sorted(word for word in rarest if word)

    def rarest(self, item: BenchItem) -> str:
        """The word of a question that fewest items have, the longest of equals; "" without any."""
        words = {word for word in _WORD.findall(item.question) if len(word) >= _WORD_LENGTH}
        return min(words, key=lambda word: (self._spread[word], -len(word), word), default="")

    def other(self, word: str, own: set[str], chance: random.Random) -> str:
        """Another item's rarest word with the same ending, where there is one; "" without any."""
        others = [ref for ref in self._others if ref not in own]
        same = [
            other
            for other in others
            if other[-1:] == word[-1:] and other.islower() == word.islower()
        ]
        return chance.choice(same or others) if others else ""


def _chance(seed: int, draw: int, item: BenchItem) -> random.Random:
    raw = json.dumps([MAKER, seed, draw, *_texts(item)]).encode("ascii")
    return random.Random(int.from_bytes(hashlib.sha256(raw).digest()))  # noqa: S311 - no secret


def _texts(item: BenchItem) -> list[str]:
    return [item.part_text(part) for part in PARTS]


def _clone(
    item: BenchItem, words: _Words, known: set[str], chance: random.Random
) -> BenchItem | None:
    """The item with other numbers and names, or another rarest word; None without any of them.

    Where too few names are known some stay.
    """
    whole = "\n".join(_texts(item))
    every = set(_WORD.findall(whole))
    own = sorted(every.intersection(words.names))
    for _ in range(_TRIES):
        others = [name for name in words.names if name not in own]
        names = chance.sample(others, min(len(own), len(others)))
        swaps = dict(zip(own, names, strict=False)) | _other_numbers(whole, chance)
        if _swapped(item.question, swaps) == item.question:
            rarest = words.rarest(item)
            swaps[rarest] = words.other(rarest, every, chance)
            if not rarest or not swaps[rarest]:
                return None
        clone = replace(
            item,
            question=_swapped(item.question, swaps),
            passage=None if item.passage is None else _swapped(item.passage, swaps),
            choices=tuple(_swapped(choice, swaps) for choice in item.choices),
            answer=None if item.answer is None else _swapped(item.answer, swaps),
        )
        # Small numbers may lead to another item of the benchmark, which is no decoy.
        if _folded(clone.question) not in known:
            return clone
    return None


def _donor(item: BenchItem, alike: Sequence[BenchItem], chance: random.Random) -> BenchItem | None:
    """An item with other choices or another answer; None when there is none to take."""
    own = (item.choices, item.answer)
    others = [bench_item for bench_item in alike if (bench_item.choices, bench_item.answer) != own]
    return chance.choice(others) if others and own != ((), None) else None


def _shape(item: BenchItem) -> tuple[int, bool]:
    return len(item.choices), item.answer is None


def _capitals(text: str) -> Iterator[str]:
    """Words with a capital that begin no sentence."""
    for word in _WORD.finditer(text):
        before = text[max(0, word.start() - 3) : word.start()]
        if word[0].istitle() and len(word[0]) > 1 and _INSIDE.search(before):
            yield word[0]


def _other_numbers(text: str, chance: random.Random) -> dict[str, str]:
    """Each number of a text -> another of as many digits, which is not in the text."""
    own = sorted(set(_NUMBER.findall(text)))
    taken = set(own)
    found = {}
    for number in own:
        for _ in range(_TRIES):
            other = _like(number, chance)
            if other not in taken:
                taken.add(other)
                found[number] = other
                break
    return found


def _like(number: str, chance: random.Random) -> str:
    """As many digits; a year of the same century, and nothing that begins with 0."""
    if _YEAR.fullmatch(number):
        return number[:2] + f"{chance.randrange(100):02}"
    first = chance.choice("123456789") if number[0] != "0" else "0"
    if len(number) == 1:
        return chance.choice("23456789")
    return first + "".join(chance.choice("0123456789") for _ in number[1:])


def _swapped(text: str, swaps: Mapping[str, str]) -> str:
    text = _NUMBER.sub(lambda match: swaps.get(match[0], match[0]), text)
    return _WORD.sub(lambda match: swaps.get(match[0], match[0]), text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
