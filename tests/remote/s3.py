"""An S3 server of one process: buckets are first folders, listings come in pages."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape, unescape

from tests.remote.server import Content, Handler, Request, Store

PAGE = 1000


class S3Handler(Handler):
    """GET, HEAD, PUT and DELETE of objects, uploads in parts, and ListObjectsV2."""

    def answer(self, request: Request) -> None:
        bucket, _, key = request.path.strip("/").partition("/")
        if request.path.endswith("/") and key:
            key += "/"
        buckets = {path.split("/")[1] for path in self.server.contents}
        if bucket not in buckets | self.server.buckets:
            self.refuse(404, "NoSuchBucket")
        elif self.command in ("PUT", "POST", "DELETE"):
            self._write(f"/{bucket}/{key}", request.query)
        elif key:
            content = self.server.contents.get(f"/{bucket}/{key}")
            if content is None:
                self.refuse(404, "NoSuchKey")
            else:
                self.send_content(content, request)
        elif self.command == "HEAD":
            self.send(200, b"", **{"x-amz-bucket-region": "us-east-1"})
        else:
            self._list(bucket, request.query)

    def refuse(self, status: int, code: str) -> None:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
        self.send(status, body.encode(), "application/xml")

    def _write(self, path: str, query: dict[str, str]) -> None:
        number = query.get("uploadId", "")
        parts = self.server.uploads.get(number)
        if "delete" in query:
            self._delete_all(path)
        elif self.command == "POST" and "uploads" in query:
            number = f"upload-{len(self.server.uploads) + 1}"
            self.server.uploads[number] = {}
            self._answer("InitiateMultipartUploadResult", f"<UploadId>{number}</UploadId>")
        elif number and parts is None:
            self.refuse(404, "NoSuchUpload")
        elif self.command == "DELETE":
            if number:
                del self.server.uploads[number]
            else:
                self.server.contents.pop(path, None)
            self.send(204, b"")
        elif self.command == "PUT" and number:
            parts[int(query["partNumber"])] = self.body
            self.send(200, b"", ETag=f'"{hashlib.md5(self.body).hexdigest()}"')  # noqa: S324 - as S3
        elif number:
            named = [int(one) for one in re.findall(rb"<PartNumber>(\d+)</PartNumber>", self.body)]
            self.server.put(path, b"".join(parts[one] for one in named))
            del self.server.uploads[number]
            self._answer("CompleteMultipartUploadResult", "<ETag>&quot;whole&quot;</ETag>")
        else:
            self.server.put(path, self.body)
            self.send(200, b"", ETag=f'"{self.server.contents[path].etag}"')

    def _delete_all(self, path: str) -> None:
        for key in re.findall(rb"<Key>([^<]*)</Key>", self.body):
            self.server.contents.pop(path.rstrip("/") + "/" + unescape(key.decode()), None)
        self._answer("DeleteResult", "")

    def _answer(self, kind: str, body: str) -> None:
        name = f'{kind} xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        self.send(200, f"<?xml version='1.0'?><{name}>{body}</{kind}>".encode(), "application/xml")

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most = min(int(query.get("max-keys") or PAGE), PAGE)
        names = sorted(path.removeprefix(f"/{bucket}/") for path in self.server.contents
                       if path.startswith(f"/{bucket}/{prefix}"))  # fmt: skip
        rows: dict[str, Content | None] = {}
        for name in names:
            folder, found, _ = (
                name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            )
            if found:
                rows[prefix + folder + delimiter] = None
            else:
                rows[name] = self.server.contents[f"/{bucket}/{name}"]
        begin = query.get("continuation-token", "")
        left = [name for name in rows if name > begin]
        page = left[:most]
        body = "".join(_row(name, rows[name], etags=self.server.with_etags) for name in page)
        if len(left) > most:
            token = escape(page[-1])
            body += f"<NextContinuationToken>{token}</NextContinuationToken>"
        cut = "true" if len(left) > most else "false"
        answer = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{most}</MaxKeys><IsTruncated>{cut}</IsTruncated>{body}</ListBucketResult>"
        )
        self.send(200, answer.encode(), "application/xml")


def _row(name: str, content: Content | None, *, etags: bool) -> str:
    if content is None:
        return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
    tag = f"&quot;{content.etag}&quot;" if etags else ""
    time = _iso(content.modified)
    return (
        f"<Contents><Key>{escape(name)}</Key><LastModified>{time}</LastModified>"
        f"<ETag>{tag}</ETag><Size>{len(content.data)}</Size></Contents>"
    )


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def put_folder(store: Store, bucket: str, files: dict[str, bytes]) -> None:
    """Put files into a bucket."""
    for name, data in files.items():
        store.put(f"/{bucket}/{name}", data)
