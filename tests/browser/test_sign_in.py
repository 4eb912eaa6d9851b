"""Where a service has keys, a browser signs in with one, and may do what that key may."""

from __future__ import annotations

import http.cookies

import httpx
import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install 'contam[browser]'")

from selenium.webdriver.common.keys import Keys

QUESTION = (
    "Ottoline mends umbrellas beside the ferry landing. On a wet Tuesday she fixed 14 of them at 6 crowns each and "
    "sold 5 spare handles for 3 crowns apiece. If thread and rivets cost her 22 crowns that day, what did she keep?"
)


def signed_in(page, service, key):
    page.open(service.url + "/")
    assert page.driver.current_url == service.url + "/sign-in"
    page.wait(lambda: page.focused().get_attribute("id") == "key")
    page.press(key, Keys.ENTER)
    page.wait(lambda: page.all("[role=alert]") or page.all(".who"))
    return page


def check(page):
    page.run("document.getElementById('question').value = arguments[0]", QUESTION)
    page.run("document.querySelector('#form button').click()")
    page.wait(lambda: page.find("#result"))


def test_a_key_opens_the_page_and_signing_out_closes_it(browser, keyed_service, keys, shots):
    _, key = keys.add("reader", ["check", "read-documents"])
    page = signed_in(browser(), keyed_service, "contam_00000000_wrong")
    assert "not known, or was revoked" in page.find("[role=alert]").text
    page.problems()  # the console says that it is a 403
    shots(page, "page-sign-in")
    signed_in(page, keyed_service, key)
    (cookie,) = page.driver.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert key not in cookie["value"]
    assert page.run("return document.cookie") == ""
    assert page.texts("nav[aria-label=Pages] a") == ["Check"]
    check(page)
    assert page.texts(".label")[0] == "contaminated"
    assert "After move 25" in page.find(".texts.found").text
    page.tab_to(".who button")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find("#key"))
    assert page.driver.get_cookies() == []
    page.driver.add_cookie({"name": cookie["name"], "value": cookie["value"]})
    page.open(keyed_service.url + "/")
    assert page.driver.current_url == keyed_service.url + "/sign-in"
    assert page.problems() == []


def test_a_page_shows_no_more_than_its_key_may(browser, keyed_service, keys):
    _, key = keys.add("checker", ["check"])
    page = signed_in(browser(), keyed_service, key)
    check(page)
    assert "Your key may not read documents" in page.find("main").text
    assert page.texts("article:first-of-type .texts.found mark")[0] == QUESTION[:-1]
    assert "After move 25" not in page.driver.page_source
    page.open(keyed_service.url + "/jobs")
    assert "does not have the scope 'jobs'" in page.find("[role=alert]").text


def test_a_revoked_key_closes_its_sessions_at_once(browser, keyed_service, keys):
    made, key = keys.add("leaver", ["check"])
    page = signed_in(browser(), keyed_service, key)
    keys.revoke(made.id)
    page.open(keyed_service.url + "/")
    assert page.driver.current_url == keyed_service.url + "/sign-in"


def test_a_form_of_another_page_is_refused(browser, open_service, tmp_path):
    form = "<form method=post action='{}/'><input name=question value=x><input name=index value=small></form>"
    other = tmp_path / "other.html"
    other.write_text(form.format(open_service.url), "utf-8")
    page = browser()
    page.open(other)
    page.run("document.forms[0].submit()")
    page.wait(lambda: page.driver.current_url.startswith(open_service.url))
    assert "another site" in page.find("[role=alert]").text


@pytest.fixture
def session(keyed_service, keys):
    """A client that is signed in, and the token of its forms."""
    _, key = keys.add("client", ["check", "jobs"])
    with keyed_service.client(headers={"Origin": keyed_service.url}) as client:
        reply = client.post("/sign-in", data={"key": key})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        page = client.get("/").text
        yield client, page.split('name="token" value="')[1].split('"')[0]


def fields(token):
    return {"token": token, "index": "small", "policy": "contam", "question": QUESTION}


def test_a_session_opens_the_page_and_not_the_api(session):
    client, token = session
    assert client.post("/", data=fields(token)).status_code == 200
    assert client.get("/v1/indexes").status_code == 401
    assert client.post("/v1/check", json={"text": QUESTION}).status_code == 401


def test_a_form_without_its_token_or_from_elsewhere_does_nothing(session):
    client, token = session
    for wrong in ("", token[:-1] + "*"):
        reply = client.post("/", data=fields(wrong))
        assert reply.status_code == 403
        assert "this form is out of date" in reply.text
        assert 'id="result"' not in reply.text
        # It can be sent again as it stands: it was filled in, and is one of ours now.
        assert "Ottoline mends umbrellas" in reply.text
        assert token in reply.text
    elsewhere = {"Origin": "https://other.example"}
    assert client.post("/", data=fields(token), headers=elsewhere).status_code == 403
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert client.post("/", data=fields(token), headers=elsewhere).status_code == 403
    assert client.post("/sign-out", headers={"content-type": "text/plain"}).status_code == 415


def test_strangers_get_no_page_and_no_body_read(keyed_service):
    with keyed_service.client() as client:
        assert client.get("/").headers["location"] == "/sign-in"
        assert client.get("/jobs").headers["location"] == "/sign-in"
        assert client.get("/jobs/x").headers["location"] == "/sign-in"
        assert client.post("/", data=fields("")).status_code == 401
        assert client.post("/sign-in", data={"key": "x" * 5000}).status_code == 413
        assert client.post("/sign-in", data={"key": "x"}).status_code == 403


def test_a_browser_that_came_by_https_keeps_its_session_to_that(keyed_service, keys):
    _, key = keys.add("proxied", ["check"])
    host = httpx.URL(keyed_service.url).netloc.decode()
    with keyed_service.client(headers={"Origin": f"https://{host}"}) as client:
        reply = client.post("/sign-in", data={"key": key})
    cookie = http.cookies.SimpleCookie(reply.headers["set-cookie"])["contam-session"]
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Strict")
    assert cookie["max-age"] == "3600"
