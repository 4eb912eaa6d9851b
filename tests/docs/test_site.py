"""The site that `make docs` built: all pages, all public names, and nothing fetched from elsewhere."""

import re

import pytest

import contam

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def site(repository):
    folder = repository / "build" / "site"
    assert (folder / "docs" / "index.html").is_file(), "`make docs` builds the site"
    return folder


def test_every_page_of_the_documentation_is_on_the_site(repository, site):
    pages = {path.relative_to(repository) for path in repository.glob("docs/**/*.md")}
    pages |= {path.relative_to(repository) for path in repository.glob("docs/**/*.ipynb")}
    assert len(pages) > 30
    assert [page for page in pages if not (site / page).with_suffix(".html").is_file()] == []


def test_the_page_of_the_api_has_every_public_name(site):
    text = (site / "docs" / "api.html").read_text(encoding="utf-8")
    told = set(re.findall(r'<dt class="sig[^>]* id="contam(?:\.client)?[\w.]*\.(\w+)"', text))
    assert told >= set(contam.__all__) - {"__version__"}


def test_a_page_fetches_nothing_from_elsewhere(site):
    fetched = re.compile(r'(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref)="(?:https?:)?//')
    for page in site.rglob("*.html"):
        found = fetched.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.relative_to(site)}: {found[0]}"
