"""A service's life: when it is ready, what it holds, how it ends, and how an index is renewed."""

import json
import os
import signal
import socket
import threading

import httpx
import pytest

from contam.index.build import build
from contam.index.change import add
from contam.kernels._jit import INTERPRETED
from contam.memory import usable_bytes
from contam.server.indexes import text_bytes
from tests.cli.processes import contam, python
from tests.detect.indexed.indexes import WORDS
from tests.server.running import serving

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing comes to listen there
FIRST = "a lantern keeper counted forty two gulls above the breakwater before breakfast on sunday"
LATER = "nine brass kettles were polished by the night porter while the lift stood still at four"


def shard(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"id": name, "text": text}) + "\n")
    return path


@pytest.fixture
def growing(tmp_path):
    """An index of one document, and what makes it hold a second one."""
    corpus = tmp_path / "corpus"
    shard(corpus, "first.jsonl", FIRST)
    index = tmp_path / "growing"
    build(corpus, index, WORDS, workers=1)

    def grow():
        add(index, [shard(tmp_path / "more", "later.jsonl", LATER)], workers=1)

    return index, grow


def label(client, text):
    (verdict,) = client.post("/v1/check", json={"text": text}).json()["verdicts"]
    return verdict["label"]


def run(*arguments):
    return contam("serve", "--port", "0", *arguments)


@pytest.mark.slow
def test_it_tells_why_it_cannot_start(tmp_path, small_index):
    nowhere = run("--index", str(tmp_path / "nothing"), "--data", str(tmp_path / "data"))
    assert nowhere.returncode == 2
    assert str(tmp_path / "nothing") in nowhere.stderr
    assert "Traceback" not in nowhere.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = run("--index", f"one={small_index}", "--port", str(port), "--data", str(tmp_path))
    assert busy.returncode == 2
    assert f"127.0.0.1:{port}" in busy.stderr
    open_to_all = run(
        "--index", f"one={small_index}", "--host", EVERYWHERE, "--data", str(tmp_path / "open")
    )  # fmt: skip
    assert open_to_all.returncode == 2
    assert "Traceback" not in open_to_all.stderr
    assert "keys" in open_to_all.stderr.splitlines()[-2] + open_to_all.stderr.splitlines()[-1]


def test_a_new_state_of_an_index_is_swapped_in_without_dropping_a_request(growing, tmp_path):
    index, grow = growing
    with serving(index, data=tmp_path / "data") as service, service.client() as client:
        assert (label(client, FIRST), label(client, LATER)) == ("contaminated", "clean")
        before = client.get("/v1/indexes/growing").json()["state"]
        stop = threading.Event()
        seen, failures = [], []

        def ask():
            try:
                with service.client() as mine:
                    while not stop.is_set():
                        reply = mine.post("/v1/check", json={"items": [
                            {"id": "1", "question": FIRST}, {"id": "2", "question": LATER},
                        ]})  # fmt: skip
                        labels = tuple(verdict["label"] for verdict in reply.json()["verdicts"])
                        seen.append((reply.json()["states"][0], labels))
            except (httpx.HTTPError, KeyError) as error:
                failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        grow()
        renewed = client.post("/v1/indexes/growing/reload")
        for _ in range(5):
            assert label(client, LATER) == "contaminated"
            assert client.post("/v1/indexes/growing/reload").status_code == 200
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        after = renewed.json()["state"]
        assert after != before
        # An answer is of the one state or of the other, and says of which.
        assert {one for one in seen if one[0] == before} <= {(before, ("contaminated", "clean"))}
        assert {one for one in seen if one[0] == after} == {
            (after, ("contaminated", "contaminated"))
        }
        assert {one[0] for one in seen} <= {before, after}

        # What cannot be opened is not swapped in.
        manifest = index / "MANIFEST.json"
        manifest.write_bytes(manifest.read_bytes().replace(b"first", b"worst"))
        reply = client.post("/v1/indexes/growing/reload")
        assert (reply.status_code, reply.json()["code"]) == (503, "index-damaged")
        assert str(tmp_path) not in reply.text
        assert client.get("/v1/indexes/growing").json()["state"] == after
        assert label(client, FIRST) == "contaminated"


