"""Find which test items a pretraining corpus contains, and the text that proves it.

    import contam

    result = contam.scan(["corpus/"], ["gsm8k.jsonl"], policies=["contam", "gpt3-test"])
    for verdict in result:
        print(verdict.item_id, verdict.label, verdict.reason)

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.cleaning.clean import clean
    from contam.cleaning.run import Cleaned
    from contam.detect.indexed.index_reader import IndexReader, open_index
    from contam.detect.policies.policy import get_policy, list_policies
    from contam.detect.policies.verdict import Verdict
    from contam.detect.query import query
    from contam.detect.report import Report, load_report, write_report
    from contam.detect.result import ScanResult
    from contam.detect.scan import scan
    from contam.errors import ContamError

    __version__: str

__all__ = [
    "BenchItem",
    "Cleaned",
    "ContamError",
    "IndexReader",
    "Report",
    "ScanResult",
    "Verdict",
    "__version__",
    "clean",
    "get_policy",
    "list_policies",
    "load_report",
    "open_index",
    "query",
    "scan",
    "write_report",
]

_HOME = {
    "BenchItem": "contam.benchmark.items",
    "Cleaned": "contam.cleaning.run",
    "ContamError": "contam.errors",
    "IndexReader": "contam.detect.indexed.index_reader",
    "Report": "contam.detect.report",
    "ScanResult": "contam.detect.result",
    "Verdict": "contam.detect.policies.verdict",
    "clean": "contam.cleaning.clean",
    "get_policy": "contam.detect.policies.policy",
    "list_policies": "contam.detect.policies.policy",
    "load_report": "contam.detect.report",
    "open_index": "contam.detect.indexed.index_reader",
    "query": "contam.detect.query",
    "scan": "contam.detect.scan",
    "write_report": "contam.detect.report",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    if name == "__version__":
        from contam.version import contam_version

        return contam_version()
    if name == "study":
        return import_module("contam.study")
    if name not in _HOME:
        raise AttributeError(f"module 'contam' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
