"""What the page is made of: keys, forms, and documents put together of what is known of them."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from contam.detect.show.side_by_side import Mark, mark
from contam.server.auth import KeyStore
from contam.server.check import items_of
from contam.server.page import check_of, compare_item, fields_of, link_of, seen
from contam.server.problems import RequestError


def test_what_nobody_sees_is_named_and_all_else_is_escaped():
    assert seen("a<b>\u202e\x00&\n") == (
        'a&lt;b&gt;<span class="unseen">U+202E</span><span class="unseen">U+0000</span>&amp;\n'
    )


def form(**fields):
    return {
        name: value if isinstance(value, list) else [value]
        for name, value in {"index": "a", "policy": "contam", **fields}.items()
    }


def sent(body):
    """The fields of a form as a browser sends it."""

    async def receive():
        return {"type": "http.request", "body": body}

    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "app": None}
    return asyncio.run(fields_of(Request(scope, receive)))


def test_a_form_asks_for_the_item_that_was_typed():
    body = b"question=one%0D%0Atwo&choices=x%0D%0A%0D%0A+y&right=2&passage=&index=a&policy=contam&answer=%ff"
    asked = check_of(sent(body), context=0)
    (item,) = items_of(asked)
    assert (item.question, item.choices, item.answer_index) == ("one\ntwo", ("x", "y"), 1)
    assert (item.passage, item.answer) == (None, "\ufffd")
    assert (asked.names, asked.policies) == (["a"], ["contam"])


@pytest.mark.parametrize(
    "fields",
    [{"question": " "}, {"question": "x", "right": "1"},
     {"question": "x", "choices": "a", "right": "0"}, {"question": "x", "choices": "a", "right": "²"},
     {"question": "x", "policy": "p" * 600}, {"question": ["x", "y"]}],
)  # fmt: skip
def test_a_form_that_says_too_little_is_refused(fields):
    with pytest.raises(RequestError) as refused:
        check_of(form(**fields), context=0)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("url", "followed"),
    [("https://a.org/x", True), ("http://a.org", True), ("ftp://x", False), (None, False),
     ("javascript:alert(1)", False), ("https:///x", False), ("http://[", False)],
)  # fmt: skip
def test_only_an_address_of_the_web_is_followed(url, followed):
    assert link_of(url) == (url if followed else None)


spans_of = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), min_size=1, max_size=6)


@given(spans_of, st.integers(0, 50))
def test_a_document_is_put_together_as_if_its_text_were_there(spans, context):
    text = "".join(chr(ord("a") + at % 26) for at in range(400))
    spans = [(start, start + length) for start, length in spans]
    rows = [
        {"part": "question", "document_id": "d", "shard": "s", "row": 0, "url": "ftp://x", "date": None,
         "source": None, "item_start": 0, "item_end": 1, "document_start": start, "document_end": end,
         "document_token": None, "n_tokens": 1, "similarity": None, "answer_mark": None,
         "document_text": text[start:end],
         "before": text[max(start - context, 0) : start], "after": text[end : end + context]}
        for start, end in spans
    ]  # fmt: skip
    (item,) = items_of(check_of(form(question="q"), context=0))
    (document,) = compare_item(item, rows, "word").documents
    whole = mark(text, spans, context)
    if whole[-1].kind == "gap":
        whole = whole[:-1]
    assert merged(document.parts[0].document) == merged(whole)


def merged(marks):
    """Marks without the borders between windows that touch."""
    found = []
    for one in marks:
        if found and found[-1].kind == one.kind:
            found[-1] = Mark(one.kind, found[-1].text + one.text, 0)
        else:
            found.append(Mark(one.kind, one.text, one.n_left_out))
    return found


def test_a_key_opens_the_page_as_a_password_and_as_nothing_else(guarded):
    store = KeyStore(guarded.data)
    key, secret = store.add("reader", ["check"])
    _, other = store.add("mailer", ["jobs"])
    sent = {"index": "small", "policy": "contam", "question": "which one is it"}
    with guarded.client() as client:
        ours = {"auth": ("anna", secret), "headers": {"Origin": guarded.url}}
        assert client.get("/", auth=("anna", secret)).status_code == 200
        assert 'id="result"' in client.post("/", data=sent, **ours).text
        assert client.get("/", auth=("anna", other)).status_code == 403
        for auth in (None, ("anna", "wrong"), (secret, "")):
            refused = client.get("/", auth=auth)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Basic")
        assert client.post("/", data=sent).status_code == 403
        for headers in (
            {},
            {"Origin": "https://other.example"},
            {"Origin": guarded.url, "Sec-Fetch-Site": "cross-site"},
        ):
            assert (
                client.post("/", data=sent, auth=ours["auth"], headers=headers).status_code == 403
            )
        refused = client.get("/v1/indexes", auth=("anna", secret))
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        store.revoke(key.id)
        assert client.get("/", auth=("anna", secret)).status_code == 401
