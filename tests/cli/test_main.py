import subprocess

import pytest

from contam.cli.main import main
from contam.cli.render import coverage_lines, share, verdict_table
from contam.cli.terminal import laid_out, plain, visible
from contam.detect.report import write_report
from contam.files import publish
from tests.cli.processes import (
    ROOT,
    assert_one_line_error,
    command,
    contam_here,
    environment,
    python,
)
from tests.detect.samples import make_result


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (["index", "build", "--corpus", "PARTS"], "index build"),
        (["index", "none"], "index"),
        (["audit", "gate", "--none"], "audit gate"),
        (["audit", "run", "--none"], "audit run"),
        (["scan", "--none"], "scan"),
        (["none"], ""),
    ],
)
def test_a_wrong_call_points_to_the_help_of_its_command(arguments, page, capsys):
    assert main(arguments) == 2
    call = f"contam {page}".strip()
    assert f"hint: see `{call} --help`" in capsys.readouterr().err.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command_line", "chosen", "pool"),
    [
        (["policies", "--json"], {}, "system"),
        (["policies", "--json"], {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc"),
        (["serve", "--help"], {}, None),
    ],
)
def test_arrow_takes_memory_from_the_c_library_unless_told_otherwise(command_line, chosen, pool):
    code = """
import contextlib, os, sys
from contam.cli.main import run
with contextlib.suppress(SystemExit):
    run(sys.argv[1:])
import pyarrow
name = "ARROW_DEFAULT_MEMORY_POOL"
print(pyarrow.default_memory_pool().backend_name if name in os.environ else None, file=sys.stderr)
"""
    told = {"ARROW_DEFAULT_MEMORY_POOL": None, **chosen}
    process = python("-c", code, *command_line, **told)
    assert process.returncode == 0
    assert process.stderr == f"{pool}\n"


@pytest.mark.parametrize("group", ["", "audit", "index", "keys", "study"])
def test_a_group_without_a_command_prints_its_help(group):
    words = group.split()
    alone = contam_here(*words)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == contam_here(*words, "--help").stdout


SCAN = "scan --corpus a --benchmark b --out o"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scn"], ["scn", "scan"]),
        (["scan"], ["--corpus"]),
        (["scan", "--corpus", "a", "--benchmark", "b"], ["--out"]),
        (["scan", "--corpus", "a", "--nonsense"], ["--nonsense"]),
        (["scan", "--corpus", "a", "--benchmark", "b", "--out", "o", "stray"], ["stray"]),
        (["policies", "no-such"], ["no-such", "known"]),
        (["show"], ["DIR"]),
        (f"{SCAN} --workers 0".split(), ["--workers"]),
        (f"{SCAN} --seed 9".split(), ["--min-run"]),
        (f"{SCAN} --policy ,".split(), ["policies"]),
        (f"{SCAN} --map x".split(), ["mapping"]),
        (f"clean{SCAN[4:]} --benchmark-weight b=1,b=0".split(), ["--benchmark-weight", "b"]),
    ],
)
def test_a_wrong_call_is_exit_code_2_and_one_line(arguments, words, tmp_path):
    assert_one_line_error(contam_here(*arguments, cwd=tmp_path), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_stack_trace(tmp_path):
    process = contam_here("show", tmp_path / "none", "--debug")
    assert process.returncode == 2
    assert "Traceback" in process.stderr
    assert process.stderr.splitlines()[-2].startswith("error: ")


def test_an_unforeseen_error_is_one_line_and_steers_no_terminal(tmp_path):
    call = ["scan", "--corpus", "a", "--benchmark", "b", "--out", tmp_path / "out"]
    process = contam_here(*call, "--quiet", canned=True, CANNED="crash")
    assert_one_line_error(process, 1, "RuntimeError: unexpected<U+001B>[31m", "--debug")
    assert list(tmp_path.iterdir()) == []


def test_running_out_of_memory_says_so(tmp_path):
    call = ["scan", "--corpus", "a", "--benchmark", "b", "--out", tmp_path / "out"]
    process = contam_here(*call, "--quiet", canned=True, CANNED="memory")
    assert_one_line_error(process, 1, "--workers")


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path):
    folder = write_report(make_result(), tmp_path / "out")
    with subprocess.Popen(
        command("show", folder, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=ROOT,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_a_full_disk_behind_stdout_is_one_line(tmp_path):
    folder = write_report(make_result(), tmp_path / "out")
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device, not a path of ours
        process = subprocess.run(
            command("show", folder),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert len(process.stderr.splitlines()) == 1


@pytest.mark.slow
def test_closed_streams_are_no_crash(tmp_path):
    folder = write_report(make_result(), tmp_path / "out")
    line = subprocess.list2cmdline(command("show", folder))
    process = subprocess.run(["sh", "-c", f"{line} >&- 2>&-"], env=environment(), check=False)
    assert process.returncode == 0


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("where", ["a folder", "the current folder"])
def test_ctrl_c_while_results_are_published_leaves_all_or_nothing(
    tmp_path, monkeypatch, moment, where
):
    out = tmp_path / "out"
    out.mkdir()
    if where == "the current folder":
        monkeypatch.chdir(out)
    home = out if where == "the current folder" else tmp_path
    sync = publish.sync_path

    def interrupt(path):
        if (path == home) == (moment == "after"):
            raise KeyboardInterrupt
        sync(path)

    monkeypatch.setattr("contam.detect.scan.scan", lambda *_, **__: make_result())
    monkeypatch.setattr(publish, "sync_path", interrupt)
    call = ["scan", "--corpus", "c", "--benchmark", "b", "--out", str(out), "--quiet"]
    assert main(call) == 130
    assert (out / "run.json").exists() == (moment == "after")


# -------------------------------------------------------------------- what commands print and write


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 30_000, "<0.1 %"),
        (29_999, 30_000, ">99.9 %"), (1, 3, "33.3 %"), (0, 0, "-"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_none_or_all(part, whole, shown):
    assert share(part, whole) == shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_loses_no_number_and_is_whole_in_eighty_columns(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    labels = {"contaminated": 1_201, "suspect": 321, "clean": 100_025, "not_checkable": 4_400}
    text = laid_out([verdict_table({"brook_math": {"contam": labels}})])
    assert all(len(line) <= width for line in text.splitlines())
    row = text.splitlines()[-1].split()
    if width < 80:
        assert "…" not in text
    else:
        numbers = ["105,947", "1,201", "321", "100,025", "4,400", "1.4", "%"]
        assert row == ["brook_math", "contam", *numbers]


def test_a_total_ends_the_table_of_several_benchmarks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    labels = {"contaminated": 1, "suspect": 2, "clean": 3, "not_checkable": 4}
    counts = {"one": {"contam": labels, "palm-70": labels}, "two": {"contam": labels}}
    total, other = laid_out([verdict_table(counts)]).splitlines()[-2:]
    assert total.split() == ["total", "contam", "20", "2", "4", "6", "8", "30.0", "%"]
    assert other.split() == ["palm-70", "10", "1", "2", "3", "4", "30.0", "%"]
    assert "total" not in laid_out([verdict_table({"one": counts["one"]})])


def test_steering_characters_become_visible():
    assert visible("a\x1b[2Jb\r\u202ec\u2066\x07\x9b\nd\te") == (
        "a<U+001B>[2Jb<U+000D><U+202E>c<U+2066><U+0007><U+009B>\nd\te"
    )
    assert visible("Zoë 数学 🙂 👩‍🚀 עברית") == "Zoë 数学 🙂 👩‍🚀 עברית"
    assert plain("two\nlines\t ") == "two lines"


def test_many_failures_are_named_in_part_and_counted():
    coverage = {
        "shards_expected": 9, "shards_read": 2, "rows": 5, "n_bytes": 10,
        "shards_failed": [{"shard": f"s{i}", "reason": "gone"} for i in range(7)],
    }  # fmt: skip
    lines = list(coverage_lines(coverage))
    assert lines[1] == "NOT READ s0: gone"
    assert lines[-1] == "NOT READ 2 more shards, see run.json"
