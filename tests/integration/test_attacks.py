"""Attempts to make contam lose a hit, quote wrongly, hang, or puzzle whoever meets it first."""

import json
import os

import pytest

from contam.detect.report import load_report, write_report
from contam.detect.scan import scan
from tests.integration.inputs import (
    FILLER,
    QUESTION,
    assert_refused,
    contam_here,
    corpus_of,
    labels,
    quoted,
    run_scan,
    search,
    verdict,
    write_items,
    write_jsonl,
    write_parquet,
)

HALF = len(QUESTION.split()) // 2
FRONT, BACK = " ".join(QUESTION.split()[:HALF]), " ".join(QUESTION.split()[HALF:])


# --------------------------------------------------------------------------------- odd items


@pytest.mark.parametrize(
    "item", ["!!! ???", "🎉🎉🎉", "— … —", "🙂 yes", "zebra", "two words", "x"]
)
def test_an_item_with_too_little_to_look_for_is_never_clean(tmp_path, item):
    policies = ["contam", "gpt3-test", "lmeval-13", "gpt4-50char", "decon-default", "palm-70"]
    result = search(tmp_path, [FILLER, f"{FILLER} {item}"], item, policies=policies)
    assert {one.label for one in result} == {"not_checkable"}
    assert all(one.reason for one in result)


@pytest.mark.parametrize(
    "marks", [("", "", "", ""), ("A. ", "B. ", "C. ", "D. "), ("(a) ", "(b) ", "(c) ", "(d) ")]
)
def test_a_short_question_with_short_choices_is_not_lost(tmp_path, marks):
    choices = ["William Shakespeare", "Christopher Marlowe", "Ben Jonson", "Thomas Kyd"]
    row = {"id": "q0", "question": "Who wrote Hamlet?", "choices": choices, "answer": "A"}
    items = write_jsonl(tmp_path / "items.jsonl", [row])
    listed = "\n".join(mark + text for mark, text in zip(marks, choices, strict=True))
    text = f"{FILLER}\nWho wrote Hamlet?\n{listed}\nAnswer: A\n{FILLER}"
    found = verdict(scan(corpus_of(tmp_path / "corpus", [text]), items))
    assert found.label in {"contaminated", "suspect", "not_checkable"}


# ------------------------------------------------------------------------------ odd places


