"""The same questions to every kind of index, to the scan and to brute force: all must agree.

An *asker* takes benchmark and policies and gives a result. Those that are indexes differ in how they
came about; what they index is the golden corpus, without the one document that is retired.
"""

import json
import runpy
from collections import defaultdict
from dataclasses import replace

import pytest

import contam
from contam.detect.query import query
from contam.index.change import add, compact, retire
from contam.index.manifest import read_manifest
from contam.index.verify import verify
from tests.index.builds import build
from tests.property.worlds import write_shard

POLICIES = ("contam", "gpt3-test", "openr1-8")
#: These judge by runs of at least 8 words alone: the index vouches for all that they look at.
GUARANTEED = ("gpt3-test", "openr1-8")
RETIRED = "part-1/4"


@pytest.fixture(scope="module")
def golden(repository):
    return repository / "indexes" / "golden" / "v4-word-5"


@pytest.fixture(scope="module")
def home(golden, tmp_path_factory):
    """Indexes of the golden corpus, one of every kind."""
    home = tmp_path_factory.mktemp("protocol")
    corpus, recipe = golden / "corpus", read_manifest(golden / "index").recipe
    assert recipe.minhash
    build(corpus, home / "one", recipe)
    build(corpus, home / "many", recipe, memory=1500)
    build(corpus, home / "compacted", recipe, memory=1500)
    build([corpus / "part-2.jsonl"], home / "added", recipe)
    add(home / "added", corpus)
    build(corpus, home / "returned", recipe)
    retire(home / "returned", shards=["part-0.parquet"])
    add(home / "returned", corpus / "part-0.parquet", again=True)
    build(corpus, home / "returned and compacted", recipe)
    retire(home / "returned and compacted", shards=["part-0.parquet"])
    add(home / "returned and compacted", corpus / "part-0.parquet", again=True)
    build([corpus / "part-0.parquet", corpus / "part-2.jsonl"], home / "left", recipe)
    build([corpus / "part-1.parquet"], home / "right", replace(recipe, key_bits=41))
    for name in ("one", "many", "compacted", "added", "returned", "returned and compacted"):
        retire(home / name, documents=[RETIRED])
    retire(home / "right", documents=[RETIRED])
    compact(home / "compacted")
    compact(home / "returned and compacted")
    assert len(read_manifest(home / "many").segments) > 2
    assert len(read_manifest(home / "compacted").segments) == 1
    assert len(read_manifest(home / "returned and compacted").segments) == 1
    assert len(read_manifest(home / "returned").shards) == 4
    return home


INDEXES = {
    "one segment": ["one"],
    "many segments": ["many"],
    "compacted": ["compacted"],
    "added": ["added"],
    "retired and added again": ["returned"],
    "retired, added again and compacted": ["returned and compacted"],
    "two at once": ["left", "right"],
    "two at once, the other way round": ["right", "left"],
    "golden": None,
}


@pytest.fixture(scope="module")
def answers(home, golden):
    """What every asker says."""
    items, corpus = golden / "items.jsonl", golden / "corpus"
    found = {}
    for asker, names in INDEXES.items():
        paths = [golden / "index"] if names is None else [home / name for name in names]
        found[asker] = query(paths, items, corpus=corpus, policies=POLICIES)
    found["scan"] = scan_without_the_retired(home, golden)
    return found


def scan_without_the_retired(home, golden):
    """The scan of the same corpus, the retired document's text taken out of its row."""
    maker = runpy.run_path(str(golden.parent / "make_golden.py"))
    folder = home / "corpus"
    maker["write_corpus"](folder)
    texts = maker["documents"]()[1]
    texts[int(RETIRED.partition("/")[2])] = None
    write_shard(folder / "part-1.parquet", texts, ids=[f"part-1/{n}" for n in range(len(texts))])
    return contam.scan(folder, golden / "items.jsonl", policies=POLICIES)


def verdicts(result, policies=POLICIES):
    """Every verdict as a dict, dates left out: the scan's copy of the corpus has none in a shard."""
    rows = [verdict.to_dict() for verdict in result if verdict.policy in policies]
    return [{key: value for key, value in row.items() if "date" not in key} for row in rows]


def evidence(result):
    """Rows of evidence by item and document."""
    found = defaultdict(list)
    for row in result.evidence.to_pylist():
        row.pop("date")
        found[row["item_id"], row["document_id"]].append(row)
    return dict(found)


@pytest.fixture(scope="module")
def shared(golden):
    """Pairs that share a run of eight words, by brute force, without the retired document."""
    truth = json.loads((golden / "truth.json").read_text(encoding="utf-8"))
    return {(item, doc): n for item, doc, n in truth["shared"] if doc not in truth["retired"]}


@pytest.mark.parametrize("asker", [*INDEXES, "scan"])
def test_all_shared_runs_are_evidence(answers, shared, asker):
    found = evidence(answers[asker])
    assert set(shared) <= set(found)
    assert not [pair for pair in found if pair[1] == RETIRED]
    for pair, longest in shared.items():
        assert max(row["n_tokens"] for row in found[pair]) >= longest


@pytest.mark.parametrize("asker", INDEXES)
def test_evidence_of_every_shared_run_is_the_scans(answers, shared, asker):
    found, expected = evidence(answers[asker]), evidence(answers["scan"])
    for pair in shared:
        assert found[pair] == expected[pair]
    # What is found by a shorter run, or by MinHash alone, is aligned as the scan aligns it.
    for pair, rows in found.items():
        assert [{**row, "similarity": None} for row in rows] == expected[pair]


@pytest.mark.parametrize("asker", INDEXES)
def test_copies_without_a_sampled_gram_are_found_and_marked(answers, golden, asker):
    near = json.loads((golden / "truth.json").read_text(encoding="utf-8"))["near"]
    found = evidence(answers[asker])
    marked = {pair for pair, rows in found.items() if rows[0]["similarity"] is not None}
    assert marked == set(map(tuple, near))
    assert all(0.75 < row["similarity"] < 0.9 for pair in marked for row in found[pair])


@pytest.mark.parametrize("asker", INDEXES)
def test_verdicts_of_what_the_index_guarantees_are_the_scans(answers, asker):
    assert verdicts(answers[asker], GUARANTEED) == verdicts(answers["scan"], GUARANTEED)


@pytest.mark.parametrize("asker", INDEXES)
def test_no_verdict_is_clean_where_the_scan_flags(answers, asker):
    scan = {(v.item_id, v.policy): v.label for v in answers["scan"]}
    for verdict in answers[asker]:
        if verdict.label == "clean":
            assert scan[verdict.item_id, verdict.policy] == "clean"


@pytest.mark.parametrize("asker", INDEXES)
def test_all_indexes_say_the_same(answers, asker):
    one = answers["one segment"]
    assert verdicts(answers[asker]) == verdicts(one)
    assert evidence(answers[asker]) == evidence(one)
    assert answers[asker].coverage["rows"] == one.coverage["rows"]
    assert answers[asker].complete


@pytest.mark.parametrize("asker", INDEXES)
def test_an_answer_says_what_it_rests_on(answers, asker):
    run = answers[asker].run["index"]
    assert run["guarantee_tokens"] == 8
    assert len(run["ids"]) == (2 if "two" in asker else 1)
    assert run["capped"]["grams"] == 0


def test_every_index_is_sound(home):
    for name in {name for names in INDEXES.values() if names for name in names}:
        report = verify(home / name)
        assert report.ok, report.findings
