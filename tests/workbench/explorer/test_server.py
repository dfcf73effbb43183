"""Test attacks on the explorer's server over sockets."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import WorkbenchError
from workbench.explorer import processes
from workbench.explorer import server as served
from workbench.explorer.processes import Lanes, TaskStopped
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks

NOISE = {"family": "modulo", "given": {"n": "8", "max_shift": "3", "epsilon": "1.5"}}
SLOW = {
    "family": "quantizer",
    "given": {"levels": "4", "epsilon": "1"},
    "along": "epsilon",
}  # About 20 seconds.


def send(
    server: Server, *lines: str, body: bytes = b"", seconds: float = 300
) -> tuple[int, dict[str, str], bytes]:
    """Send a request unchanged. Return the status, the head and the body of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as link:
        link.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        got = b""
        while part := link.recv(65536):
            got += part
    head, _, rest = got.partition(b"\r\n\r\n")
    first, *named = head.decode().split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in named)}
    return int(first.split()[1]), fields, rest


def post(
    server: Server, task: str, asked: Any, *more: str, host: str | None = None, **swap: str
) -> tuple[int, bytes]:
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    fields = {
        "Host": host or f"127.0.0.1:{server.port}",
        "X-Workbench-Token": server.token,
        "Content-Length": str(len(body)),
    } | swap
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    status, _, answer = send(server, f"POST /api/{task} HTTP/1.1", *lines, *more, body=body)
    return status, answer


def messages(answer: bytes) -> list[dict[str, Any]]:
    """Return the lines of JSON in a chunked answer."""
    return [json.loads(line) for line in answer.split(b"\r\n") if line.startswith(b"{")]


def test_the_page_and_a_task(server: Server) -> None:
    status, fields, page = send(
        server, f"GET /?token={server.token} HTTP/1.1", f"Host: localhost:{server.port}"
    )
    assert status == 200
    assert b'"mode": "live"' in page
    assert "default-src 'none'" in fields["content-security-policy"]
    assert "frame-ancestors 'none'" in fields["content-security-policy"]
    assert fields["cache-control"] == "no-store"
    assert "python" not in fields["server"].lower()
    status, answer = post(server, "design", NOISE, f"Origin: http://127.0.0.1:{server.port}")
    assert status == 200
    found = messages(answer)[-1]["result"]
    assert found["objective"] == pytest.approx(found["row"]["oracle_value"])


@pytest.mark.parametrize("token", ["", "wrong", "é" * 32, "\x00"])
def test_without_the_token_there_is_nothing(server: Server, token: str) -> None:
    assert (
        send(
            server, f"GET /?token={token.encode().hex()} HTTP/1.1", f"Host: 127.0.0.1:{server.port}"
        )[0]
        == 403
    )
    assert send(server, "GET / HTTP/1.1", f"Host: 127.0.0.1:{server.port}")[0] == 403
    status, answer = post(server, "design", NOISE, **{"X-Workbench-Token": token})
    assert status in (400, 403)
    assert b"error-rate" not in answer


def test_a_token_in_the_address_is_none_for_a_task(server: Server) -> None:
    """Another site can make a browser request an address, but without the header."""
    status, _ = post(server, f"design?token={server.token}", NOISE, **{"X-Workbench-Token": ""})
    assert status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}"],
)
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    host = host.format(port=server.port)
    assert post(server, "design", NOISE, host=host)[0] == 403
    assert send(server, f"GET /?token={server.token} HTTP/1.1", f"Host: {host}")[0] == 403


def test_two_hosts_or_none_are_refused(server: Server) -> None:
    ours = f"Host: 127.0.0.1:{server.port}"
    assert (
        send(server, f"GET /?token={server.token} HTTP/1.1", ours, "Host: evil.example")[0] == 403
    )
    assert send(server, f"GET /?token={server.token} HTTP/1.0")[0] == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:{port}", "file://"],
)
def test_a_foreign_origin_is_refused(server: Server, origin: str) -> None:
    status, answer = post(server, "design", NOISE, f"Origin: {origin.format(port=server.port)}")
    assert status == 403
    assert b"result" not in answer
    assert post(server, "design", NOISE, "Sec-Fetch-Site: cross-site")[0] == 403


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
    assert status == 404 or messages(answer)[-1]["error"] == "InvalidRequest"


