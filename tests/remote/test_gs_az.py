"""gs:// and az://: the bytes of a local scan, from servers of ours."""

import subprocess
import sys

import pytest

from contam.detect.report import load_report, write_report
from contam.errors import ConfigError, CorpusError, OutputError
from contam.files.addresses import Address
from contam.files.stores import names_below, store_of, upload
from contam.tables import object_stores
from tests.cli.processes import contam_here, environment
from tests.integration.inputs import labels
from tests.remote.azure import ACCOUNT, AzureHandler
from tests.remote.conftest import BUCKET, RESULTS, report
from tests.remote.server import running
from tests.remote.test_commands import done
from tests.waiting import HANG_S

#: The key that everybody's Azurite has.
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@pytest.fixture
def google(credentials, monkeypatch):
    """A Google Cloud Storage server of ours, in a process of its own."""
    del credentials
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.remote.gcs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", process.stdout.readline().strip())
        yield
    finally:
        process.stdin.close()
        process.wait(HANG_S)
        process.stdout.close()


@pytest.fixture
def azure(credentials, monkeypatch):
    """An Azure server of ours."""
    del credentials
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", AZURE_KEY)
    with running(AzureHandler) as store:
        monkeypatch.setenv("AZURE_STORAGE_SERVICE_ENDPOINT", store.url)
        yield store


def put_corpus(scheme, files):
    for name, data in files.items():
        upload(Address(f"{scheme}://{BUCKET}/data/{name}"), data)


def check_reading(scheme, items, local, tmp_path):
    """A scan of a prefix, and of a glob of it, reads what lies on disk."""
    home = f"{scheme}://{BUCKET}"
    result, tables = report([f"{home}/data"], items, tmp_path / "out")
    assert tables == local[1]
    assert result.coverage == local[0].coverage
    assert report([f"{home}/data/*", f"{home}/data/in/*"], items, tmp_path / "b")[1] == local[1]
    for none in (f"{home}/none", f"{home}/data/*.none"):
        with pytest.raises(CorpusError, match="no object"):
            report([none], items, tmp_path / "c")


def check_writing(scheme, folder, items, local):
    """Parts and results are written, replaced only on demand, and read back."""
    home = f"{scheme}://{BUCKET}"
    call = ("scan", "--corpus", folder, "--benchmark", items, "--parts", f"{home}/parts")
    done(contam_here(*call, "--shard", "1/1"))
    assert "there before" in done(contam_here(*call, "--shard", "1/1"))
    done(contam_here(*call, "--only-parts", "--out", f"{home}/out"))
    found = load_report(f"{home}/out")
    assert found.verdicts.equals(local[0].verdicts)
    with pytest.raises(OutputError, match="already holds a finished result"):
        write_report(local[0], f"{home}/out")
    write_report(local[0], f"{home}/out", overwrite=True)
    assert sorted(names_below(Address(f"{home}/out"))) == sorted((*RESULTS, "run.json"))
    large = bytes(range(256)) * (25 << 12)
    upload(Address(f"{home}/large/one"), large)
    one = Address(f"{home}/large/one")
    store_of(one).remove(one)
    assert names_below(Address(f"{home}/large")) == []
    assert names_below(Address(f"{home}/none")) == []


@pytest.mark.usefixtures("google")
def test_a_scan_of_google_storage_is_that_of_a_folder(files, folder, items, local, tmp_path):
    put_corpus("gs", files)
    check_reading("gs", items, local, tmp_path)
    check_writing("gs", folder, items, local)


def test_a_scan_of_azure_is_that_of_a_folder(azure, files, items, local, tmp_path):
    for name, data in files.items():
        azure.put(f"/{BUCKET}/data/{name}", data)
    check_reading("az", items, local, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("do", ["503", "reset", "reset body", "cut body"])
def test_an_azure_that_fails_for_a_while_changes_nothing(azure, do, files, items, local, tmp_path):
    for name, data in files.items():
        azure.put(f"/{BUCKET}/data/{name}", data)
    faults = [azure.fail(do, key=name) for name in ("a.parquet", "c.jsonl")]
    result, tables = report([f"az://{BUCKET}/data"], items, tmp_path / "out")
    assert all(fault.seen for fault in faults)
    assert result.coverage["shards_failed"] == []
    assert tables == local[1]


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["", "?"])
def test_a_token_of_azure_is_sent_and_never_told(azure, begin, files, items, tmp_path, monkeypatch):
    for name, data in files.items():
        azure.put(f"/{BUCKET}/data/{name}", data)
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"{begin}sv=2022-11-02&sig=SECRETOFATOKEN%3D")
    monkeypatch.setattr(object_stores, "_stores", {})
    result, _ = report([f"az://{BUCKET}/data"], items, tmp_path / "out")
    assert result.complete
    assert all(request.query["sig"] == "SECRETOFATOKEN=" for request in azure.requests)
    azure.fail("403", method="", times=None)
    with pytest.raises(CorpusError) as refused:
        report([f"az://{BUCKET}/data"], items, tmp_path / "none")
    assert "SECRETOFATOKEN" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AZURE_STORAGE_KEY", "no base64"),
        ("AZURE_STORAGE_SERVICE_ENDPOINT", "localhost:10000"),
        ("AZURE_STORAGE_SERVICE_ENDPOINT", "127.0.0.1:10000"),
    ],
)
@pytest.mark.usefixtures("azure")
def test_what_cannot_be_a_setting_of_azure_is_refused(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(object_stores, "_stores", {})
    with pytest.raises((OutputError, ConfigError)) as refused:
        names_below(Address(f"az://{BUCKET}/data"))
    assert refused.value.hint
    assert value not in str(refused.value)


def test_an_object_of_azure_that_is_replaced_was_not_read(azure, files, items, tmp_path):
    for name, data in files.items():
        azure.put(f"/{BUCKET}/data/{name}", data)
    path = f"/{BUCKET}/data/c.jsonl"
    # It is fetched once to be listed, and once to be searched.
    fault = azure.fail(lambda: azure.put(path, azure.contents[path].data), key="c.jsonl", after=1)
    result, _ = report([f"az://{BUCKET}/data"], items, tmp_path / "out")
    assert fault.seen > 1
    assert [failed["shard"] for failed in result.coverage["shards_failed"]] == ["c.jsonl"]
    assert "clean" not in labels(result).values()


# ------------------------------------------------------------- servers that are not ours
