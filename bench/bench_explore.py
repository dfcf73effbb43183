"""How fast the explorer feels, measured in Chromium: from a slider's event to what is drawn, first paint, memory.

    python -m bench.bench_explore

latency    milliseconds from an `input` event of the ε slider to the frame after the new design is drawn, one event
           after the other: request, live solve, exact audit, answer, drawing
preliminary  how many of these designs were drawn before they were proven optimal (they say so, and the solver goes on)
line       seconds from the command to the line with the address
paint      seconds from the command to the first contentful paint of the page in a browser that is already open
memory     megabytes (proportional set size) of all processes of the server, after the drags (rest) and while the slow
           worker is there as well (busy)
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from bench.chromium import EXECUTABLE, Chromium

__all__ = ["TITLE", "run"]

TITLE = "The explorer in Chromium: latency of a slider, first paint, memory"

CASES = {
    "noise n=8 pdp": "family=modulo&n=8&max_shift=3&epsilon=1.5&delta=0.1",
    "noise n=40 dp": "family=modulo&n=40&max_shift=3&epsilon=1.5&delta=0.05&notion=dp",
    "noise n=40 pdp": "family=modulo&n=40&max_shift=3&epsilon=1.5&delta=0.05",
    "quantizer 4 outputs, 41 knots": "family=quantizer&bins=-3,-0.5,0.5,3&knots=41&epsilon=1",
}
EVENTS = 60
_DRAG = """(async () => {
  const slider = document.querySelector('#option-epsilon ~ input[type=range]'), times = [];
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let k = 0; k < COUNT; k++) {
    const drawn = new Promise((done) =>
      document.addEventListener('workbench-drawn', (event) => done(event.detail), { once: true }));
    slider.value = 560 + 3 * k;
    const begin = performance.now();
    slider.dispatchEvent(new Event('input'));
    const { preliminary } = await drawn; await frame();
    times.push([performance.now() - begin, Boolean(preliminary)]);
  }
  return times;
})()"""


def run() -> pd.DataFrame:
    """One row for each case; empty without Chromium."""
    if EXECUTABLE is None:
        print("Chromium is missing: nothing is measured.", file=sys.stderr)
        return pd.DataFrame()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Chromium(Path(folder)) as browser:
        return pd.DataFrame([_case(browser, name, state) for name, state in CASES.items()])


def _case(browser: Chromium, name: str, state: str) -> dict[str, Any]:
    browser.open("about:blank", wait=False)  # so that the browser itself is awake
    begin = time.time()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "workbench", "explore", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        match = re.search(r"http://\S+", server.stdout.readline())
        assert match is not None
        line = time.time() - begin
        page = browser.open(f"{match[0]}#{state}")
        page.wait("performance.getEntriesByName('first-contentful-paint').length")
        paint = page.js("performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.wait("document.querySelector('main')?.dataset.drawn")
        drawn = time.time() - begin
        page.js(_DRAG.replace("COUNT", "10"))  # warm
        events = page.js(_DRAG.replace("COUNT", str(EVENTS)))
        times = sorted(milliseconds for milliseconds, _ in events)
        rest = _memory(server.pid)
        page.wait(
            "[...document.querySelectorAll('.card > p')].some((p) => p.textContent.startsWith('computing, '))"
            " || document.querySelectorAll('.card').length > 3"
        )
        busy = _memory(server.pid)
    finally:
        browser.close_pages()
        server.send_signal(signal.SIGINT)
        server.wait(20)
    return {
        "case": name,
        "events": EVENTS,
        "preliminary": sum(early for _, early in events),
        "median_ms": statistics.median(times),
        "p95_ms": times[int(0.95 * EVENTS)],
        "line_s": line,
        "paint_s": paint / 1e3 - begin,
        "design_s": drawn,
        "rest_mb": rest,
        "busy_mb": busy,
    }


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _tree(int(child))


def _memory(pid: int) -> float:
    total = 0
    for process in _tree(pid):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        total += sum(int(size) for size in re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE))
    return total / 1024


if __name__ == "__main__":
    print(run().to_string(index=False, float_format=lambda value: f"{value:.3g}"), f"(load {os.getloadavg()[0]:.1f})")
