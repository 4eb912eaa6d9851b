"""A small invented run of every tool, in the files and fields that the tool writes."""

import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

from tests.rescore.logs.small import QUESTIONS, TIME, lm_eval, write_every_eval, write_lines

RIGHT = (1, 0, 1, 1, 0, 0)
"""Which of the six questions are answered rightly."""


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def inspect_document(status="success"):
    return {
        "version": 2,
        "status": status,
        "eval": {"task": "lantern", "model": "m", "eval_id": "e", "dataset": {"shuffled": False}},
        "plan": {},
        "results": {
            "total_samples": 6,
            "scores": [
                {
                    "name": "match",
                    "scorer": "match",
                    "scored_samples": 6,
                    "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}},
                }
            ],
        },
        "samples": [
            {
                "id": place + 1,
                "epoch": 1,
                "input": QUESTIONS[place],
                "target": "x",
                "scores": {"match": {"value": "C" if right else "I"}},
            }
            for place, right in enumerate(RIGHT)
        ],
    }


def inspect_json(folder, status="success"):
    write_json(folder / "run.json", inspect_document(status))


def inspect_eval(folder, status="success"):
    whole = inspect_document(status)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "run.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in whole["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps({**whole, "samples": None}))


def helm(folder):
    instances = [
        {"id": f"id{i}", "split": "test", "input": {"text": question}, "references": []}
        for i, question in enumerate(QUESTIONS)
    ]
    name = {"name": "em", "split": "test"}
    spec = {"name": "lantern:model=m", "adapter_spec": {"model": "m", "method": "generation"}}
    write_json(folder / "run_spec.json", spec)
    write_json(
        folder / "scenario_state.json", {"request_states": [{"instance": i} for i in instances]}
    )
    write_json(folder / "stats.json", [{"name": name, "count": 1, "sum": 0.5}])
    rows = [
        {
            "instance_id": f"id{i}",
            "train_trial_index": 0,
            "stats": [{"name": name, "count": 1, "sum": right}],
        }
        for i, right in enumerate(RIGHT)
    ]
    write_json(folder / "per_instance_stats.json", rows)


def lighteval(folder):
    rows = [
        {
            "doc": {"query": f"Q: {question}\nA:", "id": str(i), "choices": ["x"], "gold_index": 0},
            "metric": {"em": float(right)},
        }
        for i, (question, right) in enumerate(zip(QUESTIONS, RIGHT, strict=True))
    ]
    details = folder / "details" / "org" / "m" / TIME
    details.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), details / f"details_lantern|0_{TIME}.parquet")
    results = {"results": {"lantern|0": {"em": 0.5}}, "config_general": {"model_name": "org/m"}}
    write_json(folder / "results" / "org" / "m" / f"results_{TIME}.json", results)


def openai_evals(folder):
    spec = {"completion_fns": ["m"], "eval_name": "lantern.test.v0", "split": "test", "run_id": "r"}
    rows = [{"spec": spec}]
    for i, (question, right) in enumerate(zip(QUESTIONS, RIGHT, strict=True)):
        name = f"lantern.test.{i}"
        rows.append({"sample_id": name, "type": "sampling", "data": {"prompt": question}})
        rows.append({"sample_id": name, "type": "match", "data": {"correct": bool(right)}})
    write_lines(folder / "record.jsonl", [*rows, {"final_report": {"accuracy": 0.5}}])


def human_eval(folder):
    rows = [
        {"task_id": f"Quay/{i}", "completion": "pass", "result": "passed", "passed": bool(right)}
        for i, right in enumerate(RIGHT)
    ]
    write_lines(folder / "samples_m.jsonl_results.jsonl", rows)


def eval_plus(folder):
    tasks = {
        f"Quay/{i}": [
            {
                "task_id": f"Quay/{i}",
                "solution": "def ring(n):\n    return n\n",
                "base_status": "pass" if right else "fail",
                "plus_status": "pass" if right and i else "timeout",
                "base_fail_tests": [],
                "plus_fail_tests": [[i]],
            }
        ]
        for i, right in enumerate(RIGHT)
    }
    document = {"date": "2026-01-02 03:04", "hash": "0f" * 16, "eval": tasks}
    write_json(folder / "org--tiny_vllm_temp_0.0_eval_results.json", document)


def swe_bench(folder, *, incomplete=()):
    names = [f"guild__ledger-{100 + i}" for i in range(6)]
    resolved = [name for name, right in zip(names, RIGHT, strict=True) if right]
    others = [name for name in names if name not in resolved and name not in incomplete]
    report = {
        "total_instances": 6,
        "submitted_instances": 6 - len(incomplete),
        "completed_instances": len(resolved) + 1,
        "resolved_instances": len(resolved),
        "unresolved_instances": 1,
        "empty_patch_instances": len(others) - 2,
        "error_instances": 1,
        "completed_ids": sorted([*resolved, others[0]]),
        "incomplete_ids": sorted(incomplete),
        "empty_patch_ids": others[2:],
        "submitted_ids": sorted([*resolved, *others]),
        "resolved_ids": resolved,
        "unresolved_ids": others[:1],
        "error_ids": others[1:2],
        "schema_version": 2,
    }
    write_json(folder / "org__tiny-1.5.nightly.json", report)


