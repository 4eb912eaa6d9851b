"""The pages of the documentation as tests see them: their code blocks, run as a reader would.

A block marked `console` holds commands behind `$ ` and, below each, what it prints. `python` blocks
of one page share their names; a `text` block right behind a `python` or `sql` block is its output.
A block marked `bash FILE` is that file, which commands below it run.
`python -m tests.contracts.pages` writes the outputs of all pages afresh.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
#: Pages whose blocks are run. The others show no commands or repeat those of these.
RUN = (
    "README.md",
    "docs/guides/start.md",
    "docs/guides/data.md",
    "docs/guides/data/tokens.md",
    "docs/guides/data/clusters.md",
    "docs/guides/evaluation.md",
    "docs/guides/evaluation/studies.md",
    "docs/guides/audit.md",
    "docs/guides/evaluation/service.md",
    "docs/guides/faq.md",
    "docs/policies.md",
)
#: Pages whose scripts a test of their own runs on a corpus that suits them.
RUN_ELSEWHERE = {"docs/guides/data/cleaning.md": "tests/docs/test_cleaning_page.py"}
#: Width of the terminal that the shown outputs come from.
COLUMNS = "92"
#: Installing is tested by `make demo` itself, on a fresh machine; long targets are only looked up.
_INSTALLS = re.compile(r"^(\S+/)?(pip|python3?) (-m (pip|venv) )?|^make (?!demo)")
_FENCE = re.compile(r"^```(\w*) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHORTER = re.compile(r"^(?P<call>.*?) \| (?P<how>head|tail) -(?P<n>\d+)$", re.DOTALL)
_FIRST_RUN = "compiling kernels"
#: Behind these words another library speaks, and its next release may say it otherwise.
_FOREIGN = re.compile(r"(cannot be read: ).*")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is, its text, and where that begins and ends."""

    language: str
    file: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Shown:
    """Something a page runs, and the stretch of the page that shows what it prints.

    start  where the output begins, -1 where the page shows none
    file   the file that is written, for one that is run by commands
    """

    kind: str
    source: str
    output: str
    start: int = -1
    end: int = -1
    file: str = ""


@dataclass
class Session:
    """What a reader at one terminal, in a folder of their own, has done so far."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    services: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, shown: Shown) -> str:
        """Run one command, snippet or query; returns what it printed."""
        with contextlib.chdir(self.folder):
            if shown.kind == "console":
                return self._command(shown.source)
            if shown.file:
                Path(shown.file).write_text(shown.source, encoding="utf-8")
                return ""
            if shown.kind == "sql":
                import duckdb

                return str(duckdb.sql(shown.source))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(shown.source, "<page>", "exec"), self.names)  # noqa: S102 - ours
            return printed.getvalue()

    def _command(self, line: str) -> str:
        if line == "echo $?":
            return f"{self.exit_code}\n"
        if line == "make demo":
            return "".join(f"$ {one}\n{self._command(one)}" for one in recipe("demo"))
        shorter = _SHORTER.match(line)
        if shorter:
            lines = self._command(shorter["call"]).splitlines(keepends=True)
            n = int(shorter["n"])
            return "".join(lines[:n] if shorter["how"] == "head" else lines[-n:])
        words = shlex.split(line)
        if words[:2] == ["contam", "serve"] and words[-1] == "&":
            self._serve(words[1:-1])
            return ""
        if words[0] == "contam":
            return self._contam(words[1:])
        done = subprocess.run(
            ["bash", "-c", line],
            # A script calls the contam that is tested.
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.exit_code = done.returncode
        return done.stdout

    def _serve(self, arguments: list[str]) -> None:
        """Start a service, and wait until it is ready."""
        import httpx

        service = subprocess.Popen(
            [sys.executable, "-m", "contam", *arguments],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.services.append(service)
        place = f"http://127.0.0.1:{arguments[arguments.index('--port') + 1]}/readyz"

        def ready() -> bool:
            assert service.poll() is None, "the service ended"
            with contextlib.suppress(httpx.TransportError):
                return bool(httpx.get(place).status_code == httpx.codes.OK)
            return False

        wait_until(ready, pause_s=0.1, said="the service did not get ready")

    def close(self) -> None:
        """End the services that were started."""
        for service in self.services:
            service.terminate()
            service.wait()

    def _contam(self, arguments: list[str]) -> str:
        from contam.cli.main import main

        screen = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            self.exit_code = main(arguments)
        screen.seek(0)
        printed = "".join(line for line in screen if not line.startswith(_FIRST_RUN))
        return printed.replace(str(self.folder), "/checkout")


def recipe(target: str) -> list[str]:
    """The `contam` commands that a make target runs once everything is installed."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    body = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert body, f"make {target}"
    lines = [" ".join(line.split()) for line in body[1].splitlines()]
    return [line.replace("$(BIN)/contam", "contam") for line in lines]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(found[1], found[2], found[3], found.start(3), found.end(3))
        for found in _FENCE.finditer(page)
    ]


