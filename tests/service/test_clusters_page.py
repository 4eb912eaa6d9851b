"""The manifest in the guide to clusters is one that Kubernetes takes and contam understands."""

from pathlib import Path

import pytest

from tests.cli.processes import contam_here
from tests.contracts.pages import REPOSITORY, blocks

_INSTALL = "pip install '.[service]'"
yaml = pytest.importorskip("yaml", reason=_INSTALL)
PAGE = REPOSITORY / "docs" / "guides" / "data" / "clusters.md"


def job():
    (shown,) = [block for block in blocks(PAGE.read_text("utf-8")) if block.language == "yaml"]
    return yaml.safe_load(shown.text)


@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_the_job_fits_the_schema_of_kubernetes(version):
    validator = pytest.importorskip("kubernetes_validate", reason=_INSTALL)
    manifest = job()
    assert validator.validate(manifest, version, strict=True).startswith(version)
    manifest["spec"]["podFailurePolicy"]["rules"][1]["onExitCode"] = {}
    with pytest.raises(validator.ValidationError):
        validator.validate(manifest, version, strict=True)


def test_each_pod_does_its_share_of_the_parts(bench_fixtures, tmp_path):
    spec = job()["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    volume = container["volumeMounts"][0]["mountPath"]
    assert spec["completionMode"] == "Indexed"
    assert f"auto/{spec['completions']}" in container["command"]
    codes = spec["podFailurePolicy"]["rules"][1]["onExitCodes"]
    assert codes["containerName"] == container["name"]
    program, *words = [word.replace(volume, str(tmp_path)) for word in container["command"]]
    assert program == "contam"
    for name, data in (("shards", "corpus"), ("items", "items")):
        (tmp_path / name).symlink_to(bench_fixtures / data)
    words += ["--part-size", "200KB"]
    for index in range(4):
        done = contam_here(*words, JOB_COMPLETION_INDEX=str(index))
        assert done.returncode == 0, done.stderr
        assert "1 part of 4 done" in done.stdout
    done = contam_here(*words, JOB_COMPLETION_INDEX=str(spec["completions"] - 1))
    assert "0 parts of 4 done" in done.stdout
    assert len(list(Path(tmp_path, "parts").glob("*.part"))) == 5
