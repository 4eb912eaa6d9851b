"""Plans, parts and results in a bucket: the bytes of a folder, or nothing that looks whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from contam.cli.main import main
from contam.detect.leases import cut
from contam.detect.leases.part_file import part_bytes
from contam.detect.leases.parts_folder import PARTS_FILE
from contam.detect.leases.plan_folder import PLAN_FILE, open_plan
from contam.detect.leases.work import failed_part, merge_parts, work_on
from contam.detect.report import FILES, load_report, write_report
from contam.errors import OutputError, UsageError
from contam.files import uploads
from contam.files.addresses import Address
from contam.files.uploads import names_below, upload
from tests.cli.processes import contam_here
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


def test_a_scan_is_planned_done_and_merged_in_a_bucket(store, folder, items, local, tmp_path):
    scanned = ("--corpus", folder, "--benchmark", items)
    done(contam_here("plan", *scanned, "--lease-size", "1k", "--out", f"{HOME}/plan", cwd=tmp_path))
    for worker in ("2/2", "1/2", "1/1"):
        done(contam_here("scan", "--plan", f"{HOME}/plan", "--shard", worker,
                         "--out", f"{HOME}/parts", cwd=tmp_path))  # fmt: skip
    merged = done(contam_here("merge", f"{HOME}/parts", "--out", f"{HOME}/result", cwd=tmp_path))
    assert f"results   {HOME}/result\n" in merged.stdout
    assert tables(below(store, "result")) == local[1]
    assert sorted(below(store, "result")) == sorted(FILES)
    done(contam_here("scan", *scanned, "--out", f"{HOME}/one", cwd=tmp_path))
    assert tables(below(store, "one")) == local[1]
    mine, other = (json.loads(below(store, name)["run.json"]) for name in ("result", "one"))
    assert mine | {"timings": 0} == other | {"timings": 0}
    shown = done(contam_here("show", f"{HOME}/result", "q0", "--json", cwd=tmp_path))
    assert json.loads(shown.stdout)["items"]
    count = done(contam_here("sql", f"{HOME}/result", "select count(*) n from verdicts"))
    assert "2" in count.stdout
    assert not list(tmp_path.iterdir())
    assert json.loads(below(store, "parts")[PARTS_FILE])["plan"] == f"{HOME}/plan"
    # Each writes over nothing, and repeats nothing.
    assert set(store.writes.values()) == {1}
    refused = contam_here("merge", f"{HOME}/parts", "--out", f"{HOME}/result", cwd=tmp_path)
    assert "already holds a finished result" in done(refused, 1).stderr
    done(contam_here("merge", f"{HOME}/parts", "--out", f"{HOME}/result", "--overwrite"))
    assert tables(below(store, "result")) == local[1]


def test_a_plan_is_fetched_and_leaves_nothing(store, plan, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    put(store, plan, "plan")
    opened = open_plan(f"{HOME}/plan", with_items=True)
    assert str(opened.folder) == f"{HOME}/plan"
    assert opened.question == open_plan(plan).question
    assert not list(tmp_path.iterdir())
    fetched = [request.path for request in store.requests if request.method == "GET"]
    assert any(path.endswith("views.bin") for path in fetched)


@pytest.mark.parametrize("spoil", ["cut", "flip", "gone", "named outside"])
def test_a_plan_that_is_not_as_written_is_refused(store, plan, spoil, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "in"))
    (tmp_path / "in").mkdir()
    put(store, plan, "plan")
    path = f"/{BUCKET}/plan/views.bin"
    data = store.contents[path].data
    if spoil == "gone":
        del store.contents[path]
    elif spoil == "named outside":
        record = json.loads((plan / PLAN_FILE).read_bytes())
        record["files"]["../x"] = record["files"]["views.bin"]
        store.put(f"/{BUCKET}/plan/{PLAN_FILE}", json.dumps(record).encode())
        store.put(f"/{BUCKET}/x", data)
    else:
        store.put(path, data[:-1] if spoil == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(OutputError, match=f"^{HOME}/plan/") as refused:
        open_plan(f"{HOME}/plan")
    assert "store" not in refused.value.hint
    assert not list((tmp_path / "in").iterdir())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in"]


@pytest.mark.usefixtures("store")
def test_a_plan_that_is_not_there_is_a_wrong_call(tmp_path):
    wrong = contam_here("scan", "--plan", f"{HOME}/none", "--out", tmp_path / "parts")
    done(wrong, 2)
    wrong = contam_here("merge", f"{HOME}/none", "--out", tmp_path / "out")
    done(wrong, 2)
    done(contam_here("show", f"{HOME}/none"), 2)


def test_workers_that_do_a_lease_twice_write_one_object(store, plan):
    opened = open_plan(plan)
    first = work_on(opened, opened.leases, f"{HOME}/parts", workers=1)
    before = below(store, "parts")
    assert len(before) == len(opened.leases) + 1
    assert work_on(opened, opened.leases, f"{HOME}/parts", workers=1).kept == first.done
    # Two that begin at once find nothing there.
    for name in (f"lease-{number:05d}." for number in (1, len(opened.leases))):
        (path,) = [path for path in store.contents if name in path]
        hidden = store.contents.pop(path)
        work_on(opened, opened.leases, f"{HOME}/parts", workers=2)
        assert store.contents[path].data == hidden.data
    assert below(store, "parts") == before


def test_two_answers_to_a_lease_are_refused_and_a_failed_one_is_not(store, plan, tmp_path):
    opened = open_plan(plan)
    work_on(opened, opened.leases, f"{HOME}/parts", workers=1)
    whole = open_plan(plan, with_items=True)
    failed = part_bytes(failed_part(opened, opened.leases[0], "lost 3 times"))
    (tmp_path / "failed").mkdir()
    shutil.copyfile(_saved(store, tmp_path), tmp_path / "failed" / PARTS_FILE)
    (tmp_path / "failed" / "lease-00001.part").write_bytes(failed)
    notes = []
    for folders in ([f"{HOME}/parts", tmp_path / "failed"], [tmp_path / "failed", f"{HOME}/parts"]):
        result = merge_parts(open_plan(plan, with_items=True), folders, progress=Notes(notes))
        assert result.complete
    assert len(notes) == 2
    assert all("lease-00001.part was passed over" in note for note in notes)
    assert not merge_parts(whole, [tmp_path / "failed"]).complete


def test_a_part_replaces_those_that_failed(store, plan):
    opened = open_plan(plan)
    work_on(opened, [], f"{HOME}/parts", workers=1)
    failed = part_bytes(failed_part(opened, opened.leases[0], "lost 3 times"))
    store.put(f"/{BUCKET}/parts/lease-00001.{'0' * 16}.part", failed)
    store.put(f"/{BUCKET}/parts/lease-00001.{'1' * 16}.part", failed[:9])
    work_on(opened, opened.leases[:1], f"{HOME}/parts", workers=1)
    assert len(below(store, "parts")) == 2


def test_a_part_whose_name_does_not_fit_its_content_is_damaged(store, plan):
    opened = open_plan(plan)
    work_on(opened, opened.leases, f"{HOME}/parts", workers=1)
    names = sorted(name for name in below(store, "parts") if name.endswith(".part"))
    data = below(store, "parts")
    store.put(f"/{BUCKET}/parts/{names[0]}", data[names[1]])
    with pytest.raises(OutputError, match=f"{names[0]}: is not whole"):
        merge_parts(open_plan(plan, with_items=True), [f"{HOME}/parts"])
    assert work_on(opened, opened.leases, f"{HOME}/parts", workers=1).done == (1,)
    assert below(store, "parts") == data


class Notes:
    """Keeps the notes of a run."""

    def __init__(self, notes):
        self.note = notes.append

    def start(self, _):
        """Nothing is shown."""

    def advance(self, _):
        """Nothing is shown."""

    def finish(self):
        """Nothing is shown."""


def _saved(store, home):
    path = home / "parts.json"
    path.write_bytes(below(store, "parts")[PARTS_FILE])
    return path


def test_a_store_that_is_only_read_is_refused(plan, folder, items, tmp_path):
    address = "https://example.org/out"
    for call in (
        ("scan", "--corpus", folder, "--benchmark", items),
        ("plan", "--corpus", folder, "--benchmark", items),
        ("scan", "--plan", plan),
    ):
        refused = contam_here(*call, "--out", address, cwd=tmp_path)
        assert "only read" in done(refused, 2).stderr
    with pytest.raises(UsageError, match="only read"):
        work_on(open_plan(plan), [], address, workers=1)
    assert not list(tmp_path.iterdir())


def test_results_do_not_go_where_others_are_or_into_the_corpus(bucket, items, local, tmp_path):
    inside = contam_here("scan", "--corpus", f"{HOME}/data", "--benchmark", items,
                         "--out", f"{HOME}/data/out", cwd=tmp_path)  # fmt: skip
    assert "inside the corpus" in done(inside, 2).stderr
    with pytest.raises(OutputError, match="not a contam result"):
        write_report(local[0], f"{HOME}/data")
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


def test_a_scan_whose_results_are_refused_is_resumed(
    store, folder, items, local, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(cut, "LEAST_BYTES", 1)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    fault = store.fail("403", method="PUT", times=None)
    call = ["scan", "--corpus", str(folder), "--benchmark", str(items), "--out", f"{HOME}/r"]
    assert main(call) == 1
    assert "the same call with --resume goes on" in capsys.readouterr().err
    store.faults.remove(fault)
    assert main([*call, "--resume"]) == 0
    assert "leases done before: " in capsys.readouterr().err
    assert tables(below(store, "r")) == local[1]
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_while_results_are_sent_says_what_is_there(monkeypatch, capsys, local, after):
    real = uploads._upload

    def interrupt(address, source):
        if address.name == "run.json" and not after:
            raise KeyboardInterrupt
        return real(address, source)

    def interrupt_later(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("contam.detect.scan.scan", lambda *_, **__: local[0])
    monkeypatch.setattr(uploads, "_upload", interrupt)
    monkeypatch.setattr("contam.cli.commands.scan.print_result", interrupt_later)
    assert main(["scan", "--corpus", "c", "--benchmark", "b", "--out", f"{HOME}/r", "-q"]) == 130
    state = "is written" if after else "is not finished: repeat the call with --overwrite"
    assert capsys.readouterr().err == f"interrupted: {HOME}/r {state}\n"


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
def test_a_part_that_cannot_be_written_is_a_lease_undone(store, plan, do):
    opened = open_plan(plan)
    fault = store.fail(do, method="PUT", key="lease-00002", times=None)
    with pytest.raises(OutputError, match="lease-00002"):
        work_on(opened, opened.leases, f"{HOME}/parts", workers=1)
    assert fault.seen
    assert len(below(store, "parts")) == 2
    assert merge_parts(open_plan(plan, with_items=True), [f"{HOME}/parts"]).exit_code() == 4
    store.faults.clear()
    assert work_on(opened, opened.leases, f"{HOME}/parts", workers=1).kept == (1,)


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


def test_a_local_path_stays_one(tmp_path, local):
    assert write_report(local[0], str(tmp_path / "out")) == Path(tmp_path / "out")


# ------------------------------------------------------------------------- groups of an index


@pytest.mark.slow
def test_an_index_is_planned_and_built_in_a_bucket(bucket, folder, tmp_path):
    home = f"{HOME}/index"
    for corpus, plan, parts in ((folder, tmp_path / "p", tmp_path / "g"),
                                (folder, f"{home}/plan", f"{home}/groups")):  # fmt: skip
        done(contam_here("index", "plan", "--corpus", corpus, "--out", plan))
        for worker in ("2/2", "1/2", "1/1"):
            built = done(contam_here("index", "build", "--plan", plan, "--shard", worker,
                                     "--out", parts))  # fmt: skip
        assert "there before" in built.stdout
        index = tmp_path / f"index-{plan == f'{home}/plan'}"
        done(contam_here("index", "merge", parts, "--plan", plan, "--index", index))
        done(contam_here("index", "verify", "--index", index))
    local, remote = ((tmp_path / f"index-{far}" / "segments") for far in (False, True))
    names = sorted(path.relative_to(local) for path in local.rglob("*") if path.is_file())
    assert names
    for name in names:
        assert (local / name).read_bytes() == (remote / name).read_bytes()
    refused = contam_here("index", "plan", "--corpus", folder, "--out", f"{home}/plan")
    assert "already exists" in done(refused, 1).stderr
    inside = contam_here("index", "plan", "--corpus", f"{HOME}/data", "--out", f"{HOME}/data/plan")
    assert "inside the corpus" in done(inside, 2).stderr
    segment = next(path for path in bucket.contents if path.endswith("/documents.parquet"))
    data = bucket.contents[segment].data
    for altered in (data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
        bucket.put(segment, altered)
        damaged = contam_here("index", "merge", f"{home}/groups", "--plan", f"{home}/plan",
                              "--index", tmp_path / "damaged")  # fmt: skip
        assert f"s3:/{segment}: is gone, or not as it was written" in done(damaged, 1).stderr
        assert not (tmp_path / "damaged" / "MANIFEST.json").exists()


@pytest.mark.slow
def test_a_group_that_cannot_be_written_is_not_built(bucket, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "1")
    plan = tmp_path / "plan"
    done(contam_here("index", "plan", "--corpus", folder, "--out", plan))
    fault = bucket.fail("503", method="PUT", key="/segments/", after=2, times=None)
    build = ("index", "build", "--plan", plan, "--out", f"{HOME}/groups")
    assert contam_here(*build).returncode == 1
    assert fault.seen > 2
    assert not any(path.endswith("group.json") for path in bucket.contents)
    merge = ("index", "merge", f"{HOME}/groups", "--plan", plan, "--index", tmp_path / "index")
    assert "was not built" in done(contam_here(*merge), 1).stderr
    bucket.faults.clear()
    done(contam_here(*build))
    done(contam_here(*merge))


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
