"""A long JSON-lines file, read line by line, gives what it gives read as a whole."""

from __future__ import annotations

import gzip
import json

import pytest

from contam.benchmark import long_lines
from contam.benchmark.jsonrows import BOM
from contam.benchmark.long_lines import LongLines, is_long_lines
from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError

ROWS = [json.dumps({"id": n, "question": f"Which of {n} lanterns burns?"}).encode() for n in (1, 2)]
LINES = {
    "plain": b"\n".join(ROWS),
    "ended": b"\n".join(ROWS) + b"\n",
    "windows": b"\r\n".join(ROWS) + b"\r\n",
    "blank": b"\n  \n" + ROWS[0] + b"\n\n\n" + ROWS[1] + b"\n\n",
    "marked": BOM + b"\n".join(ROWS),
    "marked twice": b"\n".join([BOM + ROWS[0], BOM + ROWS[1]]),
    "no object": b"\n".join([*ROWS, b"[1]"]),
    "no JSON": b"\n".join([*ROWS, b"", b'{"question": ', *ROWS]),
    "twice": b"\n".join([*ROWS, b'{"question": "a", "question": "b"}']),
    "no text": b"\n".join([*ROWS, b'{"question": "\xff"}']),
    "same id": b"\n".join([*ROWS, b'{"id": 1, "question": "Another?"}', b"{"]),
    "number first": b"1\n" + ROWS[0],
}
WHOLE = {
    "nothing": b"",
    "one": ROWS[0],
    "list": b" [" + b",\n".join(ROWS) + b"]",
    "object": b'{"data": [\n' + b",\n".join(ROWS) + b"]}",
    "broken": b'{"question": \n' + ROWS[1],
    "gzip": gzip.compress(b"\n".join(ROWS)),
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
}


def outcome(path) -> object:
    try:
        return read_benchmarks([path])[0]
    except BenchmarkError as error:
        return str(error)


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("name", [*LINES, *WHOLE])
def test_lines_are_what_the_whole_file_is(tmp_path, monkeypatch, name, suffix):
    path = tmp_path / f"quiz{suffix}"
    path.write_bytes((LINES | WHOLE)[name])
    whole = outcome(path)
    monkeypatch.setattr(long_lines, "_LONG_BYTES", 0)
    assert is_long_lines(path) == (name in LINES)
    found = outcome(path)
    if isinstance(whole, str):
        assert found == whole
    else:
        assert list(found.items) == list(whole.items)
        assert (found.skipped, found.sources) == (whole.skipped, whole.sources)


def test_a_short_file_and_none_are_not_for_lines(tmp_path):
    (tmp_path / "quiz.jsonl").write_bytes(LINES["plain"])
    assert not is_long_lines(tmp_path / "quiz.jsonl")
    assert not is_long_lines(tmp_path / "maze.jsonl")
    assert not is_long_lines(tmp_path)


@pytest.mark.parametrize("how", ["grew", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path, how):
    path, other = tmp_path / "quiz.jsonl", tmp_path / "other"
    path.write_bytes(LINES["ended"])
    rows = LongLines(path).rows()
    next(rows)
    if how == "grew":
        with path.open("ab") as file:
            file.write(ROWS[0] + b"\n")
    else:
        other.write_bytes(LINES["ended"])
        other.replace(path)
    with pytest.raises(BenchmarkError, match=rf"quiz\.jsonl: {how if how == 'grew' else 'was'}"):
        list(rows)
