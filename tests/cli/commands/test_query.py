"""`contam query`: calls, what they print and write, and their exit codes."""

import io
import json
import shutil
import sys

import pyarrow.parquet as pq
import pytest

from contam.cli.main import main
from contam.detect.report import load_report
from tests.detect.indexed.indexes import make
from tests.integration.inputs import ABSENT, corpus_of, write_items

QUOTED = "the slow brown lantern keeper counted seventeen copper kettles before the harbour froze"
OTHER = "nobody ever asked the glass blower why every marble violin in the orchard was hollow"
TEXTS = [[f"once {QUOTED} again", OTHER], ["plain words and nothing else", f"then {QUOTED}"]]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a corpus of two shards, items, and the index `mine` in the folder `home`."""
    folder = tmp_path_factory.mktemp("query")
    corpus_of(folder / "corpus", *TEXTS)
    write_items(folder / "items.jsonl", QUOTED, ABSENT)
    make(folder / "corpus", folder / "home" / "mine")
    return folder


@pytest.fixture
def call(capsys):
    """Run the command: (exit code, JSON or text on stdout, talk on stderr)."""

    def run(*arguments):
        code = main(["query", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in arguments and out else out, err

    return run


@pytest.fixture
def asked(home):
    return ("--index", home / "home" / "mine", "--benchmark", home / "items.jsonl")


def assert_refused(answer, *words, code=2):
    """Nothing on stdout, one error with a hint."""
    assert answer[:2] == (code, "")
    assert answer[2].startswith("error: ")
    for word in words:
        assert word in answer[2]


def places(facts):
    return [(document["shard"], document["row"]) for document in facts["documents"]]


def test_a_query_prints_and_writes_what_a_scan_does(home, asked, call, capsys, tmp_path):
    code, out, _ = call(*asked, "--out", tmp_path / "asked", "--policy", "contam,lmeval-13")
    assert code == 0
    scan = [
        "scan", "--corpus", home / "corpus", "--benchmark", home / "items.jsonl",
        "--out", tmp_path / "scanned", "--policy", "contam,lmeval-13",
    ]  # fmt: skip
    assert main([str(one) for one in scan]) == 0
    theirs = capsys.readouterr().out
    assert out.replace("asked", "scanned").splitlines() == theirs.splitlines()
    names = sorted(path.name for path in (tmp_path / "scanned").iterdir())
    assert sorted(path.name for path in (tmp_path / "asked").iterdir()) == names
    tables = [name for name in names if name.endswith(".parquet")]
    assert len(tables) >= 3
    for name in tables:
        mine, theirs = (pq.read_table(tmp_path / one / name) for one in ("asked", "scanned"))
        assert mine.equals(theirs), name
    run, other = (load_report(tmp_path / one).run for one in ("asked", "scanned"))
    assert run.keys() - {"index"} == other.keys()
    assert run["index"]["guarantee_tokens"] == 5


def test_a_text_is_answered_with_the_documents_that_share_it(home, call):
    code, out, err = call("--index", home / "home" / "mine", "--text", QUOTED)
    assert code == 0
    assert out.count("⟦") >= 4
    assert "part-0.parquet" in out
    assert "part-1.parquet" in out
    assert err == ""
    code, facts, _ = call("--index", home / "home" / "mine", "--text", QUOTED, "--json")
    assert code == 0
    assert sorted(places(facts)) == [("part-0.parquet", 0), ("part-1.parquet", 1)]
    assert facts["coverage"]["complete"] is True
    assert facts["index"]["guarantee_tokens"] == 5


def test_a_text_may_stand_in_a_file_or_come_on_stdin(home, call, tmp_path, monkeypatch):
    index = ("--index", home / "home" / "mine", "--json")
    _, expected, _ = call(*index, "--text", QUOTED)
    (tmp_path / "text.txt").write_text(QUOTED)
    assert call(*index, "--text-file", tmp_path / "text.txt")[:2] == (0, expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUOTED.encode() + b"\xff\n")))
    code, facts, _ = call(*index, "--text-file", "-")
    assert (code, places(facts)) == (0, places(expected))


def test_a_text_below_the_guarantee_is_answered_with_a_warning(home, call):
    code, out, _ = call("--index", home / "home" / "mine", "--text", "copper kettles")
    assert code == 0
    assert {"2", "5"} <= {*out.split()}
    code, facts, _ = call("--index", home / "home" / "mine", "--text", "copper kettles", "--json")
    assert (code, facts["documents"], facts["tokens"]) == (0, [], 2)


@pytest.mark.parametrize(
    "more",
    [
        ("--benchmark", "items.jsonl"),
        ("--out", "out"),
        ("--text-file", "other.txt"),
        ("--policy", "lmeval-13"),
        ("--fail-on-flagged",),
        ("--unit", "word"),
        ("--no-text",),
        ("--map", "question=x"),
        ("--name", "x"),
        ("--split", "x"),
    ],
)
def test_what_a_text_cannot_use_is_refused(home, call, more):
    answer = call("--index", home / "home" / "mine", "--text", QUOTED, *more)
    assert_refused(answer, more[0])


@pytest.mark.parametrize("text", ["", "...!"])
def test_a_text_without_a_word_is_refused(home, call, text):
    assert_refused(call("--index", home / "home" / "mine", "--text", text), "text")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--index", "x"), ("--benchmark", "--text")),
        (("--index", "x", "--benchmark", "b"), ("--out",)),
        (("--index", ",", "--text", "x"), ("--index",)),
        (("--text", "x"), ("--index",)),
        (("--index", "x", "--benchmark", "b", "--out", "o", "--policy", ","), ("--policy",)),
        (("--index", "x", "--benchmark", "b", "--out", "o", "--seed", "9"), ("--min-run",)),
        (("--index", "x", "--benchmark", "b", "--out", "o", "--workers", "0"), ("workers",)),
        (("--index", "x", "--benchmark", "b", "--out", "o", "--nonsense"), ("nonsense",)),
    ],
)
def test_bad_options_are_refused(call, arguments, words):
    assert_refused(call(*arguments), *words)


def test_a_bare_name_is_looked_up_in_the_home_of_indexes(home, call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    question = ("--index", "mine", "--text", QUOTED, "--json")
    monkeypatch.setenv("CONTAM_HOME", str(tmp_path))
    assert call(*question)[0] == 2
    assert call(*question, "--home", home / "home")[0] == 0
    monkeypatch.setenv("CONTAM_HOME", str(home / "home"))
    assert call(*question)[0] == 0


def test_shards_that_moved_are_found_with_corpus(home, call, tmp_path):
    shutil.copytree(home / "corpus", tmp_path / "here")
    index = make(tmp_path / "here", tmp_path / "index")
    shutil.move(tmp_path / "here", tmp_path / "there")
    question = ("--index", index, "--text", QUOTED, "--json")
    code, facts, err = call(*question)
    assert (code, facts["coverage"]["complete"]) == (4, False)
    assert "--allow-missing" in err
    assert call(*question, "--allow-missing")[0] == 0
    code, facts, err = call(*question, "--corpus", tmp_path / "there")
    assert (code, err, facts["coverage"]["complete"]) == (0, "", True)
    assert len(facts["documents"]) == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 4), (("--fail-on-flagged",), 4), (("--allow-missing",), 0),
     (("--allow-missing", "--fail-on-flagged"), 3)],
)  # fmt: skip
def test_a_shard_that_is_gone_is_named_and_decides_the_exit_code(
    home, call, tmp_path, options, code
):
    shutil.copytree(home / "corpus", tmp_path / "corpus")
    index = make(tmp_path / "corpus", tmp_path / "index")
    (tmp_path / "corpus" / "part-1.parquet").unlink()
    answer = call(
        "--index", index, "--benchmark", home / "items.jsonl", "--out", tmp_path / "out", *options
    )
    assert answer[0] == code
    assert "NOT READ part-1.parquet" in answer[1]
    verdicts = load_report(tmp_path / "out").verdicts.to_pylist()
    assert {row["item_id"]: row["label"] for row in verdicts} == {
        "q0": "contaminated", "q1": "clean" if "--allow-missing" in options else "not_checkable"
    }  # fmt: skip


def test_a_policy_that_the_index_cannot_answer_is_refused_and_nothing_written(
    asked, call, tmp_path
):
    answer = call(*asked, "--out", tmp_path / "out", "--policy", "contam,igmini-50", "--quiet")
    assert_refused(answer, "igmini-50", "chars", "contam scan")
    assert list(tmp_path.iterdir()) == []


def test_an_index_of_another_unit_is_refused(asked, call, tmp_path):
    assert_refused(call(*asked, "--out", tmp_path / "out", "--unit", "char", "-q"), "unit")


def test_a_finished_result_is_replaced_only_when_asked(asked, call, tmp_path):
    code, facts, _ = call(*asked, "--out", tmp_path / "out", "--json")
    assert code == facts["exit_code"] == 0
    assert [one["item_id"] for one in facts["flagged"]] == ["q0"]
    assert_refused(call(*asked, "--out", tmp_path / "out"), "--overwrite", code=1)
    assert call(*asked, "--out", tmp_path / "out", "--overwrite", "--fail-on-flagged")[0] == 3


def test_results_are_not_put_into_an_index(asked, call, home):
    inside = home / "home" / "mine" / "out"
    assert_refused(call(*asked, "--out", inside), str(inside))
    assert not inside.exists()


def test_results_are_not_put_beside_the_shards_that_were_indexed(asked, call, home):
    out = home / "corpus" / "out"
    answer = call(*asked, "--out", out)
    assert_refused(answer, str(home / "corpus"))
    assert not out.exists()


def test_texts_and_further_evidence_are_left_out_when_asked(asked, call, tmp_path):
    call(*asked, "--out", tmp_path / "out", "--no-text", "--max-evidence", "1", "-q")
    report = load_report(tmp_path / "out")
    assert report.evidence.num_rows == 1
    assert QUOTED not in str(report.items.to_pylist())


def test_what_the_index_may_have_missed_is_counted_under_the_table(home, call, tmp_path):
    short = "seven small words that nobody wrote yet"
    write_items(tmp_path / "items.jsonl", QUOTED, short)
    index = make(home / "corpus", tmp_path / "sampled", stride=4)
    where = ("--index", index, "--benchmark", tmp_path / "items.jsonl")
    code, shown, _ = call(*where, "--out", tmp_path / "out")
    assert code == 0
    (line,) = [line for line in shown.splitlines() if "contam scan" in line]
    assert line.startswith("1 verdict ")
    _, shown, _ = call(
        "--index", home / "home" / "mine", "--benchmark", home / "items.jsonl",
        "--out", tmp_path / "other",
    )  # fmt: skip
    assert "contam scan" not in shown
