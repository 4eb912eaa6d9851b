"""Plans, parts and results in a data set of the Hub: one commit each, or nothing of it."""

from __future__ import annotations

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from huggingface_hub.utils import are_progress_bars_disabled

from contam.detect.leases.part_file import part_bytes
from contam.detect.leases.parts_folder import PARTS_FILE
from contam.detect.leases.plan_folder import PLAN_FILE, open_plan
from contam.detect.leases.work import failed_part, merge_parts, work_on
from contam.detect.report import FILES, load_report, write_report
from contam.errors import OutputError, UsageError
from contam.files.addresses import Address
from contam.files.single import read_file
from contam.files.stores import store_of
from contam.files.uploads import names_below, upload, writable
from tests.cli.processes import command, contam_here, environment
from tests.remote.conftest import RESULTS
from tests.remote.hub import COMMITS, HERE, NAME, READ_ONLY, TOKEN, heads, push
from tests.waiting import wait_until

#: `huggingface_hub` calls its HTTP library in a way that this gives up.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


def below(store, prefix):
    """What lies below a folder of the branch `main`, by name."""
    begin = f"/{NAME}/{heads(store, NAME)['main']}/{prefix}/"
    return {
        path.removeprefix(begin): content.data
        for path, content in store.contents.items()
        if path.startswith(begin)
    }


def tables(found):
    return {name: found[name] for name in RESULTS}


def done(finished, code=0):
    assert finished.returncode == code, finished.stderr
    assert TOKEN not in finished.stdout + finished.stderr
    return finished


def test_a_scan_is_planned_done_and_merged_in_a_data_set(endpoint, items, local, tmp_path):
    scanned = ("--corpus", f"{HERE}/data", "--benchmark", items)
    done(contam_here("plan", *scanned, "--lease-size", "1k", "--out", f"{HERE}/out/plan"))
    n_planned = len(below(endpoint, "out/plan"))
    assert endpoint.messages == [f"contam: {PLAN_FILE} and {n_planned - 1} more"]
    for worker in ("2/2", "1/2", "1/1"):
        done(contam_here("scan", "--plan", f"{HERE}/out/plan", "--shard", worker,
                         "--out", f"{HERE}/out/parts", cwd=tmp_path))  # fmt: skip
    parts = below(endpoint, "out/parts")
    assert sorted(endpoint.messages[1:]) == sorted(f"contam: {name}" for name in parts)
    assert json.loads(parts[PARTS_FILE])["plan"] == f"{HERE}/out/plan"
    merge = ("merge", f"{HERE}/out/parts", "--out", f"{HERE}/out/result")
    assert f"results   {HERE}/out/result\n" in done(contam_here(*merge, cwd=tmp_path)).stdout
    result = below(endpoint, "out/result")
    assert tables(result) == local[1]
    assert sorted(result) == sorted(FILES)
    assert TOKEN.encode() not in b"".join(result.values())
    assert len(endpoint.messages) == 1 + len(parts) + 1
    assert "already holds a finished result" in done(contam_here(*merge), 1).stderr
    done(contam_here("scan", *scanned, "--out", f"{HERE}/out/one", cwd=tmp_path))
    assert tables(below(endpoint, "out/one")) == local[1]
    shown = done(contam_here("show", f"{HERE}/out/result", "q0", "--json", cwd=tmp_path))
    assert json.loads(shown.stdout)["items"]
    assert not list(tmp_path.iterdir())


def test_a_result_is_replaced_by_one_commit_and_read_anew(endpoint, local):
    push(endpoint, NAME, {"out/run.json": b"{}", "out/evidence.parquet": b"old"})
    with pytest.raises(OutputError, match="already holds a finished result"):
        write_report(local[0], f"{HERE}/out")
    n_before = len(endpoint.messages)
    for _ in range(2):
        write_report(local[0], f"{HERE}/out", overwrite=True)
        assert tables(below(endpoint, "out")) == local[1]
        assert load_report(f"{HERE}/out").verdicts.equals(local[0].verdicts)
    # The second wrote what was there.
    assert len(endpoint.messages) == n_before + 1
    push(endpoint, NAME, {"out/verdicts.parquet": b"of another"})
    with pytest.raises(OutputError, match=r"verdicts\.parquet"):
        load_report(f"{HERE}/out")


