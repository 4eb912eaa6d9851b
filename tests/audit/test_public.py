"""A pack says nothing of the folder it was made in, so that its digest is the same anywhere."""

import datetime as dt
import json
import re
import shutil

import pyarrow.parquet as pq
import pytest

from contam.audit.pack import run_audit
from contam.audit.sample import AcceptSession, ReviewSession, answer, write_labels
from contam.audit.spec import AuditSpec, BenchmarkSpec, CorpusSpec, LogsSpec, load_spec, public
from contam.audit.verify import TIMES, files_of, verify_pack
from contam.detect.accepted import add_accepted
from contam.detect.show.reread import Library, sources_file
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.audit.conftest import FIXTURES, write_spec
from tests.rescore.logs.small import lm_eval

SPEC = """
[audit]
out = "{out}"
policies = ["contam", "lmeval-13"]
least = 1
permutations = 99
accept = "{base}accepted.csv"
labels = ["{base}labels.jsonl"]

[[corpus]]
name = "web"
paths = ["{base}corpus", "{base}more/corpus"]
allow_missing = true

[[corpus]]
name = "tuned"
index = ["{base}index"]

[[benchmark]]
paths = ["{base}items/brook_*.jsonl"]

[[benchmark]]
from_logs = true

[logs]
paths = ["{base}logs", "{base}more/logs"]
skip_damaged = true
allow_unmatched = true
"""
LATER = dt.date(2026, 1, 1)

FIRST, SECOND = "first-place", "another-one"


def world(folder):
    """Everything an audit can read: shards of one name, a broken one, an index, logs, reviews."""
    shards = sorted(path for path in (FIXTURES / "corpus").rglob("*") if path.is_file())
    for at, shard in enumerate(shards[:3]):
        target = folder / ("corpus", "more/corpus", "indexed")[at] / "part.parquet"
        target.parent.mkdir(parents=True)
        shutil.copy(shard, target)
    broken = folder / "corpus" / "broken.parquet"
    broken.write_bytes(shards[0].read_bytes()[:-200])
    build([folder / "indexed"], folder / "index", load_recipe("complete"), workers=1)
    (folder / "items").mkdir()
    shutil.copy(FIXTURES / "items" / "brook_math.jsonl", folder / "items")
    rows = map(json.loads, (FIXTURES / "items/lantern_quiz.jsonl").read_text("utf-8").splitlines())
    docs = [{"question": row["question"], "answer": row["answer"]} for row in rows][:20]
    lm_eval(folder / "logs" / "m", [1.0] * 20, docs=docs, task="lantern")
    lm_eval(folder / "more" / "logs", [0.0] * 20, docs=docs, task="lantern", model="org/other")
    lm_eval(folder / "logs" / "cut", [1.0] * 20, docs=docs, task="lantern")
    (cut,) = (folder / "logs" / "cut").rglob("samples_*.jsonl")
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / "labels.jsonl").write_text("")
    add_accepted(folder / "accepted.csv", [])


def audit(folder, where, *, out="pack"):
    """An audit of the world in `folder` by a file in `where`."""
    base = "" if where == folder else f"{folder}/"
    (where / "AUDIT.toml").write_text(SPEC.format(base=base, out=out))
    return run_audit(load_spec(where / "AUDIT.toml"), workers=1)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    first = tmp_path_factory.mktemp(FIRST)
    second = tmp_path_factory.mktemp("x") / "deeper" / SECOND
    world(first)
    # The same bytes elsewhere, with other times and inodes, and an index that was built there.
    world(second)
    read = audit(first, first, out="to-read").folder
    reading = ReviewSession.open(read, flagged=4, clean=4)
    session = AcceptSession.open(read, first / "accepted.csv", "contam", ["brook-001"])
    rows = list(session.rows(session.items[0], "old", "A", LATER))
    for place in (first, second):
        write_labels(place / "labels.jsonl", [answer(case, "A", True) for case in reading.cases])
        add_accepted(place / "accepted.csv", rows)
    return audit(first, first), audit(second, second, out="other/folder"), first, second


def texts(folder):
    """What every file of a pack says: its bytes, and the values of tables, which are compressed."""
    for name, path in files_of(folder):
        yield name, path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield name, json.dumps(pq.read_table(path).to_pylist(), default=str)


def test_the_digest_is_the_same_in_another_folder(packs):
    one, other, _, _ = packs
    files = [
        {name: path.read_bytes() for name, path in files_of(pack.folder) if name != TIMES}
        for pack in (one, other)
    ]
    assert [name for name in files[0] if files[0][name] != files[1].get(name)] == []
    assert one.digest == other.digest
    assert one.facts.logs_left_out
    assert not all(corpus.coverage["complete"] for corpus in one.facts.corpora)
    assert one.facts.review["n_labels"] > 3
    assert {row["state"] for row in one.facts.accepted} == {"accepted"}


def test_no_file_of_a_pack_names_the_folder_it_was_made_in(packs):
    one, other, first, second = packs
    for pack, place in ((one, first), (other, second)):
        for name, said in texts(pack.folder):
            assert str(place.parent) not in said, name
            assert place.name not in said, name


@pytest.mark.slow
def test_a_file_that_names_everything_by_whole_paths_publishes_last_names(packs, tmp_path):
    _, _, first, _ = packs
    done = audit(first, tmp_path)
    for name, said in texts(done.folder):
        assert str(first.parent) not in said, name
        assert FIRST not in said, name
    shards = [shard.name for shard in done.facts.corpora]
    assert shards == ["web", "tuned"]
    again = audit(first, first, out="pack-again")
    assert again.digest == packs[0].digest


