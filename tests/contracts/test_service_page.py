"""The reference lists every setting and every metric of the service, as the code has them."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from contam.server.metrics import TABLE, Metrics
from tests.contracts import service_page


@pytest.mark.parametrize("part", ["settings", "metrics"])
def test_the_reference_says_what_the_code_says(part):
    rewrite = "python -m tests.contracts.service_page"
    assert service_page.committed(part) == getattr(service_page, part)(), rewrite


def test_no_metric_is_given_that_the_table_does_not_have():
    given = {
        family.name
        for family in text_string_to_metric_families(Metrics().exposition().decode())
        if not family.name.startswith("process_")
    }
    assert given == {one.name.removesuffix("_total") for one in TABLE}
