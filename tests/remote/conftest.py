"""A corpus of every format in a folder and in a bucket, and servers for it."""

import gzip
import ssl
import subprocess

import pytest
import zstandard

from contam.detect.report import write_report
from contam.detect.scan import scan
from contam.files import hub, web
from contam.tables import object_stores
from tests.corpus_files import WRITERS
from tests.integration.inputs import ABSENT, FILLER, QUESTION, write_items
from tests.remote.hub import NAME, TOKEN, HubHandler, put_data_set
from tests.remote.s3 import S3Handler, put_folder
from tests.remote.server import running

KEY_ID, SECRET = "AKIDOFATEST", "secret+of/a+test"
BUCKET = "corpora"
RESULTS = ("verdicts.parquet", "evidence.parquet", "items.parquet")
N_ROWS = 7


def rows_of(number):
    """Documents of a shard; the last but one holds the question."""
    return [
        {
            "id": f"<doc:{number}-{row}>",
            "url": f"https://example.org/{number}/{row}",
            "date": f"2024-01-0{row + 1}T00:00:00Z",
            "language": "eng",
            "text": f"{row} {QUESTION if row == N_ROWS - 2 else FILLER} {number}",
        }
        for row in range(N_ROWS)
    ]


def corpus_files():
    """Shards of every format, and some packed, by their names."""
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
    names = ["a.parquet", "b.arrow", "c.jsonl", "d.csv", "e.tsv", "f.warc",
             "in/g.jsonl.gz", "in/h.jsonl.zst", "in/i.warc.gz"]  # fmt: skip
    found = {}
    for number, name in enumerate(names):
        kind = name.split(".")[1]
        packed = f".{name.rsplit('.', 1)[1]}" if name.count(".") > 1 else ""
        found[name] = pack[packed](WRITERS[kind](rows_of(number)))
    return found


@pytest.fixture(scope="session")
def files():
    return corpus_files()


@pytest.fixture(scope="session")
def folder(files, tmp_path_factory):
    """The corpus as a folder."""
    home = tmp_path_factory.mktemp("corpus")
    for name, data in files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(data)
    return home


@pytest.fixture(scope="session")
def items(tmp_path_factory):
    return write_items(tmp_path_factory.mktemp("items") / "items.jsonl", QUESTION, ABSENT)


def report(corpus, items, out, **options):
    """The result of a scan, and the bytes of its tables."""
    result = scan(corpus, items, workers=1, **options)
    write_report(result, out)
    return result, {name: (out / name).read_bytes() for name in RESULTS}


@pytest.fixture(scope="session")
def local(folder, items, tmp_path_factory):
    """What a scan of the folder answers."""
    return report([folder], items, tmp_path_factory.mktemp("out") / "local")


@pytest.fixture
def credentials(monkeypatch):
    """Keys of nobody, and little patience."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("CONTAM_STORE_ATTEMPTS", "3")
    monkeypatch.setenv("CONTAM_STORE_TIMEOUT", "1")
    # Each test has a server of its own.
    monkeypatch.setattr(object_stores, "_stores", {})


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    home = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", home / "key.pem", "-out", home / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return home / "certificate.pem", home / "key.pem"


def forget_connections():
    """What was begun before trusts other certificates."""
    web._client().close()
    web.renew_connections()


@pytest.fixture
def certified(credentials, certificate, monkeypatch):
    """What lets a server of a test speak TLS."""
    del credentials
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    forget_connections()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    yield context
    forget_connections()


@pytest.fixture
def s3(monkeypatch, credentials):
    """An S3 server with no object."""
    del credentials
    with running(S3Handler) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        yield store


@pytest.fixture
def bucket(s3, files):
    """The server with the corpus below `data/`."""
    put_folder(s3, BUCKET, {f"data/{name}": data for name, data in files.items()})
    return s3


@pytest.fixture
def endpoint(credentials, monkeypatch, files):
    """An endpoint of the Hub with the corpus below `data/` of a data set."""
    del credentials
    # Else `hf_xet`, where it is installed, sends files by itself.
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    # The library reads its environment once.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(hub, "_stores", {})
    with running(HubHandler) as store:
        monkeypatch.setenv("HF_ENDPOINT", store.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        put_data_set(store, NAME, {f"data/{name}": data for name, data in files.items()})
        yield store
