"""Test the page in a browser: actions of a reader, and that every number is the API's."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bench.chromium import Chromium, Page
from workbench.cli.explore import _write_redirect
from workbench.explorer.given import describe_families, read_option_values
from workbench.explorer.server import Server
from workbench.pipeline.design import Design
from workbench.pipeline.registry import get_family, list_families
from workbench.recommendation.recommend import recommend

SETTLED = "document.querySelector('main')?.dataset.settled"
FAMILIES = [kind.name for kind in list_families()]


@pytest.fixture(autouse=True)
def closing(browser: Chromium) -> Iterator[None]:
    yield
    browser.close_pages()


def opened(
    browser: Chromium, server: Server, state: dict[str, Any] | None = None, **size: int
) -> Page:
    page = browser.open("about:blank", load=False, **size)
    keep = (
        "document.addEventListener('workbench-drawn', (event) => { window.view = event.detail; })"
    )
    page.call("Page.addScriptToEvaluateOnNewDocument", source=keep)
    page.go(server.make_address(urlencode(state or {}, doseq=True)))
    page.wait(
        "document.querySelector('main')?.dataset.drawn || document.querySelector('.status.error')"
    )
    return page


def designed(name: str, given: dict[str, Any], check: str) -> Design:
    kind = get_family(name)
    with kind.open_session(
        kind.make_request_from_values(read_option_values(kind, given) | {"check": check})
    ) as session:
        return session.design()


def shown(value: Any) -> str:
    """Return a cell of a table as the page writes it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.9g}"


def same(text: str, value: Any, *, hot: bool = False) -> bool:
    """Return whether a cell shows a value to nine digits; hot: up to the rounding of a hot start."""
    if isinstance(value, float) and text not in ("inf", "-inf"):
        return float(text) == pytest.approx(
            float(f"{value:.9g}"), rel=1e-8 if hot else 0, abs=1e-12 if hot else 0
        )
    return text == shown(value)


