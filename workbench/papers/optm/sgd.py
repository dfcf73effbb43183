"""Fig. 4c and 4d: softmax regression by SGD whose per-example gradients are clipped and quantized.

One pass over the data in a random order. For every example of a batch each coordinate of its gradient is clipped to
[-clip, clip], divided by clip, quantized, multiplied by clip; the batch's mean is the step's direction. All runs of
one mechanism are advanced together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workbench.errors import CorruptFile, WorkbenchError
from workbench.families.quantizer.output_search import optimised_bins
from workbench.mechanisms.baselines.two_bin import rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.optm.common import certified, law_question, mvu_at, optm_at, parameters
from workbench.papers.optm.data import Data, breast_cancer, digits, mnist
from workbench.papers.optm.simulation import simulated

__all__ = ["Training", "fig4c", "fig4d", "train"]

_DIGITS = {"accuracy": 6, "standard error": 4}
_TEST = 4000  # training accuracy is taken on at most so many examples


@dataclass(frozen=True)
class Training:
    """One pass of SGD. batch: examples of a step; clip: of every gradient entry; rate: the learning rate; runs: with
    orders of their own."""

    batch: int
    clip: float
    rate: float
    runs: int = 30


def train(
    x: NDArray[np.float64], y: NDArray[np.intp], quantizer: Quantizer | None, training: Training
) -> NDArray[np.float64]:
    """Accuracy on the training set after every batch, for every run. Shape (runs, batches).

    x: (n, d); y: (n,) classes 0..k-1; quantizer: on [-1, 1], None for clipping only.
    """
    batch, clip, runs = training.batch, training.clip, training.runs
    n, d = x.shape
    classes = int(y.max()) + 1
    rng = np.random.default_rng(0)
    orders = np.stack([rng.permutation(n) for _ in range(runs)])
    count = n // batch  # whole batches only
    features = np.concatenate([x, np.ones((n, 1))], axis=1)
    shown = features[:_TEST] if n > _TEST else features
    answers = y[:_TEST] if n > _TEST else y
    weights = np.zeros((runs, d + 1, classes))
    accuracy = np.zeros((runs, count))
    unit = np.eye(classes)
    for step in range(count):
        chosen = orders[:, step * batch : (step + 1) * batch]  # (runs, batch)
        here = features[chosen]
        scores = here @ weights
        scores -= scores.max(axis=2, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=2, keepdims=True)
        gap = p - unit[y[chosen]]
        gradients = np.clip(here[..., :, None] * gap[..., None, :], -clip, clip)  # (runs, batch, d + 1, classes)
        if quantizer is not None:
            gradients = clip * simulated(quantizer, gradients / clip, rng)
        weights -= training.rate * gradients.mean(axis=1)
        # quantized steps tie scores exactly: rounding, not the machine's linear algebra, must break those ties
        accuracy[:, step] = (np.round(shown @ weights, 9).argmax(axis=2) == answers).mean(axis=1)
    return accuracy


def _exact(epsilon: str) -> Quantizer:
    """4 bins optimised for the squared error of uniform inputs: what a step of SGD feels is the noise's variance."""
    design = optimised_bins(4, law_question(epsilon, loss="squared"), starts=1)
    assert design is not None
    return certified(design.quantizer, epsilon)


def _mechanisms(table: dict[str, dict[str, str]], epsilon: str) -> dict[str, Quantizer | None]:
    return {
        "no privacy": None,
        "exact quantizer": _exact(epsilon),
        "OPTM": optm_at(table["OPTM"]["bins"], epsilon),
        "MVU": mvu_at(4, epsilon),
        "RQM": rqm(table["RQM"]["bins"], table["RQM"]["q"]),
    }


def _curves(data: Data, table: dict[str, dict[str, str]], training: Training, epsilon: str) -> pd.DataFrame:
    frames = []
    for name, quantizer in _mechanisms(table, epsilon).items():
        accuracy = train(*data, quantizer, training)
        frames.append(
            pd.DataFrame(
                {
                    "mechanism": name,
                    "batch": np.arange(1, accuracy.shape[1] + 1),
                    "accuracy": accuracy.mean(axis=0),
                    "standard error": accuracy.std(axis=0, ddof=1) / np.sqrt(training.runs),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _trained(name: str, data: Data, table: dict[str, Any], rate: float, runs: int, **words: Any) -> Artifact:
    frame = _curves(data, table, Training(table["batch"], table["clip"], rate, runs), table["epsilon"])
    given = {key: table[key] for key in ("epsilon", "batch", "clip")}
    return artifact("optm", name, frame, digits=_DIGITS, rate=rate, runs=runs, **given, **words)


def fig4c(full: bool) -> Artifact:
    """Breast cancer."""
    return _trained("fig4c", breast_cancer(), parameters()["table8"], 1.0, 30)


def fig4d(full: bool) -> Artifact:
    """MNIST when it is on the machine, else the bundled digits."""
    table = parameters()["table9"]
    try:
        return _trained(
            "fig4d", mnist(), table, 20.0, 5, what="MNIST (60,000 training images, accuracy on the first 4000)."
        )
    except CorruptFile:
        raise
    except WorkbenchError as error:
        what = f"Stand-in: scikit-learn's bundled digits (1797 images of 8 x 8). {error}"
    return _trained("fig4d", digits(), table, 20.0, 30 if full else 10, what=what)
