"""The page at `/`, as somebody with a browser meets it."""

import json
import shutil

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install '.[browser]'")

from selenium.webdriver.common.keys import Keys

from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.server.running import serving

SIZES = {"desktop": (1280, 900), "phone": (375, 800)}


@pytest.fixture(scope="module")
def items(bench_fixtures):
    """Items of two small benchmarks by id."""
    found = {}
    for name in ("brook_math", "lantern_quiz"):
        for line in (bench_fixtures / "items" / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            found[row["id"]] = row
    return found


def fill(page, **fields):
    for name, value in fields.items():
        page.run("document.getElementById(arguments[0]).value = arguments[1]", name, value)


def send(page):
    page.run("window.old = 1; document.querySelector('#form button').click()")
    page.wait(lambda: page.run("return !window.old") and page.find("main"))


def asked(page, service, **fields):
    page.open(service.url + "/")
    fill(page, **fields)
    send(page)
    return page


def answer(service, item, **options):
    with service.client() as client:
        reply = client.post("/v1/check", json={"items": [item], "options": options})
    assert reply.status_code == 200, reply.text
    return reply.json()["verdicts"][0]


def marked(page, part, side):
    css = f"article:first-of-type .part[data-part={part}] .texts.{side} mark"
    return page.texts(css)


def joined(rows, side):
    """The texts of spans in order; those that touch are one."""
    found = []
    for row in sorted(rows, key=lambda row: row[f"{side}_start"]):
        if found and row[f"{side}_start"] <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], row[f"{side}_end"]))
        else:
            found.append((row[f"{side}_start"], row[f"{side}_end"]))
    texts = {row[f"{side}_start"]: row[f"{side}_text"] for row in rows}
    return [texts[start][: end - start] for start, end in found]


def test_an_item_is_checked_by_keyboard_alone(browser, open_service, items):
    page = browser()
    page.open(open_service.url + "/")
    page.press(Keys.TAB)
    assert page.focused().text == "Skip to the content"
    page.tab_to("#question")
    page.press(items["brook-001"]["question"])
    page.tab_to("#answer")
    page.press("77")
    page.tab_to("#form button")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find("#result"))
    assert page.texts(".label")[0] == "contaminated"
    assert "is in one document, word for word" in page.find("#result").text
    assert "5 of 5 shards" in page.find("#result").text
    assert "Every run of 5 words or more" in page.find("#result").text
    assert [one.text for one in page.all("article h3")] == ["doc-0043", "doc-0217", "doc-0293"]
    first = page.find("article header").text
    assert "2023-09-07" in first
    assert "hobby-wiki" in first
    assert page.run("return document.scripts.length") == 0
    assert page.find("article a").get_attribute("href") == "https://hobby-wiki.example.org/doc-0043"
    assert page.problems() == []


@pytest.mark.parametrize("item_id", ["brook-002", "brook-004", "lantern-001"])
def test_the_marks_are_the_spans_of_the_evidence(browser, open_service, items, item_id):
    item = {**items[item_id], "id": "pasted"}
    typed = {name: item[name] for name in ("question", "passage") if name in item}
    if "choices" in item:
        item["answer_index"] = item.pop("answer")
        typed |= {"choices": "\n".join(item["choices"]), "right": str(item["answer_index"] + 1)}
    else:
        typed["answer"] = item["answer"]
    page = asked(browser(), open_service, **typed)
    verdict = answer(open_service, item)
    assert page.texts(".label")[0] == verdict["label"].replace("_", " ")
    assert page.find(".reason").text == verdict["reason"]
    first = verdict["evidence"][0]
    rows = [
        row
        for row in verdict["evidence"]
        if (row["shard"], row["row"]) == (first["shard"], first["row"])
    ]
    assert rows
    for part in {row["part"] for row in rows}:
        of_part = [row for row in rows if row["part"] == part]
        assert marked(page, part, "item") == joined(of_part, "item")
        assert marked(page, part, "found") == joined(of_part, "document")


def test_an_item_is_checked_under_several_policies(browser, open_service, items):
    page = browser()
    page.open(open_service.url + "/")
    fill(page, question="Before. " + items["brook-001"]["question"] + " Behind.")
    page.run("document.getElementById('policy-gpt3-test').checked = true")
    send(page)
    assert len(page.all(".verdict")) == 2
    assert page.all("article")
    assert page.run("return document.getElementById('policy-gpt3-test').checked")
    assert page.run("return document.getElementById('question').value").startswith("Before. ")


