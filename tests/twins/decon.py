"""decon's rules gram by gram, with sets and dictionaries: slow, and one item at a time.

Written from what the tool does, for texts of a page or less; shares nothing with the package.
"""

import math
import string
import struct
from dataclasses import dataclass

#: Han, kana and Hangul.
IDEOGRAPHS = {
    chr(code)
    for lo, hi in ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x3400, 0x9FFF), (0xAC00, 0xD7A3))
    for code in range(lo, hi + 1)
}
PUNCTUATION = set(string.punctuation) | set("\u201c\u201d\u2018\u2019\u2014")


@dataclass
class Settings:
    """decon's own defaults, under decon's own names."""

    contamination_score_threshold: float = 0.8
    perfect_match_decay_start: int = 20
    perfect_match_decay_end: int = 50
    short_answer_token_threshold: int = 3
    short_answer_window_length: int = 50
    answer_ngram_size: int = 3
    min_long_answer_window: int = 100
    index_passages: bool = True


WEB = Settings(0.88, 25, 50, 1, 20, 2, 20, index_passages=False)
SYNTH = Settings(0.78, 5, 26, 1, 50, 2, 50)


def clean(text):
    return " ".join("".join(" " if c in PUNCTUATION else c for c in text.lower()).split())


def pieces(cleaned):
    """What cl100k cuts a cleaned text of letters, digits and other signs into; ideographs apart."""
    out, text, at = [], " " + cleaned if cleaned else "", 0
    while at < len(text):
        start = at
        if text[at].isdigit():
            while at < len(text) and text[at].isdigit() and at - start < 3:
                at += 1
        elif text[at].isalpha() or (at + 1 < len(text) and text[at + 1].isalpha()):
            first = at + (not text[at].isalpha())
            at = first + 1
            while (
                at < len(text) and text[at].isalpha() and not set(text[first : at + 1]) & IDEOGRAPHS
            ):
                at += 1
        elif text[at] == " " and at + 1 < len(text) and text[at + 1].isdigit():
            at += 1
        else:
            at += 1
            while at < len(text) and not text[at].isalnum() and text[at] != " ":
                at += 1
        out.append(text[start:at])
    return out


def grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


@dataclass
class Row:
    item: int
    key: str
    question: list
    answer: list
    passage: list
    taken: bool


def rows_of(items, settings):
    """One row for each option, or for the answer; (item, row) in order."""
    rows = []
    for number, item in enumerate(items):
        options = list(item.get("choices") or [])
        if item.get("answer") and item.get("answer_index") is None:
            options += [item["answer"]] if item["answer"] not in options else []
        for option in options or [""]:
            texts = [item.get("passage") or "", item.get("question") or "", option]
            if not settings.index_passages:
                cleaned = ["", *(clean(text) for text in texts[1:])]
            else:
                cleaned = [clean(text) for text in texts]
            passage, question, answer = (pieces(text) for text in cleaned)
            solid = [t for t in passage + question + answer if t != " "]
            words = set(" ".join(cleaned).split())
            taken = len(solid) >= 20 and len(words) >= 4 and bool(question)
            rows.append(Row(number, "".join(texts), question, answer, passage, taken))
    return rows


