"""A cleaned corpus has nothing left of the items, and everything else of the corpus."""

import hashlib
import json
import os
import stat

import pyarrow.parquet as pq
import pytest

import contam
from contam.cleaning.work_folder import WorkFolder
from contam.errors import ContamError, IncompleteError, OutputError, UsageError
from tests.cleaning.inputs import (
    N_PLANTED,
    N_ROWS,
    PLANTED,
    question,
    rows_of,
    text_of,
    tree,
    write_corpus,
)
from tests.cli.processes import contam_here


def removed_rows(out):
    """shard -> rows of its table, by row."""
    tables = sorted((out / "removed").rglob("*.parquet"))
    rows = [row for table in tables for row in pq.read_table(table).to_pylist()]
    found = {}
    for row in rows:
        found.setdefault(row["shard"], {})[row["row"]] = row
    return found


@pytest.fixture(scope="module")
def cleaned(corpus, items, tmp_path_factory):
    """action -> the folder of its result and the record."""
    home = tmp_path_factory.mktemp("cleaned")
    found = {}
    for action in ("drop", "mask", "cut", "list"):
        done = contam.clean(
            corpus, items, home / action, action=action, keep_removed=True, workers=2
        )
        assert done.folder == home / action
        found[action] = home / action, done.record
    assert sorted(path.name for path in home.iterdir()) == ["cut", "drop", "list", "mask"]
    return found


@pytest.mark.parametrize("action", ["drop", "mask", "cut"])
def test_nothing_is_left_and_all_else_is_as_it_was(corpus, items, cleaned, action):
    out, record = cleaned[action]
    after = contam.scan(out / "corpus", items)
    assert (after.n_flagged, after.complete) == (0, True)
    gone = removed_rows(out)
    assert {shard: set(rows) for shard, rows in gone.items()} == {
        shard: set(planted) for shard, planted in PLANTED.items() if planted
    }
    for shard in PLANTED:
        old, new = rows_of(corpus / shard), rows_of(out / "corpus" / shard)
        here = gone.get(shard, {})
        if action == "drop":
            assert new == [row for number, row in enumerate(old) if number not in here]
            continue
        assert len(new) == N_ROWS
        for number, (mine, theirs) in enumerate(zip(old, new, strict=True)):
            if number not in here:
                assert mine == theirs
                continue
            text, at = "", 0
            for span in here[number]["spans"]:
                text += text_of(mine)[at : span["start"]] + ("[...]" if action == "mask" else "")
                at = span["end"]
            assert text_of(theirs) == text + text_of(mine)[at:]
            same = mine.keys() - {"text", "messages"}
            assert {name: mine[name] for name in same} == {name: theirs[name] for name in same}
    untouched = "more/nothing.parquet"
    assert (out / "corpus" / untouched).read_bytes() == (corpus / untouched).read_bytes()
    assert record["proof"]["documents_left"] == 0
    dropped = N_PLANTED if action == "drop" else 0
    assert record["documents"] == {
        "before": len(PLANTED) * N_ROWS,
        "found": N_PLANTED,
        "share": round(N_PLANTED / (len(PLANTED) * N_ROWS), 9),
        "dropped": dropped,
        "edited": N_PLANTED - dropped,
        "after": len(PLANTED) * N_ROWS - dropped,
    }
    assert record["proof"]["rows_same"] == len(PLANTED) * N_ROWS - N_PLANTED


def test_the_record_has_the_digest_of_every_file(corpus, cleaned):
    for action, (out, record) in cleaned.items():
        assert json.loads((out / "clean.json").read_text()) == json.loads(json.dumps(record))
        for shard in record["shards"]:
            files = {
                "in": corpus / shard["name"],
                "corpus": out / "corpus" / shard["name"],
                "removed": out / "removed" / f"{shard['name']}.parquet",
            }
            for kind, path in files.items():
                if shard[kind] is None:
                    assert not path.exists()
                else:
                    raw = path.read_bytes()
                    digest = hashlib.sha256(raw).hexdigest()
                    assert shard[kind] == {"bytes": len(raw), "sha256": digest}, (action, path)
        umask = os.umask(0)
        os.umask(umask)
        assert {stat.S_IMODE(p.stat().st_mode) for p in out.rglob("*") if p.is_file()} == {
            0o666 & ~umask
        }
        assert {path.stat().st_nlink for path in out.rglob("*") if path.is_file()} == {1}