@pytest.mark.usefixtures("endpoint")
def test_what_was_written_is_read_anew():
    file = Address(f"{HERE}/out/file.json")
    stamps = set()
    for data in (b"{}", b"[]", b"[1, 2]"):
        upload(file, data)
        assert read_file(file) == data
        stamps.add(store_of(file).state(file).stamp)
    assert len(stamps) == 3


def test_what_is_written_goes_to_its_branch(endpoint, local):
    endpoint.names[f"{NAME}@kept/here"] = COMMITS["main"]
    write_report(local[0], f"{HERE}@kept%2Fhere/out")
    assert below(endpoint, "out") == {}
    assert names_below(Address(f"{HERE}@kept%2Fhere/out")) == sorted(FILES)


def test_what_a_data_set_ignores_is_written_all_the_same(endpoint, local):
    push(endpoint, NAME, {".gitignore": b"*.parquet\n*.json\n"})
    write_report(local[0], f"{HERE}/out")
    assert tables(below(endpoint, "out")) == local[1]


@pytest.mark.parametrize(
    ("at", "error", "said"),
    [
        (f"@{COMMITS['main']}/out", UsageError, "on no branch"),
        ("@v2/out", UsageError, "on no branch"),
        ("@refs%2Fpr%2F1/out", UsageError, "on no branch"),
        ("@none/out", UsageError, "on no branch"),
        ("-none/out", OutputError, "no such data set, or not for these credentials"),
        ("/.git/out", UsageError, "keeps folders of that name for itself"),
    ],
)
def test_only_branches_of_data_sets_that_are_there_are_written_to(
    endpoint, at, error, said, folder, items
):
    with pytest.raises(error, match=said):
        writable(f"{HERE}{at}")
    scan = ("scan", "--corpus", folder, "--benchmark", items, "--out", f"{HERE}{at}")
    assert said in done(contam_here(*scan), 2 if error is UsageError else 1).stderr
    assert endpoint.messages == []


@pytest.mark.parametrize("token", ["", f"hf_{READ_ONLY}"])
def test_who_may_not_write_is_told_so_before_anything_is_read(
    endpoint, token, folder, items, monkeypatch, tmp_path
):
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    refused = contam_here("scan", "--corpus", folder, "--benchmark", items, "--out", f"{HERE}/out")
    done(refused, 1)
    assert "not for these credentials" in refused.stderr
    assert "HF_TOKEN" in refused.stderr
    assert "hf repos create datasets/OWNER/NAME" in refused.stderr
    assert token not in refused.stderr or not token
    assert endpoint.messages == []


def test_results_do_not_go_where_others_are_or_into_the_corpus(endpoint, items, local):
    inside = contam_here("scan", "--corpus", f"{HERE}/data", "--benchmark", items,
                         "--out", f"{HERE}/data/out")  # fmt: skip
    assert "inside the corpus" in done(inside, 2).stderr
    for home in (HERE, f"{HERE}/data"):
        with pytest.raises(OutputError, match="not a contam result"):
            write_report(local[0], home)
    assert endpoint.messages == []


# ------------------------------------------------------------------------- parts and plans


def test_workers_at_once_each_add_their_parts(endpoint, plan, local):
    opened = open_plan(plan)
    halves = opened.leases[::2], opened.leases[1::2]
    with ThreadPoolExecutor() as threads:
        list(threads.map(
            lambda leases: work_on(opened, leases, f"{HERE}/parts", workers=1), halves
        ))  # fmt: skip
    before = below(endpoint, "parts")
    assert len(before) == len(opened.leases) + 1
    assert len(endpoint.messages) == len(before)
    result = merge_parts(open_plan(plan, with_items=True), [f"{HERE}/parts"])
    assert result.verdicts.equals(local[0].verdicts)
    # Doing a lease twice is no second commit.
    name = next(name for name in before if name.startswith("lease-00001."))
    push(endpoint, NAME, {f"parts/{name}": None})
    again = work_on(opened, opened.leases, f"{HERE}/parts", workers=1)
    assert again.done == (1,)
    upload(Address(f"{HERE}/parts/{name}"), before[name])
    assert below(endpoint, "parts") == before
    assert len(endpoint.messages) == len(before) + 2


