"""The explorer's server: one page and one kind of request, on loopback, for whoever has the token.

    GET  /?token=...        the page
    POST /api/<task>        a task (`workbench.explorer.tasks`), asked in JSON, with the token in a header

Nothing in a request names a file: there are these two routes, and the page is in memory. Every request is refused
unless its Host is this server and its Origin, where it has one, too: another site that the browser has open cannot
reach it, and a name that is rebound to 127.0.0.1 is no Host of ours. Heads, bodies, the time to send them and the
number of connections are bounded; one that has not shown the token makes room for the next. An answer is lines of JSON,
the last one the result, blank ones while it is computed: when the reader leaves, writing fails and the task is stopped.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from workbench.exact.objects import Values
from workbench.explorer.given import FileTexts, describe_families
from workbench.explorer.page import build_page, make_security_policy, stream_messages
from workbench.explorer.processes import Lanes

_MAX_BODY_BYTES = 1 << 17  # bytes
_REQUEST_SECONDS = 10.0  # seconds a client has to send a request
_IDLE_CONNECTION_SECONDS = 60.0  # seconds a connection may wait for the next one
_MAX_CONNECTIONS = 64
_HOST_NAMES = ("127.0.0.1", "localhost")


class _RequestRefused(Exception):
    """Of a status and a message."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _IDLE_CONNECTION_SECONDS
    server: Server
    _clock: threading.Timer | None = None

    def version_string(self) -> str:
        return "workbench"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not written anywhere: they hold the token."""

    # Time to send a request: from its first byte, so that one byte now and then keeps no thread.

    def handle_one_request(self) -> None:
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                self.close_connection = True
                return
            self._clock = threading.Timer(_REQUEST_SECONDS, self._hang_up)
            self._clock.daemon = True
            self._clock.start()
            super().handle_one_request()
        except OSError:  # the other side has left, or was too slow
            self.close_connection = True
        finally:
            self._stop_clock()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _stop_clock(self) -> None:
        """The request is here: what follows has limits of its own."""
        if self._clock:
            self._clock.cancel()

    # Routes.

    def do_GET(self) -> None:
        try:
            # a browser comes here from the file that `workbench explore` opens, which is another place
            self._check_origin(anywhere=self.headers.get("Sec-Fetch-Dest") == "document")
            parts = urlsplit(self.path)
            if parts.path != "/":
                raise _RequestRefused(
                    404, "There is nothing here but the page at / and its requests."
                )
            self._check_token(parse_qs(parts.query).get("token", [""])[0])
            self._stop_clock()
            self._send_content(200, "text/html; charset=utf-8", self.server.page.encode())
        except _RequestRefused as refused:
            self._send_refusal(refused)

    def do_POST(self) -> None:
        try:
            self._check_origin()
            self._check_token(self.headers.get("X-Workbench-Token", ""))
            before, task = self.path[:5], self.path[5:]
            if before != "/api/" or not task.isidentifier():
                raise _RequestRefused(404, "There is no such request.")
            body = self._read_body()
            self._stop_clock()
        except _RequestRefused as refused:
            self._send_refusal(refused)
            return
        self._send_task_messages(task, body)

    def _check_origin(self, *, anywhere: bool = False) -> None:
        hosts = [f"{name}:{self.server.port}" for name in _HOST_NAMES]
        if self.headers.get_all("Host", []) not in [[host] for host in hosts]:
            raise _RequestRefused(403, "The Host is not this server.")
        origins = self.headers.get_all("Origin", [])
        if origins and origins not in [[f"http://{host}"] for host in hosts]:
            raise _RequestRefused(403, "The Origin is not this server.")
        if not anywhere and self.headers.get("Sec-Fetch-Site", "none") not in (
            "none",
            "same-origin",
        ):
            raise _RequestRefused(403, "Other sites have no access.")

    def _check_token(self, given: str) -> None:
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            raise _RequestRefused(
                403,
                "The token is missing or wrong: open the address that workbench explore printed.",
            )
        self.server.keep_connection(self.connection)

    def _read_body(self) -> Values:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise _RequestRefused(411, "The length of the body must be given.")
        if len(length) > 9 or int(length) > _MAX_BODY_BYTES:
            raise _RequestRefused(413, f"The body must have at most {_MAX_BODY_BYTES} bytes.")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _RequestRefused(400, "The body must be JSON.") from None
        if not isinstance(content, dict):
            raise _RequestRefused(400, "The body must be a JSON object.")
        return content

    # Answers.

    def _send_head(self, status: int, kind: str, *more: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            (
                "Content-Security-Policy",
                f"{make_security_policy(live=True)}; frame-ancestors 'none'",
            ),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            *more,
        ):
            self.send_header(name, value)
        self.end_headers()

    def _send_content(self, status: int, kind: str, content: bytes, *more: tuple[str, str]) -> None:
        self._send_head(status, kind, ("Content-Length", str(len(content))), *more)
        self.wfile.write(content)

    def _send_refusal(self, refused: _RequestRefused) -> None:
        """What was not read of a refused request is not taken for the next one."""
        self._stop_clock()
        self.close_connection = True
        status, message = refused.args
        content = json.dumps({"error": "Refused", "message": message}).encode()
        self._send_content(status, "application/json", content, ("Connection", "close"))

    def _send_task_messages(self, task: str, body: Values) -> None:
        self._send_head(200, "application/x-ndjson", ("Transfer-Encoding", "chunked"))
        with contextlib.closing(stream_messages(self.server.lanes, task, body)) as messages:
            for message in messages:
                self._send_line(message)
        self.wfile.write(b"0\r\n\r\n")

    def _send_line(self, message: Values) -> None:
        text = json.dumps(message, allow_nan=False, ensure_ascii=False) if message else ""
        line = (
            text.encode(errors="backslashreplace") + b"\n"
        )  # half a character is \\ud... in JSON, too
        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))


class Server(ThreadingHTTPServer):
    """The explorer at 127.0.0.1. port: 0 takes a free one. files: texts of options that may name files.

    Raises OSError where the port is taken.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, port: int = 0, files: FileTexts = ()) -> None:
        self._open: dict[
            Any, bool
        ] = {}  # connection -> whether it has shown the token, oldest first
        self._changing = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self.port: int = self.server_address[1]
        self.token = secrets.token_urlsafe(24)
        self.lanes = Lanes(files)
        self.page = build_page(
            "dp-workbench explorer", {"mode": "live", "families": describe_families()}
        )
        self.lanes.start()

    def make_address(self, state: str = "") -> str:
        """The address of the page. state: its fragment."""
        fragment = f"#{state}" if state else ""
        return f"http://127.0.0.1:{self.port}/?token={self.token}{fragment}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection; where there is no room, instead of the oldest that has not shown the token."""
        with self._changing:
            if len(self._open) >= _MAX_CONNECTIONS:
                oldest = next((link for link, proven in self._open.items() if not proven), None)
                if oldest is None:
                    self.shutdown_request(request)
                    return
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread then ends
            self._open[request] = False
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget_connection(request)
            raise

    def _forget_connection(self, request: Any) -> None:
        with self._changing:
            self._open.pop(request, None)

    def keep_connection(self, request: Any) -> None:
        """A connection has shown the token, and keeps its place."""
        with self._changing:
            self._open[request] = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The connection, whose place is free again when it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget_connection(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is nothing to report."""

    def server_close(self) -> None:
        """Close the socket and end all workers."""
        super().server_close()
        self.lanes.kill_workers()
