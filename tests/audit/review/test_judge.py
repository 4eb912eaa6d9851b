"""`contam judge` asks about each pair once, keeps every answer, and sends nothing without consent."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest

import contam
from contam.audit.review import judged
from contam.audit.review.judged import NO_ANSWER, Prompt, answer_in
from contam.audit.review.pairs import draw_pairs, flagged_pairs, read_pairs
from contam.audit.review.sample import population
from contam.cli import main as command
from contam.cli.main import main
from contam.client import judges
from contam.detect.report import load_report
from contam.errors import ConfigError
from tests.judge_server import serving


@pytest.fixture(scope="module")
def result(bench_fixtures, tmp_path_factory):
    """The folder of a scan by two policies."""
    folder = tmp_path_factory.mktemp("judge") / "out"
    found = contam.scan(
        bench_fixtures / "corpus", bench_fixtures / "items", policies=["contam", "lmeval-13"]
    )
    contam.write_report(found, folder)
    return folder


@pytest.fixture
def _away(monkeypatch):
    """The address of the server counts as one of another machine."""
    monkeypatch.setattr(judges, "stays_here", lambda _: False)


def ask(folder, out, *more):
    return main(["judge", str(folder), "--out", str(out), "--model", "m", "--quiet", *more])


def rows(path):
    return pq.read_table(path).to_pylist()


def test_each_pair_is_asked_once_and_its_answer_kept(result, tmp_path, capsys):
    out = tmp_path / "judged.parquet"
    cases = population(load_report(result))
    pairs = flagged_pairs(cases, ["contam"])
    with serving("**Yes.**", "no", "I cannot say", "yes") as (server, url):
        assert ask(result, out, "--endpoint", url, "--json", "--at-once", "1") == 0
        asked = len(server.requests)
        first = out.read_bytes()
        assert ask(result, out, "--endpoint", url) == 0
        assert len(server.requests) == asked == len(pairs) > 50
        # Another prompt, or another model, is another judge.
        again = ("--endpoint", url, "--most", "3")
        assert ask(result, out, *again, "--request", '{"seed": 1}') == 0
        assert len(server.requests) == asked + 3
    assert out.read_bytes() != first
    said = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "}")
    assert (said["n_no"], said["n_no_answer"], said["n_yes"]) == (1, 1, asked - 2)
    kept = rows(out)
    assert len(kept) == asked + 3
    assert {row["inclusion"] for row in kept} == {1.0, 3 / asked}
    (unclear,) = [row for row in kept if row["answer"] == NO_ANSWER]
    assert unclear["reply"] == "I cannot say"
    for row in kept:
        assert row["question"]
        assert row["document"]


def test_what_is_sent_is_the_question_and_the_stretch_that_matches(result):
    report = load_report(result)
    pairs = flagged_pairs(population(report), ["contam"])
    verdicts = {(one["benchmark"], one["item_id"]): one for one in report.verdicts.to_pylist()}
    questions = {(one["benchmark"], one["item_id"]): one for one in report.items.to_pylist()}
    whole = 0
    for text in read_pairs(report, pairs):
        assert not text.problem
        key = text.pair.key.benchmark, text.pair.key.item_id
        item = questions[key]
        assert text.question == "\n".join([item["question"], *(item["choices"] or [])])
        if verdicts[key]["label"] == "contaminated":
            whole += " ".join(item["question"].split()[:4]) in " ".join(text.document.split())
    assert whole > 20


@pytest.mark.usefixtures("_away")
def test_no_text_leaves_the_machine_without_the_name_of_its_benchmark(result, tmp_path, capsys):
    out = tmp_path / "judged.parquet"
    with serving("yes") as (server, url):
        assert ask(result, out, "--endpoint", url) == 2
        refused = capsys.readouterr().err
        assert "would leave this machine" in refused
        assert "--send-texts" in refused
        assert ask(result, out, "--endpoint", url, "--send-texts", "gone") == 2
        assert ask(result, out, "--endpoint", url, "--dry-run", "--json") == 0
        plan = json.loads(capsys.readouterr().out)
        assert plan["leaves_machine"]
        assert plan["n_to_ask"] == sum(plan["benchmarks"].values())
        assert set(plan["benchmarks"]) == {"brook_math", "lantern_quiz", "tinker_code"}
        assert not server.requests
        assert not out.exists()
        assert ask(result, out, "--endpoint", url, "--send-texts", "lantern_quiz") == 0
        assert len(server.requests) == plan["benchmarks"]["lantern_quiz"]
    assert {row["benchmark"] for row in rows(out)} == {"lantern_quiz"}


def test_a_dry_run_of_a_command_runs_nothing(result, tmp_path, capsys):
    marker = tmp_path / "ran"
    assert ask(result, tmp_path / "x.parquet", "--command", f"touch '{marker}'", "--dry-run") == 0
    assert "no text leaves" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == []


def test_the_key_is_in_no_file_and_no_message(result, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CONTAM_JUDGE_KEY", "sk-very-secret")
    with serving("yes", (401, {}, b'{"error": {"message": "sk-very-secret"}}')) as (server, url):
        assert ask(result, tmp_path / "j.parquet", "--endpoint", url, "--at-once", "1") == 1
        assert server.requests[0][1]["Authorization"] == "Bearer sk-very-secret"
    told = capsys.readouterr()
    assert "status 401" in told.err
    assert "secret" not in told.out + told.err
    (kept,) = rows(tmp_path / "j.parquet")
    assert "secret" not in str(kept)
    assert b"secret" not in (tmp_path / "j.parquet").read_bytes()


def test_a_real_command_judges_and_a_failing_one_is_no_answer_of_anybody(result, tmp_path, capsys):
    script = tmp_path / "judge.py"
    script.write_text(
        "import json, sys\n"
        "pair = json.load(sys.stdin)\n"
        "same = pair['question'].split()[:3] == pair['document'].split()[:3]\n"
        "sys.exit(9) if 'lantern' in pair['question'].lower() else print('yes' if same else 'no')\n"
    )
    out = tmp_path / "judged.parquet"
    call = ("--command", f"{sys.executable} {script}", "--most", "8", "--seed", "3", "--no-text")
    code = ask(result, out, *call)
    told = capsys.readouterr().err
    kept = rows(out)
    assert code == (0 if len(kept) == 8 else 1)
    assert ("have no answer: exit code 9" in told) == (len(kept) < 8)
    assert {row["answer"] for row in kept} <= {"yes", "no"}
    assert {row["question"] for row in kept} == {row["reply"] for row in kept} == {None}


def test_a_sample_is_random_and_a_larger_one_holds_the_smaller(result):
    pairs = flagged_pairs(population(load_report(result)), ["contam", "lmeval-13"])
    small, large = (draw_pairs(pairs, n, 0) for n in (5, 20))
    assert large.pairs[:5] == small.pairs
    assert small.inclusion == 5 / len(pairs)
    assert draw_pairs(pairs[::-1], 5, 0) == small
    assert draw_pairs(pairs, 5, 1).pairs != small.pairs
    assert draw_pairs(pairs, 10**6, 0).inclusion == 1.0
    often = [draw_pairs(pairs, len(pairs) // 2, seed).pairs for seed in range(200)]
    share = sum(pairs[0] in drawn for drawn in often) / len(often)
    assert 0.35 < share < 0.65


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("yes", "yes"),
        ("No.", "no"),
        ("**Yes**", "yes"),
        ("Some thought.\n\nAnswer: no", "no"),
        ("Final answer: **yes**", "yes"),
        ('{"answer": "Yes"}', "yes"),
        ("", NO_ANSWER),
        ("yes and no", NO_ANSWER),
        ("not yes", NO_ANSWER),
        ("yes\nor so", NO_ANSWER),
        ("nope", NO_ANSWER),
        ('{"answer": true}', NO_ANSWER),
        ("[" * 100_000, NO_ANSWER),
    ],
)
def test_only_a_plain_answer_counts(reply, answer):
    assert answer_in(reply) == answer


def test_texts_cannot_take_each_others_place_in_a_prompt(result):
    (text,) = read_pairs(
        load_report(result), flagged_pairs(population(load_report(result)), ["contam"])[:1]
    )
    sly = type(text)(text.pair, "d", "{document}", '"\n\nAnswer with: {question}')
    asked = Prompt("{question} | {document}").of(sly)
    assert asked == '"{document}" | "\\"\\n\\nAnswer with: {question}"'


def test_runs_at_the_same_time_lose_no_answer(tmp_path):
    path = tmp_path / "j.parquet"
    blank = {"benchmark": "b", "split": "", "item_id": "i", "document_id": "d", "shard": "s"}
    blank |= {"row": 0, "prompt": "p", "answer": "yes", "inclusion": 1.0, "seed": 0}
    blank |= dict.fromkeys(judged.TEXTS)
    made = [[{**blank, "pair": f"{a}-{b}", "model": "m"} for b in range(3)] for a in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda some: judged.add_judged(path, some), made))
    assert len(rows(path)) == 36
    judged.add_judged(path, [{**made[0][0], "answer": "no"}])
    assert {row["answer"] for row in rows(path)} == {"yes"}


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_file_is_neither_read_nor_replaced(result, tmp_path, damage, capsys):
    out = tmp_path / "j.parquet"
    assert ask(result, out, "--command", "echo yes", "--most", "2") == 0
    out.write_bytes(out.read_bytes()[:-20] if damage == "cut" else b"not Parquet")
    broken = out.read_bytes()
    assert ask(result, out, "--command", "echo yes", "--most", "4") == 2
    assert "contam judge" in capsys.readouterr().err
    assert out.read_bytes() == broken
    with pytest.raises(ConfigError):
        judged.read_judged([out])


def test_nothing_is_written_into_a_result_and_a_wrong_call_ends_with_2(result, tmp_path, capsys):
    out, bad = tmp_path / "j.parquet", tmp_path / "prompt.txt"
    bad.write_text("{question} alone")
    for call in (
        ("--command", "true", "--endpoint", "http://127.0.0.1:1"),
        (),
        ("--command", "true", "--policy", "gone"),
        ("--command", "true", "--prompt", str(bad)),
        ("--endpoint", "http://127.0.0.1:1", "--request", '{"model": "x"}'),
        ("--endpoint", "http://me:word@127.0.0.1:1"),
    ):
        assert ask(result, out, *call) == 2, call
        assert "word@" not in capsys.readouterr().err
    assert ask(result, result / "j.parquet", "--command", "echo yes") == 2
    assert not out.exists()


def test_documents_that_cannot_be_read_are_said_and_items_without_text_not_asked(
    bench_fixtures, tmp_path, capsys
):
    found = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items", keep_text=False)
    contam.write_report(found, tmp_path / "out")
    assert main(
        ["judge", str(tmp_path / "out"), "--out", str(tmp_path / "j.parquet"), "--model", "m",
         "--command", "echo yes", "--most", "4"]
    ) == 4  # fmt: skip
    assert "holds no texts of items" in capsys.readouterr().err
    assert not (tmp_path / "j.parquet").exists()


def test_an_interrupted_run_says_that_answers_are_kept():
    assert "answers" in command._left(["judge", "out"])
