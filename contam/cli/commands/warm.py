"""`contam warm`: compile all kernels before anybody waits for them."""

from __future__ import annotations

from contam.cli import options, render
from contam.cli.progress import Reporter
from contam.cli.terminal import talk


def warm(
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Compile all kernels now, which the first scan, build and query would do otherwise.

    Examples:
        contam warm
        contam warm --json
    """
    # Imported here: this loads the compiler.
    from contam.detect.warm import run_a_little
    from contam.kernels.warm_up import compile_once, folder, is_kept

    with Reporter(quiet=quiet) as progress:
        compile_once("all", run_a_little, progress)
    if as_json:
        render.emit_json({"folder": str(folder()) if is_kept() else None})
    elif not quiet and is_kept():
        talk(f"all kernels are compiled, in {folder()}")
    return 0 if is_kept() else 1
