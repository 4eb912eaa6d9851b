"""Half logs, mixed-up logs, logs that contradict themselves: an error or a counted note, no number."""

from __future__ import annotations

import gzip
import json
import math
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.errors import LogError, UsageError
from contam.rescore.logs import find_groups, find_logs, read_logs, self_check
from tests.rescore.logs.small import QUESTIONS, TIME, lm_eval, lm_eval_group, write_lines


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


# ---------------------------------------------------------------------------------------- lm-eval


def test_a_sound_log_comes_out(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path, [1, 0, 1, 0])])
    self_check(log)
    assert (log.tool, log.model, log.benchmark) == ("lm-eval", "org/tiny", "lantern")
    assert log.column("acc,none").aggregate(np.array([True, False, True, True])) == 2 / 3
    assert [item.position for item in log.items] == [0, 1, 2, 3]


def test_a_packed_log_is_the_same_log_and_a_cut_one_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1, 0, 1])
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.benchmark, log.columns[0].reported) == ("lantern", 2 / 3)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(LogError, match="damaged or ends early"):
        read_logs([packed])


def test_a_log_cut_inside_a_row_names_the_line(tmp_path):
    path = lm_eval(tmp_path, [1, 0, 1])
    path.write_text(path.read_text()[:-40], encoding="utf-8")
    with pytest.raises(LogError, match=r"jsonl:3: not valid JSON"):
        read_logs([path])


def test_a_log_cut_between_rows_is_noticed_by_its_count(tmp_path):
    path = lm_eval(tmp_path, [1, 0, 1])
    path.write_text("".join(lines_of(path)[:2]), encoding="utf-8")
    with pytest.raises(LogError, match="2 documents, its results file counts 3"):
        read_logs([path])


def test_rows_that_do_not_give_the_reported_number_are_refused(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path, [1, 0, 1, 0], reported=0.75)])
    with pytest.raises(LogError, match=r"reports 0\.75, its rows give 0\.5"):
        self_check(log)


def test_a_number_off_by_less_than_a_millionth_is_the_number(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path, [1, 0], reported=0.5 + 9e-7)])
    self_check(log)
    (log,) = read_logs([lm_eval(tmp_path / "b", [1, 0], reported=0.5 + 2e-6)])
    with pytest.raises(LogError):
        self_check(log)


def test_a_row_that_stands_twice_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    path.write_text(path.read_text() + lines_of(path)[0], encoding="utf-8")
    with pytest.raises(LogError, match=r"jsonl:3: document 0 stands here again"):
        read_logs([path])


def test_an_empty_log_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1])
    path.write_text("", encoding="utf-8")
    with pytest.raises(LogError):
        read_logs([path])


def test_nan_is_no_score_and_contradicts_a_reported_number(tmp_path):
    path = lm_eval(tmp_path, [1, float("nan"), 0], reported=float("nan"))
    assert "NaN" in path.read_text()
    (log,) = read_logs([path])
    assert log.n_unscored == 1
    assert "1 items without a score" in log.notes
    with pytest.raises(LogError, match="reports nan"):
        self_check(log)


def test_scores_outside_0_to_1_are_noted(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path, [40, 60])])
    assert any("not within 0 to 1" in note for note in log.notes)


def test_an_infinite_score_is_refused(tmp_path):
    with pytest.raises(LogError, match="infinite"):
        read_logs([lm_eval(tmp_path, [1, float("inf")], reported=1)])


def test_two_runs_of_one_model_are_told_apart_and_said(tmp_path):
    lm_eval(tmp_path / "a", [1, 0])
    lm_eval(tmp_path / "b", [1, 1])
    logs = read_logs([tmp_path])
    assert all("one of 2 runs of this model on this benchmark" in log.notes for log in logs)


def test_the_same_log_under_two_names_is_refused_and_under_two_paths_is_one(tmp_path):
    path = lm_eval(tmp_path / "a", [1, 0])
    assert len(read_logs([path, tmp_path, path.parent])) == 1
    lm_eval(tmp_path / "b", [1, 0])
    with pytest.raises(LogError, match="the same log"):
        read_logs([tmp_path])


