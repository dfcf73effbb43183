"""A certificate: a mechanism in integers and a claim about it, proven from nothing else.

    mechanism    noise: sizes, shifts, weights · channel: rows of weights, pairs · quantizer: knots, outputs, end laws
    claim        notion "pdp" | "dp" | "pure" | "metric", epsilon (one, or one for each shift or pair), delta
    objective    a cost and what the mechanism costs, recomputed
    bias         max |E[output | input] - input|, where the mechanism is one of numbers, recomputed
    record       solver, versions, its claim and bound: written down, not proven here

The claim is decided by the exact audit every time a certificate is made or read; what a file says counts for nothing.
See `workbench.privacy.certificate_file` for the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

from workbench.errors import InvalidRequest, NotCertified
from workbench.files import spelled
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.piecewise import PiecewiseAffine, mean
from workbench.numbers import ExpNumber, positive, probability, round_down, round_up
from workbench.privacy.audit import Privacy, audit_subject
from workbench.privacy.pdp_quantizer import pdp_delta
from workbench.privacy.relation import Auditable, ChannelPairs, Noise
from workbench.privacy.relation_quantizer import AllInputs

__all__ = ["NOTIONS", "Bias", "Certificate", "Mechanism", "Objective", "subject_of"]

NOTIONS = ("pdp", "dp", "pure", "metric")
Mechanism: TypeAlias = "AdditiveNoise | ChannelPairs | PiecewiseAffine"


@dataclass(frozen=True)
class Objective:
    """What a mechanism costs: Σ f(η) cost(η), or 1/n Σ Pr[k|q] cost(q, k) over equally likely rows.

    name: of the cost; value: a number the exact cost does not exceed, and at most 1e-15 (relative) above it.
    costs: (N,), rationals; None for "error-rate" of noise, which needs none.
    """

    name: str
    value: Fraction
    costs: tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        # it is printed among what is proven, where a file must not write sentences of its own
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", self.name):
            InvalidRequest.must("the name of an objective", "a word such as squared", repr(self.name))

    def of(self, mechanism: Mechanism) -> Fraction:
        """The exact cost of a mechanism. Raises InvalidRequest when these costs do not fit it."""
        if not isinstance(mechanism, AdditiveNoise):
            raise InvalidRequest("objective must be left out of the certificate of a channel or a quantizer.")
        k, total = mechanism.masses.integers, mechanism.masses.total
        if (self.costs is None) != (self.name == "error-rate"):
            raise InvalidRequest("costs must be given for every objective but error-rate, and not there.")
        if self.costs is None:
            return Fraction(total - k[0], total)
        if len(self.costs) != len(k):
            InvalidRequest.must("costs", f"{len(k)} numbers", len(self.costs))
        return sum((c * w for c, w in zip(self.costs, k, strict=True) if c and w), Fraction(0)) / total

    def holds(self, mechanism: Mechanism) -> bool:
        """Whether `value` is what the mechanism costs, rounded up by at most 1e-15 of it."""
        exact = self.of(mechanism)
        return exact <= self.value <= exact + max(abs(exact), Fraction(1, 10**300)) / 10**15


@dataclass(frozen=True)
class Bias:
    """The mean of the output on every input, compared with what it should be.

    outputs: (m,) values published; inputs: one for every row (a quantizer has its own); worst: max |E[o|y] - y|, exact.
    """

    outputs: tuple[Fraction, ...]
    inputs: tuple[Fraction, ...]
    worst: Fraction

    @classmethod
    def of(cls, mechanism: Mechanism, outputs: Sequence[Fraction], inputs: Sequence[Fraction]) -> Bias:
        """The exact bias of a channel or quantizer. Raises InvalidRequest."""
        if isinstance(mechanism, PiecewiseAffine):
            return cls(mechanism.outputs, mechanism.places, mechanism.bias)
        if not isinstance(mechanism, ChannelPairs):
            raise InvalidRequest("bias must be left out of the certificate of additive noise.")
        rows = mechanism.channel.rows
        if len(outputs) != len(rows[0]) or len(inputs) != len(rows):
            raise InvalidRequest(f"A {len(rows)} x {len(rows[0])} channel needs as many inputs and outputs.")
        worst = max(abs(mean(row, outputs) - y) for row, y in zip(rows, inputs, strict=True))
        return cls(tuple(outputs), tuple(inputs), worst)


@dataclass(frozen=True)
class Certificate:
    """A mechanism that meets (epsilon, delta) in a notion: nothing else can be built.

    epsilon: one for all, or a mapping shift (or ordered pair of rows) -> ε. Decimals are
    meant: 0.1 is 1/10. record: what is known beyond the proof.
    Raises NotCertified when the exact audit refuses the claim, InvalidRequest when it makes no sense.
    """

    mechanism: Mechanism
    notion: str
    epsilon: Fraction | Mapping[tuple[int, ...], Fraction]
    delta: Fraction = Fraction(0)
    objective: Objective | None = None
    bias: Bias | None = None
    record: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.notion not in NOTIONS:
            InvalidRequest.must("notion", f"one of {', '.join(NOTIONS)}", self.notion)
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        if self.delta and self.notion in {"pure", "metric"}:
            InvalidRequest.must("delta", f"0 for the notion {self.notion}", self.delta)
        if not isinstance(self.epsilon, Mapping):
            object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon", or_zero=True))
        elif isinstance(self.mechanism, PiecewiseAffine):
            raise InvalidRequest("epsilon must be one number for a mechanism on real inputs.")
        else:  # a copy that nobody can change afterwards
            budgets = subject_of(self.mechanism).budgets(self.epsilon)
            object.__setattr__(self, "epsilon", MappingProxyType(budgets))
        object.__setattr__(self, "record", MappingProxyType(dict(self.record)))
        if not self.holds():
            raise NotCertified(self.refusal())
        if self.objective is not None and not self.objective.holds(self.mechanism):
            exact = float(self.objective.of(self.mechanism))
            raise NotCertified(f"The {self.objective.name} is {exact!r}, not {float(self.objective.value)!r}.")
        if self.bias is not None:
            found = Bias.of(self.mechanism, self.bias.outputs, self.bias.inputs)
            if found != self.bias:
                raise NotCertified(f"The bias is {float(found.worst)!r}, not {float(self.bias.worst)!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and messages between processes are proven again."""
        epsilon = dict(self.epsilon) if isinstance(self.epsilon, Mapping) else self.epsilon
        parts = (self.mechanism, self.notion, epsilon, self.delta, self.objective, self.bias, dict(self.record))
        return Certificate, parts

    @cached_property
    def privacy(self) -> Privacy:
        """The exact audit at the claimed ε."""
        return audit_subject(subject_of(self.mechanism), self.epsilon)

    @cached_property
    def continuous_pdp(self) -> ExpNumber:
        """The exact PDP δ of a mechanism on real inputs at the claimed ε."""
        assert isinstance(self.mechanism, PiecewiseAffine)
        assert not isinstance(self.epsilon, Mapping)
        return pdp_delta(self.mechanism, self.epsilon)

    def holds(self) -> bool:
        """Whether the exact audit meets the claim."""
        if isinstance(self.mechanism, PiecewiseAffine):
            if self.notion == "pdp":
                return self.continuous_pdp.compare(self.delta) <= 0
            if self.notion == "metric":
                reached = self.mechanism.metric_epsilon
                return reached is not None and not isinstance(self.epsilon, Mapping) and reached <= self.epsilon
        return self.privacy.meets(self.notion, self.epsilon, self.delta)

    def refusal(self) -> str:
        """Why the claim does not hold, in words."""
        if isinstance(self.mechanism, PiecewiseAffine) and self.notion == "metric":
            reached = self.mechanism.metric_epsilon
            found = "unbounded (the law jumps or vanishes)" if reached is None else repr(round_up(reached))
            return f"The mechanism misses the claim: exact metric epsilon is {found}."
        if isinstance(self.mechanism, PiecewiseAffine) and self.notion == "pdp":
            return f"The mechanism misses the claim: exact PDP delta is {self.continuous_pdp.upper!r}."
        return self.privacy.verdict(self.notion, self.epsilon, self.delta)

    @property
    def words(self) -> tuple[str, ...]:
        """What this certificate proves, one sentence each."""
        found = [f"{_what(self.mechanism)}."]
        if isinstance(self.mechanism, PiecewiseAffine) and self.notion == "metric":
            assert not isinstance(self.epsilon, Mapping)
            reached = round_up(self.mechanism.metric_epsilon or Fraction(0))
            law = "Pr[i|x] <= e^(epsilon |x-x'|) Pr[i|x'] for all inputs x, x' and every output i"
            found.append(f"{law}: metric epsilon is {reached!r}, asked {spelled(self.epsilon)}.")
        elif isinstance(self.mechanism, PiecewiseAffine) and self.notion == "pdp":
            assert not isinstance(self.epsilon, Mapping)
            found.append(
                f"For every two inputs the exact PDP delta is {self.continuous_pdp.upper!r} (rounded up) at epsilon = "
                f"{spelled(self.epsilon)}, asked {spelled(self.delta)}."
            )
        else:
            found.append(self.privacy.verdict(self.notion, self.epsilon, self.delta))
            p = self.privacy
            more = f"exact DP delta {p.dp_delta.upper!r}, pure epsilon {p.pure_epsilon!r}"
            if not isinstance(self.mechanism, PiecewiseAffine):
                more = f"exact PDP delta {round_up(p.pdp_delta)!r}, {more}"
            found.append(f"At that budget: {more} (each rounded up).")
            if p.subject.one_sided:
                found.append("Only one side of each pair of neighbours is protected (directed differences).")
        if self.objective is not None:
            by = "" if self.objective.costs is None else " from the costs in the file"
            found.append(f"Its {self.objective.name} is {round_up(self.objective.value)!r}, recomputed{by}.")
        if self.bias is not None:
            worst = self.bias.worst
            found.append("It is exactly unbiased." if not worst else f"Its largest bias is {round_up(worst)!r}.")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, and self-contained: see `workbench.privacy.certificate_file`."""
        from workbench.privacy.certificate_file import to_dict

        return to_dict(self)

    def __str__(self) -> str:
        return "\n".join(self.words)


def subject_of(mechanism: Mechanism) -> Auditable:
    """A mechanism with its neighbour relation. Raises InvalidRequest."""
    if isinstance(mechanism, AdditiveNoise):
        return Noise(mechanism)
    if isinstance(mechanism, PiecewiseAffine):
        return AllInputs(mechanism)
    if isinstance(mechanism, ChannelPairs):
        return mechanism
    return InvalidRequest.must("mechanism", "AdditiveNoise, ChannelPairs or PiecewiseAffine", type(mechanism).__name__)


def _what(mechanism: Mechanism) -> str:
    if isinstance(mechanism, AdditiveNoise):
        q = mechanism.question
        relation = "given differences only" if q.directed else "differences of either sign"
        group = " x ".join(map(str, q.sizes))
        return f"Additive noise modulo {group}, {len(q.differences)} neighbouring differences ({relation})"
    if isinstance(mechanism, PiecewiseAffine):
        low, high = round_down(mechanism.knots[0]), round_up(mechanism.knots[-1])
        count = len(mechanism.outputs)
        return f"A mechanism on real inputs in [{low:g}, {high:g}] with {count} outputs, any two inputs neighbours"
    rows, count = mechanism.channel.rows, len(mechanism.pairs)
    return f"A channel of {len(rows)} inputs and {len(rows[0])} outputs, {count} ordered pairs of neighbours"