def row_of(page: Page) -> dict[str, str]:
    """Return the table of the row on the page."""
    page.js("document.querySelector('[aria-label=Proof] details').open = true")
    page.wait("document.querySelector('[aria-label=Proof] details table')")
    rows = page.js("""[...document.querySelectorAll('[aria-label=Proof] details table tr')].slice(1)
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    return dict(rows)


def check_clean(page: Page) -> None:
    assert page.complaints == []
    assert all(
        re.match(r"http://127\.0\.0\.1:\d+/|data:|blob:|about:|file:", url) for url in page.requests
    ), page.requests


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_drawn_with_the_numbers_of_the_api(
    browser: Chromium, server: Server, name: str
) -> None:
    page = opened(browser, server, {"family": name})
    given = next(entry["first"] for entry in describe_families() if entry["name"] == name)
    page.wait(f"!{json.dumps(get_family(name).certifies)} || window.view.certificate")
    design = designed(name, given, "certify")
    assert float(page.js("document.querySelector('.value').textContent")) == pytest.approx(
        design.objective, rel=1e-8
    )
    row = row_of(page)
    for column, value in design.row().items():
        if column not in (
            "start",
            "residual",
            "gap",
        ):  # A hot start may find another optimal vertex.
            assert same(row[column], value, hot=True) or column in ("bound", "pure_epsilon"), column
    facts = dict(
        page.js(
            "[...document.querySelectorAll('table.facts tr')].map((r) => [...r.cells].map((c) => c.textContent))"
        )
    )
    assert {label for label, _ in design.facts()} <= set(facts)
    if get_family(name).draws:
        assert page.js("document.querySelectorAll('svg.chart, img.picture').length") >= 1
    check_clean(page)


def test_a_reader_drags_changes_certifies_exports(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    given = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}
    page = opened(browser, server, {"family": "modulo", **given})
    page.wait(SETTLED)

    # ε is dragged with the mouse.
    slider = "document.querySelector('#option-epsilon ~ input[type=range]').getBoundingClientRect()"
    x, y = page.js(
        f"(({{ left, top, width, height }}) => [left + 0.7 * width, top + height / 2])({slider})"
    )
    before = int(page.js("document.querySelector('main').dataset.drawn"))
    page.mouse("mousePressed", x, y, 1)
    for step in range(5):
        page.mouse("mouseMoved", x - 4 * step, y, 1)
    page.mouse("mouseReleased", x - 16, y)
    page.wait(f"Number(document.querySelector('main').dataset.drawn) > {before}")
    page.wait(
        "window.view.given.epsilon === document.getElementById('option-epsilon').value && window.view.certificate"
    )
    given["epsilon"] = page.js("document.getElementById('option-epsilon').value")
    assert given["epsilon"] != "1.5"
    assert page.js("new URLSearchParams(location.hash.slice(1)).get('epsilon')") == given["epsilon"]
    assert page.js("window.view.objective") == pytest.approx(
        designed("modulo", given, "audit").objective, rel=1e-8
    )
    page.js("history.back() ?? 1")
    page.wait("document.getElementById('option-epsilon').value === '1.5'")
    given["epsilon"] = "1.5"

    # The certified row is that of the command line.
    page.wait("window.view.given.epsilon === '1.5' && window.view.certificate")
    assert page.js("document.querySelector('.badge.proven') !== null")
    design = designed("modulo", given, "certify")
    row = row_of(page)
    assert set(row) == set(design.row())
    for column, value in design.row().items():
        assert same(row[column], value), column
    assert page.js("window.view.certificate") == design.certificate.content().decode()  # type: ignore[union-attr]

    # The page is exported and opened without a network.
    folder = tmp_path / "downloads"
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.click("Export page")
    end = time.monotonic() + 300
    while not (folder / "explore-modulo.html").exists() and time.monotonic() < end:
        time.sleep(0.1)
    copy = browser.open("about:blank", load=False)
    copy.call(
        "Network.emulateNetworkConditions",
        offline=True,
        latency=0,
        downloadThroughput=0,
        uploadThroughput=0,
    )
    copy.go((folder / "explore-modulo.html").as_uri())
    copy.wait("document.querySelectorAll('svg.chart').length >= 5")
    row = row_of(copy)
    for column, value in design.row().items():
        assert same(row[column], value), column
    data = json.loads(copy.js("document.getElementById('data').textContent"))["export"]
    assert data["view"]["certificate"] == design.certificate.content().decode()  # type: ignore[union-attr]
    for step in data["steps"][::4]:
        assert step["objective"] == pytest.approx(
            designed("modulo", step["given"], "audit").objective, rel=1e-8
        )
    copy.set_control("step", "0", "input")
    at = copy.js("document.querySelector('.value').textContent")
    assert float(at) == pytest.approx(
        min(data["steps"], key=lambda one: one["hot"]["epsilon"])["objective"], rel=1e-8
    )
    assert not [url for url in copy.requests if url.startswith("http")]
    check_clean(copy)

    # Another family.
    page.set_control("family", "quantizer")
    page.wait("window.view.heading.startsWith('Unbiased quantizer')")
    check_clean(page)


def test_a_preliminary_design_says_so_until_it_is_certified(
    browser: Chromium, server: Server
) -> None:
    """The answer to a slider is changed to a preliminary one. The page then requests the proof."""
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"},
    )
    page.wait(SETTLED)
    page.js("""void ((real) => { window.asked = []; window.seen = []; window.fetch = async (address, given) => {
        const answer = await real(address, given), task = address.split('/').pop();
        window.asked.push(task);
        if (task !== 'design') return answer;
        const lines = (await answer.text()).split('\\n').filter(Boolean).map((line) => JSON.parse(line));
        Object.assign(lines.at(-1).result, { preliminary: true, certified: false, certificate: null, objective: 0.75 });
        return new Response(lines.map((line) => JSON.stringify(line) + '\\n').join('')); }; })(window.fetch)""")
    page.js("""document.addEventListener('workbench-drawn', () => window.seen.push([
        document.querySelector('.value').textContent, Boolean(document.querySelector('.badge.open')),
        Boolean(document.querySelector('.badge.proven'))])) ?? 1""")
    page.set_control("option-epsilon", "1.4")
    page.wait("window.seen.some(([, , proven]) => proven)")
    given = {"n": "8", "max_shift": "3", "epsilon": "1.4", "delta": "0.1"}
    *before, (value, *badges) = page.js(
        "window.seen.slice(0, 1 + window.seen.findIndex(([, , proven]) => proven))"
    )
    # After a slow first design, that of a neighbouring budget is shown before.
    assert before[-1] == ["at most 0.75", True, False]
    assert all(shown == [True, False] for _, *shown in before)
    asked = page.js("window.asked.slice(0, 2)")
    assert asked in (
        ["design", "certify"],
        ["design", "prove"],
    )  # The proof comes before the curves. "prove" certifies in the slow lane.
    assert float(value) == float(f"{designed('modulo', given, 'certify').objective:.9g}")
    assert badges == [False, True]
    check_clean(page)


def test_the_least_epsilon_for_an_error(browser: Chromium, server: Server) -> None:
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5", "notion": "dp"},
    )
    page.js("void (document.querySelector('.inverse input').value = '0.4')")
    page.click("minimal epsilon")
    page.wait("document.querySelector('.status').textContent.startsWith('Minimal epsilon')")
    page.wait("window.view.given.epsilon === document.getElementById('option-epsilon').value")
    least = page.js("document.getElementById('option-epsilon').value")
    given = {"n": "8", "max_shift": "3", "notion": "dp"}
    assert designed("modulo", given | {"epsilon": least}, "audit").objective <= 0.4
    assert (
        designed("modulo", given | {"epsilon": str(float(least) - 0.001)}, "audit").objective > 0.4
    )
    check_clean(page)


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("family=nothing", "family must be one of modulo, noise"),
        ("family=modulo&n=0&epsilon=1", "n must be an integer"),
        ("family=modulo&<img src=x onerror=alert(1)>=1", "option must be one of"),
        ("%%%&&=", "option must be one of"),
    ],
)
def test_a_bad_fragment_is_a_sentence(
    browser: Chromium, server: Server, fragment: str, words: str
) -> None:
    page = browser.open(server.make_address() + "#" + fragment)
    page.wait("document.querySelector('.status.error')")
    assert words in page.js("document.querySelector('.status').textContent")
    assert page.js("document.querySelectorAll('img').length") == 0
    check_clean(page)


def test_two_tabs_and_a_phone(browser: Chromium, server: Server) -> None:
    first = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5"},
        width=360,
        height=740,
    )
    second = opened(
        browser, server, {"family": "modulo", "n": "4", "max_shift": "1", "epsilon": "1"}
    )
    assert first.js("window.view.given.n") == "8"
    assert second.js("window.view.given.n") == "4"
    first.wait(SETTLED)
    assert first.js("document.documentElement.scrollWidth") <= 360
    reached = first.js("""[...document.querySelectorAll('input, select, button, summary')].filter((one) => {
        one.focus(); return document.activeElement !== one && !one.disabled && one.checkVisibility(); }).length""")
    assert reached == 0
    unnamed = first.js("""[...document.querySelectorAll('input, select')].filter((one) =>
        !one.labels?.length && !one.getAttribute('aria-label')).length""")
    assert unnamed == 0
    check_clean(first)


def test_the_server_stops_while_a_page_is_open(browser: Chromium) -> None:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        page = opened(browser, server, {"family": "modulo"})
        page.wait(SETTLED)
        server.shutdown()
        thread.join()
    page.set_control("option-epsilon", "2")
    page.wait("document.querySelector('.status.error')")
    assert "server" in page.js("document.querySelector('.status').textContent")


def test_the_file_of_its_owner_forwards_to_the_page(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    address = server.make_address("family=modulo&n=4&max_shift=1&epsilon=1")
    page = browser.open(_write_redirect(address, tmp_path))
    page.wait("document.querySelector('main')?.dataset.drawn")
    assert page.js("location.href") == address
    assert page.js("document.referrer") == ""
    check_clean(page)


def test_the_first_page_is_a_query_and_opens_a_class(browser: Chromium, server: Server) -> None:
    page = browser.open(
        server.make_address(
            "form=numbers&answers=0..6&max_shift=1&epsilon=1&delta=0.01&loss=squared"
        )
    )
    page.wait("document.querySelector('main.home')?.dataset.drawn")
    page.wait("!document.querySelector('.home .card.whole').textContent.includes('being solved')")
    rows = page.js("""[...document.querySelectorAll('.home table tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    table = {
        row["class"]: row
        for row in recommend(answers="0..6", max_shift=1, epsilon=1, delta="0.01", loss="squared")
    }
    for name, loss, bound, *_ in rows:
        assert same(loss, table[name]["objective"])
        assert bound == "-" or same(bound, table[name]["bound"])
    assert page.js("document.querySelectorAll('svg.chart .pick').length") >= 2
    page.js("""void [...document.querySelectorAll('.home table a')]
        .find((one) => one.textContent === 'integer noise, clamped').click()""")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert same(
        page.js("document.querySelector('.value').textContent"),
        table["integer noise, clamped"]["objective"],
        hot=True,
    )
    page.js("history.back() ?? 1")
    page.wait("document.querySelector('main.home')")
    page.set_control("query-answers", "5..1")
    page.wait("document.querySelector('#query-answers[aria-invalid]')")
    page.set_control("query-answers", "0..6")
    page.set_control("query-epsilon", "-1")
    page.wait("document.querySelector('#query-epsilon[aria-invalid]')")
    assert "epsilon must be" in page.js("document.querySelector('.sentence .error').textContent")
    assert page.complaints == []


def test_an_invalid_field_is_marked_and_the_last_answer_stays_greyed(
    browser: Chromium, server: Server
) -> None:
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"},
    )
    page.wait(SETTLED)
    before = page.js("document.querySelector('.value').textContent")
    page.set_control("option-epsilon", "abc")
    page.wait("document.querySelector('#option-epsilon[aria-invalid=true]')")
    assert "must be" in page.js("document.getElementById('option-epsilon-error').textContent")
    assert page.js("document.querySelector('.value').textContent") == before
    assert page.js("document.querySelector('.hero .stale') !== null")
    page.set_control("option-epsilon", "1.5")
    page.wait(
        "!document.querySelector('[aria-invalid=true]') && !document.querySelector('.hero .stale')"
    )


@pytest.mark.parametrize("notion", ["zcdp", "gdp", "tradeoff", "curve"])
def test_a_notion_has_its_own_sliders_and_no_other(
    browser: Chromium, server: Server, notion: str
) -> None:
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "6", "max_shift": "1", "epsilon": "1", "delta": "0.1"},
    )
    page.wait(SETTLED)
    page.set_control("option-notion", notion)
    page.wait(
        f"window.view?.given.notion === '{notion}' && document.querySelector('.hero .badge.proven')"
    )
    own = {"zcdp": "rho", "gdp": "mu"}.get(notion, notion)
    assert page.js("document.querySelector('.sliders input[type=text]').id") == f"option-{own}"
    assert page.js("document.querySelectorAll('.sliders input[type=range]:enabled').length") >= 1
    assert page.js("document.getElementById('option-epsilon')") is None
    assert page.js("document.getElementById('option-delta')") is None
    before = page.js("window.view.objective")
    slider, less = (
        "document.querySelector('.sliders input[type=range]:enabled')",
        5 if notion == "tradeoff" else 40,
    )
    told = "".join(
        f"{slider}.dispatchEvent(new Event('{event}'));" for event in ("input", "change")
    )
    page.js(f"{slider}.value = Number({slider}.value) - {less}; {told} 0")
    page.wait(
        f"window.view.objective !== {before} && document.querySelector('.hero .badge.proven')"
    )
    assert (page.js("window.view.objective") > before) == (notion != "tradeoff")
    check_clean(page)