@pytest.mark.slow
def test_a_service_looks_for_new_states_by_itself_when_told_to(growing, tmp_path):
    index, grow = growing
    flags = ("--reload-index", "0.1")
    with serving(index, data=tmp_path / "data", flags=flags) as service, service.client() as client:
        assert label(client, LATER) == "clean"
        grow()
        for _ in range(600):
            if label(client, LATER) == "contaminated":
                break
        assert label(client, LATER) == "contaminated"
    # Probes that come while it starts are answered with 503, and nothing is wrong with that.
    told = [json.loads(line) for line in service.lines if line.startswith("{")]
    assert [one for one in told if one["level"] in {"warning", "error"}] == []


def test_sigterm_lets_a_request_end_and_takes_no_new_one(service_of_its_own, fixture_items):
    service = service_of_its_own
    body = json.dumps({"items": fixture_items}).encode()
    host, port = httpx.URL(service.url).host, httpx.URL(service.url).port
    head = (
        f"POST /v1/check HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, port)) as connection:
        connection.sendall(head.encode() + body[:100])
        # Once another request has been answered, the one that is under way has been seen.
        with service.client() as client:
            assert client.get("/readyz").json() == {"status": "ready"}
        service.process.send_signal(signal.SIGTERM)
        while listens(host, port):
            assert service.process.poll() is None
        connection.sendall(body[100:])
        with connection.makefile("rb") as reply:
            answer = reply.read()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.count(b'"item_id"') == len(fixture_items)
    assert service.wait() == 0


def listens(host, port):
    try:
        socket.create_connection((host, port)).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


@pytest.fixture
def service_of_its_own(small_index, tmp_path):
    with serving(small_index, data=tmp_path / "data") as running:
        yield running


ASK = """
import json, sys
from dataclasses import replace
from pathlib import Path
from importlib import import_module
from pkgutil import iter_modules
import contam.kernels
from numba.core.registry import CPUDispatcher
from contam.benchmark.items import BenchItem
from contam.config import Settings
from contam.detect.warm import match_a_little
from contam.server.indexes import IndexRegistry

def counts():
    found = {}
    for module in iter_modules(contam.kernels.__path__):
        for name, value in vars(import_module(f"contam.kernels.{module.name}")).items():
            if isinstance(value, CPUDispatcher):
                found[f"{module.name}.{name}"] = len(value.signatures)
    return found

registry = IndexRegistry.open(Settings(index=(sys.argv[1],)))
match_a_little()
before = counts()
rows = [json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]
items = [
    BenchItem(benchmark="b", split="", item_id=one["id"], question=one["question"],
              answer=one["answer"]) for one in rows
]
items.append(replace(items[0], item_id="formula", question="(" + "frac{x}{y}{z} " * 9 + ")"))
with registry.snapshot() as snapshot:
    labels = {verdict.label for verdict in snapshot.reader.check(items)}
assert "contaminated" in labels
print(sorted(name for name, n in counts().items() if n != before[name]))
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_opening_an_index_loads_every_kernel_that_a_check_needs(small_index, bench_fixtures):
    items = bench_fixtures / "items" / "brook_math.jsonl"
    run = python("-c", ASK, small_index, items)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[]\n"


MIB = 1 << 20
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("said", "n_indexes", "usable_mib", "expected_mib"),
    [
        (7 * MIB, 1, 16_384, 7),
        (0, 1, 8_192, 1_024),
        (0, 2, 8_192, 512),
        (0, 3, 1_024, 256),
        (0, 1, 1_000_000, 2_048),
    ],
)
def test_without_a_word_indexes_share_an_eighth_within_bounds(
    said, n_indexes, usable_mib, expected_mib
):
    assert text_bytes(said, n_indexes, usable_mib * MIB) == expected_mib * MIB


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1073741824\n", 1 << 30),
        ("max\n", MACHINE),
        ("9223372036854771712\n", MACHINE),
        ("", MACHINE),
        ("\xff", MACHINE),
    ],
)
def test_a_container_s_limit_counts_where_it_is_less_than_the_machine(tmp_path, written, expected):
    limit = tmp_path / "memory.max"
    limit.write_text(written, encoding="latin-1")
    assert usable_bytes([tmp_path / "absent", limit]) == expected