def test_rows_without_a_results_file_say_that_nothing_was_checked(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    (tmp_path / f"results_{TIME}.json").unlink()
    (log,) = read_logs([path])
    assert log.columns[0].reported is None
    assert any("nothing to check" in note for note in log.notes)


def test_a_results_file_alone_is_no_log(tmp_path):
    lm_eval(tmp_path, [1, 0]).unlink()
    with pytest.raises(LogError, match="only the means"):
        read_logs([tmp_path / f"results_{TIME}.json"])
    write_lines(tmp_path / "scores.csv", []).write_text("id,score\na,1\n", encoding="utf-8")
    ((path, reason),) = find_logs([tmp_path]).skipped
    assert path.endswith(f"results_{TIME}.json")
    assert "its rows are not beside it" in reason


def test_rows_of_old_versions_stand_in_the_order_of_their_filters(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    results = tmp_path / f"results_{TIME}.json"
    known = json.loads(results.read_text())
    known["results"]["lantern"] = {"acc,strict": 0.5, "acc_stderr,strict": 0.1, "acc,loose": 1.0}
    results.write_text(json.dumps(known), encoding="utf-8")
    rows = [json.loads(line) for line in lines_of(path)]
    for row in rows:
        del row["filter"], row["metrics"]
    write_lines(path, [*rows, *({**row, "acc": 1} for row in rows)])
    (log,) = read_logs([path])
    self_check(log)
    assert [(c.metric, c.reported) for c in log.columns] == [
        ("acc,strict", 0.5),
        ("acc,loose", 1.0),
    ]


def read_group(tmp_path, scores, reported):
    lm_eval_group(tmp_path, scores, reported)
    return read_logs([tmp_path])


TWO_TASKS = {"one": [1, 1, 1, 0], "two": [0, 1]}


@pytest.mark.parametrize(("reported", "way"), [(4 / 6, "micro"), (0.625, "macro")])
def test_the_weighting_of_a_group_is_seen_from_its_number(tmp_path, reported, way):
    (group,) = find_groups(read_group(tmp_path, TWO_TASKS, reported))
    assert group.weighting == way
    masks = [np.array([True, True, True, False]), np.array([True, False])]
    assert group.aggregate(masks) == {"micro": 0.75, "macro": 0.5}[way]


def test_a_group_number_that_no_weighting_gives_is_not_scored_again(tmp_path):
    (group,) = find_groups(read_group(tmp_path, TWO_TASKS, 0.9))
    with pytest.raises(LogError, match="neither way"):
        group.aggregate([np.ones(4, np.bool_), np.ones(2, np.bool_)])


def test_a_group_with_a_task_missing_is_not_scored_again(tmp_path):
    logs = read_group(tmp_path, TWO_TASKS, 4 / 6)
    (group,) = find_groups(logs[:1])
    assert "no log of two" in group.note


# ----------------------------------------------------------------------------------------- Inspect


def inspect_log(samples, values, *, status="success", total=None):
    return {
        "version": 2,
        "status": status,
        "eval": {
            "task": "lantern",
            "model": "m",
            "eval_id": "e",
            "dataset": {"shuffled": False},
            "config": {"epochs": 1},
        },
        "plan": {},
        "results": {
            "total_samples": len(samples) if total is None else total,
            "scores": [
                {
                    "name": "match",
                    "scorer": "match",
                    "scored_samples": len(values),
                    "metrics": {
                        "accuracy": {"name": "accuracy", "value": sum(values) / len(values)}
                    },
                }
            ],
        },
        "samples": samples,
    }


def sample(place, value, **more):
    return {
        "id": place + 1,
        "epoch": 1,
        "input": QUESTIONS[place % 6],
        "target": "x",
        "scores": {"match": {"value": value}},
        **more,
    }


def write_json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


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
    assert [item.position for item in found.items] == [0, 1, 2]


def test_a_run_that_did_not_end_is_refused(tmp_path):
    log = inspect_log([sample(0, "C")], [1], status="cancelled")
    with pytest.raises(LogError, match="status 'cancelled'"):
        read_logs([write_json(tmp_path / "a.json", log)])
    with pytest.raises(LogError, match="did not end"):
        read_logs([zipped(tmp_path / "b.eval", log, header=False)])


def test_a_cut_or_changed_zip_is_refused(tmp_path):
    log = inspect_log([sample(i, "C") for i in range(6)], [1] * 6)
    path = zipped(tmp_path / "a.eval", log)
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:size])
        with pytest.raises(LogError, match=r"a\.eval"):
            read_logs([path])
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:])
    with pytest.raises(LogError, match=r"a\.eval"):
        read_logs([path])


