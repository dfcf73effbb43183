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

# A script that holds back the requests of TASKS (a list of names) until `window.held()` is called.
HOLD = """
    const real = window.fetch;
    window.fetch = (...asked) => TASKS.some((task) => asked[0] === `/api/${task}`) ? new Promise((go, fail) => {
        window.held = () => go(real(...asked));
        asked[1].signal?.addEventListener("abort", () => fail(new DOMException("", "AbortError")));
    }) : real(...asked); 0
"""

# A script that returns the text "computing ..." of the page, or undefined if it is hidden.
WAITING = "document.querySelector('.hero .waiting:not([hidden])')?.textContent"


@pytest.mark.parametrize("name", ["option-epsilon", "option-notion"])
def test_the_old_answer_is_grey_until_the_new_question_is_answered(
    browser: Chromium, server: Server, name: str
) -> None:
    page = open_explorer(
        browser, server, {"family": "modulo", "n": "4", "max_shift": "1", "epsilon": "1"}
    )
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .waiting').hidden")
    page.js(HOLD.replace("TASKS", "['design', 'adapt']"))
    page.set_control(name, "2" if name == "option-epsilon" else "pure")
    page.wait(f"{WAITING}?.startsWith('computing')")
    assert "an earlier question" in page.js(WAITING)
    assert page.js("document.querySelector('.hero .stale .value') !== null")
    assert page.js("getComputedStyle(document.querySelector('.hero .value')).fontWeight") == "400"
    page.js(
        "const free = setInterval(() => { if (window.held) { window.held(); window.held = null; } }, 20); 0"
    )
    page.wait(f"!{WAITING} && document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .stale') === null")
    check_clean(page)


def test_the_first_page_removes_its_recommendation_when_the_query_changes(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"form": "numbers", "answers": "0..3"})
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Use')")
    page.js(HOLD.replace("TASKS", "['recommend']"))
    page.set_control("query-epsilon", "2")
    page.wait("window.held")
    assert page.js("document.querySelector('.lead').textContent") == "Comparing classes …"
    page.js("window.held()")
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Use')")
    check_clean(page)


def test_a_page_that_a_click_opens_shows_the_loss_of_the_first_page(
    browser: Chromium, server: Server
) -> None:
    page = open_explorer(browser, server, {"form": "numbers", "answers": "0..3"})
    page.wait("document.querySelector('.lead strong')?.textContent.startsWith('Use')")
    row = "[...document.querySelectorAll('td a')].find((one) => one.textContent === 'best channel').closest('tr')"
    first = page.js(f"{row}.cells[1].textContent")
    # The first answer is changed to that of a solver that is stopped early, and the proof is held.
    page.js(
        HOLD.replace("TASKS", "['certify', 'prove']").replace(
            "real(...asked); 0",
            """real(...asked).then(async (answer) => asked[0] !== '/api/design' ? answer : new Response(
                (await answer.text()).split('\\n').filter(Boolean).map((line) => { const said = JSON.parse(line);
                if (said.result) Object.assign(said.result, { objective: 1.01 * said.result.objective,
                certified: false, unfinished: true, proving: true }); return JSON.stringify(said) + '\\n'; }).join('')
            )); 0""",
        )
    )
    page.js(f"void {row}.querySelector('a').click()")
    page.wait("document.querySelector('.hero .value')")
    assert page.js("document.querySelector('.hero .value').textContent") == f"at most {first}"
    assert "so far" in page.js("document.querySelector('.hero').textContent")
    assert page.js("document.querySelector('.hero .badge').textContent") == "computing …"
    page.wait("window.held")
    page.js("window.held()")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.querySelector('.hero .value').textContent") == first
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
