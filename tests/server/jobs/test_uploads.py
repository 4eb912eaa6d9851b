"""What an upload may be, and what is left of one that is refused."""

import asyncio
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
from python_multipart.exceptions import FormParserError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from contam.config import Settings
from contam.server.jobs.upload import safe_name, store_form
from contam.server.problems import RequestError

BOUNDARY = "xx-boundary-xx"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
SMALL = Settings(max_upload_bytes=100_000, max_job_items=50)
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
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "app": None}

    async def parse():
        async with Request(scope, receive).form(max_fields=1) as form:
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


@given(chunk=st.integers(1, 3000), packed=st.booleans())
def test_how_a_body_is_cut_changes_nothing(tmp_path_factory, chunk, packed):
    data = body(("job", "", b"{}"), ("items", "x", gzipped(LINES) if packed else LINES))
    whole = take(tmp_path_factory.mktemp("whole"), data, chunk=1 << 20)
    cut = take(tmp_path_factory.mktemp("cut"), data, chunk=chunk)
    assert (cut.fingerprint, cut.n_items, cut.request) == (whole.fingerprint, 20, b"{}")


def zip_bomb():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", b"0" * 1_000_000)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (items(gzipped(LINES + b" " * 1_000_000)), 413, "unpacked-too-large"),
        (items(LINES * 3), 413, "too-many-items"),
        (items(parquet(51)), 413, "too-many-items"),
        (items(parquet(0)), 422, "upload"),
        (items(parquet(20)[:-20]), 422, "upload"),
        (items(b""), 422, "upload"),
        (items(b" \n\n"), 422, "upload"),
        (items(gzipped(LINES)[:-9]), 422, "upload"),
        (items(gzipped(LINES)[:20] + b"\xff" * 200), 422, "upload"),
        (items(b"\x28\xb5\x2f\xfd" + b"\0" * 50), 415, "unsupported-type"),
        (items(b"BZh9" + b"\0" * 50), 415, "unsupported-type"),
        (body(("items", "x", LINES)), 422, "upload"),
        (body(("job", "", b"{}"), ("items", "x", LINES), ("items", "y", LINES)), 422, "upload"),
        (body(("job", "j", b"{}"), ("job", "k", b"{}")), 422, "upload"),
        (body(("other", "", b"{}")), 422, "upload"),
        (body(("job", "", b"{}"), ("other", "x", LINES)), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a.csv", b"1"), ("logs", "a.csv", b"2")), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a", b"1"), ("logs", "a/b", b"2")), 422, "upload"),
        (body(("job", "", b"{}"), ("logs", "a.eval", zip_bomb())), 413, "unpacked-too-large"),
        (body(("job", "", b"{}"), ("logs", "a.csv", gzipped(b" " * 500_000))), 413, None),
        (body(("job", "", b"{}"), ("verdicts", "run.json", b"1")), 422, "upload"),
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
    settings = Settings(max_upload_bytes=1 << 19)
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
    "data",
    [b"no parts at all", b"", body(("job", "", b"{}"), ("job", "", b"{}")), body(("job", "", b"{}"))[:40]],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused(tmp_path, data):
    with pytest.raises((HTTPException, FormParserError, RequestError)) as caught:
        take(tmp_path, data)
    if isinstance(caught.value, (HTTPException, RequestError)):
        assert getattr(caught.value, "status_code", 422) in (400, 422)
