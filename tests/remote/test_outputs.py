"""Plans, parts and results in a bucket: the bytes of a folder, or nothing that looks whole."""

import json

import pytest

from contam.cleaning.clean import clean
from contam.cli.main import main
from contam.detect.parts.part_store import Division
from contam.detect.report import FILES, load_report, write_report
from contam.detect.scan import scan, scan_share
from contam.errors import IncompleteError, OutputError, ShardError, UsageError
from contam.files.addresses import Address
from contam.files.stores import names_below, upload
from tests.cleaning.inputs import tree
from tests.cli.processes import assert_one_line_error, contam_here
from tests.remote.conftest import BUCKET, KEY_ID, RESULTS, SECRET

HOME = f"s3://{BUCKET}"
PASSING = ("500", "503", "reset", "403", "expired")


@pytest.fixture
def store(s3):
    s3.buckets.add(BUCKET)
    return s3


def put(store, home, below):
    """Copy a folder into the bucket."""
    for path in home.iterdir():
        store.put(f"/{BUCKET}/{below}/{path.name}", path.read_bytes())


def below(store, prefix):
    """What lies below a prefix of the bucket, by name, without the empty mark of a folder."""
    begin = f"/{BUCKET}/{prefix}/"
    found = {path for path in store.contents if path.startswith(begin) and path != begin}
    return {path.removeprefix(begin): store.contents[path].data for path in found}


def done(finished, code=0):
    assert finished.returncode == code, finished.stderr
    assert SECRET not in finished.stdout + finished.stderr
    assert KEY_ID not in finished.stdout + finished.stderr
    return finished


def tables(found):
    return {name: found[name] for name in RESULTS}


def test_parts_and_results_lie_in_a_bucket(store, folder, items, local, tmp_path):
    scanned = ("scan", "--corpus", folder, "--benchmark", items)
    parts = ("--parts", f"{HOME}/parts", "--part-size", "1k")
    for share in ("2/2", "1/2", "1/1"):
        done(contam_here(*scanned, *parts, "--shard", share, cwd=tmp_path))
    result = (*scanned, *parts, "--only-parts", "--out", f"{HOME}/result")
    merged = done(contam_here(*result, cwd=tmp_path))
    assert f"results   {HOME}/result\n" in merged.stdout
    assert tables(below(store, "result")) == local[1]
    assert sorted(below(store, "result")) == sorted(FILES)
    done(contam_here(*scanned, "--out", f"{HOME}/one", cwd=tmp_path))
    assert tables(below(store, "one")) == local[1]
    mine, other = (json.loads(below(store, name)["run.json"]) for name in ("result", "one"))
    assert mine | {"timings": 0} == other | {"timings": 0}
    shown = done(contam_here("show", f"{HOME}/result", "q0", "--json", cwd=tmp_path))
    assert json.loads(shown.stdout)["items"]
    count = done(contam_here("sql", f"{HOME}/result", "select count(*) n from verdicts"))
    assert "2" in count.stdout
    assert not list(tmp_path.iterdir())
    # Each writes over nothing, and repeats nothing.
    assert set(store.writes.values()) == {1}
    refused = contam_here(*result, cwd=tmp_path)
    assert "already holds a finished result" in done(refused, 1).stderr
    done(contam_here(*result, "--overwrite"))
    assert tables(below(store, "result")) == local[1]


def share(folder, items, address=f"{HOME}/parts"):
    division = Division(folder=address, size=1)
    return scan_share([folder], [items], division, workers=1, policies=("contam",))


@pytest.mark.parametrize("spoil", ["cut", "flip", "another", "gone"])
def test_an_object_that_is_not_whole_is_no_part(store, folder, items, spoil):
    first = share(folder, items)
    before = below(store, "parts")
    assert len(before) == first.total + 1
    assert share(folder, items).kept == first.done
    name, other, *_ = (name for name, data in before.items() if not data.startswith(b"contam"))
    path, data = f"/{BUCKET}/parts/{name}", before[name]
    if spoil == "gone":
        del store.contents[path]
    else:
        changed = {
            "cut": data[:-1], "flip": data[:-1] + bytes([data[-1] ^ 1]), "another": before[other],
        }  # fmt: skip
        store.put(path, changed[spoil])
    assert len(share(folder, items).done) == 1
    assert below(store, "parts") == before


def test_a_store_that_is_only_read_is_refused(folder, items, tmp_path):
    address = "https://example.org/out"
    for call in (
        ("scan", "--corpus", folder, "--benchmark", items),
        ("scan", "--corpus", folder, "--benchmark", items, "--parts", "parts"),
    ):
        refused = contam_here(*call, "--out", address, cwd=tmp_path)
        assert "only read" in done(refused, 2).stderr
    with pytest.raises(UsageError, match="only read"):
        share(folder, items, address)
    assert not list(tmp_path.iterdir())


