"""The report of an audit in a real browser: read, filtered, sorted, paged, and harmless."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from selenium.webdriver.common.keys import Keys

from contam.audit.calibration import QValues
from contam.audit.facts import read_facts
from contam.audit.pack import run_audit
from contam.audit.report.pages import PAGE_ITEMS
from contam.audit.report.render import write_html
from contam.audit.spec import load_spec
from contam.detect.report import load_report
from contam.detect.show.choose import flagged_items
from contam.detect.show.side_by_side import view_items
from contam.rescore.summary import SHOWS
from tests.audit.conftest import FIXTURES, write_spec

HOSTILE = (
    "<script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"></td></table></script>"
    "\u202eright to left\u2066 isolate {{ 7*7 }} </mark> <b>bold &amp; </textarea>"
)
MOST_ELEMENTS = 5_000
QUESTION = (
    "Which lamp does the keeper of the northern pier light first when the evening fog comes in"
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return run_audit(load_spec(write_spec(tmp_path_factory.mktemp("report")))).folder


@pytest.fixture(scope="module")
def without_logs(tmp_path_factory):
    home = tmp_path_factory.mktemp("without-logs")
    items = ", ".join(f'"{FIXTURES}/items/{n}.jsonl"' for n in ("brook_math", "tinker_code"))
    (home / "AUDIT.toml").write_text(
        '[audit]\nout = "pack"\npolicies = ["contam", "gpt3-test"]\ndecoys = 0\n'
        f'[[corpus]]\nname = "web"\npaths = ["{FIXTURES}/corpus"]\n'
        f"[[benchmark]]\npaths = [{items}]\nreleased = 2021-06-01\n"
    )
    return run_audit(load_spec(home / "AUDIT.toml")).folder


def hostile_table(texts):
    """Documents of these texts, whose every other column tries to get out of the page."""
    n = len(texts)
    return pa.table(
        {
            "id": [f"doc {at} {HOSTILE}" for at in range(n)],
            "text": texts,
            "url": [f"javascript:document.title='owned'//{HOSTILE}"] * n,
            "source": [HOSTILE, None, "plain"][:n],
            "date": [HOSTILE, None, "2020-01-01"][:n],
        }
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """An audit whose corpus, items, names and addresses try to get out of the page."""
    home = tmp_path_factory.mktemp("hostile")
    texts = [
        f"{HOSTILE} {QUESTION} {HOSTILE}",
        "a" * 5_000_000 + f" {QUESTION} " + "b" * 10,
        f"\u202e\u202e{QUESTION}\u0000\ud7ff {HOSTILE}",
    ]
    pq.write_table(hostile_table(texts), home / "shard.parquet")
    rows = [{"id": f"item {HOSTILE}", "question": f"{QUESTION}? {HOSTILE}"}]
    (home / "evil.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "AUDIT.toml").write_text(
        f'[audit]\ntitle = {json.dumps(HOSTILE.replace(chr(0x202E), ""))}\nout = "pack"\n'
        '[[corpus]]\nname = "web"\npaths = ["shard.parquet"]\n'
        '[[benchmark]]\npaths = ["evil.jsonl"]\nname = "evil<script>"\n'
    )
    return run_audit(load_spec(home / "AUDIT.toml")).folder


def shown(page):
    return page.texts("#items tbody tr:not(.detail) .open")


def hostile_pages(browser, path, n_documents):
    """The hostile page, harmless, at each width."""
    for width in (1280, 375):
        page = browser(width, 800)
        page.open(path)
        page.find("#items .open").click()
        assert len(page.all(".document")) == n_documents
        assert page.driver.title != "owned"
        assert "<script>" in page.find(".detail").get_attribute("textContent")
        # rows, one page of evidence, the report's own
        assert page.run("return document.scripts.length") == 3
        assert page.all("img, b, textarea") == []
        assert page.problems() == []
        assert page.overflow() == []
        yield page


def test_the_first_screen_holds_the_verdict(browser, pack, shots):
    for width, height, dark in (
        (1280, 900, False),
        (1280, 900, True),
        (375, 800, False),
        (375, 800, True),
    ):
        page = browser(width, height, dark)
        page.open(pack / "report.html")
        verdict = page.find(".verdict")
        assert verdict.rect["y"] + verdict.rect["height"] < height
        assert "items" in verdict.text
        numbers = page.all(".numbers li")
        assert len(numbers) == 3
        assert width < 400 or page.find(".to-do + ul").rect["y"] < height
        assert page.overflow() == []
        assert page.nameless() == []
        assert (page.ground() < 0.2) is dark
        page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.find("#items .open").click()
        for css in (
            ".verdict strong",
            ".soft",
            "mark",
            ".ours .tag",
            ".note td",
            "#items .open",
            ".gap",
        ):
            assert page.contrast(page.find(css)) >= 4.5, css
        assert page.overflow() == []
        assert page.problems() == []
        shots(page, f"report-{width}-{'dark' if dark else 'light'}")


def test_marks_are_the_evidence(browser, pack):
    report = load_report(pack / "checks" / "together")
    keys = flagged_items(report)
    page = browser()
    page.open(pack / "report.html")
    names = [key.item_id for key in keys]
    assert shown(page) == names[:50]
    for view in list(view_items(report, keys[:5])):
        button = page.all("#items .open")[names.index(view.key.item_id)]
        page.run("arguments[0].click()", button)
        found = page.run(
            "return [...arguments[0].closest('tr').nextElementSibling.querySelectorAll('.sides')]"
            ".map(s => [...s.querySelectorAll('.side')].map(x => [...x.querySelectorAll('mark')]"
            ".map(m => m.textContent)))",
            button,
        )
        expected = [
            [
                [m.text for m in part.item if m.kind == "match"],
                [m.text for m in part.document if m.kind == "match"],
            ]
            for document in view.documents
            for part in document.parts
        ]
        assert found == expected
        assert any(text for sides in expected for text in sides)


def test_filters_sorting_and_paging_agree_with_the_verdicts(browser, pack):
    report = load_report(pack / "checks" / "together")
    keys = flagged_items(report)
    page = browser()
    page.open(pack / "report.html")
    assert len(keys) > 50
    page.find("#after").click()
    assert shown(page) == [key.item_id for key in keys[50:100]]
    assert page.find("#count").text == f"51–{min(100, len(keys))} of {len(keys)} flagged items"
    page.find("#before").click()
    page.run(
        "const s = document.querySelector('select[name=benchmark]'); s.value = 'lantern_quiz';"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    mine = [key.item_id for key in keys if key.benchmark == "lantern_quiz"]
    assert shown(page) == mine[:50]
    page.find("input[name=text]").send_keys(mine[3][-3:])
    assert set(shown(page)) == {name for name in mine if mine[3][-3:] in name}
    page.find("button[type=reset]").click()
    page.wait(lambda: len(shown(page)) == 50)
    page.find("th[data-sort=documents] button").click()
    page.find("th[data-sort=documents] button").click()
    counts = [int(text) for text in page.texts("#items td[data-label=documents]")]
    assert counts == sorted(counts, reverse=True)
    assert page.find("th[data-sort=documents]").get_attribute("aria-sort") == "descending"


def test_each_benchmark_is_told_whole_in_its_own_section(browser, pack):
    facts = read_facts(pack / "report.json")
    page = browser()
    page.open(pack / "report.html")
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for number, bench in enumerate(facts.benchmarks, 1):
        text = page.run(
            "return document.getElementById(arguments[0]).closest('section').innerText",
            f"benchmark-{number}",
        )
        own = [row for row in facts.scores if row["benchmark"] == bench.name]
        assert own
        for row in own:
            assert row["model"] in text
            assert f"{row['full']:.3f}" in text
            assert f"{row['full_lo']:.3f}–{row['full_hi']:.3f}" in text
        exposures = bench.policies[0].exposures
        assert f"{exposures[0].name.replace('_', ' ')} {exposures[0].n}" in text
        assert bench.policies[0].sources[0].source in text
        others = {benchmark.name for benchmark in facts.benchmarks} - {bench.name}
        shown_plots = page.run(
            "return [...document.getElementById(arguments[0]).closest('section')"
            ".querySelectorAll('img')].map(one => one.alt)",
            f"benchmark-{number}",
        )
        assert shown_plots
        assert not [name for name in others for caption in shown_plots if name in caption]
    every = page.run("return [...document.images].map(one => one.alt)")
    for shows in SHOWS.values():
        assert [caption for caption in every if caption.startswith(shows)], shows


def test_without_logs_there_are_pictures_with_a_key_that_fit_a_phone(browser, without_logs, shots):
    facts = read_facts(without_logs / "report.json")
    for width, dark in ((1280, False), (390, False), (390, True)):
        page = browser(width, 800, dark)
        page.open(without_logs / "report.html")
        page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.overflow() == []
        assert page.nameless() == []
        assert page.problems() == []
        for css in (".key strong", ".terms dt", ".axis span", "figcaption"):
            assert page.contrast(page.find(css)) >= 4.5, css
        shots(page, f"report-without-logs-{width}-{'dark' if dark else 'light'}")
    bars = page.run(
        "return [...document.querySelectorAll('figure.picture table .bar')].map(one => ({"
        "bar: one.getBoundingClientRect().width, parts: [...one.querySelectorAll('rect')]"
        ".map(part => [part.getAttribute('class').slice(2), part.getBoundingClientRect().width])}))"
    )
    policies = [one for bench in facts.benchmarks for one in bench.policies]
    # Of the first policy in the overview, and of each its verdicts and what leaked.
    n = len(facts.benchmarks)
    assert len(bars) == n + 2 * len(policies)
    firsts = [bench.policies[0] for bench in facts.benchmarks]
    for policy, bar in zip([*firsts, *policies], bars[:n] + bars[n::2], strict=True):
        for name, width in bar["parts"]:
            share = getattr(policy, name) / policy.n_items
            assert width / bar["bar"] == pytest.approx(share, abs=0.03)
    keys = set(page.texts(".key strong"))
    assert {"contaminated", "suspect", "clean", "question"} <= keys
    for kind, name in (("sources", "source"), ("months", "month")):
        assert page.run("return document.querySelectorAll('.' + arguments[0]).length", kind), name


def test_paper_shows_all_of_it_within_its_edges(browser, pack):
    page = browser(688, 900)  # A4 within margins of 14 mm
    page.open(pack / "report.html")
    folded = page.run("return document.querySelectorAll('details:not([open])').length")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert page.all("details:not([open])") == []
        assert len(shown(page)) == int(page.find("#count").text.split(" of ")[1].split()[0])
        beyond = page.run(
            "return [...document.querySelectorAll('main *')].filter(one => "
            "one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map(one => one.tagName + ' ' + one.className)"
        )
        assert beyond == []
        page.run("dispatchEvent(new Event('afterprint'))")
        assert folded == page.run("return document.querySelectorAll('details:not([open])').length")
        assert len(shown(page)) == 50
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_an_item_is_opened_by_keyboard_alone(browser, pack):
    page = browser()
    page.open(pack / "report.html")
    page.press(Keys.TAB)
    assert page.focused().text == "To the flagged items"
    page.press(Keys.ENTER)
    page.tab_to("#items .open", most=30)
    page.press(Keys.ENTER)
    assert page.all(".detail mark")
    assert page.focused().get_attribute("aria-expanded") == "true"
    page.press(Keys.ENTER)
    assert not page.all(".detail")


def test_hostile_text_is_text(browser, hostile):
    for page in hostile_pages(browser, hostile / "report.html", 3):
        # Nothing that reorders text reaches beyond its own box.
        assert (
            page.run("return getComputedStyle(document.querySelector('.quote')).unicodeBidi")
            == "isolate"
        )
    assert Path(hostile / "report.html").stat().st_size < 1_000_000


def test_ten_thousand_items_are_listed_and_their_evidence_is_read_by_page(browser, pack, tmp_path):
    facts = read_facts(pack / "report.json")
    report = load_report(pack / "checks" / "together")
    from contam.audit.report.pages import make_pages

    rows, pages = make_pages(report, {}, QValues({}, {}))
    many = [{**rows[n % len(rows)], "item": f"item-{n}"} for n in range(10_000)]
    whole = [one for page in pages for one in page]
    evidence = [whole[n % len(whole)] for n in range(10_000)]
    cut = [evidence[n : n + PAGE_ITEMS] for n in range(0, 10_000, PAGE_ITEMS)]
    write_html(tmp_path / "big.html", facts, many, cut, pack / "scores")
    page = browser()
    page.open(tmp_path / "big.html")
    # It opens at once because only a page of rows is drawn, and no evidence before it is asked for.
    assert page.run("return document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert page.find("#count").text.endswith("of 10,000 flagged items")
    page.find("input[name=text]").send_keys("item-9876")
    assert shown(page) == ["item-9876"]
    page.find("#items .open").click()
    assert page.all(".detail mark")


def test_the_report_names_nothing_outside_itself(pack):
    import re

    text = (pack / "report.html").read_text("utf-8")
    head = text[: text.index('<script type="application/json"')]
    outside = re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)[^"']+""", head)
    assert outside == []
    assert "@import" not in head
    assert FIXTURES.name not in head.split("<main>")[0]
