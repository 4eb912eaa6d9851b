"""Do one job: `python -m contam.server.jobs.task`, started by the service.

Its first line of stdin is the order; the rest of stdin stays open as long as the service lives, and
the process ends with it. It reports progress on stdout, a JSON object a line. It writes into
the job's folder alone, results whole or not at all, and never quotes an item.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import threading
import time
import traceback
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ContamError, UsageError
from contam.extras import claim_process
from contam.memory import bound
from contam.server.problems import tell

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE: Final = 0
FAILED: Final = 3
"""The job failed, and would fail again; the reason was written to stdout."""

INPUT: Final = "input"
"""The folder of a job with what was sent; it is the process's own, and goes with the job's end."""

REQUEST: Final = "request.json"
RESULT: Final = "result"
VERDICTS: Final = "verdicts"
LOGS: Final = "logs"
ITEMS: Final = ("items.jsonl", "items.jsonl.gz", "items.parquet")

_NICE: Final = 10
_MOST_FRAMES: Final = 4
#: Seconds between two reports of how far a job is.
_PACE_S: Final = 0.2
_SMALLER: Final = "send it in several jobs"
_DEFECT: Final = "a defect of contam: report it with the id of the job"


def main() -> int:
    """Do the job that stdin orders."""
    order = json.loads(sys.stdin.buffer.readline())
    # stdout is for reports alone: whatever a library prints goes nowhere.
    reports = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    report = ProgressWriter(reports)
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    folder = Path(order["folder"])
    result = folder / RESULT
    _lower_priority(order["memory_bytes"])
    try:
        # One may be there, published by a process whose service was killed before it knew.
        if not result.is_dir():
            os.chdir(folder / INPUT)
            request = json.loads(Path(REQUEST).read_bytes())
            if request["kind"] == "check":
                _check(request, order, report, result)
            else:
                _rescore(request, report, result)
    except MemoryError:
        report.failed("memory", "the job needs more memory than a job may have", _SMALLER)
        return FAILED
    except ContamError as error:
        report.failed(error.code, *tell(error, folder / INPUT))
        return FAILED
    except Exception as error:  # noqa: BLE001 - the boundary of the process
        report.failed("internal", f"the job failed: {_where(error)}", _DEFECT)
        return FAILED
    return DONE


class ProgressWriter:
    """Tells the service how far the job is; a `contam.detect.corpus.ScanProgress`, from any thread.

    handle  open until the process ends: its end is how the service knows of that
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0
        self._sent_at = 0.0

    def phase(self, name: str) -> None:
        """Another part of the work begins."""
        self._send({"phase": name})

    def start(self, total_bytes: int) -> None:
        """There are about so many bytes of documents to read."""
        with self._lock:
            self._done, self._total = 0, total_bytes
        self._send({"phase": "searching"})

    def advance(self, n_bytes: int) -> None:
        """So many more of them are read."""
        with self._lock:
            self._done += n_bytes
            now = time.monotonic()
            if now - self._sent_at < _PACE_S:
                return
            self._sent_at = now
            share = min(1.0, self._done / self._total) if self._total else 0.0
        self._send({"share": round(share, 4)})

    def note(self, message: str) -> None:
        """Of no use to whoever waits for a job."""

    def compiled(self, done: int, total: int) -> None:
        """Of no use to whoever waits for a job."""

    def finish(self) -> None:
        """All documents are read."""
        self._send({"phase": "judging", "share": 1.0})

    def failed(self, code: str, message: str, hint: str) -> None:
        """The job cannot be done."""
        self._send({"failed": {"code": code, "message": message, "hint": hint}})

    def _send(self, what: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(OSError):
            os.write(self._handle, json.dumps(what).encode() + b"\n")


def _check(
    request: Mapping[str, Any], order: Mapping[str, Any], report: ProgressWriter, out: Path
) -> None:
    """Judge the uploaded items by the indexes, into a folder as `contam query --out` writes it."""
    from contam.detect.query import query
    from contam.detect.report import report_draft
    from contam.index.blocks import use_cache

    named = request["benchmarks"]
    items = named or next(Path(name) for name in ITEMS if Path(name).exists())
    limit, folder = order["blocks"]
    use_cache(limit, Path(folder))
    with report_draft(out) as draft:
        report.phase("reading items")
        result = query(
            order["indexes"],
            items,
            policies=request["policies"],
            corpus=order["corpus"] or None,
            workers=order["threads"] or None,
            progress=report,
            **request["options"],
        )
        if not named:
            _refuse_documents(result.run)
        report.phase("writing")
        draft.write(result)


def _refuse_documents(run: Mapping[str, Any]) -> None:
    """Raise UsageError for a line that is a list of items, and so may be an item besides."""
    sources = [one for each in run["inputs"]["benchmarks"] for one in each["sources"]]
    if any(source["format"].partition("+")[0] == "json" for source in sources):
        raise UsageError(
            "the upload is one JSON document that holds a list", hint="send an item a line"
        )


def _rescore(request: Mapping[str, Any], report: ProgressWriter, out: Path) -> None:
    """Re-score the uploaded logs into a folder as `contam rescore --out` writes it."""
    from contam.rescore.logs.read import offering
    from contam.rescore.panel import RescoreSettings
    from contam.rescore.run import rescore as run_rescore
    from contam.rescore.run import write_rescore

    options = dict(request["options"])
    known = {setting.name for setting in fields(RescoreSettings)}
    settings = {name: options.pop(name) for name in known.intersection(options)}
    settings |= {name: tuple(settings[name]) for name in ("references", "metrics")}
    report.phase("re-scoring")
    with offering("--skip-damaged goes on without such logs"):
        result = run_rescore(
            VERDICTS,
            LOGS,
            policies=request["policies"],
            settings=RescoreSettings(**settings),
            **options,
        )
    report.phase("writing")
    # No picture ever leaves the service.
    write_rescore(result, out, plots=False)


def _end_with_the_service() -> None:
    """Read what nobody ever writes: it ends when the other end of the pipe is gone."""
    # `os.read` rather than the buffered stream, whose lock would be held while the process ends.
    while os.read(0, 1 << 12):
        pass
    os._exit(FAILED)


def _lower_priority(memory_bytes: int) -> None:
    """Requests come first, and this process is the first to go when memory runs out."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    bound(resource.RLIMIT_DATA, memory_bytes)


def _where(error: Exception) -> str:
    """An unexpected failure by its type and place: its message might quote a text."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places}"


if __name__ == "__main__":
    claim_process()
    code = main()
    # No waiting for threads of libraries: everything is on disk.
    os._exit(code)
