"""How fast the explorer feels, measured in Chromium: from a slider's event to what is drawn, first paint, memory.

    python -m bench.bench_explore [WORDS OF A CASE]

Rows are stored as they come, and a case that is measured alone replaces its row.

latency    milliseconds from an `input` event of the first slider of the budget to the frame after a design for the new
           value is drawn, one event after the other, once the page has settled
preliminary  how many of these drawings came before the design of that very budget: another one, which is private at it
           too, with the interval of the least loss (they say so, and the solver goes on)
green      seconds from the last event until what is shown is certified (without: until the page is settled)
cpu        milliseconds of the processor for one such event, of the server and of the browser
line       seconds from the command to the line with the address
paint      seconds from the command to the first contentful paint of the page in a browser that is already open
load       how many processes wanted a processor meanwhile: of more than there are, latencies are theirs, too
memory     megabytes (proportional set size) of all processes of the server, after the drags (rest) and while the slow
           worker is there as well (busy)
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.chromium import EXECUTABLE, Chromium

__all__ = ["TITLE", "run"]

TITLE = "The explorer in Chromium: latency of a slider, first paint, memory"

CASES = {
    "modulo dp": "family=modulo&n=8&max_shift=3&epsilon=1.5",
    "modulo pdp": "family=modulo&n=8&max_shift=3&epsilon=1.5&delta=0.1&notion=pdp",
    "modulo n=40 pdp": "family=modulo&n=40&max_shift=3&epsilon=1.5&delta=0.05&notion=pdp",
    "modulo metric": "family=modulo&n=8&max_shift=3&epsilon=0.5&notion=metric",
    "modulo curve": "family=modulo&n=30&max_shift=1&loss=squared&notion=curve&curve=0.5:0.1,1:0.01",
    "modulo tradeoff": "family=modulo&n=8&max_shift=1&notion=tradeoff&tradeoff=0:1,0.1:0.6,0.4:0.2,1:0",
    "modulo renyi": "family=modulo&n=8&max_shift=1&notion=renyi&alpha=2&epsilon=0.5",
    "modulo zcdp": "family=modulo&n=30&max_shift=1&loss=squared&notion=zcdp&rho=0.1",
    "modulo gdp": "family=modulo&n=8&max_shift=1&notion=gdp&mu=0.5",
    "noise dp": "family=noise&on=integers&sensitivity=1&epsilon=1&delta=1e-5",
    "noise clamped": "family=noise&on=integers&clamp=0..100&epsilon=1&delta=1e-5",
    "noise reals": "family=noise&on=reals&sensitivity=200000&loss=absolute&epsilon=0.5&delta=0.05",
    "noise zcdp": "family=noise&on=integers&sensitivity=2&notion=zcdp&rho=0.1",
    "noise curve": "family=noise&on=reals&loss=absolute&notion=curve&curve=0.5:0.1,1:0.01",
    "channel 0..100": "family=channel&answers=0..100&max_shift=1&loss=squared&epsilon=1&delta=1e-5",
    "channel pure": "family=channel&answers=0..20&neighbours=consecutive&loss=absolute&epsilon=1&notion=pure",
    "channel zcdp": "family=channel&answers=0..20&max_shift=1&notion=zcdp&rho=0.1",
    "quantizer": "family=quantizer&bins=-3,-0.5,0.5,3&epsilon=1",
    "quantizer 41 knots": "family=quantizer&bins=-3,-0.5,0.5,3&knots=41&epsilon=1",
    "quantizer 4 levels": "family=quantizer&levels=4&epsilon=1",
    "labels": "family=labels&labels=0..20&loss=squared&epsilon=4",
    "labels lp zcdp": "family=labels&labels=0..7&method=lp&notion=zcdp&rho=0.1",
    "laplace": "family=laplace&epsilon=1&bits=5",
}
EVENTS = 100
_LONGEST = 60.0  # seconds of events, from which there are no further ones
_DRAG = """(async () => {
  const slider = document.querySelector('.sliders input[type=range]:enabled'), times = [];
  const base = Number(slider.dataset.base ??= slider.value);
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let k = FIRST; k < FIRST + COUNT; k++) {
    const drawn = new Promise((done) => {
      document.addEventListener('workbench-drawn', (event) => done(event.detail), { once: true });
      document.addEventListener('workbench-failed', () => done({}), { once: true });
    });
    slider.value = base - 50 + 2 * (k % 50) - (k >= 50);
    const begin = performance.now();
    slider.dispatchEvent(new Event('input'));
    const view = await drawn; await frame();
    times.push([performance.now() - begin, Boolean(view.preliminary)]);
  }
  return times;
})()"""
_TICKS = os.sysconf("SC_CLK_TCK")
_BACK = """(() => { const slider = document.querySelector('.sliders input[type=range]:enabled');
  slider.value = slider.dataset.base; slider.dispatchEvent(new Event('input')); })()"""
_SETTLED = "document.querySelector('main')?.dataset.settled"


def run(words: Sequence[str] = (), known: Sequence[dict[str, Any]] = ()) -> Iterator[pd.DataFrame]:
    """One row for each case whose name has all words, in the table of known ones, which grows by a row at a time;
    nothing without Chromium."""
    if EXECUTABLE is None:
        print("Chromium is missing: nothing is measured.", file=sys.stderr)
        return
    chosen = {name: state for name, state in CASES.items() if all(word in name for word in words)}
    rows = {row["case"]: row for row in known}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Chromium(Path(folder)) as browser,
    ):
        for name, state in chosen.items():
            try:
                rows[name] = _case(browser, name, state)
            except (AssertionError, OSError) as error:
                rows[name] = {"case": name, "failure": str(error)}
            print(rows[name], file=sys.stderr)
            yield pd.DataFrame([rows[case] for case in CASES if case in rows])


def _case(browser: Chromium, name: str, state: str) -> dict[str, Any]:
    browser.open("about:blank", wait=False)  # so that the browser itself is awake
    begin = time.time()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "workbench", "explore", "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        match = re.search(r"http://\S+", server.stdout.readline())
        assert match is not None
        line = time.time() - begin
        page = browser.open(f"{match[0]}#{state}")
        page.wait("performance.getEntriesByName('first-contentful-paint').length")
        paint = page.js(
            "performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )
        page.wait("document.querySelector('main')?.dataset.drawn", 120)
        drawn = time.time() - begin
        page.wait(_SETTLED, 200)
        page.js(_DRAG.replace("COUNT", "3").replace("FIRST", "0"), 200)  # warm
        events: list[Any] = []
        before, ready_at = _processor(server.pid) + _processor(browser.process), time.time()
        while not events or (len(events) < EVENTS and time.time() - ready_at < _LONGEST):
            events += page.js(_DRAG.replace("COUNT", "4").replace("FIRST", str(len(events))), 200)
        used = _processor(server.pid) + _processor(browser.process) - before
        load = os.getloadavg()[0]
        page.js(_BACK)
        end = time.time()
        times = sorted(milliseconds for milliseconds, _ in events)
        rest = _memory(server.pid)
        page.wait("document.querySelector('.hero .badge.proven, .hero .badge:not(.open)')", 130)
        green = time.time() - end
        busy = _memory(server.pid)
    finally:
        browser.close_pages()
        server.send_signal(signal.SIGINT)
        server.wait(20)
    return {
        "case": name,
        "events": len(events),
        "preliminary": sum(early for _, early in events),
        "median_ms": statistics.median(times),
        "p95_ms": times[int(0.95 * len(times))],
        "cpu_ms": 1e3 * used / len(events),
        "load": load,
        "line_s": line,
        "paint_s": paint / 1e3 - begin,
        "design_s": drawn,
        "green_s": green,
        "rest_mb": rest,
        "busy_mb": busy,
    }


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _tree(int(child))


def _processor(pid: int) -> float:
    """Seconds of the processor of a process and all that it has started."""
    ticks = 0
    for process in _tree(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile, and counts as its parent's
            ticks += sum(
                map(
                    int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
                )
            )
    return ticks / _TICKS


def _memory(pid: int) -> float:
    total = 0
    for process in _tree(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += sum(int(size) for size in re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE))
    return total / 1024


if __name__ == "__main__":
    file = Path("results/bench/explore.csv")
    stored = pd.read_csv(file).to_dict("records") if file.exists() else []
    for frame in run(
        sys.argv[1:], [{str(name): value for name, value in row.items()} for row in stored]
    ):
        frame.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")
