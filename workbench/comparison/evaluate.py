"""What a mechanism gets wrong and what it leaks: any mechanism, or a published quantizer given by its parameters."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import round_up
from workbench.families.quantizer.evaluate import built, evaluation
from workbench.io.csv_column import read_column
from workbench.io.result import Result, Row
from workbench.mechanisms.density import Density
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM, DataLaw
from workbench.mechanisms.mechanism import as_mechanism
from workbench.privacy.audit import audit_extremes
from workbench.privacy.expected_error import expected_error

__all__ = ["evaluate"]


def evaluate(mechanism: Any, *, loss: str | None = None, data: Any = None, **parameters: Any) -> Result:
    """The exact expected loss of a mechanism, its worst input and its exact pure ε (`workbench evaluate`).

        >>> import workbench as wb
        >>> noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
        >>> [row] = wb.evaluate(noise, loss="squared", data=[0, 0, 2])
        >>> round(row["mean_error"], 6), row["worst_error"], row["worst_input"]
        (1.25, 1.25, 0)
        >>> [row] = wb.evaluate("randomized-response", epsilon=1)
        >>> round(row["mae"], 6), round(row["pure_epsilon"], 6)
        (2.009914, 1.0)

    Args:
        mechanism: a mechanism, a Design or a Certificate; or the name of a published quantizer: rqm (bins, q), erm
            (bins, gamma), pbm (levels, theta or epsilon), randomized-response (epsilon) or biased (bins, q, beta).
        loss: of a mechanism: absolute (by default), squared, zero-one, pinball:τ or huber:h of output minus input; on
            real inputs absolute or squared; of a vector query zero-one alone.
        data: of a mechanism: a column of inputs (numbers, or a CSV file of one column), a mapping of inputs to weights
            or `Labels`; on real inputs also "uniform" or "normal:MU,SIGMA"; of DyadicLaplace also a `DataLaw`. None:
            inputs equally likely; of a label randomizer its own prior.
        parameters: of a named quantizer, those in brackets and no others: bins (increasing), q in [0, 1), gamma (γ),
            beta (rate of the biased choice), theta in (0, 1/2), levels, epsilon; besides c (inputs are in [-c, c]) and
            density of the inputs, "uniform" or "normal:MU,SIGMA" clipped to [-c, c].

    Returns:
        One row. Of a mechanism: mechanism, loss, data, mean_error and worst_error (rounded up from exact numbers;
        worst_error None where nothing finite decides it), exact (False: the mean is a quadrature, 12 digits),
        worst_input, pure_epsilon; of DyadicLaplace also its two ε per unit of distance and mean_bits.
        Of a name: mechanism, density, mae, mae_51 (mean over 51 points), mse, pure_epsilon and bias (exact), and the
        published bounds where they apply. `plot()` draws the law.

    Raises:
        InvalidRequest: an unknown name, data that are no inputs, a parameter that is missing, superfluous or wrong.
    """
    if isinstance(mechanism, str):
        for name, value in (("loss", loss), ("data", data)):
            if value is not None:
                raise InvalidRequest(f"{name} must be left out with a name, which takes density. Got {value!r}.")
        return _named(mechanism, **parameters)
    if parameters:
        raise InvalidRequest(f"{next(iter(parameters))} must be left out but with a name. Got a mechanism as well.")
    subject = getattr(mechanism, "mechanism", mechanism)
    column = read_column(Path(data)) if _is_file(data) else data
    if isinstance(subject, DyadicLaplace):
        row = _dyadic(subject, loss or "absolute", column)
    else:
        row = _row(mechanism, loss or "absolute", column)
    title, figure = row["mechanism"], getattr(subject, "figure", None)
    return Result(title, [row], "evaluation", draw=lambda table: {} if figure is None else {"law": figure})


def _is_file(data: Any) -> bool:
    return isinstance(data, Path) or (isinstance(data, str) and data.lower().endswith(".csv"))


def _row(mechanism: Any, loss: str, data: Any) -> Row:
    subject = as_mechanism(mechanism)
    error = expected_error(subject, loss, data)
    exact = not isinstance(error.mean, float)
    return {
        "mechanism": subject.describe(), "loss": error.loss, "data": error.data,
        "mean_error": error.mean if isinstance(error.mean, float) else round_up(error.mean), "exact": exact,
        "worst_error": None if error.worst is None else round_up(error.worst),
        "worst_input": error.worst_input, "pure_epsilon": audit_extremes(subject, 0).pure_epsilon,
    }  # fmt: skip


def _dyadic(mechanism: DyadicLaplace, loss: str, data: Any) -> Row:
    """Its noise is Laplace's whatever the input; the data decide how many bits it takes."""
    if loss not in ("absolute", "squared"):
        InvalidRequest.must("loss", "absolute or squared for Laplace noise", repr(loss))
    if isinstance(data, (str, Density)):
        InvalidRequest.must("data", "a column of numbers or a DataLaw", repr(data))
    law = UNIFORM if data is None else data if isinstance(data, DataLaw) else DataLaw.sample(data)
    error = mechanism.mae if loss == "absolute" else mechanism.mse
    return {
        "mechanism": repr(mechanism), "loss": loss, "data": law.text, "mean_error": error, "exact": True,
        "worst_error": error, "worst_input": None, "pure_epsilon": math.inf,
        "decoder_epsilon": mechanism.decoder_epsilon, "database_epsilon": mechanism.database_epsilon,
        "mean_bits": mechanism.mean_bits(data=law),
    }  # fmt: skip


def _named(name: str, density: Any = "uniform", **parameters: Any) -> Result:
    """A published quantizer, exactly for every real input."""
    mechanism = built(name, **parameters)
    values = evaluation(name, density=density, **parameters)
    row = {key: values[key] for key in ("mechanism", "density", "mae", "mae_51", "mse")}
    row |= {"pure_epsilon": float(values["exact"]["epsilon"]), "bias": values["exact"]["bias"]}
    row |= {f"published_{key}": bound for key, bound in (values["bounds"] or {}).items()}
    title = f"{name}, inputs {values['density']}"
    return Result(title, [row], "evaluation", draw=lambda table: {"law": partial(mechanism.figure, title)})
