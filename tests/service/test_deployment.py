"""The files that run the service elsewhere say what the service is, and fit their own schemas.

No container engine and no cluster is needed, and none is asked: images are not built here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contam.config import described_settings
from contam.server.metrics import TABLE, Metrics

_INSTALL = "pip install 'contam[service]'"
yaml = pytest.importorskip("yaml", reason=_INSTALL)

SERVICE = Path(__file__).resolve().parents[2] / "service"
YAML = sorted([*SERVICE.rglob("*.yaml"), *SERVICE.rglob("*.yml")])
DASHBOARD = SERVICE / "monitoring" / "grafana" / "dashboards" / "contam.json"
MANIFESTS = SERVICE / "kubernetes" / "contam.yaml"
VARIABLES = {setting.variable for setting in described_settings()}
VARIABLES |= {f"{setting.variable}_FILE" for setting in described_settings() if setting.secret}
#: Not a setting of the service: where compiled kernels lie.
VARIABLES |= {"CONTAM_CACHE_DIR"}


def queries():
    panels = json.loads(DASHBOARD.read_bytes())["panels"]
    found = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    rules = yaml.safe_load((SERVICE / "monitoring" / "alerts.yml").read_text())
    found += [(rule["alert"], rule["expr"]) for each in rules["groups"] for rule in each["rules"]]
    return found


def exposed():
    """Names of samples -> their labels, as /metrics and its library give them."""
    metrics = Metrics()
    found = {}
    for one in TABLE:
        suffixes = ("_bucket", "_count", "_sum") if one.kind.__name__ == "Histogram" else ("",)
        for suffix in suffixes:
            found[one.name + suffix] = {*one.labels, *({"le"} if suffix == "_bucket" else ())}
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
    counters = {one.name for one in TABLE if one.kind.__name__ == "Counter"}
    for name in names & counters:
        assert re.search(rf"(rate|increase)\({name}\b", bare), title


def test_every_metric_of_ours_is_on_the_dashboard_or_has_an_alert():
    used = " ".join(query for _, query in queries())
    assert [one.name for one in TABLE if one.name not in used] == []


def test_the_dashboard_finds_its_data_source_and_its_folder():
    sources = yaml.safe_load(
        (SERVICE / "monitoring/grafana/provisioning/datasources/prometheus.yaml").read_text()
    )
    uids = {datasource["uid"] for datasource in sources["datasources"]}
    dashboard = json.loads(DASHBOARD.read_bytes())
    for panel in dashboard["panels"]:
        for one in (panel, *panel["targets"]):
            assert one["datasource"]["uid"] in uids
    (provider,) = yaml.safe_load(
        (SERVICE / "monitoring/grafana/provisioning/dashboards/contam.yaml").read_text()
    )["providers"]
    compose = yaml.safe_load((SERVICE / "compose.yaml").read_text())
    mounted = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    assert mounted["./monitoring/grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./monitoring/grafana/provisioning"] == "/etc/grafana/provisioning"
    places = [tuple(panel["gridPos"][name] for name in ("x", "y")) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert {panel["id"] for panel in dashboard["panels"]} == set(range(1, len(places) + 1))


def test_yaml_is_clean():
    rules = {
        "extends": "default",
        "rules": {
            "line-length": {"max": 180},
            "document-start": "disable",
            "braces": {"max-spaces-inside": 1},
        },
    }
    assert len(YAML) > 5
    lint("yamllint", "--strict", "-d", json.dumps(rules), *map(str, YAML))


def test_compose_fits_its_schema():
    lint(
        "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(SERVICE / "compose.yaml")
    )


@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_manifests_fit_the_schemas_of_kubernetes(version):
    validator = pytest.importorskip("kubernetes_validate", reason=_INSTALL)
    documents = list(yaml.safe_load_all(MANIFESTS.read_text()))
    assert len(documents) == 5
    for document in documents:
        assert validator.validate(document, version, strict=True).startswith(version)
    documents[2]["spec"]["replica"] = 1
    with pytest.raises(validator.ValidationError):
        validator.validate(documents[2], version, strict=True)


def test_pods_are_restricted_probed_and_bounded():
    documents = list(yaml.safe_load_all(MANIFESTS.read_text()))
    (workload,) = (document for document in documents if document["kind"] == "StatefulSet")
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert workload["spec"]["replicas"] == 1
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    paths = {name: container[name]["httpGet"]["path"] for name in container if "Probe" in name}
    assert paths == {
        "startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez",
    }  # fmt: skip
    drain = next(setting for setting in described_settings() if setting.name == "drain_s")
    assert pod["terminationGracePeriodSeconds"] > drain.default
    mounts = {volumemount["mountPath"]: volumemount for volumemount in container["volumeMounts"]}
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {
        volumeclaimtemplate["metadata"]["name"]
        for volumeclaimtemplate in workload["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in mounts.values()} == volumes
    # The image writes here and nowhere else.
    assert {"/scratch", "/data"} <= {
        path for path, mount in mounts.items() if not mount.get("readOnly")
    }
    (service,) = (document for document in documents if document["kind"] == "Service")
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_containers_of_compose_are_read_only_without_rights_and_bounded():
    services = yaml.safe_load((SERVICE / "compose.yaml").read_text())["services"]
    assert set(services) == {"contam", "prometheus", "grafana"}
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
        {"record": f"contam:query{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query) in enumerate(queries())
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
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
