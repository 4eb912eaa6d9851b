"""Time out HTTP connections: slow heads, slow bodies and slow readers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from contam.server.problems.remedies import BY_CODE

if TYPE_CHECKING:
    import asyncio

_MOST_HEAD_BYTES: Final = 16 << 10
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_FOLD: Final = re.compile(rb"\n[ \t]")


class _PlainHeads(h11.Connection):
    """Refuses heads with folded lines, which RFC 9112 lets a server do.

    A proxy may see another header in the second line, or none: what it let pass is then not what
    the service reads.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        if self.their_state is h11.IDLE:
            head = _HEAD_END.split(self.trailing_data[0].lstrip(b"\r\n"), maxsplit=1)[0]
            if _FOLD.search(head):
                raise h11.RemoteProtocolError("a header line is folded", error_status_hint=400)
        return super().next_event()


class PatientProtocol(H11Protocol):
    """Closes connections on which nothing happens for `patience_s` seconds.

    uvicorn bounds the pause between requests only. Here that is: a head that is not
    whole, a body that still comes after its request was answered, an answer nobody takes.
    """

    conn: h11.Connection
    patience_s = 30.0
    _waiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().__init__(*args, **kwargs)
        self.conn = _PlainHeads(h11.SERVER, _MOST_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """A head has to come."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        self._taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head, and no longer once it is whole."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()
        elif self.conn.our_state is not h11.DONE:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody wanted."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def pause_writing(self) -> None:
        """The client takes nothing."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client takes what it gets."""
        self._taken()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """A problem document, like every other failure."""
        body = orjson.dumps(_problem(msg))
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.patience_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _taken(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def patient_protocol(patience_s: float) -> type[PatientProtocol]:
    """A protocol of this patience, for uvicorn's `http=`."""
    return type("PatientProtocol", (PatientProtocol,), {"patience_s": patience_s})


def _problem(detail: str) -> dict[str, Any]:
    return {
        "type": "urn:contam:problem:bad-request",
        "title": "The request cannot be read",
        "status": 400,
        "detail": detail,
        "code": "bad-request",
        "hint": BY_CODE["bad-request"],
        "request_id": "",
    }
