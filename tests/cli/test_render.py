import pytest

from contam.cli.progress import _clock
from contam.cli.render import coverage_lines, share, size
from contam.cli.terminal import plain, visible


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 30_000, "<0.1 %"),
        (29_999, 30_000, ">99.9 %"), (1, 3, "33.3 %"), (0, 0, "-"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_none_or_all(part, whole, shown):
    assert share(part, whole) == shown


def test_sizes_and_times():
    assert (size(0), size(1), size(999)) == ("0 bytes", "1 byte", "999 bytes")
    assert (size(1500), size(2_500_000), size(2_500_000_000)) == ("1.5 kB", "2.5 MB", "2.5 GB")
    assert (_clock(0.2), _clock(59.6), _clock(3_661)) == ("0:00", "1:00", "1:01:01")


def test_steering_characters_become_visible():
    assert visible("a\x1b[2Jb\r\u202ec\u2066\x07\x9b\nd\te") == (
        "a<U+001B>[2Jb<U+000D><U+202E>c<U+2066><U+0007><U+009B>\nd\te"
    )
    assert visible("Zoë 数学 🙂 👩‍🚀 עברית") == "Zoë 数学 🙂 👩‍🚀 עברית"
    assert plain("two\nlines\t ") == "two lines"


def test_many_failures_are_named_in_part_and_counted():
    coverage = {
        "shards_expected": 9, "shards_read": 2, "rows": 5, "n_bytes": 10,
        "shards_failed": [{"shard": f"s{i}", "reason": "gone"} for i in range(7)],
    }  # fmt: skip
    lines = list(coverage_lines(coverage))
    assert lines[1] == "NOT READ s0: gone"
    assert lines[-1] == "NOT READ 2 more shards, see run.json"
