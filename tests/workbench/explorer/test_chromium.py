"""Test the explorer in a browser: the actions of a reader, and that every number equals the API's.

The page sets `data-drawn` on its main element to the number of times it was drawn, and
`data-settled` after its last chart. The event "workbench-drawn" carries the shown design, its
*view*. `open_explorer` stores it in `window.view`: `view.given` has the texts of the options, and
`view.certificate` is null until the design is certified.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bench.chromium import Chromium, Page
from workbench.cli.explore import _write_redirect
from workbench.explorer.comparison import name_mechanism
from workbench.explorer.given import describe_families, read_option_values
from workbench.explorer.server import Server
from workbench.explorer.views import word_facts
from workbench.pipeline.design import Design
from workbench.pipeline.registry import get_family, list_families
from workbench.recommendation.recommend import recommend

FAMILIES = [family.name for family in list_families()]
# Options of most tests, as the texts in the fields of the page.
NOISE_OPTIONS = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}
NOISE_STATE = {"family": "modulo", **NOISE_OPTIONS}
# A downloaded file must arrive within this time.
DOWNLOAD_SECONDS = 300
# A design from a hot start may differ from the API's by this share.
HOT_START_TOLERANCE = 1e-8
# Columns that depend on the start of the solver, which may end at another optimal vertex.
START_COLUMNS = ("start", "residual", "gap")
# Columns that also depend on the vertex, but must be shown.
VERTEX_COLUMNS = ("bound", "pure_epsilon")
# Width of a printed chart in pixels.
PRINTED_CHART_WIDTH = 340
# The lower ends of the two columns of a page differ by less than this many pixels. A card
# is not divided between the columns, so their ends differ.
MAX_COLUMN_DIFFERENCE = 700
# Addresses on this machine, and data in the page itself.
LOCAL_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/|data:|blob:|about:|file:")

# JavaScript conditions and expressions.
SETTLED = "document.querySelector('main')?.dataset.settled"
# The button "Stop" is disabled while nothing is computed. A settled page may still refine its curves,
# which draws cards again and moves those below.
IS_IDLE = """[...document.querySelectorAll('header button')]
    .some((button) => button.textContent === 'Stop' && button.disabled)"""
HAS_ERROR = "document.querySelector('.status.error')"
IS_PROVEN = "document.querySelector('.hero .badge.proven')"
STATUS_TEXT = "document.querySelector('.status').textContent"
SHOWN_LOSS = "document.querySelector('.value').textContent"
EPSILON_FIELD = "document.getElementById('option-epsilon')"
DRAWING_COUNT = "Number(document.querySelector('main').dataset.drawn)"


@pytest.fixture(autouse=True)
def close_pages(browser: Chromium) -> Iterator[None]:
    """Close the pages of a test after it."""
    yield
    browser.close_pages()


def open_explorer(
    browser: Chromium, server: Server, state: dict[str, Any] | None = None, **size: int
) -> Page:
    """Open the explorer and wait until it shows a design or an error.

    Args:
        browser: browser of the test.
        server: server of the explorer.
        state: family and options of the address. None: none.
        size: width and height of the window in pixels.
    """
    page = browser.open("about:blank", load=False, **size)
    store_view = (
        "document.addEventListener('workbench-drawn', (event) => { window.view = event.detail; })"
    )
    page.call("Page.addScriptToEvaluateOnNewDocument", source=store_view)
    page.go(server.make_address(urlencode(state or {}, doseq=True)))
    page.wait(f"document.querySelector('main')?.dataset.drawn || {HAS_ERROR}")
    return page


def open_settled(browser: Chromium, server: Server, state: dict[str, Any], **size: int) -> Page:
    """Open the explorer and wait until all its charts are drawn."""
    page = open_explorer(browser, server, state, **size)
    page.wait(SETTLED)
    return page


def design_by_api(family_name: str, options: dict[str, Any], check: str) -> Design:
    """Design the mechanism of the page's options in Python. check: "audit" or "certify"."""
    family = get_family(family_name)
    values = read_option_values(family, options) | {"check": check}
    with family.open_session(family.make_request_from_values(values)) as session:
        return session.design()


