"""The files that run the service elsewhere say what the service is, and fit their own schemas.

No container engine and no cluster is needed, and none is asked: images are not built here.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from contam.config import Settings
from contam.server.observe import Metrics
from tests.contracts import printed

_INSTALL = "pip install '.[service]'"
yaml = pytest.importorskip("yaml", reason=_INSTALL)

SERVICE = Path(__file__).resolve().parents[2] / "service"
YAML = sorted([*SERVICE.rglob("*.yaml"), *SERVICE.rglob("*.yml")])
VARIABLES = {f"CONTAM_{setting.name.upper()}" for setting in fields(Settings)}
VARIABLES |= {"CONTAM_ADMIN_KEY_FILE"}
#: Not a setting of the service: where compiled kernels lie.
VARIABLES |= {"CONTAM_CACHE_DIR"}


def queries():
    rules = yaml.safe_load((SERVICE / "monitoring" / "alerts.yml").read_text())
    return [(rule["alert"], rule["expr"]) for each in rules["groups"] for rule in each["rules"]]


def exposed():
    """Names of samples -> their labels, as /metrics and its library give them."""
    metrics = Metrics()
    found = {}
    for name, kind, labels, _ in printed.metrics():
        suffixes = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        for suffix in suffixes:
            found[name + suffix] = {*labels, *({"le"} if suffix == "_bucket" else ())}
    for line in metrics.exposition().decode().splitlines():
        if line.startswith("process_"):
            found[line.split()[0]] = set()
    return found


@pytest.mark.parametrize(("title", "query"), queries(), ids=lambda text: text[:40])
def test_a_query_uses_metrics_and_labels_that_exist(title, query):
    known = exposed()
    bare = re.sub(r'"[^"]*"', '""', query)
    names = set(re.findall(r"\b(?:contam|process)_\w+", bare))
    assert names, title
    assert names <= set(known), title
    allowed = set().union(*(known[name] for name in names)) | {"instance", "job"}
    labels = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", bare))
    for group in re.findall(r"\bby\s*\(([^)]*)\)", bare):
        labels |= {label.strip() for label in group.split(",")}
    assert labels <= allowed, title
    counters = {name for name, kind, *_ in printed.metrics() if kind == "counter"}
    for name in names & counters:
        assert re.search(rf"(rate|increase)\({name}\b", bare), title


def test_yaml_is_clean():
    rules = {
        "extends": "default",
        "rules": {
            "line-length": {"max": 180},
            "document-start": "disable",
            "braces": {"max-spaces-inside": 1},
        },
    }
    assert len(YAML) > 2
    lint("yamllint", "--strict", "-d", json.dumps(rules), *map(str, YAML))


def test_compose_fits_its_schema():
    lint(
        "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(SERVICE / "compose.yaml")
    )


def test_containers_of_compose_are_read_only_without_rights_and_bounded():
    services = yaml.safe_load((SERVICE / "compose.yaml").read_text())["services"]
    assert set(services) == {"contam", "prometheus"}
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["mem_limit"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith("./") or (SERVICE / source).exists(), source


def test_every_variable_of_the_files_is_one_of_the_service():
    found = {
        name
        for path in (*YAML, SERVICE / "Containerfile")
        for name in re.findall(r"\bCONTAM_[A-Z_]+\b", path.read_text())
    }
    assert {"CONTAM_INDEX", "CONTAM_ADMIN_KEY_FILE"} <= found
    assert found <= VARIABLES


def test_the_image_runs_as_nobody_with_kernels_of_no_particular_machine():
    text = (SERVICE / "Containerfile").read_text()
    build, run = text.split("\nFROM ")[1:]
    assert "contam warm" in build
    # The kernels are found only by a process with the same target.
    for name in ("CPU", "CPU_FEATURES"):
        (first,), (second,) = (
            re.findall(rf"^ARG {name}=(.*)$", part, re.MULTILINE) for part in (build, run)
        )
        assert first == second
        assert f"NUMBA_CPU_{'NAME' if name == 'CPU' else 'FEATURES'}=${{{name}}}" in run
    assert re.findall(r"^USER (.*)$", run, re.MULTILINE) == ["10001:10001"]
    assert "warm" not in run
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", build, re.MULTILINE):
        for source in copied.split():
            assert (SERVICE.parent / source).exists(), source
    assert "CONTAM_CACHE_DIR=/opt/contam/kernels" in run
    assert re.search(r'^ENTRYPOINT \["contam", "serve"\]$', run, re.MULTILINE)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus)")
def test_prometheus_reads_the_configuration_the_queries_and_the_metrics(tmp_path):
    done = subprocess.run(
        ["promtool", "check", "config", SERVICE / "monitoring" / "prometheus.yml"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rules = [
        {"record": f"contam:query{number}", "expr": query}
        for number, (_, query) in enumerate(queries())
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "alerts", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=Metrics().exposition(), capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def lint(module, *arguments):
    pytest.importorskip(module, reason=_INSTALL)
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
