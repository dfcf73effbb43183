"""Make test programs for solvers: channel LPs of label problems.

A *suite* is a named set of programs on which solvers are compared (`workbench programs`). Each case
of `programs.toml` becomes an `Instance`, which builds one program and judges a solver's solution:
it audits and certifies the channel. To add a program, add a case to the table.

The neighbours are all pairs of labels, or consecutive labels only ("counts"). Some programs have
δ > 0 or must be unbiased.
"""

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
    """One case of the table: labels 0..k-1 with a uniform prior, and listed outputs.

    Attributes:
        name: format string of these attributes that names the instance, such as "labels-k{k}".
        kind: end of the model's name. If it contains "counts", only consecutive labels are
            neighbours. Otherwise all pairs of labels are neighbours.
        k: number of labels.
        suite: name of the suite, "small", "default" or "library".
        epsilon: ε of the budget, > 0.
        loss: name of the loss.
        delta: δ of the budget, in [0, 1].
        outputs: outputs, "LOW..HIGH". Empty: the labels.
        constraint: name of a constraint. Empty: none.
    """

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
        """Return the instance of the case."""
        labels = f"0..{self.k - 1}"
        relation = "counts" if "counts" in self.kind else "all pairs"
        description = (
            f"labels {labels}, uniform, outputs {self.outputs or labels}, {relation}, epsilon = "
            f"{self.epsilon}, delta = {self.delta}, {self.loss} loss"
        )
        if self.constraint:
            description += f", {self.constraint}"
        name = "channel-" + self.name.format(**vars(self))
        model = f"channel LP, {self.kind}"
        return Instance(name, model, self.build, self.judge, self.suite, parameters=description)

    @cached_property
    def request(self) -> Any:
        """Return the request for the channel."""
        label_request: Any = FAMILY.make_request_from_options(
            labels=f"0..{self.k - 1}",
            method="lp",
            loss=self.loss,
            epsilon=self.epsilon,
            delta=self.delta,
            outputs=self.outputs or None,
            constraints=self.constraint,
            neighbours="consecutive" if "counts" in self.kind else "all",
        )
        return label_request.channel_request

    @cached_property
    def model(self) -> Any:
        """Return the model of the request."""
        return self.request.model()

    def build(self) -> BuiltProgram:
        """Build the program, with variables in units of probability.

        Returns (program, values of its parameters).
        """
        values = self.model.values([float(self.request.claim.epsilon)], float(self.delta))
        return replace(self.model.program, scale=1.0), values

    def judge(self, x: Vector, objective: float) -> Judged:
        """Audit the channel of a solution exactly, and try to certify it.

        Args:
            x: values of the program's variables.
            objective: not used.

        Returns:
            The requested ε and δ; the exact pure ε and δ of the channel (δ is None if 0 was
            requested); whether the channel is private without repair; whether it could be
            certified; and the expected loss of the certified channel.
        """
        model = self.model
        epsilon = self.request.claim.epsilon
        notion = self.request.claim.notion.name
        masses = np.maximum(model.program.block("M").read(x), 0.0)
        channel = Channel.from_pairs(masses, self.request.question.neighbour_pairs)
        privacy = audit(channel, epsilon)
        # A certificate of an unbiased channel also proves its means.
        mean_options: Record = {}
        if self.constraint == "unbiased":
            mean_options = {
                "outputs": [*map(Fraction, model.outputs)],
                "unbiased_for": [*map(Fraction, model.labels)],
            }
        is_certified, certified_loss = try_certify(
            certify=lambda: certify(
                channel, notion, epsilon=epsilon, delta=self.delta, **mean_options
            ),
            loss=lambda certificate: float(certificate.mechanism.expected_loss(model.loss)),
        )
        return Judged(
            claimed_epsilon=float(epsilon),
            claimed_delta=float(self.delta),
            exact_epsilon=privacy.pure_epsilon,
            exact_delta=privacy.dp_delta.upper if self.delta else None,
            private=privacy.meets(notion, epsilon, self.delta),
            certified=is_certified,
            certified_objective=certified_loss,
        )


def instances() -> list[Instance]:
    """List the channel instances of the suites."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["case"]
    cases = []
    for table in tables:
        cases += [_ChannelCase(**fields) for fields in expand_table(table)]
    return [case.instance for case in cases]
