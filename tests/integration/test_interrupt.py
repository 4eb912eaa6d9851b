"""Ctrl-C and kill in the middle of a real scan on several threads."""

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.processes import command, contam, environment
from tests.integration.processes import scan_arguments, varied_texts, warm_up, write_parquet
from tests.text.tokenizer_files import save_tokenizer
from tests.waiting import HANG_S, wait_until

pytestmark = pytest.mark.slow

SHARD_BYTES = 30_000_000
#: The same file under many names: enough to read for many seconds, written once.
N_NAMES = 60
#: Processor time that is left to a scan when it is told to end; all of it takes far more.
SOON_CPU_S = 8.0


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupt")
    warm_up(folder)
    first = folder / "corpus" / "000.parquet"
    write_parquet(first, varied_texts(SHARD_BYTES), row_group_size=500)
    for number in range(1, N_NAMES):
        os.link(first, first.with_name(f"{number:03d}.parquet"))
    yield first.parent
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return save_tokenizer(tmp_path_factory.mktemp("unit"), "byte_bpe")


def files(folder):
    return sorted(
        (str(path.relative_to(folder)), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    )


def start(corpus, out, temporary, *options):
    """A scan of which a tenth is done."""
    process = subprocess.Popen(
        command(*scan_arguments(corpus, out, "--workers", "2", *options)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TMPDIR=str(temporary)),
    )
    for line in process.stderr:
        if line.startswith(" 10 %"):
            return process
    raise AssertionError(f"ended with {process.wait()} before a tenth was read")


def cpu_s(process):
    """Processor time that a process has taken, in seconds; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end_soon(process, number):
    """Send a signal; the process ends without the work that was before it. Gives its stderr."""
    began = cpu_s(process)
    seen = [began]
    process.send_signal(number)
    with ThreadPoolExecutor(1) as reader:
        said = reader.submit(process.stderr.read)
        wait_until(lambda: seen.append(cpu_s(process)) or process.poll() is not None)
        stderr = said.result()
    process.stdout.close()
    process.stderr.close()
    assert max(seen) - began < SOON_CPU_S
    return stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_scan_soon_and_leaves_nothing(corpus, tmp_path, number, code):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = start(corpus, tmp_path / "new" / "out", temporary)
    stderr = end_soon(process, number)
    assert process.returncode == code
    lines = [line for line in stderr.splitlines(keepends=True) if " %  " not in line]
    assert len(lines) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    assert list(temporary.iterdir()) == []


def test_the_slow_unit_of_a_tokenizer_file_ends_soon_too(corpus, unit, tmp_path):
    process = subprocess.Popen(
        command(*scan_arguments(corpus, tmp_path / "out", "--workers", "2", "--unit", unit)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    wait_until(lambda: cpu_s(process) > 4.0)
    stderr = end_soon(process, signal.SIGINT)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_ctrl_c_while_the_first_is_at_work_changes_nothing(corpus, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = start(corpus, tmp_path / "out", temporary)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]


def test_an_interrupted_overwrite_keeps_the_old_result(corpus, tmp_path):
    out = tmp_path / "out"
    small = tmp_path / "small" / "one.parquet"
    write_parquet(small, varied_texts(100_000))
    assert contam(*scan_arguments(small, out, "--quiet")).returncode == 0
    before = files(tmp_path)
    process = start(corpus, out, tmp_path, "--overwrite")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert files(tmp_path) == before
