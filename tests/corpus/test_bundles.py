"""Many small files of text in one folder are read as few shards, and none is passed over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from contam.corpus.listing import list_files
from contam.detect.parts.part_store import Division
from contam.detect.report import load_report, write_report
from contam.detect.scan import scan
from contam.detect.show.choose import flagged_items
from contam.detect.show.side_by_side import view_items
from contam.files import bundles
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items

if TYPE_CHECKING:
    from pathlib import Path

    from contam.detect.result import ScanResult

N = 520


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of many files, the question in two of them."""
    monkeypatch.setattr(bundles, "_USUAL", 50)
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(N):
        text = f"{FILLER} {QUESTION}" if number in (41, 500) else f"{FILLER} {number}"
        (folder / f"{number:04d}.txt").write_text(text)
    (folder / "README.md").write_text(QUESTION)
    return folder


def _found(result: ScanResult) -> list[tuple[str, int]]:
    found = [(row["document_id"], row["document_start"]) for row in result.evidence.to_pylist()]
    return sorted({(name.rpartition("/")[2].partition(":")[0], start) for name, start in found})


def test_few_shards_say_what_a_shard_a_file_says(corpus: Path, items: Path, tmp_path: Path) -> None:
    together, alone = scan(corpus, items), scan(corpus, items, every_hit=True)
    shards = together.run["inputs"]["shards"]
    assert len(shards) < 40 < len(alone.run["inputs"]["shards"]) == N
    assert together.coverage["rows"] == alone.coverage["rows"] == N
    assert together.coverage["n_bytes"] == alone.coverage["n_bytes"]
    assert labels(together) == labels(alone) == {"q0": "contaminated", "q1": "clean"}
    assert _found(together) == _found(alone)
    report = load_report(write_report(together, tmp_path / "out"))
    documents = [
        document
        for view in view_items(report, flagged_items(report))
        for document in view.documents
    ]
    assert {document.document_id for document in documents} == {"0041.txt", "0500.txt"}
    assert not any(document.problem for document in documents)


def test_the_result_is_the_same_however_the_scan_is_divided(
    corpus: Path, items: Path, tmp_path: Path
) -> None:
    runs = []
    for division, workers in ((None, 1), (None, 4), (Division(folder=str(tmp_path / "p")), 2)):
        result = scan(corpus, items, workers=workers, division=division)
        runs.append((result.evidence, {**result.run, "timings": None}))
    assert runs[0] == runs[1] == runs[2]


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(
    corpus: Path, items: Path
) -> None:
    (corpus / "0042.txt").write_bytes(QUESTION.encode("utf-16"))
    (corpus / "0043.txt").write_bytes(b"\x1f\x8b" + b"cut")
    result = scan(corpus, items)
    assert labels(result) == {"q0": "contaminated", "q1": "not_checkable"}
    (failed,) = result.coverage["shards_failed"]
    assert "0042.txt" in failed["reason"]
    assert "0043.txt" in failed["reason"]
    assert len(_found(result)) == len(_found(scan(corpus, items, allow_missing=True))) > 1


@pytest.mark.parametrize("change", ["write", "remove", "same size and time"])
def test_a_file_that_changes_while_it_is_read_is_noticed(
    corpus: Path, items: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = corpus / "0007.txt"
    from contam.detect import scan as module

    plan = module.make_plan

    def changing(*asked: object) -> object:
        before = path.stat()
        if change == "remove":
            path.unlink()
        else:
            path.write_text(path.read_text().replace("7", "8") + "8" * (change == "write"))
        if change == "same size and time":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return plan(*asked)

    monkeypatch.setattr(module, "make_plan", changing)
    result = scan(corpus, items)
    assert labels(result)["q1"] == "not_checkable"


def test_no_file_is_read_twice_or_not_at_all(corpus: Path, tmp_path: Path) -> None:
    (corpus / "link.txt").symlink_to(corpus / "0300.txt")
    os.link(corpus / "0301.txt", tmp_path / "hard.txt")
    (corpus / "long.txt").write_text("x" * (2 << 20))
    (tmp_path / "again").symlink_to(corpus)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "far.txt").symlink_to(corpus / "0302.txt")
    for given in ([corpus], [corpus, corpus], [corpus, tmp_path / "again", tmp_path / "one"]):
        found, skipped = list_files(given, bundle=True)
        names: list[str] = []
        for file in found:
            bundle = bundles.Bundle.at(str(file.path))
            names += [file.path.name] if bundle is None else bundle.names()
        assert sorted(names) == sorted({f"{n:04d}.txt" for n in range(N)} | {"long.txt"})
        assert corpus / "README.md" in {one.path for one in skipped}
    # Whoever names a file may mean one that a bundle would hold.
    named = [corpus, corpus / "0001.txt"]
    assert not any(".." in file.name for file in list_files(named, bundle=True)[0])
