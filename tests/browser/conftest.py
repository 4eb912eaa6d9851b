"""One Chromium for all tests of pages; each test gets it as if it were new."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser.driver import Browser

HERE = os.path.dirname(__file__)  # noqa: PTH120 - compared with the paths of pytest's items


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(HERE + os.sep):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    why = _why_not()
    if why and os.environ.get("CI") == "true":
        pytest.fail(f"CI must have Chromium: {why}")
    if why:
        pytest.skip(why)
    from tests.browser.driver import chromium

    with chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(_chromium: Browser) -> Callable[..., Browser]:
    """`browser(width, height, dark)`: Chromium with no cookies, of this size and colour scheme."""
    _chromium.forget()

    def opened(width: int = 1280, height: int = 900, dark: bool = False) -> Browser:
        _chromium.look(width, height, dark=dark)
        return _chromium

    return opened


def _why_not() -> str:
    try:
        from tests.browser import driver
    except ImportError:
        return "selenium is not installed: pip install 'contam[browser]'"
    return driver.missing()


@pytest.fixture
def shots() -> Callable[[Browser, str], Path | None]:
    """`shots(browser, "name")` keeps a picture in the folder CONTAM_SHOTS, if that is set."""

    def shoot(browser: Browser, name: str) -> Path | None:
        from pathlib import Path

        home = os.environ.get("CONTAM_SHOTS")
        if not home:
            return None
        browser.shoot(Path(home, f"{name}.png"))
        return Path(home, f"{name}.png")

    return shoot
