"""Which addresses are taken, and what is never repeated of them."""

import gzip
from pathlib import Path

import pytest

from contam.benchmark.paths import expanded
from contam.benchmark.read_files import read_benchmarks
from contam.corpus.shards import survey
from contam.errors import BenchmarkError, CorpusError, LogError, UsageError
from contam.files.addresses import checked, refuse_address
from contam.files.publish import publishing
from contam.files.single import write_file
from contam.index.build import build
from tests.cli.processes import contam_here
from tests.corpus_files import WRITERS
from tests.remote.conftest import BUCKET

SECRET = "wJalrXUtnFEMIsecret"  # noqa: S105 - of nobody
WITH_SECRETS = [
    f"s3://AKIDX:{SECRET}@bucket/data",
    f"s3://AKIDX:{SECRET}/with/slashes@bucket/data",
    f"gs://{SECRET}@bucket/data",
    f"az://account:{SECRET}@container/data",
    f"hf://user:{SECRET}@datasets/owner/name",
    f"https://user:{SECRET}@example.org/a.parquet",
    f"https://{SECRET}@example.org/a.parquet",
    f"https://b.example.org/a.parquet?X-Amz-Credential=AKIDX&X-Amz-Signature={SECRET}",
    f"https://b.example.org/a.parquet?sig={SECRET}",
    f"https://b.example.org/a.parquet?token={SECRET}",
    f"https://b.example.org/a.parquet?download={SECRET}",
    f"s3://bucket/a.parquet?AWSAccessKeyId=AKIDX&Signature={SECRET}",
]


@pytest.mark.parametrize("text", WITH_SECRETS)
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_with_a_secret_is_refused_and_not_repeated(text, kind):
    with pytest.raises(UsageError, match="credentials") as refused:
        survey([kind(text)])
    assert refused.value.exit_code == 2
    assert SECRET not in str(refused.value) + refused.value.hint
    assert "AKIDX" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["ftp://host/a", "http://host/a.parquet", "file:///a", "s3a://b/c", "S3://b/c"]
)
def test_other_schemes_are_refused(text):
    with pytest.raises(UsageError, match="is not read"):
        checked(text)


@pytest.mark.parametrize("text", ["s3://", "s3:///a", "s3://b//c", "s3://b/./c", "s3://b/a/."])
def test_a_key_that_paths_have_no_name_for_is_refused(text):
    with pytest.raises(UsageError):
        checked(text)


def _refusals(tmp_path):
    address = f"s3://{BUCKET}/out"
    yield lambda: publishing(address, names=("a",), last="a").__enter__()
    yield lambda: publishing(Path(address), names=("a",), last="a").__enter__()
    yield lambda: write_file(Path(address), b"")
    yield lambda: build(tmp_path, address)
    yield lambda: list(expanded([address], "log", LogError))
    yield lambda: refuse_address(address, "this")


@pytest.mark.parametrize("number", range(6))
def test_where_a_path_is_needed_an_address_is_refused(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="must be a path of this machine") as refused:
        list(_refusals(tmp_path))[number]()
    assert refused.value.exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--index", "--out"])
def test_the_command_refuses_files_and_indexes_in_a_store(option, folder, bench_fixtures, tmp_path):
    logs = bench_fixtures / "logs"
    call = {
        "--index": ("index", "build", "--corpus", folder, "--index", "s3://b/out"),
        "--out": ("items", "--from-logs", logs, "--out", "s3://b/out"),
    }[option]
    done = contam_here(*call, cwd=tmp_path)
    assert done.returncode == 2
    assert "must be a path of this machine" in done.stderr
    assert "hint: " in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", WITH_SECRETS[::4])
@pytest.mark.parametrize("option", ["--corpus", "--benchmark", "--out"])
def test_the_command_repeats_no_secret(text, option, folder, items, tmp_path):
    given = {"--corpus": folder, "--benchmark": items, "--out": "out", option: text}
    named = [each for pair in given.items() for each in pair]
    done = contam_here("scan", *named, cwd=tmp_path)
    assert done.returncode == 2
    assert SECRET not in done.stderr + done.stdout
    assert not list(tmp_path.iterdir())


ROWS = [{"question": f"How many {n} are in the box?", "answer": str(n)} for n in range(5)]
FILES = {
    "jsonl": WRITERS["jsonl"](ROWS),
    "jsonl.gz": gzip.compress(WRITERS["jsonl"](ROWS)),
    "csv": WRITERS["csv"](ROWS),
    "parquet": WRITERS["parquet"](ROWS),
    "arrow": WRITERS["arrow"](ROWS),
}


def questions(benchmarks):
    return [(item.item_id, item.question) for each in benchmarks for item in each.items]


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_in_a_bucket_is_its_copy(s3, suffix, tmp_path):
    (tmp_path / f"boxes_test.{suffix}").write_bytes(FILES[suffix])
    s3.put(f"/{BUCKET}/items/boxes_test.{suffix}", FILES[suffix])
    local = read_benchmarks([tmp_path])
    for named in (
        f"s3://{BUCKET}/items",
        f"s3://{BUCKET}/items/*",
        f"s3://{BUCKET}/items/boxes_test.{suffix}",
    ):
        remote = read_benchmarks([named])
        assert [each.name for each in remote] == [each.name for each in local] == ["boxes"]
        assert questions(remote) == questions(local)
        (source,), (copy,) = remote[0].sources, local[0].sources
        assert source.path == f"s3://{BUCKET}/items/boxes_test.{suffix}"
        assert (source.sha256, source.n_rows) == (copy.sha256, copy.n_rows)


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_replaced_while_it_is_read_is_refused(s3, suffix):
    path = f"/{BUCKET}/items/boxes.{suffix}"
    s3.put(path, FILES[suffix])
    # What a table is, and that it is no pointer, is asked before.
    after = 1 if suffix in ("parquet", "arrow") else 0
    s3.fail(lambda: s3.put(path, FILES[suffix]), key="boxes", method="GET", after=after)
    with pytest.raises(BenchmarkError, match="replaced"):
        read_benchmarks([f"s3://{BUCKET}/items"])


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_that_its_store_does_not_give_is_refused(s3, suffix):
    s3.put(f"/{BUCKET}/items/boxes.{suffix}", FILES[suffix])
    s3.fail("403", key="boxes", method="GET", times=None)
    with pytest.raises(CorpusError, match=r"the store answered .* no other object"):
        read_benchmarks([f"s3://{BUCKET}/items"])


def test_a_folder_without_items_is_refused(s3):
    s3.put(f"/{BUCKET}/items/readme.md", b"# none")
    with pytest.raises(BenchmarkError, match="no benchmark files"):
        read_benchmarks([f"s3://{BUCKET}/items"])
    with pytest.raises(BenchmarkError, match="no object is there"):
        read_benchmarks([f"s3://{BUCKET}/none"])
