"""Logs that are not whole, of every tool: listed as bad or refused, never read as whole."""

import json
import random
import shutil

import pytest

from contam.errors import LogError
from contam.rescore.join import Joiner, refuse_partial
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import find_logs
from tests.rescore.logs.small import QUESTIONS, item, items_table
from tests.rescore.logs.tools import RIGHT, RUNS, inspect_eval, inspect_json, openai_evals
from tests.rescore.panels import refused

BESIDES = ("metrics-all.jsonl", "-requests.jsonl", "/metrics.json")
"""Files beside a log that it is whole without, or with a part of."""

CUTS = 24
"""Places within each file of a run; a cut at the end of every line comes on top."""


def judged():
    """The items of the runs, with each name that a run may have for them."""
    texts = [item(f"id{i}", question) for i, question in enumerate(QUESTIONS)]
    names = ("quay-{}", "Quay/{}", "guild__ledger-{}")
    bare = [
        item(name.format(100 + i if "ledger" in name else i), f"{name} {i}", benchmark=name)
        for name in names
        for i in range(6)
    ]
    return Joiner(items_table([*texts, *bare]))


def read_as_whole(folder, joiner):
    """Logs that a re-scoring would take: read, adding up, and with every item."""
    try:
        found = find_logs([folder], skip_damaged=True)
    except LogError:
        return []
    taken = []
    for log in found.logs:
        try:
            self_check(log)
            refuse_partial(log, joiner.join(log).index, joiner.judged)
        except LogError:
            continue
        taken.append(log)
    return taken


def cuts_of(data, seed):
    text = data.rstrip(b"\n")
    ends = [at + 1 for at, byte in enumerate(text) if byte == ord("\n")]
    places = random.Random(seed).sample(range(len(text)), min(CUTS, len(text)))
    return sorted({0, len(text) - 1, *ends[-8:], *places})


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_read_whole_and_no_cut_of_any_file_of_it_is(tmp_path, name):
    whole = tmp_path / "whole"
    RUNS[name](whole)
    joiner = judged()
    (log,) = read_as_whole(whole, joiner)
    assert [int(score) for score in log.columns[0].score] == list(RIGHT)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    for path in files:
        if path.parts[0] == ".source" or f"/{path.name}".endswith(BESIDES):
            continue
        data = (whole / path).read_bytes()
        for size in cuts_of(data, seed=f"{name} {path}"):
            cut = tmp_path / "cut"
            shutil.copytree(whole, cut)
            (cut / path).write_bytes(data[:size])
            taken = read_as_whole(cut, joiner)
            assert not taken, f"{path} cut to {size} of {len(data)} bytes"
            shutil.rmtree(cut)


@pytest.mark.parametrize("status", ["cancelled", "error", "started"])
@pytest.mark.parametrize("write", [inspect_json, inspect_eval])
def test_a_run_that_did_not_end_well_is_listed_with_its_status(tmp_path, write, status):
    write(tmp_path / "good")
    write(tmp_path / "bad", status)
    found = find_logs([tmp_path], skip_damaged=True)
    assert [log.path for log in found.logs] == [str(next((tmp_path / "good").iterdir()))]
    ((path, reason),) = found.damaged
    assert path == str(next((tmp_path / "bad").iterdir()))
    assert path in reason
    assert status in reason


def test_every_bad_log_of_a_folder_is_listed_and_every_good_one_read(tmp_path):
    for name, write in RUNS.items():
        write(tmp_path / name)
    n_good = len(find_logs([tmp_path]).logs)
    bad = tmp_path / "openai-evals-2"
    openai_evals(bad)
    lines = (bad / "record.jsonl").read_text().splitlines(keepends=True)
    (bad / "record.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"eval": ', encoding="utf-8")
    again = tmp_path / "again.eval"
    shutil.copy(tmp_path / "inspect-eval" / "run.eval", again)
    found = find_logs([tmp_path], skip_damaged=True)
    assert len(found.logs) == n_good + 1
    reasons = dict(found.damaged)
    assert "no final_report" in reasons[str(bad / "record.jsonl")]
    assert "not valid JSON" in reasons[str(tmp_path / "broken.json")]
    with pytest.raises(LogError):
        find_logs([tmp_path])


def test_a_table_whose_last_line_has_no_end_is_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,score\na,1\nb,0.75\n", encoding="utf-8")
    (log,) = find_logs([path]).logs
    assert not any("line end" in note for note in log.notes)
    path.write_text("id,score\na,1\nb,0.7", encoding="utf-8")
    (log,) = find_logs([path]).logs
    assert any("line end" in note for note in log.notes)


@pytest.mark.parametrize("name", ["run.jsonl", "run.json", "run.eval", "run.csv", "run.parquet"])
def test_a_pointer_of_git_lfs_is_called_that(tmp_path, name):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 91\n"
    path = tmp_path / name
    path.write_text(pointer, encoding="ascii")
    with refused(LogError, path, "git lfs pull"):
        find_logs([path])
    (tmp_path / "notes.bin").write_text(pointer, encoding="ascii")
    ((listed, _),) = find_logs([tmp_path], skip_damaged=True).damaged
    assert listed == str(path)


def test_a_companion_that_is_broken_is_named_with_the_log(tmp_path):
    RUNS["lm-eval"](tmp_path)
    results = next(tmp_path.glob("results_*.json"))
    results.write_text(json.dumps({"results": {}})[:-1], encoding="utf-8")
    reasons = dict(find_logs([tmp_path], skip_damaged=True).damaged)
    samples = str(next(tmp_path.glob("samples_*.jsonl")))
    assert results.name in reasons[samples]
    assert reasons[samples].startswith(samples)