def test_charts_are_saved_whatever_the_theme_and_designs_are_pinned(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"},
    )
    page.wait(SETTLED)
    page.click("Dark")
    assert (
        page.js("getComputedStyle(document.querySelector('.page')).backgroundColor")
        == "rgb(14, 17, 21)"
    )
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.js("void (document.querySelector('.save').open = true)")
    page.wait("document.querySelector('.save button')")
    for form in ("SVG", "PNG", "PDF", "CSV", "LaTeX caption"):
        page.click(form)
    name = "probability-of-every-noise-value"
    files = [tmp_path / f"{name}.{ending}" for ending in ("svg", "png", "pdf", "csv", "tex")]
    end = time.monotonic() + 300
    while not all(file.exists() for file in files) and time.monotonic() < end:
        time.sleep(0.1)
    drawing, pixels, paper, table, caption = (file.read_bytes() for file in files)
    assert b"rgb(0, 114, 178)" in drawing  # The size of the paper.
    assert b"var(" not in drawing
    assert pixels.startswith(b"\x89PNG")
    assert paper.startswith(b"%PDF-1.4")
    assert paper.count(b" re B") >= 9  # The bars.
    assert b"data-independent" in drawing  # The legend.
    assert b"(data-independent) Tj" in paper
    assert len(table.splitlines()) == 10
    assert caption.startswith(rb"\caption{Probability of every noise value.")
    page.click("Pin to compare")
    page.set_control("option-epsilon", "2")
    page.wait("window.view.given.epsilon === '2' && document.querySelector('.hero .badge.proven')")
    page.click("Pin to compare")
    assert page.js("document.querySelectorAll('[aria-label^=Remove]').length") == 2
    pinned = "document.querySelector('.scroll[aria-label=\"Pinned designs\"]')"
    assert page.js(f"{pinned}.scrollWidth - {pinned}.clientWidth") == 0
    assert (
        page.js(
            "[...document.querySelectorAll('.legend li')].filter((one) => /^[AB]: /.test(one.textContent)).length"
        )
        >= 4
    )
    check_clean(page)


