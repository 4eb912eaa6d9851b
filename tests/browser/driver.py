"""A real Chromium without a window: pages are opened, used by keyboard, measured and looked at."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHROMIUM: Final = "chromium"
CHROMEDRIVER: Final = "chromedriver"
PATIENCE_S: Final = 60.0

_FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars",
)  # fmt: skip

# Colours as they are painted: of the element, or of the nearest one behind it that has any.
_COLOURS: Final = """
const one = arguments[0], parse = text => text.match(/[\\d.]+/g)
  .map((part, at) => text.startsWith("color(srgb") && at < 3 ? 255 * part : Number(part));
let behind = one, found = [0, 0, 0, 0];
while (behind) {
  found = parse(getComputedStyle(behind).backgroundColor);
  if (found.length < 4 || found[3] > 0) break;
  behind = behind.parentElement;
}
return [parse(getComputedStyle(one).color).slice(0, 3), found.slice(0, 3)];
"""
_OVERFLOW: Final = """
const width = document.documentElement.clientWidth, found = [];
for (const one of document.body.querySelectorAll('*')) {
  const box = one.getBoundingClientRect();
  if (box.width && box.right > width + 0.5 && !one.closest('[data-scrolls]'))
    found.push(one.tagName + '.' + one.className + ' to ' + Math.round(box.right));
}
if (document.documentElement.scrollWidth > width)
  found.push('page: ' + document.documentElement.scrollWidth + ' of ' + width);
return found;
"""
_NAMELESS: Final = """
const fields = 'input:not([type=hidden]),select,textarea,button,a[href],summary,[tabindex]';
return [...document.querySelectorAll(fields)].filter(one => {
  const labels = [...(one.labels || [])].map(label => label.textContent.trim()).join('');
  const own = (one.matches('input,select,textarea') ? '' : one.textContent.trim());
  return !(labels || own || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby'));
}).map(one => one.outerHTML.slice(0, 200));
"""


def missing() -> str:
    """Why no page can be opened here; empty if one can."""
    absent = [name for name in (CHROMIUM, CHROMEDRIVER) if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found: apt-get install chromium chromium-driver" * bool(
        absent
    )


class Browser:
    """One window of a running Chromium.

    driver  what else selenium can do with it
    """

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str | Path) -> None:
        """Load an address, or a file."""
        self.driver.get(address.resolve().as_uri() if isinstance(address, Path) else address)

    def look(self, width: int, height: int, *, dark: bool) -> None:
        """Be a window of this size, in CSS pixels, of somebody who prefers light or dark."""
        cdp = self.driver.execute_cdp_cmd
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        cdp("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        cdp("Emulation.setEmulatedMedia", {"features": [scheme]})

    def scripts(self, *, allowed: bool) -> None:
        """Let pages run scripts, or be a browser that runs none."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def forget(self) -> None:
        """Be a browser that has seen nothing yet."""
        with contextlib.suppress(Exception):
            self.driver.switch_to.alert.dismiss()
        self.scripts(allowed=True)
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.get_log("browser")

    def find(self, css: str) -> Any:
        """The first element that a selector fits; raises NoSuchElementException."""
        return self.driver.find_element("css selector", css)

    def all(self, css: str) -> list[Any]:
        """All elements that a selector fits, in the order of the page."""
        return self.driver.find_elements("css selector", css)

    def texts(self, css: str) -> list[str]:
        """The text content of all elements that a selector fits, as it stands in the page."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map(x => x.textContent)", css
        )

    def run(self, script: str, *given: object) -> Any:
        """The value of a script's `return`."""
        return self.driver.execute_script(script, *given)

    def press(self, *keys: str, times: int = 1) -> None:
        """Press keys, as a user without a mouse does: `press(Keys.TAB)`, `press("some text")`."""
        for _ in range(times):
            ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> Any:
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    def tab_to(self, css: str, *, most: int = 80) -> Any:
        """Press Tab until an element that fits has the focus."""
        for _ in range(most):
            if self.run("return document.activeElement.matches(arguments[0])", css):
                return self.focused()
            self.press(Keys.TAB)
        raise AssertionError(f"Tab does not reach {css}")

    def wait(self, fits: Callable[[], Any]) -> Any:
        """What `fits` gives as soon as that is something; while a page changes it may fail."""
        from selenium.common.exceptions import WebDriverException

        wait = WebDriverWait(self.driver, PATIENCE_S, 0.05, [WebDriverException])
        return wait.until(lambda _: fits())

    def problems(self) -> list[str]:
        """What the console complained of since the last look: errors, warnings, refused content."""
        return [
            f"{one['level']}: {one['message']}"
            for one in self.driver.get_log("browser")
            if one["level"] in {"WARNING", "SEVERE"}
        ]

    def overflow(self) -> list[str]:
        """What reaches beyond the right edge of the window; parts that scroll say data-scrolls."""
        return self.run(_OVERFLOW)

    def nameless(self) -> list[str]:
        """Fields, buttons and links that have no name for somebody who cannot see them."""
        return self.run(_NAMELESS)

    def contrast(self, element: Any) -> float:
        """Contrast of an element's text with what is behind it, 1 to 21, as WCAG 2 defines it."""
        text, ground = self.run(_COLOURS, element)
        bright, dim = sorted((_luminance(text), _luminance(ground)), reverse=True)
        return (bright + 0.05) / (dim + 0.05)

    def ground(self, css: str = "body") -> float:
        """Luminance behind an element's text: 0 for black, 1 for white."""
        return _luminance(self.run(_COLOURS, self.find(css))[1])

    def shoot(self, path: Path | str) -> None:
        """Write the whole page as PNG."""
        size = self.run(
            "const e = document.documentElement; return [e.clientWidth, e.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        import base64

        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium(home: Path) -> Iterator[Browser]:
    """A Chromium with an empty profile in `home`, closed with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(CHROMIUM) or CHROMIUM
    for flag in (*_FLAGS, f"--user-data-dir={home}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(
        executable_path=shutil.which(CHROMEDRIVER),
        log_output=os.devnull,
        env={**os.environ, "HOME": str(home)},
    )
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(PATIENCE_S)
        driver.set_script_timeout(PATIENCE_S)
        yield Browser(driver)
    finally:
        driver.quit()


def _luminance(colour: list[float]) -> float:
    parts = [one / 255 for one in colour]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
