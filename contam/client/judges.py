"""Ask a judge about one pair: an endpoint that speaks chat completions, or a command here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import httpx

from contam.client.calls import Connection, is_loopback
from contam.client.retry import Retry, retry_after_s
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.audit.review.judged import Prompt
    from contam.audit.review.pairs import PairText

TIMEOUT_S: Final = 60.0
"""Seconds that one answer may take."""

RETRY: Final = Retry(attempts=5, total_s=180.0)

_PATH: Final = "/chat/completions"
_MOST_BYTES: Final = 1 << 20
#: Statuses that say the same of every request: a wrong key, address or model.
_SAME_FOR_ALL: Final = frozenset({401, 402, 403, 404, 405})
#: Reasons for which a reply is no whole one.
_ENDED: Final = (None, "stop")


class JudgeError(Exception):
    """One pair has no reply; the message says why, and quotes nothing.

    ends_all  whether no other pair will have one
    """

    def __init__(self, message: str, *, ends_all: bool = False) -> None:
        super().__init__(message)
        self.ends_all = ends_all


class Judge(Protocol):
    """Who answers. Used by several threads."""

    def reply(self, text: PairText) -> str | None:
        """What it says of a pair; None where it refused, or was cut off. Raises JudgeError."""

    def stop(self) -> None:
        """End all that is being asked."""


class EndpointJudge:
    """A model behind an address that speaks the chat completions of OpenAI.

    endpoint   such as "https://HOST/v1": `/chat/completions` is added
    key        is sent as a bearer token, and never shown
    timeout_s  seconds for one whole answer

    Redirects are not followed: texts go to the host that was named. Raises UsageError for an
    address that is none.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        model: str,
        prompt: Prompt,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: Retry = RETRY,
    ) -> None:
        connection = Connection(
            server=endpoint, key=key, timeout_s=timeout_s, key_name="CONTAM_JUDGE_KEY"
        )
        self._http = httpx.Client(**connection.options())
        self._model, self._prompt = model, prompt
        self._timeout_s, self._retry = timeout_s, retry
        self._stopped = threading.Event()

    def reply(self, text: PairText) -> str | None:
        """Ask until there is an answer, or no hope of one."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": self._prompt.of(text)}],
            **self._prompt.fields,
        }
        attempt, waited_s = 0, 0.0
        while True:
            attempt += 1
            asked_s = None
            try:
                status, headers, content = self._post(body)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failure = JudgeError(f"no whole answer ({type(error).__name__})")
            else:
                if status == HTTPStatus.OK:
                    try:
                        return _content(content)
                    except ValueError as error:
                        failure = JudgeError(str(error))
                else:
                    failure = JudgeError(f"status {status}", ends_all=_ends_all(status))
                    asked_s = retry_after_s(headers)
                    if not _may_pass(status):
                        raise failure
            wait_s = self._retry.wait_s(attempt, waited_s, asked_s)
            if wait_s is None or self._stopped.wait(wait_s):
                raise failure
            waited_s += wait_s

    def _post(self, body: Mapping[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        """Status, headers and body of one answer; raises HTTPError when it takes too long."""
        ends = time.monotonic() + self._timeout_s
        with self._http.stream("POST", _PATH, json=body) as reply:
            content = b""
            for chunk in reply.iter_bytes():
                content += chunk
                # A timeout of httpx is that of one piece, and pieces may come forever.
                if time.monotonic() > ends or len(content) > _MOST_BYTES:
                    raise httpx.ReadTimeout("the answer takes too long")
            return reply.status_code, reply.headers, content

    def stop(self) -> None:
        """Wait no longer, and let go of the connections."""
        self._stopped.set()
        self._http.close()


def _ends_all(status: int) -> bool:
    redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    return status in _SAME_FOR_ALL or redirect


def _may_pass(status: int) -> bool:
    passing = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
    return status in passing or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _content(body: bytes) -> str | None:
    """The text of a chat completion, None for a refusal or one that was cut off.

    Raises ValueError for a body that is no chat completion.
    """
    try:
        choice = json.loads(body)["choices"][0]
        said = choice["message"]["content"]
        reason = choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("the answer is no chat completion") from error
    return said if isinstance(said, str) and reason in _ENDED else None


@dataclass(slots=True)
class CommandJudge:
    """A command of a shell on this machine: a process for each pair.

    It reads one JSON object (`question`, `document`, `prompt`) from its standard input and writes
    its answer to its standard output. Another exit code than 0 is no answer.
    """

    command: str
    prompt: Prompt
    timeout_s: float = TIMEOUT_S
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _stopped: bool = field(default=False, init=False, repr=False)

    def reply(self, text: PairText) -> str | None:
        """Run the command; what it writes to standard error goes where ours goes."""
        row = {"question": text.question, "document": text.document, "prompt": self.prompt.of(text)}
        process = self._started()
        try:
            said, _ = process.communicate(json.dumps(row).encode() + b"\n", self.timeout_s)
        except subprocess.TimeoutExpired as error:
            # Also where the shell has gone and what it left holds the output open.
            _end(process)
            raise JudgeError(f"no answer in {self.timeout_s:g} seconds") from error
        finally:
            with self._lock:
                self._running.discard(process)
            _close(process)
            process.wait()
        if process.returncode:
            raise JudgeError(f"exit code {process.returncode}")
        return said.decode("utf-8", "replace")

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise JudgeError("stopped")
            # A group of its own, so that all of a pipe can be ended.
            process = subprocess.Popen(  # noqa: S603 - what the user typed as the judge
                ["/bin/sh", "-c", self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def stop(self) -> None:
        """End the processes that run."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def stays_here(endpoint: str) -> bool:
    """Whether an address is this machine, so that no text leaves it. False for what is none."""
    try:
        return is_loopback(urlsplit(endpoint).hostname or "")
    except ValueError:
        return False


def judge_key() -> str | None:
    """The key of the endpoint, None where there is none. Raises UsageError for what cannot be."""
    key = os.environ.get("CONTAM_JUDGE_KEY", "").strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError("the key in CONTAM_JUDGE_KEY is not one line of plain characters")
    return key or None
