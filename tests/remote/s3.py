"""An S3 server of one process: buckets are first folders, listings come in pages."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.sax.saxutils import escape

from tests.remote.server import Content, Handler, Request, Store

PAGE = 1000


class S3Handler(Handler):
    """GET and HEAD of objects, and ListObjectsV2."""

    def answer(self, request: Request) -> None:
        bucket, _, key = request.path.strip("/").partition("/")
        if request.path.endswith("/") and key:
            key += "/"
        buckets = {path.split("/")[1] for path in self.server.contents}
        if bucket not in buckets:
            self.refuse(404, "NoSuchBucket")
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
