"""`contam index`: calls, what they print, and their exit codes."""

import json

import pytest

from contam.cli.main import main
from contam.cli.options import parse_size
from contam.errors import UsageError
from tests.integration.inputs import corpus_of, write_parquet

TEXTS = [f"row {n}: five words and then some, number {n} of many lines" for n in range(20)]


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path / "corpus", TEXTS[:12], TEXTS[12:])


def call(capsys, *arguments):
    """(exit code, JSON or text on stdout, talk on stderr)."""
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if "--json" in arguments else out, err


def build(capsys, corpus, index, *more):
    return call(
        capsys, "index", "build", "--corpus", corpus, "--index", index, "--recipe", "compact",
        "--quiet", *more,
    )  # fmt: skip


def test_a_build_says_what_it_made(corpus, tmp_path, capsys):
    code, out, _ = build(capsys, corpus, tmp_path / "ix")
    assert code == 0
    assert "compact: every run of 13 words is found" in out
    assert "read 2 of 2 shards, 20 documents" in out
    again, shown, _ = call(capsys, "index", "show", "--index", tmp_path / "ix")
    assert (again, shown) == (0, out)


def test_the_figures_come_as_json(corpus, tmp_path, capsys):
    code, facts, _ = build(capsys, corpus, tmp_path / "ix", "--json")
    assert code == facts["exit_code"] == 0
    assert (facts["guarantee_tokens"], facts["n_documents"]) == (13, 20)
    assert facts["coverage"]["complete"] is True


def test_a_shard_that_cannot_be_read_is_named_with_exit_code_4(corpus, tmp_path, capsys):
    bad = corpus / "part-0.parquet"
    good = bad.read_bytes()
    bad.write_bytes(good[:300])
    code, out, err = build(capsys, corpus, tmp_path / "ix")
    assert code == 4
    assert "NOT READ part-0.parquet" in out
    assert "contam index add" in err
    bad.write_bytes(good)
    options = ("--corpus", corpus, "--index", tmp_path / "ix")
    code, out, err = call(capsys, "index", "add", *options)
    assert code == 0
    assert "read 2 of 2 shards" in out
    assert "indexed already: part-1.parquet" in err


def test_retired_shards_and_documents_are_counted_and_compacted_away(corpus, tmp_path, capsys):
    build(capsys, corpus, tmp_path / "ix")
    code, out, _ = call(
        capsys, "index", "retire", "--index", tmp_path / "ix", "--shard", "part-1.parquet",
        "--document", "part-0.parquet-1", "part-0.parquet-2",
    )  # fmt: skip
    assert code == 0
    assert "retired    1 shard, 2 documents" in out
    code, out, _ = call(capsys, "index", "compact", "--index", tmp_path / "ix")
    assert code == 0
    assert "read 1 of 1 shard" in out


def test_an_index_is_verified(corpus, tmp_path, capsys):
    build(capsys, corpus, tmp_path / "ix")
    call_ = ("index", "verify", "--index", tmp_path / "ix")
    code, out, _ = call(capsys, *call_)
    assert code == 0
    assert "WRONG" not in out
    write_parquet(corpus / "part-1.parquet", TEXTS[:3])
    code, out, _ = call(capsys, *call_)
    assert code == 4
    wrong = f"WRONG {corpus / 'part-1.parquet'}: its content has changed since it was indexed"
    assert wrong in out.splitlines()
    (postings,) = (tmp_path / "ix").rglob("grams_documents.npy")
    raw = bytearray(postings.read_bytes())
    raw[-1] ^= 1
    postings.write_bytes(raw)
    code, facts, _ = call(capsys, *call_, "--json")
    assert code == 1
    assert facts["ok"] is False
    code, out, _ = call(capsys, *call_)
    assert code == 1
    assert f"WRONG {postings}: " in out
    assert out.count(str(postings)) == 1


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("2GB", 2_000_000_000),
        ("1.5g", 1_500_000_000),
        ("500 MB", 500_000_000),
        ("70000000", 70_000_000),
        ("1TiB", 10**12),
    ],
)
def test_a_size_is_read_as_people_write_it(text, n_bytes):
    assert parse_size(text, "--memory") == n_bytes


@pytest.mark.parametrize("text", ["", "much", "-2GB", "2 G B", "2XB", "0", "0.4", "0.0001k"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="--memory"):
        parse_size(text, "--memory")


def test_shares_make_the_index_of_one_build(corpus, tmp_path, capsys):
    for share, done in (("1/2", (1, 0)), ("2/2", (0, 0)), ("1/1", (0, 1))):
        code, found, _ = build(capsys, corpus, tmp_path / "all", "--shard", share, "--json")
        assert (code, found["not_read"]) == (0, [])
        assert (found["groups"], found["done"], found["kept"]) == (1, *done)
    made = [build(capsys, corpus, tmp_path / name)[1] for name in ("all", "one")]
    assert made[0].replace("/all ", "/one ") == made[1]
    manifests = [(tmp_path / name / "MANIFEST.json").read_bytes() for name in ("all", "one")]
    assert manifests[0] == manifests[1]
    assert not (tmp_path / "all" / "parts").exists()


@pytest.mark.parametrize(
    "more",
    [
        "--index ./o",
        "--corpus {corpus}",
        "--corpus {corpus} --index {o} --shard 3/2",
        "--corpus {corpus} --index {o} --out x",
        "--corpus {corpus} --index {corpus}/o --shard 1/2",
        "--corpus {corpus} --index {o} --memory 1 --shard 1/2",
    ],
)
def test_a_wrong_call_of_a_build_says_so(corpus, tmp_path, more):
    given = more.format(corpus=corpus, o=tmp_path / "o")
    assert main(["index", "build", *given.split()]) == 2
    assert not (tmp_path / "o").exists()
