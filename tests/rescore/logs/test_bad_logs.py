"""Half logs, mixed-up logs, logs that contradict themselves: an error or a counted note, no number."""

import gzip
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.errors import LogError, UsageError
from contam.rescore.logs.model import find_groups, self_check
from contam.rescore.logs.read import find_logs, read_logs
from tests.rescore.logs.small import QUESTIONS, TIME, lm_eval, lm_eval_group, write_lines
from tests.rescore.logs.tools import helm, inspect_document, openai_evals, write_json
from tests.rescore.panels import refused


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


# ---------------------------------------------------------------------------------------- lm-eval


def test_a_packed_log_is_the_same_log_and_a_cut_one_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1, 0, 1])
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.benchmark, log.columns[0].reported) == ("lantern", 2 / 3)
    packed.write_bytes(packed.read_bytes()[:-9])
    with refused(LogError, packed):
        read_logs([packed])


@pytest.mark.parametrize(
    ("spoilt", "facts"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:-40]], ["jsonl:3"]),
        (lambda lines: lines[:2], ["2", "3"]),
        (lambda lines: [*lines, lines[0]], ["jsonl:4", "0"]),
    ],
    ids=["cut inside a row", "cut between rows", "a row twice"],
)
def test_rows_that_are_not_those_of_the_run_are_refused_with_place_and_numbers(
    tmp_path, spoilt, facts
):
    path = lm_eval(tmp_path, [1, 0, 1])
    path.write_text("".join(spoilt(lines_of(path))), encoding="utf-8")
    with refused(LogError, *facts):
        read_logs([path])


@pytest.mark.parametrize(
    ("scores", "reported", "given"),
    [([1, 0, 1, 0], 0.75, "0.75"), ([1, 0], 0.5 + 2e-6, "0.500002"), ([1, 0], 0.5 + 9e-7, None)],
)
def test_rows_give_the_reported_number_to_a_millionth_or_are_refused(
    tmp_path, scores, reported, given
):
    (log,) = read_logs([lm_eval(tmp_path, scores, reported=reported)])
    if given is None:
        self_check(log)
        return
    with refused(LogError, given, "0.5"):
        self_check(log)


def test_a_metric_whose_own_mean_is_nan_is_said_to_be_so(tmp_path):
    path = lm_eval(tmp_path, [1, float("nan"), 0], reported=float("nan"))
    (log,) = read_logs([path])
    self_check(log)
    assert (log.columns[0].kind, "NaN" in log.columns[0].note) == ("none", True)
    (log,) = read_logs([lm_eval(tmp_path / "b", [1, float("nan"), 0], reported=0.5)])
    self_check(log)
    assert log.n_unscored == 1


def test_an_infinite_score_is_refused(tmp_path):
    with refused(LogError, "acc,none"):
        read_logs([lm_eval(tmp_path, [1, float("inf")], reported=1)])


def test_two_runs_of_one_model_are_told_apart_and_said(tmp_path):
    lm_eval(tmp_path / "a", [1, 0])
    lm_eval(tmp_path / "b", [1, 1])
    logs = read_logs([tmp_path])
    assert all(any("2 runs" in note for note in log.notes) for log in logs)


def test_the_same_log_under_two_names_is_noted_and_under_two_paths_is_one(tmp_path):
    path = lm_eval(tmp_path / "a", [1, 0])
    assert len(read_logs([path, tmp_path, path.parent])) == 1
    lm_eval(tmp_path / "b", [1, 0])
    notes = [note for log in read_logs([tmp_path]) for note in log.notes]
    assert sum("the same bytes" in note for note in notes) == 1