def format_cell(value: Any) -> str:
    """Return the text of a value in a table of the page."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:.9g}"


def is_cell_of(text: str, value: Any, tolerance: float = 0.0) -> bool:
    """Return whether a cell shows a value to nine digits, up to a relative tolerance."""
    if isinstance(value, float) and text not in ("inf", "-inf"):
        expected = float(f"{value:.9g}")
        return math.isclose(
            float(text), expected, rel_tol=tolerance, abs_tol=1e-12 if tolerance else 0.0
        )
    return text == format_cell(value)


def read_design_row(page: Page) -> dict[str, str]:
    """Open the table of the design's row on the page, and return column -> text."""
    page.js("document.querySelector('[aria-label=Proof] details').open = true")
    page.wait("document.querySelector('[aria-label=Proof] details table')")
    rows = page.js("""[...document.querySelectorAll('[aria-label=Proof] details table tr')].slice(1)
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    return dict(rows)


def check_clean(page: Page) -> None:
    """Check that the page logged no error, and requested no address of another machine."""
    assert page.complaints == []
    assert all(LOCAL_ADDRESS.match(url) for url in page.requests), page.requests


def has_content(file: Path) -> bool:
    """Return whether a file exists and is not empty."""
    return file.exists() and file.stat().st_size > 0


def wait_for_files(files: Sequence[Path]) -> None:
    """Wait until all files are downloaded."""
    end = time.monotonic() + DOWNLOAD_SECONDS
    while not all(map(has_content, files)) and time.monotonic() < end:
        time.sleep(0.1)


def allow_downloads(browser: Chromium, folder: Path) -> None:
    """Let the browser save files in a folder without a question."""
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


# Numbers of the page.


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_drawn_with_the_numbers_of_the_api(
    browser: Chromium, server: Server, name: str
) -> None:
    page = open_explorer(browser, server, {"family": name})
    options = next(entry["first"] for entry in describe_families() if entry["name"] == name)
    if get_family(name).certifies:
        page.wait("window.view.certificate")
    design = design_by_api(name, options, "certify")
    shown_loss = float(page.js(SHOWN_LOSS))
    assert shown_loss == pytest.approx(design.objective, rel=HOT_START_TOLERANCE)
    row = read_design_row(page)
    for column, value in design.row().items():
        if column not in START_COLUMNS:
            is_same = is_cell_of(row[column], value, HOT_START_TOLERANCE)
            assert is_same or column in VERTEX_COLUMNS, column
    facts = page.js("""[...document.querySelectorAll('table.facts tr')]
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    assert {label for label, _ in word_facts(design)} <= set(dict(facts))
    if get_family(name).draws:
        assert page.js("document.querySelectorAll('svg.chart, img.picture').length") >= 1
    check_clean(page)


def test_a_dragged_slider_changes_the_design_and_the_address(
    browser: Chromium, server: Server
) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    slider = "document.querySelector('#option-epsilon ~ input[type=range]').getBoundingClientRect()"
    x, y = page.js(
        f"(({{ left, top, width, height }}) => [left + 0.7 * width, top + height / 2])({slider})"
    )
    drawing_count = page.js(DRAWING_COUNT)
    page.mouse("mousePressed", x, y, buttons=1)
    for step in range(5):
        page.mouse("mouseMoved", x - 4 * step, y, buttons=1)
    page.mouse("mouseReleased", x - 16, y)
    page.wait(f"{DRAWING_COUNT} > {drawing_count}")
    page.wait(f"window.view.given.epsilon === {EPSILON_FIELD}.value && window.view.certificate")
    epsilon = page.js(f"{EPSILON_FIELD}.value")
    assert epsilon != "1.5"
    assert page.js("new URLSearchParams(location.hash.slice(1)).get('epsilon')") == epsilon
    design = design_by_api("modulo", NOISE_OPTIONS | {"epsilon": epsilon}, "audit")
    assert page.js("window.view.objective") == pytest.approx(
        design.objective, rel=HOT_START_TOLERANCE
    )
    # The button Back of the browser restores the former ε.
    page.js("history.back()")
    page.wait(f"{EPSILON_FIELD}.value === '1.5'")
    page.wait("window.view.given.epsilon === '1.5' && window.view.certificate")
    check_clean(page)


@pytest.fixture(scope="module")
def certified_design() -> Design:
    """Return the certified design for NOISE_OPTIONS, which Python computes."""
    return design_by_api("modulo", NOISE_OPTIONS, "certify")


def assert_row_of(page: Page, design: Design) -> None:
    """Assert that the table of the page shows every column of the design's row."""
    row = read_design_row(page)
    assert set(row) == set(design.row())
    for column, value in design.row().items():
        assert is_cell_of(row[column], value), column


def test_a_settled_page_shows_the_certified_design(
    browser: Chromium, server: Server, certified_design: Design
) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    page.wait("window.view.certificate")
    assert page.js("document.querySelector('.badge.proven') !== null")
    assert_row_of(page, certified_design)
    certificate = certified_design.certificate
    assert certificate is not None
    assert page.js("window.view.certificate") == certificate.content().decode()


def export_page(browser: Chromium, server: Server, folder: Path) -> Path:
    """Click "Export page" on the page of NOISE_STATE, and return the path of the file."""
    page = open_settled(browser, server, NOISE_STATE)
    page.wait("window.view.certificate")
    allow_downloads(browser, folder)
    page.click("Export page")
    path = folder / "explore-modulo.html"
    wait_for_files([path])
    return path


def open_without_network(browser: Chromium, path: Path) -> Page:
    """Open a file in a page without a network, and wait until its charts are drawn."""
    page = browser.open("about:blank", load=False)
    page.call(
        "Network.emulateNetworkConditions",
        offline=True,
        latency=0,
        downloadThroughput=0,
        uploadThroughput=0,
    )
    page.go(path.as_uri())
    page.wait("document.querySelectorAll('svg.chart').length >= 5")
    return page


def test_an_exported_page_shows_the_certified_design_without_a_network(
    browser: Chromium, server: Server, tmp_path: Path, certified_design: Design
) -> None:
    page = open_without_network(browser, export_page(browser, server, tmp_path))
    assert_row_of(page, certified_design)
    export = json.loads(page.js("document.getElementById('data').textContent"))["export"]
    certificate = certified_design.certificate
    assert certificate is not None
    assert export["view"]["certificate"] == certificate.content().decode()
    assert not [url for url in page.requests if url.startswith("http")]
    check_clean(page)


def test_the_slider_of_an_exported_page_shows_designs_of_the_api(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    """`steps` are the designs of the slider. Every fourth one is computed again."""
    page = open_without_network(browser, export_page(browser, server, tmp_path))
    steps = json.loads(page.js("document.getElementById('data').textContent"))["export"]["steps"]
    for step in steps[::4]:
        design = design_by_api("modulo", step["given"], "audit")
        assert step["objective"] == pytest.approx(design.objective, rel=HOT_START_TOLERANCE)
    # The slider is moved to its first step, the smallest ε.
    page.set_control("step", "0", "input")
    first_step = min(steps, key=lambda step: step["hot"]["epsilon"])
    shown_loss = float(page.js(SHOWN_LOSS))
    assert shown_loss == pytest.approx(first_step["objective"], rel=HOT_START_TOLERANCE)
    check_clean(page)


def test_another_family_is_shown_when_it_is_selected(browser: Chromium, server: Server) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    page.set_control("family", "quantizer")
    page.wait("window.view.heading.startsWith('Unbiased quantizer')")
    check_clean(page)


# Replace `fetch`: names of requested tasks are added to `window.tasks`, and every answer to
# "design" becomes preliminary, with the loss 0.75.
MAKE_DESIGNS_PRELIMINARY = """void ((realFetch) => {
    window.tasks = [];
    window.fetch = async (address, request) => {
        const answer = await realFetch(address, request);
        const task = address.split('/').pop();
        window.tasks.push(task);
        if (task !== 'design') return answer;
        const texts = (await answer.text()).split('\\n').filter(Boolean);
        const lines = texts.map((text) => JSON.parse(text));
        const preliminary = { preliminary: true, certified: false, certificate: null };
        Object.assign(lines.at(-1).result, { ...preliminary, objective: 0.75 });
        return new Response(lines.map((line) => JSON.stringify(line) + '\\n').join(''));
    };
})(window.fetch)"""
# Add [loss, has the badge "open", has the badge "proven"] to `window.drawings` at every drawing.
RECORD_DRAWINGS = """void (() => {
    window.drawings = [];
    document.addEventListener('workbench-drawn', () => window.drawings.push([
        document.querySelector('.value').textContent,
        Boolean(document.querySelector('.badge.open')),
        Boolean(document.querySelector('.badge.proven')),
    ]));
})()"""


def test_a_preliminary_design_says_so_until_it_is_certified(
    browser: Chromium, server: Server
) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    page.js(MAKE_DESIGNS_PRELIMINARY)
    page.js(RECORD_DRAWINGS)
    page.set_control("option-epsilon", "1.4")
    page.wait("window.drawings.some(([, , isProven]) => isProven)")
    # All drawings up to the first proven one, which is the last of the list.
    drawings = page.js(
        "window.drawings.slice(0, 1 + window.drawings.findIndex(([, , isProven]) => isProven))"
    )
    open_drawings = drawings[:-1]
    proven_loss, *proven_badges = drawings[-1]
    # If the first design is slow, the design at a neighbouring budget is drawn before it.
    assert open_drawings[-1] == ["at most 0.75", True, False]
    assert all(badges == [True, False] for _, *badges in open_drawings)
    # The proof is requested before the curves. "prove" certifies beside the other tasks. A curve of
    # the former design may have been refined until the design was requested.
    tasks = page.js("window.tasks")
    assert tasks[tasks.index("design") + 1] in ("certify", "prove")
    design = design_by_api("modulo", NOISE_OPTIONS | {"epsilon": "1.4"}, "certify")
    assert float(proven_loss) == float(f"{design.objective:.9g}")
    assert proven_badges == [False, True]
    check_clean(page)


def test_the_minimal_epsilon_for_a_loss_is_found(browser: Chromium, server: Server) -> None:
    options = {"n": "8", "max_shift": "3", "notion": "dp"}
    page = open_explorer(browser, server, {"family": "modulo", "epsilon": "1.5", **options})
    # A slow design replaces the sentence by "solving …", so all sentences are recorded.
    page.js("""void (() => {
        window.sentences = [];
        const status = document.querySelector('.status');
        const record = () => window.sentences.push(status.textContent);
        new MutationObserver(record).observe(status, { childList: true });
    })()""")
    # One script sets the value and clicks. In between, a proof could draw the input again.
    page.js("""void (() => {
        document.querySelector('.inverse input').value = '0.4';
        [...document.querySelectorAll('.inverse button')]
            .find((button) => button.textContent === 'minimal epsilon').click();
    })()""")
    page.wait("window.sentences.some((sentence) => sentence.startsWith('Minimal epsilon'))")
    # The field may get the new value after the status.
    page.wait(f"{EPSILON_FIELD}.value !== '1.5'")
    page.wait(f"window.view.given.epsilon === {EPSILON_FIELD}.value")
    epsilon = page.js(f"{EPSILON_FIELD}.value")
    smaller_epsilon = str(float(epsilon) - 0.001)
    assert design_by_api("modulo", options | {"epsilon": epsilon}, "audit").objective <= 0.4
    assert design_by_api("modulo", options | {"epsilon": smaller_epsilon}, "audit").objective > 0.4
    check_clean(page)


# Errors.


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("family=nothing", "family must be one of modulo, noise"),
        ("family=modulo&n=0&epsilon=1", "n must be an integer"),
        ("family=modulo&<img src=x onerror=alert(1)>=1", "option must be one of"),
        ("%%%&&=", "option must be one of"),
    ],
)
def test_a_wrong_address_shows_an_error_message(
    browser: Chromium, server: Server, fragment: str, message: str
) -> None:
    page = browser.open(server.make_address() + "#" + fragment)
    page.wait(HAS_ERROR)
    assert message in page.js(STATUS_TEXT)
    assert page.js("document.querySelectorAll('img').length") == 0
    check_clean(page)


