"""No test judges by the clock: it waits for a state, and a time-out is only there to end a hang."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if path.name != "waiting.py")
CLOCKS = {"sleep", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"}
#: Calls that take a time-out as their first argument.
WAITS = {"wait", "join"}


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in {int, float} and node.value > 0


def uses_of_the_clock(tree):
    """Lines that sleep, read a clock, or give up after a time of their own."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in CLOCKS and not (node.args and ast.unparse(node.args[0]) == "0"):
            yield node.lineno, name
        limits = [key.value for key in node.keywords if key.arg in {"timeout", "patience_s"}]
        limits += node.args[:1] if name in WAITS else []
        if any(is_number(limit) for limit in limits):
            yield node.lineno, f"{name} with a time-out"


def test_no_test_hangs_on_the_clock():
    found = {path: list(uses_of_the_clock(ast.parse(path.read_text()))) for path in FILES}
    assert {path: uses for path, uses in found.items() if uses} == {}
