"""Test that the explorer's server resists attacks, which are sent over sockets.

A client without the token, another site in the browser, and a client that is slow or sends wrong
data must neither get a result nor block the owner of the token.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import WorkbenchError
from workbench.explorer import processes
from workbench.explorer import server as server_module
from workbench.explorer.processes import Lanes, TaskStopped
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks

NOISE = {"family": "modulo", "given": {"n": "8", "max_shift": "3", "epsilon": "1.5"}}

# An answer, or the end of a process or a connection, must arrive within this time.
ANSWER_SECONDS = 300

# A request of the task "along" that takes about 20 seconds.
SLOW_REQUEST = {"family": "quantizer", "given": {"levels": "4", "epsilon": "1"}, "along": "epsilon"}


def connect(server: Server) -> socket.socket:
    """Open a connection to the server."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS)


def send(server: Server, *lines: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send the lines of a request and a body, exactly as they are given.

    Returns the status, the headers by lower-case name, and the body of the answer.
    """
    with connect(server) as link:
        link.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        received = b""
        while part := link.recv(65536):
            received += part
    head, _, content = received.partition(b"\r\n\r\n")
    status_line, *header_lines = head.decode().split("\r\n")
    headers = {}
    for line in header_lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    return int(status_line.split()[1]), headers, content


def write_page_request(server: Server, host: str | None = None) -> tuple[str, str]:
    """Return the lines of a request for the page with the token. host: default: the server."""
    token_line = f"GET /?token={server.token} HTTP/1.1"
    return token_line, f"Host: {host or f'127.0.0.1:{server.port}'}"


def get_page_status(server: Server) -> int:
    """Request the page with the token, and return the status of the answer."""
    status, *_ = send(server, *write_page_request(server))
    return status


def post(
    server: Server,
    task: str,
    request: Any,
    *further_lines: str,
    host: str | None = None,
    **headers: str,
) -> tuple[int, bytes]:
    """Send a task with the token. Return the status and the body of the answer.

    request: an object that is sent as JSON, or bytes. further_lines: further lines of the head.
    host: the Host, by default the server. headers: replaced headers; an empty one is omitted.
    """
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    all_headers = {
        "Host": host or f"127.0.0.1:{server.port}",
        "X-Workbench-Token": server.token,
        "Content-Length": str(len(body)),
    }
    all_headers |= headers
    lines = [f"{name}: {value}" for name, value in all_headers.items() if value]
    status, _, answer = send(
        server, f"POST /api/{task} HTTP/1.1", *lines, *further_lines, body=body
    )
    return status, answer


def read_messages(answer: bytes) -> list[dict[str, Any]]:
    """Return the lines of JSON in a chunked answer."""
    return [json.loads(line) for line in answer.split(b"\r\n") if line.startswith(b"{")]


def test_the_page_is_sent_with_its_security_headers(server: Server) -> None:
    request = write_page_request(server, f"localhost:{server.port}")
    status, headers, page = send(server, *request)
    assert status == 200
    assert b'"mode": "live"' in page
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "python" not in headers["server"].lower()


def test_the_page_gets_the_design_that_it_requests(server: Server) -> None:
    status, answer = post(server, "design", NOISE, f"Origin: http://127.0.0.1:{server.port}")
    assert status == 200
    view = read_messages(answer)[-1]["result"]
    assert view["objective"] == pytest.approx(view["row"]["oracle_value"])


@pytest.mark.parametrize("token", ["", "wrong", "é" * 32, "\x00"])
def test_a_client_without_the_token_gets_nothing(server: Server, token: str) -> None:
    host = f"Host: 127.0.0.1:{server.port}"
    status, *_ = send(server, f"GET /?token={token.encode().hex()} HTTP/1.1", host)
    assert status == 403
    status, *_ = send(server, "GET / HTTP/1.1", host)
    assert status == 403
    status, answer = post(server, "design", NOISE, **{"X-Workbench-Token": token})
    assert status in (400, 403)
    assert b"error-rate" not in answer


def test_a_task_needs_the_token_in_a_header(server: Server) -> None:
    """Another site can make a browser request an address, but without the header."""
    status, _ = post(server, f"design?token={server.token}", NOISE, **{"X-Workbench-Token": ""})
    assert status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}"],
)
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    host = host.format(port=server.port)
    status, _ = post(server, "design", NOISE, host=host)
    assert status == 403
    status, *_ = send(server, *write_page_request(server, host))
    assert status == 403


def test_two_hosts_or_none_are_refused(server: Server) -> None:
    status, *_ = send(server, *write_page_request(server), "Host: evil.example")
    assert status == 403
    status, *_ = send(server, f"GET /?token={server.token} HTTP/1.0")
    assert status == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:{port}", "file://"],
)
def test_a_foreign_origin_is_refused(server: Server, origin: str) -> None:
    status, answer = post(server, "design", NOISE, f"Origin: {origin.format(port=server.port)}")
    assert status == 403
    assert b"result" not in answer


def test_a_request_from_another_site_is_refused(server: Server) -> None:
    status, _ = post(server, "design", NOISE, "Sec-Fetch-Site: cross-site")
    assert status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/../../../../etc/passwd",
        "/assets/explorer.js",
        "/api/design",
        "//etc/passwd",
        "/%2e%2e/README.md",
        "file:///etc/passwd",
    ],
)
def test_no_path_reaches_a_file(server: Server, path: str) -> None:
    status, _, answer = send(
        server, f"GET {path}?token={server.token} HTTP/1.1", f"Host: 127.0.0.1:{server.port}"
    )
    assert status in (403, 404)
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "task", ["../design", "__class__", "run", "", "design/../export", "_timing"]
)
def test_only_tasks_are_run(server: Server, task: str) -> None:
    status, answer = post(server, task, NOISE)
    assert status == 404 or read_messages(answer)[-1]["error"] == "InvalidRequest"


@pytest.mark.parametrize("template", ["{path}", "/etc/passwd", "../..", "{path}/.."])
def test_no_option_reaches_a_file(server: Server, tmp_path: Path, template: str) -> None:
    """An answer tells neither the content of a file nor whether it exists: the error messages for
    an existing and a missing file are equal, apart from the path.
    """
    existing_file = tmp_path / "0..3"
    existing_file.write_text("0,1\n1,1\n")
    missing_file = tmp_path / "0..4"
    errors = []
    for path in (existing_file, missing_file):
        text = template.format(path=path)
        given = {"labels": text, "epsilon": "1"}
        _, answer = post(server, "design", {"family": "labels", "given": given})
        (message,) = read_messages(answer)
        assert message["error"] == "InvalidRequest"
        errors.append(message["message"].replace(text, "").replace(Path(text).name, ""))
    assert errors[0] == errors[1]
    given = NOISE["given"] | {"loss": "prior-squared", "prior": str(existing_file)}  # type: ignore[operator]
    _, answer = post(server, "design", {"family": "modulo", "given": given})
    (message,) = read_messages(answer)
    assert message["error"] == "InvalidRequest"


def test_a_file_of_the_command_line_is_read(tmp_path: Path) -> None:
    file = tmp_path / "prior.csv"
    file.write_text("0,1\n1,1\n2,2\n")
    lanes = Lanes([("labels", "labels", str(file))])
    try:
        *_, last = lanes.run(
            "design", {"family": "labels", "given": {"labels": str(file), "epsilon": "1"}}
        )
        assert last["result"]["row"]["status"] == "optimal"
    finally:
        lanes.kill_workers()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 50_000])
def test_a_body_that_is_no_json_object_is_refused(server: Server, body: bytes) -> None:
    status, _ = post(server, "design", body)
    assert status in (400, 413)


def test_a_wrong_length_of_the_body_is_refused(server: Server) -> None:
    for headers in (
        {"Content-Length": ""},
        {"Content-Length": "-1"},
        {"Content-Length": "1e3"},
        {"Content-Length": "٣"},
        {"Content-Length": "5", "Transfer-Encoding": "chunked"},
    ):
        status, _ = post(server, "design", b"{}   ", **headers)
        assert status in (400, 411)


def test_wrong_families_and_options_are_refused(server: Server) -> None:
    wrong_options = [
        {"n": 8},
        {"n": {"a": 1}},
        {"check": "none"},
        {"n": "8" * 30_000},
        [],
        3,
        {"n": "\u0000"},
    ]
    for option, value in itertools.product(("prior", "loss", "n"), (False, True, [True], {}, [[]])):
        wrong_options.append({option: value})
    requests: list[Any] = [
        {},
        {"family": 3},
        {"family": "nothing", "given": {}},
        {"family": "modulo"},
        {"family": "labels", "given": {"labels": "\ud800"}},
    ]
    wrong_families = ([], {}, [[]], None, False, "\ud800")
    requests += [{"family": family, "given": {}} for family in wrong_families]
    for family, options in itertools.product(("noise", "additive", "channel"), wrong_options):
        requests.append({"family": family, "given": options})
    for request in requests:
        _, answer = post(server, "design", request)
        (message,) = read_messages(answer)
        assert message["error"] == "InvalidRequest", request


# Values of wrong types, and texts that no option accepts.
WRONG_VALUES: tuple[Any, ...] = (
    1,
    -1.5,
    True,
    [],
    [1],
    [["a"]],
    {"a": 1},
    "",
    "x",
    "\ud800",
    10**400,
    [None],
    None,
)


@pytest.mark.parametrize(
    "task", ["suggestions", "fields", "adapt", "design", "certify", "recommend"]
)
def test_values_of_wrong_types_raise_no_other_error_than_those_of_the_workbench(task: str) -> None:
    tasks = Tasks()
    requests: list[dict[str, Any]] = [{}]
    for value in WRONG_VALUES:
        requests += [NOISE | {name: value} for name in ("family", "given", "changed", "limit")]
        requests += [
            {"family": "modulo", "given": NOISE["given"] | {name: value}}
            for name in ("n", "notion", "equal", "?")
        ]
        query = {"answers": "0..2", "max_shift": "1", "epsilon": "1", "time_limit": "1", "": value}
        requests += [{"query": value}, {"query": query}, {"query": {**query, "progress": "x"}}]
    for request in requests:
        with contextlib.suppress(WorkbenchError):
            json.dumps(tasks.run(task, request))


def test_the_page_gets_the_error_message_of_a_wrong_type(server: Server) -> None:
    status, answer = post(server, "fields", {"family": "modulo", "given": 1})
    (message,) = read_messages(answer)
    assert status == 200
    assert message == {
        "error": "InvalidRequest",
        "message": "given must be options with their texts. Got int.",
    }


def test_large_requests_are_refused_unread(server: Server) -> None:
    status, _ = post(server, "design", b"{", **{"Content-Length": str(10**9)})
    assert status == 413
    long_address = f"GET /{'a' * 70_000} HTTP/1.1"
    status, *_ = send(server, long_address, f"Host: 127.0.0.1:{server.port}")
    assert status == 414
    many_headers = [f"X-{number}: a" for number in range(200)]
    status, *_ = send(server, "GET / HTTP/1.1", *many_headers)
    assert status == 431


def test_slow_requests_are_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends one byte at a time keeps no thread."""
    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", 0.6)
    sent_count = 0
    # The letters would take a hundred seconds.
    letters = "GET / HTTP/1.1\r\nX-Padding: " + "a" * 1000
    with connect(server) as link, contextlib.suppress(OSError):
        for letter in letters:
            link.sendall(letter.encode())
            sent_count += 1
            time.sleep(0.1)
    assert sent_count < len(letters)
    lines = [
        f"Host: 127.0.0.1:{server.port}",
        f"X-Workbench-Token: {server.token}",
        "Content-Length: 1000",
    ]
    with connect(server) as link:
        link.sendall("\r\n".join(["POST /api/design HTTP/1.1", *lines, "", '{"family"']).encode())
        assert b"200" not in link.recv(65536)


def test_a_connection_beyond_the_maximum_is_closed(new_server: Server) -> None:
    """All connections have the token. When they are closed, the server answers again."""
    server = new_server
    page_request = "\r\n".join([*write_page_request(server), "", ""]).encode()
    with contextlib.ExitStack() as open_links:
        for _ in range(server_module._MAX_CONNECTIONS):
            link = open_links.enter_context(connect(server))
            link.sendall(page_request)
            assert link.recv(12) == b"HTTP/1.1 200"
        with connect(server) as further_link:
            assert further_link.recv(1) == b""
    # The server needs a moment to notice closed connections.
    end = time.monotonic() + ANSWER_SECONDS
    while len(server._has_token) >= server_module._MAX_CONNECTIONS and time.monotonic() < end:
        time.sleep(0.02)
    assert get_page_status(server) == 200


def test_connections_without_the_token_do_not_lock_its_owner_out(server: Server) -> None:
    """The oldest connection without a token is closed, even if a request has started."""
    with contextlib.ExitStack() as open_links:
        oldest_link = open_links.enter_context(connect(server))
        for _ in range(3):
            for number in range(server_module._MAX_CONNECTIONS):
                link = open_links.enter_context(connect(server))
                if number % 2:
                    link.sendall(b"GET / HTTP")
            assert get_page_status(server) == 200
            _, answer = post(server, "design", NOISE)
            assert "result" in read_messages(answer)[-1]
        assert oldest_link.recv(1) == b""
        assert len(server._has_token) <= server_module._MAX_CONNECTIONS


def test_a_reader_who_leaves_stops_the_task(server: Server) -> None:
    body = json.dumps(SLOW_REQUEST).encode()
    lines = [
        f"Host: 127.0.0.1:{server.port}",
        f"X-Workbench-Token: {server.token}",
        f"Content-Length: {len(body)}",
    ]
    lane = server.lanes._lanes["slow"]
    with connect(server) as link:
        link.sendall("\r\n".join(["POST /api/along HTTP/1.1", *lines, "", ""]).encode() + body)
        # The first message with a total is about the progress, so the task is running.
        received = b""
        while b'"total"' not in received:
            received += link.recv(65536)
        process = lane._process
        assert process.is_alive()
    end = time.monotonic() + ANSWER_SECONDS
    while process.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert not process.is_alive()


def test_a_task_is_stopped_at_the_time_limit_of_its_lane() -> None:
    lanes = Lanes(limits={"live": 300.0, "slow": 0.3})
    try:
        with pytest.raises(TaskStopped, match=r"after 0\.3 s"):
            list(lanes.run("along", SLOW_REQUEST))
        *_, last = lanes.run("design", NOISE)
        assert "result" in last
    finally:
        lanes.kill_workers()


class DeadlyPipe:
    """The pipe of a worker that dies when it gets a task."""

    def __init__(self, lane: processes._Lane) -> None:
        self._pipe = lane._pipe
        self._process = lane._process

    def send(self, task: Any) -> None:
        # A stopped process cannot finish the task before it is killed.
        os.kill(self._process.pid, signal.SIGSTOP)
        self._pipe.send(task)
        self._process.kill()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


def test_a_worker_that_dies_is_reported_and_replaced(server: Server) -> None:
    post(server, "design", NOISE)
    lane = server.lanes._lanes["live"]
    lane._pipe = DeadlyPipe(lane)
    _, answer = post(server, "design", NOISE)
    assert read_messages(answer)[-1]["error"] == "Stopped"
    _, answer = post(server, "design", NOISE)
    assert "result" in read_messages(answer)[-1]


def test_the_server_listens_on_loopback_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_the_time_limits_of_tasks_are_short() -> None:
    assert processes.LANE_LIMIT_SECONDS["live"] <= 30
    assert processes.LANE_LIMIT_SECONDS["slow"] <= 120