def test_a_page_of_a_stopped_server_shows_an_error(browser: Chromium) -> None:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        page = open_settled(browser, server, {"family": "modulo"})
        server.shutdown()
        thread.join()
    page.set_control("option-epsilon", "2")
    page.wait(HAS_ERROR)
    assert "server" in page.js(STATUS_TEXT)


def test_an_invalid_field_is_marked_and_the_last_answer_stays_greyed(
    browser: Chromium, server: Server
) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    loss_text = page.js(SHOWN_LOSS)
    page.set_control("option-epsilon", "abc")
    page.wait("document.querySelector('#option-epsilon[aria-invalid=true]')")
    assert "must be" in page.js("document.getElementById('option-epsilon-error').textContent")
    assert page.js(SHOWN_LOSS) == loss_text
    assert page.js("document.querySelector('.hero .stale') !== null")
    page.set_control("option-epsilon", "1.5")
    page.wait(
        "!document.querySelector('[aria-invalid=true]') && !document.querySelector('.hero .stale')"
    )


def test_an_infeasible_request_shows_a_sentence_instead_of_a_loss(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"family": "laplace", "epsilon": "1", "bits": "1"})
    assert page.js(SHOWN_LOSS) == "No mechanism satisfies this request"
    assert "no ell brings the mean length" in page.js("document.querySelector('.hero').textContent")


