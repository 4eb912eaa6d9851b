"""Archives: files of text and JSON are documents, all else is counted, and cuts are found."""

import gzip
import io
import json
import tarfile

import pytest
import zstandard

import contam
from contam.cleaning.clean import clean
from contam.errors import ShardError
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items

TEXT = f"{FILLER}\n{QUESTION}\n{FILLER}"
PACK = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


def archive(members, links=()):
    """The bytes of an archive of (name, bytes), and links of (name, kind)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        folder = tarfile.TarInfo("shard")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, kind in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    return out.getvalue()


def webdataset():
    return [
        ("0000.txt", FILLER.encode()),
        ("0000.jpg", b"\xff\xd8\xff" * 99),
        ("0001.json", json.dumps({"id": "own", "messages": [{"role": "user", "content": TEXT}]}).encode()),
        ("0002.jsonl", "".join(json.dumps({"text": f"{n} {FILLER}"}) + "\n" for n in range(3)).encode()),
        ("0003.MD", TEXT.encode()),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_text_that_is_not_utf_8_makes_nothing_clean(tmp_path, items, name, encoding):
    text = f"«Ω» {TEXT}" if name.endswith(".txt") else json.dumps({"text": TEXT})
    path = tmp_path / "a.tar"
    path.write_bytes(archive([("b.txt", FILLER.encode()), (name, text.encode(encoding))]))
    found = contam.scan(path, items, workers=1)
    assert set(labels(found).values()) == {"not_checkable"}


@pytest.mark.parametrize("suffix", PACK)
def test_texts_and_json_in_an_archive_are_documents(tmp_path, items, suffix):
    path = tmp_path / f"a.tar{suffix}"
    path.write_bytes(PACK[suffix](archive(webdataset())))
    result = contam.scan(path, items, workers=1)
    assert labels(result) == {"q0": "contaminated", "q1": "clean"}
    places = {(row["row"], row["document_id"]) for row in result.evidence.to_pylist()}
    assert places == {(2, "own"), (6, "0003.MD")}
    assert (result.coverage["rows"], result.coverage["n_null"]) == (7, 1)
    build(path, tmp_path / "index", load_recipe("complete"), workers=1)
    assert labels(contam.query(tmp_path / "index", items)) == labels(result)


def test_what_leads_out_of_an_archive_is_no_document(tmp_path, items):
    members = [("../a.txt", TEXT.encode()), ("/b.txt", TEXT.encode()), ("c.txt", FILLER.encode())]
    links = [("d.txt", tarfile.SYMTYPE), ("e.txt", tarfile.LNKTYPE), ("f.txt", tarfile.FIFOTYPE)]
    path = tmp_path / "a.tar"
    path.write_bytes(archive(members, links))
    result = contam.scan(path, items, workers=1)
    assert labels(result)["q0"] == "clean"
    assert (result.coverage["rows"], result.coverage["n_null"]) == (6, 5)


@pytest.mark.parametrize("suffix", PACK)
def test_a_cut_or_damaged_archive_makes_nothing_clean(tmp_path, items, suffix):
    data = archive([(f"{n}.txt", FILLER.encode()) for n in range(5)] + [("q.txt", TEXT.encode())])
    whole = PACK[suffix](data)

    def read(folder, archives):
        """What a scan of them all says, and the places of those that it did not read."""
        (tmp_path / folder).mkdir()
        for at, one in archives.items():
            (tmp_path / folder / f"{at}.tar{suffix}").write_bytes(one)
        result = contam.scan(tmp_path / folder, items, workers=1)
        failed = {int(one["shard"].split(".")[0]) for one in result.coverage["shards_failed"]}
        return set(labels(result).values()), failed

    # A block of zeros ends an archive; tools write more of them.
    end = -(-len(data.rstrip(b"\0")) // 512) * 512 + 512
    step = max(1, len(whole) // 40) if suffix else 256
    cuts = {at: whole[:at] for at in range(0, len(whole), step)}
    ended = {} if suffix else {at: one for at, one in cuts.items() if at >= end}
    cut = {at: one for at, one in cuts.items() if at not in ended}
    assert read("cut", cut) == ({"not_checkable"}, set(cut))
    if ended:
        assert read("ended", ended) == ({"contaminated", "clean"}, set())
    flipped = {at: bytearray(data) for at in range(0, end, 61)}
    for at, one in flipped.items():
        one[at] ^= 0x5A
    told, failed = read("flipped", {at: PACK[suffix](bytes(one)) for at, one in flipped.items()})
    assert "clean" not in told
    # A letter of a text may be another one; no header may be.
    assert failed >= {at for at in flipped if at // 512 % 2 or at <= 512}


def test_a_json_file_that_is_none_is_an_error_and_a_large_text_too(tmp_path, items):
    path = tmp_path / "a.tar"
    path.write_bytes(archive([("a.txt", FILLER.encode()), ("b.json", b"{no json")]))
    (failed,) = contam.scan(path, items, workers=1).coverage["shards_failed"]
    assert "b.json" in failed["reason"]


def test_an_archive_is_not_written_again(tmp_path, items):
    (tmp_path / "corpus").mkdir()
    path = tmp_path / "corpus" / "a.tar"
    path.write_bytes(archive(webdataset()))
    with pytest.raises(ShardError, match="cannot be written again"):
        clean(tmp_path / "corpus", items, tmp_path / "out", workers=1)
    clean(tmp_path / "corpus", items, tmp_path / "list", action="list", workers=1)
