"""`service/openapi.json`, the service's description of itself: `python -m tests.contracts.openapi_page`."""

from __future__ import annotations

import json
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "service" / "openapi.json"


def generated() -> str:
    """What the app says of itself; its version is not part of it, since a release changes no address."""
    from contam.config import Settings
    from contam.server.app import create_app

    tree = create_app(Settings()).openapi()
    tree["info"]["version"] = "1"
    return json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def committed() -> str:
    """The file as it is."""
    return PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(generated(), encoding="utf-8")
