"""The image is built from its Containerfile and used: a command, a scan, a service."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tomllib

import httpx
import pyarrow.parquet as pq
import pytest

import contam
from tests.waiting import HANG_S, wait_until

pytestmark = pytest.mark.container

USER = "10001:10001"


@pytest.fixture(scope="module")
def storage(repository):
    """The options that lead buildah to a fresh build of the image."""
    for tool in ("buildah", "debootstrap"):
        assert shutil.which(tool), f"as root: apt-get install {tool}"
    folder = repository / "build" / "image"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([repository / "service" / "build-image", folder], check=True, timeout=HANG_S)
    yield ["--root", f"{folder}/graph", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def container(repository, storage, tmp_path_factory):
    """Runs a command in the image as its user; /scratch is a folder that we see, too."""
    name = subprocess.run(
        ["buildah", "from", *storage, "localhost/contam"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    scratch = tmp_path_factory.mktemp("scratch")
    scratch.chmod(0o1777)

    class Container:
        folder = scratch

        @staticmethod
        def inspect():
            said = subprocess.run(
                ["buildah", "inspect", *storage, name], check=True, capture_output=True
            )
            return json.loads(said.stdout)["OCIv1"]["config"]

        @staticmethod
        def words(*command, env=()):
            return [
                "buildah", "run", *storage, "--isolation", "chroot",
                "--volume", f"{scratch}:/scratch",
                "--volume", f"{repository}/bench_fixtures:/fixtures:ro",
                *(word for one in env for word in ("--env", one)), name, *command,
            ]  # fmt: skip

        @classmethod
        def run(cls, *command):
            return subprocess.run(
                cls.words(*command), capture_output=True, text=True, timeout=HANG_S
            )

    yield Container
    subprocess.run(["buildah", "rm", *storage, name], check=True, capture_output=True)


def test_the_image_starts_the_service_as_nobody(container):
    config = container.inspect()
    assert config["Entrypoint"] == ["contam", "serve"]
    assert config["User"] == USER
    assert container.run("id", "-u").stdout == "10001\n"


def test_the_image_holds_this_version(container, repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    done = container.run("contam", "--version")
    assert (done.returncode, done.stdout) == (0, f"contam {project['version']}\n"), done.stderr


def test_a_scan_in_the_image_gives_our_verdicts_with_the_kernels_of_the_image(
    container, bench_fixtures
):
    done = container.run(
        "contam", "scan", "--corpus", "/fixtures/corpus", "--benchmark", "/fixtures/items",
        "--out", "/scratch/scan",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr
    assert container.run("touch", "/opt/contam/kernels/new").returncode != 0
    ours = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items").verdicts
    assert pq.read_table(container.folder / "scan" / "verdicts.parquet").equals(ours)


def test_the_service_in_the_image_gets_ready_answers_and_ends(container):
    built = container.run(
        "contam", "index", "build", "--corpus", "/fixtures/corpus", "--index", "/scratch/index"
    )
    assert built.returncode == 0, built.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = [
        f"CONTAM_PORT={port}", "CONTAM_HOST=127.0.0.1", "CONTAM_INDEX=/scratch/index",
        "CONTAM_DATA=/scratch/data",
    ]  # fmt: skip
    start = "echo $$ > /scratch/pid; exec contam serve"
    service = subprocess.Popen(
        container.words("sh", "-c", start, env=env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    place = f"http://127.0.0.1:{port}"

    def ready():
        assert service.poll() is None, "the service ended"
        try:
            return httpx.get(f"{place}/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    try:
        wait_until(ready, pause_s=0.1, said="the service did not get ready")
        item = {"id": "1", "question": "Is this question in the corpus of the fixtures, or not?"}
        answer = httpx.post(f"{place}/v1/check", json={"items": [item]})
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.json()["verdicts"][0]["label"] == "clean"
    finally:
        # The container has no process namespace of its own: its process is one of ours.
        os.kill(int((container.folder / "pid").read_text()), signal.SIGTERM)
        code = service.wait(timeout=HANG_S)
    assert code == 0