def test_a_part_replaces_those_that_failed_in_its_commit(endpoint, plan):
    opened = open_plan(plan)
    work_on(opened, [], f"{HERE}/parts", workers=1)
    failed = part_bytes(failed_part(opened, opened.leases[0], "lost 3 times"))
    push(endpoint, NAME, {
        f"parts/lease-00001.{'0' * 16}.part": failed, f"parts/lease-00001.{'1' * 16}.part": b"cut",
    })  # fmt: skip
    work_on(opened, opened.leases[:1], f"{HERE}/parts", workers=1)
    assert len(below(endpoint, "parts")) == 2
    assert len(endpoint.messages) == 3


def test_a_plan_of_the_hub_is_the_one_that_was_written(endpoint, plan):
    files = {f"plan/{path.name}": path.read_bytes() for path in plan.iterdir()}
    push(endpoint, NAME, files)
    assert open_plan(f"{HERE}/plan").question == open_plan(plan).question
    push(endpoint, NAME, {"plan/views.bin": files["plan/views.bin"][:-1]})
    with pytest.raises(OutputError):
        open_plan(f"{HERE}/plan")
    push(endpoint, NAME, {f"plan/{PLAN_FILE}": None})
    with pytest.raises(OutputError, match="no finished plan"):
        open_plan(f"{HERE}/plan")


@pytest.mark.slow
def test_an_index_is_planned_and_built_in_a_data_set(endpoint, folder, tmp_path):
    for plan, parts in ((tmp_path / "p", tmp_path / "g"), (f"{HERE}/plan", f"{HERE}/groups")):
        done(contam_here("index", "plan", "--corpus", folder, "--out", plan))
        for _ in range(2):
            built = done(contam_here("index", "build", "--plan", plan, "--out", parts))
        assert "there before" in built.stdout
        index = tmp_path / f"index-{plan == f'{HERE}/plan'}"
        done(contam_here("index", "merge", parts, "--plan", plan, "--index", index))
        done(contam_here("index", "verify", "--index", index))
    local, remote = (tmp_path / f"index-{far}" / "segments" for far in (False, True))
    names = sorted(path.relative_to(local) for path in local.rglob("*") if path.is_file())
    assert names
    for name in names:
        assert (local / name).read_bytes() == (remote / name).read_bytes()
    assert len(endpoint.messages) == 2
    refused = contam_here("index", "plan", "--corpus", folder, "--out", f"{HERE}/plan")
    assert "already exists" in done(refused, 1).stderr


# ------------------------------------------------------------------------- a Hub that fails


@pytest.mark.parametrize("do", ["500", "503", "429", "reset", "403", "reset body", "cut body"])
def test_a_commit_that_fails_once_is_made_once(endpoint, do, local):
    fault = endpoint.fail(do, method="POST", key="/commit/")
    write_report(local[0], f"{HERE}/out")
    # Where the answer alone was lost, what is there is what was to be written.
    assert fault.seen == (1 if do.endswith("body") else 2)
    assert len(endpoint.messages) == 1
    assert tables(below(endpoint, "out")) == local[1]


@pytest.mark.slow
@pytest.mark.parametrize("do", ["500", "503", "reset", "403", "cut body"])
@pytest.mark.parametrize("key", ["/preupload/", "/objects/batch", "/storage/", "/verify", "/refs"])
def test_a_fault_that_passes_changes_nothing(endpoint, do, key, local, caplog, capfd):
    if do == "403" and key in {"/preupload/", "/refs"}:
        pytest.skip("who may not write is told at once")
    fault = endpoint.fail(do, method="", key=key)
    write_report(local[0], f"{HERE}/out")
    assert fault.seen > 1
    assert tables(below(endpoint, "out")) == local[1]
    # The library says where it asks again, and the Hub signs where files are sent to.
    said = "".join(capfd.readouterr()) + caplog.text
    assert "of-the-hub" not in said
    assert TOKEN not in said


