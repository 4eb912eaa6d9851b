"""Small invented logs and items, written as the tools write theirs."""

import hashlib
import json

from contam.benchmark.items import BenchItem
from contam.benchmark.keys import content_keys, text_key
from contam.tables import schemas

TIME = "2026-01-02T03-04-05.000006"
QUESTIONS = (
    "How many bells hang in the tower of Orrin?",
    "Which river feeds the mill at Dunmarrow?",
    "Who kept the ledger of the glassblowers' guild?",
    "What colour is the third lantern on the quay?",
    "When was the salt road to Velm closed for good?",
    "Why does the Hesk clock strike thirteen at noon?",
)


def item(name, question, choices=(), answer=None, passage=None, benchmark="lantern"):
    return BenchItem(
        benchmark=benchmark,
        split="",
        item_id=str(name),
        question=question,
        choices=tuple(choices),
        answer=answer,
        passage=passage,
    )


def items_table(items, *, keep_text=True):
    """What a scan of these items would write as `items.parquet`."""
    keys = [content_keys(one) for one in items]
    columns = {
        "benchmark": [one.benchmark for one in items],
        "split": [one.split for one in items],
        "item_id": [one.item_id for one in items],
        "key_version": ["ck1"] * len(items),
        "passage_key": [text_key(one.passage) if one.passage else None for one in items],
        "question_key": [key.text_key for key in keys],
        "choices_key": [
            text_key("\n".join(sorted(one.choices))) if one.choices else None for one in items
        ],
        "answer_key": [text_key(one.answer) if one.answer else None for one in items],
        "item_key": [key.item_key for key in keys],
        "full_key": [key.full_key for key in keys],
        **{
            f"{part}_tokens": [0] * len(items)
            for part in ("passage", "question", "choices", "answer")
        },
    }
    if keep_text:
        columns["passage"] = [one.passage for one in items]
        columns["question"] = [one.question for one in items]
        columns["choices"] = [list(one.choices) or None for one in items]
        columns["answer"] = [one.answer for one in items]
    return schemas.item_table(columns)


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lm_eval(folder, scores, *, docs=None, task="lantern", model="org/tiny", reported=None, **row):
    """A sample file and its results file; `scores` per document under the filter `none`."""
    docs = docs or [
        {"question": QUESTIONS[i % 6] + " " * (i // 6), "answer": "x"} for i in range(len(scores))
    ]
    rows = [
        {
            "doc_id": place,
            "doc": doc,
            "target": "x",
            "arguments": {"gen_args_0": {"arg_0": "Q: ?"}},
            "resps": [["x"]],
            "filtered_resps": ["x"],
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": f"h{place}",
            "acc": score,
            **row,
        }
        for place, (doc, score) in enumerate(zip(docs, scores, strict=True))
    ]
    known = [s for s in scores if s is not None]
    mean = sum(known) / len(known) if reported is None else reported
    results = {
        "results": {task: {"acc,none": mean, "sample_len": len(scores)}},
        "configs": {task: {"metric_list": [{"metric": "acc", "aggregation": "mean"}]}},
        "higher_is_better": {task: {"acc": True}},
        "lm_eval_version": "0.4.13",
        "model_name": model,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"results_{TIME}.json").write_text(json.dumps(results), encoding="utf-8")
    return write_lines(folder / f"samples_{task}_{TIME}.jsonl", rows)


def lm_eval_group(folder, scores, reported, *, model="m", name="all", docs=None):
    """Tasks of one run, and a results file that reports one number for all of them."""
    docs = docs or {}
    claims = {"results": {}, "configs": {}, "model_name": model, "lm_eval_version": "0"}
    for task, values in scores.items():
        lm_eval(folder, values, task=task, model=model, docs=docs.get(task), metrics=["acc"])
        known = json.loads((folder / f"results_{TIME}.json").read_text())
        claims["results"] |= known["results"]
        claims["configs"] |= known["configs"]
    claims["groups"] = {name: {"acc,none": reported}}
    claims["group_subtasks"] = {name: list(scores)}
    (folder / f"results_{TIME}.json").write_text(json.dumps(claims), encoding="utf-8")


def write_every_eval(folder, scores, *, model="org/tiny", task="lantern"):
    """The aggregate and the samples of a run in the form of Every Eval Ever."""
    name = {"evaluation_name": f"{task}/acc", "evaluation_result_id": "acc"}
    rows = [
        {
            **name,
            "evaluation_id": "e",
            "model_id": model,
            "sample_id": str(place),
            "interaction_type": "single_turn",
            "input": {"raw": QUESTIONS[place], "reference": ["x"], "choices": None},
            "evaluation": {"score": float(score)},
        }
        for place, score in enumerate(scores)
    ]
    path = write_lines(folder / "run_samples.jsonl", rows)
    result = {
        **name,
        "source_data": {"dataset_name": task},
        "metric_config": {"lower_is_better": False},
        "score_details": {
            "score": sum(scores) / len(scores),
            "uncertainty": {"num_samples": len(scores)},
        },
    }
    about = {
        "evaluation_id": "e",
        "eval_library": {"name": "some", "version": "1"},
        "evaluation_results": [result],
        "detailed_evaluation_results": {
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(path.read_bytes()).hexdigest(),
            "total_rows": len(rows),
        },
    }
    whole = folder / "run.json"
    whole.write_text(json.dumps(about), encoding="utf-8")
    return whole, path
