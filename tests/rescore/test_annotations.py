"""Verdicts that are a file of labels: own annotations, decon's report, a published list."""

import csv
import json
import string

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.errors import LogError, UsageError
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore, write_rescore
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import lm_eval, write_lines
from tests.rescore.panels import refused

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=5)
N = 40
QUESTIONS = tuple(
    f"Which of the {i + 2} lamplighters on the {i + 3}rd quay of Orrin's harbour keeps key no. {i}?"
    for i in range(N)
)
DIRTY = frozenset(range(0, N, 4))
SCORES = tuple(1 if i in DIRTY or i % 3 == 0 else 0 for i in range(N))
CLEAN_MEAN = sum(SCORES[i] for i in range(N) if i not in DIRTY) / (N - len(DIRTY))


@pytest.fixture
def logs(tmp_path):
    docs = [{"question": question, "answer": "x"} for question in QUESTIONS]
    lm_eval(tmp_path / "logs", list(SCORES), docs=docs)
    return tmp_path / "logs"


def named_log(tmp_path, n=N, name="scores.csv"):
    """A log without a text, whose ids are names."""
    path = tmp_path / name
    lines = "".join(f"quay/{i},m,{SCORES[i]}\n" for i in range(n))
    path.write_text("id,model,score\n" + lines, encoding="utf-8")
    return path


def rows(words=("contaminated", "clean"), *, text=True):
    found = []
    for i in range(N):
        row = {"id": f"quay/{i}", "label": words[0] if i in DIRTY else words[1]}
        found.append(row | ({"question": QUESTIONS[i]} if text else {}))
    return found


def write(path, found):
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(found[0]))
            writer.writeheader()
            writer.writerows(found)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(found), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(found), encoding="utf-8")
    else:
        write_lines(path, found)
    return path


def scored(verdicts, logs, **options):
    result = rescore(verdicts, logs, settings=FAST, **options)
    (row,) = [one for one in result.rows("scores") if one["subset_by"] == "all"]
    return row, result.run