@pytest.mark.parametrize("word", ["{path}", "/etc/passwd", "../..", "{path}/.."])
def test_no_option_reaches_a_file(server: Server, tmp_path: Path, word: str) -> None:
    """An answer tells neither the content of a file nor whether it exists."""
    there = tmp_path / "0..3"
    there.write_text("0,1\n1,1\n")
    words = [word.format(path=place) for place in (there, tmp_path / "0..4")]
    said = []
    for text in words:
        given = {"labels": text, "epsilon": "1"}
        (found,) = messages(post(server, "design", {"family": "labels", "given": given})[1])
        assert found["error"] == "InvalidRequest"
        said.append(found["message"].replace(text, "").replace(Path(text).name, ""))
    assert said[0] == said[1]
    given = NOISE["given"] | {"loss": "prior-squared", "prior": str(there)}  # type: ignore[operator]
    (found,) = messages(post(server, "design", {"family": "modulo", "given": given})[1])
    assert found["error"] == "InvalidRequest"


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


def test_what_is_no_request_is_refused(server: Server) -> None:
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 50_000):
        assert post(server, "design", body)[0] in (400, 413)
    for swap in (
        {"Content-Length": ""},
        {"Content-Length": "-1"},
        {"Content-Length": "1e3"},
        {"Content-Length": "٣"},
        {"Content-Length": "5", "Transfer-Encoding": "chunked"},
    ):
        assert post(server, "design", b"{}   ", **swap)[0] in (400, 411)
    wrong = [
        {"n": 8},
        {"n": {"a": 1}},
        {"check": "none"},
        {"n": "8" * 30_000},
        [],
        3,
        {"n": "\u0000"},
    ]
    wrong += [
        {option: odd}
        for option in ("prior", "loss", "n")
        for odd in (False, True, [True], {}, [[]])
    ]
    for asked in (
        {},
        {"family": 3},
        {"family": "nothing", "given": {}},
        {"family": "modulo"},
        *({"family": odd, "given": {}} for odd in ([], {}, [[]], None, False, "\ud800")),
        *(
            {"family": kind, "given": given}
            for kind in ("noise", "additive", "channel")
            for given in wrong
        ),
        {"family": "labels", "given": {"labels": "\ud800"}},
    ):
        (found,) = messages(post(server, "design", asked)[1])
        assert found["error"] == "InvalidRequest", asked