# Windows and tabs.


def test_two_tabs_show_different_designs(browser: Chromium, server: Server) -> None:
    first = open_explorer(browser, server, NOISE_STATE)
    second_state = {"family": "modulo", "n": "4", "max_shift": "1", "epsilon": "1"}
    second = open_explorer(browser, server, second_state)
    assert first.js("window.view.given.n") == "8"
    assert second.js("window.view.given.n") == "4"


def test_all_controls_are_named_and_can_be_focused_on_a_phone(
    browser: Chromium, server: Server
) -> None:
    page = open_settled(browser, server, NOISE_STATE, width=360, height=740)
    assert page.js("document.documentElement.scrollWidth") <= 360
    unfocusable_count = page.js("""[...document.querySelectorAll('input, select, button, summary')]
        .filter((control) => {
            control.focus();
            const hasFocus = document.activeElement === control;
            return !hasFocus && !control.disabled && control.checkVisibility();
        }).length""")
    assert unfocusable_count == 0
    unnamed_count = page.js("""[...document.querySelectorAll('input, select')].filter((control) =>
        !control.labels?.length && !control.getAttribute('aria-label')).length""")
    assert unnamed_count == 0
    check_clean(page)


@pytest.mark.parametrize("width", [1440, 1024, 720, 390])
def test_nothing_is_wider_than_the_window(browser: Chromium, server: Server, width: int) -> None:
    state = {"family": "noise", "epsilon": "1", "delta": "1e-5"}
    page = open_settled(browser, server, state, width=width, height=800)
    assert page.js("document.documentElement.scrollWidth") <= width


