"""Run the `contam` command: parse, call one function, turn errors into exit codes.

Nothing heavy is imported here.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from contam.cli.commands import (
    audit,
    diff,
    index,
    items,
    logs,
    query,
    rescore,
    scan,
    serve,
    show,
    study,
)
from contam.cli.options import flag, help_without_command, spread_values
from contam.cli.results import EXIT_FLAGGED, EXIT_INCOMPLETE
from contam.cli.terminal import emit, plain, talk
from contam.errors import ContamError, UsageError
from contam.extras import claim_process
from contam.memory import tune_command

if TYPE_CHECKING:
    from types import FrameType


EXIT_INTERRUPTED = 130
EXIT_CODES: Final = {
    0: "done",
    1: "failed",
    2: "wrong call",
    EXIT_FLAGGED: "flagged (--fail-on-flagged)",
    EXIT_INCOMPLETE: "part of the corpus not read",
    EXIT_INTERRUPTED: "interrupted",
}

_STOPPED: Final = "results are there whole or not at all; the same call goes on from kept parts"

_END: Final = re.compile(r"[;:.](?=\s|$)")
"""What ends the line about a command in the list of all."""


def add_examples(app: typer.Typer) -> None:
    """Show the examples that docstrings end with below the options of every command of an app."""
    for command in app.registered_commands:
        text, _, examples = (getdoc(command.callback) or "").partition("\n\nExamples:\n")
        command.help = text
        # The mark keeps the lines as they are.
        command.epilog = "\n".join(["\b", "Examples:", *map(str.strip, examples.splitlines())])
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance)


class GroupedHelp(TyperGroup):
    """Lists the commands under the headings that they were given.

    The panels of rich cut long words off at 80 columns, and take `[default: x]` for markup.
    """

    # Both are classes of click, or of the copy of it that newer versions of typer have.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write a section for each heading, all with the same indent."""
        longest = max(map(len, self.commands))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            said = _END.split(command.help or "", maxsplit=1)[0]
            panels.setdefault(getattr(command, "rich_help_panel", ""), []).append(
                (name.ljust(longest), said)
            )
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=GroupedHelp,
    name="contam",
    help="Which test items does a training corpus already contain, and what text proves it?",
    epilog=f"Exit codes: {', '.join(f'{code} {what}' for code, what in EXIT_CODES.items())}.",
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
GROUPS: Final[dict[str, tuple[Callable[..., Any] | typer.Typer, ...]]] = {
    "Find what a corpus contains": (
        items.benchmarks, items.items, scan.scan, query.query, index.app, show.show, show.sql,
        diff.diff, items.policies, scan.warm,
    ),
    "Take it out of a corpus": (scan.clean,),
    "Score models on clean items": (
        logs.logs, rescore.rescore, logs.export, logs.annotate, study.app,
    ),
    "Serve answers, and ask for them": (serve.serve, serve.keys, query.check),
    "Sign off a release": (audit.app, audit.review),
}  # fmt: skip
for title, commands in GROUPS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=title)
        else:
            app.command(rich_help_panel=title)(command)