class Index:
    """Frequencies over the different rows that are taken."""

    def __init__(self, items, settings):
        self.settings = settings
        self.rows = rows_of(items, settings)
        self.counted = list({row.key: row for row in reversed(self.rows) if row.taken}.values())

    def idf(self, gram, part, n):
        number = sum(gram in grams(getattr(row, part), n) for row in self.counted)
        return math.log(len(self.counted) / number)

    def weights(self, tokens, part, n):
        return {gram: self.idf(gram, part, n) for gram in set(grams(tokens, n))}

    def token_idf(self, token):
        number = sum(
            token in part
            for row in self.counted
            for part in (row.question, row.answer, row.passage)
        )
        return math.log(len(self.counted) / number)

    def score(self, item, document, slack=0.0):
        """The highest score of any row of the item at any cluster of the document.

        slack  by how much less than a gate asks for passes it: the tool counts in 32 bits, and so
               may fall on either side of a gate that is met exactly
        """
        tokens = pieces(clean(document))
        best = 0.0
        for row in self.rows:
            if row.item == item and row.taken and len(tokens) >= 10:
                best = max([best, *self._row_scores(row, tokens, slack)])
        return best

    def _row_scores(self, row, tokens, slack):
        question = self.weights(row.question, "question", 5)
        whole = sum(question.values())
        if whole <= 0:
            return
        document = grams(tokens, 5)
        at = 0
        while at < len(document):
            if document[at] not in question:
                at += 1
                continue
            found, start, end, after = walk(document, at, question)
            at = after + 1
            share = sum(question[gram] for gram in found) / whole
            if len(found) == len(question):
                share = 1.0
            least = (self.settings.contamination_score_threshold - 0.3) / 0.7
            if share + slack < max(least, self.ramp(len(row.question), least)):
                continue
            yield self._combined(row, share, question, (tokens, start, end + 4))

    def ramp(self, length, goal):
        first = self.settings.perfect_match_decay_start
        last = self.settings.perfect_match_decay_end
        if length <= first:
            return 1.0
        if length >= last:
            return goal
        return 1.0 - (1.0 - goal) * (length - first) / (last - first)

    def _combined(self, row, share, question, place):
        tokens, start, end = place
        excess = max(0, end - start + 1 - len(row.question))
        o_a = self._answer(row, tokens, end - excess + 1)
        o_p = self._passage(row, tokens, start)
        found = [Single(part) for part in (share, o_a, o_p)]
        base = base_score(row, len(question), *found).value
        length = len(row.question) + len(set(row.answer)) + len(row.passage)
        goal = self.settings.contamination_score_threshold
        needed = self.ramp(length, goal)
        # The tool asks for exactly 1, which rounding in 32 bits may miss where all was found.
        return base if base == 1.0 else base * min(1.0, goal / needed)

    def _answer(self, row, tokens, begin):
        if not row.answer:
            return 0.0
        settings = self.settings
        if len(row.answer) <= settings.short_answer_token_threshold:
            # Of rarities above and below 0 that cancel out, rounding leaves a rest.
            if sum(self.token_idf(token) for token in set(row.answer)) < 1e-12:
                return 0.0
            for at in range(begin, min(begin + settings.short_answer_window_length, len(tokens))):
                if tokens[at : at + len(row.answer)] == row.answer:
                    return 1.0
            return 0.0
        n = settings.answer_ngram_size
        window = max(2 * len(row.answer), settings.min_long_answer_window)
        there = set(grams(tokens[begin : begin + window], n))
        return weighed(self.weights(row.answer, "answer", n), there)

    def _passage(self, row, tokens, question):
        if not row.passage:
            return 0.0
        end = question - 1
        begin = max(0, end - max(2 * len(row.passage), 100))
        if end - begin < 4:
            return 0.0
        weight = self.weights(row.passage, "passage", 4)
        there, misses = set(), None
        for at in range(end - 4, begin - 1, -1):
            gram = tuple(tokens[at : at + 4])
            if gram in weight:
                there.add(gram)
                misses = 0
            elif misses is not None:
                misses += 1
                if misses > 2:
                    break
        return weighed(weight, there)


class Single:
    """A number of 32 bits, as the tool counts: every result is rounded."""

    def __init__(self, value):
        self.value = struct.unpack("f", struct.pack("f", value))[0]

    def __add__(self, other):
        return Single(self.value + other.value)

    def __sub__(self, other):
        return Single(self.value - other.value)

    def __mul__(self, other):
        return Single(self.value * other.value)


def confidence(number, full):
    """Half at nothing, whole from `full` on."""
    return Single(min(1.0, 0.5 + Single(number / full).value / 2))


def base_score(row, n_grams, o_q, o_a, o_p):
    """The weighted sum of what was found, before short items lose some of it."""
    one, half = Single(1), Single(0.5)
    c_q, c_a = confidence(n_grams, 20), confidence(len(set(row.answer)), 4)
    if row.answer and row.passage:
        freed = Single(0.7) * (one - c_q)
        answer, passage = Single(0.2) + freed * half, Single(0.1) + freed * half
        of_passage = passage + answer * (one - c_a)
        total = o_q * (Single(0.7) * c_q) + o_a * (answer * c_a) + o_p * of_passage
    elif row.answer:
        total = o_q * (Single(0.75) * c_q) + o_a * (Single(0.25) + Single(0.75) * (one - c_q))
    elif row.passage:
        total = o_q * (Single(0.85) * c_q) + o_p * (Single(0.15) + Single(0.85) * (one - c_q))
    else:
        total = o_q
    return Single(min(1.0, total.value))


def weighed(weight, there):
    whole = sum(weight.values())
    return sum(w for gram, w in weight.items() if gram in there) / whole if whole else 0.0


def walk(document, seed, question, most_misses=11):
    """The grams of a cluster, its outermost places, and the last gram that was looked at."""
    found = {document[seed]}
    edge = {-1: seed, 1: seed}
    after = seed
    for step in (-1, 1):
        at, misses = seed, 0
        while misses < most_misses and 0 <= at + step < len(document):
            at += step
            if document[at] not in question:
                misses += 1
                continue
            if document[at] not in found:
                found.add(document[at])
                misses = 0
            edge[step] = at
        after = at
    return found, edge[-1], edge[1], after
