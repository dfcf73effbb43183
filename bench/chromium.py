"""Control headless Chromium, for benchmarks and tests of the explorer.

The browser is driven by the DevTools protocol over two pipes, without a driver or a package. A
`Page` records the addresses that it requested and the errors on its console:

    with Chromium(folder) as browser:
        page = browser.open("http://127.0.0.1:8000")
        page.click("Design")
        assert page.js("document.title") == "..."
        assert not page.complaints
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
_ARGUMENTS = (
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
_ANSWER_SECONDS = 300.0  # Default time limit of a command.
_READ_BYTES = 1 << 20
# Key -> its code, name and text.
_KEYS = {
    "Tab": (9, "Tab", ""),
    "Enter": (13, "Enter", "\r"),
    "Space": (32, " ", " "),
    "ArrowRight": (39, "ArrowRight", ""),
}
_PROBLEM_LEVELS = ("error", "warning")


class Navigated(Exception):
    """The page was left before it answered."""


class Chromium:
    """A browser with a new profile.

    Attributes:
        process: the process id.
        events: all events that the browser has sent.
    """

    def __init__(self, folder: Path) -> None:
        """Start the browser.

        Args:
            folder: folder of the new profile.
        """
        assert EXECUTABLE is not None
        browser_input, self._out = os.pipe()
        self._in, browser_output = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4. The copies get numbers from 10 on,
        # so that assigning 3 and 4 in the browser cannot overwrite them.
        pipes = [
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (browser_input, browser_output)
        ]
        null = os.open(os.devnull, os.O_RDWR)
        actions = [
            (os.POSIX_SPAWN_DUP2, end, number)
            for number, end in enumerate([null, null, null, *pipes])
        ]
        command = [EXECUTABLE, *_ARGUMENTS, f"--user-data-dir={folder}", "about:blank"]
        self.process = os.posix_spawn(
            EXECUTABLE, command, os.environ, file_actions=actions, setsid=True
        )
        for end in (browser_input, browser_output, null, *pipes):
            os.close(end)
        self._buffer = b""  # The beginning of a message whose end has not arrived.
        self._message_number = 0
        self.events: list[dict[str, Any]] = []
        self._targets: list[str] = []  # DevTools identifiers of the open pages.

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
        self,
        method: str,
        session: str | None = None,
        limit: float = _ANSWER_SECONDS,
        **parameters: Any,
    ) -> dict[str, Any]:
        """Send a command and return its answer. Events that arrive meanwhile are stored.

        Args:
            method: name of the method of the DevTools protocol.
            session: identifier of the session of a page. None for the browser.
            limit: seconds until the answer must have arrived.
            parameters: parameters of the method.

        Raises:
            Navigated: the page was left before it answered.
        """
        self._message_number += 1
        number = self._message_number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
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
        """Close all pages that `open` has opened."""
        while self._targets:
            self.call("Target.closeTarget", targetId=self._targets.pop())

    def read(self, seconds: float) -> list[dict[str, Any]]:
        """Return the messages that arrive next, and store the events among them.

        Args:
            seconds: time to wait for a first message.
        """
        messages: list[dict[str, Any]] = []
        if select.select([self._in], [], [], max(0.0, seconds))[0]:
            self._buffer += os.read(self._in, _READ_BYTES)
            *complete_texts, self._buffer = self._buffer.split(b"\0")
            messages = [json.loads(text) for text in complete_texts]
            self.events += [message for message in messages if "method" in message]
        return messages

    def open(
        self, address: str, width: int = 1280, height: int = 720, *, load: bool = True
    ) -> Page:
        """Open a new tab.

        Args:
            address: address of the page. It is not used without `load`.
            width: width of the window in pixels.
            height: height of the window in pixels.
            load: whether to load the address and wait until the page shows something. Otherwise the
                tab stays blank.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._targets.append(target)
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        page.size(width, height)
        if load:
            page.go(address)
        return page