def test_what_is_infeasible_is_no_number(browser: Chromium, server: Server) -> None:
    page = opened(browser, server, {"family": "laplace", "epsilon": "1", "bits": "1"})
    assert (
        page.js("document.querySelector('.value').textContent")
        == "No mechanism satisfies this request"
    )
    assert "no ell brings the mean length" in page.js("document.querySelector('.hero').textContent")
    assert "inf" not in page.js("document.querySelector('.value').textContent.split(' ')")


@pytest.mark.parametrize("width", [1440, 1024, 720, 390])
def test_nothing_is_wider_than_the_window(browser: Chromium, server: Server, width: int) -> None:
    page = opened(
        browser,
        server,
        {"family": "noise", "epsilon": "1", "delta": "1e-5"},
        width=width,
        height=800,
    )
    page.wait(SETTLED)
    assert page.js("document.documentElement.scrollWidth") <= width
    if width == 390:  # The result comes first.
        assert page.js("document.querySelector('.value').getBoundingClientRect().top") < 400
        assert page.js("document.querySelector('.controls').open") is False
    if width == 1440:  # Zoomed to 200 %, and printed.
        page.size(720, 800)
        page.wait("!document.querySelector('.controls').open")
        drawn = "[...document.querySelectorAll('.columns svg.chart')].map((one) => one.viewBox.baseVal.width)"
        before = set(page.js(drawn))
        order = (
            "[...document.querySelectorAll('.columns .card')].map((one) => Number(one.style.order))"
        )
        widths, order = page.js(f"(dispatchEvent(new Event('beforeprint')), [{drawn}, {order}])")
        assert set(widths) == {340}
        assert order == sorted(order)
        assert set(page.js(f"(dispatchEvent(new Event('afterprint')), {drawn})")) == before


def test_rivals_are_drawn_and_chosen_in_the_legend(browser: Chromium, server: Server) -> None:
    page = opened(
        browser,
        server,
        {"family": "modulo", "n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"},
    )
    page.wait(SETTLED)
    rows = "[...document.querySelectorAll('[aria-label=\"Other mechanisms\"] svg.chart g')].length"
    assert page.js(rows) == 5  # The design and four others.
    outlines = 'document.querySelectorAll(\'[aria-label="The mechanism"] svg.chart path[stroke-width="1.8"]\').length'
    assert page.js(outlines) == 4
    for left, pressed in ((3, "false"), (4, "true")):
        page.click("data-independent")
        assert page.js(outlines) == left
        assert (
            page.js("document.querySelector('.legend button').getAttribute('aria-pressed')")
            == pressed
        )
    tops = "[0, 1].map((k) => document.querySelectorAll('.column')[k].lastElementChild.getBoundingClientRect().bottom)"
    low, high = sorted(page.js(tops))
    assert high - low < 700  # Both columns have about the same height.
    check_clean(page)
