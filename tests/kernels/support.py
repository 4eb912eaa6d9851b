"""What the kernel tests share: edge values, frozen arrays, invented texts and a small matcher."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from contam.benchmark.items import PARTS, BenchItem
from contam.corpus.batches import DocBatch
from contam.detect.match.collect import Collection
from contam.detect.match.matching import Matcher
from contam.detect.match.token_view import SearchView, build_view
from contam.detect.policies.policy import get_policy
from contam.kernels.tokens import CHARS, WORDS
from contam.text.text_tables import load_tables
from tests.twins import brute, letters
from tests.twins import tokens as twin
from tests.word_tables import markup_names
from tests.word_tables.lookalikes import lookalikes

NAMES = twin.Names(
    markup_names.LATEX_SKIP,
    markup_names.LATEX_WORDS,
    markup_names.HTML_TAGS,
    markup_names.ENTITIES,
    markup_names.ATTRIBUTES,
    markup_names.ASIDES,
)
LOOKALIKES = lookalikes()
UNITS = {"word": WORDS, "char": CHARS}

#: For tests whose every example is a scan, or one compared with everything: a fifth of what the
#: profile asks for.
few = settings(max_examples=max(12, settings().max_examples // 5))

U64_EDGES = (0, 1, 2, 2**31, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)
U64 = st.sampled_from(U64_EDGES) | st.integers(0, 2**64 - 1)
#: Few different values, on both sides of 2**63: repeats are the rule.
FEW = st.sampled_from((1, 2, 2**63 + 5, 2**64 - 1))


def frozen(values: object, dtype: type) -> np.ndarray:
    """A read-only array, as the kernels are handed everything they only read."""
    array = np.array(values, dtype)
    array.setflags(write=False)
    return array


def u64s(values: list[int]) -> np.ndarray:
    return frozen(values, np.uint64)


# ------------------------------------------------------------------------- invented texts


def _assigned() -> list[tuple[int, int]]:
    """Stretches of code points that the frozen tables know, without surrogates."""
    found = []
    for lo, hi in load_tables().assigned.tolist():
        found += [(lo, min(hi, 0xD7FF)), (max(lo, 0xE000), hi)]
    return [(lo, hi) for lo, hi in found if lo <= hi]


CHARACTERS = st.sampled_from(_assigned()).flatmap(lambda ends: st.integers(*ends)).map(chr)
SYNTAX = st.sampled_from(
    ["\\", "\\\\", "\\n", "\\t", "\\R", "\\u0041", "\\u00e9", "\\uD835", "\\udc00", "\\u", "\\u12", "\\ud835\\udc00",
     "\\U0001d400", "\\U00110000", "\\U", "\\x41", "\\x0", "\\x00", "\\quad", "\\nabla", "\\text", "\\ne", "\\left",
     "<", "<b>", "</p>", "</p >", "<br/>", "<br / >", "<wbr>", "</wbr>", "<a x=", "<a ", "<svg>", ">", "/>", "=", "<!--", "<!-->", "-->",
     "&", "amp;", "&AMP;", "&amp;amp;", "&#65;", "&#x4E2d;", "&#0;", "&#xD800;", "&#12345678;", "&#x1234567;", "&eacute;",
     "&shy;", "&thetasym;", "&foo;", "&a;", "#", ";", "%", "%41", "%C3%A9", "%c3", "%E4%B8%AD", "%ED%A0%80", "%F0%9F%98%80",
     "%F5%80%80%80", "%C0%80", "%00", "%4", "-\n", "-\r\n", "- \n\t", "-", "--\n", "\u2010\n", "\u00ad\n", "\u00ad", "\n", "\r", "\r\n", " ", "\t",
     "\v", "\f", "\x00", "\x7f", "é", "ß", "中", "の", "ไ", "ท", "한", "а", "о", "ж", "г", "α", "η", "Ν", "µ", "½", "℃", "ﬁ", "ᾳ", "㌖",
     "e\u0301", "\u0301", "\u200b", "\ufeff", "I", "1", "a", "n", "u", "word", "internationalization", "abcdefgh",
     "ABCDEFGHIJKLMNOP", "_", "'", "😀", "և", "ՙ", "Ġ", "ᴀ", "\\theta", "\\frac", "12\n", "12 ", "00:01:02,345", "1:02.5", "00:02", "12:30:00",
     " --> ", "-->", " --&gt; ", ",", "[", "]", " align:start", " X1:40", "<00:01.5>", "<|1.50|>", "<c.x>", "<v A B>", "</c>", "<m:mi>",
     "[12]", "[^3]", "](http://x.y/z", "](#a", "(", ")", "[pause]", "(laughs) ", " (", " um ", " uh", "Um,\n", " the ", " of ", " and ",
     " ##", "##b", "@@ ", "a@@ ", " Ġa", "Ġbc ", "▁", " ▁b", " d", "\n2024-05-06T07:08:09Z INFO ", "2024-05-06 07:08:09,123 ",
     "\n[2024-05-06 07:08:09] ", "\n2024-05-06 07:08:09+01:00 | WARN: ", " a b c.", "nums[2] ",
     '<img alt="', '"', " title='", "'>", ' src="a b c d e"', "<p ", 'a="b c d e" ']
)  # fmt: skip
#: What stands between words is recognised only among more of its kind.
ASIDES = st.sampled_from(
    (" ##ab", " ##", "a@@ ", "ab@@ c", " Ġab", " cd", " ▁e", "Ġ", " f", "word[3]", "[4]", "[^n-1].", " um", " um,", " Uh ", "the ",
     " of", "\n", "\n2024-05-06T07:08:09Z INFO ", "\n 2024-05-06 07:08:09 ", "[2024-05-06 07:08:09.5] - ERROR", "](http://a(b)c)", '](/a "b")',
     " (pause) ", "[laughter]", "é", "-\n", " 12 ", ". ", "x", "<b>", "\n1\n00:01 --> 00:02\n", "\u0301", "(a", "^", "'", "[")
)  # fmt: skip
NOISE = st.one_of(
    st.lists(SYNTAX | SYNTAX | SYNTAX | CHARACTERS, max_size=14).map("".join),
    st.lists(ASIDES | ASIDES | SYNTAX, max_size=16).map("".join),
)

#: Three tokens of it make most runs repeat, which is where runs and chains go wrong.
TINY = ("red", "fox", "runs")
VOCABULARY = (
    *TINY, "the", "a", "12", "x2", "café", "naïve", "straße", "жар", "ход", "中", "文", "の", "한국", "ﬁnd",
    "internationalization", "pneumonoultramicroscopic",
)  # fmt: skip
#: Ways to write the same token; what docs/normaliser.md promises to be equal.
SPELLINGS = {
    "café": ("CAFÉ", "cafe\u0301", "caf\\u00e9", "caf&eacute;", "caf%C3%A9", "ca\u00adfé", "cafe"),
    "naïve": ("Naive", "na\u00efve", "nai\u200bve", "na-\nïve"),
    "straße": ("STRASSE", "stra&szlig;e", "straße"),
    "中": ("\\u4e2d", "&#20013;", "%E4%B8%AD"),
    "文": ("\\u6587", "&#x6587;"),
    "ﬁnd": ("find", "FIND", "fi<wbr>nd"),
    "red": ("RED", "Red", "ｒｅｄ", "r\u0435d", "re\u200bd"),
    "fox": ("FOX", "f\\u006fx", "f\u043ex", "fo-\nx"),
    "12": ("１２", "&#49;2"),
}
SEPARATORS = st.sampled_from(
    (" ", "  ", "\n", "\r\n", ", ", ". ", "; ", " — ", " <b>", "</b> ", "&nbsp;", " ** ", "\t", " \u200b")
)  # fmt: skip


@st.composite
def token_lists(draw, words: tuple[str, ...] = VOCABULARY, most: int = 30) -> list[str]:
    """Words of a text: free, periodic, or cut from a template that other texts share."""
    word = st.sampled_from(words)
    free = st.lists(word, max_size=most)
    period = st.tuples(st.lists(word, min_size=1, max_size=3), st.integers(1, max(1, most // 3)))
    template = list(words[:3]) * 4
    cut = st.tuples(st.integers(0, 6), st.integers(6, 12)).map(lambda ends: template[slice(*ends)])
    pieces = st.one_of(free, period.map(lambda p: p[0] * p[1]), cut)
    return [one for piece in draw(st.lists(pieces, max_size=3)) for one in piece][:most]


@st.composite
def written(draw, tokens: list[str]) -> str:
    """A text that reads as these tokens, in some spelling and with some separators."""
    out = []
    for token in tokens:
        out += [draw(st.sampled_from((token, *SPELLINGS.get(token, ())))), draw(SEPARATORS)]
    return "".join(out)


def texts(words: tuple[str, ...] = VOCABULARY, most: int = 30) -> st.SearchStrategy[str]:
    return token_lists(words, most).flatmap(written)


@st.composite
def worlds(
    draw, words: tuple[str, ...] = VOCABULARY, most: int = 24, documents: int = 3
) -> tuple[list[BenchItem], list[str]]:
    """A few items and a few documents, most of which quote the items."""
    text = texts(words, most)
    parts = draw(st.lists(st.tuples(text, text, st.lists(text, max_size=2), text), max_size=3))
    items = [
        make_item(n, question=q, passage=p or None, choices=tuple(c), answer=a or None)
        for n, (p, q, c, a) in enumerate(parts)
    ]
    sources = [one for item in items for one in (item.question, item.passage or "")]
    quoted = st.sampled_from(sources) if sources else text
    corpus = st.lists(st.lists(quoted | text, max_size=3).map(". ".join), max_size=documents)
    return items, draw(corpus)


PROSE = (
    "the of a is in and to what how which many crates lighthouse tangerines harbour keeper winds "
    "clockwork seven hours barges fall into quay mineral cliffs village stripe autumn x2 12 "
    "straße café жаркий приходит 中 internationalization"
)

sentences = st.lists(st.sampled_from(PROSE.split()), min_size=8, max_size=40)


@st.composite
def damaged(draw, words: list[str]) -> str:
    """The words with some spaces lost, or some put in."""
    random = draw(st.randoms(use_true_random=False))
    lost, put = draw(st.sampled_from(((0, 0), (0.2, 0), (0.5, 0), (1, 0), (0, 0.4), (0, 1))))
    out = ""
    for word in words:
        letters_of = [c + (" " if random.random() < put / 2 else "") for c in word]
        out += "".join(letters_of) + ("" if random.random() < lost else random.choice(" \n"))
    return out


@st.composite
def torn_worlds(draw) -> tuple[list[BenchItem], str]:
    """Some items, and a document that quotes some of them, damaged."""
    parts = draw(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=3))
    items = [
        make_item(n, question=" ".join(q), passage=" ".join(p)) for n, (q, p) in enumerate(parts)
    ]
    every = [words for part in parts for words in part]
    quoted = draw(st.lists(st.sampled_from(every) | sentences, min_size=1, max_size=4))
    return items, "".join(draw(damaged(words)) + draw(st.sampled_from(" .")) for words in quoted)


def make_item(number: int, **parts: object) -> BenchItem:
    return BenchItem(benchmark="bench", split="test", item_id=f"i{number:03}", **parts)


# ------------------------------------------------------------------------------ matching


def twin_tokens(text: str, unit: str = "word") -> list[int]:
    data = text.encode()
    if unit == "char":
        return [h for h, _, _ in twin.char_tokens(data, NAMES)]
    return [h for h, _, _ in twin.word_tokens(data, NAMES, LOOKALIKES)]


def words_of(text: str) -> list[tuple[int, int, int]]:
    """The words of a text by the twin: hash and bytes."""
    return twin.word_tokens(text.encode(), NAMES, LOOKALIKES)


def letter_pieces(text: str) -> list[twin.Piece]:
    """The letters and digits of a text by the twin."""
    kinds = {twin.LETTER, twin.DIGIT, twin.SINGLE}
    # `um` may be a bit of a word.
    names = NAMES._replace(asides={name: 1 for name, kind in NAMES.asides.items() if kind == 1})
    return [piece for piece in twin.pieces(text.encode(), names) if piece.kind in kinds]


def twin_letters(text: str) -> letters.Letters:
    """The same, as the twin of the letters takes them."""
    found = letter_pieces(text)
    folded = "".join(chr(piece.folded) for piece in found)
    return letters.Letters(folded, [(piece.start, piece.end) for piece in found])


def batch(documents: list[str], *, shard: int = 0, first_row: int = 0) -> DocBatch:
    encoded = [text.encode() for text in documents]
    offsets = np.cumsum([0, *map(len, encoded)])
    return DocBatch(
        shard,
        first_row,
        frozen(np.frombuffer(b"".join(encoded), np.uint8), np.uint8),
        frozen(offsets, np.int64),
    )


def view_of(
    items: list[BenchItem], unit: str = "word", seed: int = 5, min_run: int = 8, stride: int = 1
) -> SearchView:
    return build_view(items, unit=unit, seed=seed, min_run=min_run, stride=stride)


def match(view: SearchView, documents: list[str], **place: int) -> Collection:
    collection = Collection.start(view, [], get_policy("contam"), 10_000)
    Matcher(view).match(batch(documents, **place), collection)
    return collection


def part_runs(
    view: SearchView, items: list[BenchItem], document: str
) -> dict[tuple[int, int], list]:
    """(item, part) -> every maximal run that the part shares with the document, by brute force."""
    words = twin_tokens(document, view.unit)
    return {
        (n, p): brute.maximal_runs(
            brute.extensions(twin_tokens(item.part_text(part), view.unit), words)
        )
        for n, item in enumerate(items)
        for p, part in enumerate(PARTS)
    }


def is_reported(run: tuple[int, int, int], found: list[tuple[int, int, int]]) -> bool:
    """Whether a run stands in one of the found (item token, document token, length) blocks.

    A run that starts inside one with the same first item token and at least its length, as those
    of a periodic text do, is the same occurrence and need not be told.
    """
    i, d, n = run
    for item, document, size in found:
        if i - item == d - document and item <= i and i + n <= item + size:
            return True
        if i == item and document <= d < document + size and n <= size:
            return True
    return False


def evidence_runs(
    view: SearchView, collection: Collection, documents: list[str]
) -> dict[tuple[int, int, int], list[tuple[int, int, int]]]:
    """(item, document, part) -> evidence in tokens, once its spans were seen to say what it says."""
    matches, pieces = collection.evidence()
    spans = [_code_point_tokens(text, view.unit) for text in documents]
    found: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    for k in range(len(pieces.match)):
        item, row = int(matches.item[pieces.match[k]]), int(matches.row[pieces.match[k]])
        part, n = int(pieces.part[k]), int(pieces.length[k])
        first = int(pieces.item_token[k])
        begin = int(view.items.token_start[item, part]) + first
        tokens = view.items.token_hash[begin : begin + n].tolist()
        assert first + n <= view.items.n_tokens[item, part]
        ends = int(pieces.start[k]), int(pieces.end[k])
        starts = [
            at
            for at in _starts_of_span(spans[row], ends, n)
            if tokens == [token[0] for token in spans[row][at : at + n]]
        ]
        assert starts, f"no {n} equal tokens span code points {ends}"
        found.setdefault((item, row, part), []).extend((first, start, n) for start in starts)
    return found


def _code_point_tokens(text: str, unit: str) -> list[tuple[int, int, int]]:
    data = text.encode()
    found = (
        twin.char_tokens(data, NAMES)
        if unit == "char"
        else twin.word_tokens(data, NAMES, LOOKALIKES)
    )
    return [(h, len(data[:a].decode()), len(data[:b].decode())) for h, a, b in found]


def _starts_of_span(tokens: list[tuple[int, int, int]], ends: tuple[int, int], n: int) -> list[int]:
    """First tokens of n that together span exactly these code points.

    Two where a character gives two tokens, one of which the n leave out: the span is the same.
    """
    return [
        at for at in range(len(tokens) - n + 1) if (tokens[at][1], tokens[at + n - 1][2]) == ends
    ]


def brute_longest_at(view: SearchView, items: list[BenchItem], documents: list[str]) -> list[int]:
    """Longest run from every item token on, in any document."""
    flat: list[int] = []
    for item in items:
        for part in PARTS:
            tokens = twin_tokens(item.part_text(part), view.unit)
            best = [0] * len(tokens)
            for document in documents:
                table = brute.extensions(tokens, twin_tokens(document, view.unit))
                best = [max(own, *row) for own, row in zip(best, table, strict=False)]
            flat += best
    return flat


def check_world(view: SearchView, items: list, documents: list[str]) -> Collection:
    """Compare everything that a collection says of some documents with brute force."""
    collection = match(view, documents)
    told = evidence_runs(view, collection, documents)
    matches, _ = collection.evidence()
    row_of = {
        (int(item), int(row)): k
        for k, (item, row) in enumerate(zip(matches.item, matches.row, strict=True))
    }
    assert len(row_of) == len(matches)
    seed, min_run = view.spec.seed, view.spec.min_run
    for row, document in enumerate(documents):
        for (item, part), real in part_runs(view, items, document).items():
            length = int(view.items.n_tokens[item, part])
            long = [run for run in real if run[2] >= min_run or seed <= length == run[2]]
            for run in long:
                assert is_reported(run, told.get((item, row, part), []))
            if long:
                assert (item, row) in row_of
            if (item, row) not in row_of:
                continue
            k = row_of[item, row]
            longest = max((run[2] for run in real), default=0)
            assert matches.longest[k, part] <= longest
            assert matches.longest[k, part] == longest or longest < min(min_run, max(length, seed))
            assert not matches.exact[k, part] or 0 < length == longest
            assert matches.exact[k, part] or not seed <= length == longest
            assert bool(long) <= matches.n_runs[k, part] <= len(long)
            inside = {t for i, _, n in real if n >= min_run for t in range(i, i + n)}
            assert matches.covered[k, part] == len(inside)
            assert matches.aligned[k, part] <= length
            assert 0 <= matches.coverage[k, part] <= 1 + 1e-6
    for found, real in zip(
        collection.longest_at.tolist(), brute_longest_at(view, items, documents), strict=True
    ):
        assert found <= real
        assert found == real or real < min_run
    return collection