def test_rows_without_a_results_file_say_that_nothing_was_checked(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    (tmp_path / f"results_{TIME}.json").unlink()
    (log,) = read_logs([path])
    assert log.columns[0].reported is None
    assert any("nothing to check" in note for note in log.notes)


def test_a_results_file_alone_is_no_log(tmp_path):
    lm_eval(tmp_path, [1, 0]).unlink()
    with refused(LogError, f"results_{TIME}.json", "--log_samples"):
        read_logs([tmp_path / f"results_{TIME}.json"])
    write_lines(tmp_path / "scores.csv", []).write_text("id,score\na,1\n", encoding="utf-8")
    ((path, reason),) = find_logs([tmp_path]).skipped
    assert path.endswith(f"results_{TIME}.json")
    assert "its rows are not beside it" in reason


@pytest.mark.parametrize(
    ("name", "results", "as_list", "by_item"),
    [
        ("pretrained__org__tiny_lantern.jsonl", "results.json", True, False),
        (f"samples_lantern_{TIME}.json", f"results_{TIME}.json", False, False),
        (f"samples_lantern_{TIME}.jsonl", f"results_{TIME}.json", False, True),
    ],
)
def test_layouts_of_old_versions_give_the_same_scores(tmp_path, name, results, as_list, by_item):
    new = lm_eval(tmp_path / "new", [1, 0, 0])
    known = json.loads((new.parent / f"results_{TIME}.json").read_text())
    known["results"]["lantern"] = {
        "acc,strict": 1 / 3,
        "acc_stderr,strict": 0.1,
        "acc,loose": 2 / 3,
    }
    strict = [json.loads(line) for line in lines_of(new)]
    for row in strict:
        del row["filter"], row["metrics"]
    loose = [{**row, "acc": score} for row, score in zip(strict, [1, 1, 0], strict=True)]
    pairs = zip(strict, loose, strict=True)
    rows = [row for pair in pairs for row in pair] if by_item else [*strict, *loose]
    old = tmp_path / "old"
    old.mkdir()
    write_json(old / results, known)
    if as_list:
        write_json(old / name, rows)
    else:
        write_lines(old / name, rows)
    (log,) = read_logs([old])
    self_check(log)
    assert (log.tool, log.model, log.benchmark) == ("lm-eval", "org/tiny", "lantern")
    found = {column.metric: column.score.tolist() for column in log.columns}
    assert found == {"acc,strict": [1, 0, 0], "acc,loose": [1, 1, 0]}


def group_of(tmp_path, reported, n_logs=2):
    lm_eval_group(tmp_path, {"one": [1, 1, 1, 0], "two": [0, 1]}, reported)
    (group,) = find_groups(read_logs([tmp_path])[:n_logs])
    return group


@pytest.mark.parametrize(("reported", "way"), [(4 / 6, "micro"), (0.625, "macro")])
def test_the_weighting_of_a_group_is_seen_from_its_number(tmp_path, reported, way):
    group = group_of(tmp_path, reported)
    assert group.weighting == way
    masks = [np.array([True, True, True, False]), np.array([True, False])]
    assert group.aggregate(masks) == {"micro": 0.75, "macro": 0.5}[way]


@pytest.mark.parametrize(
    ("reported", "n_logs", "fact"), [(0.9, 2, "0.9"), (4 / 6, 1, "two")], ids=["no way", "a part"]
)
def test_a_group_whose_number_no_weighting_gives_is_not_scored_again(
    tmp_path, reported, n_logs, fact
):
    group = group_of(tmp_path, reported, n_logs)
    assert (group.weighting, fact in group.note) == ("unknown", True)
    with pytest.raises(LogError):
        group.aggregate([np.ones(4, np.bool_), np.ones(2, np.bool_)])


# ----------------------------------------------------------------------------------------- Inspect


def inspect_log(samples, values, *, total=None):
    log = inspect_document()
    results = log["results"]
    results["total_samples"] = len(samples) if total is None else total
    results["scores"][0]["scored_samples"] = len(values)
    results["scores"][0]["metrics"]["accuracy"]["value"] = sum(values) / len(values)
    return {**log, "samples": samples}


def sample(place, value, **more):
    return {
        "id": place + 1,
        "epoch": 1,
        "input": QUESTIONS[place % 6],
        "target": "x",
        "scores": {"match": {"value": value}},
        **more,
    }


def zipped(path, log, *, header=True):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in log["samples"]:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
        if header:
            archive.writestr("header.json", json.dumps({**log, "samples": None}))
    return path


@pytest.mark.parametrize("form", ["json", "eval"])
def test_letters_are_scores_and_a_log_without_reductions_is_read(tmp_path, form):
    log = inspect_log([sample(0, "C"), sample(1, "P"), sample(2, "I")], [1, 0.5, 0])
    path = (
        write_json(tmp_path / "a.json", log) if form == "json" else zipped(tmp_path / "a.eval", log)
    )
    (found,) = read_logs([path])
    self_check(found)
    assert found.columns[0].score.tolist() == [1, 0.5, 0]


def test_an_archive_without_its_header_is_refused(tmp_path):
    log = inspect_log([sample(0, "C")], [1])
    with pytest.raises(LogError, match=r"b\.eval"):
        read_logs([zipped(tmp_path / "b.eval", log, header=False)])


def test_a_changed_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "a.eval", inspect_log([sample(i, "C") for i in range(6)], [1] * 6))
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:])
    with pytest.raises(LogError, match=r"a\.eval"):
        read_logs([path])


