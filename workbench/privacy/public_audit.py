"""Audit a mechanism exactly, or bound δ of a joint release that is too large for an exact audit.

This is the audit of `wb.audit` and of `workbench audit`. Other modules call
`workbench.privacy.audit.audit`, which is exact or refuses.
"""

from __future__ import annotations

from typing import Any

from workbench.mechanisms.mechanism import Budget, as_mechanism
from workbench.privacy.audit import Privacy
from workbench.privacy.audit import audit as audit_exactly
from workbench.privacy.joint_bound import bound_release, is_bounded_on_grid


def audit(
    mechanism: Any, epsilon: Budget | None = None, *, loss: str | None = None, data: Any = None
) -> Privacy:
    """Audit all comparisons of a mechanism exactly, each at its budget.

    A joint release may have too many privacy losses for an exact audit. The result then has proven
    bounds on δ alone (`delta_bounds`).

        >>> import workbench as wb
        >>> noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
        >>> privacy = wb.audit(noise, 1, loss="squared", data=[0, 0, 2])
        >>> privacy.pure_epsilon
        0.6931471805599454
        >>> float(privacy.error.mean_error), float(privacy.error.worst_error)
        (1.25, 1.25)
        >>> privacy.error.worst_input
        0

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        epsilon: A finite number >= 0, or a mapping label -> number. Labels are shifts of additive
            noise or pairs of rows of a channel. Default: the ε of the certificate, otherwise 0.
        loss: Name of a loss, as `compute_expected_error` accepts. The audit then has the exact
            expected loss as `error`.
        data: Inputs to average over, as `compute_expected_error` accepts. It may also be a CSV
            file with one column. With data alone the loss is "absolute".

    Raises:
        NotProven: The bounds on δ of a joint release need too much work.
        InvalidRequest: An argument is wrong or does not fit the mechanism.
    """
    if is_bounded_on_grid(as_mechanism(mechanism)):
        return bound_release(mechanism, epsilon, loss=loss, data=data)
    return audit_exactly(mechanism, epsilon, loss=loss, data=data)