class Page:
    """One tab of the browser.

    Attributes:
        browser: the running browser that the page belongs to.
        session: its DevTools session.
    """

    def __init__(self, browser: Chromium, session: str) -> None:
        self.browser = browser
        self.session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab and return its answer.

        Args:
            method: name of the method of the DevTools protocol.
            parameters: parameters of the method.
        """
        return self.browser.call(method, self.session, **parameters)

    def go(self, address: str) -> None:
        """Load an address and wait until the page shows something.

        Args:
            address: address of the page to load.
        """
        self.call("Page.navigate", url=address)
        self.wait(
            "document.readyState === 'complete' "
            "&& !!document.getElementById('app')?.childElementCount"
        )

    def reach(self, address: str, seconds: float = _ANSWER_SECONDS) -> None:
        """Load an address again and again until its server answers.

        Args:
            address: address of the page to load.
            seconds: time until the server must answer.
        """
        end = time.monotonic() + seconds
        # The answer has an errorText as long as the server refuses the connection.
        while "errorText" in self.call("Page.navigate", url=address):
            assert time.monotonic() < end, f"nobody answers at {address}"
            time.sleep(0.2)

    def size(self, width: int, height: int) -> None:
        """Set the size of the window.

        Args:
            width: width in pixels.
            height: height in pixels.
        """
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def js(self, code: str, limit: float = _ANSWER_SECONDS) -> Any:
        """Evaluate a JavaScript expression and return its value as an object of JSON.

        If the value is a promise, the method waits until it is fulfilled.

        Args:
            code: the expression.
            limit: seconds until the value must have arrived.
        """
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

    def wait(self, condition: str, seconds: float = _ANSWER_SECONDS) -> None:
        """Wait until an expression is true.

        Args:
            condition: JavaScript.
            seconds: time limit.
        """
        end = time.monotonic() + seconds
        while True:
            # While the page is being left, the condition is tried again on the next page.
            with contextlib.suppress(Navigated):
                answer = self.call(
                    "Runtime.evaluate", expression=f"!!({condition})", returnByValue=True
                )
                if answer["result"].get("value") is True:
                    return
            assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
            time.sleep(0.05)

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """Send a mouse event.

        Args:
            kind: mouseMoved, mousePressed or mouseReleased.
            x: position in pixels.
            y: position in pixels.
            buttons: bit mask of the pressed buttons.
        """
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
        """Press and release keys, one after the other.

        Args:
            keys: Tab, Enter, Space, ArrowRight, or a letter.
        """
        for key in keys:
            code, name, text = _KEYS.get(key, (ord(key[0].upper()), key, key))
            fields: dict[str, Any] = {"key": name, "code": key, "windowsVirtualKeyCode": code}
            event_type = "keyDown" if text else "rawKeyDown"
            self.call("Input.dispatchKeyEvent", type=event_type, text=text, **fields)
            self.call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def click(self, text: str) -> None:
        """Click the button with a text.

        Args:
            text: text on the button.
        """
        has_text = f"(button) => button.textContent === {json.dumps(text)}"
        self.js(f"[...document.querySelectorAll('button')].find({has_text}).click()")

    def set_control(self, name: str, value: str, event: str = "change") -> None:
        """Set the value of a control.

        Args:
            name: id of the control.
            value: the new value.
            event: name of the event that the control receives afterwards.
        """
        control = f"document.getElementById({json.dumps(name)})"
        dispatch = f"{control}.dispatchEvent(new Event({json.dumps(event)}))"
        self.js(f"void ({control}.value = {json.dumps(value)}, {dispatch})")

    def _list_events(self) -> list[dict[str, Any]]:
        """Return the events of this page."""
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    @property
    def requests(self) -> list[str]:
        """Return the addresses that were requested."""
        return [
            event["params"]["request"]["url"]
            for event in self._list_events()
            if event["method"] == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self) -> list[str]:
        """Return errors and warnings on the console, and exceptions."""
        texts = []
        for event in self._list_events():
            method = event["method"]
            parameters = event["params"]
            if method == "Runtime.exceptionThrown":
                texts.append(str(parameters["exceptionDetails"].get("exception", parameters)))
            if method == "Log.entryAdded" and parameters["entry"]["level"] in _PROBLEM_LEVELS:
                texts.append(parameters["entry"]["text"])
            if method == "Runtime.consoleAPICalled" and parameters["type"] in _PROBLEM_LEVELS:
                texts.append(str(parameters["args"]))
        return texts
