"""The page at `/`, as somebody with a browser meets it."""

from __future__ import annotations

import json
import shutil

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install 'contam[browser]'")

from selenium.webdriver.common.keys import Keys
from starlette.requests import Request

from contam.config import Settings
from contam.index.build import build
from contam.index.recipe import load_recipe
from contam.server.checks.admission import Admission
from contam.server.middleware.auth import CALLER, OPEN
from contam.server.page.render import show
from contam.server.state import State
from tests.server.jobs.jobbing import ended, submitted
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
    assert "Every run of 8 words or more" in page.find("#result").text
    assert [one.text for one in page.all("article h3")] == ["doc-0043", "doc-0217", "doc-0293"]
    first = page.find("article header").text
    assert "2023-09-07" in first
    assert "hobby-wiki" in first
    assert page.find("article a").get_attribute("href") == "https://hobby-wiki.example.org/doc-0043"
    assert page.problems() == []


def test_every_stop_of_the_keyboard_can_be_seen(browser, open_service):
    page = browser()
    page.open(open_service.url + "/")
    seen = set()
    for _ in range(40):
        page.press(Keys.TAB)
        width = page.run("return parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        name = page.run("return document.activeElement.tagName + document.activeElement.id")
        if name == "BODY":
            break
        seen.add(name)
        assert width >= 2, name
    assert {"TEXTAREAquestion", "TEXTAREApassage", "INPUTright", "INPUTindex-1", "BUTTON"} <= seen


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


def test_what_cannot_be_checked_is_explained(browser, open_service, items, shots):
    page = asked(browser(), open_service, question=items["brook-031"]["question"])
    assert page.texts(".label")[0] == "not checkable"
    said = page.find("#result .note").text
    assert "Not checkable is not clean" in said
    shots(page, "page-not-checkable")


def test_a_text_is_checked_under_several_policies(browser, open_service, items):
    page = browser()
    page.open(open_service.url + "/?as=text")
    fill(page, text="Before. " + items["brook-001"]["question"] + " Behind.")
    page.run("document.getElementById('policy-gpt3-test').checked = true")
    send(page)
    assert len(page.all(".verdict")) == 2
    assert page.all("article")
    assert page.run("return document.getElementById('policy-gpt3-test').checked")
    assert page.run("return document.getElementById('text').value").startswith("Before. ")


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


def test_the_page_needs_no_script(browser, open_service, items):
    page = browser()
    page.open(open_service.url + "/")
    page.scripts(allowed=False)
    page.find("#question").send_keys(items["brook-001"]["question"])
    page.find("#form button").send_keys(Keys.ENTER)
    page.scripts(allowed=True)
    assert page.wait(lambda: page.texts(".label"))[0] == "contaminated"
    assert page.run("return document.scripts.length") == 0


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
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
    page.open(open_service.url + "/jobs/none")
    assert "there is no such job" in page.find("main").text
    page.problems()  # the console says that it is a 404
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


def test_a_job_is_followed_to_its_end_without_a_hand(browser, open_service, bench_fixtures, shots):
    content = (bench_fixtures / "items" / "brook_math.jsonl").read_bytes()
    with open_service.client() as client:
        asked_for = {"kind": "check", "index": "small", "policies": ["contam"]}
        job = submitted(client, asked_for, items=("items.jsonl", content))
        page = browser()
        page.open(f"{open_service.url}/jobs/{job['id']}")
        page.wait(lambda: page.all(".state.done"))
        assert ended(client, job)["state"] == "done"
    cells = dict(zip(page.texts("thead th")[1:], page.texts("tbody td"), strict=True))
    assert cells == {"contaminated": "31", "suspect": "3", "clean": "14", "not checkable": "1"}
    assert "4 of 4 shards" in page.find("main").text
    assert page.all("meta[http-equiv]") == []
    for size, (width, height) in SIZES.items():
        browser(width, height)
        readable(page, False, shots, f"page-job-{size}")
    page.open(open_service.url + "/jobs")
    readable(page, False, shots, "page-jobs")
    page.tab_to(f"a[href='/jobs/{job['id']}']")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find("#counts"))
    page.tab_to("main form button")
    page.press(Keys.ENTER)
    page.wait(lambda: page.driver.current_url.endswith("/jobs") and page.find(".lead"))
    assert page.all(f"a[href='/jobs/{job['id']}']") == []
    assert page.problems() == []


