"""Logs in the shared form, and as a benchmark."""

from contam.benchmark.read_files import read_benchmarks
from contam.errors import LogError
from contam.rescore.join import Joiner
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import benchmark_of, read_logs, write_items
from tests.rescore.logs.small import QUESTIONS, items_table, lm_eval, write_every_eval
from tests.rescore.panels import refused

CHOICES = ("0", "4", "B", "six")


def docs(n=4):
    return [
        {
            "question": QUESTIONS[i],
            "choices": [f"{c}{'' if c in 'B04' else i}" for c in CHOICES],
            "answer": i % 4,
        }
        for i in range(n)
    ]


def test_a_cut_instance_file_is_noticed_by_its_aggregate(tmp_path):
    whole, rows = write_every_eval(tmp_path, [1, 0, 1, 1])
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.model, log.benchmark, log.path) == ("org/tiny", "lantern", str(rows))
    assert (log.columns[0].reported, log.columns[0].higher_is_better) == (0.75, True)
    assert [item.prompt for item in log.items] == list(QUESTIONS[:4])
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join(lines[:3]), encoding="utf-8")
    with refused(LogError, "3 lines", 4):
        read_logs([rows])
    rows.write_text("".join([*lines[:3], lines[3].replace("1.0", "0.0")]), encoding="utf-8")
    with refused(LogError, rows):
        read_logs([rows])
    whole.unlink()
    rows.write_text("".join([*lines[:3], lines[0]]), encoding="utf-8")
    with refused(LogError, f"{rows}:4"):
        read_logs([rows])


def test_a_benchmark_made_of_logs_is_read_as_the_items_were(tmp_path):
    lm_eval(tmp_path / "a", [1, 0, 1, 1], docs=docs(), model="one")
    lm_eval(tmp_path / "b", [0, 0, 1, 1], docs=docs(), model="two")
    logs = read_logs([tmp_path])
    found = benchmark_of(logs)
    assert (len(found.rows), found.n_again, found.without) == (4, 4, ())
    write_items(found.rows, tmp_path / "lantern.jsonl")
    (benchmark,) = read_benchmarks([tmp_path / "lantern.jsonl"])
    assert benchmark.name == "lantern"
    for item, doc in zip(benchmark.items, docs(), strict=True):
        assert item.question == doc["question"]
        assert list(item.choices) == doc["choices"]
        assert item.answer == doc["choices"][doc["answer"]]
        assert item.answer_index == doc["answer"]
    for log in logs:
        joined = Joiner(items_table(benchmark.items)).join(log)
        assert joined.index.tolist() == [0, 1, 2, 3]
        assert joined.by["item"] == 4


def test_in_a_benchmark_made_of_logs_a_shared_question_stands_with_what_tells_items_apart(tmp_path):
    asked = {"question": "Who is the most likely suspect?", "choices": ["the cook", "the smith"]}
    tales = [
        {**asked, "narrative": f"{doc['question']} {at} kegs."} for at, doc in enumerate(docs())
    ]
    found = benchmark_of(read_logs([lm_eval(tmp_path, [1, 0, 1, 1], docs=tales)]))
    assert [row["question"] for row in found.rows] == [
        f"{tale['question']}\n{tale['narrative']}" for tale in tales
    ]


def test_one_id_with_two_texts_is_refused(tmp_path):
    lm_eval(tmp_path / "a", [1, 0], docs=docs(2))
    lm_eval(tmp_path / "b", [1, 0], docs=docs(2)[::-1], model="two")
    assert len(benchmark_of(read_logs([tmp_path])).rows) == 2
    lm_eval(tmp_path / "c", [1, 0], docs=docs(4)[2:], model="three")
    with refused(LogError, "item 0 of lantern"):
        benchmark_of(read_logs([tmp_path]))