@pytest.mark.parametrize("action", ["drop", "mask", "cut", "list"])
def test_what_was_removed_holds_every_item_that_was_found(items, cleaned, action):
    out, record = cleaned[action]
    again = contam.scan(out / "removed", items)
    found = {(verdict.benchmark, verdict.item_id) for verdict in again.flagged()}
    rows = [row for rows in removed_rows(out).values() for row in rows.values()]
    named = {(item["benchmark"], item["item_id"]) for row in rows for item in row["items"]}
    assert found == named
    assert len(rows) == N_PLANTED
    assert {tuple(row["policy"]) for row in rows} == {("contam",)}
    assert {row["action"] for row in rows} == {action}
    by = {one["benchmark"]: one for one in record["removed"]["by_benchmark"]}
    assert {name: (one["items"], one["documents"]) for name, one in by.items()} == {
        "orchard": (4, 7), "harbour": (2, 3),
    }  # fmt: skip
    assert sum(one["documents"] for one in record["removed"]["by_source"]) == N_PLANTED


@pytest.mark.parametrize("action", ["drop", "mask"])
def test_what_was_removed_is_no_corpus_to_who_names_the_whole_folder(items, cleaned, action):
    out, record = cleaned[action]
    after = contam.scan(out, items)
    assert (after.n_flagged, after.complete) == (0, True)
    assert {shard["name"] for shard in after.run["inputs"]["shards"]} == {
        f"corpus/{shard['name']}" for shard in record["shards"]
    }
    assert any("part of a cleaned corpus of contam" in note for note in after.run["notes"])


def test_a_list_writes_no_corpus(cleaned):
    out, record = cleaned["list"]
    assert sorted(path.name for path in out.iterdir()) == ["clean.json", "removed"]
    assert record["proof"] == {}
    row = removed_rows(out)["a.parquet"][61]
    assert row["document_id"] == "a-61"
    assert [item["item_id"] for item in row["items"]] == ["h0", "o0"]
    assert question("orchard", 0)[:-1] in row["text"]


def test_the_result_does_not_depend_on_the_workers(corpus, items, cleaned, tmp_path):
    for action, workers in (("drop", 1), ("mask", 5)):
        out, _ = cleaned[action]
        contam.clean(
            corpus, items, tmp_path / action, action=action, keep_removed=True, workers=workers
        )
        assert tree(tmp_path / action) == tree(out)


def test_texts_stay_out_of_the_result_unless_they_are_asked_for(corpus, items, tmp_path):
    contam.clean(corpus, items, tmp_path / "out", action="list")
    table = pq.read_table(tmp_path / "out" / "removed" / "a.parquet.parquet")
    assert "text" not in table.column_names


@pytest.mark.parametrize(
    ("options", "n_found"),
    [
        ({"exposures": "question+answer"}, N_PLANTED),
        ({"exposures": ["passage_only"]}, 0),
        ({"labels": "suspect"}, 0),
        ({"weights": {"harbour": 0}}, N_PLANTED - 2),
        ({"weights": {"harbour": 0.5, "orchard": 0.5}}, 1),
        ({"policies": ["gpt3-test", "contam"]}, N_PLANTED),
        ({"exclude": "more"}, 6),
    ],
)
def test_options_say_which_documents_go(corpus, items, tmp_path, options, n_found):
    done = contam.clean(corpus, items, tmp_path / "out", action="list", **options)
    assert done.record["documents"]["found"] == n_found


