"""Say the ways out of errors with the fields and routes of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from contam.remedies import Own, Remedy

_ASK_LESS: Final = "send less at once, or make a job of it: POST /v1/jobs"
_OPERATOR: Final = "the operator finds more in the log"
_SCHEMA: Final = "GET /openapi.json describes what is taken"
_SPLIT: Final = "send it in several jobs"
_STORE: Final = "try again in a moment; the operator finds more in the log"
_FORM: Final = "look at what is in the form, and send it again"

BY_CODE: Final = {
    "ambiguous": "say which by shard and row, as evidence names them",
    "answer-too-large": "ask for fewer items or less evidence, or for lines (application/x-ndjson)",
    "bad-request": _SCHEMA,
    "benchmark": "look at the items: one a line, with a question; options.mapping names fields",
    "busy": "ask again later, or make a job of it",
    "cancelled": "send it again if it is still wanted",
    "changed": "answer again here to replace what you said",
    "concurrency-limit": "wait for answers before you ask again",
    "config": _OPERATOR,
    "conflict": "look at what is there, then send it again",
    "contam": _OPERATOR,
    "corpus": _OPERATOR,
    "damaged-body": "compress the body again, or send it as it is",
    "disk": "the operator must look at the disk of the data folder",
    "doubled-field": "send each field of an object once",
    "encoding": "send the body as it is, or as gzip or zstd",
    "forbidden": "ask the operator for a key that may do this",
    "form": _FORM,
    "form-token": "open the page again, and send it from there",
    "http": _SCHEMA,
    "idempotency-in-flight": "wait for its answer, or send another key",
    "idempotency-reused": "a new request needs a new key",
    "incomplete": "options.allow_missing takes an answer over what could be read",
    "index-busy": "ask again when it has been changed",
    "index-damaged": "the operator must restore the index, then reload it",
    "index-mismatch": "ask for other policies, or another index: GET /v1/indexes tells of each",
    "internal": "a defect of contam: report it with the request id or the id of the job",
    "invalid": _SCHEMA,
    "item-too-large": "one item is one line of JSON",
    "job-time": "send it in several jobs; the operator may allow more with max_job_s",
    "keys-unreadable": "the operator has to restore the store of keys",
    "label-not-kept": "give it again in a moment; the operator has to make room for it",
    "labels-damaged": "the operator has to mend the file that holds them",
    "log": "look at the logs that were sent: ids, scores, and one file for each run",
    "memory": _SPLIT,
    "method-not-allowed": "the header Allow names the methods offered",
    "missing-extra": _OPERATOR,
    "names-alike": "give each of them another name",
    "no-document": "evidence names the documents there are, by id, shard and row",
    "no-index": "GET /v1/indexes lists them",
    "no-item": "open the page again, and choose one of those it lists",
    "no-job": "it may be over its retention: see GET /v1/jobs",
    "no-jobs": _STORE,
    "no-pack": "/review lists them",
    "no-range": "ask for bytes that are there",
    "no-result": "wait for its end: GET /v1/jobs/ID; send it again if its result is gone",
    "no-table": "leave `table` out for the first one, or take a name that the reference lists",
    "no-verdicts": "name a check that is done",
    "not-found": "GET /openapi.json lists what is here",
    "not-local": "add a key: `contam keys add NAME`",
    "not-ready": "ask again when GET /readyz answers 200",
    "not-utf-8": "send JSON as UTF-8",
    "other-site": "open the page itself, and send it from there",
    "output": _OPERATOR,
    "pack-damaged": "the operator has to restore it or run the audit again",
    "plan-memory": "send the items in several jobs, or ask the operator for more memory",
    "policy": "GET /v1/policies lists them",
    "queue-full": "try again when some are done",
    "rate-limit": "wait for Retry-After seconds, then ask again",
    "scope-missing": "ask the operator for a key that has it",
    "shard": "the operator has to put the shard back",
    "signed-out": "sign in on the page, with a key",
    "store": _STORE,
    "store-busy": "try again in a moment",
    "store-damaged": _OPERATOR,
    "store-full": "the operator must free some space",
    "surrogate": "write such a character as both halves of its pair, or send it as UTF-8",
    "too-deep": "send the objects as the schema has them: GET /openapi.json",
    "too-large": _ASK_LESS,
    "too-many-items": _SPLIT,
    "too-many-requests": "wait for Retry-After seconds, then ask again",
    "too-slow": "send the body without pauses",
    "unauthorised": "send a key: Authorization: Bearer KEY",
    "unavailable": "ask again in a moment",
    "unpacked-too-large": _SPLIT,
    "unsupported-type": "GET /openapi.json names the kinds of content that are taken",
    "upload": "send JSON lines, an item a line, plain or gzip, or Parquet",
    "upload-too-large": "pack it with gzip, or send it in several jobs",
    "usage": _SCHEMA,
    "worker-crashed": "send it in several jobs; often memory ran out",
}
"""What helps by the code of what went wrong, where nothing better is known."""

SENTENCES: Final[Mapping[Remedy, str]] = {
    # What a caller cannot do anything about is for the operator.
    **{remedy: _OPERATOR for remedy in Remedy if isinstance(remedy.value, Own)},
    Remedy.CHECK_BENCHMARK_PATH: "check the path",
    Remedy.CHECK_PATH_OR_QUOTE_GLOB: "check the path",
    Remedy.NAME_BENCHMARK: "send its items",
    Remedy.MAP_ID: (
        'options.mapping: {{"id": "FIELD"}} names another id field, {{"id": ""}} makes ids from '
        "the content"
    ),
    Remedy.MAP_QUESTION: 'options.mapping: {{"question": "FIELD"}}',
    Remedy.MAP_QUESTION_ANSWER: (
        'name it, for example options.mapping: {{"question": "FIELD", "answer": "FIELD"}}'
    ),
    Remedy.MAP_QUESTION_OR_COLUMN: (
        'name it, for example options.mapping: {{"question": "FIELD"}}; without a header '
        '{{"question": "0"}}'
    ),
    Remedy.MAP_CHOICES: (
        'a field per choice can be named: options.mapping: {{"choices": "A+B+C+D"}}'
    ),
    Remedy.MAP_FIELDS: "look at the first of them, or map the fields with options.mapping",
    Remedy.WRITE_MAPPING: (
        'options.mapping is an object, for example {{"question": "prompt", "answer": "solution"}}'
    ),
    Remedy.NOTHING_QUOTED: "nothing of what was sent is quoted here",
    Remedy.VERIFY_AND_RELOAD: "the operator has to verify the index, then reload it",
    Remedy.NAME_INDEX_OR_FOLDER: "GET /v1/indexes lists those there are",
    Remedy.NAME_INDEX: "GET /v1/indexes lists those there are",
    Remedy.MAKE_HASHES: "make the hashes with `contam hash`",
    Remedy.MAKE_HASHES_BY_RECIPE: "make them with `contam hash` and the recipe of the index",
    Remedy.ASK_POLICIES_BY_HASHES: "ask for one of these, or send the text: POST /v1/check",
    Remedy.LIST_POLICIES: "GET /v1/policies lists them",
    Remedy.SHOW_POLICIES: "GET /v1/policies shows the known ones in full",
    Remedy.SCAN_CORPUS: "leave the policy out: GET /v1/policies tells which need no text",
    Remedy.LEAVE_BLOCKS_OUT: "leave the blocks out",
    Remedy.LEAVE_OUT_BLOCKS_OR_POLICIES: "leave out {policies}",
    Remedy.LEAVE_UNIT_OUT: "ask an index of that unit: GET /v1/indexes tells of each",
    Remedy.SCAN_AGAIN_AND_OVERWRITE: "send the check again",
    Remedy.GIVE_RESULT_FOLDER: "send the files as contam wrote them",
    Remedy.GIVE_RESULT_OR_LABELS: "send the files as contam wrote them",
    Remedy.SAY_UNLISTED: "is it the same version of the benchmark? Send the verdict of each item",
    Remedy.SAY_UNLISTED_OR_ALLOW_UNMATCHED: (
        "do the verdicts cover it? Leave its logs out, or set options.allow_unmatched"
    ),
    Remedy.ALLOW_UNMATCHED: (
        "is it the same version of the benchmark? options.allow_unmatched goes on"
    ),
    Remedy.ALLOW_UNMATCHED_TO_SCORE: (
        "is it the same version of the benchmark? options.allow_unmatched scores the rest"
    ),
    Remedy.NAME_LABEL_AND_QUESTION_COLUMNS: "send the verdicts as contam wrote them",
    Remedy.NAME_LABEL_COLUMNS_OR_UNLISTED: "send the verdicts as contam wrote them",
    Remedy.GIVE_THRESHOLD: "send the verdicts as contam wrote them",
    Remedy.NAME_LABEL_SCORES: "send the verdicts as contam wrote them",
    Remedy.LEAVE_OPTIONS_OF_LABELS: "send the verdicts as contam wrote them",
    Remedy.SAY_LABEL_COLUMN: "send the verdicts as contam wrote them",
    Remedy.SAY_DIRECTION_OR_ADD_COLUMN: (
        "options.lower_is_better or options.higher_is_better with {metric}, or a column "
        "higher_is_better of true and false"
    ),
    Remedy.SAY_DIRECTION: (
        "say it: options.lower_is_better or options.higher_is_better with {metric}"
    ),
    Remedy.SAY_ONE_DIRECTION: "name it in options.lower_is_better or in options.higher_is_better",
    Remedy.NAME_REFERENCE_BENCHMARK: (
        'options.references is an object {{"BENCHMARK": "REFERENCE"}}, as the logs name them'
    ),
    Remedy.NAME_QUESTION_COLUMN: (
        "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a column "
        'for the question (options.columns: {{"question": "COLUMN"}})'
    ),
    Remedy.NAME_SCORE_COLUMNS: (
        'name it: options.columns: {{"score": "COLUMN", "id": "COLUMN"}} (or "models": "A+B" for a '
        "column per model)"
    ),
    Remedy.NAME_ID_COLUMN: 'name one: options.columns: {{"id": "COLUMN"}}',
    Remedy.ADD_REPEAT_COLUMN: (
        'repeats need a column that numbers them: options.columns: {{"repeat": "COLUMN"}}'
    ),
    Remedy.TAKE_SCORES_AS_THEY_ARE: (
        "percentages want dividing by 100; other scores are taken as they are when "
        "options.columns names their column"
    ),
    Remedy.NAME_MAIN_METRIC: "options.metrics: '{benchmark}={metric}'",
    Remedy.ALLOW_PARTIAL: (
        "is the log whole? it reports no number to check that by; options.allow_partial scores "
        "what is there"
    ),
    Remedy.SEPARATE_RUNS: "give one of them, or keep the runs apart with options.separate_runs",
    Remedy.SEE_LOGS: "send whole logs",
    Remedy.SKIP_DAMAGED: "options.skip_damaged goes on without such logs",
    Remedy.ASK_KEPT_POLICIES: (
        "ask for {policies} alone, or another index: GET /v1/indexes tells of each"
    ),
    Remedy.SCAN_OR_BUILD_INDEX: (
        "ask another index, or for other policies: GET /v1/indexes tells of each"
    ),
}
"""What a caller can do, for every remedy whose sentence is not for all."""


def hint_for(code: str, said: str) -> str:
    """What was said to help, or what helps by the code."""
    return said or BY_CODE.get(code, _OPERATOR)