def without_blocks(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page)


def is_install(command: str) -> bool:
    """Whether a command sets the reader's machine up; it is not run."""
    return bool(_INSTALLS.match(command))


def things_run(page: str) -> list[Shown]:
    """Everything a page runs, in order, with the output it shows."""
    found: list[Shown] = []
    all_blocks = blocks(page)
    for at, block in enumerate(all_blocks):
        if block.language == "console":
            found += _commands(block)
        elif block.language == "bash" and block.file:
            found.append(Shown("bash", block.text, "", file=block.file))
        elif block.language in ("python", "sql"):
            behind = all_blocks[at + 1] if at + 1 < len(all_blocks) else None
            shown = Shown(block.language, block.text, "")
            if behind and behind.language == "text":
                between = page[block.end : behind.start]
                if between.replace("```", "").replace("text", "").strip() == "":
                    span = (behind.start, behind.end)
                    shown = Shown(block.language, block.text, behind.text, *span)
            found.append(shown)
    return found


def _commands(block: Block) -> list[Shown]:
    pieces = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert pieces[0] == "", f"a console block begins with a command: {block.text[:60]!r}"
    found = []
    at = block.start
    for piece in pieces[1:]:
        command, _, output = re.match(r"((?:.*\\\n)*.*\n)()((?:.*\n)*)", piece).groups()
        begin = at + 2 + len(command)
        at += 2 + len(piece)
        line = " ".join(command.replace("\\\n", " ").split(" "))
        line = re.sub(r" +", " ", line.strip())
        found.append(Shown("console", line, output, begin, at))
    return found


def same(left: str, right: str, kind: str) -> bool:
    """Whether two outputs say the same; of a query the lines around the values do not count."""
    return _plain(left, kind) == _plain(right, kind)


def _plain(text: str, kind: str) -> list[list[str]]:
    if kind != "sql":
        lines = text.strip("\n").splitlines()
        return [[_FOREIGN.sub(r"\1", line).rstrip()] for line in lines]
    rows = [re.split(r" *[│|] *", line.strip()) for line in text.splitlines() if "│" in line]
    return [[cell for cell in row if cell] for row in rows]


@contextlib.contextmanager
def reader():
    """A session in a fresh folder that holds a copy of bench_fixtures."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    with tempfile.TemporaryDirectory() as folder:
        for name in (
            "corpus",
            "items",
            "logs",
            "studies",
            "tokens",
            "truth.jsonl",
            "AUDIT.toml",
            "RULES.toml",
        ):
            source, copy = (
                REPOSITORY / "bench_fixtures" / name,
                Path(folder, "bench_fixtures", name),
            )
            if source.is_dir():
                shutil.copytree(source, copy)
            else:
                shutil.copy(source, copy)
        session = Session(Path(folder))
        try:
            yield session
        finally:
            session.close()
            if before is None:
                del os.environ["COLUMNS"]
            else:
                os.environ["COLUMNS"] = before


def rewrite(path: Path) -> None:
    """Write the outputs that a page shows afresh; commands that show none stay without."""
    page = path.read_text(encoding="utf-8")
    changes = []
    with reader() as session:
        for shown in things_run(page):
            if shown.kind == "console" and is_install(shown.source):
                continue
            output = session.run(shown)
            if shown.output.strip() and not same(output, shown.output, shown.kind):
                changes.append((shown, output))
    for shown, output in reversed(changes):
        ready = "\n".join(line.rstrip() for line in output.strip("\n").splitlines()) + "\n"
        if shown.output.endswith("\n\n"):
            ready += "\n"
        page = page[: shown.start] + ready + page[shown.end :]
    path.write_text(page, encoding="utf-8")
    print(f"{path.relative_to(REPOSITORY)}: {len(changes)} outputs changed")


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY))
    for name in sys.argv[1:] or RUN:
        rewrite(REPOSITORY / name)
