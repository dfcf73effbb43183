"""Wrong types and values from Python: one sentence that names the argument, never somebody else's traceback."""

from __future__ import annotations

import pytest

import workbench as wb
from solvers.backend import Options
from workbench.mechanisms.additive import AdditiveNoise


def five(value):  # no constraint; but a cost, the same for every noise value
    return 5


WRONG = [
    None, True, -1, 2.5, "abc", b"x", [1], {}, (1, 2), object(), float("nan"), float("inf"), 1j, set(), 10**400, type,
    five, lambda f: [5], lambda: 1, lambda f: 1 / 0, "1e400",
]  # fmt: skip
FINE = {
    "epsilon": (2.5,), "delta": (None,), "budget": (None,), "prior": (None,), "constraints": (None,),
    "certify": (True,), "time_limit": (None, 2.5), "gap": (None, 2.5), "seed": (None,), "options": (None,),
    "notion": (), "cost": (five,), "minimise": (), "solver": (), "method": (),
}  # fmt: skip


@pytest.fixture
def question():
    return wb.ModuloNoise(n=4, shifts=[1, 2])


@pytest.mark.parametrize("name", FINE)
def test_every_argument_of_design(question, name):
    for value in WRONG:
        fine = any(type(value) is type(ok) and value == ok for ok in FINE[name])
        request = {"epsilon": 1, "delta": 0.1, name: value}
        if fine:
            assert wb.design(question, **request).private
            continue
        unknown = name == "solver" and isinstance(value, str)
        with pytest.raises(wb.SolverUnavailable if unknown else wb.InvalidRequest) as caught:
            wb.design(question, **request)
        words = str(caught.value)
        assert words.startswith(name), words
        assert words.count("\n") == 0
        assert len(words) < 400
        assert words.endswith(".")


@pytest.mark.parametrize("start", [True, 3, "warm", []])
def test_the_designers_own_start(question, start):
    with wb.NoiseDesigner(question) as designer, pytest.raises(wb.InvalidRequest, match=r"^start must be one of"):
        designer.design(1, 0.1, start=start)


def test_what_is_missing_or_unknown(question):
    with pytest.raises(wb.InvalidRequest, match=r"^epsilon must be given\. Got none\.$"):
        wb.design(question, delta=0.1)
    with pytest.raises(wb.InvalidRequest, match=r"^request must be made of notion, .*\. Got bogus\.$"):
        wb.design(question, epsilon=1, bogus=2)
    for solvers in (3, b"x", [3], {"highs": 1}):
        with pytest.raises(wb.InvalidRequest, match=r"^solvers must be a list of names"):
            wb.compare(question, solvers, epsilon=1)


def test_constraints_that_are_not_linear_or_fail_when_called(question):
    for make in (lambda f: [f[0] ** 2 <= 1], lambda f: [f @ f <= 1]):
        with pytest.raises(wb.InvalidRequest, match=r"linear|^constraints must be"):
            wb.design(question, epsilon=1, delta=0.1, constraints=make)
    assert wb.design(question, epsilon=1, delta=0.1, constraints=lambda f: [f[1] == f[4]]).private


def test_the_raw_objective_is_the_cost_of_the_mechanism_returned(question):
    """First-order methods return points that are no PMF by 1e-6; what is shown is what the mechanism costs."""
    loose = Options(feasibility_tolerance=1e-4)
    d = wb.design(question, epsilon=1, notion="dp", delta=0.1, solver="ortools:pdlp", certify=False, options=loose)
    assert isinstance(d.mechanism, AdditiveNoise)
    assert d.objective == pytest.approx(float(1 - d.mechanism.exact_pmf[0]), abs=1e-16)
    assert d.claimed != d.objective


def test_without_a_bound_the_words_say_so(question, monkeypatch):
    from solvers.solution import Solution

    monkeypatch.setattr(Solution, "bound", property(lambda self: None))
    d = wb.design(question, epsilon=1, notion="dp", delta=0.1)
    assert d.bound is None
    assert any("gives no bound" in sentence for sentence in d.words)


@pytest.mark.parametrize("question", [wb.Labels.uniform(0, 5), wb.Quantization("-3,-0.5,0.5,3")])
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"time_limit": True}, "time_limit must be a finite number of seconds > 0. Got True."),
        ({"time_limit": "soon"}, "time_limit must be a finite number of seconds > 0. Got soon."),
        ({"time_limit": 1, "options": Options()}, "options must be given alone"),
        ({"options": {"time_limit": 1}}, "options must be a solvers.backend.Options"),
    ],
)
def test_options_are_read_alike_by_every_design(question: object, request_: dict[str, object], message: str):
    with pytest.raises(wb.InvalidRequest) as raised:
        wb.design(question, epsilon=1, **request_)
    assert str(raised.value).startswith(message)