WRONG: tuple[Any, ...] = (
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
def test_values_of_wrong_types_are_refused_in_a_sentence(task: str) -> None:
    tasks = Tasks()
    asked: list[dict[str, Any]] = [{}]
    for value in WRONG:
        asked += [NOISE | {name: value} for name in ("family", "given", "changed", "limit")]
        asked += [
            {"family": "modulo", "given": NOISE["given"] | {name: value}}
            for name in ("n", "notion", "equal", "?")
        ]
        query = {"answers": "0..2", "max_shift": "1", "epsilon": "1", "time_limit": "1", "": value}
        asked += [{"query": value}, {"query": query}, {"query": {**query, "progress": "x"}}]
    for request in asked:
        with contextlib.suppress(WorkbenchError):  # There is no other error.
            json.dumps(tasks.run(task, request))


def test_a_wrong_type_reaches_the_page_as_a_sentence(server: Server) -> None:
    status, answer = post(server, "fields", {"family": "modulo", "given": 1})
    (said,) = messages(answer)
    assert status == 200
    assert said == {
        "error": "InvalidRequest",
        "message": "given must be options with their texts. Got int.",
    }


def test_large_requests_are_refused_unread(server: Server) -> None:
    assert post(server, "design", b"{", **{"Content-Length": str(10**9)})[0] == 413
    assert send(server, f"GET /{'a' * 70_000} HTTP/1.1", f"Host: 127.0.0.1:{server.port}")[0] == 414
    assert send(server, "GET / HTTP/1.1", *[f"X-{k}: a" for k in range(200)])[0] == 431


def test_slow_requests_are_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends one byte at a time keeps no thread."""
    monkeypatch.setattr(served, "_REQUEST_SECONDS", 0.6)
    sent = 0
    letters = "GET / HTTP/1.1\r\nX-Padding: " + "a" * 1000  # Bytes for a hundred seconds.
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=300) as link,
        contextlib.suppress(OSError),
    ):
        for letter in letters:
            link.sendall(letter.encode())
            sent += 1
            time.sleep(0.1)
    assert sent < len(letters)
    lines = [
        f"Host: 127.0.0.1:{server.port}",
        f"X-Workbench-Token: {server.token}",
        "Content-Length: 1000",
    ]
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as link:
        link.sendall("\r\n".join(["POST /api/design HTTP/1.1", *lines, "", '{"family"']).encode())
        assert b"200" not in link.recv(65536)


def test_connections_are_counted(alone: Server) -> None:
    server, address = alone, ("127.0.0.1", alone.port)
    ours = f"GET /?token={server.token} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    with contextlib.ExitStack() as held:
        for _ in range(served._MAX_CONNECTIONS):
            link = held.enter_context(socket.create_connection(address, timeout=300))
            link.sendall(ours)
            assert link.recv(12) == b"HTTP/1.1 200"
        with socket.create_connection(address, timeout=300) as more:
            assert more.recv(1) == b""
    end = time.monotonic() + 300
    while len(server._has_token) >= served._MAX_CONNECTIONS and time.monotonic() < end:
        time.sleep(0.02)  # Wait until the server has noticed a closed connection.
    assert (
        send(server, f"GET /?token={server.token} HTTP/1.1", f"Host: 127.0.0.1:{server.port}")[0]
        == 200
    )


def test_connections_without_the_token_do_not_lock_its_owner_out(server: Server) -> None:
    """The oldest connection without a token is closed, even if a request has started."""
    address = ("127.0.0.1", server.port)
    with contextlib.ExitStack() as held:
        first = held.enter_context(socket.create_connection(address, timeout=300))
        for turn in range(3):
            for k in range(served._MAX_CONNECTIONS):
                link = held.enter_context(socket.create_connection(address, timeout=300))
                if k % 2:
                    link.sendall(b"GET / HTTP")
            assert (
                send(
                    server, f"GET /?token={server.token} HTTP/1.1", f"Host: localhost:{server.port}"
                )[0]
                == 200
            )
            assert "result" in messages(post(server, "design", NOISE)[1])[-1], turn
        assert first.recv(1) == b""
        assert len(server._has_token) <= served._MAX_CONNECTIONS


def test_a_reader_who_leaves_stops_the_task(server: Server) -> None:
    body = json.dumps(SLOW).encode()
    lines = [
        f"Host: 127.0.0.1:{server.port}",
        f"X-Workbench-Token: {server.token}",
        f"Content-Length: {len(body)}",
    ]
    lane = server.lanes._lanes["slow"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as link:
        link.sendall("\r\n".join(["POST /api/along HTTP/1.1", *lines, "", ""]).encode() + body)
        got = b""
        while b'"total"' not in got:
            got += link.recv(65536)
        process = lane._process
        assert process.is_alive()
    end = time.monotonic() + 300
    while process.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert not process.is_alive()


def test_a_task_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = Lanes(limits={"live": 300.0, "slow": 0.3})
    try:
        with pytest.raises(TaskStopped, match=r"after 0\.3 s"):
            list(lanes.run("along", SLOW))
        *_, last = lanes.run("design", NOISE)
        assert "result" in last
    finally:
        lanes.kill_workers()


def test_a_worker_that_dies_is_said_and_replaced(server: Server) -> None:
    post(server, "design", NOISE)
    lane = server.lanes._lanes["live"]
    threading.Timer(0.8, lambda: lane._process.kill()).start()
    given = {
        "n": "60",
        "max_shift": "4",
        "epsilon": "0.5",
        "delta": "0.03",
        "notion": "pdp",
        "method": "literal",
    }
    slow = {"family": "modulo", "given": given}
    found = messages(post(server, "design", slow)[1])
    assert found[-1]["error"] == "Stopped"
    assert "result" in messages(post(server, "design", NOISE)[1])[-1]


def test_only_loopback_listens(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert processes.LANE_LIMIT_SECONDS["live"] <= 30
    assert processes.LANE_LIMIT_SECONDS["slow"] <= 120
