"""What is known of items before a corpus is read: rare words, numbers and vectors of questions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.meaning.vectors import TextVectors
from contam.kernels.rare_words import RareTable, enter_words
from contam.text.common_words import common_words
from contam.text.tokenizer import Tokens, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.detect.meaning.vectors import Embedder
    from contam.detect.model import Bools, Float32s, Int32s, Int64s, Uint64s
    from contam.detect.policies.policy_spec import PolicySpec

#: Words that count: the model knows none of other scripts well enough.
_WORD: Final = re.compile("[a-z]{3,}")
_NUMBER_OR_WORD: Final = re.compile(r"\d+(?:\.\d+)?|[a-z]+")
_DEFINES: Final = re.compile(r"\bdef \w+ ?\(")
_SMALL: Final = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS: Final = {
    **{word: str(number) for number, word in enumerate(_SMALL.split())},
    "twice": "2",
    "half": "1/2",
    "twenty": "20",
    "thirty": "30",
    "fifty": "50",
    "hundred": "100",
}
#: A filter has so many bits a word, a table so many places.
_BITS_A_WORD: Final = 64
_NEVER: Final = 1 << 30
#: What `Matches.read` holds of a match: the similarity, how many rare words and numbers agree, and
#: the similarity of the next best item.
SIMILARITY, WORDS, NUMBERS, NEXT_BEST = range(4)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RareWords:
    """The rare words, numbers and vectors of n questions.

    spec       the policy they were made for
    table      what the kernels see
    spelling   each word of a question by its hash, in small letters
    hashes     uint64[words], the hash of each word, in the order of their numbers
    total      int32[n], what the rare words of each question weigh together
    n_words    int32[n], different rare words;  n_tokens  int32[n], words of any kind
    length     int32[n], what a window's length is compared with: `n_tokens`, or what a few words
               with all rare ones in them reach over
    numbers    the different numbers of each question
    is_code    bool[n], whether it defines a function: its numbers are examples then
    vector     float32[n, dimensions], of length 1;  checkable  bool[n]
    """

    spec: PolicySpec
    table: RareTable
    spelling: dict[int, str]
    hashes: Uint64s
    total: Int32s
    n_words: Int32s
    n_tokens: Int32s
    length: Int32s
    numbers: tuple[frozenset[str], ...]
    is_code: Bools
    vector: Float32s
    checkable: Bools

    @classmethod
    def of(cls, items: Sequence[BenchItem], spec: PolicySpec, embedder: Embedder) -> RareWords:
        """Look for the rare words of each question.

        A word is rare if the model gives it a long vector and it is none of the common words; the
        length is its weight. The other items have no say in it.
        """
        questions = [_without_examples(item.question) for item in items]
        tokens = [tokenize_bytes(question.encode()) for question in questions]
        n_tokens = np.array([len(one) for one in tokens], np.int32)
        spelling = _spelling(questions, tokens)
        hashes, weight, starts, own = _rare_words(
            tokens, spelling, int(spec.number("rare_from")), embedder
        )
        n_words = np.diff(starts).astype(np.int32)
        weighed = np.concatenate([[0], np.cumsum(weight[own], dtype=np.int64)])
        total: Int32s = np.diff(weighed[starts]).astype(np.int32)
        least_words = int(spec.number("least_words"))
        checkable = n_words >= least_words
        least = np.ceil(spec.number("share") * total).astype(np.int32)
        least = np.maximum(least, least_words * int(spec.number("rare_from")))
        length = n_tokens.copy()
        for at in np.flatnonzero(checkable).tolist():
            # In a copy of the question, too, the window would not reach over more.
            stretch = reach(tokens[at].hashes, hashes[own[starts[at] : starts[at + 1]]])
            if stretch < spec.number("least_length") * n_tokens[at]:
                length[at] = stretch
        less_words = int(spec.number("less_words"))
        in_order = np.ceil(spec.number("in_order") * n_tokens).astype(np.int32)
        few, many = spec.number("fewest_in_order"), spec.number("most_in_order")
        in_order[(n_tokens < few) | (n_tokens > many) | (n_words < less_words)] = 0
        less = np.ceil(spec.number("less_share") * total).astype(np.int32)
        key, word, bits = _entered(hashes)
        wanted = checkable | (in_order > 0)
        post_start, post_item = _posted(len(hashes), starts, own, wanted)
        window = (n_tokens * spec.number("window_factor")).astype(np.int32)
        table = RareTable(
            key=key,
            word=word,
            bits=bits,
            weight=weight,
            post_start=post_start,
            post_item=post_item,
            item_start=starts,
            item_word=own.astype(np.int32),
            window=window + np.int32(spec.number("window_more")),
            least=np.where(checkable, least, _NEVER).astype(np.int32),
            least_words=np.full(len(items), least_words, np.int32),
            in_order=in_order,
            less=np.where(in_order > 0, less, _NEVER).astype(np.int32),
            less_words=np.full(len(items), less_words, np.int32),
            token_start=np.concatenate([[0], np.cumsum(n_tokens, dtype=np.int64)])[:-1],
            token=np.concatenate([np.empty(0, np.uint64), *(one.hashes for one in tokens)]),
            n_tokens=n_tokens,
        )
        vectors = TextVectors(embedder)
        return cls(
            spec=spec,
            table=table,
            spelling=spelling,
            hashes=hashes,
            total=total,
            n_words=n_words,
            n_tokens=n_tokens,
            length=length,
            numbers=tuple(frozenset(numbers_of(item.question, spelt=False)) for item in items),
            is_code=np.array([bool(_DEFINES.search(item.question)) for item in items], np.bool_),
            vector=np.stack([vectors.of(question) for question in questions])
            if items
            else np.zeros((0, embedder.n_dimensions), np.float32),
            checkable=checkable,
        )


def _without_examples(text: str) -> str:
    """A question without the lines that show what the function it defines does."""
    found = _DEFINES.search(text)
    if not found:
        return text
    call = found.group().removeprefix("def ").rstrip("( ") + "("
    kept, shown = [], False
    for line in text.split("\n"):
        is_shown = ">>>" in line or (call in line and "def " not in line)
        if not is_shown and not (shown and line.strip() and '"""' not in line):
            kept.append(line)
        shown = ">>>" in line
    return "\n".join(kept)


