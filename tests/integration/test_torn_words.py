"""Copies that lost spaces, got some too many, or stand in subtitles are found, in an index too."""

import random
import re
from itertools import pairwise

import pytest

import contam
from contam.index.build import build
from tests.detect.indexed.indexes import evidence, make
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    corpus_of,
    labels,
    write_items,
    write_jsonl,
)


def lost(share):
    def edit(text):
        rng = random.Random(5)
        return re.sub(" ", lambda _: "" if rng.random() < share else " ", text)

    return edit


def split(share):
    def edit(text):
        rng = random.Random(6)
        cut = [
            f"{word[:at]} {word[at:]}" if len(word) > 2 and rng.random() < share else word
            for word in text.split()
            for at in [rng.randrange(1, max(len(word), 2))]
        ]
        return " ".join(cut)

    return edit


def camel(text):
    return "".join(word.capitalize() for word in re.findall(r"\w+", text))


def lost_between_short(text):
    """Behind a run two words of at most ten letters together are one: none of them is long."""
    before, run, rest = text.partition("sells seventeen rye loaves every morning and keeps ")
    words, out = rest.split(" "), []
    while words:
        n = 2 if len("".join(words[:2])) < 10 and len(words) > 1 else 1
        out.append("".join(words[:n]))
        words = words[n:]
    return before + run + " ".join(out)


EDITS = {
    "spaces between short words lost": lost_between_short,
    "one space in three lost": lost(0.33),
    "half of the spaces lost": lost(0.5),
    "all spaces lost": lost(1.0),
    "one word in three split": split(0.33),
    "one word in two split": split(0.5),
    "spaced letters": lambda text: re.sub(r"(\w)(?=\w)", r"\1 ", text),
    "camelCase": camel,
    "all spaces lost, accents": lambda text: text.replace(" ", "").replace("e", "é"),
}


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


@pytest.mark.parametrize("kind", EDITS)
def test_a_scan_and_an_index_find_it(tmp_path, items, kind):
    document = EDITS[kind](FILLER + QUESTION + " " + FILLER)
    corpus = corpus_of(tmp_path / "corpus", [FILLER, document, FILLER + ABSENT[:40]])
    scanned = contam.scan(corpus, items)
    assert labels(scanned) == {"q0": "contaminated", "q1": "clean"}
    asked = contam.query(make(corpus, tmp_path / "index"), items)
    assert labels(asked)["q0"] == "contaminated"
    assert evidence(asked) == evidence(scanned)


def test_evidence_quotes_the_text_as_it_is(tmp_path, items):
    document = lost(1.0)(f"{FILLER}{QUESTION} {FILLER}")
    corpus = corpus_of(tmp_path / "corpus", [document])
    (row, *_) = contam.scan(corpus, items).evidence.to_pylist()
    quoted = document[row["document_start"] : row["document_end"]]
    assert quoted == QUESTION.replace(" ", "").removesuffix("?")


def test_text_with_its_spaces_is_read_as_it_is(tmp_path):
    corpus = corpus_of(tmp_path / "corpus", [f"{FILLER}{QUESTION} {FILLER}"])
    build(corpus, tmp_path / "index", "complete")
    (segment,) = contam.open_index(tmp_path / "index")._opened.parts
    assert segment.segment.letters.n_pairs == 0


def test_an_item_is_not_clean_where_the_text_of_torn_words_is_gone(tmp_path, items):
    corpus = corpus_of(tmp_path / "corpus", [FILLER], [lost(1.0)(f"{FILLER}{QUESTION}")])
    index = make(corpus, tmp_path / "index")
    (corpus / "part-1.parquet").unlink()
    found = {
        one.item_id: one
        for one in contam.query(index, items, policies=["openr1-8"], allow_missing=True)
    }
    assert found["q0"].label == "not_checkable"
    assert found["q1"].label == "clean"


def clock(seconds, point):
    return f"00:{seconds // 60:02}:{seconds % 60:02}{point}{120 + seconds % 7}"


def cues(n):
    words = f"{FILLER}{QUESTION} {FILLER}".split()
    return [" ".join(words[i : i + n]) for i in range(0, len(words), n)]


def srt(n, first=41):
    return "\n".join(
        f"{first + i}\n{clock(3 * i, ',')} --> {clock(3 * i + 2, ',')}\n{cue}\n"
        for i, cue in enumerate(cues(n))
    )


def vtt(n):
    return "WEBVTT\n\n" + "\n".join(
        f"{clock(3 * i, '.')} --> {clock(3 * i + 2, '.')} align:start position:0%\n{cue}\n"
        for i, cue in enumerate(cues(n))
    )


def transcript(n):
    return "\n".join(f"[{clock(3 * i, '.')}] {cue}" for i, cue in enumerate(cues(n)))


def rolling(n):
    """Each line is shown under the one before it, then alone."""
    shown = []
    for i, (before, cue) in enumerate(pairwise(["[Music]", *cues(n)])):
        begin, end, after = (clock(3 * i + step, ",") for step in (0, 2, 3))
        shown.append(f"{2 * i + 1}\n{begin} --> {end}\n{before}\n{cue}\n")
        shown.append(f"{2 * i + 2}\n{end} --> {after}\n{cue}\n")
    return "\n".join(shown)


def thrice(n):
    """What is left of rolling cues without their times."""
    return "\n".join(line for cue in cues(n) for line in [cue] * 3)


@pytest.mark.parametrize("n", [5, 6, 7, 8, 10])
@pytest.mark.parametrize("form", [srt, vtt, transcript])
def test_cues_of_few_words(tmp_path, form, n):
    write_jsonl(tmp_path / "corpus" / "a.jsonl", [{"text": FILLER}, {"text": form(n)}])
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    found = labels(contam.scan(tmp_path / "corpus", items))
    assert found == {"q0": "contaminated", "q1": "clean"}


@pytest.mark.parametrize("n", [7, 10])
@pytest.mark.parametrize("form", [rolling, thrice])
def test_cues_that_roll_up(tmp_path, form, n):
    write_jsonl(tmp_path / "corpus" / "a.jsonl", [{"text": form(n)}])
    items = write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)
    found = labels(contam.scan(tmp_path / "corpus", items))
    assert found == {"q0": "contaminated", "q1": "clean"}


def test_evidence_quotes_the_subtitles_as_they_are(tmp_path):
    text = srt(6)
    write_jsonl(tmp_path / "corpus" / "a.jsonl", [{"text": text}])
    items = write_items(tmp_path / "items.jsonl", QUESTION)
    result = contam.scan(tmp_path / "corpus", items)
    quoted = [
        text[row["document_start"] : row["document_end"]] for row in result.evidence.to_pylist()
    ]
    assert any(part.startswith("A baker") and " --> " in part for part in quoted)


def test_a_grid_of_numbers_is_no_cue(tmp_path):
    grid = "\n".join(f"{7 * i % 83} {11 * i % 97} {13 * i % 89} {17 * i % 79}" for i in range(1, 9))
    question = f"Which row of this table has the largest sum?\n{grid}"
    write_jsonl(tmp_path / "corpus" / "a.jsonl", [{"text": f"{FILLER}\n{question}\n{FILLER}"}])
    items = write_items(tmp_path / "items.jsonl", question)
    assert labels(contam.scan(tmp_path / "corpus", items)) == {"q0": "contaminated"}
