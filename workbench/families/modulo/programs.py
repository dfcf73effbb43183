"""Instances of the noise models: LP (14), the DP-LP, the literal MILP (13), the same by patterns, minimum δ (15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.modulo_holes import facts, hole_search, weights
from models.modulo_patterns import Facts, Noise, milp
from workbench.families.modulo.family import FAMILY
from workbench.families.programs import Instance, Judged, as_delta, certified_or_not
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify
from workbench.privacy.repair import exact_loss

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Case:
    """One request as it is spelled. patterns: states the MILP by patterns (models.modulo_patterns) instead of the
    literal one."""

    given: Mapping[str, str]
    patterns: bool = False

    @lru_cache  # noqa: B019  (cases live as long as the process)
    def request(self) -> Any:
        exact = {
            name: FAMILY.option(name).of(int(text) if text.isdigit() else text or True)
            for name, text in self.given.items()
        }
        least = {"minimise": "delta"} if "max_loss" in exact else {}
        return FAMILY.spelled(**exact, **least)

    @property
    def words(self) -> str:
        """The parameters."""
        request, given = self.request(), self.given
        most = request.max_loss
        limit = f"delta = {given.get('delta', '0')}" if most is None else f"{request.loss} <= {float(most):g}"
        epsilon = given["epsilon"]
        return f"{request.question!r}, {request.notion}, epsilon = {epsilon}, {limit}, loss {request.loss}"

    @lru_cache  # noqa: B019
    def build(self) -> tuple[Any, Mapping[str, Any]]:
        request = self.request()
        if not self.patterns:
            return request.model().program, request.parameters()
        odds, q = np.exp([float(value) for value in request.budgets.values()]), request.question
        noise = Noise(q.sizes, tuple(request.budgets), odds, request.losses, float(request.delta))
        known = Facts.none(noise)
        if noise.error_rate:
            w = weights(noise)
            holes = hole_search(noise, w)
            known = facts(noise, w, holes.zero, holes.delta, known.kept)
        return milp(noise, known, f"noise MILP by patterns on {q.order}"), {}

    def judge(self, x: Vector, objective: float) -> Judged:
        request, (program, _) = self.request(), self.build()
        budgets, notion, most = request.budgets, request.notion, request.max_loss
        mechanism = AdditiveNoise.from_pmf(request.question, np.maximum(program.block("f").read(x), 0.0))
        claimed = request.delta if most is None else as_delta(objective)
        privacy = audit(mechanism, budgets)

        def price(certificate: Any) -> float | None:
            loss = exact_loss(certificate.mechanism, request.losses)
            if most is None:
                return float(loss)
            if loss > most * (1 + Fraction(1, 10**9)):
                return None  # private, but its δ is that of a larger budget
            return float(audit(certificate.mechanism, budgets).worst(notion).measured.upper)

        certified, value = certified_or_not(lambda: certify(mechanism, notion, request.epsilon, claimed), price)
        exact, private = float(privacy.worst(notion).measured.upper), privacy.meets(notion, budgets, claimed)
        largest = float(max(budgets.values()))
        return Judged(largest, float(claimed), privacy.pure_epsilon, exact, private, certified, value)


def instances() -> list[Instance]:
    """The noise instances of the suites: a line of the table each."""
    return [_instance(*map(str.strip, line.split("|"))) for line in _TABLE.strip().splitlines()]


def _instance(name: str, suite: str, model: str, request: str) -> Instance:
    given = {name: text for name, _, text in (word.partition("=") for word in request.split())}
    case = _Case(given, "patterns" in model)
    return Instance(f"noise-{name}", model, case.build, case.judge, suite == "small", suite == "library", case.words)


# name, suite, model, request; the library alone has other sizes, losses and relations, up
# to 10^5 non-zeros.
_TABLE = """
lp-n8 | small | LP (14) | n=8 max_shift=3 notion=pdp epsilon=1
lp-n64 | standard | LP (14) | n=64 max_shift=3 notion=pdp epsilon=1
lp-n200 | standard | LP (14) | n=200 max_shift=4 notion=pdp epsilon=0.5 loss=squared
lp-metric-n24 | standard | LP (14), one ε per difference | n=24 max_shift=4 notion=pdp epsilon=1=0.25,2=0.5,3=0.75,4=1.0
lp-vector-5x5 | standard | LP (14), vector query | sizes=5x5 shifts=0,1;1,0;1,1 notion=pdp epsilon=1
dp-n8 | small | DP-LP | n=8 max_shift=3 notion=dp epsilon=1.5 delta=0.1
dp-n64 | standard | DP-LP | n=64 max_shift=3 notion=dp epsilon=1 delta=0.01 loss=squared
dp-tiny-delta-n159 | standard | DP-LP, δ = 1e-8 | n=159 max_shift=1 notion=dp epsilon=2 delta=1e-8
dp-vector-5x5 | standard | DP-LP, vector query | sizes=5x5 shifts=0,1;1,0;1,1 notion=dp epsilon=1 delta=0.05
min-delta-dp-n16 | standard | minimum δ by DP-LP | n=16 max_shift=3 notion=dp epsilon=1 max_loss=0.6
milp-n8 | small | MILP (13) | n=8 max_shift=3 notion=pdp epsilon=1.5 delta=0.1
milp-directed-n8 | standard | MILP (13) | n=8 max_shift=3 directed notion=pdp epsilon=1.5 delta=0.1212
milp-n12 | standard | MILP (13) | n=12 max_shift=3 notion=pdp epsilon=1 delta=0.05
milp-set-n16 | standard | MILP (13) | n=16 shifts=1,3,5,6 directed notion=pdp epsilon=1 delta=0.1
milp-tiny-delta-n12 | standard | MILP (13), δ = 1e-6 | n=12 max_shift=2 notion=pdp epsilon=1.5 delta=1e-6
milp-squared-n10 | standard | MILP (13) | n=10 max_shift=2 notion=pdp epsilon=1 delta=0.05 loss=squared
milp-vector-3x3 | standard | MILP (13), vector query | sizes=3x3 shifts=0,1;1,0 notion=pdp epsilon=1 delta=0.1
min-delta-milp-n8 | standard | minimum δ by MILP (15) | n=8 max_shift=3 notion=pdp epsilon=1.5 max_loss=0.5
patterns-n16 | standard | MILP by patterns | n=16 max_shift=3 notion=pdp epsilon=1 delta=0.1
patterns-set-n24 | standard | MILP by patterns | n=24 shifts=1,3,5,6 notion=pdp epsilon=1 delta=0.05
lp-n2-m1 | library | LP (14) | n=2 max_shift=1 notion=pdp epsilon=1
lp-n4-m1 | library | LP (14) | n=4 max_shift=1 notion=pdp epsilon=1
lp-n16-m2 | library | LP (14) | n=16 max_shift=2 notion=pdp epsilon=1
lp-n32-m5 | library | LP (14) | n=32 max_shift=5 notion=pdp epsilon=1
lp-n100-m8 | library | LP (14) | n=100 max_shift=8 notion=pdp epsilon=1
lp-n500-m6 | library | LP (14) | n=500 max_shift=6 notion=pdp epsilon=1
lp-n1000-m12 | library | LP (14) | n=1000 max_shift=12 notion=pdp epsilon=1
lp-n3000-m8 | library | LP (14) | n=3000 max_shift=8 notion=pdp epsilon=1
lp-n20-eta-squared | library | LP (14) | n=20 max_shift=3 notion=pdp epsilon=0.8 loss=eta-squared
lp-n20-squared | library | LP (14) | n=20 max_shift=3 notion=pdp epsilon=0.8 loss=squared
lp-n20-circular-squared | library | LP (14) | n=20 max_shift=3 notion=pdp epsilon=0.8 loss=circular-squared
lp-n20-worst-squared | library | LP (14) | n=20 max_shift=3 notion=pdp epsilon=0.8 loss=worst-squared
lp-n30-eps0.01 | library | LP (14) | n=30 max_shift=2 notion=pdp epsilon=0.01
lp-n30-eps0.1 | library | LP (14) | n=30 max_shift=2 notion=pdp epsilon=0.1
lp-n30-eps4 | library | LP (14) | n=30 max_shift=2 notion=pdp epsilon=4
lp-n30-eps10 | library | LP (14) | n=30 max_shift=2 notion=pdp epsilon=10
lp-directed-n50 | library | LP (14) | n=50 max_shift=4 directed notion=pdp epsilon=1 loss=eta-squared
lp-vector-3x3x3 | library | LP (14), vector query | sizes=3x3x3 shifts=0,0,1;0,1,0;1,0,0 notion=pdp epsilon=1
lp-vector-16x16 | library | LP (14), vector query | sizes=16x16 shifts=0,1;1,0;1,1 notion=pdp epsilon=0.5 loss=squared
dp-n4-m1 | library | DP-LP | n=4 max_shift=1 notion=dp epsilon=1 delta=0.1 loss=squared
dp-n16-m2 | library | DP-LP | n=16 max_shift=2 notion=dp epsilon=1 delta=0.001 loss=squared
dp-n32-m4 | library | DP-LP | n=32 max_shift=4 notion=dp epsilon=1 delta=0.05 loss=squared
dp-n128-m4 | library | DP-LP | n=128 max_shift=4 notion=dp epsilon=1 delta=0.01 loss=squared
dp-n400-m3 | library | DP-LP | n=400 max_shift=3 notion=dp epsilon=1 delta=0.001 loss=squared
dp-n1000-m4 | library | DP-LP | n=1000 max_shift=4 notion=dp epsilon=1 delta=0.001 loss=squared
dp-vector-6x6 | library | DP-LP, vector query | sizes=6x6 shifts=0,1;1,0 notion=dp epsilon=1 delta=0.02 loss=squared
min-delta-dp-n8 | library | minimum δ by DP-LP | n=8 max_shift=2 notion=dp epsilon=1 max_loss=0.4
min-delta-dp-n64 | library | minimum δ by DP-LP | n=64 max_shift=2 notion=dp epsilon=1 max_loss=0.5
milp-n4-m1 | library | MILP (13) | n=4 max_shift=1 notion=pdp epsilon=1 delta=0.1
milp-n6-m2 | library | MILP (13) | n=6 max_shift=2 notion=pdp epsilon=1 delta=0.05
milp-n9-m2 | library | MILP (13) | n=9 max_shift=2 notion=pdp epsilon=1 delta=0.02
milp-n14-m1 | library | MILP (13) | n=14 max_shift=1 notion=pdp epsilon=1 delta=0.05
milp-circular-n9 | library | MILP (13) | n=9 max_shift=2 notion=pdp epsilon=1 delta=0.05 loss=circular-squared
milp-vector-2x4 | library | MILP (13), vector query | sizes=2x4 shifts=0,1;1,0 notion=pdp epsilon=1 delta=0.05
patterns-n12-m2 | library | MILP by patterns | n=12 max_shift=2 notion=pdp epsilon=1 delta=0.05
patterns-n32-m3 | library | MILP by patterns | n=32 max_shift=3 notion=pdp epsilon=1 delta=0.05
"""
