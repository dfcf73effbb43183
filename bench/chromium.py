"""Debian's Chromium without a window, driven by the DevTools protocol over two pipes: no driver and no package needed.

Requests that go anywhere but to this machine are counted; so are errors on the console.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["EXECUTABLE", "Chromium", "Page"]

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser")
_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)


_KEYS = {  # code, name, text
    "Tab": (9, "Tab", ""), "Enter": (13, "Enter", "\r"), "Space": (32, " ", " "), "ArrowRight": (39, "ArrowRight", ""),
}  # fmt: skip


class Navigated(Exception):
    """The page was left while it was asked something."""


class Chromium:
    """A browser with a profile of its own; `open` gives pages."""

    def __init__(self, folder: Path) -> None:
        assert EXECUTABLE is not None
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs, answers)]
        null = os.open(os.devnull, os.O_RDWR)
        actions = [
            (os.POSIX_SPAWN_DUP2, end, number)
            for number, end in enumerate([null, null, null, *far])
        ]
        words = [EXECUTABLE, *_QUIET, f"--user-data-dir={folder}", "about:blank"]
        self.process = os.posix_spawn(
            EXECUTABLE, words, os.environ, file_actions=actions, setsid=True
        )
        for end in (theirs, answers, null, *far):
            os.close(end)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []
        self._targets: list[str] = []

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._out)
        os.close(self._in)

    def call(
        self, method: str, session: str | None = None, limit: float = 300.0, **parameters: Any
    ) -> dict[str, Any]:
        """One command and its answer; events meanwhile are kept."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + limit
        while True:
            for answer in self.read(end - time.monotonic()):
                if answer.get("id") == number:
                    if "navigated" in str(answer.get("error")):
                        raise Navigated
                    assert "error" not in answer, answer
                    result: dict[str, Any] = answer["result"]
                    return result
            assert time.monotonic() < end, f"no answer to {method}"

    def close_pages(self) -> None:
        """Close what `open` has opened."""
        while self._targets:
            self.call("Target.closeTarget", targetId=self._targets.pop())

    def read(self, seconds: float) -> list[dict[str, Any]]:
        """What has come within some seconds, at least one message if any comes; events are kept as well."""
        messages: list[dict[str, Any]] = []
        if select.select([self._in], [], [], max(0.0, seconds))[0]:
            self._buffer += os.read(self._in, 1 << 20)
            *whole, self._buffer = self._buffer.split(b"\0")
            messages = [json.loads(part) for part in whole]
            self.events += [message for message in messages if "method" in message]
        return messages

    def open(
        self, address: str, width: int = 1280, height: int = 720, *, wait: bool = True
    ) -> Page:
        """A page in a tab of its own; wait: until it shows something."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._targets.append(target)
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        page.size(width, height)
        if wait:
            page.go(address)
        return page


class Page:
    """One tab."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command to this tab."""
        return self.browser.call(method, self.session, **parameters)

    def go(self, address: str) -> None:
        """Load an address."""
        self.call("Page.navigate", url=address)
        self.wait(
            "document.readyState === 'complete' && !!document.getElementById('app')?.childElementCount"
        )

    def reach(self, address: str, seconds: float = 300.0) -> None:
        """Load an address of a server that may be starting."""
        end = time.monotonic() + seconds
        while "errorText" in self.call("Page.navigate", url=address):
            assert time.monotonic() < end, f"nobody answers at {address}"
            time.sleep(0.2)

    def size(self, width: int, height: int) -> None:
        """Set the window's size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def js(self, code: str, limit: float = 300.0) -> Any:
        """The value of an expression, a promise awaited for so many seconds."""
        answer = self.call(
            "Runtime.evaluate",
            limit=limit,
            expression=code,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 300.0) -> None:
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(Navigated):
                answer = self.call(
                    "Runtime.evaluate", expression=f"!!({condition})", returnByValue=True
                )
                if answer["result"].get("value") is True:
                    return
            assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
            time.sleep(0.05)

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """A mouse event: mouseMoved, mousePressed, mouseReleased."""
        button = "left" if kind != "mouseMoved" else "none"
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=buttons,
            clickCount=1,
        )

    def press(self, *keys: str) -> None:
        """Press and release keys, one after the other: Tab, Enter, Space, ArrowRight, or a letter."""
        for key in keys:
            code, name, text = _KEYS.get(key, (ord(key[0].upper()), key, key))
            named: dict[str, Any] = {"key": name, "code": key, "windowsVirtualKeyCode": code}
            self.call(
                "Input.dispatchKeyEvent",
                type="keyDown" if text else "rawKeyDown",
                text=text,
                **named,
            )
            self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def click(self, words: str) -> None:
        """Press the button that says something."""
        find = f"[...document.querySelectorAll('button')].find((one) => one.textContent === {json.dumps(words)})"
        self.js(f"{find}.click()")

    def give(self, name: str, value: str, event: str = "change") -> None:
        """Set the control with an id."""
        find = f"document.getElementById({json.dumps(name)})"
        self.js(
            f"void ({find}.value = {json.dumps(value)}, {find}.dispatchEvent(new Event({json.dumps(event)})))"
        )

    def _own(self) -> list[dict[str, Any]]:
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    @property
    def requests(self) -> list[str]:
        """The addresses that were requested."""
        return [
            e["params"]["request"]["url"]
            for e in self._own()
            if e["method"] == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings on the console, exceptions."""
        sentences = []
        for event in self._own():
            if event["method"] == "Runtime.exceptionThrown":
                sentences.append(
                    str(event["params"]["exceptionDetails"].get("exception", event["params"]))
                )
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in (
                "error",
                "warning",
            ):
                sentences.append(event["params"]["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in (
                "error",
                "warning",
            ):
                sentences.append(str(event["params"]["args"]))
        return sentences
