"""Compute the named losses ℓ(o, y) of publishing the output o for the label y.

>>> parse_loss("pinball:0.9")([1.0, 3.0], 2.0)  # outputs 1 and 3, label 2
array([0.9, 0.1])

The paper of the last column is Ghazi et al. 2022, "Regression with Label Differential Privacy". A
new loss needs an entry in LOSSES (and in _KINDS_WITHOUT_PARAMETER, or a check in `parse_loss`), a
formula in `Loss.__call__`, and a row in this table.

| name             | ℓ(o, y)                                     | paper (Sec. 2)              |
|------------------|---------------------------------------------|-----------------------------|
| squared          | (o - y)²                                    | ℓ_sq; its definition has a  |
|                  |                                             | factor ½, its tables do not |
| absolute         | abs(o - y)                                  | ℓ_abs                       |
| poisson          | o - y log o                                 | ℓ_Poi; negative for some    |
|                  |                                             | o, y                        |
| poisson-deviance | o - y + y log(y/o)                          | ℓ_Poi + y log y - y, which  |
|                  |                                             | is >= 0                     |
| error-rate       | 1 if o != y else 0                          | ℓ_0-1                       |
| pinball:τ        | τ (y - o) if o <= y else (1 - τ)(o - y)     | (quantile τ in (0, 1))      |
| huber:h          | r²/2 if r <= h else h (r - h/2),            | (h > 0)                     |
|                  | r = abs(o-y)                                |                             |

0 log 0 is 0, and ℓ_Poi(0, y) is infinite for y > 0. Therefore the bound B in Theorem 7 of the paper
is infinite if 0 is a label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.solvers.arrays import Vector

LOSSES = (
    "squared",
    "absolute",
    "poisson",
    "poisson-deviance",
    "error-rate",
    "pinball:τ",
    "huber:h",
)
_KINDS_WITHOUT_PARAMETER = ("squared", "absolute", "poisson", "poisson-deviance", "error-rate")


@dataclass(frozen=True)
class Loss:
    """A named loss. Call it with outputs and labels, which broadcast.

    Attributes:
        kind: the name without its parameter, such as "pinball".
        parameter: τ of pinball, in (0, 1), or h > 0 of huber, else None.
    """

    kind: str
    parameter: float | None = None

    @property
    def name(self) -> str:
        """Return the name as a user writes it: "squared", "pinball:0.9"."""
        if self.parameter is None:
            return self.kind
        short_text = f"{self.parameter:g}"
        if float(short_text) == self.parameter:
            return f"{self.kind}:{short_text}"
        return f"{self.kind}:{self.parameter!r}"

    @property
    def is_poisson(self) -> bool:
        """Check whether this is a Poisson loss, whose labels must be >= 0."""
        return self.kind in ("poisson", "poisson-deviance")

    def __call__(
        self,
        outputs: ArrayLike,
        labels: ArrayLike,
    ) -> Vector:
        """Compute ℓ(o, y), elementwise; inf where the loss is infinite.

        Args:
            outputs: outputs o, any shape.
            labels: labels y, of a shape that broadcasts with that of the outputs.

        Raises:
            ValueError: a Poisson loss has negative labels.
        """
        o = np.asarray(outputs, dtype=float)
        y = np.asarray(labels, dtype=float)
        if self.kind == "squared":
            return np.asarray((o - y) ** 2)
        if self.kind == "absolute":
            return np.asarray(np.abs(o - y))
        if self.kind == "error-rate":
            return np.asarray((o != y).astype(float))
        if self.kind == "pinball":
            tau = float(self.parameter or 0.0)
            return np.asarray(np.where(o <= y, tau * (y - o), (1 - tau) * (o - y)))
        if self.kind == "huber":
            r = np.abs(o - y)
            # With min(r, h) in place of h, both cases are h (r - h/2).
            h = np.minimum(r, float(self.parameter or 0.0))
            return np.asarray(h * (r - h / 2))
        if (y < 0).any():
            raise ValueError(f"labels must be >= 0 for the loss {self.kind}. Got {y.min():g}.")
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "poisson":
                losses = o - np.where(y > 0, y * np.log(o), 0.0)
            else:
                losses = o - y + np.where(y > 0, y * np.log(y / o), 0.0)
        return np.where(o < 0, np.inf, losses)

    def matrix(
        self,
        outputs: ArrayLike,
        labels: ArrayLike,
    ) -> Vector:
        """Compute ℓ(o, y) with one row for each label, shape (labels, outputs).

        Args:
            outputs: outputs o, shape (outputs,).
            labels: labels y, shape (labels,).
        """
        o = np.asarray(outputs, dtype=float)
        y = np.asarray(labels, dtype=float)
        return self(o[None, :], y[:, None])

    def deviance_constant(self, labels: ArrayLike) -> Vector:
        """Compute y log y - y, the difference of the losses poisson-deviance and poisson.

        Args:
            labels: labels y, any shape.

        Returns:
            The constants, in the shape of the labels.
        """
        y = np.asarray(labels, dtype=float)
        log_y = np.log(np.where(y > 0, y, 1.0))
        return np.asarray(np.where(y > 0, y * log_y, 0.0) - y)


def parse_loss(name: str | Loss, option: str = "loss") -> Loss:
    """Return the loss with a name.

    Args:
        name: a name such as "squared" or "pinball:0.9", or a loss, which is returned unchanged.
        option: the option that has the name, for errors.

    Raises:
        ValueError: the name is unknown, or its parameter is outside its range.
    """
    if isinstance(name, Loss):
        return name
    kind, _, text = str(name).partition(":")
    if kind in _KINDS_WITHOUT_PARAMETER and not text:
        return Loss(kind)
    try:
        parameter = float(text)
    except ValueError:
        parameter = math.nan
    if kind == "pinball" and 0 < parameter < 1:
        return Loss(kind, parameter)
    if kind == "huber" and 0 < parameter < math.inf:
        return Loss(kind, parameter)
    choices = ", ".join(LOSSES)
    raise ValueError(f"{option} must be one of {choices} (τ in (0, 1), h > 0). Got {name!r}.")
