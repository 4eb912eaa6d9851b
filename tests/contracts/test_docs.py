"""The documentation says what the code does: snippets run, links lead somewhere, lists are whole."""

import json
import re
import subprocess
import sys

import pytest

import contam
from tests.contracts import pages, printed

REFERENCE = "docs/reference.md"
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_ENVIRONMENT = re.compile(r"environ(?:\.get|\.setdefault)?[(\[]\s*\"([A-Z_0-9]+)\"")
_SECRET = re.compile(r"secret\(\s*\"([A-Z_0-9]+)\"")
#: Read by Numba itself, for us.
_READ_ELSEWHERE = {"NUMBA_DISABLE_JIT"}


def markdown(repository):
    """Every page that is ours."""
    names = ("*.md", "docs/**/*.md", "bench_fixtures/*.md", "indexes/*.md", "service/*.md")
    return sorted({path for name in names for path in repository.glob(name)})


def section(repository, *headings):
    """The text of the reference under a path of headings."""
    text = (repository / REFERENCE).read_text(encoding="utf-8")
    for level, heading in enumerate(headings, 2):
        mark = "#" * level
        found = re.search(
            rf"^{mark} {re.escape(heading)}\n(.*?)(?=^#{{2,{level}}} |\Z)",
            text,
            re.MULTILINE | re.DOTALL,
        )
        assert found, f"{REFERENCE} has no section {heading!r}"
        text = found[1]
    return text


def rows(text):
    """The tables of a text as rows of cells, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    heads = {at - 1 for at, row in enumerate(cells) if set("".join(row)) <= set("- ")}
    return [
        row
        for at, row in enumerate(cells)
        if at not in heads and set("".join(row)) - set("- ") and row[0]
    ]


def names(text):
    """What stands in code marks in the first column."""
    return [name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])]


# ------------------------------------------------------------------------------- snippets


#: Every command of a guide is run, which takes as long as it takes a reader.
_RUN = [
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith("docs/guides/") else [])
    for name in pages.RUN
]


@pytest.mark.parametrize("name", _RUN)
def test_what_a_page_shows_is_what_a_reader_gets(repository, name):
    page = (repository / name).read_text(encoding="utf-8")
    shown = pages.things_run(page)
    assert shown, f"{name} shows nothing that runs"
    with pages.reader() as session:
        for one in shown:
            if one.kind == "console" and pages.is_install(one.source):
                continue
            output = session.run(one)
            if one.output.strip():
                assert pages.same(output, one.output, one.kind), (
                    f"{name}: {one.source.strip()}\n--- shown\n{one.output}\n--- printed\n{output}\n"
                    "`python -m tests.contracts.pages` writes the outputs of all pages afresh"
                )
            elif one.kind == "console":
                # A command whose output is not shown may still have failed.
                assert session.exit_code == 0, f"{name}: {one.source.strip()}\n{output}"


@pytest.mark.parametrize(
    ("name", "n_calls"), [("docs/guides/audit.md", 2), ("docs/guides/faq.md", 2)]
)
def test_the_workflow_of_a_guide_is_one(repository, name, n_calls):
    import yaml

    page = (repository / name).read_text(encoding="utf-8")
    (shown,) = [block for block in pages.blocks(page) if block.language == "yaml"]
    tree = yaml.safe_load(shown.text)
    # YAML reads the key `on` as a truth value.
    assert set(tree) == {"name", True, "jobs"}
    calls = []
    for job in tree["jobs"].values():
        assert set(job) == {"runs-on", "steps"}
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            script = step.get("run", "").replace("\\\n", " ")
            calls += re.findall(r"^contam (.*)$", script, re.MULTILINE)
    assert len(calls) == n_calls
    for call in calls:
        words = call.split()
        two = f"contam {' '.join(words[:2])}"
        command = COMMANDS[two if two in COMMANDS else f"contam {words[0]}"]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


def test_every_page_with_something_to_run_is_run(repository):
    for path in markdown(repository):
        name = path.relative_to(repository).as_posix()
        if apart := pages.RUN_ELSEWHERE.get(name):
            assert name in (repository / apart).read_text("utf-8").replace('" / "', "/")
        elif name not in pages.RUN:
            text = path.read_text(encoding="utf-8")
            languages = {block.language for block in pages.blocks(text)}
            assert not languages & {"console", "python", "sql", "bash"}, f"{name} is not run"


def test_every_make_target_that_is_named_exists(repository):
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for path in markdown(repository):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"(?:`|^\$ |^    )make ([a-z]+)", text, re.MULTILINE):
            assert target in targets, f"{path.name}: make {target}"


# ---------------------------------------------------------------------------------- links


def slug(heading):
    """The anchor that readers of Markdown make of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def test_every_link_leads_somewhere(repository):
    for path in markdown(repository):
        for target in _LINK.findall(pages.without_blocks(path.read_text(encoding="utf-8"))):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), f"{path.relative_to(repository)} links to {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in map(slug, headings), f"{path.name} links to {target}"