def swe_bench_instances(folder):
    for i, right in enumerate(RIGHT):
        name = f"guild__ledger-{100 + i}"
        found = {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": bool(right),
            "tests_status": {"FAIL_TO_PASS": {"success": ["t"], "failure": []}},
        }
        run = folder / "logs" / "run_evaluation" / "nightly" / "org__tiny-1.5"
        write_json(run / name / "report.json", {name: found})


def olmes(folder):
    stem = folder / "task-000-lantern"
    common = {"task_hash": "a" * 32, "model_hash": "b" * 32}
    metrics = [
        {"predicted_index_raw": 0, "correct_choice": 1 - right, "acc_raw": right, "price": 0.1}
        for right in RIGHT
    ]
    write_lines(
        stem.with_name(stem.name + "-predictions.jsonl"),
        [
            {
                "doc_id": i,
                "native_id": f"quay-{i}",
                "metrics": metric,
                "model_output": [{"sum_logits": -1.5, "num_tokens": 2}],
                "label": metric["correct_choice"],
                **common,
            }
            for i, metric in enumerate(metrics)
        ],
    )
    write_lines(
        stem.with_name(stem.name + "-requests.jsonl"),
        [
            {
                "request_type": "loglikelihood",
                "doc": {"id": f"quay-{i}", "question": question, "choices": ["one", "two"]},
                "request": {"context": f"Question: {question}\nAnswer:", "continuation": word},
                "idx": at,
                "task_name": "lantern",
                "doc_id": i,
                "native_id": f"quay-{i}",
                "label": 1 - RIGHT[i],
            }
            for i, question in enumerate(QUESTIONS)
            for at, word in enumerate((" one", " two"))
        ],
    )
    about = {
        "task_name": "lantern",
        **common,
        "model_config": {"model": "org/tiny", "model_type": "hf"},
        "task_config": {"primary_metric": "acc_raw", "split": "test"},
        "compute_config": {},
        "current_date": "2026-01-02 03:04:05 UTC",
        "num_instances": 6,
        "metrics": {"acc_raw": 0.5, "primary_score": 0.5, "extra_metrics": {"total_price": 0.6}},
        "task_idx": 0,
    }
    write_json(stem.with_name(stem.name + "-metrics.json"), about)
    write_lines(folder / "metrics-all.jsonl", [about])
    write_json(folder / "metrics.json", {"all_primary_scores": ["lantern: 0.5"], "tasks": [about]})


def opencompass(folder, *, parts=1, details=True):
    run = folder / "20260102_030405"
    rows = [
        {
            "origin_prompt": [{"role": "HUMAN", "prompt": question}],
            "prediction": " x",
            "gold": "x" if right else "y",
        }
        for question, right in zip(QUESTIONS, RIGHT, strict=True)
    ]
    size = -(-len(rows) // parts)
    for part in range(parts):
        name = "lantern.json" if parts == 1 else f"lantern_{part}.json"
        own = rows[part * size : (part + 1) * size]
        own = {str(i): row for i, row in enumerate(own)}
        write_json(run / "predictions" / "tiny-hf" / name, own)
    found = {
        str(i): {"prompt": row["origin_prompt"], "pred": "x", "refr": row["gold"]}
        | {"is_correct": bool(right)}
        for i, (row, right) in enumerate(zip(rows, RIGHT, strict=True))
    }
    results = {"accuracy": 50.0} | ({"details": found} if details else {})
    write_json(run / "results" / "tiny-hf" / "lantern.json", results)


def lm_eval_run(folder):
    lm_eval(folder, list(RIGHT))


def every_eval_ever(folder):
    write_every_eval(folder, RIGHT)


def table_csv(folder):
    folder.mkdir(parents=True)
    text = "".join(f"quay-{i},m,{right}\n" for i, right in enumerate(RIGHT))
    (folder / "scores.csv").write_text("id,model,score\n" + text, encoding="utf-8")


def table_rows():
    return [{"id": f"quay-{i}", "model": "m", "score": right} for i, right in enumerate(RIGHT)]


def table_lines(folder):
    write_lines(folder / "scores.jsonl", table_rows())


def table_json(folder):
    write_json(folder / "scores.json", table_rows())


def table_parquet(folder):
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(table_rows()), folder / "scores.parquet")


RUNS = {
    "lm-eval": lm_eval_run,
    "inspect-json": inspect_json,
    "inspect-eval": inspect_eval,
    "helm": helm,
    "lighteval": lighteval,
    "openai-evals": openai_evals,
    "human-eval": human_eval,
    "evalplus": eval_plus,
    "swe-bench": swe_bench,
    "swe-bench-instances": swe_bench_instances,
    "olmes": olmes,
    "opencompass": opencompass,
    "every-eval-ever": every_eval_ever,
    "csv": table_csv,
    "jsonl": table_lines,
    "json": table_json,
    "parquet": table_parquet,
}
"""Name -> what writes the run into a folder."""