def test_samples_that_are_missing_are_noticed(tmp_path):
    log = inspect_log([sample(0, "C")], [1], total=2)
    with refused(LogError, "1 samples", 2):
        read_logs([write_json(tmp_path / "a.json", log)])


def test_a_score_that_is_no_score_does_not_pass_the_check(tmp_path):
    log = inspect_log([sample(0, "C"), sample(1, "perhaps")], [1, 0])
    (found,) = read_logs([write_json(tmp_path / "a.json", log)])
    with refused(LogError, "match", 2, 1):
        self_check(found)


# ------------------------------------------------------------------------------------- the others


def events(folder):
    openai_evals(folder)
    return [json.loads(line) for line in lines_of(folder / "record.jsonl")]


def test_a_sample_without_a_result_is_counted(tmp_path):
    rows = [
        row
        for row in events(tmp_path)
        if (row.get("sample_id"), row.get("type")) != ("lantern.test.5", "match")
    ]
    rows[-1]["final_report"]["accuracy"] = 3 / 5
    (log,) = read_logs([write_lines(tmp_path / "record.jsonl", rows)])
    self_check(log)
    assert (len(log.items), log.n_errors) == (6, 1)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda rows: [*rows, rows[2]],
        *(
            lambda rows, value=value: [
                *rows[:2],
                {**rows[2], "data": {"correct": value}},
                *rows[3:],
            ]
            for value in ("x", [1], {})
        ),
    ],
    ids=["twice", "a word", "a list", "a record"],
)
def test_a_result_that_stands_twice_or_is_neither_right_nor_wrong_is_refused(tmp_path, spoilt):
    with refused(LogError, "record.jsonl:"):
        read_logs([write_lines(tmp_path / "record.jsonl", spoilt(events(tmp_path)))])


def test_pass_at_k_is_the_unbiased_estimate(tmp_path):
    rows = [
        {"task_id": f"T/{task}", "completion": "", "passed": try_ < right}
        for task, right in enumerate((0, 1, 4))
        for try_ in range(5)
    ]
    (log,) = read_logs([write_lines(tmp_path / "samples_m.jsonl_results.jsonl", rows)])
    assert log.model == "m"
    assert log.column("pass@1").score.tolist() == [0, 0.2, 0.8]
    assert log.column("pass@2").score == pytest.approx([0, 0.4, 1.0])
    assert (log.column("pass@2").repeats == 5).all()


def test_a_helm_run_without_its_texts_or_with_half_its_rows_is_refused(tmp_path):
    helm(tmp_path)
    path = tmp_path / "per_instance_stats.json"
    stats = json.loads(path.read_text())
    write_json(path, [*stats, *({**row, "perturbation": {"name": "typos"}} for row in stats)])
    (log,) = read_logs([tmp_path])
    assert (len(log.items), log.column("em").aggregate(np.ones(6, np.bool_))) == (6, 0.5)
    write_json(path, stats[:3])
    with pytest.raises(LogError) as caught:
        read_logs([tmp_path])
    assert 3 in caught.value.statement.facts
    (tmp_path / "scenario_state.json").unlink()
    with pytest.raises(LogError, match=r"scenario_state\.json"):
        read_logs([tmp_path])


def test_details_of_old_lighteval_are_read(tmp_path):
    rows = [
        {"example": q, "full_prompt": f"Q: {q}\nA:", "gold": ["x"], "metrics": {"em": i % 2}}
        for i, q in enumerate(QUESTIONS)
    ]
    details = tmp_path / "details"
    details.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), details / f"details_lantern|0_{TIME}.parquet")
    (log,) = read_logs([details])
    assert log.tool == "lighteval"
    assert log.items[2].prompt == QUESTIONS[2]
    assert log.column("em").aggregate(np.ones(6, np.bool_)) == 0.5
    path = next(details.iterdir())
    path.write_bytes(path.read_bytes()[:-20])
    with refused(LogError, path.name, "Parquet"):
        read_logs([path])


