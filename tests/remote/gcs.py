"""A Google Cloud Storage server of one process: its JSON interface, as far as Arrow uses it."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from urllib.parse import unquote

from tests.remote.server import Content, Handler, Request, running

PAGE = 1000


class GcsHandler(Handler):
    """Objects are looked at, listed, read, written in one or several requests, and deleted."""

    def answer(self, request: Request) -> None:
        # A key stands in the path as one part, with its slashes encoded.
        raw = self.path.partition("?")[0]
        found = re.fullmatch(
            r"/(upload/)?(?:storage/v1/b|download/storage/v1/b)/([^/]+)/o(?:/(.+))?", raw
        )
        if found is None:
            # Bytes may be asked for in the way of XML: by bucket and key.
            bucket, key = unquote(raw).lstrip("/").partition("/")[::2]
            self._read(bucket, key, request)
            return
        bucket, key = unquote(found[2]), unquote(found[3] or "")
        if found[1]:
            self._upload(bucket, request)
        elif self.command == "DELETE":
            gone = self.server.contents.pop(f"/{bucket}/{key}", None)
            self.refuse(404, "notFound") if gone is None else self.send(204, b"")
        elif not key:
            self._list(bucket, request.query)
        elif request.query.get("alt") == "media":
            self._read(bucket, key, request)
        elif content := self.server.contents.get(f"/{bucket}/{key}"):
            self._say(200, _resource(bucket, key, content))
        else:
            self.refuse(404, "notFound")

    def refuse(self, status: int, code: str) -> None:
        self._say(status, {"error": {"code": status, "message": code, "errors": []}})

    def _read(self, bucket: str, key: str, request: Request) -> None:
        content = self.server.contents.get(f"/{bucket}/{key}")
        wanted = request.query.get("generation")
        if content is None or wanted not in (None, str(_generation(content))):
            self.refuse(404, "notFound")
        else:
            self.send_content(content, request, **{"x-goog-generation": str(_generation(content))})

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        home = f"/{bucket}/"
        names = sorted(path.removeprefix(home) for path in self.server.contents
                       if path.startswith(home + prefix))  # fmt: skip
        if not any(path.startswith(home) for path in self.server.contents):
            self.refuse(404, "notFound")
            return
        folders = {prefix + name[len(prefix):].partition(delimiter)[0] + delimiter for name in names
                   if delimiter and delimiter in name[len(prefix):]}  # fmt: skip
        names = [name for name in names if not delimiter or delimiter not in name[len(prefix) :]]
        left = [name for name in names if name > query.get("pageToken", "")]
        page = left[: min(int(query.get("maxResults") or PAGE), PAGE)]
        said = {
            "kind": "storage#objects",
            "items": [_resource(bucket, name, self.server.contents[home + name]) for name in page],
            "prefixes": sorted(folders),
        }
        self._say(200, said | ({"nextPageToken": page[-1]} if len(left) > len(page) else {}))

    def _upload(self, bucket: str, request: Request) -> None:
        query = request.query
        number = query.get("upload_id", "")
        if query.get("uploadType") == "resumable" and not number:
            name = query.get("name") or json.loads(self.body)["name"]
            number = f"upload-{len(self.server.uploads) + 1}"
            self.server.uploads[number] = {}
            self.server.names[number] = f"/{bucket}/{name}"
            path = self.path.partition("?")[0]
            where = f"{self.server.url}{path}?uploadType=resumable&upload_id={number}"
            self.send(200, b"", Location=where)
        elif number in self.server.uploads:
            parts = self.server.uploads[number]
            parts[len(parts)] = self.body
            size = sum(map(len, parts.values()))
            if self.headers.get("Content-Range", "").endswith("/*"):
                self.send(308, b"", Range=f"bytes=0-{size - 1}")
                return
            del self.server.uploads[number]
            self._finish(self.server.names[number], b"".join(parts.values()))
        elif query.get("uploadType") == "multipart":
            boundary = (
                b"--" + self.headers["Content-Type"].partition("boundary=")[2].strip("\"'").encode()
            )
            _, about, content = self.body.split(boundary)[:3]
            name = query.get("name") or json.loads(about.partition(b"\r\n\r\n")[2])["name"]
            self._finish(
                f"/{bucket}/{name}", content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
            )
        else:
            self._finish(f"/{bucket}/{query['name']}", self.body)

    def _finish(self, path: str, data: bytes) -> None:
        self.server.put(path, data)
        bucket, _, name = path.lstrip("/").partition("/")
        self._say(200, _resource(bucket, name, self.server.contents[path]))

    def _say(self, status: int, found: object) -> None:
        self.send(status, json.dumps(found).encode(), "application/json")


def _generation(content: Content) -> int:
    return content.modified * 1_000_000 + int(content.etag[:4], 16)


def _resource(bucket: str, name: str, content: Content) -> dict[str, str]:
    time = datetime.fromtimestamp(content.modified, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{_generation(content)}",
        "name": name,
        "bucket": bucket,
        "generation": str(_generation(content)),
        "metageneration": "1",
        "size": str(len(content.data)),
        "etag": content.etag,
        "timeCreated": time,
        "updated": time,
    }


if __name__ == "__main__":
    # A process of its own: Arrow waits for this kind of store with the interpreter's lock held.
    with running(GcsHandler) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
