"""The client against a real service: verdicts, jobs and re-scorings are the library's."""

import json

import pyarrow as pa
import pytest

import contam
from contam.benchmark.read_files import read_benchmarks
from contam.cli.main import main
from contam.client import Client, ServiceError
from contam.detect.indexed.index_reader import open_index
from contam.detect.report import load_report
from contam.detect.show.choose import flagged_items
from contam.detect.show.side_by_side import view_items
from contam.errors import OutputError, UsageError
from contam.index.build import build
from contam.index.recipe import load_recipe
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from tests.cli import processes
from tests.server.conftest import ADMIN_KEY
from tests.server.running import serving

POLICIES = ["contam", "gpt3-test"]


@pytest.fixture(scope="module")
def items(bench_fixtures):
    """All committed items, most of them with an `answer_index`, which the wire has to carry."""
    found = [item for b in read_benchmarks([bench_fixtures / "items"]) for item in b.items]
    assert any(one.answer_index is not None for one in found)
    return found


@pytest.fixture(scope="module")
def queried(small_index, bench_fixtures):
    return contam.query(small_index, bench_fixtures / "items", policies=POLICIES, workers=1)


@pytest.fixture(scope="module")
def client(service):
    with Client(service.url) as one:
        yield one


@pytest.fixture(scope="module")
def job(client, items):
    return client.wait(client.submit(items, policies=POLICIES, keep_text=True, key="all items"))


def as_set(verdicts):
    return sorted((v.to_dict() for v in verdicts), key=repr)


def test_more_items_than_one_check_takes_are_judged_together_by_a_job(client, items):
    # Wording that many items share weighs little, so 300 items are not two checks of 150.
    shared = "As every keeper of the harbour lanterns has to know by heart before the first winter"
    many = [
        {"id": f"n{n}", "question": f"{shared}, how many of the {n} bells ring at {n * 7} feet?"}
        for n in range(300)
    ]
    answer = client.check([*many, *items])
    assert len(answer) == 300 + len(items)
    assert {v.item_id for v in answer} == {
        *(one["id"] for one in many),
        *(i.item_id for i in items),
    }


