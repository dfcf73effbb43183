"""Measure the explorer in Chromium: latency of a slider, first paint, memory.

    python -m bench.bench_explore [TEXT ...]

measures the cases whose name contains every TEXT, for example "modulo zcdp". Default: all cases.
Each row is stored as soon as it is measured, and replaces the stored row of its case.

A case is one address of the explorer. The first slider of the budget is moved again and again, once
the page has settled, that is, has nothing more to compute. The columns:

median_ms,   milliseconds from a move of the slider to the frame in which a design for the new
p95_ms       value is drawn
preliminary  number of moves after which the first drawing was a preliminary design. It is another
             design that is private at the new budget, and the solver continues
design_s     seconds from the command to the first design
green_s      seconds from the last move until the shown design is certified
cpu_ms       CPU milliseconds for one move, of the server and of the browser
line_s       seconds from the command to the line with the address
paint_s      seconds from the command to the first contentful paint of the page in an open browser
load         number of processes that wanted a processor meanwhile. If there are more of them than
             processors, they slow down the page
rest_mb,     megabytes (proportional set size) of all processes of the server: after the moves, and
busy_mb      while the worker for slow programs also runs
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

from bench.chromium import EXECUTABLE, Chromium, Page

__all__ = ["TITLE", "run_explore_benchmark"]

TITLE = "The explorer in Chromium: latency of a slider, first paint, memory"

CASES = {
    "modulo dp": "family=modulo&n=8&max_shift=3&epsilon=1.5",
    "modulo pdp": "family=modulo&n=8&max_shift=3&epsilon=1.5&delta=0.1&notion=pdp",
    "modulo n=40 pdp": "family=modulo&n=40&max_shift=3&epsilon=1.5&delta=0.05&notion=pdp",
    "modulo metric": "family=modulo&n=8&max_shift=3&epsilon=0.5&notion=metric",
    "modulo curve": "family=modulo&n=30&max_shift=1&loss=squared&notion=curve&curve=0.5:0.1,1:0.01",
    "modulo tradeoff": (
        "family=modulo&n=8&max_shift=1&notion=tradeoff&tradeoff=0:1,0.1:0.6,0.4:0.2,1:0"
    ),
    "modulo renyi": "family=modulo&n=8&max_shift=1&notion=renyi&alpha=2&epsilon=0.5",
    "modulo zcdp": "family=modulo&n=30&max_shift=1&loss=squared&notion=zcdp&rho=0.1",
    "modulo gdp": "family=modulo&n=8&max_shift=1&notion=gdp&mu=0.5",
    "noise dp": "family=noise&on=integers&sensitivity=1&epsilon=1&delta=1e-5",
    "noise clamped": "family=noise&on=integers&clamp=0..100&epsilon=1&delta=1e-5",
    "noise reals": "family=noise&on=reals&sensitivity=200000&loss=absolute&epsilon=0.5&delta=0.05",
    "noise zcdp": "family=noise&on=integers&sensitivity=2&notion=zcdp&rho=0.1",
    "noise curve": "family=noise&on=reals&loss=absolute&notion=curve&curve=0.5:0.1,1:0.01",
    "channel 0..100": "family=channel&answers=0..100&max_shift=1&loss=squared&epsilon=1&delta=1e-5",
    "channel pure": (
        "family=channel&answers=0..20&neighbours=consecutive&loss=absolute&epsilon=1&notion=pure"
    ),
    "channel zcdp": "family=channel&answers=0..20&max_shift=1&notion=zcdp&rho=0.1",
    "quantizer": "family=quantizer&bins=-3,-0.5,0.5,3&epsilon=1",
    "quantizer 41 knots": "family=quantizer&bins=-3,-0.5,0.5,3&knots=41&epsilon=1",
    "quantizer 4 levels": "family=quantizer&levels=4&epsilon=1",
    "labels": "family=labels&labels=0..20&loss=squared&epsilon=4",
    "labels lp zcdp": "family=labels&labels=0..7&method=lp&notion=zcdp&rho=0.1",
    "laplace": "family=laplace&epsilon=1&bits=5",
}
EVENTS = 100  # Measured moves of the slider in a case.
_EVENTS_OF_A_CALL = 4  # Moves in one call of the JavaScript below.
_MAX_DRAG_SECONDS = 60.0  # After this time the slider is not moved again.
# The benchmark fails if a page takes longer than this to draw, to settle or to certify.
_DRAW_SECONDS = 120
_SETTLE_SECONDS = 200
_CERTIFY_SECONDS = 130
_STOP_SECONDS = 20  # The benchmark fails if the server takes longer than this to stop.
_WARM_UP_EVENTS = 3  # The first moves, which start the solver, are not measured.
# JavaScript that moves the slider COUNT times from event FIRST on. It returns a list of
# [milliseconds, whether the drawing was preliminary].
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
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# JavaScript that moves the slider back to its first value.
_RESET = """(() => { const slider = document.querySelector('.sliders input[type=range]:enabled');
  slider.value = slider.dataset.base; slider.dispatchEvent(new Event('input')); })()"""
_PAINT_ENTRIES = "performance.getEntriesByName('first-contentful-paint')"
_IS_SETTLED = "document.querySelector('main')?.dataset.settled"
_IS_DRAWN = "document.querySelector('main')?.dataset.drawn"
_IS_CERTIFIED = "document.querySelector('.hero .badge.proven, .hero .badge:not(.open)')"


def run_explore_benchmark(
    texts: Sequence[str] = (), stored_rows: Sequence[dict[str, Any]] = ()
) -> Iterator[pd.DataFrame]:
    """Yield the growing table, with one row for each case; nothing without Chromium.

    Args:
        texts: cases whose name contains all of them are measured.
        stored_rows: rows of an earlier run. The table has them for cases that are not measured.
    """
    if EXECUTABLE is None:
        print("Chromium is missing: nothing is measured.", file=sys.stderr)
        return
    cases = {name: state for name, state in CASES.items() if all(text in name for text in texts)}
    rows = {row["case"]: row for row in stored_rows}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Chromium(Path(folder)) as browser,
    ):
        for name, state in cases.items():
            try:
                rows[name] = _measure_case(browser, name, state)
            except (AssertionError, OSError) as error:
                rows[name] = {"case": name, "failure": str(error)}
            print(rows[name], file=sys.stderr)
            yield pd.DataFrame([rows[case] for case in CASES if case in rows])


def _measure_case(browser: Chromium, name: str, state: str) -> dict[str, Any]:
    """Start a server, open a page with a state, and return the row of the case."""
    browser.open("about:blank", load=False)  # This wakes the browser.
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
        line_seconds = time.time() - begin
        page = browser.open(f"{match[0]}#{state}")
        page.wait(f"{_PAINT_ENTRIES}.length")
        paint_time = page.js(f"performance.timeOrigin + {_PAINT_ENTRIES}[0].startTime") / 1e3
        page.wait(_IS_DRAWN, _DRAW_SECONDS)
        design_seconds = time.time() - begin
        page.wait(_IS_SETTLED, _SETTLE_SECONDS)
        latencies = _measure_latencies(page, server.pid, browser.process)
        page.js(_RESET)
        reset_time = time.time()
        rest_megabytes = _measure_memory(server.pid)
        page.wait(_IS_CERTIFIED, _CERTIFY_SECONDS)
        green_seconds = time.time() - reset_time
        busy_megabytes = _measure_memory(server.pid)
    finally:
        browser.close_pages()
        server.send_signal(signal.SIGINT)
        server.wait(_STOP_SECONDS)
    return {
        "case": name,
        **latencies,
        "line_s": line_seconds,
        "paint_s": paint_time - begin,
        "design_s": design_seconds,
        "green_s": green_seconds,
        "rest_mb": rest_megabytes,
        "busy_mb": busy_megabytes,
    }


def _measure_latencies(page: Page, *pids: int) -> dict[str, Any]:
    """Move the slider, and return the columns about latency, CPU time and load.

    Args:
        page: a settled page.
        pids: processes whose CPU time counts.
    """
    _drag_slider(page, first=0, count=_WARM_UP_EVENTS)
    events: list[Any] = []
    begin_cpu = sum(map(_measure_cpu_seconds, pids))
    begin = time.time()
    while not events or (len(events) < EVENTS and time.time() - begin < _MAX_DRAG_SECONDS):
        events += _drag_slider(page, first=len(events), count=_EVENTS_OF_A_CALL)
    cpu_seconds = sum(map(_measure_cpu_seconds, pids)) - begin_cpu
    load = os.getloadavg()[0]
    times = sorted(milliseconds for milliseconds, _ in events)
    return {
        "events": len(events),
        "preliminary": sum(is_preliminary for _, is_preliminary in events),
        "median_ms": statistics.median(times),
        "p95_ms": times[int(0.95 * len(times))],
        "cpu_ms": 1e3 * cpu_seconds / len(events),
        "load": load,
    }


def _drag_slider(page: Page, first: int, count: int) -> list[Any]:
    """Move the slider, and return (milliseconds, whether it was preliminary) of each drawing.

    Args:
        page: a settled page.
        first: number of the first event, from which the value of the slider is computed.
        count: number of events.
    """
    code = _DRAG.replace("COUNT", str(count)).replace("FIRST", str(first))
    drawings: list[Any] = page.js(code, _SETTLE_SECONDS)
    return drawings


def _iterate_process_tree(pid: int) -> Iterator[int]:
    """Yield the id of a process and of all its descendants."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _iterate_process_tree(int(child))


def _measure_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants."""
    ticks = 0
    for process in _iterate_process_tree(pid):
        # A process that has ended counts as part of its parent.
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            # User and system time, of the process and of its ended children (utime to cstime).
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_SECOND


def _measure_memory(pid: int) -> float:
    """Return the megabytes of a process and all its descendants.

    The proportional set size counts memory that n processes share as 1/n in each of them.
    """
    kilobytes = 0
    for process in _iterate_process_tree(pid):
        with contextlib.suppress(OSError):  # The process may have ended.
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            sizes = re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE)
            kilobytes += sum(map(int, sizes))
    return kilobytes / 1024


if __name__ == "__main__":
    file = Path("results/bench/explore.csv")
    records = pd.read_csv(file).to_dict("records") if file.exists() else []
    old_rows = [{str(name): value for name, value in row.items()} for row in records]
    for frame in run_explore_benchmark(sys.argv[1:], old_rows):
        frame.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")
