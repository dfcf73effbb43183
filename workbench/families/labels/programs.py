"""Instances of the channel LP: labels with all pairs as neighbours, counts with consecutive ones, DP, unbiased."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from workbench.exact.objects import Record
from workbench.families.labels.family import FAMILY
from workbench.mechanisms.channel import Channel
from workbench.pipeline.programs import BuiltProgram, Instance, Judged, try_certify
from workbench.pipeline.verification import expand_table
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify
from workbench.solvers.arrays import Vector


@dataclass(frozen=True, eq=False)
class _ChannelCase:
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
        labels, relation = f"0..{self.k - 1}", "counts" if "counts" in self.kind else "all pairs"
        words = (
            f"labels {labels}, uniform, outputs {self.outputs or labels}, {relation}, epsilon = {self.epsilon}, "
            f"delta = {self.delta}, {self.loss} loss{self.constraint and f', {self.constraint}'}"
        )
        name = "channel-" + self.name.format(**vars(self))
        return Instance(name, f"channel LP, {self.kind}", self.build, self.judge, self.suite, words)

    @cached_property
    def request(self) -> Any:
        relation = "consecutive" if "counts" in self.kind else "all"
        given = {name: getattr(self, name) for name in ("loss", "epsilon", "delta")}
        given |= {
            "outputs": self.outputs or None,
            "constraints": self.constraint,
            "neighbours": relation,
        }
        labels: Any = FAMILY.make_request_from_options(
            labels=f"0..{self.k - 1}", method="lp", **given
        )
        return labels.channel

    @cached_property
    def model(self) -> Any:
        return self.request.model()

    def build(self) -> BuiltProgram:
        values = self.model.values([float(self.request.claim.epsilon)], float(self.delta))
        return replace(self.model.program, scale=1.0), values

    def judge(self, x: Vector, objective: float) -> Judged:
        model, epsilon, notion = (
            self.model,
            self.request.claim.epsilon,
            self.request.claim.notion.name,
        )
        channel = Channel.from_pairs(
            np.maximum(model.program.block("M").read(x), 0.0), self.request.question.neighbour_pairs
        )
        privacy = audit(channel, epsilon)
        means: Record = {}
        if self.constraint == "unbiased":
            means = {
                "outputs": [*map(Fraction, model.outputs)],
                "unbiased_for": [*map(Fraction, model.labels)],
            }
        certified, value = try_certify(
            lambda: certify(channel, notion, epsilon=epsilon, delta=self.delta, **means),
            lambda certificate: float(certificate.mechanism.expected_loss(model.loss)),
        )
        exact_delta = privacy.dp_delta.upper if self.delta else None
        private = privacy.meets(notion, epsilon, self.delta)
        return Judged(
            float(epsilon),
            float(self.delta),
            privacy.pure_epsilon,
            exact_delta,
            private,
            certified,
            value,
        )


def instances() -> list[Instance]:
    """The channel instances of the suites."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["case"]
    return [_ChannelCase(**given).instance for table in tables for given in expand_table(table)]
