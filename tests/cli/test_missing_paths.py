"""A path or name of the call that is not there ends with 2, whatever the command and option."""

import pytest
import typer

from contam.index.build import build
from tests.cli.processes import assert_one_line_error, contam_here

GONE = "gone"


@pytest.fixture(scope="module")
def home(bench_fixtures, tmp_path_factory):
    """A folder with data, an index and results."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "data").symlink_to(bench_fixtures)
    build(bench_fixtures / "corpus", folder / "index", workers=1)
    done = contam_here(
        "scan", "--corpus", "data/corpus", "--benchmark", "data/items", "--out", "out", "--quiet",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


CORPUS, ITEMS, LOGS = "--corpus data/corpus", "--benchmark data/items", "--logs data/logs"
INDEX = "--index ./index"
CALLS = [
    f"scan --corpus gone {ITEMS} --out new",
    f"scan --corpus data/corpus gone {ITEMS} --out new",
    f"scan --corpus gone/*.parquet {ITEMS} --out new",
    f"scan {CORPUS} --benchmark gone --out new",
    f"scan {CORPUS} --benchmark gone --out new --no-text",
    f"scan {CORPUS} --benchmark gone/*.jsonl --out new",
    f"scan {CORPUS} {ITEMS} --out new --unit gone.json",
    f"scan {CORPUS} {ITEMS} --out new --policy gone.toml",
    f"clean --corpus gone {ITEMS} --out new",
    f"clean {CORPUS} --benchmark gone --out new",
    f"clean {CORPUS} {ITEMS} --out new --policy gone",
    f"clean {CORPUS} {ITEMS} --out new --benchmark-weight gone=1",
    f"scan --corpus gone {ITEMS} --parts new --shard 1/2",
    f"clean --corpus gone {ITEMS} --out new --parts new --shard 1/2",
    f"query --index ./gone {ITEMS} --out new",
    f"query --index gone {ITEMS} --out new",
    f"query {INDEX} --benchmark gone --out new",
    f"query {INDEX} --text-file gone",
    f"query {INDEX} {ITEMS} --out new --corpus gone",
    f"query {INDEX} --text lantern --corpus gone",
    "index build --corpus gone --index ./new",
    f"index build {CORPUS} --index ./new --recipe gone.toml",
    f"index build {CORPUS} --index ./new --recipe bpe --unit gone.json",
    "index build --corpus gone --index ./new --shard 1/2",
    f"index add {CORPUS} --index ./gone",
    f"index add --corpus gone {INDEX}",
    "index retire --index ./gone --shard x",
    f"index retire {INDEX} --shard gone",
    f"index retire {INDEX} --document gone",
    "index compact --index ./gone",
    "index verify --index ./gone",
    f"index verify {INDEX} --corpus gone",
    "index show --index ./gone",
    "show gone",
    "show out gone",
    "sql gone 'select 1'",
    "review gone --labels new --reader me",
    "policies gone",
    "logs gone",
    "items --from-logs gone --out new",
    f"rescore --verdicts gone {LOGS} --out new",
    f"rescore --verdicts gone.csv {LOGS} --out new",
    "rescore --verdicts out --logs gone --out new",
    "rescore --verdicts out --logs gone/*.json --out new",
    "study preparation --scores gone --out new",
    "study board --scores gone --out new",
    "study board --scores data/studies/board.csv --clean gone --out new",
    "study board --rescored gone --out new",
    "study time --logs gone --out new",
    "study time --logs data/studies/problems.csv --dates gone --out new",
    "study time --logs data/studies/problems.csv --cutoff gone --out new",
    "study time --logs data/studies/problems.csv --verdicts gone --out new",
    "study fresh --original gone --fresh gone --out new",
    "study fresh --original data/logs/brook_math.csv --fresh gone --out new",
    f"export --verdicts gone {LOGS} --out new",
    "export --verdicts out --logs gone --out new",
    "check --server http://127.0.0.1:9 --benchmark gone --out new",
    "annotate gone --verdicts out",
    "audit gone.toml",
    "audit verify gone",
    "diff gone gone",
    "serve --index ./gone",
    "serve --settings gone",
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_not_there_is_a_wrong_call(home, call):
    import shlex

    before = sorted(path.name for path in home.iterdir())
    assert_one_line_error(contam_here(*shlex.split(call), cwd=home), 2, GONE)
    there = [path.name for path in home.iterdir() if not path.name.endswith(".work")]
    assert sorted(there) == [name for name in before if not name.endswith(".work")]


def test_every_command_with_a_path_is_tried():
    from contam.cli.main import app

    tried = {call.split()[0] for call in CALLS}
    # What they read is given by other commands, or not by a path.
    assert {*typer.main.get_command(app).commands} - tried == {"warm", "keys", "benchmarks"}


@pytest.mark.parametrize(
    "call",
    [
        f"scan {CORPUS} --benchmark damaged/a.jsonl --out new",
        f"scan {CORPUS} {ITEMS} --out out",
        "show damaged",
        "rescore --verdicts out --logs damaged --out new",
        "audit verify damaged",
    ],
)
def test_what_is_there_and_wrong_is_a_failure(home, call):
    (home / "damaged").mkdir(exist_ok=True)
    (home / "damaged" / "a.jsonl").write_text('{"no_text": 1')
    assert_one_line_error(contam_here(*call.split(), cwd=home), 1)
