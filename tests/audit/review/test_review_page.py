"""The service's page asks what the terminal asks, keeps what it keeps, and shows nobody's answers."""

import contextlib
import dataclasses
import io
import json
import re
import shutil
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from contam import scan
from contam.audit.pack import run_audit
from contam.audit.review.sample import append_label, read_labels, read_own_labels
from contam.audit.review.session import ReviewSession
from contam.audit.spec import load_spec
from contam.cli.main import main
from contam.config import Settings
from contam.detect.report import write_report
from contam.errors import ConfigError, OutputError, UsageError
from contam.server.indexes.registry import IndexRegistry
from contam.server.middleware.auth import OPEN, Caller, Keyring
from contam.server.middleware.keys import KeyStore
from contam.server.page.reviewer import reader_of
from contam.server.page.reviews import ChangedError, Reviews, named_packs
from contam.server.problems.failures import RequestError
from tests.audit.conftest import FIXTURES, write_spec
from tests.server.running import serving

SAMPLE = {"flagged": 4, "clean": 3}
FLAGS = ("--review-flagged", "4", "--review-clean", "3")
MARKER = "zyzzogeton"


@pytest.fixture(scope="module")
def room(audited, tmp_path_factory):
    """A service that only offers a pack to read, its folder of labels, and keys by name."""
    home = tmp_path_factory.mktemp("room")
    pack, data = home / "release", home / "data"
    shutil.copytree(audited.folder, pack)
    shutil.copytree(FIXTURES / "corpus", home / "corpus")
    items = FIXTURES / "items" / "brook_math.jsonl"
    write_report(scan(home / "corpus", items, keep_text=False, workers=1), home / "bare")
    # What was searched is another one since.
    with (home / "corpus" / "part-000.parquet").open("ab") as shard:
        shard.write(b"more")
    store = KeyStore(data)
    people = ("anna", "ben", "cleo", "Dora Ü/..")
    keys = {name: store.add(name, ["review"])[1] for name in people}
    keys["stranger"] = store.add("stranger", ["jobs"])[1]
    keys["twin"], _ = (named_alike(store, f"twin {at}", "twin")[1] for at in range(2))
    flags = ("--review", str(pack), str(home / "bare"), *FLAGS)
    with serving(data=data, flags=flags) as service:
        yield service, data / "reviews" / "release", keys, pack


@pytest.fixture(scope="module")
def reading(audited):
    return ReviewSession.open(audited.folder, **SAMPLE)


def named_alike(store, made_as, name):
    """A key for reviews under a name that another may have, as stores of before can hold it."""
    key, secret = store.add(made_as, ["review"])
    with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE keys SET name = ? WHERE id = ?", (name, key.id))
    return key, secret


class Desk:
    """Somebody who is signed in, and reads."""

    def __init__(self, service, key, pack="release"):
        self.client = service.client(headers={"Origin": service.url}, follow_redirects=True)
        self.start = f"/review/{pack}"
        self.landed = self.client.post("/sign-in", data={"key": key}).url.path

    def page(self, path=""):
        return self.client.get(f"{self.start}{path}")

    def say(self, page, answer, note="", **changes):
        fields = dict(re.findall(r'name="(token|before|reader)" value="([^"]*)"', page.text))
        action = re.search(r'method="post" action="(/review/[^"]*)"', page.text)[1]
        return self.client.post(action, data={**fields, "answer": answer, "note": note, **changes})

    def read(self, says):
        """Give an answer to one item after the other; says maps a place in the sample to it."""
        page = self.page()
        for answer in says:
            page = self.say(page, answer)
            assert page.status_code == 200, page.text
        return page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()


def in_terminal(monkeypatch, pack, path, reader, says):
    words = {"true": "t", "false": "f", "skip": "s"}
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{words[one]}\n" for one in says)))
    assert main(
        [
            *("review", str(pack), "--labels", str(path), "--reader", reader),
            *("--flagged", "4", "--clean", "3"),
        ]
    ) == 0  # fmt: skip


def answers_of(reading, turned=()):
    """What a reader says who is right but for some."""
    said = [case.flagged != (at in turned) for at, case in enumerate(reading.cases)]
    return ["true" if one else "false" for one in said]


