"""A question said in a film is found in its subtitles, however few words a cue has."""

from __future__ import annotations

from itertools import pairwise

import pytest

import contam
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items, write_jsonl


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
