"""A page that follows its run: a server on this machine alone, behind a token, that only reads the run.

A browser asks every second whether anything has changed, and gets the parts that the page is made of; so the page
survives a reload, a pause and the end of the run. Nothing of the run is ever written.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from augtree.data import Dataset
from augtree.errors import ArgumentError, AugtreeError
from augtree.report.gather import restored_data
from augtree.report.page import Content, content_of, document, folders_of
from augtree.runs.spec import Transforms
from augtree.tasks import Task

HOST = "127.0.0.1"
"""Only this machine."""
NEWS = "news"
WATCHED = ("run.sqlite", "result.json", "comparison.json", "evaluation.json", "training.json")
"""Files whose change may change the page."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class Follower:
    """The content of a page, made anew when the run has gone on."""

    run: Path
    data: Dataset | None = None
    task: Task | None = None
    transforms: Transforms = ()
    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: Any = None
    content: Content | None = None

    def now(self) -> Content:
        """The content as it is now; what was last known where the run cannot be read for a moment."""
        with self.lock:
            state = self.state()
            if self.content is None or state != self.seen:
                try:
                    self.content, self.seen = content_of(self.run, self.data, self.task, self.transforms), state
                except (AugtreeError, OSError):
                    if self.content is None:
                        raise
            return self.content

    def state(self) -> list[tuple[str, int, int]]:
        """Changes whenever a file of the run does."""
        files = [folder / name for folder in folders_of(self.run) for name in WATCHED]
        files += [*self.run.glob("groups/*/run.sqlite")]
        stats = [(str(path), path.stat()) for path in files if path.is_file()]
        return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in stats]


class LivePage(ThreadingHTTPServer):
    """The server of one page; `address` is where a browser finds it.

    Examples
    --------
    >>> import tempfile, urllib.request
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = at.compare(data, task, {"none": None, "ta": "trivialaugment"}, seeds=1, out=folder)
    ...     with LivePage(folder) as page:
    ...         threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01}).start()
    ...         with urllib.request.urlopen(page.address) as answer:
    ...             answer.status
    ...         page.shutdown()
    200

    """

    daemon_threads = True

    def __init__(
        self,
        run: str | Path,
        port: int = 0,
        *,
        data: Dataset | None = None,
        task: Task | None = None,
        transforms: Transforms = (),
    ) -> None:
        folder = Path(run)
        (first, *_) = folders_of(folder)
        self.follower = Follower(folder, restored_data(first, data), task, transforms)
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise ArgumentError("--port", f"must be a free port of this machine ({error})", port) from error

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which a browser may ask; others are of pages that pretend to be this machine."""
        return (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LivePage
    timeout = 30

    def do_GET(self) -> None:
        """The page, or what has changed on it."""
        asked = urlsplit(self.path)
        parts = asked.path.split("/")
        if self.headers.get("Host") not in self.server.hosts:
            self.answer(HTTPStatus.FORBIDDEN, b"This page answers to its own address alone.\n", "text/plain")
        elif len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), self.server.token.encode()):
            self.answer(HTTPStatus.NOT_FOUND, b"The address must have the token that was printed.\n", "text/plain")
        elif parts[2] in ("", NEWS):
            self.page(parts[2], parse_qs(asked.query))
        else:
            self.answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n", "text/plain")

    def page(self, what: str, query: Mapping[str, list[str]]) -> None:
        """The whole page, or its parts for one that has an older version."""
        try:
            content = self.server.follower.now()
        except (AugtreeError, OSError) as error:
            self.answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode(), "text/plain")
            return
        if what == NEWS:
            known = query.get("version", [""])[0]
            self.answer(HTTPStatus.OK, json.dumps(news(content, known)).encode(), "application/json")
        else:
            self.answer(HTTPStatus.OK, document(content, f"/{self.server.token}/{NEWS}").encode(), "text/html")

    def answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            **HEADERS,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged: their addresses have the token."""

    def version_string(self) -> str:
        """The name of the server, without versions."""
        return "augtree"


def news(content: Content, known: str) -> dict[str, Any]:
    """What a page of another version needs; for the same version, only whether the run goes on."""
    versions = content.versions
    if known == versions["version"]:
        return {"open": content.is_open}
    parts = {name: {"version": versions["parts"][name], "html": html} for name, html in content.parts}
    about = {"version": versions["version"], "title": content.title, "pictures": content.pictures.sources}
    return {"open": content.is_open, **about, "parts": parts, "order": [name for name, _ in content.parts]}
