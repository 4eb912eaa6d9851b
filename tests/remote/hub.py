"""An endpoint as the Hugging Face Hub has it: revisions, trees, files by ranges, and commits."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from urllib.parse import parse_qs, unquote

from tests.remote.server import Content, Handler, Request, Store

#: The branch and the tag that every data set begins with.
COMMITS = {"main": "a" * 40, "v2": "b" * 40}
NAME = "owner/corpus"
HERE = f"hf://datasets/{NAME}"
TOKEN = "hf_ofNobodyAtAll"  # noqa: S105 - of nobody
#: What a token that may not write has in it.
READ_ONLY = "ofReaders"
SIGNATURE = "X-Amz-Signature=of-the-hub"
_API = re.compile(
    r"/api/datasets/([^/]+/[^/]+)/(revision|tree|paths-info|refs|preupload|commit)"
    r"(?:/([^/]+)(?:/(.*))?)?"
)
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_LFS = re.compile(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/(objects/batch|verify)")
_STORED = "/storage/"
_LARGE = (".parquet", ".bin", ".arrow")


class HubHandler(Handler):
    """Contents are at `/owner/name/commit/path`; `elsewhere` gets what is redirected."""

    elsewhere: Store | None = None

    def answer(self, request: Request) -> None:
        path = self.path.partition("?")[0]
        if found := _API.fullmatch(path):
            name, what, revision, below = (unquote(part or "") for part in found.groups())
            self._api(name, what, revision, below)
        elif found := _FILE.fullmatch(request.path):
            name, revision, path = found.groups()
            content = self._files(name, self._commit(name, revision)).get(path)
            if content is None:
                self.refuse(404, "EntryNotFound")
            elif self.elsewhere is not None:
                url = f"{self.elsewhere.url}/signed/{path}?Signature=of-the-hub"
                self.elsewhere.contents[f"/signed/{path}"] = content
                self.send(302, b"", Location=url)
            else:
                self.send_content(content, request)
        elif found := _LFS.fullmatch(path):
            if self._may_write(found[1]):
                self._lfs(found[1], found[2])
        elif request.path.startswith(_STORED) and request.method == "PUT":
            self._store(request)
        else:
            self.refuse(404, "RepoNotFound")

    def refuse(self, status: int, code: str) -> None:
        self.send(status, json.dumps({"error": code}).encode(), "application/json",
                  **{"X-Error-Code": code})  # fmt: skip

    def _commit(self, name: str, revision: str) -> str:
        return heads(self.server, name).get(revision) or COMMITS.get(revision, revision)

    def _files(self, name: str, commit: str) -> dict[str, Content]:
        home = f"/{name}/{commit}/"
        return {
            path.removeprefix(home): content
            for path, content in sorted(self.server.contents.items())
            if path.startswith(home)
        }

    def _is_there(self, name: str) -> bool:
        return any(path.startswith(f"/{name}/") for path in list(self.server.contents))

    def _may_write(self, name: str) -> bool:
        token = self.headers.get("Authorization") or ""
        if not token:
            self.refuse(401, "Unauthorized")
        elif not self._is_there(name):
            self.refuse(404, "RepoNotFound")
        elif READ_ONLY in token:
            self.refuse(403, "Forbidden")
        else:
            return True
        return False

    def _api(self, name: str, what: str, revision: str, below: str) -> None:
        commit = self._commit(name, revision)
        files = self._files(name, commit)
        if what in {"preupload", "commit"}:
            if self._may_write(name):
                if revision not in heads(self.server, name):
                    self.refuse(404, "RevisionNotFound")
                else:
                    (self._preupload if what == "preupload" else self._take_commit)(name, revision)
        elif not self._is_there(name):
            self.refuse(404, "RepoNotFound")
        elif what == "refs":
            self._refs(name)
        elif not files:
            self.refuse(404, "RevisionNotFound")
        elif what == "revision":
            self._json({"id": name, "sha": commit, "siblings": []})
        elif what == "tree":
            prefix = f"{below}/" if below else ""
            found = {path: each for path, each in files.items() if path.startswith(prefix)}
            if found:
                self._json([_entry(path, content.data) for path, content in found.items()])
            else:
                self.refuse(404, "EntryNotFound")
        else:
            asked = parse_qs(self.body.decode()).get("paths") or json.loads(self.body)["paths"]
            self._json([
                _entry(path, files[path].data) if path in files
                else {"type": "directory", "path": path, "oid": "0" * 40}
                for path in asked
                if path in files or any(each.startswith(f"{path}/") for each in files)
            ])  # fmt: skip

    def _refs(self, name: str) -> None:
        def listed(commits: dict[str, str], kind: str) -> list[dict[str, str]]:
            return [
                {"name": ref, "ref": f"refs/{kind}/{ref}", "targetCommit": commit}
                for ref, commit in commits.items()
            ]

        self._json({
            "branches": listed(heads(self.server, name), "heads"),
            "tags": listed({"v2": COMMITS["v2"]}, "tags"),
            "converts": [],
        })  # fmt: skip

    def _preupload(self, name: str, revision: str) -> None:
        files = self._files(name, self._commit(name, revision))
        asked = json.loads(self.body)
        rules = asked.get("gitIgnore")
        if not rules:
            rules = files[".gitignore"].data.decode() if ".gitignore" in files else ""
        endings = [rule.removeprefix("*") for rule in rules.split() if rule.startswith("*")]
        said = []
        for file in asked["files"]:
            path = file["path"]
            is_large = path.endswith(_LARGE) or b"\0" in base64.b64decode(file["sample"])
            answer = {
                "path": path,
                "uploadMode": "lfs" if is_large else "regular",
                "shouldIgnore": path.endswith(tuple(endings)),
            }
            if path in files:
                entry = _entry(path, files[path].data)
                answer["oid"] = entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]
            said.append(answer)
        self._json({"files": said})

    def _lfs(self, name: str, what: str) -> None:
        asked = json.loads(self.body)
        if what == "verify":
            stored = self.server.contents.get(f"{_STORED}{asked['oid']}")
            right = stored is not None and len(stored.data) == asked["size"]
            self.send(200 if right else 404, b"{}", "application/json")
            return
        said = []
        for file in asked["objects"]:
            answer = dict(file)
            if f"{_STORED}{file['oid']}" not in self.server.contents:
                answer["actions"] = {
                    "upload": {"href": f"{self.server.url}{_STORED}{file['oid']}?{SIGNATURE}"},
                    "verify": {"href": f"{self.server.url}/datasets/{name}.git/info/lfs/verify"},
                }
            said.append(answer)
        self._json({"transfer": "basic", "objects": said})

    def _store(self, request: Request) -> None:
        # A store takes a signature or a key, and refuses both.
        if "of-the-hub" not in request.query.values() or "Authorization" in self.headers:
            self.refuse(403, "AccessDenied")
        elif hashlib.sha256(self.body).hexdigest() != request.path.removeprefix(_STORED):
            self.refuse(400, "BadDigest")
        else:
            self.server.put(request.path, self.body)
            self.send(200, b"")

    def _take_commit(self, name: str, revision: str) -> None:
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = lines.pop(0)["value"]
        changed: dict[str, bytes | None] = {}
        for line in lines:
            value = line["value"]
            stored = self.server.contents.get(f"{_STORED}{value.get('oid')}")
            if line["key"] == "file":
                changed[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                changed[value["path"]] = None
            elif stored is None or len(stored.data) != value["size"]:
                self.refuse(400, "BadRequest")
                return
            else:
                changed[value["path"]] = stored.data
        with self.server.lock:
            head = heads(self.server, name)[revision]
            files = self._files(name, head)
            if header.get("parentCommit", head) != head:
                self.send(412, b'{"error": "A commit has happened since."}', "application/json")
            elif any(data is None and path not in files for path, data in changed.items()):
                self.refuse(404, "EntryNotFound")
            else:
                commit = push(self.server, name, changed, revision, header["summary"])
                url = f"{self.server.url}/datasets/{name}/commit/{commit}"
                self._json({"success": True, "commitOid": commit, "commitUrl": url})

    def _json(self, found: object) -> None:
        self.send(200, json.dumps(found).encode(), "application/json")


def _entry(path: str, data: bytes) -> dict[str, object]:
    found = {"type": "file", "path": path, "size": len(data), "oid": _git_oid(data)}
    if data and (path.endswith(_LARGE) or b"\0" in data[:512]):
        oid = hashlib.sha256(data).hexdigest()
        pointer = (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n"
        ).encode()
        lfs = {"oid": oid, "size": len(data), "pointerSize": len(pointer)}
        found |= {"oid": _git_oid(pointer), "lfs": lfs}
    return found


def _git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324 - what git takes


def heads(store: Store, name: str) -> dict[str, str]:
    """The branches of a data set, with their last commits."""
    begin = f"{name}@"
    found = {at.removeprefix(begin): to for at, to in store.names.items() if at.startswith(begin)}
    return {"main": COMMITS["main"], **found}


def push(
    store: Store,
    name: str,
    changed: dict[str, bytes | None],
    branch: str = "main",
    message: str = "by another",
) -> str:
    """Make a commit that writes files, and removes those that are None; returns its name."""
    head = heads(store, name)[branch]
    before = {
        path.split("/", 4)[4]: content.data
        for path, content in list(store.contents.items())
        if path.startswith(f"/{name}/{head}/")
    }
    files = {path: data for path, data in (before | changed).items() if data is not None}
    commit = hashlib.sha1(repr((head, message, sorted(files.items()))).encode()).hexdigest()  # noqa: S324 - what git takes
    for path, data in files.items():
        store.put(f"/{name}/{commit}/{path}", data)
    store.names[f"{name}@{branch}"] = commit
    store.messages.append(message)
    return commit


def put_data_set(store: Store, name: str, files: dict[str, bytes], revision: str = "main") -> None:
    """Put files into a data set, in a commit."""
    for path, data in files.items():
        store.put(f"/{name}/{COMMITS[revision]}/{path}", data)
