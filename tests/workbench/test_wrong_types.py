"""Test wrong types and values of arguments in Python.

Every error is a `WorkbenchError` with one line of text that begins with the name of the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.families.modulo.family import FAMILY
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.solvers.backend import Options
from workbench.solvers.solution import Solution


def return_5(value):
    """Return 5. This is no constraint, but it is a loss, equal for every noise value."""
    return 5


# Values that most options of `design` refuse.
WRONG_VALUES = [
    None, True, -1, 2.5, "abc", b"x", [1], {}, (1, 2), object(), float("nan"), float("inf"), 1j,
    set(), 10**400, type,
    return_5, lambda f: [5], lambda: 1, lambda f: 1 / 0, "1e400",
]  # fmt: skip
# Items of `WRONG_VALUES` that an option of `design` accepts, by the name of the option.
ACCEPTED_VALUES = {
    "epsilon": (2.5,), "delta": (None,), "max_loss": (None,), "prior": (None,), "constraints": (None,),
    "certify": (True,), "time_limit": (None, 2.5), "gap": (None, 2.5), "seed": (None,), "options": (None, {}),
    "notion": (), "loss": (return_5,), "minimise": (), "solver": (), "method": (),
}  # fmt: skip


@pytest.fixture
def question():
    """Return a question about noise modulo 5."""
    return wb.ModuloNoise(n=4, shifts=[1, 2])


@pytest.mark.parametrize("name", ACCEPTED_VALUES)
def test_errors_of_design_begin_with_the_name_of_the_argument(question, name):
    for value in WRONG_VALUES:
        is_accepted = any(
            type(value) is type(accepted) and value == accepted
            for accepted in ACCEPTED_VALUES[name]
        )
        request = {"epsilon": 1, "delta": 0.1, name: value}
        if is_accepted:
            assert wb.design(question, **request).private
            continue
        expected_error = wb.InvalidRequest
        if name == "solver" and isinstance(value, str):
            expected_error = wb.SolverUnavailable
        with pytest.raises(expected_error) as caught:
            wb.design(question, **request)
        message = str(caught.value)
        assert message.startswith(name), message
        assert message.count("\n") == 0
        assert len(message) < 400
        assert message.endswith(".")


@pytest.mark.parametrize("start", [True, 3, "warm", []])
def test_an_unknown_start_of_a_session_is_an_error(question, start):
    opened = FAMILY.open_session(FAMILY.make_request(question, epsilon=1))
    with opened as session, pytest.raises(wb.InvalidRequest, match=r"^start must be one of"):
        session.design({}, start=start)


def test_missing_and_unknown_options_are_errors(question):
    with pytest.raises(wb.InvalidRequest, match=r"^epsilon must be given\. Got none\.$"):
        wb.design(question, delta=0.1)
    with pytest.raises(
        wb.InvalidRequest, match=r"^request must be made of notion, .*\. Got bogus\.$"
    ):
        wb.design(question, epsilon=1, bogus=2)


@pytest.mark.parametrize("solvers", [3, b"x", [3], {"highs": 1}])
def test_solvers_that_are_no_names_are_refused(question, solvers):
    with pytest.raises(wb.InvalidRequest, match=r"^solvers must be a list of names"):
        wb.compare(question, solvers, epsilon=1)


@pytest.mark.parametrize("constraints", [lambda f: [f[0] ** 2 <= 1], lambda f: [f @ f <= 1]])
def test_constraints_that_are_not_linear_are_refused(question, constraints):
    with pytest.raises(wb.InvalidRequest, match=r"linear|^constraints must be"):
        wb.design(question, epsilon=1, delta=0.1, constraints=constraints)


def test_a_linear_constraint_is_accepted(question):
    assert wb.design(question, epsilon=1, delta=0.1, constraints=lambda f: [f[1] == f[4]]).private


def test_the_raw_objective_is_the_loss_of_the_mechanism_returned(question):
    """The sum of the masses of a first-order method differs from 1 by 1e-6. The shown objective is
    the loss of the normalised mechanism, and not the objective of the solver.
    """
    loose = Options(feasibility_tolerance=1e-4)
    design = wb.design(
        question,
        epsilon=1,
        notion="dp",
        delta=0.1,
        solver="ortools:pdlp",
        certify=False,
        options=loose,
    )
    assert isinstance(design.mechanism, AdditiveNoise)
    assert design.objective == pytest.approx(float(1 - design.mechanism.exact_pmf[0]), abs=1e-16)
    assert design.claimed != design.objective


def test_a_note_states_that_the_solver_gives_no_bound(question, monkeypatch):
    monkeypatch.setattr(Solution, "bound", property(lambda self: None))
    design = wb.design(question, epsilon=1, notion="pdp", delta=0.1, loss="squared")
    assert design.bound is None
    assert any("gives no bound" in sentence for sentence in design.words)


@pytest.mark.parametrize("question", [wb.Labels.uniform(0, 5), wb.Quantization("-3,-0.5,0.5,3")])
@pytest.mark.parametrize(
    ("solver_options", "message"),
    [
        ({"time_limit": True}, "time_limit must be a finite number of seconds > 0. Got True."),
        ({"time_limit": "soon"}, "time_limit must be a finite number of seconds > 0. Got soon."),
        ({"time_limit": 1, "options": Options(time_limit=2)}, "time_limit must be given once"),
        ({"options": {"time": 1}}, "options must be a mapping of time_limit"),
    ],
)
def test_every_family_reads_solver_options_in_the_same_way(
    question: object, solver_options: dict[str, object], message: str
):
    with pytest.raises(wb.InvalidRequest) as raised:
        wb.design(question, epsilon=1, **solver_options)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.IntegerNoise(1), {"epsilon": 1, "delta": 0.01}),
        (wb.IntegerNoise(1, clamp=(0, 4)), {"epsilon": 1, "delta": 0.01}),
        (wb.IntegerNoise(1), {"notion": "zcdp", "rho": 1}),
        (wb.IntegerNoise(1), {"epsilon": 1, "delta": 0.01, "runs": 2}),
        (wb.RealNoise(1), {"epsilon": 1, "delta": 0.01}),
    ],
)
@pytest.mark.parametrize("loss", [abs, 3, None, object(), {0: 0, 1: 1}, {0, 1}, True])
def test_a_loss_of_noise_of_another_type_is_an_error(
    question: Any, options: dict[str, Any], loss: Any
) -> None:
    if loss is abs and getattr(question, "clamp", None):
        pytest.skip("Clamped integers accept a function of the difference as their loss.")
    with pytest.raises(
        wb.InvalidRequest,
        match=r"^loss must be one of absolute, squared",
    ):
        wb.design(question, loss=loss, **options)


@pytest.mark.parametrize("prior", [abs, 3, {0: 1}])
def test_a_prior_of_clamped_answers_of_another_type_is_an_error(prior: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^prior must be uniform, worst, or weights"):
        wb.design(wb.IntegerNoise(1, clamp=(0, 4)), epsilon=1, delta=0.01, prior=prior)


QUANTIZER = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1).mechanism
# A sequence that must be refused before its items are read.
TOO_LONG = range(10**12)


@pytest.mark.parametrize("density", ["x", 3, [1], 0])
def test_a_wrong_density_of_a_quantizer_is_refused(density: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^density must be uniform, or normal"):
        QUANTIZER.mae(density=density)
    with pytest.raises(wb.InvalidRequest, match=r"^density must be uniform, or normal"):
        QUANTIZER.mse(density=density)


@pytest.mark.parametrize("noise", [None, 3, "x", QUANTIZER])
def test_a_channel_is_made_from_additive_noise_only(noise: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^noise must be additive noise"):
        wb.Channel.from_noise(noise)


@pytest.mark.parametrize("question", [None, 3, "x"])
def test_a_pmf_needs_a_question_about_modulo_noise(question: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^question must be a ModuloNoise"):
        AdditiveNoise.from_pmf(question, [1])


@pytest.mark.parametrize("pmf", [None, "ab", ["a", "b"], [1j, 2]])
def test_a_pmf_that_is_no_list_of_numbers_is_refused(pmf: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^pmf must be"):
        AdditiveNoise.from_pmf(wb.ModuloNoise(n=1, max_shift=1), pmf)


@pytest.mark.parametrize("knots", [TOO_LONG, (1, "a")])
def test_knots_that_are_no_tuple_of_rationals_are_refused(knots: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^knots must be a tuple of rationals"):
        PiecewiseAffine(knots, QUANTIZER.bins, QUANTIZER.ends)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PiecewiseAffine.from_laws(TOO_LONG, [1, 2], []), "knots must be at most 10000000"),
        (
            lambda: PiecewiseAffine.from_ends("q", bins=[1, 2], knots=TOO_LONG, ends=[]),
            "knots must be at most 10000000",
        ),
        (lambda: wb.FiniteQuery(TOO_LONG, max_shift=1), "inputs must be at most 10000000"),
    ],
)
def test_a_sequence_that_is_too_long_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=f"^{message} entries"):
        call()


class NoNumber:
    """An object whose conversion to a float fails."""

    def __float__(self) -> float:
        raise RuntimeError("no number")


# Values of many types. Each argument accepts at most a few of them.
STRANGE_VALUES: list[Any] = [
    None, True, -1, 2.5, "abc", "", b"x", [], [1], [[]], [[1, 2], [3]], {}, {"a": 1}, {1: 2},
    object(), float("nan"),
    1j, set(), 10**400, type, len, np.zeros((2, 2, 2)), np.array(5), np.array(["a"]), np.array([1,
    None], dtype=object),
    pd.DataFrame({"a": ["x"]}), pd.Series(dtype=float), Path("no.csv"), Decimal("sNaN"), Fraction(1,
    3), iter([1]),
    np.datetime64("2020-01-01"), np.timedelta64(1, "s"), NoNumber(), slice(1), [None],
    memoryview(b"1"), ...,
    "1/0", "..",
]  # fmt: skip
CHANNELS = wb.FiniteQuery("0..1", max_shift=1)
CHANNEL = wb.Channel.from_rows([[2, 1], [1, 2]])
GROUP = wb.ModuloNoise(2, max_shift=1)
NOISE = AdditiveNoise(GROUP, [2, 1, 1])
BINS = wb.design(wb.Quantization("-3,3"), epsilon=1).mechanism
# A public function or class, and arguments that it accepts, by the name of the test.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "AdditiveNoise": (wb.AdditiveNoise, {"question": GROUP, "weights": [2, 1, 1]}),
    "from_pmf": (wb.AdditiveNoise.from_pmf, {"question": GROUP, "pmf": [0.5, 0.25, 0.25]}),
    "Certificate": (
        wb.Certificate,
        {"mechanism": NOISE, "notion": "pure", "epsilon": 1, "delta": None, "objective": None,
        "bias": None,
         "record": {}, "parameters": {}, "audited": None, "composed": None},
    ),
    "Channel": (wb.Channel, {"rows": CHANNEL.rows, "neighbours": None, "axis_labels": None}),
    "Channel.from_pairs": (wb.Channel.from_pairs, {"rows": [[2, 1], [1, 2]], "pairs": [(0, 1)], "directed": False}),
    "DataLaw.density": (wb.DataLaw.density, {"density": np.ones_like, "low": 0, "high": 1, "panels": 4}),
    "FiniteQuery": (
        wb.FiniteQuery,
        {"inputs": "0..3", "outputs": "0..3", "max_shift": 1, "prior": [1, 1, 1, 1], "directed":
        False},
    ),
    "neighbours": (wb.FiniteQuery, {"inputs": "0..3", "neighbours": "all"}),
    "IntegerNoise": (wb.IntegerNoise, {"sensitivity": 1, "clamp": (0, 3)}),
    "Labels": (wb.Labels, {"values": [0, 1], "prior": [1, 1]}),
    "ModuloNoise": (wb.ModuloNoise, {"n": 3, "shifts": [1], "directed": False}),
    "vectors": (wb.ModuloNoise, {"sizes": [2, 2], "shifts": [(0, 1)]}),
    "PiecewiseAffine": (wb.PiecewiseAffine, {"knots": BINS.knots, "bins": BINS.bins, "ends": BINS.ends}),
    "PiecewiseAffine.from_laws": (wb.PiecewiseAffine.from_laws, {"knots": [-2, 2], "outputs": [-3, 3], "ends": [[3, 1], [1, 3]]}),
    "Quantization": (wb.Quantization, {"bins": "-3,3", "c": 1, "density": "uniform"}),
    "range": (wb.Quantization, {"levels": 2, "range": "0..1", "c": None}),
    "RealNoise": (wb.RealNoise, {"sensitivity": 1, "grid": "0.1", "clamp": (0, 2)}),
    "audit": (wb.audit, {"mechanism": CHANNEL, "epsilon": 1, "loss": "absolute", "data": [0, 1]}),
    "certify": (
        wb.certify,
        {"mechanism": CHANNEL, "notion": "pure", "epsilon": 1, "unbiased": False, "outputs": [0, 1],
         "unbiased_for": [0, 1], "allow_bias": True, "objective": None, "record": None},
    ),
    "compose": (wb.compose, {"mechanism": CHANNEL, "times": 2, "epsilon": 1}),
    "sample": (wb.sample, {"mechanism": CHANNEL, "count": 1, "answer": 0}),
    "error_at": (BINS.error_at, {"x": [0.0], "loss": "absolute"}),
    "save": (wb.design(GROUP, epsilon=1).save, {"path": "design.json"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_strange_argument_is_accepted_or_raises_an_error_of_the_workbench(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, arguments = CALLS[name]
    for argument in arguments:
        for value in STRANGE_VALUES:
            try:
                call(**{**arguments, argument: value})
            except wb.WorkbenchError as error:
                message = str(error)
                assert "\n" not in message, (argument, value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wb.design(CHANNELS, epsilon=1, constraints=7), "constraints must be"),
        (lambda: wb.design(CHANNELS, epsilon=1, curve=np.zeros(3)), "curve must be left out"),
        (lambda: wb.design(CHANNELS, epsilon=1, tradeoff={1: 2}), "tradeoff must be left out"),
        (
            lambda: wb.design(wb.IntegerNoise(1, clamp=(0, 3)), epsilon=1, unit=1e308),
            "unit must be between",
        ),
        (
            lambda: wb.design(wb.Labels([0, 1]), epsilon=1, method="lp", constraints=7),
            "constraints must be",
        ),
        (lambda: wb.compare(Path("no.csv"), ["highs"], epsilon=1), "request must be made of"),
        (lambda: wb.compare(GROUP, np.zeros((2, 2)), epsilon=1), "solvers must be a list of names"),
        (lambda: wb.formula(CHANNELS, epsilon=1, time_limit="abc"), "time_limit must be"),
        (
            lambda: wb.frontier(CHANNELS, epsilon="1", notion=np.datetime64("2020-01-01")),
            "notion must be",
        ),
        (lambda: wb.frontier(CHANNELS, epsilon="1", baseline=[[]]), "baseline must be"),
        (lambda: wb.recommend(range="0..1", epsilon=1, prior=[[1], 2]), "prior must be"),
        (lambda: wb.sample(CHANNEL, 10**400, answer=0), "count must be an integer"),
        (lambda: wb.verify(family=[[1]]), "family must be all, or some of"),
    ],
)
def test_requests_of_wrong_types_name_the_argument(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=f"^{message}"):
        call()


def test_a_grid_may_be_an_array_of_no_dimension() -> None:
    table = wb.frontier(CHANNELS, epsilon=np.array(1), baselines=False)
    assert [row["epsilon"] for row in table.rows] == [1]
    assert wb.FiniteQuery("0..3", max_shift=np.array(1)).neighbour_pairs == ((0, 1), (1, 2), (2, 3))