def test_what_is_wrong_is_said_and_nothing_typed_is_lost(browser, open_service):
    page = browser()
    page.open(open_service.url + "/")
    fill(page, question="\nwhich one is it", choices="one\ntwo", right="3")
    page.run("document.getElementById('index-1').checked = false")
    send(page)
    assert "number of the right choice" in page.find("[role=alert]").text
    assert page.run("return document.getElementById('question').value") == "\nwhich one is it"
    assert not page.run("return document.getElementById('index-1').checked")
    assert page.run("return document.getElementById('index-2').checked")


def test_nothing_in_a_document_is_more_than_text(browser, open_service, hostile_text, shots):
    question = hostile_text.rpartition("Which of")
    question = "Which of" + question[2].partition("?")[0]
    page = asked(browser(375, 800), open_service, question=question)
    assert page.texts(".label")[0] == "contaminated"
    assert marked(page, "question", "found") == [question]
    around = "".join(page.texts(".texts.found"))
    assert (
        "<form action=https://x.invalid><!-- &lt; {{ 7 * 7 }} U+202Egnp.exeU+2066 U+0007 ]]>"
        in around
    )
    assert "characters left out" in around
    assert len(page.driver.page_source) < 60_000
    assert page.run("return window.hurt") is None
    assert (
        page.all("main script, main img, main svg, main iframe, main style, main base, main meta")
        == []
    )
    assert page.all("article a") == []
    assert "javascript:window.hurt='url'" in page.find("article header").text
    assert page.overflow() == []
    assert page.problems() == []
    shots(page, "page-hostile")


def test_what_is_typed_is_no_more_than_text(browser, open_service):
    bad = (
        "</textarea><script>window.hurt = 1</script>\u202e<b>{{ 7 * 7 }}</b> & so on, " + "w" * 3000
    )
    page = asked(browser(375, 800), open_service, question=bad, passage=bad, choices=bad)
    assert page.run("return window.hurt") is None
    assert page.run("return document.getElementById('question').value") == bad
    assert page.overflow() == []
    assert page.problems() == []


@pytest.mark.parametrize(("size", "dark"), [("desktop", False), ("phone", True)])
def test_it_can_be_read_at_any_width_by_day_and_night(
    browser, open_service, items, shots, size, dark
):
    page = browser(*SIZES[size], dark)
    name = f"{size}-{'dark' if dark else 'light'}"
    page.open(open_service.url + "/")
    readable(page, dark, shots, f"page-form-{name}")
    asked(page, open_service, question=items["brook-004"]["question"])
    page.run("for (const one of document.querySelectorAll('details')) one.open = true")
    readable(page, dark, shots, f"page-result-{name}")
    page.open(open_service.url.replace("127.0.0.1", "contam.localhost") + "/")
    assert page.find("[role=alert]")
    page.problems()  # the console says that it is a 403
    readable(page, dark, shots, f"page-problem-{name}")


def readable(page, dark, shots, name):
    assert page.overflow() == []
    assert page.nameless() == []
    assert page.problems() == []
    assert page.run("return document.documentElement.lang") == "en"
    assert page.driver.title.endswith("contam")
    assert (page.ground() < 0.05) if dark else (page.ground() > 0.85)
    shots(page, name)
    poor = {}
    css = "h1,h2,h3,h4,p,dt,dd,label,legend,summary,a,button,code,.label,mark,.gap,textarea,.state,th,td"
    for one in page.all(css):
        if one.is_displayed() and (contrast := page.contrast(one)) < 4.5:
            poor[one.text[:40]] = contrast
    assert poor == {}


def test_a_corpus_that_is_partly_gone_is_said(browser, bench_fixtures, tmp_path, items, shots):
    corpus = tmp_path / "corpus"
    shutil.copytree(bench_fixtures / "corpus", corpus)
    build(corpus, tmp_path / "partly", load_recipe("complete"), workers=1)
    page = browser()
    with serving(tmp_path / "partly", data=tmp_path / "data") as service:
        (corpus / "part-000.parquet").unlink()
        # Whoever finds the shard gone learns less than who asks again.
        asked(page, service, question=items["brook-014"]["question"])
        assert page.texts(".label")[0] == "not checkable"
        assert "Part of the corpus could not be read" in page.find("#result").text
        send(page)
        assert page.texts(".label")[0] == "not checkable"
        assert "Part of the corpus could not be read" in page.find("#result").text
        assert page.find("#result .note.part").text.count("part-000.parquet") == 1
        assert "3 of 4 shards can be read" in page.find("#result").text
        readable(page, False, shots, "page-partly-gone")
        asked(page, service, question=items["brook-003"]["question"])
        assert page.texts(".label")[0] == "not checkable"
