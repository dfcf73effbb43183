"""Instances of the channel LP: labels with all pairs as neighbours, counts with consecutive ones, DP, unbiased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.channel import ChannelModel, consecutive
from models.losses import loss_named
from workbench.exact.numbers import Real, exact
from workbench.families.programs import Instance, Judged, certified_or_not
from workbench.mechanisms.channel import Channel
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify

__all__ = ["instances"]


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Case:
    """Labels 0..k-1, uniform, onto outputs low..high."""

    k: int
    epsilon: Real
    loss: str = "squared"
    delta: Real = 0
    counts: bool = False
    outputs: tuple[int, int] | None = None
    constraints: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The parameters."""
        relation = "counts" if self.counts else "all pairs"
        low, high = self.outputs or (0, self.k - 1)
        more = f", {', '.join(self.constraints)}" if self.constraints else ""
        return (
            f"labels 0..{self.k - 1}, uniform, outputs {low}..{high}, {relation}, epsilon = {self.epsilon}, "
            f"delta = {self.delta}, {self.loss} loss{more}"
        )

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return consecutive(self.k) if self.counts else tuple(combinations(range(self.k), 2))

    @lru_cache  # noqa: B019  (instances live as long as the process)
    def model(self) -> ChannelModel:
        labels = np.arange(self.k, dtype=float)
        low, high = self.outputs or (0, self.k - 1)
        outputs = np.arange(low, high + 1, dtype=float)
        pairs = self.pairs if self.counts or self.delta else None
        return ChannelModel(
            labels,
            outputs,
            np.full(self.k, 1 / self.k),
            loss_named(self.loss).matrix(outputs, labels),
            pairs,
            (0,) * len(pairs or ()),
            bool(self.delta),
            self.constraints,
        )

    def build(self) -> tuple[Any, Mapping[str, Any]]:
        model = self.model()
        return model.program, model.values([float(exact(self.epsilon, "epsilon"))], float(self.delta))

    def judge(self, x: Vector, objective: float) -> Judged:
        model, epsilon = self.model(), exact(self.epsilon, "epsilon")
        channel = Channel.from_rows(np.maximum(model.program.block("M").read(x), 0.0))
        notion = "dp" if self.delta else "pure"
        privacy = audit(Channel.of(channel, self.pairs), epsilon)
        unbiased = "unbiased" in self.constraints
        means: dict[str, Any] = {}
        if unbiased:
            means = {
                "outputs": [Fraction(o) for o in model.outputs],
                "unbiased_for": [Fraction(y) for y in model.labels],
            }
        certified, value = certified_or_not(
            lambda: certify(Channel.of(channel, self.pairs), notion, epsilon=epsilon, delta=self.delta, **means),
            lambda certificate: float(certificate.mechanism.expected(model.loss)),
        )
        exact_delta = privacy.dp_delta.upper if self.delta else None
        return Judged(
            float(epsilon),
            float(self.delta),
            privacy.pure_epsilon,
            exact_delta,
            privacy.meets(notion, epsilon, self.delta),
            certified,
            value,
        )


def instances() -> list[Instance]:
    """The channel instances of the suites."""
    cases: list[tuple[str, str, _Case, bool | None]] = [  # None: of the library alone
        ("channel-labels-k8", "channel LP, all pairs", _Case(8, 1), True),
        ("channel-labels-k32", "channel LP, all pairs", _Case(32, 2), False),
        ("channel-absolute-k20", "channel LP, all pairs", _Case(20, "0.5", "absolute"), False),
        ("channel-counts-k16", "channel LP, counts", _Case(16, 1, "error-rate", counts=True), False),
        ("channel-counts-dp-k16", "channel LP, counts, DP", _Case(16, 1, "squared", "0.01", counts=True), False),
        ("channel-unbiased-k6", "channel LP, unbiased",
         _Case(6, 2, outputs=(-10, 15), constraints=("unbiased",)), False),
    ]  # fmt: skip
    cases += [(f"channel-{name}", f"channel LP, {kind}", case, None) for name, kind, case in _library()]
    return [
        Instance(name, model, case.build, case.judge, bool(small), small is None, case.words)
        for name, model, case, small in cases
    ]


def _library() -> list[tuple[str, str, _Case]]:
    """Those of the library alone: other sizes, losses and constraints, up to 10^5 non-zeros."""
    named = ("row-monotone", "column-monotone", "symmetric", "honest")
    return [
        *((f"labels-k{k}", "all pairs", _Case(k, 1)) for k in (2, 3, 5, 12, 50, 128)),
        *((f"labels-k24-eps{epsilon}", "all pairs", _Case(24, epsilon)) for epsilon in ("0.1", "4", "8")),
        *((f"labels-k12-{loss}", "all pairs", _Case(12, 1, loss)) for loss in ("absolute", "error-rate")),
        *((f"counts-k{k}", "counts", _Case(k, 1, "squared", counts=True)) for k in (3, 8, 40, 100)),
        *(
            (f"counts-k12-{name}", "counts", _Case(12, 1, "error-rate", counts=True, constraints=(name,)))
            for name in named
        ),
        *((f"dp-k{k}", "all pairs, DP", _Case(k, 1, "squared", "0.05")) for k in (4, 10, 16)),
        ("counts-dp-k30", "counts, DP", _Case(30, "0.5", "absolute", "0.001", counts=True)),
        ("few-outputs-k20", "all pairs", _Case(20, 1, outputs=(5, 14))),
        ("unbiased-k4", "unbiased", _Case(4, 1, outputs=(-6, 9), constraints=("unbiased",))),
        (
            "unbiased-counts-k8",
            "counts, unbiased",
            _Case(8, 1, counts=True, outputs=(-12, 19), constraints=("unbiased",)),
        ),
    ]
