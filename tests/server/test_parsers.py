"""Whatever comes in, a parser of ours gives a value or its own refusal, and what it gives is true."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import sqlite3
import string
from contextlib import closing
from urllib.parse import quote_plus

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.items import BenchItem
from contam.config import Settings, described_settings, load_settings
from contam.detect.indexed.blind import hash_items, spelling, write_bodies
from contam.errors import ConfigError
from contam.files.compression import DamagedError
from contam.index.recipe import load_recipe
from contam.server.checks.asking import _part, parse
from contam.server.jobs.intake.reception import hidden
from contam.server.jobs.intake.unpacking import Budget, LineCounter, UploadUnpacker
from contam.server.jobs.intake.uploads import Upload, safe_name
from contam.server.jobs.model import StoreError
from contam.server.jobs.ranges import file_answer
from contam.server.jobs.results import PARQUET, TableLines, wants_parquet
from contam.server.jobs.store import JobStore
from contam.server.middleware import local
from contam.server.middleware.auth import Keyring
from contam.server.middleware.body import unpacker
from contam.server.middleware.keys import KeyStore
from contam.server.page import visit
from contam.server.page.forms import Form, check_of
from contam.server.problems.failures import RequestError

cuts = st.lists(st.integers(1, 400), max_size=20)


def attempt(refusal, call):
    """What a call gives, and the refusal that it raises instead: one of the two is None."""
    try:
        return call(), None
    except refusal as error:
        return None, error


def cut(data, places):
    at = 0
    for size in [*places, len(data) + 1]:
        yield data[at : at + size]
        at += size


def one_of_these(*pieces, most=12):
    """Texts put together of what a parser looks for."""
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


# -- packed bodies -------------------------------------------------------------------------------


def unpacked(encoding, pieces):
    unpack = unpacker(encoding)
    out = [one for piece in pieces for one in unpack.feed(piece)]
    assert all(len(one) <= 1 << 19 for one in out)
    unpack.finish()
    return b"".join(out)


members = st.lists(st.binary(max_size=300) | st.just(b"a" * 700_000), min_size=1, max_size=4)


@given(members, cuts)
def test_gzip_members_unpack_to_what_was_packed_however_they_are_cut(data, places):
    packed = b"".join(gzip.compress(one, mtime=0) for one in data)
    assert unpacked("gzip", cut(packed, places)) == b"".join(data)
    unpack = UploadUnpacker(Budget(10**7))
    out = [one for piece in cut(packed + b"\0" * 9, places) for one in unpack.feed(piece)]
    assert b"".join([*out, *unpack.finish()]) == b"".join(data)


@given(st.binary(max_size=3000), cuts)
def test_zstd_unpacks_to_what_was_packed_and_takes_one_frame(data, places):
    packed = zstandard.compress(data)
    assert unpacked("zstd", cut(packed, places)) == data
    with pytest.raises(DamagedError):
        unpacked("zstd", cut(packed + packed, places))


@given(st.binary(max_size=500), st.sampled_from(["gzip", "zstd"]), st.data())
def test_what_ends_early_is_damaged(data, encoding, draw):
    packed = gzip.compress(data) if encoding == "gzip" else zstandard.compress(data)
    short = packed[: draw.draw(st.integers(0, len(packed) - 1))]
    with pytest.raises(DamagedError):
        unpacked(encoding, [short])


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"]),
    st.sampled_from(["gzip", "zstd"]),
)
def test_anything_else_is_damaged_or_unpacks(data, start, encoding):
    try:
        unpacked(encoding, [start + data])
    except DamagedError:
        return


# -- uploads -------------------------------------------------------------------------------------

SMALL = Settings(
    max_upload_bytes=100_000, max_unpacked_bytes=200_000, max_job_items=20, max_characters=100
)


def counted(data, places):
    lines = LineCounter(most=20, most_line_bytes=200)
    try:
        for piece in cut(data, places):
            lines.feed(piece)
        lines.finish()
    except RequestError as error:
        return error.status, error.code
    return lines.n_items


@given(
    st.lists(
        st.sampled_from([b"{}", b'{"a":"\xc3"}', b"\n", b"\n", b" ", b"\r", b"[", b"x" * 150])
    ),
    cuts,
)
def test_lines_are_counted_alike_however_they_are_cut(pieces, places):
    data = b"".join(pieces)
    found = counted(data, places)
    assert found == counted(data, [])
    if isinstance(found, int):
        assert found == sum(bool(line.strip()) for line in data.split(b"\n"))


parts_of_a_body = st.lists(
    st.sampled_from(
        [
            b"--x", b"--", b"\r\n", b"\r\n\r\n", b"Content-Disposition: form-data; name=", b'"items"',
            b'"job"', b'"logs"', b'"verdicts"', b'; filename="a"', b'; filename="../a"', b"; *=nope''%41",
            b"; filename*=utf-8''%ff", b"{}", b'{"id": 1}\n', b"PAR1", b"\x1f\x8b\x08", b"PK\x03\x04",
            b"\0", b"\xff", b": ",
        ]
    ),
    max_size=16,
)  # fmt: skip


@given(parts_of_a_body, st.booleans(), cuts)
def test_a_body_of_parts_is_taken_or_refused(tmp_path_factory, pieces, whole, places):
    body = b"--x\r\n" + b"".join(pieces) + (b"\r\n--x--\r\n" if whole else b"")
    folder = tmp_path_factory.mktemp("upload")
    roles = frozenset({"items", "logs", "verdicts"})

    def take():
        upload = Upload(
            folder, "multipart/form-data; boundary=x", field="job", roles=roles, settings=SMALL
        )
        with closing(upload):
            for piece in cut(body, places):
                upload.feed(piece)
            return upload.finish()

    received, refusal = attempt(RequestError, take)
    assert refusal is None or 400 <= refusal.status < 500
    for file in received.files if received else ():
        assert (folder / file.name).stat().st_size == file.n_bytes


@given(
    one_of_these("multipart/form-data", ";", " boundary", "=", "x", '"', "*=utf-8''", "%ff", "ÿ")
)
def test_a_content_type_names_a_boundary_or_is_refused(tmp_path_factory, content_type):
    folder = tmp_path_factory.getbasetemp()
    _, refusal = attempt(
        RequestError,
        lambda: Upload(folder, content_type, field="job", roles=frozenset(), settings=SMALL),
    )
    assert refusal is None or refusal.status in {400, 415}


@given(one_of_these("/", ".", "..", "a", "-", "\\", "\0", "ä", " ", "~", "a.json"))
def test_a_name_stays_below_its_folder_or_is_refused(given_name):
    name, refusal = attempt(RequestError, lambda: safe_name(given_name))
    if refusal:
        assert refusal.status == 422
        return
    steps = name.split("/")
    assert not {"", ".", ".."} & set(steps)
    assert not any(step.startswith(".") for step in steps)
    assert name.isascii()


# -- headers -------------------------------------------------------------------------------------


@given(
    one_of_these(
        PARQUET,
        "application/x-ndjson",
        "*/*",
        "application/*",
        ",",
        ";",
        "q=",
        "0",
        "1",
        "nan",
        "-",
        "ÿ",
    )
)
def test_parquet_is_given_to_whoever_names_it(accept):
    assert wants_parquet(accept) == (PARQUET in accept)


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    path = tmp_path_factory.mktemp("range") / "file"
    path.write_bytes(bytes(range(100)))
    return path


async def read_whole(reply):
    return b"".join([piece async for piece in reply.body_iterator])


def asked_bytes(value):
    """Bytes of a hundred that a Range header asks for: None where it is to be passed over."""
    unit, is_, rest = value.strip().partition("=")
    first, dash, last = rest.partition("-")
    numbers = [one for one in (first, last) if one]
    plain = all(number.isascii() and number.isdigit() and len(number) <= 18 for number in numbers)
    if (unit, is_, dash) != ("bytes", "=", "-") or not numbers or not plain:
        return None
    if not first:
        return range(max(0, 100 - int(last)), 100)
    return range(int(first), min(100, int(last) + 1) if last else 100)


@given(
    st.sampled_from(["bytes=", ""]),
    one_of_these("bytes", "=", "-", "0", "9", "100", "٣", " ", ",", most=5),
)
def test_a_range_is_given_refused_or_passed_over(hundred, start, rest):
    wanted = asked_bytes(start + rest)
    reply, refusal = attempt(
        RequestError,
        lambda: file_answer(hundred, {"range": start + rest}, media_type=PARQUET),
    )
    if refusal:
        assert (refusal.status, wanted is not None and len(wanted)) == (416, 0)
        return
    body = asyncio.run(read_whole(reply))
    assert body == bytes(range(100) if wanted is None else wanted)
    if wanted is None:
        assert (reply.status_code, reply.headers["content-length"]) == (200, "100")
    else:
        assert reply.headers["content-range"] == f"bytes {wanted[0]}-{wanted[-1]}/100"
        assert int(reply.headers["content-length"]) == len(wanted)


@given(st.integers(0, 400), st.none() | st.integers(1, 1 << 62))
def test_lines_from_a_cursor_are_the_rows_from_there(tmp_path_factory, cursor, limit):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path_factory.getbasetemp() / "rows-of-300.parquet"
    if not path.exists():
        pq.write_table(pa.table({"n": list(range(300))}), path, row_group_size=70)
    lines = TableLines(path, cursor, limit)
    end = 300 if limit is None else min(300, cursor + limit)
    rows = [json.loads(line)["n"] for line in b"".join(lines).splitlines()]
    assert rows == list(range(cursor, end))


header = st.text(st.characters(max_codepoint=255, exclude_characters="\0\r\n"), max_size=300)


@given(st.tuples(st.sampled_from(["a1b2c3d4", "open"]), header), st.tuples(st.just("open"), header))
def test_two_idempotency_keys_never_meet(one, other):
    assert (hidden(*one) == hidden(*other)) == (one == other)


@given(
    st.text(
        st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=300
    )
)
def test_any_idempotency_key_is_taken_or_refused(client, key):
    headers = {"Idempotency-Key": key.strip().encode("latin-1"), "Content-Type": "application/json"}
    reply = client.post("/v1/rescore", content=b"{}", headers=headers)
    assert reply.status_code in {400, 422}


authority = one_of_these(
    "http://", "[", "]", "::1", "127.0.0.1", ":", "/", "@", "%", "ÿ", "localhost", "0", "?"
)


@given(authority, authority)
def test_who_is_local_and_which_page_sent_a_form_can_always_be_told(host, origin):
    headers = [(b"host", host.encode("latin-1")), (b"origin", origin.encode("latin-1"))]
    scope = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1), "headers": headers}
    for refuse in (local.refuse_others, visit._refuse_other_sites):
        _, refusal = attempt(RequestError, lambda refuse=refuse: refuse(scope))
        if refusal:
            assert refusal.status == 403
        else:
            assert host in origin or not origin


@given(
    one_of_these("contam-session", "=", "abc", ";", '"', "\\", "ÿ", " ", ",", "a" * 50, "expires")
)
def test_any_cookie_is_one_of_ours_or_none(cookie):
    found = visit.presented({"headers": [(b"cookie", cookie.encode("latin-1"))]})
    assert not found or b"contam-session" in cookie.encode("latin-1")


# -- forms, and grams ----------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(words, words, st.lists(words, min_size=1, max_size=3))
def test_what_was_typed_into_the_form_is_what_is_asked(question, passage, indexes):
    fields = [("index", index) for index in indexes] + [
        ("policy", "contam"),
        ("question", question),
    ]
    body = "&".join(f"{name}={quote_plus(one)}" for name, one in [*fields, ("passage", passage)])
    asked = check_of(Form.read(body.encode()), max_evidence=5, context=0)
    typed = [one.replace("\r\n", "\n").replace("\r", "\n") for one in (question, passage)]
    assert [asked.items[0].question, asked.items[0].passage] == typed
    assert asked.index == tuple(
        index.replace("\r\n", "\n").replace("\r", "\n") for index in indexes
    )


@given(
    one_of_these(
        "index=a", "policy=contam", "&", "question=", "text=x", "as=text", "%", "%ff", "=", ";", "right=", "1",
        "choices=a%0Ab", "%ed%a0%80", "%00",
    )
)  # fmt: skip
def test_any_form_asks_for_something_or_is_refused(body):
    _, refusal = attempt(
        RequestError, lambda: check_of(Form.read(body.encode()), max_evidence=5, context=0)
    )
    assert refusal is None or refusal.status in {400, 422}


grams = st.fixed_dictionaries(
    {
        "keys": st.binary(max_size=60).map(base64.b64encode).map(bytes.decode)
        | st.text("AZa/+=", max_size=12),
        "bits": st.text(string.hexdigits, max_size=20),
    }
)


@given(st.dictionaries(st.sampled_from(["question", "answer", "choices"]), grams, min_size=1))
def test_any_hashed_item_is_judged_or_refused(client, parts):
    asked = {**spelling(load_recipe("standard")), "items": [{"id": "1", "parts": parts}]}
    reply = client.post("/v1/check", json={"grams": asked})
    assert reply.status_code in {200, 422}
    whole = all(part["keys"] == "" and len(part["bits"]) < 5 for part in parts.values())
    if reply.status_code == 200:
        (verdict,) = reply.json()["verdicts"]
        assert verdict["label"] in {"clean", "not_checkable"}
    else:
        assert not whole or any(set(part["bits"]) & set("ABCDEF") for part in parts.values())


@given(st.lists(st.text("abcdefgh ", max_size=80), max_size=3), words)
def test_hashed_items_are_read_as_they_were_written(tmp_path_factory, choices, question):
    recipe = load_recipe("standard")
    item = BenchItem(
        benchmark="b", split="", item_id="1", question=question, choices=tuple(choices)
    )
    path = tmp_path_factory.getbasetemp() / "hashed.jsonl"
    write_bodies(path, [item], recipe, {}, 1)
    asked = parse(path.read_bytes(), Settings())
    (hashed,) = hash_items([item], recipe)
    assert len(asked.grams.items[0].parts) == len(hashed.parts)
    for name, part in asked.grams.items[0].parts.items():
        read = _part(part)
        assert read.keys.tolist() == hashed.parts[name].keys.tolist()
        assert read.bits.tolist() == hashed.parts[name].bits.tolist()


# -- files ---------------------------------------------------------------------------------------


@given(
    one_of_these(
        "[serve]", "\n", "port", "index", "host", " = ", "1", '"a"', "[", "]", "{", "}", "true", "nan", "inf",
        "1e400", "\0", "serve", ",", "deadline_s", "9" * 30,
    )
)  # fmt: skip
def test_any_settings_file_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "settings.toml"
    path.write_text(text, "utf-8")
    _, refusal = attempt(ConfigError, lambda: load_settings(environ={}, file=path))
    assert refusal is None or refusal.message


names = st.sampled_from([setting.variable for setting in described_settings()])
values = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
) | st.sampled_from(["1", "0", "-1", "inf", "nan", "1e308", "9" * 40, "true", "a,b", "65536"])


@given(st.dictionaries(names, values, max_size=6))
def test_any_environment_is_read_or_refused_by_the_name_of_a_variable(environ):
    _, refusal = attempt(ConfigError, lambda: load_settings(environ=environ))
    assert refusal is None or any(name in refusal.message for name in environ)


def test_a_deeply_nested_settings_file_is_refused(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("a = " + "[" * 100_000, "utf-8")
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings(environ={}, file=path)


def store_file(path, *statements):
    """The bytes of a store, all of it in the one file."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for number in range(3):
        KeyStore(folder).add(f"key {number}", ["check"])
    return store_file(folder / "keys.db")


