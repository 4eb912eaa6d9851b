"""Who gets in: keys, scopes, the open mode, and what happens when nobody can tell."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from contam.config import Settings
from contam.errors import ConfigError, UsageError
from contam.server.auth import Keyring, KeyStore
from tests.cli.processes import contam_here
from tests.server.guarded import guarded
from tests.waiting import wait_until

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing of these tests listens there


@pytest.fixture
def store(tmp_path):
    return KeyStore(tmp_path)


@pytest.fixture
def keyed(tmp_path, store):
    """A running app with one key that may check, and its text."""
    key, secret = store.add("evaluation", ["check"])
    with guarded(tmp_path) as running:
        yield running, key, secret


def problem_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["request_id"] == answer.headers["x-request-id"]
    return body["code"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer contam_00000000_wrong")],
        [("Authorization", "Basic dTpw")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer SECRET"), ("Authorization", "Bearer SECRET")],
        [("Authorization", "Bearer SECRETx")],
        [("Authorization", b"Bearer contam_\xff\xfe\x00"[:16])],
        [("Authorization", "Bearer contam_²²²²²²²²_é".encode())],
        [("X-API-Key", "SECRET")],
    ],
)
def test_without_one_good_key_nobody_gets_in(keyed, headers):
    running, _, secret = keyed
    sent = [
        (name, value.replace("SECRET", secret) if isinstance(value, str) else value)
        for name, value in headers
    ]
    with running.client() as client:
        answer = client.post("/v1/echo", content=b"x", headers=sent)
    assert answer.status_code == 401
    assert problem_of(answer) == "unauthorised"
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_paths_that_are_not_there_are_not_told_apart_without_a_key(keyed):
    running, _, secret = keyed
    with running.client() as client:
        assert client.get("/v1/nothing").status_code == 401
        assert client.get("/nothing").status_code == 401
        assert client.get("/livez").status_code == 200
    with running.client(secret) as client:
        assert client.get("/v1/nothing").status_code == 404


def test_a_body_of_a_stranger_is_not_read(keyed):
    running, _, _ = keyed
    with running.raw() as connection:
        connection.sendall(
            b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_a_scope_that_is_missing_is_named(keyed):
    running, _, secret = keyed
    with running.client(secret) as client:
        answer = client.post("/v1/jobs", content=b"x")
    assert answer.status_code == 403
    assert problem_of(answer) == "scope-missing"
    assert "'jobs'" in answer.json()["detail"]


def test_a_revoked_key_is_refused_at_the_next_request(keyed, store):
    running, key, secret = keyed
    with running.client(secret) as client:
        assert client.post("/v1/echo", content=b"x").status_code == 200
        store.revoke(key.id)
        assert client.post("/v1/echo", content=b"x").status_code == 401


def halved(path):
    return path.read_bytes()[: path.stat().st_size // 2]


def with_unknown_scope(path):
    rows = json.loads(path.read_bytes())
    return json.dumps([{**row, "scopes": ["everything"]} for row in rows]).encode()


@pytest.mark.parametrize(
    "content",
    [lambda _: b"garbage", lambda _: b"", lambda _: b"{}", halved, with_unknown_scope, None],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_keys_that_cannot_be_read_close_the_service_until_they_can(keyed, store, content, in_place):
    running, _, secret = keyed
    whole = store.path.read_bytes()
    with running.client(secret) as client:
        assert client.post("/v1/echo", content=b"x").status_code == 200
        if content is None:
            store.path.unlink()
        elif in_place:
            store.path.write_bytes(content(store.path))
        else:
            other = store.path.with_name("other.json")
            other.write_bytes(content(store.path))
            other.replace(store.path)
        for _ in range(2):
            answer = client.post("/v1/echo", content=b"x")
            assert answer.status_code == 503
            assert problem_of(answer) == "keys-unreadable"
            assert str(store.path) not in answer.text
        assert client.get("/livez").status_code == 200
        store.path.write_bytes(whole)
        assert client.post("/v1/echo", content=b"x").status_code == 200


def test_a_change_that_size_time_and_inode_do_not_show_is_seen_in_seconds(keyed, store):
    running, key, secret = keyed
    with running.client(secret) as client:
        assert client.post("/v1/echo", content=b"x").status_code == 200
        before = store.path.stat()
        text = store.path.read_text()
        store.path.write_text(text.replace(key.digest, "0" * 64))
        os.utime(store.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        wait_until(lambda: client.post("/v1/echo", content=b"x").status_code == 401)


def test_an_old_store_of_keys_is_refused_and_never_taken_for_none(tmp_path, store):
    (tmp_path / "keys.db").write_bytes(b"SQLite format 3")
    for attempt in (lambda: Keyring(Settings(data=str(tmp_path))), store.all):
        with pytest.raises(ConfigError, match=r"keys\.db"):
            attempt()


def test_keys_that_are_added_at_once_are_all_kept(store):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: store.add(f"key {n}", ["check"])[0].id, range(24)))
    assert set(store.all()) == set(made)


def test_a_service_without_keys_answers_this_machine_only(tmp_path):
    with guarded(tmp_path) as running, running.client() as client:
        assert client.post("/v1/echo", content=b"x").status_code == 200
        for headers in (
            {"Host": "contam.example"},
            {"Origin": "http://contam.example"},
            {"Origin": "null"},
            {"X-Forwarded-For": "10.0.0.1"},
            {"Forwarded": "for=10.0.0.1"},
        ):
            answer = client.post("/v1/echo", content=b"x", headers=headers)
            assert answer.status_code == 403, headers
            assert problem_of(answer) == "not-local"
        own = {"Origin": running.url}
        assert client.post("/v1/echo", content=b"x", headers=own).status_code == 200


def test_the_first_key_ends_the_open_mode(tmp_path, store):
    with guarded(tmp_path) as running, running.client() as client:
        assert client.post("/v1/echo", content=b"x").status_code == 200
        key, _ = store.add("first", ["check"])
        assert client.post("/v1/echo", content=b"x").status_code == 401
        store.revoke(key.id)
        assert client.post("/v1/echo", content=b"x").status_code == 401


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "10.1.2.3", "contam.example"])
def test_without_keys_no_other_address_than_loopback_is_listened_on(tmp_path, store, host):
    settings = Settings(data=str(tmp_path), host=host)
    with pytest.raises(ConfigError, match=host):
        Keyring(settings)
    store.add("first", ["check"])
    Keyring(settings)


def test_a_short_admin_key_is_refused_and_a_long_one_needs_no_store(tmp_path):
    with pytest.raises(ConfigError, match="32"):
        Keyring(Settings(data=str(tmp_path), admin_key="short"))
    with (
        guarded(tmp_path, admin_key="s" * 32, host=EVERYWHERE) as running,
        running.client() as client,
    ):
        assert client.post("/v1/jobs", content=b"x").status_code == 401


def test_an_unreadable_store_keeps_the_service_from_starting(tmp_path, store):
    store.path.write_bytes(b"garbage" * 1000)
    with pytest.raises(ConfigError, match=r"keys\.json"):
        Keyring(Settings(data=str(tmp_path)))


def test_only_the_digest_of_a_key_is_kept_and_only_its_owner_may_read_it(store, tmp_path):
    _, secret = store.add("evaluation", ["check"])
    for path in tmp_path.iterdir():
        assert secret.encode() not in path.read_bytes()
        assert secret.split("_", 2)[2].encode() not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "scopes"), [("", ["check"]), ("a\nb", ["check"]), ("a", []), ("a", ["everything"])]
)
def test_a_key_needs_a_name_and_known_scopes(store, name, scopes):
    with pytest.raises(UsageError):
        store.add(name, scopes)
    assert not store.path.exists()


def keys(*arguments):
    return contam_here("keys", *arguments)


def test_the_command_makes_lists_and_revokes_keys(tmp_path, store):
    made = keys("add", "nightly", "--scope", "check,jobs", "--data", str(tmp_path))
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    (key,) = store.all().values()
    assert key.scopes == {"check", "jobs"}
    assert secret.startswith(f"contam_{key.id}_")
    assert keys("revoke", key.id, "--data", str(tmp_path)).returncode == 0
    assert store.all()[key.id].revoked is not None
    listed = keys("list", "--data", str(tmp_path), "--json").stdout
    assert key.id in listed
    assert secret not in listed
    missing = keys("revoke", "nobody", "--data", str(tmp_path))
    assert (missing.returncode, "nobody" in missing.stderr) == (2, True)
