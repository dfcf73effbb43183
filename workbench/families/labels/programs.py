"""Instances of the channel LP: labels with all pairs as neighbours, counts with consecutive ones, DP, unbiased."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from models.channel import ChannelModel, consecutive
from models.losses import loss_named
from solvers.arrays import Vector
from workbench.exact.numbers import exact
from workbench.exact.objects import Pair, Record
from workbench.families.programs import Built, Instance, Judged, certified_or_not
from workbench.families.verification import product
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify


@dataclass(frozen=True, eq=False)
class _Case:
    """Labels 0..k-1, uniform, onto outputs low..high; of counts, the consecutive ones are neighbours."""

    name: str
    kind: str
    k: int
    suite: str = "default"
    epsilon: int | str = 1
    loss: str = "squared"
    delta: int | str = 0
    outputs: str = ""
    constraint: str = ""

    @property
    def instance(self) -> Instance:
        relation = "counts" if "counts" in self.kind else "all pairs"
        words = (
            f"labels 0..{self.k - 1}, uniform, outputs {self.outputs or f'0..{self.k - 1}'}, {relation}, "
            f"epsilon = {self.epsilon}, delta = {self.delta}, {self.loss} loss"
        )
        words += f", {self.constraint}" if self.constraint else ""
        name = "channel-" + self.name.format(**vars(self))
        return Instance(name, f"channel LP, {self.kind}", self.build, self.judge, self.suite, words)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return consecutive(self.k) if "counts" in self.kind else tuple(combinations(range(self.k), 2))

    @cached_property
    def model(self) -> ChannelModel:
        labels = np.arange(self.k, dtype=float)
        outputs = Labels.parse(self.outputs).values if self.outputs else labels
        pairs = self.pairs if "counts" in self.kind or self.delta else None
        return ChannelModel(
            labels,
            outputs,
            np.full(self.k, 1 / self.k),
            loss_named(self.loss).matrix(outputs, labels),
            pairs,
            (0,) * len(pairs or ()),
            bool(self.delta),
            (self.constraint,) if self.constraint else (),
        )

    def build(self) -> Built:
        return self.model.program, self.model.values([float(exact(self.epsilon, "epsilon"))], float(self.delta))

    def judge(self, x: Vector, objective: float) -> Judged:
        model, epsilon = self.model, exact(self.epsilon, "epsilon")
        channel = Channel.of(np.maximum(model.program.block("M").read(x), 0.0), self.pairs)
        notion = "dp" if self.delta else "pure"
        privacy = audit(channel, epsilon)
        means: Record = {}
        if self.constraint == "unbiased":
            means = {"outputs": [*map(Fraction, model.outputs)], "unbiased_for": [*map(Fraction, model.labels)]}
        certified, value = certified_or_not(
            lambda: certify(channel, notion, epsilon=epsilon, delta=self.delta, **means),
            lambda certificate: float(certificate.mechanism.expected(model.loss)),
        )
        exact_delta = privacy.dp_delta.upper if self.delta else None
        private = privacy.meets(notion, epsilon, self.delta)
        return Judged(float(epsilon), float(self.delta), privacy.pure_epsilon, exact_delta, private, certified, value)


def instances() -> list[Instance]:
    """The channel instances of the suites."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["case"]
    return [_Case(**given).instance for table in tables for given in product(table)]
