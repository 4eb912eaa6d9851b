"""The service's description of itself is what is committed, and is whole."""

from __future__ import annotations

import json

import pytest

from tests.contracts import openapi_page


@pytest.fixture(scope="module")
def tree():
    return json.loads(openapi_page.committed())


def operations(tree):
    for path, methods in tree["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_the_committed_description_is_what_the_app_says():
    assert openapi_page.committed() == openapi_page.generated(), "`make openapi` writes it afresh"


def test_it_is_openapi_3_1(tree):
    assert tree["openapi"].startswith("3.1.")


def test_every_failure_of_every_operation_is_a_problem_document(tree):
    for name, operation in operations(tree):
        for status, response in operation["responses"].items():
            if status >= "400":
                assert list(response["content"]) == ["application/problem+json"], (name, status)


def test_every_reference_leads_to_a_schema(tree):
    text = json.dumps(tree)
    known = tree["components"]["schemas"]
    for piece in text.split('"#/components/schemas/')[1:]:
        assert piece.partition('"')[0] in known


def test_every_operation_says_what_it_is_for_and_what_it_answers(tree):
    for name, operation in operations(tree):
        assert operation.get("description") or operation.get("summary"), name
        assert any(status.startswith("2") for status in operation["responses"]), name


def test_every_body_has_an_example_that_its_model_takes(tree):
    from contam.server.schemas.check import CHECK_EXAMPLE, CheckRequest

    CheckRequest.model_validate_json(json.dumps(CHECK_EXAMPLE))
    assert tree["components"]["schemas"]["CheckRequest"]["examples"] == [CHECK_EXAMPLE]
