"""Resolve policies by the names that requests may use, never by path."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from contam.detect.policies.policy import get_policy, list_policies
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.policies.policy_spec import PolicySpec


@cache
def known_policies() -> dict[str, PolicySpec]:
    """Every policy that ships, and behind each its presets, by name."""
    found: dict[str, PolicySpec] = {}
    for spec in list_policies():
        found[spec.id] = spec
        for preset in spec.presets:
            name = f"{spec.base}:{preset}"
            found[name] = get_policy(name).spec
    return found


def checked_policies(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if all are known to indexes and none comes twice. Raises RequestError, 422."""
    for spec in list_policies(optional=True):
        if spec.id in names and spec.id not in known_policies():
            raise RequestError(
                422, f"{spec.id} looks for words in any order, which an index does not keep",
                code="policy",
            )  # fmt: skip
    unknown = [at for at, name in enumerate(names) if name not in known_policies()]
    if unknown or len(set(names)) != len(names):
        raise RequestError(
            422, "a policy is unknown" if unknown else "a policy is named twice",
            code="policy",
        )  # fmt: skip
    return tuple(names)
