"""What the columns of a plain table are: one rule over all rows, and a question where it is open."""

import csv
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.benchmark.read_files import read_benchmarks
from contam.errors import LogError
from contam.rescore.logs.read import find_logs, read_logs
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from tests.cli.processes import contam_here
from tests.rescore.logs.small import QUESTIONS, lm_eval, write_lines
from tests.rescore.logs.tools import write_json
from tests.rescore.panels import refused

N = 12
ASKED = [
    f"Which of the {i + 2} tide gates of Orlbeck opened in spring {1900 + i}?" for i in range(N)
]
RIGHT = [i % 3 % 2 for i in range(N)]
FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=3)


def table(path, columns):
    """A CSV of columns by name; a value that is no list stands in every row."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = [c if isinstance(c, list) else [c] * N for c in columns.values()]
        writer.writerows(zip(*cells, strict=True))
    return path


def means(paths, **columns):
    """(model, items, mean) of every log."""
    logs = read_logs(paths if isinstance(paths, list) else [paths], columns=columns)
    return {log.model: (len(log.items), float(log.columns[0].score.mean())) for log in logs}


def asked(path, *flags, **columns):
    """The table is a question to the user: three lines at most, with these ways out."""
    with pytest.raises(LogError) as caught:
        read_logs([path], columns=columns)
    said = caught.value.hint
    assert all(flag in said for flag in flags), said
    assert len(str(caught.value)) + len(said) < 500
    return caught.value


IDS = [f"orl-{i}" for i in range(N)]
WRONG = [1 - score for score in RIGHT]
HERON, PLOVER = (N, sum(RIGHT) / N), (N, sum(WRONG) / N)


@pytest.mark.parametrize("first", ["", "0", "1"])
def test_an_empty_first_reply_drops_no_model(tmp_path, first):
    for model, replies in (("heron", ["a"] * N), ("plover", [first, *["a"] * (N - 1)])):
        rows = [
            {"task_id": f"o/{i}", "question": q, "reply": reply, "is_solved": bool(right)}
            for i, (q, reply, right) in enumerate(zip(ASKED, replies, RIGHT, strict=True))
        ]
        write_lines(tmp_path / f"{model}.jsonl", rows)
    assert means([tmp_path]) == {"heron": HERON, "plover": HERON}


@pytest.mark.parametrize(
    "text",
    [
        "id,heron,plover\na1,1,0\na2,n.d.,0\na3,0,1\n",
        "model,a1,a2,a3\nheron,1,0,1\nplover,0,n.d.,1\nwren,1,1,0\n",
        "model,id,score\nheron,a1,n.d.\nheron,a2,n.d.\n",
    ],
)
def test_a_word_among_scores_is_named_with_its_row_and_drops_nothing(tmp_path, text):
    path = tmp_path / "orlbeck.csv"
    path.write_text(text, "utf-8")
    line = 1 + next(at for at, row in enumerate(text.splitlines()) if "n.d." in row)
    with refused(LogError, f"{path}:{line}", "'n.d.'"):
        read_logs([path])


def test_flags_of_an_answer_are_no_models(tmp_path):
    rows = {"id": IDS, "solved": RIGHT, "cut_off": WRONG, "used_tool": 1}
    path = table(tmp_path / "heron.csv", rows)
    asked(path, "--columns score=solved", "--columns models=cut_off+used_tool")
    assert means(path, score="solved") == {"heron": HERON}
    with pytest.raises(LogError):
        find_logs([tmp_path])


@pytest.mark.parametrize("run", ["req", None, "shared"])
def test_a_field_that_is_alike_in_all_rows_is_no_id(tmp_path, run):
    runs = {"req": [f"req-{i}" for i in range(N)], "shared": [f"req-{i // 4}" for i in range(N)]}
    rows = [
        {"question": q, "model": "heron", "score": right, "raw": {"index": i % 4 if run else 0}}
        | ({"run_id": runs[run][i]} if run else {})
        for i, (q, right) in enumerate(zip(ASKED, RIGHT, strict=True))
    ]
    assert means(write_lines(tmp_path / "a.jsonl", rows)) == {"heron": HERON}


def test_what_is_known_of_items_is_no_model(tmp_path):
    about = {"difficulty": 0.2, "human_rate": 0.9, "average": 0.5, "label": 1, "hallucinated": 1}
    path = table(tmp_path / "s.csv", {"": list(range(N)), "id": IDS, **about, "heron": RIGHT,
                                      "plover": WRONG})  # fmt: skip
    assert means(path) == {"heron": HERON, "plover": PLOVER}
    (note, *_) = read_logs([path])[0].notes
    assert "models=heron+plover" in note
    with pytest.raises(LogError):
        read_logs([table(tmp_path / "t.csv", {"id": IDS, "hallucinated": RIGHT})])
    path = table(tmp_path / "u.csv", {"id": IDS, "score": RIGHT, "max_score": 1, "confidence": 0.5})
    assert means(path) == {"u": HERON}


def test_a_column_of_clusters_puts_items_together_whatever_judges_them(tmp_path):
    stories = [f"story {i // 4}" for i in range(N)]
    score = [float(i < 4) for i in range(N)]
    logs = table(
        tmp_path / "s.csv", {"id": IDS, "question": ASKED, "score": score, "told": stories}
    )
    for labels in ({"id": IDS}, {"question": ASKED}):
        given = table(tmp_path / "leaked.csv", {**labels, "leaked": [int(i < 4) for i in range(N)]})
        apart, together = (
            rescore(given, logs, columns=columns, settings=FAST).rows("scores")[0]
            for columns in (None, {"cluster": "told"})
        )
        assert (apart["n_clusters"], together["n_clusters"]) == (N, 3)
        assert apart["gap_p"] < 0.05 < together["gap_p"]


def test_a_gold_column_beside_models_is_a_question(tmp_path):
    path = table(tmp_path / "s.csv", {"id": IDS, "correct": 1, "heron": RIGHT, "plover": WRONG})
    asked(path, "--columns score=correct", "--columns models=heron+plover")
    assert means(path, models="heron+plover") == {"heron": HERON, "plover": PLOVER}


def test_a_row_per_model_is_read_and_what_may_be_one_is_asked(tmp_path):
    cells = {item: [RIGHT[i], WRONG[i]] for i, item in enumerate(IDS)}
    both = {"heron": HERON, "plover": PLOVER}
    models = ["heron", "plover"]
    assert means(table(tmp_path / "m.csv", {"model": models, **cells})) == both
    rows = [
        {"subject_id": model, "responses": {item: own[at] for item, own in cells.items()}}
        for at, model in enumerate(models)
    ]
    assert means(write_lines(tmp_path / "irt.jsonl", rows)) == both
    unsure = table(tmp_path / "i.csv", {"id": models, **cells})
    asked(unsure, "--columns model=id", "--columns id=id")
    assert means(unsure, model="id") == both
    assert len(means(unsure, id="id")) == N
    bare = tmp_path / "bare.csv"
    bare.write_text("0.0,1.0,1.0\n1.0,1.0,0.0\n", encoding="utf-8")
    asked(bare, "first line")
    means_alone = table(tmp_path / "b.csv", {"model": models, "sums": [0.5, 1], "maps": [1, 0.25]})
    asked(means_alone)


def test_a_record_per_model_is_asked_for_and_named_after_its_model(tmp_path):
    rows = [
        {
            "question": q,
            "small": {"is_correct": bool(r), "text": "a"},
            "large": {"is_correct": not r},
        }
        for q, r in zip(ASKED, RIGHT, strict=True)
    ]
    path = write_lines(tmp_path / "s.jsonl", rows)
    asked(path, "--columns models=small.is_correct+large.is_correct")
    found = means(path, models="small.is_correct+large.is_correct")
    assert found == {"small": HERON, "large": PLOVER}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", lambda rows: "\n".join(map(json.dumps, rows))),
        ("s.jsonl", lambda rows: json.dumps(rows, indent=1)),
        ("s.jsonl", json.dumps),
        ("s.json", lambda rows: json.dumps({"rows": rows})),
    ],
)
def test_the_content_tells_lines_from_lists(tmp_path, name, text):
    rows = [{"id": i, "score": r} for i, r in zip(IDS, RIGHT, strict=True)]
    (tmp_path / name).write_text(text(rows), encoding="utf-8")
    assert means([tmp_path]) == {"s": HERON}


def test_predictions_beside_answers_are_no_scores_in_file_and_folder(tmp_path):
    rows = [
        {"question_id": i, "question": q, "answer": "A", "pred": "B"} for i, q in enumerate(ASKED)
    ]
    path = write_json(tmp_path / "m.json", rows)
    for given in (path, tmp_path):
        with pytest.raises(LogError, match=r"'pred'.*'answer'"):
            read_logs([given])


def test_means_and_files_without_a_named_column_stop_no_folder_and_are_said(tmp_path):
    table(tmp_path / "items.csv", {"id": IDS, "model": "heron", "solved_at": RIGHT})
    (tmp_path / "leaderboard.csv").write_text("model,score\nheron,0.5\n", encoding="utf-8")
    write_lines(tmp_path / "calls.jsonl", [{"url": "x", "ms": 3}])
    labels = table(tmp_path.with_name(f"{tmp_path.name}.csv"), {"id": IDS, "leaked": RIGHT})
    columns = {"score": "solved_at"}
    found = find_logs([tmp_path], columns=columns)
    assert (len(found.logs), len(found.skipped), found.damaged) == (1, 2, ())
    done = rescore(labels, tmp_path, columns=columns, settings=FAST)
    assert len(done.run["inputs"]["skipped"]) == 2
    assert "calls.jsonl" in done.summary
    with refused(LogError, "leaderboard.csv"):
        read_logs([tmp_path / "leaderboard.csv"])
    with refused(LogError, "'solved_at'"):
        read_logs([tmp_path / "calls.jsonl"], columns=columns)


def test_tables_that_share_no_item_are_not_called_one_benchmark(tmp_path):
    for name in ("baskets_heron", "gates_heron"):
        rows = [{"question": f"{name[:5]} {q}", "correct": 1} for q in ASKED]
        write_lines(tmp_path / f"{name}.jsonl", rows)
    with pytest.raises(LogError, match=r"baskets_heron.*gates_heron"):
        read_logs([tmp_path])
    (log,) = read_logs([tmp_path / "gates_heron.jsonl"])
    assert log.benchmark == tmp_path.name


def test_results_of_lm_eval_that_hold_the_samples_are_read(tmp_path):
    rows = lm_eval(tmp_path / "a", RIGHT, docs=[{"question": q, "answer": "x"} for q in ASKED])
    samples = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    (results,) = rows.parent.glob("results_*.json")
    document = json.loads(results.read_text("utf-8"))
    whole = write_json(tmp_path / "b" / "out.json", {**document, "samples": {"lantern": samples}})
    old = write_json(tmp_path / "c" / "pretrained__tiny_lantern.jsonl", samples)
    write_json(tmp_path / "c" / "results.json", document)
    first, *others = read_logs([rows, whole, old.parent])
    for log in others:
        assert [item.question for item in log.items] == ASKED
        assert (log.model, log.benchmark) == (first.model, first.benchmark)
        assert log.columns[0].reported == log.columns[0].score.mean() == HERON[1]


def test_a_reply_that_looks_like_a_score_is_none(tmp_path):
    rows = [
        {"question": q, "answer": "yes", "response": "yes" if r else "no", "correct": r}
        for q, r in zip(ASKED, RIGHT, strict=True)
    ]
    assert means(write_lines(tmp_path / "heron.jsonl", rows)) == {"heron": HERON}


def records():
    return [
        {
            "doc": {"id": f"quay-{i}", "stem": question, "options": ["one", "two"]},
            "metrics": {"acc": i % 2, "f1": i / 10},
        }
        for i, question in enumerate(QUESTIONS)
    ]


def write(tmp_path, form):
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(records()), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"
    return write_lines(tmp_path / "t.jsonl", records())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_dotted_name_reaches_into_records(tmp_path, form):
    columns = {
        "score": "metrics.f1",
        "id": "doc.id",
        "question": "doc.stem",
        "choices": "doc.options",
    }
    (log,) = read_logs([write(tmp_path, form)], columns=columns)
    assert log.columns[0].metric == "metrics.f1"
    assert log.columns[0].score.tolist() == [i / 10 for i in range(6)]
    assert [(item.item_id, item.question) for item in log.items] == [
        (f"quay-{i}", question) for i, question in enumerate(QUESTIONS)
    ]
    assert log.items[0].choices == ("one", "two")
    wide = {"models": "metrics.acc+metrics.f1", "id": "doc.id"}
    one, two = read_logs([write(tmp_path, form)], columns=wide)
    assert (one.model, two.model) == ("metrics.acc", "metrics.f1")


def test_a_lone_score_in_a_record_is_found_and_one_of_two_is_asked_for(tmp_path):
    rows = [{"doc_id": i, "metrics": {"acc": i % 2, "seconds": 1.5}} for i in range(4)]
    (log,) = read_logs([write_lines(tmp_path / "t.jsonl", rows)])
    assert log.columns[0].score.tolist() == [0, 1, 0, 1]
    rows = [{"doc_id": i, "metrics": {"acc": 1, "em": 0}} for i in range(4)]
    with pytest.raises(LogError, match=r"'metrics\.acc' or 'metrics\.em'"):
        read_logs([write_lines(tmp_path / "t.jsonl", rows)])
    with refused(LogError, "'metrics.bleu'", "'metrics.em'"):
        read_logs([tmp_path / "t.jsonl"], columns={"score": "metrics.bleu"})
    with pytest.raises(LogError, match=r"no column 'a\+b'"):
        read_logs([tmp_path / "t.jsonl"], columns={"score": "metrics.em", "question": "a+b"})


def test_a_field_that_some_records_lack_is_no_score(tmp_path):
    rows = [{"id": "a", "m": {"acc": 1}}, {"id": "b", "m": {}}, {"id": "c", "m": None}]
    (log,) = read_logs([write_lines(tmp_path / "t.jsonl", rows)], columns={"score": "m.acc"})
    assert log.n_unscored == 2


def test_a_benchmark_is_made_of_a_plain_table(tmp_path):
    lines = "".join(f'"{question}",{i % 2}\n' for i, question in enumerate(QUESTIONS))
    (tmp_path / "quay.csv").write_text(f"question,score\n{lines}", encoding="utf-8")
    out = tmp_path / "items.jsonl"
    done = contam_here("items", "--from-logs", tmp_path / "quay.csv", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "6 items of a benchmark without a name" in done.stdout
    (benchmark,) = read_benchmarks([out])
    assert [item.question for item in benchmark.items] == list(QUESTIONS)
    assert len({item.item_id for item in benchmark.items}) == 6
    assert all(item.item_id != item.question for item in benchmark.items)


def test_a_result_of_contam_in_a_folder_of_logs_is_named_and_read_by_nobody(
    bench_fixtures, tmp_path
):
    shutil.copytree(bench_fixtures / "logs", tmp_path / "logs")
    alone = find_logs([tmp_path / "logs"])
    result = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items" / "brook_math.jsonl")
    contam.write_report(result, tmp_path / "logs" / "verdicts")
    beside = find_logs([tmp_path / "logs"])
    assert [log.path for log in beside.logs] == [log.path for log in alone.logs]
    named = {path for path, _ in beside.skipped} - {path for path, _ in alone.skipped}
    assert str(tmp_path / "logs" / "verdicts" / "evidence.parquet") in named
