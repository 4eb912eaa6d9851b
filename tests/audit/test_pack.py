"""A pack is whole, the same twice, and found out when a byte of it changes."""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from contam.audit import facts as facts_of
from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import MANIFEST, TIMES, files_of, verify_pack
from contam.detect.labels import WORST_FIRST
from contam.detect.report import load_report
from contam.errors import BenchmarkError, LogError, OutputError
from contam.tables import schemas
from contam.tables.score_schemas import SCORES
from tests.audit.conftest import FIXTURES, write_spec

CHECKS = ("checks/early", "checks/late", "checks/together")
CHANCE = ("decoys/early", "decoys/late", "calibration")


def rows(folder):
    return schemas.rows(load_report(folder).verdicts)


def contents(folder):
    return {name: path.read_bytes() for name, path in files_of(folder) if name != TIMES}


@pytest.mark.slow
def test_equal_audits_give_equal_bytes_whatever_the_workers(audited, tmp_path):
    again = run_audit(load_spec(write_spec(tmp_path)), workers=1)
    assert contents(again.folder) == contents(audited.folder)
    assert again.digest == audited.digest
    assert not (tmp_path / "pack.work").exists()


@pytest.mark.slow
def test_stages_with_the_same_inputs_are_not_run_again(audited, tmp_path):
    spec = dataclasses.replace(
        load_spec(write_spec(tmp_path)), out=str(shutil.copytree(audited.folder, tmp_path / "pack"))
    )
    same = run_audit(spec, overwrite=True)
    assert set(same.reused) == {*CHECKS, *CHANCE, "scores"}
    assert same.digest == audited.digest
    other = run_audit(dataclasses.replace(spec, least=14), overwrite=True)
    assert set(other.reused) == {*CHECKS, *CHANCE}
    # Where fewer clean items remain than the audit asks for, nobody shows a score over them.
    said = "13 clean items, and 14 are needed"
    for name in ("report.html", "report.md", "exports/model_card.md"):
        assert said in (other.folder / name).read_text("utf-8"), name
        assert said not in (audited.folder / name).read_text("utf-8"), name
    assert "| model | metric | clean of all |" in (other.folder / "report.md").read_text("utf-8")
    card = (other.folder / "exports/model_card.md").read_text("utf-8")
    assert f"| quokka-7b | brook\\_math | score | 0.7551 | {said} | 13 |" in card
    plot = "gain-brook_math-score-contam.svg"
    assert (audited.folder / "scores" / plot).exists()
    assert not (other.folder / "scores" / plot).exists()


@pytest.mark.slow
def test_a_stage_that_is_done_survives_a_failure_after_it(tmp_path):
    path = write_spec(tmp_path)
    broken = path.read_text().replace(f"{FIXTURES}/logs/brook_math.csv", str(tmp_path / "no-logs"))
    path.write_text(broken)
    (tmp_path / "no-logs").mkdir()
    with pytest.raises(LogError, match="no-logs"):
        run_audit(load_spec(path))
    assert not (tmp_path / "pack").exists()
    done = run_audit(load_spec(write_spec(tmp_path)))
    assert {"checks/early", "checks/late", "checks/together"} <= set(done.reused)


def test_an_item_is_clean_only_where_it_is_clean_in_every_corpus(audited):
    early, late, together = (
        rows(audited.folder / "checks" / name) for name in ("early", "late", "together")
    )
    assert len(early) == len(late) == len(together) > 0
    seen = set()
    for a, b, both in zip(early, late, together, strict=True):
        labels = (a["label"], b["label"])
        assert both["label"] == min(labels, key=WORST_FIRST.index)
        assert both["n_documents"] == a["n_documents"] + b["n_documents"]
        assert both["reason"].endswith(
            a["reason"] if a["label"] == both["label"] else b["reason"]
        ) or (a["label"] == b["label"])
        seen.add(labels)
    assert {("contaminated", "clean"), ("clean", "contaminated")} <= seen


def test_the_verdicts_together_are_those_of_one_scan_of_all(audited):
    import contam

    one = contam.scan(
        [FIXTURES / "corpus"],
        [FIXTURES / "items" / f"{name}.jsonl" for name in ("brook_math", "lantern_quiz")],
        policies=["lmeval-13"],
    )
    labels = {(v.benchmark, v.item_id): (v.label, v.n_documents) for v in one}
    found = {
        (row["benchmark"], row["item_id"]): (row["label"], row["n_documents"])
        for row in rows(audited.folder / "checks" / "together")
        if row["policy"] == "lmeval-13"
    }
    assert found == labels


