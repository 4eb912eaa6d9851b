"""The names that a request may hold: every other one may be anybody's text."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

from contam.detect.model import PARTS
from contam.detect.policies.verdict import Verdict

if TYPE_CHECKING:
    from pydantic import BaseModel


@cache
def known_names() -> frozenset[str]:
    """Names of the fields of every request, and of the rows that a request may give back."""
    # Imported here: what describes requests also tells what does not fit in them.
    from contam.server.jobs import requests
    from contam.server.schemas import check
    from contam.server.schemas.common import Strict

    models: list[type[BaseModel]] = [check.Evidence]
    for module in (check, requests):
        models += [
            one
            for one in vars(module).values()
            if isinstance(one, type) and issubclass(one, Strict)
        ]
    return frozenset(
        {name for model in models for name in model.model_fields}
        | {one.name for one in fields(Verdict)}
        | {"evidence", "id", "score", "model", *PARTS}
    )
