"""HTTP on loopback, for one user's browser.

Any page that the user has open can send requests to 127.0.0.1, so each request must prove itself:

- `Host` must be this server's own address. A name that an attacker points at 127.0.0.1 (DNS
  rebinding) is refused.
- `Origin`, where a browser sends it, must be this server's own. A page of another origin may lead
  the user to this one, as the file does that `weir ui` opens, but not show it in a frame.
- Every request for data carries the token in a header of its own. Scripts of other origins cannot
  set it: browsers ask for permission first (CORS preflight), and nothing here grants it. A cookie
  would go to every port of this machine, and with requests of other pages.

The files of the page need no token: they are the same for everyone.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import secrets
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from weir.base.errors import InputError, WeirError
from weir.laboratory.explorer import MOST_BINS, Explorer
from weir.laboratory.job import Job
from weir.laboratory.page import PageFile

HEADER = "X-Weir-Token"
"""What carries the token."""
MOST_CONNECTIONS = 32
"""Connections at a time; a browser opens six."""
IDLE_S = 30.0
"""A connection without a request for this long is closed."""
_MOST_QUERY = 1_000
_JSON = "application/json"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


_QUESTIONS = ("/api/state", "/api/run", "/api/detail", "/api/next")


class Server(ThreadingHTTPServer):
    """Serves the page, and answers its questions about one result directory or one job."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, port: int, files: dict[str, PageFile], explorer: Explorer | None, job: Job | None
    ) -> None:
        self.files = files
        self.token = secrets.token_urlsafe(24)
        self._explorer, self._job = explorer, job
        self._lock = threading.Lock()
        self._places = threading.Lock()
        self._open: dict[socket.socket, tuple[bool, float]] = {}
        """Connections: whether a request on it has proved itself, and the time of the last one."""
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(f"--port {port}: {error.strerror}; give another one") from None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser may call it."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def url(self) -> str:
        """The page's address. A browser does not send what follows `#`, nor tells other pages."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def answer(self, path: str, query: dict[str, str]) -> Any:
        """The answer to a question of the page: bytes, or what becomes JSON.

        Raises:
            InputError: the question is not valid.
        """
        with self._lock:  # one question at a time, so that one run is in memory
            explorer = self._explorer or (self._job.explorer if self._job else None)
            if path == "/api/state":
                return self._state(explorer)
            if explorer is None:
                raise InputError("there are no results yet")
            run = _whole(query, "run", 0, 2**32)
            if path == "/api/run":
                return explorer.about(run)
            if path == "/api/next":
                return {"t_s": explorer.next(run, query.get("what", ""), _time(query, "after"))}
            start, end = _time(query, "from"), _time(query, "to")
            return explorer.detail(run, start, end, _whole(query, "bins", 1, MOST_BINS))

    def _state(self, explorer: Explorer | None) -> dict[str, Any]:
        if explorer is not None:
            return {"phase": "ready", "name": explorer.name, "runs": explorer.runs}
        return self._job.state if self._job else {"phase": "idle"}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Takes a connection. Where there are too many, one makes space for it.

        First the oldest of those that have proved nothing: a local program could keep the user's
        browser out otherwise.
        """
        with self._places:
            if len(self._open) >= MOST_CONNECTIONS:
                loser = min(self._open, key=lambda one: self._open[one])
                del self._open[loser]
                with contextlib.suppress(OSError):
                    loser.shutdown(socket.SHUT_RDWR)  # its thread closes it
            self._open[request] = False, time.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system has no more threads
            self._leave(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def on_proved(self, request: socket.socket) -> None:
        """A request on this connection had the token."""
        with self._places:
            if request in self._open:
                self._open[request] = True, time.monotonic()

    def _leave(self, request: socket.socket) -> None:
        with self._places:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Shows a fault of ours; a browser that went away is none."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "weir", ""
    timeout = IDLE_S

    def setup(self) -> None:
        """Small answers are sent at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        """Serves a file of the page, or an answer."""
        address = urlsplit(self.path)
        problem = self._foreign() or self._untrusted(address.path)
        if problem:
            self._send(HTTPStatus.FORBIDDEN, {"error": problem})
        elif address.path in self.server.files:
            file = self.server.files[address.path]
            self._send(HTTPStatus.OK, file.content, file.type)
        else:
            self.server.on_proved(self.connection)
            self._answer(address.path, address.query)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged: the terminal shows the address only."""

    def _foreign(self) -> str | None:
        """Why the request comes from elsewhere, if it does."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            return "the Host of this request is not this server"
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            return "the Origin of this request is not this server"
        is_visit = urlsplit(self.path).path == "/" and self._sec_fetch("Dest") == "document"
        if not is_visit and self._sec_fetch("Site") not in ("none", "same-origin"):
            return "this request comes from a page of another site"
        return None

    def _sec_fetch(self, name: str) -> str:
        """What the browser says of a request; `none` where it says nothing."""
        return str(self.headers.get(f"Sec-Fetch-{name}", "none"))

    def _untrusted(self, path: str) -> str | None:
        """Why the request may have no data, if it asks for data."""
        if path in self.server.files:
            return None
        given = self.headers.get(HEADER, "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, self.server.token.encode()):
            return f"the header {HEADER} is missing or wrong; open the address that weir ui printed"
        return None

    def _answer(self, path: str, query: str) -> None:
        if path not in _QUESTIONS:
            self._send(HTTPStatus.NOT_FOUND, {"error": "there is no such address"})
            return
        try:
            if len(query) > _MOST_QUERY:
                raise InputError(f"the query is longer than {_MOST_QUERY} characters")
            fields = {name: values[0] for name, values in parse_qs(query).items()}
            found = self.server.answer(path, fields)
        except WeirError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        else:
            kind = "application/octet-stream" if isinstance(found, bytes) else _JSON
            self._send(HTTPStatus.OK, found, kind)

    def _send(self, status: HTTPStatus, content: Any, kind: str = _JSON) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if status >= HTTPStatus.BAD_REQUEST:
            # A refused request may have a body, which is not read.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _whole(query: dict[str, str], name: str, least: int, most: int) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most):
        raise InputError(f"{name}={text[:20]}: must be a whole number from {least} to {most}")
    return int(text)


def _time(query: dict[str, str], name: str) -> float:
    text = query.get(name, "")
    try:
        value = float(text[:40])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name}={text[:20]}: must be a time in seconds")
    return value