def test_every_altered_byte_is_found(pack):
    import random

    draw = random.Random(4)
    assert verify_pack(pack, sample=0).holds
    for name, path in files_of(pack):
        before = path.read_bytes()
        at = draw.randrange(len(before))
        path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        if name in {MANIFEST, TIMES}:
            with pytest.raises(OutputError, match=name):
                verify_pack(pack, sample=0)
        else:
            assert verify_pack(pack, sample=0).problems == (f"{name} was altered",)
        path.write_bytes(before)
    (pack / "new.txt").write_text("x")
    assert verify_pack(pack, sample=0).problems == ("new.txt is not of this pack",)
    (pack / "new.txt").unlink()
    (pack / "report.json").unlink()
    assert verify_pack(pack, sample=0).problems == ("report.json is missing",)


def test_the_digest_that_was_signed_is_asked_for(audited):
    assert verify_pack(audited.folder, digest=audited.digest, sample=0).holds
    assert not verify_pack(audited.folder, digest="0" * 64, sample=0).holds


def test_all_evidence_stands_in_the_source_rows(audited):
    found = verify_pack(audited.folder, sample=100_000)
    assert found.holds
    n_rows = load_report(audited.folder / "checks" / "together").evidence.num_rows
    assert found.n_evidence == n_rows > 100
    assert found.n_unread == 0


def test_evidence_of_a_shard_that_is_gone_is_not_vouched_for(tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(FIXTURES / "corpus", corpus)
    shards = [f'"{shard}"' for shard in sorted(corpus.iterdir())]
    spec = load_spec(write_spec(tmp_path, early=shards[0], late=", ".join(shards[1:])))
    done = run_audit(dataclasses.replace(spec, logs=dataclasses.replace(spec.logs, paths=())))
    shutil.rmtree(corpus)
    found = verify_pack(done.folder)
    assert found.holds
    assert found.n_evidence == 0
    assert found.n_unread > 50
    assert "is gone" in found.unread[0]


def test_a_validator_that_is_not_ours_agrees_with_the_published_schema(audited):
    jsonschema = pytest.importorskip("jsonschema", reason="the extra service is not installed")
    published = json.loads((audited.folder / "schema" / "report.schema.json").read_bytes())
    report = json.loads((audited.folder / "report.json").read_bytes())
    validator = jsonschema.Draft202012Validator(published)
    validator.check_schema(published)
    assert list(validator.iter_errors(report)) == []
    report["benchmarks"][0]["policies"][0]["contaminated"] = "many"
    assert len(list(validator.iter_errors(report))) == 1


def test_the_figures_of_the_report_are_those_of_the_verdicts(audited):
    read = facts_of.read_facts(audited.folder / "report.json")
    for bench in read.benchmarks:
        for policy in bench.policies:
            own = [
                row
                for row in rows(audited.folder / "checks" / policy.corpus)
                if row["benchmark"] == bench.name and row["policy"] == policy.policy
            ]
            labels = [row["label"] for row in own]
            flagged = labels.count("contaminated") + labels.count("suspect")
            assert policy.n_items == len(own)
            assert policy.contaminated == labels.count("contaminated")
            assert policy.clean == labels.count("clean")
            assert policy.flagged_share == flagged / len(own)
            assert sum(count.n for count in policy.dates) == flagged
            assert sum(count.n for count in policy.exposures) == flagged


def test_an_unread_shard_leaves_nothing_clean_and_shows_in_the_headline(tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(FIXTURES / "corpus", corpus)
    shards = sorted(corpus.iterdir())
    shards[1].write_bytes(shards[1].read_bytes()[:-200])
    quoted = [f'"{shard}"' for shard in shards]
    path = write_spec(tmp_path, early=", ".join(quoted[:2]), late=", ".join(quoted[2:]))
    spec = load_spec(path)
    done = run_audit(dataclasses.replace(spec, logs=dataclasses.replace(spec.logs, paths=())))
    assert done.facts.headline.status == "incomplete"
    assert not done.facts.coverage["complete"]
    assert all(
        policy.clean == 0
        for bench in done.facts.benchmarks
        for policy in bench.policies
        if policy.corpus == "together"
    )


def test_two_entries_with_one_item_are_refused(tmp_path):
    path = write_spec(tmp_path)
    path.write_text(
        path.read_text() + f'\n[[benchmark]]\npaths = ["{FIXTURES}/items/brook_math.jsonl"]\n'
    )
    with pytest.raises(BenchmarkError, match="brook_math"):
        run_audit(load_spec(path))


def test_a_finished_pack_is_not_replaced_unasked(audited):
    spec = load_spec(write_spec(audited.folder.parent))
    before = contents(audited.folder)
    with pytest.raises(OutputError, match="pack"):
        run_audit(spec)
    assert contents(audited.folder) == before


@pytest.mark.slow
def test_an_index_whose_corpus_is_gone_or_changed_is_asked_again(tmp_path):
    from contam.index.build import build
    from contam.index.recipe import load_recipe

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    shard = shutil.copy(FIXTURES / "corpus" / "part-002.parquet", corpus / "part.parquet")
    build(corpus, tmp_path / "index", load_recipe("complete"), workers=1)
    path = tmp_path / "AUDIT.toml"
    path.write_text(
        f'[audit]\nout = "pack"\n[[corpus]]\nname = "web"\nindex = ["{tmp_path}/index"]\n'
        f'[[benchmark]]\npaths = ["{FIXTURES}/items/brook_math.jsonl"]\n'
    )
    before = run_audit(load_spec(path))
    assert before.facts.coverage["complete"]
    Path(shard).rename(tmp_path / "gone.parquet")
    gone = run_audit(load_spec(path), overwrite=True)
    assert "checks/web" not in gone.reused
    assert not gone.facts.coverage["complete"]
    assert all(policy.clean == 0 for bench in gone.facts.benchmarks for policy in bench.policies)


def test_a_shard_that_was_written_is_read_again_even_if_its_time_was_set_back(tmp_path):
    import os

    shard = tmp_path / "one.jsonl"
    question = (
        "How many blue lanterns does the ferryman of Averell count on the longest night of the year"
    )
    row = json.dumps({"id": "1", "text": "x" * 200_000 + " " + "y " * 60 + "z" * 200_000})
    shard.write_text(row + "\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": "1", "question": question}) + "\n")
    path = tmp_path / "AUDIT.toml"
    path.write_text(
        '[audit]\nout = "pack"\n[[corpus]]\nname = "web"\npaths = ["one.jsonl"]\n'
        '[[benchmark]]\npaths = ["items.jsonl"]\nname = "ferry"\n'
    )
    assert run_audit(load_spec(path)).facts.headline.status == "clear"
    times = shard.stat()
    shard.write_text(row.replace("y " * 60, (question + " " * 120)[:120]) + "\n")
    os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert shard.stat().st_size == times.st_size
    assert run_audit(load_spec(path), overwrite=True).facts.headline.status == "flagged"


