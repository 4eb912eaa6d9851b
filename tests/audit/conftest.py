"""One audit of the fixtures, made once, that the tests of packs look at or copy."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from contam.audit.pack import run_audit
from contam.audit.spec import load_spec
from contam.audit.verify import MANIFEST, read_verified, write_manifest
from contam.detect.report import TABLES, load_report
from contam.tables import schemas

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "bench_fixtures"

SPEC = """
[audit]
title = "Fixtures"
out = "{out}"
policies = ["contam", "lmeval-13"]
least = 12
permutations = 999
{audit}

[[corpus]]
name = "early"
paths = [{early}]

[[corpus]]
name = "late"
stage = "sft"
paths = [{late}]

[[benchmark]]
paths = ["{fixtures}/items/brook_math.jsonl"]
released = 2023-06-01

[[benchmark]]
paths = ["{fixtures}/items/lantern_quiz.jsonl"]

[logs]
paths = ["{fixtures}/logs/brook_math.csv", "{fixtures}/logs/lantern_quiz.csv"]
ours = ["quokka-7b"]
"""


def write_spec(folder, *, out="pack", audit="", **more):
    shards = sorted((FIXTURES / "corpus").iterdir())
    quoted = [f'"{shard}"' for shard in shards]
    values = {"early": ", ".join(quoted[:2]), "late": ", ".join(quoted[2:]), **more}
    path = folder / "AUDIT.toml"
    path.write_text(SPEC.format(out=out, audit=audit, fixtures=FIXTURES, **values))
    return path


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """A finished audit; nobody may change its folder."""
    return run_audit(load_spec(write_spec(tmp_path_factory.mktemp("audit"))), workers=2)


@pytest.fixture
def pack(audited, tmp_path):
    """A copy of the finished audit, to be harmed."""
    return Path(shutil.copytree(audited.folder, tmp_path / "pack"))


def reseal(folder):
    """Seal a pack that a test has changed, as if an audit had made it so."""
    tree = read_verified(folder / MANIFEST)
    own = {"tool", "format", "environment", "files", "digest"}
    write_manifest(folder, {name: value for name, value in tree.items() if name not in own})


def relabel(folder, labels, policy="contam"):
    """Give items of a pack other labels, and seal it again; returns how many verdicts changed."""
    checks = folder / "checks" / "together"
    rows = schemas.rows(load_report(checks).verdicts)
    found = [row for row in rows if row["policy"] == policy and row["item_id"] in labels]
    for row in found:
        row["label"] = labels[row["item_id"]]
    rewrite(folder, "verdicts.parquet", rows)
    return len(found)


def rewrite(folder, name, rows, corpus="together"):
    """Write a table of a pack's verdicts afresh, and seal the pack again."""
    checks = folder / "checks" / corpus
    schema = TABLES[name]
    path = checks / name
    columns = {one: [row[one] for row in rows] for one in schema.names}
    schemas.write_parquet(schemas.table_of(columns, schema), path)
    run = json.loads((checks / "run.json").read_bytes())
    raw = path.read_bytes()
    run["outputs"][name] |= {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (checks / "run.json").write_text(json.dumps(run))
    reseal(folder)
