"""Shards that are left out on purpose: never searched, and never passed over in silence."""

import json

import pytest

import contam
from contam.corpus.shards import is_excluded
from contam.detect.report import load_report
from contam.errors import CorpusError, UsageError
from contam.index.build import build
from contam.index.change import add
from contam.index.manifest import read_manifest
from contam.index.open import Index
from contam.index.shards import describe
from tests.cli.processes import assert_one_line_error, contam_here

SENTENCE = "Which of the nine brass lanterns did the old ferry keeper polish before the {} fair"
PLACES = ("web/a-0.jsonl", "web/a-1.jsonl", "web/dev/b-0.jsonl", "books/a-0.jsonl")


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.jsonl"
    items = [{"id": name, "question": SENTENCE.format(name)} for name in (*PLACES, "nowhere")]
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


@pytest.fixture
def corpus(tmp_path):
    return write(tmp_path / "corpus", PLACES)


def write(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        row = {"text": f"{SENTENCE.format(name)}. Nothing else is said of it.", "id": name}
        (folder / name).write_text(json.dumps(row) + "\n")
    return folder


PATTERNS = [
    (["web/a-0.jsonl"], {"web/a-0.jsonl"}),
    (["a-0.jsonl"], {"web/a-0.jsonl", "books/a-0.jsonl"}),
    (["*/a-?.jsonl"], {"web/a-0.jsonl", "web/a-1.jsonl", "books/a-0.jsonl"}),
    (["web"], {"web/a-0.jsonl", "web/a-1.jsonl", "web/dev/b-0.jsonl"}),
    (["web/dev"], {"web/dev/b-0.jsonl"}),
    (["*dev*"], {"web/dev/b-0.jsonl"}),
    (["books", "b-*"], {"books/a-0.jsonl", "web/dev/b-0.jsonl"}),
    (["[a]-1*"], {"web/a-1.jsonl"}),
]


@pytest.mark.parametrize(("patterns", "gone"), PATTERNS, ids=range(len(PATTERNS)))
def test_what_is_excluded_is_said_and_nothing_else_changes(tmp_path, corpus, bench, patterns, gone):
    found = contam.scan(corpus, bench, exclude=patterns)
    assert set(found.coverage["shards_excluded"]) == gone
    assert found.coverage["shards_expected"] == len(PLACES) - len(gone)
    assert found.complete
    assert found.run["parameters"]["exclude"] == tuple(patterns)
    (note,) = (note for note in found.run["notes"] if "excluded on purpose" in note)
    assert all(name in note for name in gone)
    rest = [name for name in PLACES if name not in gone]
    alone = contam.scan(write(tmp_path / "rest", rest), bench)
    assert found.verdicts.equals(alone.verdicts)
    assert found.evidence.equals(alone.evidence)
    assert "shards_excluded" not in alone.coverage
    build(corpus, tmp_path / "index", exclude=patterns, workers=1)
    asked = contam.query(tmp_path / "index", bench)
    # An index does not note which column each document was read from.
    for coverage in (asked.coverage, found.coverage):
        del coverage["columns"], coverage["by_shard"]
    assert asked.coverage == found.coverage
    assert asked.run["notes"] == found.run["notes"]
    assert asked.evidence.equals(found.evidence)
    for mine, theirs in zip(asked, found, strict=True):
        assert (mine.item_id, mine.label) == (theirs.item_id, theirs.label)


def test_an_index_does_not_miss_what_it_excludes(tmp_path, corpus, bench):
    index = tmp_path / "index"
    build(corpus, index, exclude=["dev"], workers=1)
    assert describe(Index.open(index))["not_indexed"] == []
    write(corpus, ["web/dev/b-1.jsonl"])
    assert describe(Index.open(index))["not_indexed"] == []
    write(corpus, ["web/a-2.jsonl"])
    assert describe(Index.open(index))["not_indexed"] == ["web/a-2.jsonl"]
    add(index, corpus, workers=1)
    manifest = read_manifest(index)
    assert [record.name for record in manifest.shards][-1] == "web/a-2.jsonl"
    assert manifest.excluded == ("web/dev/b-0.jsonl", "web/dev/b-1.jsonl")
    write(corpus, ["books/new-0.jsonl", "books/new-1.jsonl"])
    add(index, corpus, exclude=["new-0*"], workers=1)
    manifest = read_manifest(index)
    assert manifest.exclude == ("dev", "new-0*")
    asked = contam.query(index, bench)
    assert asked.coverage["shards_excluded"] == [
        "books/new-0.jsonl", "web/dev/b-0.jsonl", "web/dev/b-1.jsonl",
    ]  # fmt: skip
    assert asked.complete
    with pytest.raises(UsageError, match="a-1"):
        add(index, corpus, exclude=["a-1*"], workers=1)
    assert read_manifest(index) == manifest


@pytest.mark.parametrize("pattern", ["nothing", "A-0*", "", "web/"])
def test_a_pattern_that_fits_no_shard_is_refused(tmp_path, corpus, bench, pattern):
    for call in (
        lambda: contam.scan(corpus, bench, exclude=[pattern]),
        lambda: build(corpus, tmp_path / "index", exclude=["web", pattern], workers=1),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "web/a-0.jsonl" in caught.value.message
    assert not (tmp_path / "index").exists()


def test_nothing_left_is_no_clean_corpus(tmp_path, corpus, bench):
    with pytest.raises(CorpusError):
        contam.scan(corpus, bench, exclude=["*"])
    with pytest.raises(CorpusError):
        build(corpus, tmp_path / "index", exclude=["web", "books"], workers=1)


def test_an_excluded_shard_is_not_opened(corpus, bench):
    (corpus / "web/a-0.jsonl").write_bytes(b"\x00" * 100)
    assert not contam.scan(corpus, bench).complete
    assert contam.scan(corpus, bench, exclude=["web/a-0*"]).complete


def test_two_indexes_say_what_neither_of_them_has(tmp_path, corpus, bench):
    build(corpus, tmp_path / "one", exclude=["web", "dev"], workers=1)
    build(corpus / "web", tmp_path / "two", exclude=["dev"], workers=1)
    asked = contam.query([tmp_path / "one", tmp_path / "two"], bench)
    assert "web/dev/b-0.jsonl" in asked.coverage["shards_excluded"]


def test_the_command_line_says_so_and_the_record_keeps_it(tmp_path, corpus, bench):
    asked = ("--corpus", corpus, "--benchmark", bench)
    done = contam_here("scan", *asked, "--out", tmp_path / "out", "--exclude", "dev", "a-1*")
    assert done.returncode == 0, done.stderr
    line = "EXCLUDED on purpose 2 shards: web/a-1.jsonl, web/dev/b-0.jsonl"
    assert line in done.stdout.splitlines()
    report = load_report(tmp_path / "out")
    assert report.run["parameters"]["exclude"] == ["dev", "a-1*"]
    assert "web/dev/b-0.jsonl" in report._repr_html_()
    index = ("--index", tmp_path / "index")
    built = contam_here("index", "build", "--corpus", corpus, *index, "--exclude", "dev", "a-1*")
    assert built.returncode == 0, built.stderr
    assert line in built.stdout
    assert line in contam_here("index", "show", *index).stdout
    queried = contam_here("query", *index, "--benchmark", bench, "--out", tmp_path / "asked")
    assert line in queried.stdout.splitlines()
    refused = contam_here("scan", *asked, "--out", tmp_path / "no", "--exclude", "nothing")
    assert_one_line_error(refused, 2, "nothing")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("a/b/c.jsonl", "a/b", True),
        ("a/b/c.jsonl", "b", True),
        ("a/b/c.jsonl", "b/c.jsonl", False),
        ("a/b/c.jsonl", "*/b", True),
        ("a/b/c.jsonl", "c.jsonl", True),
        ("a/b/c.jsonl", "C.jsonl", False),
        ("a/b/c.jsonl", "a*", True),
        ("a[1].jsonl", "a[[]1].jsonl", True),
        ("x/a.jsonl", "/a.jsonl", False),
    ],
)
def test_patterns(name, pattern, fits):
    assert is_excluded(name, [pattern]) is fits


@pytest.mark.usefixtures("corpus", "bench")
def test_an_audit_says_what_each_corpus_left_out(tmp_path):
    from contam.audit.facts import read_facts
    from contam.audit.pack import run_audit
    from contam.audit.spec import load_spec

    (tmp_path / "AUDIT.toml").write_text(
        '[audit]\ntitle = "Left out"\nout = "pack"\n'
        '[[corpus]]\nname = "web"\npaths = ["corpus/web"]\nexclude = ["dev"]\nid_column = "id"\n'
        '[[corpus]]\nname = "books"\npaths = ["corpus/books"]\n'
        '[[benchmark]]\npaths = ["bench.jsonl"]\nname = "bench"\n'
    )
    pack = run_audit(load_spec(tmp_path / "AUDIT.toml")).folder
    facts = read_facts(pack / "report.json")
    assert facts.coverage["shards_excluded"] == ["web/dev/b-0.jsonl"]
    for name in ("report.html", "report.md"):
        assert "excluded on purpose" in (pack / name).read_text("utf-8")
