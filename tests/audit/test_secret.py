"""An audit of unpublished items tells nobody what they say."""

import dataclasses
import json
import re

import pyarrow.parquet as pq
import pytest

from contam.audit.manifest import files_of
from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from tests.audit.conftest import FIXTURES, write_spec

WORDS = 6


def runs(text):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)}


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    spec = load_spec(write_spec(tmp_path_factory.mktemp("secret"), audit="no_text = true"))
    return run_audit(dataclasses.replace(spec, policies=("contam",))).folder


def test_no_run_of_an_items_words_is_in_any_file(secret):
    items = []
    for name in ("brook_math", "lantern_quiz"):
        for line in (FIXTURES / "items" / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            items.append(" ".join(str(row.get(part, "")) for part in ("passage", "question")))
    known = set().union(*map(runs, items))
    assert len(known) > 500
    leaking = []
    for name, path in files_of(secret):
        text = (
            json.dumps(pq.read_table(path).to_pylist(), default=str, ensure_ascii=False)
            if path.suffix == ".parquet"
            else path.read_text("utf-8", errors="replace")
        )
        leaking += [name] * bool(runs(text.replace("\\u003c", "<")) & known)
    assert leaking == []
