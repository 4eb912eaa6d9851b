"""`contam show` says of every result what of the corpus was read: a list alone reads as a pass."""

import json

import pytest

from contam.detect.report import RUN_FILE, load_report
from tests.cli.processes import contam_here
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    corpus_of,
    run_scan,
    write_items,
)


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


SCANS = {
    "read whole": ((), (), ("read 2 of 2 shards",), 0),
    "read in part": (("part-1",), (), ("read 1 of 2 shards", "NOT READ part-1.parquet"), 1),
    "not read": (
        ("part-0", "part-1"), (),
        ("read 0 of 2 shards", "NOT READ part-0.parquet", "NOT READ part-1.parquet"), 2,
    ),
    "allowed": (
        ("part-1",), ("--allow-missing",),
        ("read 1 of 2 shards", "NOT READ part-1.parquet"), 0,
    ),
    "excluded": (
        (), ("--exclude", "part-1.parquet"),
        ("read 1 of 1 shard", "EXCLUDED on purpose 1 shard: part-1.parquet"), 0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=SCANS)
def scanned(request, tmp_path_factory):
    """A result folder, its scan's lines on coverage, and how many items were left unchecked."""
    damaged, options, lines, unchecked = SCANS[request.param]
    folder = tmp_path_factory.mktemp("coverage")
    corpus = corpus_of(folder / "corpus", [FILLER + QUESTION], [FILLER])
    items = write_items(folder / "items.jsonl", QUESTION, ABSENT)
    for name in damaged:
        cut(corpus / f"{name}.parquet")
    said = run_scan(corpus, items, folder / "out", *options).stdout.splitlines()
    lines = [line for start in lines for line in said if line.startswith(start)]
    assert len(lines) == len(SCANS[request.param][2]), said
    return folder / "out", lines, unchecked


def unchecked_line(unchecked):
    things = "1 item" if unchecked == 1 else f"{unchecked} items"
    return [f"{things} could not be checked"] if unchecked else []


@pytest.mark.parametrize("label", [None, "clean", "not_checkable", "suspect"])
@pytest.mark.parametrize("documents", [None, "1"])
def test_a_list_ends_with_the_lines_of_the_scan(scanned, label, documents):
    folder, lines, unchecked = scanned
    options = (("--label", label) if label else ()) + (
        ("--documents", documents) if documents else ()
    )
    done = contam_here("show", folder, *options)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    for line in lines + unchecked_line(unchecked):
        assert line in printed
    assert ("could not be checked" in done.stdout) == bool(unchecked)


def test_json_holds_the_coverage_and_the_unchecked_items(scanned):
    folder, _, unchecked = scanned
    told = json.loads(contam_here("show", folder, "--json").stdout)
    assert told["coverage"] == load_report(folder).run["coverage"]
    assert told["not_checkable"] == unchecked


def test_the_page_says_it_above_the_list(scanned, tmp_path):
    folder, lines, unchecked = scanned
    page = tmp_path / "items.html"
    assert contam_here("show", folder, "--html", page).returncode == 0
    head, _, _ = page.read_text("utf-8").partition("</header>")
    for line in lines + unchecked_line(unchecked):
        assert line in head


def test_csv_stays_a_table_and_an_incomplete_one_is_said(scanned):
    folder, lines, _ = scanned
    done = contam_here("show", folder, "--csv")
    assert "shards" not in done.stdout
    gaps = [line for line in lines if line.startswith("NOT READ")]
    assert [line for line in gaps if line in done.stderr.splitlines()] == gaps
    assert bool(done.stderr) == bool(gaps)


def test_a_result_that_does_not_say_what_was_read_is_no_clean_bill(scanned):
    folder, _, _ = scanned
    run = json.loads((folder / RUN_FILE).read_text())
    del run["coverage"]["shards_read"]
    kept = (folder / RUN_FILE).read_text()
    try:
        (folder / RUN_FILE).write_text(json.dumps(run))
        assert "run.json does not say which shards were read" in contam_here("show", folder).stdout
    finally:
        (folder / RUN_FILE).write_text(kept)
