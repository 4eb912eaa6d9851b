"""List the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, Depends, Response

from contam.server.checks.policies import known_policies
from contam.server.middleware.auth import Needs
from contam.server.problems.failures import RequestError
from contam.server.schemas.common import problems
from contam.server.schemas.indexes import PolicyAnswer, PolicyList

if TYPE_CHECKING:
    from contam.detect.policies.policy_spec import PolicySpec

router = APIRouter(prefix="/v1/policies", tags=["policies"], dependencies=[Depends(Needs("check"))])


@router.get(
    "", response_class=Response, responses={200: {"model": PolicyList}, **problems(401, 403, 429)}
)
def list_all() -> Response:
    """All policies and presets, as `contam policies --json` describes them."""
    found = [_policy_answer(spec) for spec in known_policies().values()]
    return Response(orjson.dumps({"policies": found}), media_type="application/json")


@router.get(
    "/{policy_id}",
    response_class=Response,
    responses={200: {"model": PolicyAnswer}, **problems(401, 403, 404, 429)},
)
def show(policy_id: str) -> Response:
    """One policy, or a preset of it (`decon-default:olmo-web`)."""
    spec = known_policies().get(policy_id)
    if spec is None:
        raise RequestError(404, "there is no such policy", hint="GET /v1/policies lists them")
    return Response(orjson.dumps(_policy_answer(spec)), media_type="application/json")


def _policy_answer(spec: PolicySpec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint()}