def test_a_narrow_window_shows_the_result_before_the_controls(
    browser: Chromium, server: Server
) -> None:
    state = {"family": "noise", "epsilon": "1", "delta": "1e-5"}
    page = open_settled(browser, server, state, width=390, height=800)
    assert page.js("document.querySelector('.value').getBoundingClientRect().top") < 400
    assert page.js("document.querySelector('.controls').open") is False


def test_a_printed_page_has_charts_of_one_width_in_order(browser: Chromium, server: Server) -> None:
    """The window is first halved, which is a zoom to 200 %."""
    state = {"family": "noise", "epsilon": "1", "delta": "1e-5"}
    page = open_settled(browser, server, state, width=1440, height=800)
    page.size(720, 800)
    page.wait("!document.querySelector('.controls').open")
    widths = """[...document.querySelectorAll('.columns svg.chart')]
        .map((chart) => chart.viewBox.baseVal.width)"""
    order = """[...document.querySelectorAll('.columns .card')]
        .map((card) => Number(card.style.order))"""
    screen_widths = set(page.js(widths))
    printed_widths, printed_order = page.js(
        f"(dispatchEvent(new Event('beforeprint')), [{widths}, {order}])"
    )
    assert set(printed_widths) == {PRINTED_CHART_WIDTH}
    assert printed_order == sorted(printed_order)
    assert set(page.js(f"(dispatchEvent(new Event('afterprint')), {widths})")) == screen_widths