def test_half_in_the_terminal_and_half_on_the_page_is_one_review(
    room, reading, monkeypatch, tmp_path, audited
):
    service, labels, keys, pack = room
    said = {"anna": answers_of(reading, turned=(3,)), "ben": answers_of(reading, turned=(5, 9))}
    said["ben"][2] = "skip"
    half = len(reading.cases) // 2
    assert half > 5
    labels.mkdir(parents=True, exist_ok=True)
    for name, says in said.items():
        in_terminal(monkeypatch, pack, tmp_path / f"{name}.jsonl", name, says)
        in_terminal(monkeypatch, pack, labels / f"{name}.jsonl", name, says[:half])
        with Desk(service, keys[name]) as desk:
            assert desk.landed == "/review"
            assert f"{half} of {len(says)} read" in desk.page().text
            done = desk.read(says[half:])
        assert f"All {len(says)} items of release are read" in done.text
        assert (labels / f"{name}.jsonl").read_bytes() == (tmp_path / f"{name}.jsonl").read_bytes()
    found = []
    for folder in (tmp_path, labels):
        spec = load_spec(write_spec(tmp_path, out=f"pack-{len(found)}"))
        files = tuple(str(folder / f"{name}.jsonl") for name in said)
        out = shutil.copytree(audited.folder, tmp_path / f"pack-{len(found)}")
        spec = dataclasses.replace(spec, labels=files, out=str(out))
        found.append(run_audit(spec, overwrite=True).facts.review)
    assert found[0] == found[1]
    assert found[0]["readers"] == ["anna", "ben"]
    assert found[0]["n_stale"] == 0
    assert found[0]["kappa"] is not None
    assert any(row["rate"] is not None and row["recall_lo"] for row in found[0]["policies"])


def test_a_reader_sees_neither_verdicts_nor_what_others_said(room, reading):
    service, labels, keys, _ = room
    case = reading.cases[0]
    labels.mkdir(parents=True, exist_ok=True)
    with Desk(service, keys["cleo"]) as cleo:
        first = cleo.page()
        assert case.key.item_id in first.text
        assert first.text.count("<mark>") > 0
        for word in ("contaminated", "suspect", "clean", "score", "flagged", str(labels.parent)):
            assert word not in re.sub(r"<style>.*?</style>", "", first.text, flags=re.DOTALL)
        with Desk(service, keys["Dora Ü/.."]) as dora:
            assert dora.say(dora.page(), "false", "no trace of it").status_code == 200
            assert dora.page("/answers").text.count("no trace of it") == 1
        again = cleo.page()
        # The only thing that differs is nothing of the answer.
        assert "no trace" not in again.text
        assert '<p class="note open">You said' not in again.text
        assert "no trace" not in cleo.page("/answers").text
        listed = cleo.client.get("/review").text
    row = r'<bdi>Dora Ü/\.\.</bdi></th><td data-name="Read">1</td><td data-name="Skipped">0</td>'
    assert re.search(row, listed)
    assert "no trace" not in listed
    (kept,) = labels.glob("dora*.jsonl")
    (one,) = read_labels([kept])
    assert (one.judged, one.evidence) == (case.judged, case.digest)
    assert (one.reader, one.label, one.note) == ("Dora Ü/..", False, "no trace of it")


def test_an_answer_is_changed_only_by_who_says_so_and_the_change_is_kept(room, reading):
    service, labels, keys, _ = room
    path = labels / "cleo.jsonl"
    with Desk(service, keys["cleo"]) as cleo:
        form = cleo.page()
        n = len(read_own_labels(path))
        noted = cleo.say(form, "true")
        assert "Noted: <strong>true</strong>" in noted.text
        # The back button: the same form again.
        assert cleo.say(form, "true").status_code == 200
        assert len(read_own_labels(path)) == n + 1
        refused = cleo.say(form, "false", "on second thoughts")
        assert refused.status_code == 409
        assert "nothing was changed" in refused.text
        assert "on second thoughts" in refused.text
        assert len(read_own_labels(path)) == n + 1
        assert cleo.say(refused, "false", "on second thoughts").status_code == 200
        assert [label.label for label in read_own_labels(path)[n:]] == [True, False]
        assert "changed 1 time" in cleo.page("/answers").text
        assert reading.waiting(read_own_labels(path), "cleo")[0] == reading.cases[n + 1]


