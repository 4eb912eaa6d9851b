"""An endpoint as the Hugging Face Hub has it: revisions, trees, paths, and files by ranges."""

from __future__ import annotations

import hashlib
import json
import re
from urllib.parse import parse_qs, unquote

from tests.remote.server import Content, Handler, Request, Store

COMMITS = {"main": "a" * 40, "v2": "b" * 40}
_API = re.compile(r"/api/datasets/([^/]+/[^/]+)/(revision|tree|paths-info)/([^/]+)(?:/(.*))?")
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class HubHandler(Handler):
    """Contents are at `/owner/name/commit/path`; `elsewhere` gets what is redirected."""

    elsewhere: Store | None = None

    def answer(self, request: Request) -> None:
        if found := _API.fullmatch(request.path):
            self._api(*found.groups())
        elif found := _FILE.fullmatch(request.path):
            name, revision, path = found.groups()
            content = self.server.contents.get(f"/{name}/{revision}/{path}")
            if content is None:
                self.refuse(404, "EntryNotFound")
            elif self.elsewhere is not None:
                url = f"{self.elsewhere.url}/signed/{path}?Signature=of-the-hub"
                self.elsewhere.contents[f"/signed/{path}"] = content
                self.send(302, b"", Location=url)
            else:
                self.send_content(content, request)
        else:
            self.refuse(404, "RepoNotFound")

    def refuse(self, status: int, code: str) -> None:
        self.send(status, json.dumps({"error": code}).encode(), "application/json",
                  **{"X-Error-Code": code})  # fmt: skip

    def _api(self, name: str, what: str, revision: str, below: str | None) -> None:
        revision = unquote(revision)
        commit = COMMITS.get(revision, revision)
        home = f"/{name}/{commit}/"
        files = {
            path.removeprefix(home): content
            for path, content in sorted(self.server.contents.items())
            if path.startswith(home)
        }
        if not any(path.startswith(f"/{name}/") for path in self.server.contents):
            self.refuse(404, "RepoNotFound")
        elif not files:
            self.refuse(404, "RevisionNotFound")
        elif what == "revision":
            self._json({"id": name, "sha": commit, "siblings": []})
        elif what == "tree":
            prefix = f"{unquote(below)}/" if below else ""
            found = {path: each for path, each in files.items() if path.startswith(prefix)}
            self._json([_entry(path, content) for path, content in found.items()])
        else:
            asked = parse_qs(self.body.decode()).get("paths") or json.loads(self.body)["paths"]
            self._json([
                _entry(path, files[path]) if path in files
                else {"type": "directory", "path": path, "oid": "0" * 40}
                for path in asked
                if path in files or any(each.startswith(f"{path}/") for each in files)
            ])  # fmt: skip

    def _json(self, found: object) -> None:
        self.send(200, json.dumps(found).encode(), "application/json")


def _entry(path: str, content: Content) -> dict[str, object]:
    oid = hashlib.sha256(content.data).hexdigest()[:40]
    return {"type": "file", "path": path, "size": len(content.data), "oid": oid}


def put_data_set(store: Store, name: str, files: dict[str, bytes], revision: str = "main") -> None:
    """Put files into a data set, in a commit."""
    for path, data in files.items():
        store.put(f"/{name}/{COMMITS[revision]}/{path}", data)