def test_the_redirect_file_opens_the_page_without_a_referrer(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    """The file keeps the token of the address out of the command line of the browser."""
    address = server.make_address("family=modulo&n=4&max_shift=1&epsilon=1")
    page = browser.open(_write_redirect(address, tmp_path))
    page.wait("document.querySelector('main')?.dataset.drawn")
    assert page.js("location.href") == address
    assert page.js("document.referrer") == ""
    check_clean(page)


# The first page: a query.

QUERY_STATE = "form=numbers&answers=0..6&max_shift=1&epsilon=1&delta=0.01&loss=squared"


def open_solved_query(browser: Chromium, server: Server) -> Page:
    """Open the first page with a query, and wait until all classes are solved."""
    page = browser.open(server.make_address(QUERY_STATE))
    page.wait("document.querySelector('main.home')?.dataset.drawn")
    page.wait("document.querySelector('.lead')?.textContent.startsWith('Best: ')")
    return page


def test_the_first_page_compares_classes_and_opens_one(browser: Chromium, server: Server) -> None:
    page = open_solved_query(browser, server)
    cells = page.js("""[...document.querySelectorAll('.home table tbody tr')]
        .map((row) => [...row.cells].map((cell) => (
            cell.querySelector('a') ?? cell).textContent))""")
    result = recommend(answers="0..6", max_shift=1, epsilon=1, delta="0.01", loss="squared")
    rows = {name_mechanism(row["class"]): row for row in result}
    for name, loss, bound, *_ in cells:
        assert is_cell_of(loss, rows[name]["objective"])
        assert bound == "-" or is_cell_of(bound, rows[name]["bound"])
    assert page.js("document.querySelectorAll('svg.chart .pick').length") >= 2
    page.js("""void [...document.querySelectorAll('.home table a')]
        .find((link) => link.textContent.startsWith('optimal integer noise')).click()""")
    page.wait(IS_PROVEN)
    class_loss = rows[name_mechanism("integer noise, clamped")]["objective"]
    assert is_cell_of(page.js(SHOWN_LOSS), class_loss, HOT_START_TOLERANCE)
    page.js("history.back()")
    page.wait("document.querySelector('main.home')")
    assert page.complaints == []


def test_a_published_mechanism_opens_its_own_page(browser: Chromium, server: Server) -> None:
    page = open_solved_query(browser, server)
    page.js("""void [...document.querySelectorAll('.home table a')]
        .find((link) => link.textContent.startsWith('geometric')).click()""")
    page.wait(IS_PROVEN)
    result = recommend(answers="0..6", max_shift=1, epsilon=1, delta="0.01", loss="squared")
    loss = next(row["objective"] for row in result if row["class"] == "clamped geometric")
    assert is_cell_of(page.js(SHOWN_LOSS), loss)
    page.js("document.querySelector('.back a').click()")
    page.wait("document.querySelector('main.home')?.dataset.drawn")
    check_clean(page)


def test_texts_that_people_type_are_understood_or_answered_by_a_proposal(
    browser: Chromium, server: Server
) -> None:
    page = open_solved_query(browser, server)
    page.set_control("query-answers", "0 to 5")
    page.wait("document.getElementById('query-answers').value === '0..5'")
    page.set_control("query-epsilon", "ln(3)")
    page.wait("document.querySelector('.sentence button:not([hidden])')")
    page.js("document.querySelector('.sentence button').click()")
    page.wait("document.getElementById('query-epsilon').value === '1.09861228'")
    page.wait("document.querySelector('.lead')?.textContent.startsWith('Best: ')")
    assert page.complaints == []


def test_the_first_page_marks_invalid_fields(browser: Chromium, server: Server) -> None:
    page = open_solved_query(browser, server)
    page.set_control("query-answers", "5..1")
    page.wait("document.querySelector('#query-answers[aria-invalid]')")
    page.set_control("query-answers", "0..6")
    page.set_control("query-epsilon", "-1")
    page.wait("document.querySelector('#query-epsilon[aria-invalid]')")
    assert "epsilon must be" in page.js("document.querySelector('.sentence .error').textContent")
    assert page.complaints == []


# Controls and charts.


@pytest.mark.parametrize(
    ("notion", "parameter", "slider_change", "has_larger_loss"),
    [
        ("zcdp", "rho", -40, True),
        ("gdp", "mu", -40, True),
        ("tradeoff", "tradeoff", -5, False),
        ("curve", "curve", -40, True),
    ],
)
def test_a_notion_has_its_own_sliders_and_no_other(
    browser: Chromium,
    server: Server,
    notion: str,
    parameter: str,
    slider_change: int,
    has_larger_loss: bool,
) -> None:
    """A smaller parameter means a larger loss, except that a lower trade-off curve is less private.

    slider_change: steps by which the first slider is moved.
    """
    state = {"family": "modulo", "n": "6", "max_shift": "1", "epsilon": "1", "delta": "0.1"}
    page = open_settled(browser, server, state)
    page.set_control("option-notion", notion)
    page.wait(f"window.view?.given.notion === '{notion}' && {IS_PROVEN}")
    first_field = "document.querySelector('.sliders input[type=text]').id"
    assert page.js(first_field) == f"option-{parameter}"
    assert page.js("document.querySelectorAll('.sliders input[type=range]:enabled').length") >= 1
    assert page.js(EPSILON_FIELD) is None
    assert page.js("document.getElementById('option-delta')") is None
    objective = page.js("window.view.objective")
    page.js(f"""void ((slider) => {{
        slider.value = Number(slider.value) + {slider_change};
        slider.dispatchEvent(new Event('input'));
        slider.dispatchEvent(new Event('change'));
    }})(document.querySelector('.sliders input[type=range]:enabled'))""")
    page.wait(f"window.view.objective !== {objective} && {IS_PROVEN}")
    assert (page.js("window.view.objective") > objective) == has_larger_loss
    check_clean(page)


@pytest.fixture(scope="module")
def saved_chart(
    browser: Chromium, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """Save the mechanism's chart in the dark theme. Return the content of each file by suffix."""
    folder = tmp_path_factory.mktemp("chart")
    page = open_settled(browser, server, NOISE_STATE)
    page.click("Dark")
    background = page.js("getComputedStyle(document.querySelector('.page')).backgroundColor")
    assert background == "rgb(14, 17, 21)"
    allow_downloads(browser, folder)
    page.js("void (document.querySelector('.save').open = true)")
    page.wait("document.querySelector('.save button')")
    for button_text in ("SVG", "PNG", "PDF", "CSV", "LaTeX caption"):
        page.click(button_text)
    name = "probability-of-every-noise-value"
    files = {suffix: folder / f"{name}.{suffix}" for suffix in ("svg", "png", "pdf", "csv", "tex")}
    wait_for_files([*files.values()])
    return {suffix: file.read_bytes() for suffix, file in files.items()}


def test_an_svg_saved_in_the_dark_theme_has_the_colours_of_paper(
    saved_chart: dict[str, bytes],
) -> None:
    """The bars have the colour of the light theme, and the legend is part of the file."""
    svg = saved_chart["svg"]
    assert b"rgb(0, 114, 178)" in svg
    assert b"var(" not in svg
    assert b"data-independent" in svg


def test_a_chart_is_saved_as_png_and_as_pdf(saved_chart: dict[str, bytes]) -> None:
    """In the PDF "re B" draws a bar, and "Tj" a text."""
    assert saved_chart["png"].startswith(b"\x89PNG")
    pdf = saved_chart["pdf"]
    assert pdf.startswith(b"%PDF-1.4")
    assert pdf.count(b" re B") >= 9
    assert b"(data-independent) Tj" in pdf


def test_the_numbers_and_the_caption_of_a_chart_are_saved(saved_chart: dict[str, bytes]) -> None:
    assert len(saved_chart["csv"].splitlines()) == 10  # A head and the nine noise values.
    assert saved_chart["tex"].startswith(rb"\caption{Probability of every noise value.")


def test_pinned_designs_are_listed_and_drawn(browser: Chromium, server: Server) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    page.click("Pin to compare")
    page.set_control("option-epsilon", "2")
    page.wait(f"window.view.given.epsilon === '2' && {IS_PROVEN}")
    page.click("Pin to compare")
    assert page.js("document.querySelectorAll('[aria-label^=Remove]').length") == 2
    table = "document.querySelector('.scroll[aria-label=\"Pinned designs\"]')"
    assert page.js(f"{table}.scrollWidth - {table}.clientWidth") == 0
    # The legends name the pinned designs A and B.
    legend_count = page.js("""[...document.querySelectorAll('.legend li')]
        .filter((entry) => /^[AB]: /.test(entry.textContent)).length""")
    assert legend_count >= 4
    check_clean(page)


def test_other_mechanisms_are_hidden_and_shown_in_the_legend(
    browser: Chromium, server: Server
) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    # The chart has a row for the design and for each of four other mechanisms.
    row_count = (
        """document.querySelectorAll('[aria-label="Other mechanisms"] svg.chart g').length"""
    )
    assert page.js(row_count) == 5
    outline_count = """document.querySelectorAll(
        '[aria-label="The mechanism"] svg.chart path[stroke-width="1.8"]').length"""
    is_pressed = "document.querySelector('.legend button').getAttribute('aria-pressed')"
    assert page.js(outline_count) == 4
    page.click("data-independent")
    assert page.js(outline_count) == 3
    assert page.js(is_pressed) == "false"
    page.click("data-independent")
    assert page.js(outline_count) == 4
    assert page.js(is_pressed) == "true"
    check_clean(page)


def test_both_columns_have_about_the_same_height(browser: Chromium, server: Server) -> None:
    page = open_settled(browser, server, NOISE_STATE)
    first_end, second_end = page.js("""[0, 1].map((index) => document.querySelectorAll('.column')
        [index].lastElementChild.getBoundingClientRect().bottom)""")
    assert abs(first_end - second_end) < MAX_COLUMN_DIFFERENCE