def counts(row):
    return row["n_clean"], row["n_flagged"], row["n_not_checkable"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
@pytest.mark.parametrize("text", [True, False])
def test_own_labels_judge_by_content_or_by_id_in_every_format(tmp_path, logs, suffix, text):
    path = write(tmp_path / f"mine{suffix}", rows(text=text))
    row, run = scored(path, logs if text else named_log(tmp_path))
    assert counts(row) == (30, 10, 0)
    assert row["policy"] == "mine"
    assert row["clean"] == pytest.approx(CLEAN_MEAN)
    source = run["inputs"]["verdicts"]
    assert (source["file"], source["rows"], source["unmatched"]) == (str(path), N, 0)
    assert source["labels"]["mine"]["contaminated"] == 10


@pytest.mark.parametrize(
    "words",
    [
        ("Dirty", "CLEAN"),
        ("leaked", "not_leaked"),
        (True, False),
        (1, 0),
        (1.0, 0.0),
        ("yes", "No"),
        ("input-and-label contamination", "clean"),
        ("Suspicious", "clean"),
    ],
)
def test_the_words_for_a_leak_are_many(tmp_path, logs, words):
    found = [{"contaminated": one.pop("label"), **one} for one in rows(words)]
    row, _ = scored(write(tmp_path / "mine.jsonl", found), logs)
    assert counts(row) == (30, 10, 0)


def test_an_empty_label_is_not_checkable_and_an_unknown_one_an_error(tmp_path, logs):
    row, _ = scored(write(tmp_path / "mine.jsonl", rows(("dirty", None))), logs)
    assert counts(row) == (0, 10, 30)
    path = write(tmp_path / "mine.csv", rows(("dirty", "B")))
    with refused(LogError, "mine.csv:3", "'B'"):
        scored(path, logs)


def test_scores_need_a_threshold(tmp_path, logs):
    found = [
        {"question": q, "overlap": 0.9 if i in DIRTY else i / 1000} for i, q in enumerate(QUESTIONS)
    ]
    path = write(tmp_path / "mine.parquet", found)
    with refused(UsageError, "'overlap'", "--threshold"):
        scored(path, logs)
    row, run = scored(path, logs, threshold=0.9)
    assert counts(row) == (30, 10, 0)
    assert run["inputs"]["verdicts"]["threshold"] == 0.9
    assert counts(scored(path, logs, threshold=0.91)[0]) == (40, 0, 0)
    found[3]["overlap"] = None
    assert counts(scored(write(path, found), logs, threshold=0.9)[0]) == (29, 10, 1)


def test_a_list_says_nothing_of_other_items_unless_the_caller_does(tmp_path):
    log = named_log(tmp_path)
    path = write(tmp_path / "list.csv", [{"id": f"quay/{i}"} for i in sorted(DIRTY)])
    with refused(UsageError, path, "--unlisted clean"):
        scored(path, log)
    row, run = scored(path, log, unlisted="clean")
    assert counts(row) == (30, 10, 0)
    assert any("all its items are taken as contaminated" in note for note in run["notes"])
    assert any("30 items of the logs not in it, clean" in note for note in run["notes"])
    row, _ = scored(path, log, unlisted="not_checkable")
    assert counts(row) == (0, 10, 30)


def test_unlisted_items_are_never_clean_by_themselves(tmp_path, logs):
    path = write(tmp_path / "mine.jsonl", rows()[:30])
    with refused(LogError, "10 of 40", path, "--unlisted"):
        scored(path, logs)
    row, _ = scored(path, logs, allow_unmatched=True)
    assert counts(row) == (22, 8, 10)
    assert counts(scored(path, logs, unlisted="clean")[0]) == (32, 8, 0)


def test_rows_that_fit_no_log_are_counted_and_above_a_share_an_error(tmp_path):
    log = named_log(tmp_path, n=20)
    path = write(tmp_path / "list.csv", [{"id": f"quay/{i}"} for i in sorted(DIRTY)])
    with refused(LogError, path, "5 of its 10"):
        scored(path, log, unlisted="clean")
    row, run = scored(path, log, unlisted="clean", allow_unmatched=True)
    assert counts(row) == (15, 5, 0)
    assert run["inputs"]["verdicts"]["unmatched"] == 5
    assert any("5 of its items are not in the logs" in note for note in run["notes"])
    other = write(tmp_path / "other.csv", [{"id": "pier/1"}])
    with refused(LogError, other, "1 items"):
        scored(other, log, unlisted="clean", allow_unmatched=True)


def decon_rows(*, score=0.95):
    marks = str.maketrans(dict.fromkeys(string.punctuation, " "))
    return [
        {
            "training_file": "shard.jsonl",
            "training_line": 7 * i + again,
            "eval_dataset": "lantern",
            "eval_key": "lantern",
            "eval_line": i,
            "eval_instance_index": i,
            "split": "test",
            "contamination_score": score - again / 10,
            "method": "simple",
            "eval_question_text": " ".join(QUESTIONS[i].lower().translate(marks).split()),
            "eval_answer_text": "x",
            "fingerprint": "0" * 16,
            "is_correct": True,
        }
        for i in sorted(DIRTY)
        for again in range(2)
    ]


def test_a_report_of_decon_is_read_by_its_cleaned_questions(tmp_path, logs):
    path = write_lines(tmp_path / "decon.jsonl", decon_rows())
    with refused(LogError, "30 of 40"):
        scored(path, logs)
    row, run = scored(path, logs, unlisted="clean")
    assert counts(row) == (30, 10, 0)
    assert row["clean"] == pytest.approx(CLEAN_MEAN)
    assert run["inputs"]["verdicts"]["rows"] == 20
    assert run["inputs"]["verdicts"]["items"] == 10
    # The best match of an item decides, whatever the order of the rows.
    path = write_lines(tmp_path / "decon.jsonl", decon_rows()[::-1])
    assert counts(scored(path, logs, unlisted="clean", threshold=0.9)[0]) == (30, 10, 0)
    assert counts(scored(path, logs, unlisted="clean", threshold=0.96)[0]) == (40, 0, 0)


def test_our_own_table_of_verdicts_has_a_policy_each(tmp_path):
    log = named_log(tmp_path)
    found = [
        {"benchmark": "lantern", "split": "", "item_id": row["id"], "policy": policy}
        | {"label": row["label"] if policy == "a" else "suspect", "score": 0.5}
        for row in rows(text=False)
        for policy in ("a", "b")
    ]
    path = write(tmp_path / "verdicts.parquet", found)
    result = rescore(path, log, settings=FAST)
    whole = [row for row in result.rows("scores") if row["subset_by"] == "all"]
    assert {row["policy"]: counts(row) for row in whole} == {"a": (30, 10, 0), "b": (0, 40, 0)}
    assert scored(path, log, policies=["a"])[0]["policy"] == "a"
    with refused(UsageError, "policy c"):
        rescore(path, log, policies=["c"], settings=FAST)


def test_two_labels_of_one_item_are_an_error(tmp_path):
    path = write(tmp_path / "mine.csv", [*rows(text=False), {"id": "quay/0", "label": "clean"}])
    with refused(LogError, "mine.csv:42", "quay/0", "clean", "contaminated"):
        scored(path, named_log(tmp_path))


def test_bare_numbers_join_only_where_they_begin_alike(tmp_path, logs):
    found = [{"id": i, "label": "dirty" if i in DIRTY else "clean"} for i in range(N)]
    row, _ = scored(write(tmp_path / "mine.csv", found), logs)
    assert counts(row) == (30, 10, 0)
    shifted = [{**one, "id": one["id"] + 1} for one in found]
    with refused(LogError, "from 0", "at 1"):
        scored(write(tmp_path / "shifted.csv", shifted), logs)
    docs = [{"question": q[::-1], "answer": "x"} for q in QUESTIONS]
    lm_eval(logs / "more", list(SCORES), docs=docs, task="pier")
    with refused(LogError, "lantern, pier", "`benchmark`"):
        rescore(tmp_path / "mine.csv", logs, settings=FAST)


def test_columns_can_be_named_and_lie_in_records(tmp_path):
    found = [
        {"item": {"name": row["id"]}, "judge": {"says": row["label"]}, "text": "because"}
        for row in rows(text=False)
    ]
    path = write(tmp_path / "mine.jsonl", found)
    log = named_log(tmp_path)
    columns = {"id": "item.name", "label": "judge.says", "question": ""}
    assert counts(scored(path, log, verdict_columns=columns)[0]) == (30, 10, 0)
    with refused(LogError, "'judge.said'"):
        scored(path, log, verdict_columns={**columns, "label": "judge.said"})
    with refused(UsageError, "'colour'"):
        scored(path, log, verdict_columns={"colour": "x"})


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "no rows"),
        ("id,label\n", "no rows"),
        ("name,label\nquay/0,dirty\n", "id=COLUMN"),
        ("id,label\nquay/0\n", "1 cells"),
        ("id,score\nquay/0,much\n", "'much'"),
        ("id,question,label\nquay/0,Why?,dirty\nquay/1,,clean\n", "mine.csv:3"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    ],
)
def test_a_file_that_is_no_list_of_labels_is_refused(tmp_path, text, fact):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    with refused(LogError, path, fact):
        scored(path, named_log(tmp_path), threshold=0.5 if "score" in text else None)


