"""Serve the explorer's page and its tasks over HTTP on this machine, to the owner of a token.

    GET  /?token=...        the page
    POST /api/<task>        a task (`workbench.explorer.tasks`), requested in JSON, with the token
                            in a header

No request can name a file: there are only these two routes, and the page is in memory. A request is
refused unless its Host, and its Origin if it has one, is this server. Another site in the browser
therefore cannot reach the server, and a name that is rebound to 127.0.0.1 is not accepted as Host.
Heads, bodies, the time to send them and the number of connections are limited. A connection that
has not shown the token is closed if a new one needs its place.

An answer consists of lines of JSON. The last line is the result. Blank lines are sent during the
computation: if the reader has left, writing fails and the task is stopped.
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

_MAX_BODY_BYTES = 1 << 17  # A request with a longer body is refused.
_MAX_LENGTH_DIGITS = 9  # A Content-Length with more digits is refused without conversion.
_REQUEST_SECONDS = 10.0  # A connection is closed if its request takes longer to arrive.
_IDLE_CONNECTION_SECONDS = 60.0  # A connection without a request is closed after this time.
_MAX_CONNECTIONS = 64  # A further connection replaces one without the token, or is closed.
_HOST_NAMES = ("127.0.0.1", "localhost")
_API_PREFIX = "/api/"
_TOKEN_BYTES = 24  # The token has this many random bytes, which nobody can guess.


class _RequestRefused(Exception):
    """A request was refused. Its arguments are a status of HTTP and a message."""


class _Handler(BaseHTTPRequestHandler):
    """Answer the requests of one connection, in one thread. `_clock` limits their arrival."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _IDLE_CONNECTION_SECONDS
    server: Server
    _clock: threading.Timer | None = None

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "workbench"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because requests contain the token."""

    # The time to send a request starts with its first byte, so that a slow client keeps no thread.

    def handle_one_request(self) -> None:
        """Handle one request within its time."""
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                self.close_connection = True
                return
            self._clock = threading.Timer(_REQUEST_SECONDS, self._hang_up)
            self._clock.daemon = True
            self._clock.start()
            super().handle_one_request()
        except OSError:
            # The client has left, or was too slow.
            self.close_connection = True
        finally:
            self._stop_clock()

    def _hang_up(self) -> None:
        """Close the connection of a request that takes too long to arrive."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _stop_clock(self) -> None:
        """Stop the clock of the request, which has arrived. The answer has its own limits."""
        if self._clock:
            self._clock.cancel()

    # Routes.

    def do_GET(self) -> None:
        """Send the page of the explorer, or a refusal. "/" is the only path."""
        try:
            # The browser comes from the file that `workbench explore` opens, which is another
            # origin.
            self._check_origin(allow_any_site=self.headers.get("Sec-Fetch-Dest") == "document")
            parts = urlsplit(self.path)
            if parts.path != "/":
                raise _RequestRefused(
                    404, "There is nothing here except the page at / and its requests."
                )
            self._check_token(parse_qs(parts.query).get("token", [""])[0])
            self._stop_clock()
            self._send_content(200, "text/html; charset=utf-8", self.server.page.encode())
        except _RequestRefused as refusal:
            self._send_refusal(refusal)

    def do_POST(self) -> None:
        """Run the task that the path names on the JSON body, and send its result or a refusal."""
        try:
            self._check_origin()
            self._check_token(self.headers.get("X-Workbench-Token", ""))
            task = self.path.removeprefix(_API_PREFIX)
            if not self.path.startswith(_API_PREFIX) or not task.isidentifier():
                raise _RequestRefused(404, "There is no such request.")
            body = self._read_body()
            self._stop_clock()
        except _RequestRefused as refusal:
            self._send_refusal(refusal)
            return
        self._send_task_messages(task, body)

    def _check_origin(self, *, allow_any_site: bool = False) -> None:
        """Raise _RequestRefused unless the request is for this server and from its own page.

        With `allow_any_site`, links from other sites may open the page.
        """
        hosts = [f"{name}:{self.server.port}" for name in _HOST_NAMES]
        # Exactly one Host, and at most one Origin, is accepted.
        if self.headers.get_all("Host", []) not in [[host] for host in hosts]:
            raise _RequestRefused(403, "The Host is not this server.")
        origins = self.headers.get_all("Origin", [])
        if origins and origins not in [[f"http://{host}"] for host in hosts]:
            raise _RequestRefused(403, "The Origin is not this server.")
        site = self.headers.get("Sec-Fetch-Site", "none")
        if not allow_any_site and site not in ("none", "same-origin"):
            raise _RequestRefused(403, "Other sites have no access.")

    def _check_token(self, token: str) -> None:
        """Raise _RequestRefused if the token is wrong, else keep the connection's place."""
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RequestRefused(
                403,
                "The token is missing or wrong: open the address that workbench explore printed.",
            )
        self.server.keep_connection(self.connection)

    def _read_body(self) -> Values:
        """Return the JSON object of the body. Raises _RequestRefused."""
        length = self.headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdigit()
        if not is_number or self.headers.get("Transfer-Encoding"):
            raise _RequestRefused(411, "The length of the body must be given.")
        if len(length) > _MAX_LENGTH_DIGITS or int(length) > _MAX_BODY_BYTES:
            raise _RequestRefused(413, f"The body must have at most {_MAX_BODY_BYTES} bytes.")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _RequestRefused(400, "The body must be JSON.") from None
        if not isinstance(content, dict):
            raise _RequestRefused(400, "The body must be a JSON object.")
        return content

    # Answers.

    def _send_head(self, status: int, content_type: str, *further: tuple[str, str]) -> None:
        """Send the status and the headers."""
        policy = f"{make_security_policy(live=True)}; frame-ancestors 'none'"
        self.send_response(status)
        for name, value in (
            ("Content-Type", content_type),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", policy),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            *further,
        ):
            self.send_header(name, value)
        self.end_headers()

    def _send_content(
        self, status: int, content_type: str, content: bytes, *further: tuple[str, str]
    ) -> None:
        """Send an answer of known length."""
        self._send_head(status, content_type, ("Content-Length", str(len(content))), *further)
        self.wfile.write(content)

    def _send_refusal(self, refusal: _RequestRefused) -> None:
        """Send the refusal and close the connection.

        The unread rest of the request must not be taken for the next request.
        """
        self._stop_clock()
        self.close_connection = True
        status, message = refusal.args
        content = json.dumps({"error": "Refused", "message": message}).encode()
        self._send_content(status, "application/json", content, ("Connection", "close"))

    def _send_task_messages(self, task: str, body: Values) -> None:
        """Run a task and send its messages, one line of JSON each."""
        self._send_head(200, "application/x-ndjson", ("Transfer-Encoding", "chunked"))
        with contextlib.closing(stream_messages(self.server.lanes, task, body)) as messages:
            for message in messages:
                self._send_line(message)
        self.wfile.write(b"0\r\n\r\n")  # An empty chunk ends the answer.

    def _send_line(self, message: Values) -> None:
        """Send a message as a line of JSON, or an empty one as a blank line."""
        text = json.dumps(message, allow_nan=False, ensure_ascii=False) if message else ""
        # A lone surrogate becomes \ud..., which is JSON too.
        line = text.encode(errors="backslashreplace") + b"\n"
        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))


