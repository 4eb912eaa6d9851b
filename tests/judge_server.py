"""A server in this process that speaks chat completions, well or badly, over real sockets."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.waiting import wait_until

#: Between the bytes of an answer that never ends.
_PACE_S = 0.02


def completion(content="yes", reason="stop"):
    choice = {"index": 0, "message": {"role": "assistant", "content": content}}
    return {"id": "x", "choices": [{**choice, "finish_reason": reason}]}


class JudgeServer:
    """Gives the answers of a script one after the other, and the last one from then on.

    answers   each a text that the model says, or (status, headers, body) or the word of a fault
    requests  what came: path, headers and body
    gather    so many requests are waited for before the first is answered
    """

    def __init__(self, *answers):
        self._answers = list(answers)
        self.requests = []
        self.most_at_once = 0
        self.gather = 0
        self._now = 0
        self._lock = threading.Lock()
        self.released = threading.Event()

    def next(self, request):
        with self._lock:
            self.requests.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def left(self):
        with self._lock:
            self._now -= 1


@contextlib.contextmanager
def serving(*answers):
    """The server and its address."""
    judge = JudgeServer(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = judge.next((self.path, dict(self.headers), json.loads(body)))
            wait_until(lambda: judge.most_at_once >= judge.gather)
            try:
                self.give(answer)
            finally:
                judge.left()

        def give(self, answer):
            if answer == "stall":
                judge.released.wait()
                self.close_connection = True
                return
            if isinstance(answer, tuple):
                status, headers, body = answer
            elif answer == "cut":
                status, headers, body = 200, {"Content-Length": "9000"}, b'{"choices": ['
                self.close_connection = True
            elif answer == "drip":
                status, headers, body = 200, {"Content-Length": "9000"}, b""
            else:
                status, headers, body = 200, {}, json.dumps(completion(answer)).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            with contextlib.suppress(OSError):
                while answer == "drip" and not judge.released.wait(_PACE_S):
                    self.wfile.write(b" ")
                    self.wfile.flush()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield judge, f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        judge.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