def test_results_do_not_go_where_others_are_or_into_the_corpus(bucket, items, local, tmp_path):
    inside = contam_here("scan", "--corpus", f"{HOME}/data", "--benchmark", items,
                         "--out", f"{HOME}/data/out", cwd=tmp_path)  # fmt: skip
    assert "inside the corpus" in done(inside, 2).stderr
    with pytest.raises(OutputError, match="not a contam result"):
        write_report(local[0], f"{HOME}/data")
    with pytest.raises(OutputError, match=r"not a contam result: data$"):
        write_report(local[0], HOME)
    assert sorted(below(bucket, "data")) == sorted(
        path.removeprefix(f"/{BUCKET}/data/") for path in bucket.contents
    )


# ------------------------------------------------------------------------- stores that fail


@pytest.mark.slow
@pytest.mark.parametrize("do", PASSING)
def test_a_fault_that_passes_changes_nothing(store, do, local):
    # Credentials are fetched anew once.
    for method in ("PUT",) if do in ("403", "expired") else ("PUT", "POST"):
        store.fail(do, method=method)
    write_report(local[0], f"{HOME}/out")
    assert tables(below(store, "out")) == local[1]
    assert load_report(f"{HOME}/out").verdicts.equals(local[0].verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("do", ["503", "reset", "403", "stall"])
@pytest.mark.parametrize("name", FILES)
def test_a_fault_that_stays_leaves_nothing_that_looks_whole(store, do, name, local):
    if do == "stall" and name != "run.json":
        pytest.skip("one is enough: it takes long")
    store.fail(do, method="PUT", key=name, times=None)
    with pytest.raises(OutputError, match=name) as failed:
        write_report(local[0], f"{HOME}/out")
    assert SECRET not in str(failed.value)
    assert KEY_ID not in str(failed.value)
    assert not {"run.json", name} & below(store, "out").keys()
    with pytest.raises(OutputError):
        load_report(f"{HOME}/out")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_an_earlier_result_is_never_mixed_with_a_new_one(store, name, local):
    write_report(local[0], f"{HOME}/out")
    store.fail("503", method="PUT", key=name, times=None)
    with pytest.raises(OutputError):
        write_report(local[0], f"{HOME}/out", overwrite=True)
    with pytest.raises(OutputError, match="no finished result"):
        load_report(f"{HOME}/out")
    store.faults.clear()
    with pytest.raises(OutputError, match="part of a result"):
        write_report(local[0], f"{HOME}/out")
    write_report(local[0], f"{HOME}/out", overwrite=True)
    assert tables(below(store, "out")) == local[1]


@pytest.mark.usefixtures("store")
def test_a_bucket_that_is_not_there_is_refused_before_anything_is_read(monkeypatch, capsys):
    monkeypatch.setattr("contam.detect.scan.scan", lambda *_, **__: pytest.fail("it was read"))
    assert main(["scan", "--corpus", "c", "--benchmark", "b", "--out", "s3://none/r", "-q"]) == 1
    assert "no such bucket" in capsys.readouterr().err


def test_a_scan_whose_results_are_refused_goes_on_from_its_parts(
    store, folder, items, local, capsys, tmp_path
):
    fault = store.fail("403", method="PUT", times=None)
    call = ["scan", "--corpus", str(folder), "--benchmark", str(items), "--out", f"{HOME}/r"]
    call += ["--parts", str(tmp_path / "parts")]
    assert main(call) == 1
    store.faults.remove(fault)
    capsys.readouterr()
    assert main(call) == 0
    assert "parts there before: 1" in capsys.readouterr().err
    assert tables(below(store, "r")) == local[1]


def test_two_that_publish_at_once_are_noticed(store, local):
    other = Address(f"{HOME}/out/evidence.parquet")
    store.fail(lambda: store.put("/" + "/".join(other.parts[1:]), b"of another run"),
               method="PUT", key="run.json")  # fmt: skip
    with pytest.raises(OutputError, match="another run"):
        write_report(local[0], f"{HOME}/out")
    with pytest.raises(OutputError, match=r"evidence\.parquet"):
        load_report(f"{HOME}/out")


@pytest.mark.slow
@pytest.mark.parametrize("do", ["503", "reset"])
def test_a_part_that_cannot_be_written_is_not_there(store, folder, items, do):
    first = share(folder, items)
    (last, data), *_ = (
        (n, d) for n, d in below(store, "parts").items() if not d.startswith(b"contam")
    )
    del store.contents[f"/{BUCKET}/parts/{last}"]
    fault = store.fail(do, method="PUT", key=last, times=None)
    with pytest.raises(OutputError, match=last):
        share(folder, items)
    assert fault.seen
    division = Division(folder=f"{HOME}/parts", size=1, only=True)
    assert scan(folder, items, division=division).exit_code() == 4
    store.faults.clear()
    again = share(folder, items)
    assert (len(again.done), len(again.kept)) == (1, first.total - 1)
    assert below(store, "parts")[last] == data


@pytest.mark.slow
def test_large_objects_go_in_parts_that_are_joined_at_the_end(store):
    data = bytes(range(256)) * (25 << 12)
    upload(Address(f"{HOME}/large"), data)
    assert below(store, "large") == {}
    assert store.contents[f"/{BUCKET}/large"].data == data
    assert store.uploads == {}
    store.fail("503", method="PUT", key="/again", after=2, times=None)
    with pytest.raises(OutputError):
        upload(Address(f"{HOME}/again"), data)
    assert names_below(Address(HOME)) == ["large"]


@pytest.mark.slow
def test_a_query_writes_to_a_bucket_and_is_scored_from_there(store, folder, items, tmp_path):
    done(contam_here("index", "build", "--corpus", folder, "--index", tmp_path / "index"))
    query = ("query", "--index", tmp_path / "index", "--benchmark", items, "--out")
    done(contam_here(*query, f"{HOME}/q"))
    done(contam_here(*query, tmp_path / "q"))
    for name in RESULTS:
        assert below(store, "q")[name] == (tmp_path / "q" / name).read_bytes()
    rows = [{"benchmark": "items", "id": f"q{number}", "score": number} for number in range(2)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = contam_here("rescore", "--verdicts", f"{HOME}/q", "--logs", tmp_path / "log.jsonl",
                         "--out", f"{HOME}/scores")  # fmt: skip
    assert f"{HOME}/scores/summary.md" in done(scored).stdout
    assert {"run.json", "summary.md"} <= below(store, "scores").keys()


# ----------------------------------------------------------------------------------------- cleaning


DATA = f"s3://{BUCKET}/data"


def files_of(out):
    found = tree(out)
    return found, json.loads(found.pop("clean.json"))


@pytest.fixture(scope="module")
def expected(folder, items, tmp_path_factory):
    """The files that are written for the folder, and the record."""
    out = tmp_path_factory.mktemp("cleaned") / "out"
    clean([folder], [items], out, action="mask", workers=1)
    return files_of(out)


@pytest.mark.usefixtures("bucket")
def test_objects_are_cleaned_as_files_are(expected, items, tmp_path):
    clean([DATA], [items], tmp_path / "out", action="mask", workers=2)
    found, record = files_of(tmp_path / "out")
    assert found == expected[0]
    assert record["removed"] == expected[1]["removed"]
    assert record["proof"]["shards_searched_again"] == 9
    assert [shard["in"] for shard in record["shards"]] == [
        shard["in"] for shard in expected[1]["shards"]
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
def test_shares_take_parts_and_shards_from_the_bucket(expected, items, tmp_path):
    call = ("clean", "--corpus", DATA, "--benchmark", items, "--action", "mask", "--out", "out",
            "--parts", f"s3://{BUCKET}/parts")  # fmt: skip
    for share in ("2/2", "1/2", "2/2", "1/2", None):
        done = contam_here(*call, *(("--shard", share) if share else ()), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out")[0] == expected[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("address", ["s3://corpora/cleaned", "gs://corpora/cleaned"])
def test_a_result_is_not_written_to_a_store(items, tmp_path, address):
    called = contam_here("clean", "--corpus", DATA, "--benchmark", items, "--out", address,
                         cwd=tmp_path)  # fmt: skip
    assert_one_line_error(called, 2, "store")
    assert not list(tmp_path.iterdir())


class Moments:
    """A progress that does something when the search has ended, or when writing begins."""

    def __init__(self, moment, act):
        self.said, self.moment, self.act = [], moment, act

    def start(self, _):
        self.notice("start")

    def advance(self, _):
        pass

    def note(self, _):
        pass

    def finish(self):
        self.notice("finish")

    def notice(self, what):
        self.said.append(what)
        if self.said == self.moment:
            self.act()


@pytest.mark.parametrize(
    ("moment", "error"),
    [(["start", "finish"], IncompleteError), (["start", "finish", "start"], ShardError)],
)
def test_an_object_that_is_replaced_meanwhile_is_an_error(bucket, items, tmp_path, moment, error):
    name = f"/{BUCKET}/data/c.jsonl"
    more = bucket.contents[name].data + b"\n"
    progress = Moments(moment, lambda: bucket.put(name, more))
    with pytest.raises(error, match=r"c\.jsonl"):
        clean([DATA], [items], tmp_path / "out", workers=1, progress=progress)
    assert not (tmp_path / "out").exists()