def test_a_job_that_waits_can_be_cancelled_by_its_owner_alone(browser, waiting, shots):
    page, (service, keys) = browser(), waiting
    (_, mine), (_, other) = (keys.add(name, ["jobs"]) for name in ("mine", "other"))
    with service.client(headers={"Authorization": f"Bearer {mine}"}) as client:
        items = ("items.jsonl", b'{"id": "1", "question": "which one is it"}')
        job = submitted(client, {"kind": "check"}, items=items)
    for key in (other, mine):
        page.driver.delete_all_cookies()
        page.open(service.url + "/sign-in")
        page.wait(lambda: page.focused().get_attribute("id") == "key")
        page.press(key, Keys.ENTER)
        page.wait(lambda: page.find("h1").text == "Jobs")
        assert len(page.all("main li")) == (key == mine)
        page.open(f"{service.url}/jobs/{job['id']}")
        assert bool(page.all(".state.queued")) == (key == mine)
    page.problems()  # the console says that it was a 404
    assert page.all("meta[http-equiv=refresh]")
    page.tab_to("main a[href$='?still=true']")
    page.press(Keys.ENTER)
    page.wait(lambda: page.driver.current_url.endswith("still=true") and page.find("#state"))
    assert page.all("meta[http-equiv=refresh]") == []
    readable(page, False, shots, "page-job-queued")
    page.tab_to("main form button")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find(".state.cancelled"))
    assert page.problems() == []


def test_a_corpus_that_is_partly_gone_is_said(browser, bench_fixtures, tmp_path, items, shots):
    corpus = tmp_path / "corpus"
    shutil.copytree(bench_fixtures / "corpus", corpus)
    build(corpus, tmp_path / "partly", load_recipe("standard"), workers=1)
    page = browser()
    with serving(tmp_path / "partly", data=tmp_path / "data") as service:
        (corpus / "part-000.parquet").unlink()
        # Whoever finds the shard gone learns less than who asks again.
        asked(page, service, question=items["brook-014"]["question"])
        assert page.texts(".label")[0] in {"contaminated", "not checkable"}
        assert "Part of the corpus could not be read" in page.find("#result").text
        send(page)
        assert page.texts(".label")[0] == "contaminated"
        assert "Part of the corpus could not be read" in page.find("#result").text
        assert page.find("#result .note.part").text.count("part-000.parquet") == 1
        assert "3 of 4 shards can be read" in page.find("#result").text
        assert "could not be read again" in page.find("article").text
        assert marked(page, "question", "item") == [items["brook-014"]["question"].rstrip("?.")]
        assert page.all(".texts.found") == []
        readable(page, False, shots, "page-partly-gone")
        asked(page, service, question=items["brook-003"]["question"])
        assert page.texts(".label")[0] == "not checkable"


def test_a_running_job_shows_how_far_it_is(browser, tmp_path, shots):
    progress = {"phase": "searching", "done_bytes": 3, "total_bytes": 8, "share": 0.375}
    job = {
        "id": "7d0f5ad2c1a94be83c60ab12", "kind": "check", "state": "running", "ended": False,
        "created": "2026-05-04T09:30:00Z", "started": "2026-05-04T09:30:01Z", "finished": None,
        "expires": None, "attempts": 2, "index": ["corpus"], "policies": ["contam"], "n_items": 2,
        "n_bytes": 9, "progress": progress, "coverage": None, "counts": None, "error": None,
        "guarantee_tokens": None, "capped": None, "notes": [], "links": {},
    }  # fmt: skip
    scope = {"type": "http", "headers": [], CALLER: OPEN}
    state = State(Settings(), Admission(1, 1))
    shown = show(
        Request(scope), state, "job.html", job=job, refresh=600, labels=(), base="", keys=False
    )
    state.admission.close()
    (tmp_path / "job.html").write_bytes(shown.body)
    page = browser(*SIZES["phone"])
    page.open(tmp_path / "job.html")
    assert page.find("label[for=progress]").text == "Searching: 37 %"
    assert page.find("progress").get_attribute("value") == "0.375"
    assert page.driver.title.startswith("Running 37 %")
    assert "2 times" in page.find("main").text
    readable(page, False, shots, "page-job-running")
