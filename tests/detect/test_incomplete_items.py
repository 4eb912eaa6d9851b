"""An item of which something is missing is never called clean, whoever reads it."""

from __future__ import annotations

import json

from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import BenchItem
from contam.client.wire import item_row
from contam.server.schemas import Item

WHY = "its column notes is unread; --map question=question+notes reads it"
QUESTION = "Why did the miller of Oster Bay refuse to grind barley on any rainy Thursday at noon?"


def test_the_reason_goes_to_the_service_and_through_a_table():
    item = BenchItem(benchmark="b", split="", item_id="1", question=QUESTION, incomplete=WHY)
    assert list(ItemTable.of([item])) == [item]
    sent = json.loads(json.dumps(item_row(item)))
    assert Item.model_validate(sent).read == item