class Server(ThreadingHTTPServer):
    """The explorer at 127.0.0.1."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, port: int = 0, files: FileTexts = ()) -> None:
        """Start the server.

        Args:
            port: The port, or 0 for a free one.
            files: (family, option, text) of each text that may name a file.

        Raises:
            OSError: The port is taken.
        """
        # Open connection -> whether it has shown the token, oldest first.
        self._has_token: dict[Any, bool] = {}
        self._connections_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self.port: int = self.server_address[1]
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.lanes = Lanes(files)
        data = {"mode": "live", "families": describe_families()}
        self.page = build_page("dp-workbench explorer", data)
        self.lanes.start()

    def make_address(self, fragment: str = "") -> str:
        """Return the address of the page, with the token.

        Args:
            fragment: The text after "#", which contains the request that the page shows
                (`given.encode_address_fragment`). Empty: the page shows its first example.
        """
        address = f"http://127.0.0.1:{self.port}/?token={self.token}"
        if fragment:
            address += f"#{fragment}"
        return address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection.

        If there are too many, it replaces the oldest connection that has not shown the token.

        Args:
            request: The socket of the connection.
            client_address: Host and port of the client.
        """
        with self._connections_lock:
            if len(self._has_token) >= _MAX_CONNECTIONS:
                without_token = (
                    link for link, has_token in self._has_token.items() if not has_token
                )
                oldest = next(without_token, None)
                if oldest is None:
                    self.shutdown_request(request)
                    return
                del self._has_token[oldest]
                # The thread of the closed connection ends.
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._has_token[request] = False
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget_connection(request)
            raise

    def _forget_connection(self, request: Any) -> None:
        """Free the place of a connection."""
        with self._connections_lock:
            self._has_token.pop(request, None)

    def keep_connection(self, request: Any) -> None:
        """Keep the place of a connection that has shown the token.

        Args:
            request: The socket of the connection.
        """
        with self._connections_lock:
            self._has_token[request] = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, and free its place when it ends.

        Args:
            request: The socket of the connection.
            client_address: Host and port of the client.
        """
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget_connection(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: connections may break off.

        Args:
            request: The socket of the connection.
            client_address: Host and port of the client.
        """

    def server_close(self) -> None:
        """Close the socket and kill all workers."""
        super().server_close()
        self.lanes.kill_workers()