@pytest.fixture(scope="module")
def job_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "jobs.db"
    store = JobStore(path)
    about = {"index": ["a"], "policies": ["contam"], "n_items": 1, "n_bytes": 2}
    for number in range(3):
        store.add(f"{number:024d}", owner="me", kind="check", about=about, most_queued=9)
    store.close()
    return store_file(path)


changes = st.lists(
    st.tuples(st.integers(0, 99), st.integers(-60, 60), st.integers(0, 255)), min_size=1, max_size=4
)
lengths = st.sampled_from([1.0] * 8 + [0.0, 0.3, 0.9])


def altered(whole, near, places, length):
    """The file with some bytes beside its rows changed, or cut short."""
    data = bytearray(whole)
    rows = [at for at in range(len(data)) if data.startswith(near, at)]
    for row, offset, value in places:
        data[min(rows[row % len(rows)] + offset, len(data) - 1)] = value
    return bytes(data[: int(length * len(data))])


@given(changes, lengths)
def test_an_altered_store_of_keys_lets_nobody_in_who_was_not(
    tmp_path_factory, key_file, places, length
):
    folder = tmp_path_factory.mktemp("altered")
    (folder / "keys.db").write_bytes(altered(key_file, b"key ", places, length))
    _, refusal = attempt(ConfigError, KeyStore(folder).all)
    assert refusal is None or "keys.db" in refusal.message
    keyring, _ = attempt(ConfigError, lambda: Keyring(Settings(data=str(folder))))
    if keyring is not None:
        with closing(keyring):
            scope = {"headers": [(b"x-api-key", b"contam_00000000_x")], "client": None}
            _, refusal = attempt(RequestError, lambda: keyring.caller(scope))
            assert refusal.status in {401, 403, 503}


@given(changes, lengths)
def test_an_altered_store_of_jobs_is_read_or_said_to_be_damaged(
    tmp_path_factory, job_file, places, length
):
    path = tmp_path_factory.mktemp("altered") / "jobs.db"
    path.write_bytes(altered(job_file, b"contam", places, length))
    store, refusal = attempt(StoreError, lambda: JobStore(path))
    assert store is None or refusal is None
    if store is not None:
        with closing(store):
            for look in (
                store.probe, lambda: store.recover(3), store.states, store.known, store.outlived,
                lambda: store.listed(None, before=None, limit=9), lambda: store.claim("check"),
            ):  # fmt: skip
                _, refusal = attempt(StoreError, look)
                assert refusal is None or refusal.hint
