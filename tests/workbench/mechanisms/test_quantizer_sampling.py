"""Quantizers are sampled from the law that is audited (chi-square tests with fixed seeds)."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

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

MADE: dict[str, Quantizer | PoissonBinomial] = {
    "RQM": rqm("-2.7,-0.9,0.9,2.7", "0.22"),
    "RQM, asymmetric bins": rqm("-2,-0.3,0.4,3", "0.4"),
    "ERM": erm("-2.7,-0.4,0.4,2.7", "0.043"),
    "randomized response": randomized_response("0.7"),
    "PBM": poisson_binomial(5, epsilon="1.3"),
}
POINTS = (-1.0, -0.9, -0.5, float(np.nextafter(-0.4, -1)), -0.4, 0.0, 0.123, 0.4, 0.9, 1.0)
COUNT = 20_000


def fits(drawn: np.ndarray, outputs: np.ndarray, law: np.ndarray) -> float:
    counts = (drawn[:, None] == outputs).sum(axis=0)
    assert counts.sum() == drawn.size  # Only outputs are drawn.
    keep = law > 0
    assert not counts[~keep].any()
    return float(chisquare(counts[keep], drawn.size * law[keep] / law[keep].sum()).pvalue)


@pytest.mark.parametrize("name", MADE)
def test_published_quantizers_draw_from_their_law(name: str):
    made = MADE[name]
    for seed, x in enumerate(POINTS):
        assert (
            fits(
                made.sample(np.full(COUNT, x), insecure_seed=seed),
                made.outputs,
                made.probabilities(x),
            )
            > 1e-4
        )


def test_inputs_between_knots_are_decided_exactly_where_floats_cannot():
    """Some draws leave U < t open: t = 1/3, and a t whose float differs in late bits only."""
    third = Quantizer.from_ends("x", [0, 1], [-1, 1], [[[1, 0], [0, 1]]])

    class Fixed(Source):
        def __init__(self, byte: int, *words: int) -> None:
            super().__init__()
            self.byte, self.queue = byte, [*words]

        def draw_uint8(self, count: int) -> np.ndarray:
            return np.full(count, self.byte, dtype=np.uint8)

        def draw_uint16(self, count: int) -> np.ndarray:
            return np.array([self.queue.pop(0) for _ in range(count)], dtype=np.uint16)

    t = (Fraction(0.1) + 1) / 2
    # U is just below or just above t, in 8 + 4 * 16 bits.
    bits = int(t * (1 << 72))
    for value, output in ((bits - 1, 1), (bits + 1, 0)):
        words = [value >> shift & 0xFFFF for shift in (48, 32, 16, 0)]
        # The last word draws from the end law, which has one outcome.
        source = Fixed(value >> 64, *words, 7)
        assert AffineSampler(third.knots, third.ends, source).positions(
            np.array([0.1])
        ).tolist() == [output]


def test_the_law_of_a_float_input_is_the_exact_law_there():
    made = MADE["RQM, asymmetric bins"]
    assert isinstance(made, Quantizer)
    for x in POINTS:
        np.testing.assert_allclose(made.probabilities(x), made.law(x).floats, atol=1e-15)


@pytest.mark.parametrize(
    ("bins", "request_"),
    [
        ("-3,-0.5,0.5,3", {"knots": 11}),
        ("-3,-0.5,0.5,3", {"method": "optm"}),
        ("-4,0.2,0.6,4", {"method": "product"}),
        ("-3,-1.5,0,1.5,3", {"method": "mvu"}),
        ("-3,-0.5,0.5,3", {"metric": "absolute", "knots": 9}),
    ],
)
def test_designs_draw_from_the_certified_law_in_their_file(
    bins: str, request_: dict, tmp_path: Path
):
    made = wb.design(wb.Quantization(bins), epsilon=1, **request_)
    save(made.certificate, tmp_path / "q.json")
    proven = check(tmp_path / "q.json").mechanism
    for seed, x in enumerate((-1.0, -0.5, 0.2, 0.31, 0.5, 1.0)):
        law = made.mechanism.probabilities(x)
        assert (
            fits(
                made.mechanism.sample(np.full(COUNT, x), insecure_seed=seed),
                made.mechanism.outputs,
                law,
            )
            > 1e-4
        )
        drawn = wb.sample(proven, 2000, answer=Fraction(str(x)), insecure_seed=seed)
        assert fits(drawn, proven.outputs, law) > 1e-4


def test_a_changed_certificate_is_refused(tmp_path: Path):
    made = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1)
    path = tmp_path / "q.json"
    save(made.certificate, path)
    data = json.loads(path.read_text("utf-8"))
    assert data["claim"]
    for old, new in (('"1"', '"9/10"'), ("0x", "0x1")):
        path.write_text(json.dumps(data).replace(old, new, 1), "utf-8")
        with pytest.raises(wb.WorkbenchError):
            check(path)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "7/3"])
def test_mechanisms_made_for_a_budget_keep_it_exactly(epsilon: str):
    for levels in (2, 4, 9):
        made = poisson_binomial(levels, epsilon=epsilon)
        assert sign_exp(made.ratio, Fraction(1), Fraction(epsilon)) <= 0
        assert made.epsilon > float(Fraction(epsilon)) * (1 - 1e-9)
    assert audit_extremes(randomized_response(epsilon), 0).meets("pure", epsilon)