def test_only_who_may_review_gets_anything_and_only_by_our_forms(room):
    service, labels, keys, pack = room
    with service.client() as client:
        for path in ("/review", "/review/release", "/review/release/answers", "/review/x/y"):
            assert client.get(path).headers["location"] == "/sign-in"
        assert client.post("/review/release/x", data={"answer": "true"}).status_code == 401
    with Desk(service, keys["stranger"]) as stranger:
        assert stranger.landed == "/jobs"
        assert "/review" not in stranger.client.get("/jobs").text
        for path in ("", "/answers", "/x"):
            assert stranger.page(path).status_code == 403
        assert stranger.client.get("/review").status_code == 403
        assert stranger.client.post("/review/release/x", data={"answer": "true"}).status_code == 403
    with Desk(service, keys["twin"]) as twin:
        assert twin.client.get("/review").status_code == 409
        assert "cannot be told apart" in twin.page().text
    before = {path: path.read_bytes() for path in labels.glob("*")}
    with Desk(service, keys["cleo"]) as cleo:
        form = cleo.page()
        forged = cleo.say(form, "true", "typed at length", token=MARKER)
        assert forged.status_code == 403
        assert "typed at length" in forged.text
        assert cleo.say(form, "maybe").status_code == 422
        assert cleo.say(form, "true", before="-1").status_code == 422
        assert cleo.say(form, "true", "x" * 2001).status_code == 422
        elsewhere = {"Origin": "https://other.example"}
        assert (
            cleo.client.post(
                "/review/release/x", data={"answer": "true"}, headers=elsewhere
            ).status_code
            == 403
        )
        for path in ("/review/none", "/review/..%2f..", "/review/release/none",
                     "/review/release/..%2f..%2fkeys.db"):  # fmt: skip
            assert cleo.client.get(path).status_code == 404
        assert str(pack) not in cleo.page("/none").text
        # A name in the address is nobody's where keys say who reads.
        assert "read as <bdi>cleo</bdi>" in cleo.client.get("/review/release?reader=anna").text
        assert cleo.client.get("/").url.path == "/review"
    assert {path: path.read_bytes() for path in labels.glob("*")} == before


def test_texts_that_are_not_there_are_told_of_and_no_file_is_named(room):
    service, _, keys, pack = room
    with Desk(service, keys["ben"], "bare") as ben:
        page, seen = ben.page(), ""
        while "No document shares" not in seen or "is gone, or is not the one" not in seen:
            seen += page.text
            page = ben.say(page, "skip")
    assert "texts were kept out of this pack" in seen
    assert seen.count("Its text is not shown.") > 1
    assert "<mark>" in seen
    assert str(pack.parent) not in seen


def test_a_service_of_packs_alone_has_no_index_to_ask(room):
    service, _, keys, _ = room
    with service.client() as client:
        assert client.get("/readyz").status_code == 200
        bearer = {"Authorization": f"Bearer {keys['stranger']}"}
        job = {"job": (None, json.dumps({"kind": "check"}), "application/json")}
        items = {"items": ("i.jsonl", b'{"id": "1", "question": "which one is it"}')}
        refused = client.post("/v1/jobs", files={**job, **items}, headers=bearer)
        assert (refused.status_code, refused.json()["code"]) == (404, "no-index")


