"""What an upload may be, and what is left of one that is refused."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import zipfile
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from contam.config import Settings
from contam.server.jobs.upload import read_form, safe_name, store_form
from contam.server.problems import RequestError

BOUNDARY = "xx-boundary-xx"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
SMALL = Settings(
    max_upload_bytes=200_000, max_unpacked_bytes=400_000, max_job_items=50, max_characters=1000
)
LINES = b"".join(json.dumps({"id": n, "question": f"why {n}?"}).encode() + b"\n" for n in range(20))


def gzipped(data):
    """The same bytes at any time: tests take their names from them, in several processes."""
    return gzip.compress(data, mtime=0)


def body(*parts, end=True):
    pieces = []
    for name, file_name, data in parts:
        place = f'form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name else "")
        pieces.append(f"--{BOUNDARY}\r\nContent-Disposition: {place}\r\n\r\n".encode())
        pieces.append(data + b"\r\n")
    return b"".join(pieces) + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


def take(folder, data, chunk=1000, settings=SMALL, kind=TYPE):
    pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]

    async def receive():
        return {
            "type": "http.request",
            "body": pieces.pop(0) if pieces else b"",
            "more_body": bool(pieces),
        }

    headers = [(b"content-type", kind.encode())]
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)

    async def parse():
        async with contextlib.AsyncExitStack() as stack:
            form = await read_form(request, settings)
            stack.push_async_callback(form.close)
            return store_form(form, folder, settings)

    return asyncio.run(parse())


def items(data, name="x.jsonl"):
    return body(("job", "", b"{}"), ("items", name, data))


def parquet(rows, **options):
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"id": list(range(rows)), "question": ["why?"] * rows}), sink, **options
    )
    return sink.getvalue()


def sized(value):
    """The name of a case: packed bytes hold the time, and have other names in each process."""
    return f"{len(value)}-bytes" if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (LINES, "items.jsonl"),
        (b"\xef\xbb\xbf" + LINES.rstrip(b"\n"), "items.jsonl"),
        (b"\n \n" + LINES.replace(b"\n", b"\r\n\n"), "items.jsonl"),
        (gzipped(LINES), "items.jsonl.gz"),
        (gzipped(LINES[:100]) + gzipped(LINES[100:]) + b"\0" * 50, "items.jsonl.gz"),
        (parquet(20), "items.parquet"),
    ],
    ids=sized,
)
def test_items_are_kept_as_sent_and_counted(tmp_path, data, name):
    received = take(tmp_path, items(data))
    assert (tmp_path / name).read_bytes() == data
    assert received.n_items == 20
    assert received.files == {"items": [name]}
    assert received.n_bytes == len(data)


@given(chunk=st.integers(1, 3000), packed=st.booleans(), swapped=st.booleans())
def test_how_a_body_is_cut_and_ordered_changes_nothing(tmp_path_factory, chunk, packed, swapped):
    parts = [("job", "", b"{}"), ("items", "x", gzipped(LINES) if packed else LINES)]
    whole = take(tmp_path_factory.mktemp("whole"), body(*parts), chunk=1 << 20)
    cut = take(
        tmp_path_factory.mktemp("cut"), body(*(parts[::-1] if swapped else parts)), chunk=chunk
    )
    assert (cut.fingerprint, cut.n_items, cut.request) == (whole.fingerprint, 20, b"{}")


@given(st.integers(0, 2000))
def test_a_body_that_is_cut_is_never_taken_for_one_with_fewer_files(tmp_path_factory, at):
    data = body(("job", "", b"{}"), ("logs", "a.csv", b"1,2\n--"), ("logs", "b.csv", b"--" * 99))
    # The line end behind the last boundary is no part of the body.
    with pytest.raises(RequestError):
        take(tmp_path_factory.mktemp("cut"), data[: min(at, len(data) - 3)])


def zip_bomb():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", b"0" * 1_000_000)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (items(gzipped(LINES + b" " * 1_000_000)), 413, "unpacked-too-large"),
        (items(gzipped(gzipped(b"\0" * 10_000_000))), 422, "upload"),
        (items(LINES * 3), 413, "too-many-items"),
        (items(parquet(51)), 413, "too-many-items"),
        (items(parquet(0)), 422, "upload"),
        (items(parquet(20)[:-20]), 422, "upload"),
        (items(b'{"question": "' + b"a" * 90_000 + b'"}'), 413, "item-too-large"),
        (items(b""), 422, "upload"),
        (items(b" \n\n"), 422, "upload"),
        (items(b'[{"question": "why?"}]'), 422, "upload"),
        (items(b'{\n"items": [1]\n}'), 422, "upload"),
        (items(b"question,answer\nwhy,because\n"), 422, "upload"),
        (items(gzipped(LINES)[:-9]), 422, "upload"),
        (items(gzipped(LINES)[:20] + b"\xff" * 200), 422, "upload"),
        (items(b"\x28\xb5\x2f\xfd" + b"\0" * 50), 415, "unsupported-type"),
        (items(b"BZh9" + b"\0" * 50), 415, "unsupported-type"),
        (body(("items", "x", LINES)), 422, "upload"),
        (body(("job", "", b"{}"), ("items", "x", LINES), ("items", "y", LINES)), 422, "upload"),
        (body(("job", "", b"{}"), ("job", "", b"{}")), 400, "bad-request"),
        (body(("job", "j", b"{}"), ("job", "k", b"{}")), 422, "upload"),
        (body(("other", "", b"{}")), 422, "upload"),
        (body(("job", "", b"{}"), ("other", "x", LINES)), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a.csv", b"1"), ("logs", "a.csv", b"2")), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a", b"1"), ("logs", "a/b", b"2")), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a.eval", zip_bomb())), 413, "unpacked-too-large"),
        (body(("job", "", b"{}"), ("logs", "a.csv", gzipped(b" " * 500_000))), 413, None),
        (body(("job", "", b"{}"), ("verdicts", "other.parquet", b"1")), 422, "upload"),
        (body(("job", "", b"{}"), ("items", "x", LINES), end=False), 400, "bad-request"),
        (b"no parts at all", 400, "bad-request"),
        (b"", 400, "bad-request"),
    ],
    ids=sized,
)  # fmt: skip
def test_an_upload_that_is_not_taken_says_why_and_quotes_nothing(tmp_path, data, status, code):
    with pytest.raises(RequestError) as caught:
        take(tmp_path, data)
    assert caught.value.status == status
    assert code in {None, caught.value.code}
    assert "why" not in caught.value.message + caught.value.hint


def test_a_bomb_is_noticed_long_before_it_is_unpacked(tmp_path):
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(100)) + packer.flush()
    settings = Settings(max_unpacked_bytes=1 << 21, max_characters=1 << 30)
    with pytest.raises(RequestError) as refused:
        take(tmp_path, items(bomb), settings=settings)
    assert refused.value.code == "unpacked-too-large"


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../x", "a/../b", "/etc/passwd", "a\\b", "a/.hidden", "a\0b", "a\nb",
        "x" * 300, "a/b/c/d/e/f/g", "ключ", "a/-rf", "~root",
    ],
)  # fmt: skip
def test_a_name_that_could_lead_elsewhere_is_refused(name):
    with pytest.raises(RequestError):
        safe_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "samples_gsm8k_2026-01-01T10-00-00.123456.jsonl",
        "run=1,model=a_b/scenario_state.json",
        "details_leaderboard|arc:challenge|25_2024.parquet",
        "log (1).eval",
    ],
)
def test_names_of_logs_are_kept(name):
    assert safe_name(name) == name


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data", f"text/plain; boundary={BOUNDARY}", ""]
)
def test_a_body_of_another_kind_is_refused(tmp_path, kind):
    with pytest.raises(RequestError) as caught:
        take(tmp_path, items(LINES), kind=kind)
    assert caught.value.status == 415