def test_samples_that_are_missing_are_noticed(tmp_path):
    log = inspect_log([sample(0, "C")], [1], total=2)
    with pytest.raises(LogError, match="1 samples, its header counts 2"):
        read_logs([write_json(tmp_path / "a.json", log)])


def test_a_score_that_is_no_score_does_not_pass_the_check(tmp_path):
    log = inspect_log([sample(0, "C"), sample(1, "perhaps")], [1, 0])
    (found,) = read_logs([write_json(tmp_path / "a.json", log)])
    with pytest.raises(LogError, match="counts 2 scored items, the log has 1"):
        self_check(found)


def test_choices_that_are_digits_are_choices(tmp_path):
    one = sample(0, "C", choices=["0", "4", "2"], target="B")
    (found,) = read_logs([write_json(tmp_path / "a.json", inspect_log([one], [1]))])
    assert found.items[0].choices == ("0", "4", "2")
    assert found.items[0].answer == "4"


# ------------------------------------------------------------------------------------- the others


def events(n_right, *, report=True):
    rows = [
        {
            "spec": {
                "completion_fns": ["m"],
                "eval_name": "lantern.test.v0",
                "split": "test",
                "run_id": "r",
            }
        }
    ]
    for place, question in enumerate(QUESTIONS):
        name = f"lantern.test.{place}"
        rows.append({"sample_id": name, "type": "sampling", "data": {"prompt": question}})
        rows.append({"sample_id": name, "type": "match", "data": {"correct": place < n_right}})
    return [*rows, {"final_report": {"accuracy": n_right / 6}}] if report else rows


def test_an_eval_without_its_final_report_did_not_end(tmp_path):
    with pytest.raises(LogError, match="did not end"):
        read_logs([write_lines(tmp_path / "a.jsonl", events(3, report=False))])


def test_a_sample_without_a_result_is_counted(tmp_path):
    rows = [
        row
        for row in events(3)
        if (row.get("sample_id"), row.get("type")) != ("lantern.test.5", "match")
    ]
    rows[-1]["final_report"]["accuracy"] = 3 / 5
    (log,) = read_logs([write_lines(tmp_path / "a.jsonl", rows)])
    self_check(log)
    assert (len(log.items), log.n_errors) == (6, 1)


def test_a_second_result_of_a_sample_is_refused(tmp_path):
    rows = events(3)
    with pytest.raises(LogError, match="a second result"):
        read_logs([write_lines(tmp_path / "a.jsonl", [*rows, rows[2]])])


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
    state = {
        "request_states": [
            {"instance": {"id": f"id{i}", "split": "test", "input": {"text": q}, "references": []}}
            for i, q in enumerate(QUESTIONS)
        ]
    }
    stats = [
        {
            "instance_id": f"id{i}",
            "train_trial_index": 0,
            "stats": [{"name": {"name": "em", "split": "test"}, "count": 1, "sum": i % 2}],
        }
        for i in range(6)
    ]
    spec = {"name": "lantern:model=m", "adapter_spec": {"model": "m", "method": "generation"}}
    write_json(tmp_path / "run_spec.json", spec)
    write_json(tmp_path / "per_instance_stats.json", stats)
    with pytest.raises(LogError, match=r"scenario_state\.json"):
        read_logs([tmp_path])
    write_json(tmp_path / "scenario_state.json", state)
    (log,) = read_logs([tmp_path])
    assert (log.benchmark, log.column("em").aggregate(np.ones(6, np.bool_))) == ("lantern", 0.5)
    copies = [{**row, "perturbation": {"name": "typos"}} for row in stats]
    write_json(tmp_path / "per_instance_stats.json", [*stats, *copies])
    assert len(read_logs([tmp_path])[0].items) == 6
    write_json(tmp_path / "per_instance_stats.json", stats[:3])
    with pytest.raises(LogError, match="no scores for 3 instances"):
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
    with pytest.raises(LogError, match="cannot read as Parquet"):
        read_logs([path])