def test_what_was_answered_outlives_a_kill_and_is_in_no_log(audited, tmp_path):
    flags = ("--review", str(audited.folder), *FLAGS, "--log-level", "debug")
    labels = tmp_path / "data" / "reviews" / audited.folder.name
    with serving(data=tmp_path / "data", flags=flags) as service:
        with service.client(headers={"Origin": service.url}, follow_redirects=True) as client:
            assert client.get("/").url.path == "/review"
            assert client.get(f"/review/{audited.folder.name}").url.path == "/review"
            page = client.get(f"/review/{audited.folder.name}?reader={MARKER}")
            shown = re.findall(r"<mark><bdi>([^<]{20})", page.text)
            for answer in ("true", "false", "skip"):
                fields = dict(
                    re.findall(r'name="(token|before|reader)" value="([^"]*)"', page.text)
                )
                action = re.search(r'method="post" action="(/review/[^"]*)"', page.text)[1]
                said = {**fields, "answer": answer, "note": f"{MARKER} {answer}"}
                page = client.post(action, data=said)
                assert page.status_code == 200
                assert fields["reader"] == MARKER
        service.stop(signal.SIGKILL)
        output = service.process.stdout.read()
    output += "".join(service.lines)
    kept = read_labels([labels / f"{MARKER}.jsonl"])
    assert [label.label for label in kept] == [True, False, None]
    assert [label.note for label in kept] == [
        f"{MARKER} {one}" for one in ("true", "false", "skip")
    ]
    assert output.count('"event":"request"') > 5
    assert '"/review/{name}/{item}"' in output
    assert [word for word in (MARKER, *shown) if word in output] == []


# ------------------------------------------------------------------------- without a service


def opened(tmp_path, *packs, **more):
    texts = tuple(map(str, packs))
    return Reviews.open(Settings(review=texts, data=str(tmp_path / "data"), **more))


def test_the_page_draws_as_the_terminal_does_unless_told_otherwise(audited, tmp_path):
    from inspect import signature

    from contam.audit.review.session import DOCUMENTS, ITEMS, SEED
    from contam.cli.commands.review import review

    usual = {name: parameter.default for name, parameter in signature(review).parameters.items()}
    assert (usual["flagged"], usual["clean"], usual["seed"]) == (ITEMS, ITEMS, SEED)
    assert usual["documents"] == DOCUMENTS
    (pack,) = opened(tmp_path, audited.folder).packs
    assert pack.reading().cases == ReviewSession.open(audited.folder).cases
    (pack,) = opened(tmp_path, audited.folder, review_seed=7, review_policy="lmeval-13").packs
    assert (
        pack.reading().cases == ReviewSession.open(audited.folder, seed=7, policy="lmeval-13").cases
    )


@pytest.mark.parametrize("harm", ["altered", "added", "unsealed", "gone"])
def test_a_pack_that_is_not_as_published_is_not_offered(pack, tmp_path, harm):
    (held,) = opened(tmp_path, pack).packs
    case = held.reading().cases[0]
    report = pack / "report.md"
    was = report.read_bytes()
    if harm == "altered":
        report.write_bytes(was.replace(b"a", b"b", 1))
    elif harm == "added":
        (pack / "more.txt").write_text("x")
    elif harm == "unsealed":
        (pack / "manifest.json").unlink()
    else:
        shutil.rmtree(pack)
    with pytest.raises(RequestError) as refused:
        held.reading()
    assert (refused.value.status, refused.value.code) == (503, "pack-damaged")
    assert str(tmp_path) not in f"{refused.value.message} {refused.value.hint}"
    with pytest.raises(ConfigError if harm == "gone" else OutputError):
        opened(tmp_path, pack)
    if harm == "altered":
        report.write_bytes(was)
        assert held.reading().cases[0] == case


def test_a_service_with_neither_index_nor_pack_does_not_start(audited, tmp_path):
    data = str(tmp_path)
    with pytest.raises(ConfigError, match="no index to serve"):
        IndexRegistry.open(Settings(data=data))
    assert IndexRegistry.open(Settings(data=data, review=(str(audited.folder),))).names == ()


def test_packs_have_names_of_their_own(audited, pack, tmp_path):
    found = named_packs([f"first={audited.folder}", f"second={pack}", str(pack)])
    assert list(found) == ["first", "second", "pack"]
    for wrong in ([str(pack), f"PACK={audited.folder}"], [f"a/b={pack}"], [str(tmp_path / "no")]):
        with pytest.raises(ConfigError):
            named_packs(wrong)
    with pytest.raises(UsageError):
        opened(tmp_path, pack, review_policy="tulu3-50")
    with pytest.raises(RequestError):
        opened(tmp_path, pack).pack("other")


