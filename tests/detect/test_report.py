import json
import os

import pytest

from contam.detect.report import FILES, load_report, write_report
from contam.errors import OutputError
from tests.detect.samples import make_result


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read_back(tmp_path):
    result = make_result()
    folder = write_report(result, tmp_path / "deep" / "out")
    report = load_report(folder)
    assert names(folder) == sorted(FILES)
    assert report.verdicts.equals(result.verdicts)
    assert report.evidence.equals(result.evidence)
    assert report.items.equals(result.items)
    assert list(report) == list(result)
    assert len(report) == 6


def test_equal_results_give_equal_bytes_but_for_the_timings(tmp_path):
    write_report(make_result(), tmp_path / "a")
    other = make_result()
    other.run["timings"] = {"seconds": 99}
    write_report(other, tmp_path / "b")
    for name in FILES[:-1]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    runs = [json.loads((tmp_path / x / "run.json").read_text()) for x in "ab"]
    assert runs[0].pop("timings") != runs[1].pop("timings")
    assert runs[0] == runs[1]


def test_a_file_name_that_is_not_unicode_still_gives_a_run_json(tmp_path):
    result = make_result()
    result.run["parameters"]["corpus"] = [os.fsdecode(b"a\xff.parquet")]
    report = load_report(write_report(result, tmp_path / "out"))
    assert os.fsencode(report.run["parameters"]["corpus"][0]) == b"a\xff.parquet"


def flipped(content):
    return content[: len(content) // 2] + b"\xff" + content[len(content) // 2 + 1 :]


@pytest.mark.parametrize("harm", [None, lambda content: content[:-40], flipped])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_cut_or_changed_is_named(tmp_path, name, harm):
    folder = write_report(make_result(), tmp_path / "out")
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if harm:
        (folder / name).write_bytes(harm(content))
    with pytest.raises(OutputError, match=name):
        load_report(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2; this contam reads format 1"),
        ({"tool": "other"}, "not written by contam"),
        ({"outputs": []}, "changed since the scan"),
        ({"parameters": None}, "changed since the scan"),
        ({"coverage": []}, "changed since the scan"),
    ],
)
def test_another_version_or_tool_is_refused(tmp_path, change, message):
    folder = write_report(make_result(), tmp_path / "out")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | change))
    with pytest.raises(OutputError, match=message):
        load_report(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"null"])
def test_a_run_json_that_is_none_is_refused(tmp_path, content):
    folder = write_report(make_result(), tmp_path / "out")
    (folder / "run.json").write_bytes(content)
    with pytest.raises(OutputError):
        load_report(folder)