@pytest.mark.parametrize("value", ["x", [1], {}])
def test_a_result_that_is_neither_right_nor_wrong_is_refused(tmp_path, value):
    rows = events(3)
    rows[2]["data"]["correct"] = value
    with pytest.raises(LogError, match="neither true nor false"):
        read_logs([write_lines(tmp_path / "a.jsonl", rows)])


@pytest.mark.parametrize("tool", ["lm-eval", "inspect", "openai-evals"])
def test_a_log_cut_anywhere_is_refused_or_whole(tmp_path, tool):
    if tool == "lm-eval":
        path = lm_eval(tmp_path, [1, 0, 1])
    elif tool == "inspect":
        path = write_json(
            tmp_path / "a.json", inspect_log([sample(0, "C"), sample(1, "I")], [1, 0])
        )
    else:
        path = write_lines(tmp_path / "a.jsonl", events(3))
    whole = path.read_bytes()
    for size in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(LogError):
            read_logs([path])
    path.write_bytes(whole.rstrip())
    self_check(read_logs([path])[0])


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


def test_an_empty_cell_is_not_scored_and_counted(tmp_path):
    (log,) = table(tmp_path, "id,score\na,1\nb,\nc,NaN\n")
    assert math.isnan(log.columns[0].score[1])
    assert log.n_unscored == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,score\na,1\na,0\n", "t.csv:3: item 'a' stands here again"),
        ("id,score\na,1\nb,maybe\n", "t.csv:3: 'maybe' is no score"),
        ("id,score\na,1\nb\n", "t.csv:3: 1 cells under 2 columns"),
        ("id,score,passed\na,1,1\n", "'score' or 'passed'"),
        ("id,length\na,17\n", "cannot tell which columns are scores"),
        ("id,note\na,hello\n", "cannot tell which columns are scores"),
        ("id,label\na,1\nb,0\n", "cannot tell which columns are scores"),
        ("score\n1\n", "neither an id nor a question"),
        ("id,score\n", "empty"),
        ("id,id\n1,1\n", "two columns have one name"),
    ],
)
def test_a_table_that_leaves_room_for_doubt_is_refused(tmp_path, text, said):
    with pytest.raises(LogError) as error:
        table(tmp_path, text)
    assert said in error.value.message


def test_repeats_need_a_column_and_become_a_mean(tmp_path):
    (log,) = table(tmp_path, "id,epoch,score\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    assert log.columns[0].score.tolist() == [0.5, 1]
    assert log.columns[0].repeats.tolist() == [2, 2]
    with pytest.raises(LogError, match="same repeat"):
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
    with pytest.raises(LogError, match="no column 'm'"):
        table(tmp_path, text, id="m")


def test_parquet_tables_and_json_lists_are_tables(tmp_path):
    rows = [{"model": "m", "benchmark": "b", "item_id": i, "score": i % 2} for i in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    write_json(tmp_path / "t.json", rows)
    for name in ("t.parquet", "t.json"):
        (log,) = read_logs([tmp_path / name])
        assert (log.model, log.benchmark, log.columns[0].score.tolist()) == ("m", "b", [0, 1, 0, 1])


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
    with pytest.raises(LogError, match="no such log"):
        read_logs([tmp_path / "none"])
    with pytest.raises(LogError, match="no logs of evaluations"):
        read_logs([tmp_path])
    write_lines(tmp_path / "items.jsonl", [{"question": QUESTIONS[0], "answer": "x"}])
    with pytest.raises(LogError):
        read_logs([tmp_path / "items.jsonl"])
    with pytest.raises(UsageError):
        read_logs([])
