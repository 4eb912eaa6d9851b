"""The way out that a problem or a failed job names, in words of the API, not of a command line."""

from __future__ import annotations

import json
import re
from typing import Final

_ASK_LESS: Final = "send less at once, or make a job of it: POST /v1/jobs"
_OPERATOR: Final = "the operator finds more in the log"
_SCHEMA: Final = "GET /openapi.json describes what is taken"
_SPLIT: Final = "send it in several jobs"
_STORE: Final = "try again in a moment; the operator finds more in the log"
_FORM: Final = "look at what is in the form, and send it again"

HINTS: Final = {
    "ambiguous": "say which by shard and row, as evidence names them",
    "answer-too-large": "ask for fewer items or less evidence, or for lines (application/x-ndjson)",
    "bad-request": _SCHEMA,
    "benchmark": "look at the items: one a line, with a question; options.mapping names fields",
    "busy": "ask again later, or make a job of it",
    "cancelled": "send it again if it is still wanted",
    "changed": "open the page again, and look at what it shows now",
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
    "item-too-large": "one item is one line of JSON, of so many bytes at most",
    "job-time": "send it in several jobs; the operator may allow more with max_job_s",
    "keys-unreadable": _OPERATOR,
    "label-not-kept": "send it again; the operator must look at the disk",
    "labels-damaged": _OPERATOR,
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
    "no-pack": "the pages about audits list those there are",
    "no-range": "ask for a range within the file: HEAD or the first answer tells its size",
    "no-result": "wait for its end: GET /v1/jobs/ID; send it again if its result is gone",
    "no-table": "leave `table` out for the first one, or take a name that the reference lists",
    "no-verdicts": "name a finished check job, or send verdicts",
    "not-acceptable": "Accept: */* takes what there is",
    "not-found": "GET /openapi.json lists what is here",
    "not-local": "the operator must add a key: `contam keys add NAME`",
    "not-ready": "ask again when GET /readyz answers 200",
    "not-utf-8": "send JSON as UTF-8",
    "other-site": "open the page itself, and send it from there",
    "output": _OPERATOR,
    "pack-damaged": _OPERATOR,
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
    "upload-too-large": _SPLIT,
    "usage": _SCHEMA,
    "worker-crashed": "send it in several jobs; often memory ran out",
}
"""What helps somebody who asks over HTTP, by the code of what went wrong."""

_FIELDS: Final = {
    "--allow-missing": "options.allow_missing",
    "--allow-partial": "options.allow_partial",
    "--allow-unmatched": "options.allow_unmatched",
    "--columns": "options.columns:",
    "--higher-is-better": "options.higher_is_better",
    "--lower-is-better": "options.lower_is_better",
    "--map": "options.mapping:",
    "--metric": "options.metrics",
    "--mixed-setups": "options.mixed_setups",
    "--skip-damaged": "options.skip_damaged",
    "--reference-benchmark": "options.references:",
    "--separate-runs": "options.separate_runs",
}
#: `--map question=FIELD,answer=FIELD`: pairs as a command line has them.
_PAIRS: Final = re.compile(r"(--map|--columns) (\w+=[^\s,;()]*(?:,\w+=[^\s,;()]*)*)")
#: Options of other programs, whose files are sent here.
_OTHERS: Final = ("--log_samples", "--no-log-samples", "--save-details")
_FLAG: Final = re.compile(r"(?<![\w-])--[a-z][\w-]*")
#: Commands that are of no use to somebody who has no index at hand.
_COMMAND: Final = re.compile(r"\bcontam (?!hash\b|check\b|keys\b)[a-z]+\b|--no-text")


def hint_for(code: str, said: str) -> str:
    """The hint of a failure for callers: what was said, in terms of the API, or its code's own."""
    told = _PAIRS.sub(lambda found: f"{_FIELDS[found[1]]} {_as_object(found[2])}", said)
    told = _FLAG.sub(lambda flag: _FIELDS.get(flag[0], flag[0]), told)
    foreign = [flag for flag in _FLAG.findall(told) if flag not in _OTHERS]
    if told and not foreign and not _COMMAND.search(told):
        return told
    return HINTS.get(code, HINTS["internal"])


def _as_object(pairs: str) -> str:
    """`question=FIELD,answer=FIELD` as the JSON object that a request has."""
    named = (pair.split("=") for pair in pairs.split(","))
    return json.dumps(dict(named))