# ---------------------------------------------------------------------------------------- tables


def table(tmp_path, text, name="t.csv", **columns):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_logs([path], columns=columns)


@pytest.mark.parametrize(
    "words", [("TRUE", "FALSE"), ("1", "0"), ("yes", "No"), ("C", "I"), ("1.0", "0.0")]
)
def test_words_for_right_and_wrong_are_scores(tmp_path, words):
    (log,) = table(tmp_path, f"id,score\na,{words[0]}\nb,{words[1]}\n")
    assert log.columns[0].score.tolist() == [1, 0]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_wide_table_has_a_model_per_column(tmp_path, mark):
    text = mark.join(["\ufeffid", "m1", "m2"]) + "\n" + mark.join("a10") + "\n" + mark.join("b01")
    one, two = table(tmp_path, text)
    assert (one.model, one.columns[0].score.tolist()) == ("m1", [1, 0])
    assert (two.model, two.columns[0].score.tolist()) == ("m2", [0, 1])
    assert one.items is two.items


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("id,score\na,1\na,0\n", ["t.csv:3", "'a'"]),
        ("id,score\na,1\nb,maybe\n", ["t.csv:3", "'maybe'"]),
        ("id,score\na,1\nb\n", ["t.csv:3", "1 cells"]),
        ("id,score,passed\na,1,1\n", ["'score' or 'passed'"]),
        ("id,length\na,17\n", ["'length'", "score=COLUMN"]),
        ("id,note\na,hello\n", ["'note'", "score=COLUMN"]),
        ("id,label\na,1\nb,0\n", ["'label'", "score=COLUMN"]),
        ("score\n1\n", ["--columns id=COLUMN"]),
        ("id,score\n", ["t.csv"]),
        ("id,id\n1,1\n", ["t.csv"]),
    ],
)
def test_a_table_that_leaves_room_for_doubt_is_refused(tmp_path, text, facts):
    with refused(LogError, *facts):
        table(tmp_path, text)


def test_repeats_need_a_column_and_become_a_mean(tmp_path):
    (log,) = table(tmp_path, "id,epoch,score\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    assert log.columns[0].score.tolist() == [0.5, 1]
    assert log.columns[0].repeats.tolist() == [2, 2]
    with refused(LogError, "t.csv:3"):
        table(tmp_path, "id,epoch,score\na,1,1\na,1,0\n")


def test_columns_can_be_named(tmp_path):
    text = "n,who,length,good\na,m,17,1\nb,m,18,0\n"
    (log,) = table(tmp_path, text, id="n", model="who", score="good")
    assert (log.model, log.columns[0].metric, log.columns[0].score.tolist()) == (
        "m",
        "good",
        [1, 0],
    )
    (wide,) = table(tmp_path, text, id="n", models="good")
    assert wide.model == "good"
    with pytest.raises(UsageError):
        table(tmp_path, text, colour="n")
    with refused(LogError, "'m'", "good"):
        table(tmp_path, text, id="m")


# -------------------------------------------------------------------------------------- all of them


def test_half_a_character_in_an_answer_does_not_stop_a_log(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    path.write_text(path.read_text().replace('["x"]', '["\\ud83d"]'), encoding="utf-8")
    (log,) = read_logs([path])
    self_check(log)
    question = write_lines(tmp_path / "t.jsonl", []).with_name("t.jsonl")
    question.write_text('{"question": "half \\ud83d", "score": 1}\n', encoding="utf-8")
    (log,) = read_logs([question])
    assert log.items[0].question == "half \ufffd"


def test_json_nested_beyond_measure_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(LogError):
        read_logs([path])


def test_paths_that_hold_no_log_are_errors(tmp_path):
    with refused(LogError, tmp_path / "none"):
        read_logs([tmp_path / "none"])
    with refused(LogError, tmp_path, "Inspect"):
        read_logs([tmp_path])
    write_lines(tmp_path / "items.jsonl", [{"question": QUESTIONS[0], "answer": "x"}])
    with pytest.raises(LogError):
        read_logs([tmp_path / "items.jsonl"])
    with pytest.raises(UsageError):
        read_logs([])