add_examples(app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = flag("--version", "Print the version."),
    # Taken by `main`, listed here for --help.
    debug: bool = flag("--debug", "Of every command: show the stack trace of an error."),  # noqa: ARG001
) -> None:
    if version:
        import contam

        emit(f"contam {contam.__version__}\n")
        raise typer.Exit
    help_without_command(context)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    claim_process()
    if _command(arguments) != "serve":
        tune_command()
    if not sys.warnoptions and "--debug" not in arguments:
        warnings.simplefilter("ignore")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup the signal is ignored, and stays so.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _terminate)
    by_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if _command(arguments) != "serve" and by_default:
        signal.signal(signal.SIGINT, Interrupt())
    code = main(arguments)
    if code == EXIT_INTERRUPTED:
        # Threads may still be inside a kernel; everything of ours is already put away.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code. Results on stdout, talk on stderr."""
    debug = "--debug" in arguments
    try:
        return _dispatch([word for word in arguments if word != "--debug"])
    except (KeyboardInterrupt, typer.Abort):
        talk(f"interrupted: {_STOPPED}")
        return EXIT_INTERRUPTED
    except _Terminated as stopped:
        talk(f"terminated: {_STOPPED}")
        raise SystemExit(stopped.code) from None
    except Exception as error:  # noqa: BLE001 - the last line of defence: no stack trace by default
        if debug:
            traceback.print_exc()
        code = ContamError.exit_code
        message = f"{type(error).__name__}: {error}"
        hint = "this is a defect of contam: see it with --debug"
        if isinstance(error, ContamError):
            message, hint, code = error.message, error.hint, error.exit_code
        elif isinstance(error, MemoryError):
            message = "out of memory"
            hint = "try fewer --workers, or give the process more memory"
        talk(f"error: {plain(message)}")
        if hint:
            talk(f"hint: {plain(hint)}")
        return code


def _command(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


@cache
def _tree() -> Any:  # noqa: ANN401 - typer's
    return typer.main.get_command(app)


def _dispatch(arguments: list[str]) -> int:
    root = _tree()
    leaf, path = _leaf(root, arguments)
    try:
        code = root.main(spread(leaf, arguments), prog_name="contam", standalone_mode=False)
    except Exception as error:
        if hasattr(error, "format_message"):
            # A parse error of typer, whose class has moved between its versions.
            raise _usage_error(error, " ".join(path)) from error
        raise
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _leaf(root: Any, arguments: Sequence[str]) -> tuple[Any, list[str]]:  # noqa: ANN401 - typer's
    """The command that is called, and its name: `index`, `build`."""
    node, path = root, []
    for word in arguments:
        if word in getattr(node, "commands", {}):
            node = node.commands[word]
            path.append(word)
    return node, path


def spread(command: Any, arguments: Sequence[str]) -> list[str]:  # noqa: ANN401 - typer's
    """Let options take every word up to the next option: help shows dots behind their values.

    Where a command has arguments, they may stand behind a list of names with commas.
    """
    has_arguments = any(param.param_type_name == "argument" for param in command.params)
    wanted = [
        option
        for param in command.params
        if param.param_type_name == "option" and param.multiple
        if str(param.metavar).endswith("...")
        if "=" in param.metavar or not (has_arguments and param.metavar.endswith(",..."))
        for option in param.opts
    ]
    return spread_values(arguments, wanted)


def _usage_error(error: Any, call: str) -> UsageError:  # noqa: ANN401 - typer's
    said = error.format_message().rstrip(".").replace("Value error, ", "")
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    if context is not None and param is not None:
        source = context.get_parameter_source(param.name)
        said += f" (from {param.envvar})" if source and source.name == "ENVIRONMENT" else ""
    return UsageError(said, hint=f"see `{f'contam {call}'.strip()} --help`")


class _Terminated(SystemExit):
    """A signal that ends the process."""


def _terminate(number: int, _frame: object) -> None:
    # Unwinds like any other error, so that drafts are removed on the way out.
    raise _Terminated(128 + number)


#: Until it is tried again, and the longest that the compiler is waited for, in seconds.
_PAUSE_S: Final = 0.05
_MOST_S: Final = 4.0


class Interrupt:
    """A handler of SIGINT that raises KeyboardInterrupt as soon as no kernel is being loaded.

    Machine code that is being loaded calls back into Python, where an exception is lost.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or send the signal again a little later."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if _is_compiling() and now - self._since < _MOST_S:
            later = threading.Timer(_PAUSE_S, os.kill, (os.getpid(), number))
            later.daemon = True
            later.start()
            return
        self._since = None
        raise KeyboardInterrupt


def _is_compiling() -> bool:
    """Whether this thread is inside the compiler, which is not loaded to find that out."""
    lock = sys.modules.get("numba.core.compiler_lock")
    return lock is not None and bool(lock.global_compiler_lock.is_locked())
