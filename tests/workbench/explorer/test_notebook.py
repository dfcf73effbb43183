"""The explorer in a notebook: the kernel's side, and both sides in a browser with the test as the messenger."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from bench.chromium import Chromium, Page
from workbench.explorer.page import script
from workbench.explorer.widget import ExplorerWidget
from workbench.families.registry import families
from workbench.io import extras

NOISE = {"n": 8, "max_shift": 3, "epsilon": 1.5, "delta": "0.1", "notion": "pdp"}


@pytest.fixture
def widget() -> Iterator[ExplorerWidget]:
    made = wb.explore("modulo", **NOISE)
    made.answers = queue.Queue()  # instead of the notebook's transport
    made.send = lambda content, buffers=None: made.answers.put(json.loads(json.dumps(content, allow_nan=False)))
    yield made
    made.close()


def hear(widget: ExplorerWidget, message: Any) -> None:
    widget._handle_custom_msg(message, [])


def result(widget: ExplorerWidget, number: int) -> dict[str, Any]:
    while True:
        message = widget.answers.get(timeout=300)
        assert message["id"] == number
        if "done" not in message:
            return message


def ended(widget: ExplorerWidget) -> None:
    """Wait until no task is at work."""
    end = time.monotonic() + 300
    while widget._stopped:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("family", "options", "state"),
    [
        ("modulo", {"shifts": [1, 2], "n": 8, "epsilon": "1/3"}, "family=modulo&shifts=1%2C2&n=8&epsilon=1%2F3"),
        ("modulo", {"n": 4, "max_shift": 1, "directed": True}, "family=modulo&n=4&max_shift=1&directed=true"),
        (
            "channel",
            {"answers": "0..3", "max_shift": 1, "epsilon": 1, "constraints": ["unbiased"]},
            "family=channel&answers=0..3&max_shift=1&epsilon=1&constraints=unbiased",
        ),
    ],
)
def test_options_become_the_state_and_come_back(family: str, options: dict[str, Any], state: str) -> None:
    widget = wb.explore(family, **options)
    assert (widget.family, widget.state) == (family, state)
    assert set(widget.given) == set(options)
    assert all(
        widget.given[name] == value
        for name, value in options.items()
        if isinstance(value, (bool, list, str)) and name != "shifts"
    )
    widget.close()


def test_every_family_begins_with_an_example() -> None:
    for kind in families():
        widget = wb.explore(kind.name)
        assert widget.family == kind.name
        assert widget.given
        widget.close()


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("modulo", {"n": -1}, "n must be an integer"),
        ("modulo", {"quality": 1}, "option must be one of n,"),
        ("nothing", {}, "family must be one of"),
        (None, {"n": 8}, "family must be given"),
        ("modulo", {"sizes": "3x3", "shifts": [[0, 1]]}, "shifts must be a text"),
        ("modulo", {"n": 8, "max_shift": 1, "epsilon": {1: 0.5}}, "epsilon must be"),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(family: str | None, options: dict[str, Any], words: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=words):
        wb.explore(family, **options)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "present", lambda module: module != "anywidget")
    with pytest.raises(wb.NotInstalled, match=r"pip install '\.\[notebook\]'"):
        wb.explore()


def test_a_message_is_answered_as_the_row_of_a_design(widget: ExplorerWidget) -> None:
    hear(widget, {"id": 1, "task": "design", "asked": {"family": "modulo", "given": widget.given}})
    view = result(widget, 1)["result"]
    design = widget.design()
    assert design.certificate is not None
    assert view["objective"] == pytest.approx(design.objective, rel=1e-9)
    hear(widget, {"id": 2, "task": "design", "asked": {"family": "modulo", "given": {"n": "x"}}})
    assert result(widget, 2)["error"] == "InvalidRequest"
    hear(widget, {"id": 3, "task": "certify", "asked": {"family": "modulo", "given": widget.given}})
    assert result(widget, 3)["result"]["row"]["objective"] == design.row()["objective"]


def test_messages_of_another_form_are_let_pass_and_files_are_not_read(widget: ExplorerWidget) -> None:
    for message in (None, "design", [], {"id": 1}, {"id": "1", "task": "design", "asked": {}}, {"stop": 7}):
        hear(widget, message)
    assert widget.answers.empty()
    given = {**widget.given, "loss": "/etc/passwd"}
    hear(widget, {"id": 1, "task": "design", "asked": {"family": "modulo", "given": given}})
    message = result(widget, 1)
    assert message["error"] == "InvalidRequest"
    assert "root:" not in message["message"]


def test_a_stopped_task_ends(widget: ExplorerWidget) -> None:
    hear(
        widget,
        {
            "id": 1,
            "task": "along",
            "asked": {"family": "modulo", "given": {**widget.given, "n": "60"}, "along": "epsilon"},
        },
    )
    assert widget.answers.get(timeout=300)["id"] == 1  # it is at work
    hear(widget, {"stop": 1})
    ended(widget)


def test_of_several_widgets_the_one_asked_last_keeps_a_process(widget: ExplorerWidget) -> None:
    other = wb.explore("modulo", n=3, max_shift=1, epsilon=1)
    other.answers = queue.Queue()
    other.send = lambda content, buffers=None: other.answers.put(content)
    for number, asking in enumerate((widget, other, widget)):
        hear(asking, {"id": number, "task": "design", "asked": {"family": "modulo", "given": asking.given}})
        assert "result" in result(asking, number)
        ended(asking)
        alive = [one._lanes._lanes["live"]._process is not None for one in (widget, other)]
        assert alive == [asking is widget, asking is other]
    other.close()


def test_what_goes_wrong_beside_the_kernel_reaches_the_reader(
    widget: ExplorerWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> Iterator[Any]:
        raise OSError("no more processes")
        yield

    monkeypatch.setattr(widget._lanes, "run", none)
    hear(widget, {"id": 1, "task": "design", "asked": {"family": "modulo", "given": widget.given}})
    assert result(widget, 1) == {"id": 1, "error": "Bug", "message": "OSError: no more processes (this is a bug)"}


# In a browser.

_MODEL = """
window.outbox = []; window.hooks = {};
window.traits = TRAITS;
window.model = {
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes: () => outbox.push({ state: traits.state }),
  send: (content) => outbox.push({ message: content }),
  on: (name, action) => { (hooks[name] ??= new Set()).add(action); },
  off: (name, action) => hooks[name]?.delete(action),
};
window.tell = (name, ...content) => { for (const action of hooks[name] ?? []) action(...content); };
document.body.innerHTML = '<div id="cell"></div>';
import(URL.createObjectURL(new Blob([CODE], { type: "text/javascript" }))).then((made) => {
  window.leave = made.default.render({ model, el: document.getElementById("cell") });
});
"""
_SHADOW = "document.getElementById('cell').shadowRoot"


def exchange(page: Page, widget: ExplorerWidget, condition: str, seconds: float = 300) -> None:
    """Carry messages both ways until a condition holds in the page."""
    end = time.monotonic() + seconds
    while not page.js(f"!!({condition})"):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        for sent in page.js("outbox.splice(0)"):
            if "state" in sent:
                widget.state = sent["state"]
            else:
                hear(widget, sent["message"])
        while not widget.answers.empty():
            page.js(f"tell('msg:custom', {json.dumps(widget.answers.get())})")
        time.sleep(0.02)


def test_both_sides_in_a_browser(browser: Chromium, widget: ExplorerWidget) -> None:
    page = browser.open("about:blank", wait=False)
    before = len(browser.events)
    traits = {"state": widget.state, "style": widget.style, "families": widget.families}
    page.js(_MODEL.replace("TRAITS", json.dumps(traits)).replace("CODE", json.dumps(script("widget.js"))))
    exchange(page, widget, f"{_SHADOW}?.querySelector('main')?.dataset.drawn")
    shown = f"{_SHADOW}.querySelector('.value').textContent"
    assert float(page.js(shown)) == pytest.approx(0.581339117, abs=1e-9)

    find = f"{_SHADOW}.getElementById('option-epsilon')"
    page.js(f"void ({find}.value = '2', {find}.dispatchEvent(new Event('change')))")
    exchange(page, widget, f"{shown} !== '0.581339117'")
    exchange(page, widget, "!outbox.length")
    assert widget.given["epsilon"] == "2"
    assert float(page.js(shown)) == pytest.approx(widget.design().objective, abs=1e-8)

    page.js("traits.state = 'family=quantizer&bins=-3,-0.5,0.5,3&epsilon=1', tell('change:state')")  # from Python
    exchange(page, widget, f"{_SHADOW}.querySelector('h2').textContent.startsWith('Unbiased quantizer')")
    exchange(page, widget, f"{_SHADOW}.querySelector('.badge.proven')")  # by itself
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"  # the notebook's own style
    assert page.js("leave(), hooks['msg:custom'].size") == 0
    errors = [event for event in browser.events[before:] if event["method"] == "Runtime.exceptionThrown"]
    assert not errors
    browser.close_pages()


def test_a_kernel_answers_over_jupyter_messages() -> None:
    """A cell shows the widget; a message of the reader's side over its comm is answered on the kernel's channel."""
    pytest.importorskip("ipykernel", reason="ipykernel is missing: make docs")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=300)
    try:
        client.execute("import workbench as wb; wb.explore('modulo', n=4, max_shift=1, epsilon=1)")
        models: dict[str, str] = {}
        shown = None
        while shown is None:
            message = client.get_iopub_msg(timeout=300)
            if message["msg_type"] == "comm_open":
                models[message["content"]["comm_id"]] = message["content"]["data"]["state"].get("state", "")
            if message["msg_type"] == "execute_result":
                shown = message["content"]["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
            assert message["msg_type"] != "error", message["content"]
        assert models[shown] == "family=modulo&n=4&max_shift=1&epsilon=1"
        asked = {"family": "modulo", "given": {"n": "4", "max_shift": "1", "epsilon": "1"}}
        custom = {"method": "custom", "content": {"id": 1, "task": "design", "asked": asked}}
        client.shell_channel.send(client.session.msg("comm_msg", {"comm_id": shown, "data": custom}))
        found = None
        while found is None:
            message = client.get_iopub_msg(timeout=300)
            if message["msg_type"] == "comm_msg" and message["content"]["data"].get("method") == "custom":
                found = message["content"]["data"]["content"].get("result")
        design = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1)
        assert found["objective"] == pytest.approx(design.objective, abs=1e-9)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
