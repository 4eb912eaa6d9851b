"""`contam show` without an item: which items it lists, in which order, and in which forms."""

import itertools
import json

import pytest

import contam
from contam.detect.report import load_report, write_report
from contam.detect.show.choose import source_of
from tests.cli.processes import assert_one_line_error, contam_here

FLAGGED = {"contaminated", "suspect"}


@pytest.fixture(scope="module")
def folder(bench_fixtures, tmp_path_factory):
    """What a scan of the fixtures under two policies wrote."""
    found = contam.scan(
        bench_fixtures / "corpus", bench_fixtures / "items", policies=["contam", "lmeval-13"]
    )
    return write_report(found, tmp_path_factory.mktemp("list") / "out")


@pytest.fixture(scope="module")
def report(folder):
    return load_report(folder)


def items(folder, *arguments):
    done = contam_here("show", folder, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["items"]


def sources(report):
    found = {}
    for row in report.evidence.to_pylist():
        key = row["benchmark"], row["split"], row["item_id"]
        found.setdefault(key, set()).add(source_of(row["source"], row["url"]))
    return found


def key(row):
    return row["benchmark"], row["split"], row["item_id"]


#: Every fifth of all ways to choose: each value occurs, beside several of the others.
CHOICES = [
    *itertools.product(
        [None, "contam", "lmeval-13"],
        [None, "suspect", "clean,not_checkable", "contaminated"],
        [None, "tinker_code", "brook_math,lantern_quiz"],
        [None, "old-almanac"],
    )
][::5]


@pytest.mark.parametrize(("policy", "labels", "benchmark", "source"), CHOICES)
def test_the_verdicts_that_fit_are_listed_in_turn_and_by_score(
    folder, report, policy, labels, benchmark, source
):
    given = {"--policy": policy, "--label": labels, "--benchmark": benchmark, "--source": source}
    flags = [word for flag, value in given.items() if value for word in (flag, value)]
    found = items(folder, *flags)
    wanted = set(labels.split(",")) if labels else FLAGGED
    having = sources(report)
    expected = [
        verdict
        for verdict in report
        if verdict.label in wanted
        and policy in {None, verdict.policy}
        and (benchmark is None or verdict.benchmark in benchmark.split(","))
        and (source is None or source in having.get(key(verdict.to_dict()), ()))
    ]
    assert sorted(map(key, found)) == sorted({key(verdict.to_dict()) for verdict in expected})
    met, order = {}, []
    for item in found:
        verdict = next(v for v in item["verdicts"] if v["label"] in wanted)
        score = verdict["score"]
        scores = met.setdefault((verdict["policy"], score is None, item["benchmark"]), [])
        order.append((verdict["policy"], score is None, len(scores), -(score or 0)))
        scores.append(-(score or 0))
    assert order == sorted(order)
    assert all(scores == sorted(scores) for scores in met.values())


def test_an_item_is_one_line_and_says_how_to_see_its_proof(folder, report):
    text = contam_here("show", folder, "--limit", "1000", COLUMNS="120").stdout
    flagged = {f"{verdict.benchmark}/{verdict.item_id}" for verdict in report if verdict.flagged}
    lines = [line for line in text.splitlines() if line.split(" ")[0] in flagged]
    assert len(lines) == len(flagged)
    assert {line.split(" ")[0] for line in lines} == flagged
    assert "⟦" not in text
    assert f"contam show {folder} ITEM" in text


def test_json_counts_what_was_chosen_and_what_is_flagged(folder):
    clean = json.loads(contam_here("show", folder, "--json", "--label", "clean").stdout)
    assert clean["flagged"] < clean["chosen"] == len(clean["items"])


def test_statistics_count_the_flagged_items_of_each_benchmark_source_and_month(folder, report):
    asked = ("show", folder, "--stats")
    told = json.loads(contam_here(*asked, "--json").stdout)["policies"]
    assert told.keys() == {"contam", "lmeval-13"}
    flagged = {key(one.to_dict()) for one in report if one.flagged and one.policy == "lmeval-13"}
    of_source, of_month = {}, {}
    for row in report.evidence.to_pylist():
        if key(row) in flagged:
            of_source.setdefault(source_of(row["source"], row["url"]), set()).add(key(row))
            of_month.setdefault((row["date"] or "unknown")[:7], set()).add(key(row))
    own = told["lmeval-13"]
    assert own["sources"] == {name: len(items) for name, items in of_source.items()}
    assert own["months"] == {name: len(items) for name, items in of_month.items()}
    assert sum(labels["contaminated"] for labels in own["benchmarks"].values()) == len(flagged)
    shown = contam_here(*asked, "--policy", "lmeval-13", "--benchmark", "brook_math").stdout
    assert "brook_math" in shown
    assert "tinker_code" not in shown
    assert_one_line_error(contam_here(*asked, "--limit", "3"), 2, "--limit", "--stats")


def test_only_documents_of_the_source_are_shown(folder):
    shown = json.loads(contam_here("show", folder, "--json", "--source", "old-almanac").stdout)
    assert shown["items"]
    documents = [document for item in shown["items"] for document in item["documents"]]
    assert {document["source"] for document in documents} == {"old-almanac"}


@pytest.mark.parametrize(
    ("flag", "name", "close"),
    [
        ("--label", "cleen", "clean"),
        ("--benchmark", "tinker", "tinker_code"),
        ("--source", "old-almanack", "old-almanac"),
        ("--policy", "contamm", "contam"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_a_near_one(folder, flag, name, close):
    assert_one_line_error(contam_here("show", folder, flag, name), 2, repr(name), close)


@pytest.mark.parametrize("flag", ["--label", "--benchmark", "--source"])
def test_a_named_item_is_not_filtered(folder, flag):
    done = contam_here("show", folder, "brook-004", flag, "clean")
    assert_one_line_error(done, 2, flag, "ITEM")


def test_one_form_at_a_time(folder, tmp_path):
    words = ("--json", "--html", tmp_path / "x")
    assert_one_line_error(contam_here("show", folder, *words), 2, "--json", "--html")
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_written_whole_and_replaces_nothing_unasked(folder, tmp_path):
    page = tmp_path / "items.html"
    page.write_text("mine")
    assert_one_line_error(contam_here("show", folder, "--html", page), 1, "--overwrite")
    assert page.read_text() == "mine"
    assert contam_here("show", folder, "--html", page, "--overwrite").returncode == 0
    first = page.read_bytes()
    assert contam_here("show", folder, "--html", page, "--overwrite").returncode == 0
    assert page.read_bytes() == first
    nowhere = tmp_path / "no" / "items.html"
    assert_one_line_error(contam_here("show", folder, "--html", nowhere), 1)


@pytest.mark.parametrize("name", ["verdicts.parquet", "new.json", "deep/new.csv"])
def test_a_page_is_not_written_into_a_result(folder, name):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = contam_here("show", folder, "--html", folder / name, "--overwrite")
    assert_one_line_error(done, 2, "--html")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
