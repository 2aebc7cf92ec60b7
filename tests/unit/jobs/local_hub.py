"""A small hub on this machine: the routes that huggingface_hub calls to make, look up and fill a repository."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

USER, TOKEN = "ada", "hf_local"
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


class LocalHub:
    """``repositories`` has the content of every file by the repository's ``(kind, name)``."""

    def __init__(self, *, large=(".safetensors", ".parquet")):
        self.repositories = {}
        self.private = {}
        self.large = large
        """Endings of files that are uploaded beside the commit (LFS)."""
        self.role = "write"
        self.calls = []
        self.broken = ""
        """Requests whose path has this in it fail."""
        self.objects = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()

    def environment(self, cache):
        """For a process that is to use this hub with its token; LFS is plain HTTP, where xet is no simple protocol."""
        return {
            "HF_ENDPOINT": self.endpoint, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(cache),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip

    def files(self, name, kind="model"):
        return self.repositories[kind, name]

    def metadata(self, name, kind="model"):
        """The front matter of a repository's card."""
        found = FRONT_MATTER.match(self.files(name, kind).get("README.md", b"").decode())
        return yaml.safe_load(found[1]) if found else None

    # ------------------------------ routes ------------------------------

    def answer(self, method, path, body, token):
        """Status, content and headers for one request."""
        if token != TOKEN:
            return 401, {"error": "Invalid credentials"}, {}
        if method == "GET" and path == "/api/whoami-v2":
            return 200, {"type": "user", "name": USER, "orgs": [], "auth": {"accessToken": {"role": self.role}}}, {}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            sent = json.loads(body)["content"]
            errors = (
                [] if isinstance(yaml.safe_load(FRONT_MATTER.match(sent)[1]), dict) else [{"message": "no mapping"}]
            )
            return (400 if errors else 200), {"errors": errors, "warnings": []}, {}
        if found := re.fullmatch(r"/object/(\w+)", path):
            self.objects[found[1]] = body
            return 200, {}, {}
        if found := re.fullmatch(r"/(datasets/)?(\w[\w.-]*/[\w.-]+)\.git/info/lfs/objects/batch", path):
            objects = [
                {**one, "actions": {"upload": {"href": f"{self.endpoint}/object/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}, {}
        if found := re.fullmatch(r"/api/(model|dataset)s/([\w.-]+/[\w.-]+)(?:/(preupload|commit|tree)/main)?", path):
            return self._repository((found[1], found[2]), found[3], body)
        return 404, {"error": f"no route {path}"}, {}

    def _create(self, wanted):
        key = (wanted.get("type", "model"), f"{wanted['organization']}/{wanted['name']}")
        address = f"{self.endpoint}/{'datasets/' if key[0] == 'dataset' else ''}{key[1]}"
        if key in self.repositories:
            return 409, {"error": "You already created this repo", "url": address}, {}
        if wanted["organization"] != USER:
            return 403, {"error": f"You don't have the rights to create under {wanted['organization']}"}, {}
        self.repositories[key] = {".gitattributes": b""}
        self.private[key] = wanted.get("private", wanted.get("visibility") == "private")
        return 200, {"url": address, "name": key[1]}, {}

    def _repository(self, key, what, body):
        if key not in self.repositories:
            return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
        files = self.repositories[key]
        if what is None:
            siblings = [{"rfilename": name} for name in files]
            info = {"id": key[1], "private": self.private[key], "siblings": siblings, "tags": [], "downloads": 0}
            return 200, info | {"likes": 0, "cardData": self.metadata(key[1], key[0])}, {}
        if what == "tree":
            rows = [{"type": "file", "path": name, "size": len(content), "oid": "0"} for name, content in files.items()]
            return 200, rows, {}
        if what == "preupload":
            rows = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["path"].endswith(self.large) else "regular",
                    "shouldIgnore": False,
                }
                for one in json.loads(body)["files"]
            ]
            return 200, {"files": rows}, {}
        return self._commit(key[1], files, body)

    def _commit(self, name, files, body):
        for line in map(json.loads, body.decode().splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                content = self.objects[value["oid"]]
                assert hashlib.sha256(content).hexdigest() == value["oid"]
                files[value["path"]] = content
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        return (
            200,
            {"commitUrl": f"{self.endpoint}/{name}/commit/{'1' * 40}", "commitOid": "1" * 40, "pullRequestUrl": None},
            {},
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def do_PUT(self):
        self._answer()

    def _answer(self):
        body, path = self._body(), self.path.partition("?")[0]
        self.hub.calls.append((self.command, path))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        token = TOKEN if path.startswith("/object/") else token  # as addresses of uploads, which are signed
        if self.hub.broken and self.hub.broken in path:
            status, content, headers = 400, {"error": "out of order"}, {}
        else:
            status, content, headers = self.hub.answer(self.command, path, body, token)
        encoded = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(encoded), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(encoded)

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, *arguments):
        pass