def test_a_table_of_a_result_folder_is_no_file_of_labels(tmp_path):
    path = write(tmp_path / "verdicts.parquet", rows(text=False))
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with refused(UsageError, path, f"folder: {tmp_path}"):
        scored(path, named_log(tmp_path))


def test_options_for_a_file_do_not_go_with_a_folder(tmp_path):
    with refused(UsageError, tmp_path, "--threshold"):
        rescore(tmp_path, named_log(tmp_path), threshold=0.5)
    with refused(UsageError, "'dirty'"):
        scored(write(tmp_path / "m.csv", rows(text=False)), named_log(tmp_path), unlisted="dirty")


def test_the_command_takes_a_file_and_writes_the_same_twice(tmp_path):
    log = named_log(tmp_path)
    path = write(tmp_path / "list.csv", [{"id": f"quay/{i}"} for i in sorted(DIRTY)])
    command = ["rescore", "--verdicts", path, "--logs", log, "--least", "5", "--out"]
    assert_one_line_error(contam_here(*command, tmp_path / "a"), 2, "neither labels nor scores")
    done = contam_here(*command, tmp_path / "a", "--unlisted", "clean", "--json")
    assert done.returncode == 0, done.stderr
    assert "labels from elsewhere" in done.stderr
    (row,) = [score for score in json.loads(done.stdout)["scores"] if score["subset_by"] == "all"]
    assert counts(row) == (30, 10, 0)
    same = RescoreSettings(least=5)
    write_rescore(rescore(path, log, unlisted="clean", settings=same), tmp_path / "b")
    for name in ("scores.parquet", "sweep.parquet", "summary.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), float("-inf")])
def test_a_threshold_is_a_number(tmp_path, logs, threshold):
    found = [{"question": question, "overlap": 0.9} for question in QUESTIONS]
    path = write(tmp_path / "mine.jsonl", found)
    with refused(UsageError, threshold):
        scored(path, logs, threshold=threshold)


@pytest.mark.parametrize("answers", [(1, 0), (True, False), ("1", "0"), (1.0, 0.0)])
def test_answers_of_a_benchmark_are_no_labels_of_a_leak(tmp_path, logs, answers):
    """Rows of a benchmark, listed as leaked, have the right answer in a column `label`."""
    path = write(tmp_path / "leaked.jsonl", rows(answers)[:20])
    with refused(UsageError, "--verdict-columns label=label"):
        scored(path, logs, unlisted="clean")
    row, _ = scored(path, logs, unlisted="clean", verdict_columns={"label": "label"})
    assert counts(row) == (35, 5, 0)
    row, _ = scored(path, logs, unlisted="clean", verdict_columns={"label": ""})
    assert counts(row) == (20, 20, 0)


def test_a_benchmark_of_which_a_file_names_no_item_is_not_clean_by_itself(tmp_path, logs):
    listed = [{"question": QUESTIONS[i]} for i in sorted(DIRTY)]
    path = write(tmp_path / "leaked.jsonl", listed)
    other = [
        {"question": f"On pier {i}, who paints boat {i * i}?", "answer": "x"} for i in range(9)
    ]
    lm_eval(logs / "more", [1] * 9, docs=other, task="pier")
    with refused(LogError, "none of the 9 items of pier", "--unlisted not_checkable"):
        rescore(path, logs, settings=FAST, unlisted="clean")

    def of_pier(**options):
        result = rescore(path, logs, settings=FAST, **options)
        (row,) = [
            one
            for one in result.rows("scores")
            if one["subset_by"] == "all" and one["benchmark"] == "pier"
        ]
        return counts(row), result.run["notes"]

    assert of_pier(unlisted="not_checkable")[0] == (0, 0, 9)
    found, notes = of_pier(unlisted="clean", allow_unmatched=True)
    assert found == (9, 0, 0)
    assert any("it names none of the 9 items of pier" in note for note in notes)


def test_an_item_that_may_be_a_listed_one_is_not_clean(tmp_path):
    """Other choices under a listed question, or two listed items with the log's question."""
    docs = [{"question": q, "choices": [f"oak {i}", f"elm {i}"]} for i, q in enumerate(QUESTIONS)]
    lm_eval(tmp_path / "logs", list(SCORES), docs=docs)
    listed = [{"question": QUESTIONS[i], "choices": docs[i]["choices"]} for i in sorted(DIRTY)]
    listed[0] = {**listed[0], "choices": ["ash", "fir"]}
    path = write_lines(tmp_path / "leaked.jsonl", listed)
    options = {"unlisted": "clean", "allow_unmatched": True}
    row, run = scored(path, tmp_path / "logs", **options)
    assert counts(row) == (30, 9, 1)
    assert any(
        "1 items of the logs may be some of its items, not_checkable" in n for n in run["notes"]
    )
    listed[:1] = [{**listed[0], "choices": choices} for choices in (["ash"], ["fir"])]
    for doc in docs:
        doc["choices"] = []
    log = write_lines(
        tmp_path / "plain.jsonl",
        [{"question": q, "model": "m", "score": s} for q, s in zip(QUESTIONS, SCORES, strict=True)],
    )
    row, _ = scored(write_lines(path, listed), log, **options)
    assert counts(row) == (30, 9, 1)


@pytest.mark.parametrize("form", ["rows", "arrow", "pandas", "polars"])
def test_labels_in_memory_are_those_of_a_file(form, logs, tmp_path):
    write(tmp_path / "labels.parquet", rows())
    if form in ("pandas", "polars"):
        package = pytest.importorskip(form, reason=f"{form} is not installed")
        table = package.DataFrame(rows())
    else:
        table = rows() if form == "rows" else pa.Table.from_pylist(rows())
    filed = rescore(tmp_path / "labels.parquet", logs, settings=FAST)
    found = rescore(table, logs, settings=FAST)
    # As text: NaN equals nothing.
    assert all(repr(found.rows(name)) == repr(filed.rows(name)) for name in filed.tables)
    assert found.run["inputs"]["verdicts"]["file"] == "memory:labels"
    html = found._repr_html_()
    assert html.startswith("<table>")
    assert all(row["model"] in html for row in found.rows("scores"))
    if form != "polars":
        pytest.importorskip("pandas")
        assert found.to_pandas().shape == found.tables["scores"].shape
    with refused(UsageError, "labels"):
        rescore({"a": table, "b": table}, logs, settings=FAST)
    with refused(UsageError, "'verdicts'"):
        found.to_polars("verdicts")


def test_a_result_is_judged_by_as_its_folder_is(logs, tmp_path):
    documents = [{"text": QUESTIONS[i]} for i in sorted(DIRTY)]
    items = [{"id": str(i), "question": text, "answer": "x"} for i, text in enumerate(QUESTIONS)]
    result = contam.scan(documents, {"boats": items})
    contam.write_report(result, tmp_path / "verdicts")
    filed = rescore(tmp_path / "verdicts", logs, settings=FAST)
    for given in (result, contam.load_report(tmp_path / "verdicts")):
        found = rescore(given, logs, settings=FAST)
        assert found.summary == filed.summary
        assert all(repr(found.rows(name)) == repr(filed.rows(name)) for name in filed.tables)
        with pytest.raises(UsageError):
            rescore(given, logs, threshold=0.5)


def numbered(path, benchmark, n=20, **more):
    """Labels of a benchmark whose items are numbered: every fourth is contaminated."""
    found = [
        {"benchmark": benchmark, "id": i, "label": "clean" if i % 4 else "contaminated", **more}
        for i in range(n)
    ]
    return write(path, found)


def test_labels_of_another_benchmark_are_not_joined_by_row_numbers(tmp_path):
    log = tmp_path / "brook.csv"
    log.write_text("id,model,score\n" + "".join(f"{i},m,{i % 2}\n" for i in range(20)), "utf-8")
    path = numbered(tmp_path / "mine.csv", "lantern")
    with refused(LogError, "--benchmark-as brook=lantern"):
        rescore(path, log, settings=FAST, allow_unmatched=True)
    with refused(UsageError, "pier"):
        rescore(path, log, settings=FAST, benchmark_as={"pier": "lantern"})
    done = rescore(path, log, settings=FAST, benchmark_as={"brook": "lantern"})
    assert {row["benchmark"] for row in done.rows("scores")} == {"lantern"}
    assert rescore(numbered(tmp_path / "own.csv", "Brook"), log, settings=FAST).rows("scores")


def test_copies_are_clustered_by_the_texts_of_the_logs(tmp_path):
    """Two copies of a question are one draw, whoever has its text: 20 ways to deal six, not 924."""
    lines = "".join(f'n-{i},"{QUESTIONS[i // 2]}",m,{int(i < 6)}\n' for i in range(12))
    log = tmp_path / "brook.csv"
    log.write_text(f"id,question,model,score\n{lines}", encoding="utf-8")
    for text in (False, True):
        found = [
            {"id": f"n-{i}", "label": "dirty" if i < 6 else "clean"}
            | ({"question": QUESTIONS[i // 2]} if text else {})
            for i in range(12)
        ]
        path = write(tmp_path / f"labels-{text}.csv", found)
        done = rescore(path, log, settings=RescoreSettings(permutations=999, least=3))
        (row,) = [row for row in done.rows("scores") if row["subset_by"] == "all"]
        assert row["gap_p"] > 0.05
        assert not any("alone" in note for note in done.run["notes"])


def test_a_threshold_does_not_win_over_labels_unsaid(tmp_path, logs):
    path = write(tmp_path / "mine.csv", [{**row, "score": 0.1} for row in rows()])
    with refused(UsageError, "'label'"):
        rescore(path, logs, threshold=0.5, settings=FAST)
