"""Test that quantizers draw from the law that is audited, by chi-square tests with fixed seeds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import workbench as wb
from workbench.exact.numbers import sign_exp
from workbench.exact.random_source import Source
from workbench.mechanisms.affine_sampler import AffineSampler
from workbench.mechanisms.baselines.poisson_binomial import PoissonBinomial, poisson_binomial
from workbench.mechanisms.baselines.two_bin import erm, randomized_response, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.audit import audit_extremes
from workbench.privacy.certificate_file import check, save

QUANTIZERS: dict[str, Quantizer | PoissonBinomial] = {
    "RQM": rqm("-2.7,-0.9,0.9,2.7", "0.22"),
    "RQM, asymmetric bins": rqm("-2,-0.3,0.4,3", "0.4"),
    "ERM": erm("-2.7,-0.4,0.4,2.7", "0.043"),
    "randomized response": randomized_response("0.7"),
    "PBM": poisson_binomial(5, epsilon="1.3"),
}
# Inputs at ends, at bins, just below a bin, and between bins.
INPUTS = (-1.0, -0.9, -0.5, float(np.nextafter(-0.4, -1)), -0.4, 0.0, 0.123, 0.4, 0.9, 1.0)
DRAW_COUNT = 20_000
# A correct sampler has a smaller p-value with this probability. The seeds are fixed.
MIN_PVALUE = 1e-4


def compute_pvalue(draws: np.ndarray, outputs: np.ndarray, law: np.ndarray) -> float:
    """Compute the p-value of the chi-square test of draws against a law.

    Args:
        draws: the drawn outputs. Shape (n,).
        outputs: the possible outputs. Shape (m,).
        law: the probabilities of the outputs. Shape (m,).
    """
    counts = (draws[:, None] == outputs).sum(axis=0)
    assert counts.sum() == draws.size  # Only outputs are drawn.
    has_mass = law > 0
    assert not counts[~has_mass].any()
    expected_counts = draws.size * law[has_mass] / law[has_mass].sum()
    return float(chisquare(counts[has_mass], expected_counts).pvalue)


class FixedSource(Source):
    """A source of "random" bits that a test chooses.

    Args:
        byte: the value of every byte that is drawn.
        words: the 16-bit words that are drawn, in order.
    """

    def __init__(self, byte: int, words: list[int]) -> None:
        super().__init__()
        self.byte = byte
        self.words = [*words]

    def draw_uint8(self, count: int) -> np.ndarray:
        """Return the chosen byte `count` times."""
        return np.full(count, self.byte, dtype=np.uint8)

    def draw_uint16(self, count: int) -> np.ndarray:
        """Return the next `count` words."""
        return np.array([self.words.pop(0) for _ in range(count)], dtype=np.uint16)


@pytest.mark.parametrize("name", QUANTIZERS)
def test_published_quantizers_draw_from_their_law(name: str):
    quantizer = QUANTIZERS[name]
    for seed, x in enumerate(INPUTS):
        draws = quantizer.sample(np.full(DRAW_COUNT, x), insecure_seed=seed)
        assert compute_pvalue(draws, quantizer.outputs, quantizer.probabilities(x)) > MIN_PVALUE


@pytest.mark.parametrize(("offset", "output"), [(-1, 1), (1, 0)], ids=["below", "above"])
def test_draws_are_decided_exactly_where_floats_are_equal(offset: int, output: int):
    """The sampler takes the right end's law if a uniform U is below t, the place in the piece.

    Here U differs from t in the last of 72 bits only, which a float does not resolve.
    """
    two_point = Quantizer.from_ends("x", [0, 1], [-1, 1], [[[1, 0], [0, 1]]])
    t = (Fraction(0.1) + 1) / 2
    u = int(t * (1 << 72)) + offset  # In units of 2^-72.
    words = [u >> shift & 0xFFFF for shift in (48, 32, 16, 0)]
    # The last word draws from the end law, which has one outcome.
    source = FixedSource(u >> 64, [*words, 7])
    sampler = AffineSampler(two_point.knots, two_point.ends, source)
    assert sampler.positions(np.array([0.1])).tolist() == [output]


def test_the_law_of_a_float_input_is_the_exact_law_there():
    quantizer = QUANTIZERS["RQM, asymmetric bins"]
    assert isinstance(quantizer, Quantizer)
    for x in INPUTS:
        np.testing.assert_allclose(quantizer.probabilities(x), quantizer.law(x).floats, atol=1e-15)


@pytest.mark.parametrize(
    ("bins", "options"),
    [
        ("-3,-0.5,0.5,3", {"knots": 11}),
        ("-3,-0.5,0.5,3", {"method": "optm"}),
        ("-4,0.2,0.6,4", {"method": "product"}),
        ("-3,-1.5,0,1.5,3", {"method": "mvu"}),
        ("-3,-0.5,0.5,3", {"metric": "absolute", "knots": 9}),
    ],
)
def test_designs_draw_from_the_certified_law_in_their_file(
    bins: str, options: dict, tmp_path: Path
):
    mechanism = save_design(bins, options, tmp_path / "q.json")
    mechanism_in_file = check(tmp_path / "q.json").mechanism
    for seed, x in enumerate((-1.0, -0.5, 0.2, 0.31, 0.5, 1.0)):
        law = mechanism.probabilities(x)
        draws = mechanism.sample(np.full(DRAW_COUNT, x), insecure_seed=seed)
        assert compute_pvalue(draws, mechanism.outputs, law) > MIN_PVALUE
        answer = Fraction(str(x))
        draws_of_file = wb.sample(mechanism_in_file, 2000, answer=answer, insecure_seed=seed)
        assert compute_pvalue(draws_of_file, mechanism_in_file.outputs, law) > MIN_PVALUE


def save_design(bins: str, options: dict, path: Path) -> Any:
    """Design a quantizer at ε = 1, save its certificate, and return the mechanism."""
    design = wb.design(wb.Quantization(bins), epsilon=1, **options)
    save(design.certificate, path)
    return design.mechanism


@pytest.mark.parametrize(
    ("old", "new"), [('"1"', '"9/10"'), ("0x", "0x1")], ids=["epsilon", "weight"]
)
def test_a_changed_certificate_is_refused(old: str, new: str, tmp_path: Path):
    path = tmp_path / "q.json"
    save_design("-3,-0.5,0.5,3", {}, path)
    content = path.read_text("utf-8")
    path.write_text(json.dumps(json.loads(content)).replace(old, new, 1), "utf-8")
    with pytest.raises(wb.WorkbenchError):
        check(path)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "7/3"])
@pytest.mark.parametrize("levels", [2, 4, 9])
def test_the_poisson_binomial_mechanism_keeps_a_budget_exactly(epsilon: str, levels: int):
    quantizer = poisson_binomial(levels, epsilon=epsilon)
    assert sign_exp(quantizer.ratio, Fraction(1), Fraction(epsilon)) <= 0  # ratio <= e^ε
    assert quantizer.epsilon > float(Fraction(epsilon)) * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "7/3"])
def test_randomized_response_keeps_a_budget_exactly(epsilon: str):
    assert audit_extremes(randomized_response(epsilon), 0).meets("pure", epsilon)
