"""An Azure Blob Storage server of one process, to read from: `/ACCOUNT/CONTAINER/KEY`."""

from __future__ import annotations

from email.utils import formatdate
from xml.sax.saxutils import escape

from tests.remote.server import Content, Handler, Request

ACCOUNT = "devstoreaccount1"
PAGE = 5000


class AzureHandler(Handler):
    """GET and HEAD of blobs, and their list."""

    def answer(self, request: Request) -> None:
        _, account, container, *key = request.path.split("/", 3)
        blob = "/".join(key)
        content = self.server.contents.get(f"/{container}/{blob}")
        if account != ACCOUNT:
            self.refuse(403, "AuthenticationFailed")
        elif request.query.get("action") == "getAccessControl":
            self.refuse(400, "HierarchicalNamespaceNotEnabled")
        elif request.query.get("comp") == "list":
            self._list(container, request.query)
        elif content is None:
            self.refuse(404, "BlobNotFound")
        else:
            kind = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2024-08-04",
                    "x-ms-creation-time": formatdate(content.modified, usegmt=True),
                    "x-ms-server-encrypted": "true"}  # fmt: skip
            self.send_content(content, request, **kind)

    def refuse(self, status: int, code: str) -> None:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
        # What has no body is no XML, and is not parsed.
        kind = "text/plain" if self.command == "HEAD" else "application/xml"
        self.send(status, body.encode(), kind, **{"x-ms-error-code": code})

    def _list(self, container: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        home = f"/{container}/"
        rows: dict[str, Content | None] = {}
        for path in sorted(self.server.contents):
            if not path.startswith(home + prefix):
                continue
            name = path.removeprefix(home)
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                rows[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                rows[name] = self.server.contents[path]
        left = [name for name in rows if name > query.get("marker", "")]
        page = left[: min(int(query.get("maxresults") or PAGE), PAGE)]
        body = "".join(_row(name, rows[name]) for name in page)
        marker = escape(page[-1]) if len(left) > len(page) else ""
        answer = (
            '<?xml version="1.0" encoding="utf-8"?>'
            f'<EnumerationResults ServiceEndpoint="{self.server.url}/{ACCOUNT}" '
            f'ContainerName="{container}"><Blobs>{body}</Blobs>'
            f"<NextMarker>{marker}</NextMarker></EnumerationResults>"
        )
        self.send(200, answer.encode(), "application/xml")


def _row(name: str, content: Content | None) -> str:
    if content is None:
        return f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
    time = formatdate(content.modified, usegmt=True)
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Creation-Time>{time}</Creation-Time>"
        f"<Last-Modified>{time}</Last-Modified><Etag>{content.etag}</Etag>"
        f"<Content-Length>{len(content.data)}</Content-Length>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
    )