@pytest.mark.parametrize("reader", ["../../etc", "a/b", "..", ".", "CON", "ÅÄ", "x" * 100, "a\\b"])
def test_every_name_of_a_reader_makes_a_file_of_the_same_folder(audited, tmp_path, reader):
    (pack,) = opened(tmp_path, audited.folder).packs
    case = pack.reading().cases[0]
    assert pack.keep(case, reader, True, "", 0)
    (path,) = (one for one in (tmp_path / "data").rglob("*") if one.is_file())
    assert path.parent == tmp_path / "data" / "reviews" / audited.folder.name
    assert [label.reader for label in read_labels([path])] == [reader]
    with pytest.raises(ChangedError):
        pack.keep(case, reader, False, "", 0)
    assert pack.labels(reader.swapcase() + "2") == []


def test_answers_that_cannot_be_read_take_no_more_and_hide_nobody_else(audited, tmp_path):
    (pack,) = opened(tmp_path, audited.folder).packs
    reading = pack.reading()
    for reader in ("anna", "ben"):
        pack.keep(reading.cases[0], reader, None, "", 0)
    path = tmp_path / "data" / "reviews" / pack.name / "anna.jsonl"
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(RequestError) as refused:
        pack.keep(reading.cases[1], "anna", True, "", 0)
    assert refused.value.code == "labels-damaged"
    readers, are_all = pack.progress(reading)
    assert [(reader.reader, reader.n_read, reader.n_skipped) for reader in readers] == [
        ("ben", 1, 1)
    ]
    assert not are_all
    # Nothing can be kept where there is no folder to keep it in.
    shutil.rmtree(path.parent)
    path.parent.write_text("in the way")
    with pytest.raises(RequestError) as refused:
        pack.keep(reading.cases[1], "cleo", True, "", 0)
    assert refused.value.status == 503


def test_of_two_answers_sent_at_once_one_is_kept_and_the_other_is_asked_about(audited, tmp_path):
    (pack,) = opened(tmp_path, audited.folder).packs
    cases = pack.reading().cases[:6]

    def send(said):
        kept = 0
        for case in cases:
            try:
                kept += pack.keep(case, "anna", said, f"{said}", 0)
            except ChangedError:
                continue
        return kept

    with ThreadPoolExecutor(6) as pool:
        kept = sum(pool.map(send, [True, False, None] * 4))
    labels = pack.labels("anna")
    assert kept == len(labels) == len(cases)
    assert {label.judged for label in labels} == {case.judged for case in cases}


def test_other_evidence_makes_an_item_unread_again(audited, tmp_path):
    (pack,) = opened(tmp_path, audited.folder).packs
    case = pack.reading().cases[0]
    pack.keep(case, "anna", True, "", 0)
    (label,) = pack.labels("anna")
    stale = dataclasses.replace(label, evidence="other", reader="ben")
    append_label(tmp_path / "data" / "reviews" / pack.name / "ben.jsonl", stale)
    whole = pack.reading()
    assert whole.waiting(pack.labels("ben"), "ben")[0] == case
    assert whole.waiting(pack.labels("anna"), "anna")[0] != case
    assert [one.reader for one in pack.progress(whole)[0]] == ["anna"]


def test_a_reader_is_who_the_key_says(tmp_path):
    store = KeyStore(tmp_path)
    anna, _ = store.add("Anna", ["review"])
    gone, _ = named_alike(store, "ben", "anna ")
    store.add("Anna", ["check"])
    ring = Keyring(Settings(data=str(tmp_path)))
    caller = Caller(anna.id, anna.scopes)
    try:
        with pytest.raises(RequestError):
            reader_of(ring, caller, "")
        store.revoke(gone.id)
        assert ring.still_good(caller)
        assert reader_of(ring, caller, "somebody").name == "Anna"
        assert reader_of(ring, OPEN, "") is None
        assert reader_of(ring, OPEN, " Ben  B ").name == "Ben B"
        assert reader_of(ring, OPEN, "Ben B").at("/x", last="1") == "/x?last=1&reader=Ben+B"
        for wrong in ("ANNA", "a" * 101, "a\x07", "a\nb", "../../x", "a\\b", "..", "a\u202eb"):
            with pytest.raises(RequestError):
                reader_of(ring, OPEN, wrong)
    finally:
        ring.close()