def numbers_of(text: str, *, spelt: bool = True) -> set[str]:
    """The different numbers of a text, as digits; spelt  whether small ones in words count."""
    found = set()
    for word in _NUMBER_OR_WORD.findall(text.lower().replace(",", "")):
        if word[0].isdigit():
            found.add(word.rstrip("0").rstrip(".") if "." in word else word)
        elif spelt and word in _NUMBER_WORDS:
            found.add(_NUMBER_WORDS[word])
    return found


def _spelling(texts: Sequence[str], read: Sequence[Tokens]) -> dict[int, str]:
    """Each word of these texts by its hash, as it is spelt where it comes first."""
    spelling: dict[int, str] = {}
    for text, tokens in zip(texts, read, strict=True):
        raw = text.encode()
        for value, (begin, end) in zip(tokens.hashes.tolist(), tokens.spans.tolist(), strict=True):
            if value not in spelling:
                spelling[value] = raw[begin:end].decode().lower()
    return spelling


def _rare_words(
    read: Sequence[Tokens], spelling: dict[int, str], rare_from: int, embedder: Embedder
) -> tuple[Uint64s, Int32s, Int64s, Int64s]:
    """The rare words of all texts, and which of them each text has.

    return  uint64[words] ascending and int32[words] weights; int64[texts + 1] and int64[posts],
            where the words of each text begin and their numbers, ascending
    """
    own = [np.unique(tokens.hashes) for tokens in read]
    common = set(common_words().tolist())
    likely = sorted(h for h, word in spelling.items() if _WORD.fullmatch(word) and h not in common)
    vectors = embedder.word_vectors([spelling[h] for h in likely]).astype(np.float64)
    weight = np.rint(np.sqrt((vectors * vectors).sum(axis=1))).astype(np.int32)
    hashes = np.array(likely, np.uint64)[weight >= rare_from]
    weight = weight[weight >= rare_from]
    counts = np.zeros(len(read) + 1, np.int64)
    numbers = [np.empty(0, np.int64)]
    for at, different in enumerate(own):
        place = np.searchsorted(hashes, different)
        place[place == len(hashes)] = 0
        known = place[hashes[place] == different] if len(hashes) else place[:0]
        counts[at + 1] = len(known)
        numbers.append(known)
    return hashes, weight, np.cumsum(counts), np.concatenate(numbers)


def _entered(hashes: Uint64s) -> tuple[Uint64s, Int32s, NDArray[np.uint8]]:
    """The keys, numbers and bits by which kernels look words up; see `RareTable`."""
    n_words = len(hashes)
    places = 1 << max(4, (2 * n_words).bit_length())
    bits = np.zeros(1 << max(4, (_BITS_A_WORD // 8 * n_words).bit_length()), np.uint8)
    key, word = np.zeros(places, np.uint64), np.zeros(places, np.int32)
    enter_words(hashes, key, word, bits)
    return key, word, bits


def _posted(n_words: int, starts: Int64s, own: Int64s, wanted: Bools) -> tuple[Int64s, Int32s]:
    """Where the items of each word begin, and the items, of those that are wanted: bool[n]."""
    item = np.repeat(np.arange(len(wanted), dtype=np.int32), np.diff(starts))
    posted = np.flatnonzero(wanted[item])
    order = posted[np.argsort(own[posted], kind="stable")]
    post_start = np.zeros(n_words + 1, np.int64)
    np.cumsum(np.bincount(own[posted], minlength=n_words), out=post_start[1:])
    return post_start, item[order]


def words_of(known: RareWords, item: int) -> NDArray[np.uint64]:
    """Hashes of the rare words of an item, ascending."""
    first, end = known.table.item_start[item : item + 2]
    return known.hashes[known.table.item_word[first:end]]


def reach(tokens: Uint64s, rare: Uint64s) -> int:
    """The tokens of the shortest stretch in which all of these words stand, 0 where none does.

    tokens  uint64[n], hashes of the words of a text;  rare  hashes of different words
    """
    places = np.flatnonzero(np.isin(tokens, rare))
    words = tokens[places].tolist()
    # The last place of each word so far, in the order of these places.
    last: dict[int, int] = {}
    shortest = len(tokens) + 1
    for word, place in zip(words, places.tolist(), strict=True):
        last.pop(word, None)
        last[word] = place
        if len(last) == len(rare):
            shortest = min(shortest, place + 1 - next(iter(last.values())))
    return 0 if shortest > len(tokens) else shortest
