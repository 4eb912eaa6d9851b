import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contam.errors import OutputError
from contam.files.disk import output_errors
from contam.files.publish import publishing

NAMES = ("data", "mark")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def publish(out, text, *, overwrite=False, meanwhile=None):
    with publishing(out, names=NAMES, last="mark", overwrite=overwrite) as draft:
        for name in NAMES:
            (draft / name).write_text(f"{text} {name}")
        if meanwhile:
            meanwhile()


def interrupt(draft):
    (draft / "data").write_text("half")
    raise KeyboardInterrupt


def content(out):
    return {path.name: path.read_text() for path in Path(out).iterdir()}


def test_an_error_leaves_nothing_not_even_parents(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        publishing(tmp_path / "a" / "out", names=NAMES, last="mark") as draft,
    ):
        interrupt(draft)
    assert names(tmp_path) == []


def test_a_finished_result_is_refused_before_any_work(tmp_path):
    publish(tmp_path / "out", "old")
    with pytest.raises(OutputError, match="already holds a finished result") as caught:
        publish(tmp_path / "out", "new")
    assert "--overwrite" in caught.value.hint
    assert content(tmp_path / "out")["data"] == "old data"


def test_overwriting_replaces_the_whole_folder(tmp_path):
    publish(tmp_path / "out", "old")
    publish(tmp_path / "out", "new", overwrite=True)
    assert content(tmp_path / "out") == {"data": "new data", "mark": "new mark"}
    assert names(tmp_path) == ["out"]


def test_files_that_are_not_ours_are_never_replaced(tmp_path):
    publish(tmp_path / "out", "old")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"not a contam result: notes\.txt"):
        publish(tmp_path / "out", "new", overwrite=True)
    assert content(tmp_path / "out")["notes.txt"] == "mine"


def test_a_failing_overwrite_keeps_the_old_result(tmp_path):
    publish(tmp_path / "out", "old")
    with (
        pytest.raises(RuntimeError),
        publishing(tmp_path / "out", names=NAMES, last="mark", overwrite=True),
    ):
        raise RuntimeError
    assert content(tmp_path / "out") == {"data": "old data", "mark": "old mark"}
    assert names(tmp_path) == ["out"]


def test_a_swap_that_fails_half_way_brings_the_old_result_back(tmp_path, monkeypatch):
    publish(tmp_path / "out", "old")
    rename = Path.rename

    def fail_for_drafts(self, target):
        if ".contam-draft-" in self.name:
            raise OSError(errno.EIO, "disk on fire")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_drafts)
    with pytest.raises(OutputError, match="Input/output error"):
        publish(tmp_path / "out", "new", overwrite=True)
    assert content(tmp_path / "out") == {"data": "old data", "mark": "old mark"}
    assert names(tmp_path) == ["out"]


def test_two_runs_into_one_folder_the_later_one_is_refused(tmp_path):
    with pytest.raises(OutputError, match="already holds"):
        publish(tmp_path / "out", "slow", meanwhile=lambda: publish(tmp_path / "out", "quick"))
    assert content(tmp_path / "out")["data"] == "quick data"
    assert names(tmp_path) == ["out"]


def test_a_file_left_out_of_the_draft_publishes_nothing(tmp_path):
    with (
        pytest.raises(OutputError),
        publishing(tmp_path / "out", names=NAMES, last="mark") as draft,
    ):
        (draft / "data").write_text("x")
    assert names(tmp_path) == []


@pytest.mark.parametrize("out", ["/dev/null/out", "/proc/contam/out", "/dev/null", "/", "x" * 300])
def test_a_place_that_cannot_be_written_is_one_clear_error(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError) as caught:
        publish(out, "new")
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert names(tmp_path) == []


def test_a_full_disk_is_an_output_error(tmp_path):
    with (
        pytest.raises(OutputError, match="No space left on device") as caught,
        output_errors(tmp_path),
    ):
        Path("/dev/full").write_text("x")
    assert "space" in caught.value.hint


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    publish(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real")["data"] == "new data"


def test_the_current_folder_is_filled_in_place(tmp_path, monkeypatch):
    home = tmp_path / "here"
    home.mkdir()
    monkeypatch.chdir(home)
    publish(".", "old")
    inode = home.stat().st_ino
    publish(".", "new", overwrite=True)
    assert content(home) == {"data": "new data", "mark": "new mark"}
    assert home.stat().st_ino == inode


def test_in_place_a_failure_half_way_brings_the_old_files_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    publish(".", "old")
    replace = Path.replace

    def fail_for_the_mark(self, target):
        if self.name == "mark" and ".contam-draft-" in self.parent.name:
            raise OSError(errno.ENOSPC, "full")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_the_mark)
    with pytest.raises(OutputError, match="No space left"):
        publish(".", "new", overwrite=True)
    assert content(tmp_path) == {"data": "old data", "mark": "old mark"}


KILLED = """
import signal, sys
from contam.files.publish import publishing
with publishing(sys.argv[1], names=("data", "mark"), last="mark", overwrite=True) as draft:
    (draft / "data").write_text("half")
    print("ready", flush=True)
    signal.pause()
"""


def start_and_wait_for_draft(out):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    publish(tmp_path / "out", "old")
    with start_and_wait_for_draft(tmp_path / "out") as process:
        process.send_signal(signal.SIGKILL)
    assert len(names(tmp_path)) == 2
    assert content(tmp_path / "out")["data"] == "old data"
    publish(tmp_path / "out", "new", overwrite=True)
    assert names(tmp_path) == ["out"]


def test_the_draft_of_a_living_run_is_left_alone(tmp_path):
    with start_and_wait_for_draft(tmp_path / "out") as process:
        publish(tmp_path / "out", "mine")
        assert len(names(tmp_path)) == 2
        process.send_signal(signal.SIGKILL)
    publish(tmp_path / "out", "again", overwrite=True)
    assert names(tmp_path) == ["out"]


def test_a_result_set_aside_by_a_killed_run_comes_back(tmp_path):
    publish(tmp_path / "out", "old")
    (tmp_path / "out").rename(tmp_path / ".out.contam-old-1234")
    with pytest.raises(OutputError, match="already holds a finished result"):
        publish(tmp_path / "out", "new")
    assert content(tmp_path / "out")["data"] == "old data"
    assert names(tmp_path) == ["out"]
