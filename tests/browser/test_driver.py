"""The browser of the tests sees what it is there to see: each of its checks fails where it must."""

from __future__ import annotations

import pytest

PAGE = """<!doctype html><html lang=en><head><meta charset=utf-8><title>page</title>
<meta name=viewport content="width=device-width"><link rel=icon href="data:,"><style>{style}</style>
</head><body>{body}</body></html>"""


@pytest.fixture
def page(tmp_path, browser):
    def opened(body, style="", width=375, dark=False):
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(body=body, style=style), "utf-8")
        found = browser(width, 700, dark)
        found.open(path)
        return found

    return opened


def test_what_reaches_beyond_the_window_is_named(page):
    assert page("<p>short</p>").overflow() == []
    wide = page("<pre class=wide>" + "x" * 200 + "</pre>").overflow()
    assert [one.split()[0] for one in wide] == ["page:"]
    assert (
        page("<div class=wide style='width: 900px'>x</div>")
        .overflow()[0]
        .startswith("DIV.wide to 9")
    )


def test_complaints_of_the_console_are_seen_once(page):
    found = page("<script>console.error('broken')</script>")
    assert [problem for problem in found.problems() if "broken" in problem]
    assert found.problems() == []


def test_the_colour_scheme_is_the_one_asked_for(page):
    style = "body { background: white } @media (prefers-color-scheme: dark) { body { background: black } }"
    assert page("x", style).ground() == 1
    assert page("x", style, dark=True).ground() == 0


def test_contrast_is_that_of_the_text_as_painted(page):
    found = page("<p>x</p>", "body { background: white } p { color: #777 }")
    assert 4.47 < found.contrast(found.find("p")) < 4.49


def test_a_field_without_a_label_has_no_name(page):
    assert page("<label for=a>A</label><input id=a>").nameless() == []
    assert len(page("<input id=a><button></button>").nameless()) == 2