def test_every_page_can_be_reached_from_the_readme(repository):
    reached = set()
    waiting = [repository / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md":
            continue
        reached.add(path)
        for target in _LINK.findall(path.read_text(encoding="utf-8")):
            file = target.partition("#")[0]
            if file and "://" not in file:
                waiting.append((path.parent / file).resolve())
    lost = [path for path in repository.glob("docs/**/*.md") if path not in reached]
    assert lost == []


def test_the_architecture_has_a_question_for_every_package(repository):
    page = (repository / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for path in (repository / "contam").iterdir():
        if (path / "__init__.py").is_file():
            assert f"| [contam/{path.name}](" in page, path.name


def test_every_decision_is_listed(repository):
    listed = (repository / "docs/adr/README.md").read_text(encoding="utf-8")
    for path in (repository / "docs/adr").glob("0*.md"):
        title = path.read_text(encoding="utf-8").splitlines()[0].partition(". ")[2]
        assert f"| [{path.name[:4]}]({path.name}) | {title} |" in listed


# ------------------------------------------------------------------------------ reference


COMMANDS = dict(printed.commands())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_shows_two_examples_that_can_be_typed(command):
    import shlex

    from contam.cli.main import spread

    found = COMMANDS[command]
    _, head, *examples = found.epilog.splitlines()
    assert (head, len(examples)) == ("Examples:", 2)
    for example in examples:
        words = shlex.split(example)
        n_words = len(command.split())
        assert words[:n_words] == command.split()
        assert found.make_context(command, spread(found, words[n_words:])).params


def test_the_reference_describes_all_that_it_prints(repository):
    pages = (REFERENCE, "docs/policies.md")
    page = "".join(printed.printed((repository / one).read_text("utf-8")) for one in pages)
    printed_rows = [row for row in rows(page) if row[0].startswith("`")]
    assert len(printed_rows) > 1_000
    assert [row for row in printed_rows if not row[-1]] == []
    assert "<!-- printed" not in page
    assert re.findall(r"^### (contam .*)$", page, re.MULTILINE) == [*COMMANDS]
    known = {code for code, _ in re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)}
    assert {str(one.exit_code) for one in printed.every_error()} < known


def test_notes_of_commands_and_descriptions_of_columns_are_of_some_that_exist(repository):
    page = (repository / REFERENCE).read_text(encoding="utf-8")
    assert set(re.findall(r"^### (contam .*)$", page, re.MULTILINE)) <= set(COMMANDS)
    tables = printed.tables()
    for table, own in printed.DESCRIBED.items():
        if table not in {"any", "endings"} and not table.endswith(".json"):
            assert own.keys() <= tables[table].keys(), table


def keys_of(value, path=""):
    """The keys of run.json as they are described."""
    named = {
        "parameters.policy_definitions": "POLICY",
        "versions": "PACKAGE",
        "counts": "BENCHMARK",
        "counts.BENCHMARK": "POLICY",
        "counts.BENCHMARK.POLICY": "LABEL",
        "outputs": "FILE",
        "coverage.columns": "COLUMN",
        "inputs.benchmarks[].skipped": "REASON",
        "coverage.by_shard[].columns": "COLUMN",
    }
    whole = {"parameters.policy_definitions.POLICY"}
    if isinstance(value, dict) and path not in whole:
        for key, inner in value.items():
            name = named.get(path, key)
            yield from keys_of(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from keys_of(inner, f"{path}[]")
    else:
        yield path


def test_every_key_of_a_run_is_described(bench_fixtures, tmp_path):
    result = contam.scan(bench_fixtures / "corpus", bench_fixtures / "items", every_hit=True)
    run = json.loads((contam.write_report(result, tmp_path / "out") / "run.json").read_bytes())
    assert set(printed.DESCRIBED["run.json"]) == set(keys_of(run)) | {
        "coverage.shards_failed",
        # Only where they say something.
        "coverage.n_blank",
        "coverage.not_indexed",
        "coverage.passed_over",
        "coverage.shards_excluded",
        "coverage.unread_columns",
        "inputs.benchmarks[].skipped.REASON",
        "inputs.benchmarks[].incomplete.REASON",
        *(f"inputs.skipped_files[].{name}" for name in ("path", "reason")),
        *(f"inputs.benchmarks[].skipped_files[].{name}" for name in ("path", "reason")),
        "parameters.columns",
        "parameters.exclude",
        "parameters.ignore",
        "parameters.include_path",
        "parameters.lines",
    }


def test_the_reference_names_every_environment_variable(repository):
    read = set()
    for path in (repository / "contam").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        secrets = _SECRET.findall(text)
        read |= {*_ENVIRONMENT.findall(text), *secrets, *(f"{name}_FILE" for name in secrets)}
    assert set(names(section(repository, "Environment variables"))) == read | _READ_ELSEWHERE


def test_dir_names_what_is_public_and_nothing_else():
    import contam.detect.scan

    assert dir(contam) == sorted(contam.__all__)


# ------------------------------------------------------------------------------- pictures


PICTURES = "docs/pictures"


@pytest.mark.slow
def test_the_pictures_are_current(repository, tmp_path):
    script = repository / PICTURES / "make_pictures.py"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = {path.name: path.read_text() for path in (repository / PICTURES).glob("*.svg")}
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert kept == drawn, "`make pictures` draws them again"
    for text in drawn.values():
        # A picture of a page that opens offline fetches nothing.
        assert "href" not in text
        assert "<title>" in text