PLACES = {
    "alone": QUESTION,
    "start": QUESTION + " " + FILLER,
    "end": FILLER + QUESTION,
    "no space around": FILLER.strip() + "\n" + QUESTION + "\n" + FILLER,
    "byte order mark": "\ufeff" + QUESTION,
    "nul bytes": QUESTION.replace(" ", "\x00"),
    "line separators": QUESTION.replace(" ", "\u2028"),
    "replacement characters": QUESTION.replace(" ", " \ufffd "),
    "ideographic spaces": QUESTION.replace(" ", "\u3000"),
    "combining marks": QUESTION.replace("o", "o\u0301"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_copy_is_found_wherever_it_stands(tmp_path, place):
    documents = [FILLER, PLACES[place]]
    result = search(tmp_path, documents, QUESTION)
    found = verdict(result)
    assert (found.label, found.kind, found.best_row) == ("contaminated", "exact", 1)
    ((_, said, text),) = quoted(result, documents)
    assert said == QUESTION.rstrip("?")
    assert text in documents[1]
    assert (text[0], text[-1]) == ("A", "y")


@pytest.mark.parametrize("seam", ["row", "row group", "shard"])
def test_two_documents_are_never_read_as_one(tmp_path, seam):
    texts = [FILLER + FRONT, BACK + FILLER]
    if seam == "shard":
        corpus = corpus_of(tmp_path / "corpus", texts[:1], texts[1:])
    else:
        size = 1 if seam == "row group" else 100
        corpus = corpus_of(tmp_path / "corpus", texts, row_group_size=size)
    items = write_items(tmp_path / "items.jsonl", QUESTION)
    result = scan(corpus, items, policies=["contam", "lmeval-13", "gpt3-test"])
    longest = max(len(FRONT.split()), len(BACK.split()))
    assert max(row["n_tokens"] for row in result.evidence.to_pylist()) <= longest
    assert all(one.kind == "partial" for one in result)
    assert all(one.label != "contaminated" for one in result if one.policy == "contam")


def test_copies_on_every_side_of_every_seam_are_counted(tmp_path):
    texts = [QUESTION if n in {0, 4, 5, 9} else f"{FILLER} {n}" for n in range(10)]
    corpus = corpus_of(tmp_path / "corpus", texts, texts[::-1], row_group_size=5)
    found = verdict(scan(corpus, write_items(tmp_path / "items.jsonl", QUESTION)))
    assert (found.n_documents, found.n_occurrences) == (8, 8)


def test_thousands_of_copies_in_one_document(tmp_path):
    result = search(tmp_path, [(QUESTION + "\n") * 5000], QUESTION)
    assert (verdict(result).n_documents, verdict(result).n_occurrences) == (1, 5000)
    assert len(result.evidence) <= 400
    shown = write_report(result, tmp_path / "out")
    assert contam_here("show", shown, "--documents", "5").returncode == 0


# ------------------------------------------------------------------------------- odd files


def test_any_file_name_is_read_and_named_safely(tmp_path):
    folder = tmp_path / "odd [1] dir\n"
    names = ["a b", "ünï—漢字", "new\nline", "[x]", "esc\x1b[31m", "*", "-dash"]
    for name in names:
        write_parquet(folder / f"{name}.parquet", [FILLER + QUESTION])
        write_jsonl(folder / f"{name}.jsonl", [{"text": FILLER + QUESTION}])
    (folder / "broken \x1b[31m\nERROR.parquet").write_bytes(b"no")
    items = write_items(tmp_path / "it\x1b[31m ems\n.jsonl", QUESTION)
    process = run_scan(folder, items, tmp_path / "out")
    assert process.returncode == 4
    assert verdict(load_report(tmp_path / "out")).n_documents == 14
    shown = contam_here("show", tmp_path / "out", "--documents", "5")
    for said in (process.stdout, process.stderr, shown.stdout):
        assert "\x1b" not in said
        assert not any(line.startswith("ERROR") for line in said.splitlines())


def test_a_name_that_is_not_utf8_costs_no_verdict(tmp_path, items):
    folder = tmp_path / "corpus"
    write_parquet(folder / "good.parquet", [FILLER])
    row = json.dumps({"id": "hidden", "text": QUESTION}) + "\n"
    (folder / os.fsdecode(b"bad\xff.jsonl")).write_text(row)
    process = run_scan(folder, items, tmp_path / "out")
    assert "Error:" not in process.stderr
    assert process.returncode == 0, process.stderr
    found = verdict(load_report(tmp_path / "out"))
    assert (found.label, found.best_shard) == ("contaminated", "bad\\xff.jsonl")
    assert QUESTION.split()[3] in contam_here("show", tmp_path / "out", "--documents", "5").stdout
    items = write_items(tmp_path / os.fsdecode(b"\xfe.jsonl"), QUESTION)
    result = scan(folder, items)
    write_report(result, tmp_path / "again")
    assert verdict(load_report(tmp_path / "again")).benchmark == "\\xfe"


def test_links_in_a_circle_end(tmp_path):
    folder = corpus_of(tmp_path / "corpus", [FILLER + QUESTION])
    sets = tmp_path / "sets"
    write_items(sets / "items.jsonl", QUESTION)
    for home in (folder, sets):
        (home / "deep").mkdir()
        for name in ("a", "b", "deep/c", "deep/d"):
            (home / name).symlink_to(home, target_is_directory=True)
    process = run_scan(folder, sets, tmp_path / "out", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert verdict(load_report(tmp_path / "out")).n_documents == 1


def test_a_benchmark_file_inside_the_corpus_folder_is_refused(tmp_path):
    folder = corpus_of(tmp_path / "corpus", [FILLER])
    inside = write_jsonl(folder / "bench.jsonl", [{"id": "q0", "text": "x", "question": QUESTION}])
    link = tmp_path / "elsewhere.jsonl"
    link.symlink_to(inside)
    for given in (inside, link, folder / ".." / "corpus" / "bench.jsonl"):
        process = run_scan(folder, given, tmp_path / "out")
        assert_refused(process, tmp_path / "out", "bench.jsonl", code=2)
    # Named as a shard, or alone, it is meant: an item matches itself.
    process = run_scan(inside, inside, tmp_path / "out", "--text", "question")
    assert process.returncode == 0, process.stderr
    assert process.stderr
    assert labels(load_report(tmp_path / "out")) == {"q0": "contaminated"}


# --------------------------------------------------------------------------- odd surroundings


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_no_bad_place_to_stand_in(tmp_path, items):
    folder = corpus_of(tmp_path / "corpus", [FILLER + QUESTION])
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    process = run_scan(folder, items, tmp_path / "out", "-q", cwd=closed, unprivileged=True)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    assert list(closed.iterdir()) == []
    process = run_scan(folder, items, "out", "-q", cwd=closed, unprivileged=True)
    assert_refused(process, closed / "out", "Permission denied")


@pytest.mark.slow
def test_without_a_home_the_kernels_find_a_place(tmp_path, items):
    folder = corpus_of(tmp_path / "corpus", [FILLER + QUESTION])
    process = run_scan(folder, items, tmp_path / "out", "-q", HOME=None)
    assert process.returncode == 0, process.stderr
