"""One audit of the fixtures, made once, that the tests of packs look at or copy."""

import shutil
from pathlib import Path

import pytest

from contam.audit.pack import run_audit
from contam.audit.spec import load_spec

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "bench_fixtures"

SPEC = """
[audit]
title = "Fixtures"
out = "{out}"
policies = ["contam", "lmeval-13"]
least = 15
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