@pytest.mark.parametrize("do", ["503", "429", "403", "reset"])
def test_a_commit_that_fails_for_ever_leaves_what_was_there(endpoint, do, local):
    write_report(local[0], f"{HERE}/out")
    push(endpoint, NAME, {"out/evidence.parquet": None})
    before = below(endpoint, "out")
    endpoint.fail(do, method="POST", key="/commit/", times=None)
    with pytest.raises(OutputError) as failed:
        write_report(local[0], f"{HERE}/out", overwrite=True)
    assert str(failed.value).startswith(f"{HERE}/out: ")
    assert TOKEN not in str(failed.value)
    assert below(endpoint, "out") == before
    endpoint.faults.clear()
    write_report(local[0], f"{HERE}/out", overwrite=True)
    assert tables(below(endpoint, "out")) == local[1]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["/preupload/", "/objects/batch", "/storage/", "/verify", "/refs"])
def test_an_upload_that_fails_for_ever_leaves_nothing(endpoint, key, local, monkeypatch):
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "1")
    endpoint.fail("stall" if key == "/refs" else "503", method="", key=key, times=None)
    with pytest.raises(OutputError, match="did not answer"):
        write_report(local[0], f"{HERE}/out")
    assert endpoint.messages == []


def test_a_commit_elsewhere_in_between_is_no_hindrance(endpoint, local):
    endpoint.fail(lambda: push(endpoint, NAME, {"other.txt": b"!"}), method="POST", key="/commit/")
    write_report(local[0], f"{HERE}/out")
    assert tables(below(endpoint, "out")) == local[1]
    assert len(endpoint.messages) == 2
    endpoint.fail(lambda: push(endpoint, NAME, {"n.txt": str(len(endpoint.messages)).encode()}),
                  method="POST", key="/commit/", times=None)  # fmt: skip
    with pytest.raises(OutputError, match="others write to the data set at the same time"):
        write_report(local[0], f"{HERE}/again")
    assert below(endpoint, "again") == {}


def test_the_library_draws_no_bars_meanwhile(endpoint, monkeypatch):
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    seen = []
    endpoint.fail(lambda: seen.append(are_progress_bars_disabled()), method="POST", key="/commit/")
    upload(Address(f"{HERE}/out/file.bin"), b"\0")
    assert [*seen, are_progress_bars_disabled()] == [True, False]


def test_a_commit_that_lacks_a_file_is_an_error(endpoint, local):
    def lose():
        del endpoint.contents[f"/{NAME}/{heads(endpoint, NAME)['main']}/out/items.parquet"]

    endpoint.fail(lose, method="POST", key="/paths-info/", after=1)
    with pytest.raises(OutputError, match="does not hold what it was sent"):
        write_report(local[0], f"{HERE}/out")


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_results_at_once_one_is_there_whole(endpoint, local, overwrite):
    other = {f"out/{name}": b"of another" for name in FILES}
    endpoint.fail(lambda: push(endpoint, NAME, other), method="POST", key="/commit/")
    if overwrite:
        write_report(local[0], f"{HERE}/out", overwrite=True)
        assert tables(below(endpoint, "out")) == local[1]
    else:
        with pytest.raises(OutputError, match="already holds a finished result"):
            write_report(local[0], f"{HERE}/out")
        assert {f"out/{name}": data for name, data in below(endpoint, "out").items()} == other


@pytest.mark.slow
def test_a_run_that_is_killed_before_its_commit_leaves_nothing(endpoint, folder, items, tmp_path):
    fault = endpoint.fail("stall", method="POST", key="/commit/")
    scan = command("scan", "--corpus", folder, "--benchmark", items, "--out", f"{HERE}/out")
    with subprocess.Popen(
        scan, cwd=tmp_path, env=environment(CONTAM_STORE_TIMEOUT="100"), stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: fault.seen)
        process.send_signal(signal.SIGKILL)
    assert endpoint.messages == []
    assert names_below(Address(f"{HERE}/out")) == []
    assert any(path.startswith("/storage/") for path in endpoint.contents)
    done(contam_here("scan", "--corpus", folder, "--benchmark", items, "--out", f"{HERE}/out"))
    assert sorted(below(endpoint, "out")) == sorted(FILES)
