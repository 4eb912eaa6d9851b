"""Benchmarks by name are fetched from the Hub into the library's cache, and read there."""

import json
from pathlib import Path

import pytest

from contam.audit.checks import read_items
from contam.audit.spec import load_spec
from contam.benchmark.catalogue import CONVERTED, entries
from contam.benchmark.read_files import read_benchmarks
from contam.client import Client, ServiceError
from contam.detect.report import load_report
from contam.errors import BenchmarkError, ConfigError
from contam.files import hub as files_hub
from contam.index.build import build
from contam.index.recipe import load_recipe
from contam.tables.schemas import rows
from tests.catalogue_rows import N_ROWS, parts_of, rows_of
from tests.cli.processes import contam_here, python
from tests.corpus_files import WRITERS
from tests.integration.inputs import FILLER, corpus_of
from tests.remote.hub import COMMITS, HubHandler, put_data_set
from tests.remote.server import running
from tests.server.running import serving


@pytest.fixture
def hub(credentials, monkeypatch, tmp_path):
    """A Hub without data sets, and an empty cache."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    del credentials
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)

    with running(HubHandler) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield server
    close_session()


def put_entry(store, name, *, folders=None, revision=CONVERTED):
    entry = entries()[name]
    data = WRITERS["parquet"](rows_of(entry))
    if folders is None:
        folders = [
            f"{'one' if config == '*' else config}/{'test' if part == '*' else part}"
            for config in entry.configurations
            for part in entry.splits
        ]
    files = [f"{folder}/0000.parquet" for folder in folders]
    if entry.files:
        files = [entry.files[0].replace("*", "1")]
        data = "".join(json.dumps(row) + "\n" for row in rows_of(entry)).encode()
        revision = entry.revision
    put_data_set(store, entry.dataset, dict.fromkeys(files, data), revision)


def test_a_name_is_fetched_and_its_commit_noted(hub):
    put_entry(hub, "gsm8k")
    (found,) = read_benchmarks(["gsm8k"])
    (source,) = found.sources
    commit = COMMITS[CONVERTED]
    assert source.path == f"hf://datasets/openai/gsm8k@{commit}/main/test/0000.parquet"
    assert [item.question for item in found.items] == [
        part["question"] for part in parts_of(entries()["gsm8k"])
    ]
    assert {item.split for item in found.items} == {"test"}
    assert {item.source for item in found.items} == {source.path}
    hub.requests.clear()
    (again,) = read_benchmarks([f"gsm8k@{commit}"])
    assert list(again.items) == list(found.items)
    assert not [one for one in hub.requests if one.method == "GET" and "/resolve/" in one.path]


def test_without_a_network_the_cache_answers_or_a_command_is_told(hub, monkeypatch):
    from huggingface_hub import constants

    put_entry(hub, "gsm8k")
    (found,) = read_benchmarks(["gsm8k"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    (cached,) = read_benchmarks(["gsm8k"])
    assert list(cached.items) == list(found.items)
    assert cached.sources == found.sources
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks(["mmlu"])
    assert "hf download cais/mmlu" in caught.value.hint
    assert "mmlu=PATH" in caught.value.hint
    # Nor where the network is gone; whoever asks for many waits for it once.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(files_hub, "_unreachable", set())
    (cached,) = read_benchmarks(["gsm8k"])
    assert list(cached.items) == list(found.items)
    assert files_hub._unreachable == {"http://127.0.0.1:9"}
    found = read_benchmarks(["all"])
    assert [benchmark.name for benchmark in found] == ["gsm8k"]
    assert len(found[0].skipped) == len(entries()) - 1


def test_a_fetch_that_broke_off_is_not_read_as_all(hub, monkeypatch):
    from huggingface_hub import constants

    files = [f"main/test/{number:04}.parquet" for number in range(3)]
    data = [WRITERS["parquet"](rows_of(entries()["gsm8k"]))] * 3
    put_data_set(hub, "openai/gsm8k", dict(zip(files, data, strict=True)), CONVERTED)
    hub.fail("403", key="0001.parquet", times=None, method="")
    with pytest.raises(BenchmarkError):
        read_benchmarks(["gsm8k"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(BenchmarkError, match="1 of 3"):
        read_benchmarks(["gsm8k"])


@pytest.mark.parametrize("folders", [["main/train"], ["main/partial-test"], ["socratic/test"]])
def test_a_data_set_without_the_split_is_refused_with_what_it_has(hub, folders):
    put_entry(hub, "gsm8k", folders=folders)
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks(["gsm8k"])
    assert "main/test" in caught.value.message
    assert folders[0] in caught.value.hint


def test_a_data_set_without_the_fields_is_refused_with_both(hub):
    data = WRITERS["parquet"]([{"problem": "How high is the tide?", "answer": "2 m"}])
    put_data_set(hub, "openai/gsm8k", {"main/test/0000.parquet": data}, CONVERTED)
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks(["gsm8k"])
    told = f"{caught.value.message} {caught.value.hint}"
    assert "problem" in told
    assert "question=question" in told


def test_a_gated_data_set_that_is_refused_says_what_to_do(hub):
    put_entry(hub, "gpqa_diamond")
    hub.fail("403", key="gpqa", times=None, method="")
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks(["gpqa_diamond"])
    assert "HF_TOKEN" in caught.value.hint


@pytest.mark.slow
def test_all_gives_every_public_benchmark_and_names_the_rest(hub):
    """One data set has other fields and one is gone: both are named, and no other suffers."""
    known = entries()
    for name in known:
        if name not in ("piqa", "sciq"):
            put_entry(hub, name)
    data = WRITERS["parquet"]([{"other": "How high is the tide?"}])
    put_data_set(hub, "ybisk/piqa", {"plain_text/validation/0000.parquet": data}, CONVERTED)
    found = {benchmark.name: benchmark for benchmark in read_benchmarks(["all"])}
    gated = {name for name, entry in known.items() if entry.gated}
    assert found.keys() == known.keys() - gated - {"piqa", "sciq"}
    skipped = {row.source for row in found[min(found)].skipped}
    assert skipped == gated | {"piqa", "sciq"}
    for name, benchmark in found.items():
        wanted = parts_of(known[name])
        n_folders = len(benchmark.sources)
        assert len(benchmark.items) == N_ROWS * n_folders, name
        for item, parts in zip(benchmark.items, wanted * n_folders, strict=True):
            for part, text in parts.items():
                assert getattr(item, part) == text, (name, part)


def write_corpus(folder, name):
    """A corpus that holds the first item of a benchmark."""
    text = parts_of(entries()[name])[0]["question"]
    return corpus_of(folder, [f"{FILLER} {text} {FILLER}", FILLER])


@pytest.mark.parametrize(("name", "is_open"), [("gsm8k", True), ("gpqa_diamond", False)])
def test_a_scan_says_what_it_read_and_keeps_no_text_of_a_gated_benchmark(
    hub, tmp_path, name, is_open
):
    put_entry(hub, name)
    corpus, out = write_corpus(tmp_path / "corpus", name), tmp_path / "out"
    call = contam_here("scan", "--corpus", corpus, "--benchmark", name, "--out", out, "--quiet")
    assert call.returncode == 0, call.stderr
    report = load_report(out)
    (benchmark,) = report.run["inputs"]["benchmarks"]
    assert COMMITS[CONVERTED] in benchmark["sources"][0]["path"]
    assert [row["label"] for row in rows(report.verdicts)].count("contaminated") == 1
    assert report.run["parameters"]["keep_text"] == is_open
    asked = parts_of(entries()[name])[3]["question"]
    assert (asked in report.items.column("question").to_pylist()) == is_open


def test_an_audit_takes_names_and_their_months(hub, tmp_path):
    put_entry(hub, "gsm8k")
    put_entry(hub, "gpqa_diamond")
    copy = tmp_path / "rows.jsonl"
    copy.write_text("".join(json.dumps(row) + "\n" for row in rows_of(entries()["musr"])))
    path = tmp_path / "AUDIT.toml"
    spec = """
        [audit]
        title = "Names"
        out = "pack"
        [[corpus]]
        name = "web"
        paths = ["corpus"]
        [[benchmark]]
        paths = ["gsm8k"]
        [[benchmark]]
        paths = ["rows.jsonl"]
        entry = "musr"
    """
    path.write_text(spec)
    loaded = load_spec(path)
    assert not loaded.no_text
    items = read_items(loaded, tmp_path, {})
    assert [benchmark.name for benchmark in items.benchmarks] == ["gsm8k", "musr"]
    assert items.released == {"gsm8k": "2021-10-01", "musr": "2023-10-01"}
    path.write_text(spec + '[[benchmark]]\npaths = ["gpqa_diamond"]\n')
    assert load_spec(path).no_text
    path.write_text(spec.replace('"musr"', '"musrr"'))
    with pytest.raises(ConfigError, match="musrr"):
        load_spec(path)


@pytest.mark.slow
def test_the_service_reads_benchmarks_by_name(hub, tmp_path):
    put_entry(hub, "gsm8k")
    index = tmp_path / "index"
    build([write_corpus(tmp_path / "corpus", "gsm8k")], index, recipe=load_recipe("complete"))
    environ = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
    with (
        serving(index, data=tmp_path / "data", environ=environ) as service,
        Client(service.url) as client,
    ):
        job = client.wait(client.submit(benchmarks=["gsm8k"]))
        answer = client.results(job)
        labels = [verdict.label for verdict in answer if verdict.benchmark == "gsm8k"]
        assert (len(labels), labels.count("contaminated")) == (N_ROWS, 1)
        for name in (
            "no such name",
            "/etc/passwd",
            "gsm8k=/etc/passwd",
            "lm-eval:gsm8k",
            "all",
        ):
            with pytest.raises(ServiceError, match="catalogue"):
                client.submit(benchmarks=[name])


@pytest.mark.slow
def test_the_weekly_check_names_the_entries_that_broke(hub, tmp_path):
    for name in ("gsm8k", "global_mmlu", "bfcl", "alpaca_eval"):
        put_entry(hub, name)
    data = WRITERS["parquet"]([{"other": "How high is the tide?"}])
    put_data_set(hub, "ybisk/piqa", {"plain_text/validation/0000.parquet": data}, CONVERTED)
    chosen = ["gsm8k", "global_mmlu", "bfcl", "alpaca_eval", "piqa", "sciq"]
    script = Path(__file__).parents[2] / "benchmarks" / "check_names.py"
    process = python(script, *chosen, HF_HOME=str(tmp_path / "hf"), HF_HUB_DISABLE_XET="1")
    assert process.returncode == 1, process.stderr
    lines = process.stdout.splitlines()
    broken = [line.split()[0] for line in lines[:-1] if not line.endswith("as the entry says")]
    assert broken == ["piqa", "sciq"], process.stdout
    assert lines[-1].startswith("2 of 6")