def test_too_many_documents_stop_a_run_that_goes_on_later(corpus, items, cleaned, tmp_path):
    call = (
        "clean", "--corpus", corpus, "--benchmark", *items, "--out", tmp_path / "out",
        "--keep-removed", "--json",
    )  # fmt: skip
    done = contam_here(*call, "--most", "1%")
    assert (done.returncode, (tmp_path / "out").exists()) == (3, False)
    assert json.loads(done.stdout)["documents"]["found"] == N_PLANTED
    (kept,) = tmp_path.iterdir()
    assert kept.name in done.stderr
    done = contam_here(*call, "--most", str(N_PLANTED))
    assert done.returncode == 0, done.stderr
    mine, theirs = tree(tmp_path / "out"), tree(cleaned["drop"][0])
    del mine["clean.json"], theirs["clean.json"]
    assert mine == theirs
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert contam_here(*call).returncode == 1
    assert contam_here(*call, "--overwrite").returncode == 0


def test_a_run_killed_right_after_it_published_has_nothing_left_to_do(
    corpus, items, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "discard", lambda _: None)
        done = contam.clean(corpus, items, out, action="list")
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(OutputError):
        contam.clean(corpus, items, out, action="drop")
    again = contam.clean(corpus, items, out, action="list")
    assert again.record["timings"] == done.record["timings"]
    assert list(tmp_path.iterdir()) == [out]


def test_places_where_a_result_would_be_read_as_corpus_or_replace_it(corpus, items, tmp_path):
    folder = write_corpus(tmp_path / "in" / "corpus")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for out in (folder, folder / "out", tmp_path / "in", link / "out", "s3://bucket/out"):
        with pytest.raises((UsageError, OutputError)):
            contam.clean(folder, items, out)
    with pytest.raises(UsageError):
        contam.clean(f"{folder}/**/*.jsonl", items, folder / "out")
    assert tree(folder) == tree(corpus)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "more").symlink_to(folder)
    with pytest.raises(UsageError, match="would lie in the corpus"):
        contam.clean(linked, items, folder / "out")


def test_a_shard_that_cannot_be_read_is_an_error(items, tmp_path):
    folder = write_corpus(tmp_path / "corpus")
    (folder / "b.jsonl").write_text('{"text": "whole"}\n{"text": "cut')
    with pytest.raises(IncompleteError, match=r"b\.jsonl"):
        contam.clean(folder, items, tmp_path / "out")
    (folder / "more" / "d.arrow").write_bytes(b"nothing")
    with pytest.raises(IncompleteError, match=r"d\.arrow"):
        contam.clean(folder, items, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    done = contam.clean(folder, items, tmp_path / "out", exclude=["b.jsonl", "d.arrow"])
    names = sorted(path.name for path in (done.folder / "corpus").rglob("*.*"))
    assert names == ["a.parquet", "c.jsonl.gz", "chats.parquet", "nothing.parquet"]


def test_a_shard_of_which_every_row_goes_stays_without_rows(items, tmp_path):
    from tests.cleaning.inputs import whole

    folder = tmp_path / "corpus"
    write_corpus(folder)
    for path in folder.rglob("*.*"):
        if path.name not in ("a.parquet", "b.jsonl"):
            path.unlink()
    table = pq.read_table(folder / "a.parquet").slice(0, 3)
    table = table.set_column(1, "text", [[whole("orchard", 0)] * 3])
    pq.write_table(table, folder / "a.parquet")
    (folder / "b.jsonl").write_text(json.dumps({"text": whole("orchard", 1)}) + "\n")
    done = contam.clean(folder, items, tmp_path / "out")
    assert done.record["documents"]["after"] == 0
    left = pq.read_table(tmp_path / "out" / "corpus" / "a.parquet")
    assert (left.num_rows, left.schema) == (0, table.schema)
    assert (tmp_path / "out" / "corpus" / "b.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    "options",
    [{"action": "burn"}, {"labels": ["dirty"]}, {"labels": []}, {"exposures": ["all"]},
     {"weights": {"nobody": 1}}, {"weights": {"orchard": -1}},
     {"most": "many"}, {"most": "200%"}, {"most": "0.05"}, {"around": 5}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(corpus, items, tmp_path, options):
    with pytest.raises(ContamError):
        contam.clean(corpus, items, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []
