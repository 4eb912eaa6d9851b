"""What is said of the service: service/openapi.json and the metrics in the reference."""

import inspect
import json
from dataclasses import fields

import pytest
from prometheus_client.parser import text_string_to_metric_families

from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from contam.server.observe import Metrics
from tests.contracts import openapi_page, printed


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
            # A bad range is answered by the framework.
            if status >= "400" and status != "416":
                assert list(response["content"]) == ["application/problem+json"], (name, status)


def test_every_body_has_an_example_that_its_model_takes(tree):
    from contam.server.schemas import CHECK_EXAMPLE, CheckRequest

    CheckRequest.model_validate_json(json.dumps(CHECK_EXAMPLE))
    assert tree["components"]["schemas"]["CheckRequest"]["examples"] == [CHECK_EXAMPLE]


def test_a_job_takes_the_options_of_a_rescoring(tree):
    """All but those that are of the request itself, of files on disk, or too costly to leave open."""
    arguments = inspect.signature(rescore).parameters.keys() - {
        "verdicts",
        "logs",
        "field",
        "policies",
    }
    asked = arguments | {field.name for field in fields(RescoreSettings)}
    asked -= {"settings", "labels", "draws", "sweep_permutations", "reference_benchmarks"}
    assert tree["components"]["schemas"]["RescoreOptions"]["properties"].keys() == asked


def test_no_metric_is_given_that_the_reference_does_not_have():
    given = {
        family.name
        for family in text_string_to_metric_families(Metrics().exposition().decode())
        if not family.name.startswith("process_")
    }
    assert given == {name.removesuffix("_total") for name, *_ in printed.metrics()}
