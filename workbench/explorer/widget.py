"""The explorer's drawing module in a notebook: an anywidget, whose host is the kernel (`assets/widget.js`).

    the reader's side                          the kernel
    {id, task, asked}                ──▶       a task, in a process of its own (`workbench.explorer.processes`)
    {stop: id}                       ──▶       which is stopped
                                     ◀──       {id, done, total}, then {id, result} or {id, error, message}
    state                            ◀─▶       family and options as the text of a query

Tasks run beside the kernel, in threads that wait for them; they start when the kernel has finished the cell it is at.
Of several widgets, such as those of a cell that was run again, only the one asked last keeps a process.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar
from urllib.parse import parse_qs

import anywidget
import traitlets

from workbench.exact.objects import Values
from workbench.explorer.given import Files, exact_values, listing, state
from workbench.explorer.page import answers, asset, script
from workbench.explorer.processes import Lanes, bug
from workbench.families.design import Design
from workbench.families.registry import family


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer in a cell. `state` is what it shows, as the fragment of the explorer's address has it."""

    _esm = script("widget.js")
    style = traitlets.Unicode(asset("explorer.css")).tag(sync=True)
    _asked_last: ClassVar[ExplorerWidget | None] = None
    families = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        name: str | None = None,
        given: Values | None = None,
        files: Files = (),
    ) -> None:
        known = listing()
        entry = next(listed for listed in known if name in (None, listed["name"]))
        super().__init__(families=json.dumps(known), state=state(entry["name"], given or entry["first"]))
        self._files = frozenset(files)
        self._lanes = Lanes(files)
        self._stopped: dict[int, threading.Event] = {}
        self.on_msg(self._heard)

    # What is shown.

    @property
    def family(self) -> str:
        """The family that is shown."""
        return parse_qs(self.state)["family"][0]

    @property
    def given(self) -> Values:
        """Its options, as texts."""
        kinds = {option.name: option.kind for option in family(self.family).options}
        fields = {name: texts for name, texts in parse_qs(self.state).items() if name != "family"}
        return {
            name: texts if kinds.get(name) is list else texts[0] == "true" if kinds.get(name) is bool else texts[0]
            for name, texts in fields.items()
        }

    def design(self) -> Design:
        """What is shown, designed anew and certified where the family certifies. Errors as `workbench.design`."""
        kind = family(self.family)
        values = exact_values(kind, self.given, self._files)
        return kind.designed(kind.request_of(values | {"check": "certify"}))

    # Messages.

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        if "stop" in message:
            if event := self._stopped.get(message["stop"]):
                event.set()
            return
        number, task, request = message.get("id"), message.get("task"), message.get("asked")
        if isinstance(number, int) and isinstance(task, str) and isinstance(request, dict):
            last, ExplorerWidget._asked_last = ExplorerWidget._asked_last, self
            if last and last is not self:
                last._lanes.rest()
            self._stopped[number] = threading.Event()
            threading.Thread(target=self._run, args=(number, task, request, self.send), daemon=True).start()

    def _run(self, number: int, task: str, request: Values, tell: Callable[[Any], None]) -> None:
        stopped = self._stopped[number]
        try:
            with closing(answers(self._lanes, task, request)) as messages:
                for message in messages:
                    if stopped.is_set():
                        return
                    if message:
                        tell({"id": number, **message})
        except Exception as error:  # such as no process to be had; a thread's exception would reach nobody
            tell({"id": number, **bug(error)})
        finally:
            del self._stopped[number]

    def close(self) -> None:
        """Remove the widget and end its processes."""
        self._lanes.end()
        if ExplorerWidget._asked_last is self:
            ExplorerWidget._asked_last = None
        super().close()
