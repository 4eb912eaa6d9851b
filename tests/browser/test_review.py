"""The pages on which people read a pack, as readers with a browser meet them."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install 'contam[browser]'")

from selenium.webdriver.common.keys import Keys

import contam
from contam.audit.review.sample import read_own_labels
from contam.audit.review.session import ReviewSession
from contam.detect.report import write_report
from tests.browser.test_page import SIZES, readable
from tests.server.running import serving

SAMPLE = {"flagged": 3, "clean": 3}


@pytest.fixture(scope="module")
def packs(bench_fixtures, hostile_index, hostile_text, tmp_path_factory):
    """Results of two scans by name: of the committed corpus, and of a document that would harm."""
    home = tmp_path_factory.mktemp("packs")
    question = "Which of" + hostile_text.rpartition("Which of")[2].partition("?")[0]
    bad = "</h1></bdi><script>window.hurt = 'item'</script>\u202e"
    items = [
        {"id": f"one{bad}", "question": f"{question}? {bad}", "choices": [bad, "w" * 3000]},
        {"id": f"two{bad}", "question": f"{bad} nothing of that stands anywhere " * 3},
    ]
    bench = home / "bench.jsonl"
    bench.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    corpora = {"fixtures": bench_fixtures / "corpus", "hostile": hostile_index.parent / "corpus"}
    benches = {"fixtures": bench_fixtures / "items", "hostile": bench}
    for name, corpus in corpora.items():
        write_report(contam.scan(corpus=corpus, benchmark=benches[name], workers=1), home / name)
    return {name: home / name for name in corpora}


@pytest.fixture(scope="module")
def readers(_chromium, packs, tmp_path_factory):
    """A service without keys that offers both to readers, and the folder of their labels."""
    flags = ("--review", *map(str, packs.values()), "--review-flagged", "3", "--review-clean", "3")
    data = tmp_path_factory.mktemp("readers")
    with serving(data=data, flags=flags) as running:
        yield running, data / "reviews"


def press_with_alt(page, key):
    """Press an access key, and wait for the page that comes of it."""
    from selenium.webdriver.common.action_chains import ActionChains

    page.run("window.old = 1")
    ActionChains(page.driver).key_down(Keys.ALT).send_keys(key).key_up(Keys.ALT).perform()
    page.wait(lambda: page.run("return !window.old") and page.find("main"))


def follow(page, css):
    page.run("window.old = 1")
    page.tab_to(css)
    page.press(Keys.ENTER)
    page.wait(lambda: page.run("return !window.old") and page.find("main"))


def test_a_pack_is_read_by_keyboard_alone(browser, readers, packs, shots):
    service, labels = readers
    cases = ReviewSession.open(packs["fixtures"], **SAMPLE).cases
    page = browser()
    page.open(service.url + "/")
    assert page.driver.current_url == service.url + "/review"
    assert page.texts("nav[aria-label=Pages] a") == ["Jobs", "Review"]
    page.tab_to("#reader")
    page.press("Anna Ü")
    follow(page, "#reader-form button")
    follow(page, "a[href^='/review/fixtures']")
    shown = []
    for key in "tfs":
        shown.append(page.texts("main .lead bdi")[-1])
        press_with_alt(page, key)
    assert shown == [case.key.item_id for case in cases[:3]]
    assert f"3 of {len(cases)} read" in page.find("main").text
    assert "Noted: skipped for" in page.find("[role=status]").text
    (path,) = (labels / "fixtures").glob("anna*.jsonl")
    assert [label.label for label in read_own_labels(path)] == [True, False, None]
    follow(page, "[role=status] a")
    assert "You said skipped of this item" in page.find(".note.open").text
    page.tab_to("#note")
    page.press("only the numbers", Keys.ENTER, "agree")
    assert [label.label for label in read_own_labels(path)] == [True, False, None]
    follow(page, ".says button[value=false]")
    last = read_own_labels(path)[-1]
    assert (last.item, last.label, last.note) == (shown[2], False, "only the numbers\nagree")
    for _ in cases[3:]:
        press_with_alt(page, "f")
    assert page.find("h1").text == f"All {len(cases)} items of fixtures are read"
    assert "changed 1 time" in page.find("main").text
    shots(page, "review-answers")
    assert page.problems() == []


def test_an_answer_sent_twice_is_asked_about_and_nothing_typed_is_lost(browser, readers, packs):
    service, labels = readers
    page = browser()
    page.open(f"{service.url}/review/fixtures?reader=twice")
    press_with_alt(page, "t")
    page.driver.back()
    page.run("document.querySelector('[name=before]').value = '0'")
    first = ReviewSession.open(packs["fixtures"], **SAMPLE).by_id
    item = next(iter(first))
    page.run(
        "document.querySelector('#form').action = arguments[0];"
        "document.getElementById('note').value = 'a long thought'",
        f"/review/fixtures/{item}",
    )
    page.run("window.old = 1; document.querySelector('.says [value=false]').click()")
    page.wait(lambda: page.run("return !window.old") and page.find("[role=alert]"))
    assert "nothing was changed" in page.find("[role=alert]").text
    assert page.find("#note").get_attribute("value") == "a long thought"
    path = labels / "fixtures" / "twice.jsonl"
    assert [label.label for label in read_own_labels(path)] == [True]
    press_with_alt(page, "f")
    assert [label.label for label in read_own_labels(path)] == [True, False]


def test_reading_needs_no_script(browser, readers):
    service, labels = readers
    page = browser()
    page.open(f"{service.url}/review/fixtures?reader=plain")
    page.scripts(allowed=False)
    page.find(".says [value=true]").send_keys(Keys.ENTER)
    page.scripts(allowed=True)
    page.wait(lambda: page.find("[role=status]"))
    assert page.run("return document.scripts.length") == 0
    assert len(read_own_labels(labels / "fixtures" / "plain.jsonl")) == 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_items_can_be_read_at_any_width_by_day_and_night(browser, readers, shots, size, dark):
    service, _ = readers
    page = browser(*SIZES[size], dark)
    name = f"{size}-{'dark' if dark else 'light'}"
    reader = f"wide {size} {dark}"
    page.open(f"{service.url}/review")
    readable(page, dark, shots, f"review-start-{name}")
    page.open(f"{service.url}/review/fixtures?reader={reader}")
    kinds = set()
    while len(kinds) < 2:
        kind = "beside" if page.all("article") else "alone"
        if kind not in kinds:
            kinds.add(kind)
            # The answers stay in sight, and leave room for what they are about.
            assert page.find(".says").rect["height"] < 80
            assert page.run(
                "const b = document.querySelector('.says button').getBoundingClientRect();"
                "return b.top > 0 && b.bottom <= innerHeight"
            )
            page.run("for (const one of document.querySelectorAll('details')) one.open = true")
            readable(page, dark, shots, f"review-{kind}-{name}")
        press_with_alt(page, "s")
    page.open(f"{service.url}/review/fixtures/answers?reader={reader}")
    readable(page, dark, shots, f"review-answers-{name}")
    page.open(f"{service.url}/review?reader={reader}")
    readable(page, dark, shots, f"review-packs-{name}")


def test_nothing_in_a_pack_is_more_than_text(browser, readers, packs, shots):
    service, labels = readers
    page = browser(375, 800)
    bad = "<script>window.hurt = 'name'</script>\u202e"
    page.open(f"{service.url}/review?reader=%3Cscript%3Ewindow.hurt%3D'name'%3Cscript%3E")
    page.open(page.find("a[href^='/review/hostile']").get_attribute("href"))
    seen = ""
    for _ in ReviewSession.open(packs["hostile"], **SAMPLE).cases:
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.overflow() == []
        assert page.all("main script, main img, main svg, main iframe, main base, main meta") == []
        seen += page.find("main").text
        assert len(page.driver.page_source) < 120_000
        shots(page, f"review-hostile-{len(seen)}")
        page.run("document.getElementById('note').value = arguments[0]", bad)
        press_with_alt(page, "t")
    assert "window.hurt = 'item'" in seen
    assert "javascript:window.hurt='url'" in seen
    assert "U+202E" in seen
    assert "characters left out" in seen
    assert page.find("h1").text.startswith("All")
    assert "window.hurt = 'name'" in page.find("main").text
    page.open(f"{service.url}/review")
    assert "window.hurt='name'" in page.find("main").text
    assert page.run("return window.hurt") is None
    assert page.overflow() == []
    assert page.problems() == []
    (path,) = (labels / "hostile").iterdir()
    assert {label.note for label in read_own_labels(path)} == {bad}


def test_a_pack_that_is_altered_says_so(browser, packs, tmp_path, shots):
    import shutil

    pack = shutil.copytree(packs["fixtures"], tmp_path / "pack")
    page = browser()
    with serving(data=tmp_path / "data", flags=("--review", str(pack))) as service:
        table = pack / "evidence.parquet"
        was = table.read_bytes()
        table.write_bytes(was[:-9] + b"altered!!")
        page.open(f"{service.url}/review?reader=anna")
        assert "not as it was published" in page.find("main").text
        assert page.all("main a[href^='/review/pack']") == []
        readable(page, False, shots, "review-altered")
        page.open(f"{service.url}/review/pack?reader=anna")
        assert "not as it was published" in page.find("[role=alert]").text
        table.write_bytes(was)
        page.open(f"{service.url}/review/pack?reader=anna")
        assert page.all(".says button")
