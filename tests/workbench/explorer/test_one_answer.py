"""Test that the page never shows an old answer as the answer of a new question.

The tests hold back requests of the page with `HOLD`, so that the old answer stays visible.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from bench.chromium import Chromium
from tests.workbench.explorer.test_chromium import check_clean, open_explorer
from workbench.explorer import tasks
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks

# `Chromium.js` returns the value of a script, so it must be one that JSON can state. Hence the `0`,
# `void` and `?? 1` of some scripts.

# A script that holds back the requests of TASKS (a list of names) until `window.release()` is called.
HOLD = """
    const realFetch = window.fetch;
    window.fetch = (address, request) => {
        const isHeld = TASKS.some((task) => address === `/api/${task}`);
        if (!isHeld) return realFetch(address, request);
        return new Promise((resolve, reject) => {
            window.release = () => resolve(realFetch(address, request));
            const abort = () => reject(new DOMException("", "AbortError"));
            request.signal?.addEventListener("abort", abort);
        });
    };
    0
"""

# A script that releases held requests as soon as they are made.
RELEASE_ALL = """void setInterval(() => {
    window.release?.();
    window.release = null;
}, 20)"""

# A script that replaces the answers to "design" by the answer of a solver that is stopped early: a
# loss that is 1 % larger, without a proof.
STOP_DESIGNS_EARLY = """void ((nextFetch) => {
    window.fetch = async (address, request) => {
        const answer = await nextFetch(address, request);
        if (address !== '/api/design') return answer;
        const texts = (await answer.text()).split('\\n').filter(Boolean);
        const messages = texts.map((text) => JSON.parse(text));
        for (const { result } of messages.filter((message) => message.result)) {
            const objective = 1.01 * result.objective;
            Object.assign(result, { objective, certified: false, unfinished: true, proving: true });
        }
        return new Response(messages.map((message) => JSON.stringify(message) + '\\n').join(''));
    };
})(window.fetch)"""

# A script that returns the text "computing ..." of the page, or undefined if it is hidden.
WAITING = "document.querySelector('.hero .waiting:not([hidden])')?.textContent"


# A settled page, in which all cards have content, sends the request "adapt" (which options fit?)
# before "design". A page that is not settled sends only "design".
@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize(("name", "value"), [("option-n", "5"), ("option-notion", "pure")])
def test_the_old_answer_is_grey_until_the_new_question_is_answered(
    browser: Chromium, server: Server, name: str, value: str, is_settled: bool
) -> None:
    page = open_explorer(
        browser, server, {"family": "modulo", "n": "4", "max_shift": "1", "epsilon": "1"}
    )
    page.wait("document.querySelector('.hero .badge.proven')")
    if is_settled:
        page.wait("document.querySelector('[data-settled]')")
    assert page.js("document.querySelector('.hero .waiting').hidden")
    page.js(HOLD.replace("TASKS", "['design', 'adapt']"))
    page.set_control(name, value)
    page.wait(f"{WAITING}?.startsWith('computing')")
    assert "an earlier question" in page.js(WAITING)
    assert page.js("document.querySelector('.hero .stale .value') !== null")
    assert (
        page.js("getComputedStyle(document.querySelector('.hero .value')).fontWeight") == "400"
    )  # Not bold.
    page.js(RELEASE_ALL)
    page.wait(f"!{WAITING} && document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .stale') === null")
    check_clean(page)


def test_the_first_page_removes_its_recommendation_when_the_query_changes(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"form": "numbers", "answers": "0..3"})
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Best: ')")
    page.js(HOLD.replace("TASKS", "['recommend']"))
    page.set_control("query-epsilon", "2")
    page.wait("window.release")
    assert page.js("document.querySelector('.lead').textContent") == "Comparing mechanisms …"
    # A comparison that reaches its first time limit is requested again with a longer one.
    page.js(RELEASE_ALL)
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Best: ')")
    check_clean(page)


def test_a_page_that_a_click_opens_shows_the_design_of_the_first_page(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"form": "numbers", "answers": "0..3"})
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Best: ')")
    row = """[...document.querySelectorAll('td a')]
        .find((link) => link.textContent === 'an optimal table of probabilities').closest('tr')"""
    class_loss = page.js(f"{row}.cells[1].textContent")
    # No other design is needed: none is released.
    page.js(HOLD.replace("TASKS", "['design', 'certify', 'prove']"))
    page.js(f"void {row}.querySelector('a').click()")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .value').textContent") == class_loss
    assert page.js("typeof window.release") == "undefined"
    check_clean(page)


def test_a_search_that_ends_early_shows_the_loss_of_the_first_page(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"form": "numbers", "answers": "0..3"})
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Best: ')")
    row = """[...document.querySelectorAll('td a')]
        .find((link) => link.textContent === 'an optimal table of probabilities').closest('tr')"""
    page.js(HOLD.replace("TASKS", "['certify', 'prove']"))
    page.js(STOP_DESIGNS_EARLY)
    # Remove the designs from the rows, as the server does with designs that are too large.
    page.js(
        "document.addEventListener('workbench-recommended', (event) => "
        "event.detail.rows.forEach((row) => { delete row.view; })) ?? 1"
    )
    page.set_control("query-epsilon", "2")
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Best: ')")
    class_loss = page.js(f"{row}.cells[1].textContent")
    page.js(f"void {row}.querySelector('a').click()")
    page.wait("document.querySelector('.hero .value')")
    assert page.js("document.querySelector('.hero .value').textContent") == f"at most {class_loss}"
    assert "so far" in page.js("document.querySelector('.hero').textContent")
    assert page.js("document.querySelector('.hero .badge').textContent") == "computing …"
    page.wait("window.release")
    page.js("window.release()")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .value').textContent") == class_loss
    check_clean(page)


def test_a_search_that_was_stopped_is_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_SLIDER_DESIGN_SECONDS", Fraction(1, 100))
    # This design needs thousands of linear programs.
    given = {"n": "40", "max_shift": "3", "delta": "0.05", "notion": "pdp", "epsilon": "1.04"}
    view = Tasks().run("design", {"family": "modulo", "given": given})
    assert view["unfinished"]
    assert not view["certified"]


def test_a_certified_optimum_is_finished() -> None:
    view = Tasks().run(
        "certify", {"family": "modulo", "given": {"n": "4", "max_shift": "1", "epsilon": "1"}}
    )
    assert not view["unfinished"]
