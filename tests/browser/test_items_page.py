"""The page of `contam show --html` in a real browser, opened as a file: read, and harmless."""

import json
import re

import pyarrow.parquet as pq
import pytest

import contam
from contam.detect.report import load_report, write_report
from contam.detect.show.choose import Choice, choose_items
from tests.browser.test_audit_report import HOSTILE, QUESTION, hostile_pages, hostile_table, shown
from tests.cli.processes import contam_here


def page_of(folder):
    page = folder.parent / "items.html"
    done = contam_here("show", folder, "--html", page, "--overwrite")
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture(scope="module")
def fixtures(bench_fixtures, tmp_path_factory):
    found = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items")
    return write_report(found, tmp_path_factory.mktemp("fixtures") / "out")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Results whose corpus, items, names and addresses try to get out of the page."""
    home = tmp_path_factory.mktemp("hostile <b>&amp;\"'")
    texts = [f"{HOSTILE} {QUESTION} {HOSTILE}", f"\u202e\u202e{QUESTION}\u0000\ud7ff {HOSTILE}"]
    (home / "corpus").mkdir()
    pq.write_table(
        hostile_table(texts), home / "corpus" / "a <script>document.title='owned'<.parquet"
    )
    (home / "corpus" / "<img src=x onerror=alert(1)>.parquet").write_bytes(b"PAR1")
    row = {"id": f"item {HOSTILE}", "question": f"{QUESTION}? {HOSTILE}"}
    (home / "evil.jsonl").write_text(json.dumps(row) + "\n")
    found = contam.scan(home / "corpus", home / "evil.jsonl", name="evil<script>")
    return write_report(found, home / "out")


def test_items_are_read_beside_their_documents_at_any_width(browser, fixtures, shots):
    path = page_of(fixtures)
    report = load_report(fixtures)
    keys = choose_items(report, Choice())
    for width, height, dark in ((1280, 900, False), (375, 800, True)):
        page = browser(width, height, dark)
        page.open(path)
        assert page.driver.current_url.startswith("file://")
        assert shown(page) == [key.item_id for key in keys[:50]]
        assert page.find("#count").text == f"1–50 of {len(keys)} items"
        page.find("#items .open").click()
        assert page.all(".detail mark")
        for css in (".soft", "mark", "#items .open", "h1"):
            assert page.contrast(page.find(css)) >= 4.5, css
        assert page.overflow() == []
        assert page.nameless() == []
        assert page.problems() == []
        shots(page, f"items-{width}-{'dark' if dark else 'light'}")
    assert not page.all("[data-sort=q], [data-sort=date]")
    assert "4 of 4 shards" in page.find("main").text


def test_hostile_text_is_text(browser, hostile):
    path = page_of(hostile)
    for page in hostile_pages(browser, path, 2):
        assert "onerror=alert(1)" in page.find("main").text


def test_nothing_outside_the_file_is_named(fixtures, hostile):
    for folder in (fixtures, hostile):
        text = page_of(folder).read_text("utf-8")
        head = text[: text.index('<script type="application/json"')]
        assert re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)[^"']+""", head) == []
        assert "@import" not in head