@pytest.mark.slow
def test_logs_of_public_models_are_the_field_of_an_audit(audited, tmp_path):
    with (FIXTURES / "logs/brook_math.csv").open(newline="") as file:
        heads, *rows = csv.reader(file)
    for name, models in (("own", ["quokka-7b"]), ("public", ["heron-8b", "plover-3b"])):
        at = [0, 1, *map(heads.index, models)]
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([line[place] for place in at] for line in (heads, *rows))
    path = write_spec(tmp_path)
    text = path.read_text()
    logs = f'paths = ["own.csv"]\nfield = ["public.csv"]\n{text[text.index("ours =") :]}'
    path.write_text(text[: text.index("[logs]")] + "[logs]\n" + logs)
    said = []
    shutil.copytree(audited.folder, tmp_path / "pack")
    made = run_audit(load_spec(path), overwrite=True, tell=said.append)
    table = schemas.read_parquet(made.folder / "scores/scores.parquet", SCORES)
    whole = [row for row in schemas.rows(table) if row["subset_by"] == "all"]
    assert {row["model"] for row in whole} == {"quokka-7b"}
    assert all(row["adjusted_p"] is not None for row in whole)
    run = json.loads((made.folder / "scores/run.json").read_text())
    assert {log["path"] for log in run["inputs"]["field"]} == {"public.csv"}
    # 36 flagged items beside 13 clean ones show large gaps alone, which is said beforehand.
    assert any("brook_math" in stage for stage in said)
    (tmp_path / "public.csv").write_text((tmp_path / "public.csv").read_text().replace(",1", ",0"))
    assert "scores" not in run_audit(load_spec(path), overwrite=True).reused