def test_evidence_is_read_again_by_what_is_noted_beside_the_pack(packs, tmp_path):
    one, _, first, _ = packs
    found = verify_pack(one.folder, sample=10_000)
    assert found.holds
    assert (found.n_evidence > 20, found.n_unread) == (True, 0)
    noted = json.loads(sources_file(one.folder).read_bytes())
    assert noted == {
        "tuned": [f"{first}/indexed"],
        # Two shards of one name are called after the folders above.
        "web": [str(first), f"{first}/corpus"],
    }
    moved = tmp_path / "elsewhere"
    shutil.copytree(one.folder, moved)
    away = verify_pack(moved, sample=10_000)
    assert away.holds
    assert (away.n_evidence, away.digest) == (0, one.digest)
    assert away.n_unread == found.n_evidence
    assert all(str(sources_file(moved)) in reason for reason in away.unread)
    # Whoever has the corpora at another place says so.
    shutil.copytree(first / "corpus", tmp_path / "c" / "corpus")
    shutil.copytree(first / "more" / "corpus", tmp_path / "c" / "more" / "corpus")
    homes = {"web": [str(tmp_path / "c"), str(tmp_path / "c" / "corpus")], "tuned": []}
    sources_file(moved).write_text(json.dumps(homes))
    assert 0 < verify_pack(moved, sample=10_000).n_evidence < found.n_evidence


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("/x/base/items/a.jsonl", "items/a.jsonl"),
        ("cannot read /x/base/logs/m/cut.json: no end", "cannot read logs/m/cut.json: no end"),
        ("/data/items", "items (2)"),
        ("/data/items-2/a", "/data/items-2/a"),
        ("/data/items.zip", "/data/items.zip"),
        ("at '/data/items'.", "at 'items (2)'."),
        ("/mnt/data/items", "/mnt/data/items"),
        ("/data/web/part.parquet and /x/base", "web/part.parquet and /x/base"),
        ("/y/out.work/checks", "pack/checks"),
        ("1/2 of /x", "1/2 of /x"),
    ],
)
def test_a_text_names_what_an_audit_read(said, told):
    spec = AuditSpec(
        out="/y/out",
        corpora=(CorpusSpec(name="web", paths=("/data/web/*.parquet",)),),
        benchmarks=(BenchmarkSpec(paths=("/x/base/items", "/data/items")),),
        logs=LogsSpec(paths=("/x/base/logs",)),
        written={"/x/base/items": "items", "/x/base/logs": "logs"},
    )
    assert public(said, spec) == told


WORDS = 6


def runs(text):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)}


def test_no_run_of_an_items_words_is_in_any_file(pack, tmp_path):
    """Nor where stages of an audit that quoted items were there."""
    spec = load_spec(write_spec(tmp_path, audit="no_text = true"))
    secret = run_audit(spec, overwrite=True).folder
    assert secret == pack
    items = []
    for name in ("brook_math", "lantern_quiz"):
        for line in (FIXTURES / "items" / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            items.append(" ".join(str(row.get(part, "")) for part in ("passage", "question")))
    known = set().union(*map(runs, items))
    assert len(known) > 500
    leaking = []
    for name, path in files_of(secret):
        text = (
            json.dumps(pq.read_table(path).to_pylist(), default=str, ensure_ascii=False)
            if path.suffix == ".parquet"
            else path.read_text("utf-8", errors="replace")
        )
        leaking += [name] * bool(runs(text.replace("\\u003c", "<")) & known)
    assert leaking == []


def test_a_copy_that_is_called_as_a_gated_benchmark_is_gated_wherever_one_is(tmp_path, monkeypatch):
    path = write_spec(tmp_path)
    assert not load_spec(path).no_text
    path.write_text(path.read_text() + '[[benchmark]]\npaths = "gpqa"\n')
    (tmp_path / "gpqa").mkdir()
    for place in (tmp_path.parent, tmp_path):
        monkeypatch.chdir(place)
        spec = load_spec(path)
        assert spec.benchmarks[-1].paths == (str(tmp_path / "gpqa"),)
        assert spec.no_text


def test_a_corpus_of_token_ids_is_checked_and_its_tokenizer_named_without_its_place(tmp_path):
    tokens = tmp_path / "home" / "corpus"
    shutil.copytree(FIXTURES / "tokens" / "datatrove", tokens)
    shutil.copy(FIXTURES / "tokens" / "tokenizer.json", tmp_path / "home")
    (tmp_path / "home" / "AUDIT.toml").write_text(
        f"""
        [audit]
        out = "pack"
        least = 1
        permutations = 99
        [[corpus]]
        name = "tokens"
        paths = ["corpus"]
        tokenizer = "tokenizer.json"
        token_bytes = 2
        special = [1500, 1501]
        [[benchmark]]
        paths = ["{FIXTURES}/items/brook_math.jsonl"]
        """
    )
    folder = run_audit(load_spec(tmp_path / "home" / "AUDIT.toml"), workers=1).folder
    run = json.loads((folder / "checks" / "tokens" / "run.json").read_text())
    assert run["parameters"]["columns"]["tokenizer"] == "tokenizer.json"
    assert run["coverage"]["rows"] == 60
    for path in folder.rglob("*"):
        assert not path.is_file() or str(tmp_path).encode() not in path.read_bytes(), path
    library = Library(run, folder / "checks" / "tokens")
    (shard,) = run["inputs"]["shards"]
    library.fetch([(shard["name"], 0)])
    assert library.document((shard["name"], 0)).tokens.first == 0