def test_a_folder_from_the_service_is_byte_for_byte_that_of_a_query(client, job, queried, tmp_path):
    ours, theirs = tmp_path / "client", tmp_path / "query"
    client.save(job, ours)
    contam.write_report(queried, theirs)
    for name in ("verdicts.parquet", "evidence.parquet", "items.parquet"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    with pytest.raises(OutputError):
        client.save(job, ours)
    client.save(job, ours, overwrite=True)


def test_a_rescoring_is_that_of_the_library(client, job, bench_fixtures, tmp_path):
    log = bench_fixtures / "logs" / "brook_math.csv"
    folder = client.save(job, tmp_path / "verdicts")
    options = {"policies": ["contam"], "least": 12, "permutations": 99}
    settings = RescoreSettings(least=12, permutations=99)
    wanted = rescore(folder, [log], policies=["contam"], settings=settings)
    found = client.rescore(job, log, **options)
    assert found.tables["scores"] == wanted.rows("scores")
    assert set(found.tables) == set(wanted.tables)
    assert found.summary == wanted.summary


def test_a_refusal_has_the_code_and_hint_of_the_service(client):
    with pytest.raises(ServiceError) as caught:
        client.check("a text", index="nowhere")
    assert (caught.value.status, caught.value.exit_code) == (404, 2)
    assert caught.value.hint
    with pytest.raises(ServiceError) as caught:
        client.check("a text", policies=["nothing"])
    assert caught.value.code == "policy"
    with pytest.raises(UsageError):
        client.job("../../etc")


def test_a_table_of_items_is_checked_as_a_query_reads_it(client, bench_fixtures, queried):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_json(bench_fixtures / "items" / "lantern_quiz.jsonl", lines=True)
    expected = [v for v in queried if v.benchmark == "lantern_quiz"]
    for table in (frame, pa.Table.from_pandas(frame)):
        answer = client.check({"lantern_quiz": table}, policies=POLICIES)
        assert as_set(answer) == as_set(expected)
        assert "<td>lantern_quiz</td><td>gpt3-test</td>" in answer._repr_html_()
    assert {v.benchmark for v in client.check(frame)} == {"items"}
    job = client.wait(client.submit({"lantern_quiz": frame}, policies=POLICIES))
    assert as_set(client.results(job)) == as_set(expected)


def test_a_table_of_which_a_row_would_be_left_out_is_refused(client):
    rows = {"no question": {"id": ["a", "b"], "question": ["Which?", ""]}, "no column": {"x": [1]}}
    for name, columns in rows.items():
        with pytest.raises(UsageError, match="memory:items"):
            client.check(pa.table(columns))
        with pytest.raises(UsageError, match=f"memory:{name}"):
            client.submit({name: pa.table(columns)})


def test_asking_loads_neither_numba_nor_arrow(service):
    script = (
        "import sys; from contam.client import Client; import contam\n"
        f"with Client({service.url!r}) as client:\n"
        "    item = contam.BenchItem(benchmark='b', split='', item_id='1', question='Which?')\n"
        "    assert [v.label for v in client.check([item])] == ['not_checkable']\n"
        "print(sorted({'numba', 'pyarrow', 'numpy', 'duckdb'} & set(sys.modules)))"
    )
    done = processes.python("-c", script)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# -------------------------------------------------------------------------------- contam check


def test_the_command_writes_what_a_query_writes(
    service, bench_fixtures, tmp_path, queried, monkeypatch
):
    out = tmp_path / "out"
    benchmark = ("--benchmark", bench_fixtures / "items")
    asked = (*benchmark, "--server", service.url, "--policy", ",".join(POLICIES))
    process = processes.contam_here("check", *asked, "--out", out)
    assert process.returncode == 0, process.stderr
    assert str(out) in process.stdout
    theirs = tmp_path / "query"
    contam.write_report(queried, theirs)
    for name in ("verdicts.parquet", "evidence.parquet", "items.parquet"):
        assert (out / name).read_bytes() == (theirs / name).read_bytes(), name
    # A service tells no places: what it judged is shown beside its texts where its shards lie.
    shown = processes.contam_here("show", out, "--limit", "1", "--documents", "1")
    assert "the service that was asked" in shown.stdout
    views = list(view_items(load_report(out), flagged_items(load_report(out))[:1]))
    assert views[0].documents[0].parts[0].document == ()
    monkeypatch.chdir(bench_fixtures / "corpus")
    views = list(view_items(load_report(out), flagged_items(load_report(out))[:1]))
    assert views[0].documents[0].problem is None
    assert views[0].documents[0].parts[0].document
    again = processes.contam_here("check", *asked, "--out", out)
    processes.assert_one_line_error(again, 1)
    gated = processes.contam_here("check", *asked, "--fail-on-flagged", "--quiet")
    assert (gated.returncode, gated.stderr) == (3, "")
    assert "brook_math" in gated.stdout


def test_a_service_with_keys_is_asked_with_the_key_of_the_environment(guarded, tmp_path):
    with pytest.raises(ServiceError) as caught, Client(guarded.url) as client:
        client.check("a text of some words")
    assert (caught.value.status, caught.value.exit_code) == (401, 2)
    assert "CONTAM_KEY" in caught.value.hint
    file = tmp_path / "key"
    file.write_text(ADMIN_KEY)
    text = ("--text", "nothing that anybody wrote about seven lanterns on a quay")
    for given in ({"CONTAM_KEY": ADMIN_KEY}, {"CONTAM_KEY_FILE": str(file)}):
        asked = processes.contam_here("check", *text, CONTAM_SERVER=guarded.url, **given)
        assert asked.returncode == 0, asked.stderr


FOUR = ["contam", "openr1-8", "lmeval-13", "llama3-8gram"]


def as_asked(items):
    """Items of the library as a request has them."""
    return [
        {
            "id": item.item_id,
            **{name: getattr(item, name) for name in ("benchmark", "split", "question")},
            **{
                name: value
                for name in ("passage", "choices", "answer", "answer_index")
                if (value := getattr(item, name)) not in (None, ())
            },
        }
        for item in items
    ]


@pytest.fixture(scope="module")
def http(service):
    with service.client() as one:
        yield one


def told(http, items, index):
    """Verdicts and evidence as the service tells them, with the columns of the tables."""
    verdicts, evidence = [], {}
    body = {"index": index, "policies": FOUR, "items": items}
    reply = http.post("/v1/check", json=body)
    assert reply.status_code == 200, reply.text
    for verdict in reply.json()["verdicts"]:
        key = tuple(verdict[name] for name in ("benchmark", "split", "item_id"))
        evidence[key] = verdict.pop("evidence")
        verdicts.append(verdict)
    return verdicts, evidence


def assert_three_agree(http, index, name, bench, out):
    arguments = ["--index", str(index), "--benchmark", str(bench), "--policy", ",".join(FOUR)]
    assert main(["query", *arguments, "--out", str(out), "--quiet"]) == 0
    report = load_report(out)
    result = contam.query(index, bench, policies=FOUR)
    assert [one.to_dict() for one in result] == report.verdicts.to_pylist()
    with_reader = open_index(index).check(result.items_in_order, policies=FOUR)
    assert [one.to_dict() for one in with_reader] == report.verdicts.to_pylist()
    verdicts, evidence = told(http, as_asked(result.items_in_order), name)
    assert verdicts == report.verdicts.to_pylist()
    flat = []
    for row in report.evidence.to_pylist():
        key = tuple(row.pop(name) for name in ("benchmark", "split", "item_id"))
        mine = evidence[key].pop(0)
        flat.append(key)
        assert {name: mine[name] for name in row} == row
    assert flat
    assert not any(evidence.values())


def test_service_command_and_library_agree_on_the_small_corpus(
    http, small_index, bench_fixtures, tmp_path
):
    for bench in sorted((bench_fixtures / "items").glob("*.jsonl")):
        assert_three_agree(http, small_index, "small", bench, tmp_path / bench.stem)


@pytest.mark.labelled
@pytest.mark.slow
def test_service_command_and_library_agree_on_real_text(labelled_data, tmp_path):
    shards = sorted((labelled_data / "corpus").rglob("*.parquet"))[:1]
    build(shards, tmp_path / "real", load_recipe("complete"), workers=2)
    with serving(tmp_path / "real", data=tmp_path / "data") as service, service.client() as http:
        for bench in sorted((labelled_data / "items").glob("*.jsonl"))[:2]:
            some = tmp_path / bench.name
            lines = bench.read_text("utf-8").splitlines()
            some.write_text("".join(f"{line}\n" for line in lines[:200]), "utf-8")
            json.loads(lines[0])
            assert_three_agree(http, tmp_path / "real", "real", some, tmp_path / bench.stem)
