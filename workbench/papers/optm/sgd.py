"""Fig. 4c and 4d: softmax regression by SGD whose per-example gradients are clipped and quantized.

One pass over the data in a random order. For every example of a batch each coordinate of its gradient is clipped to
[-clip, clip], divided by clip, quantized, multiplied by clip; the batch's mean is the step's direction. All runs of
one mechanism are advanced together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workbench.errors import CorruptFile, WorkbenchError
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.output_search import optimised_bins
from workbench.io.figures import COLOURS, panels
from workbench.mechanisms.baselines.two_bin import rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact
from workbench.papers.optm.common import STYLE, certified, law_question, optm_at, parameters
from workbench.papers.optm.data import breast_cancer, digits, mnist
from workbench.papers.optm.simulation import simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    design = optimised_bins(4, law_question(epsilon, cost="mse"), starts=1)
    assert design is not None
    return certified(design.quantizer, epsilon)


def _mechanisms(table: dict[str, dict[str, str]], epsilon: str) -> dict[str, Quantizer | None]:
    return {
        "no privacy": None,
        "exact quantizer": _exact(epsilon),
        "OPTM": optm_at(table["OPTM"]["bins"], epsilon),
        "MVU": certified(mvu(epsilon, levels=4, bound=False).quantizer, epsilon),
        "RQM": rqm(table["RQM"]["bins"], table["RQM"]["q"]),
    }


def _curves(
    data: tuple[NDArray[np.float64], NDArray[np.intp]], table: dict[str, dict[str, str]], training: Training,
    epsilon: str,
) -> pd.DataFrame:  # fmt: skip
    frames = []
    for name, quantizer in _mechanisms(table, epsilon).items():
        accuracy = train(*data, quantizer, training)
        frames.append(
            pd.DataFrame(
                {
                    "mechanism": name, "batch": np.arange(1, accuracy.shape[1] + 1), "accuracy": accuracy.mean(axis=0),
                    "standard error": accuracy.std(axis=0, ddof=1) / np.sqrt(training.runs),
                }
            )
        )  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def _draw(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=6.4, height=4.2)
    for name, part in table.groupby("mechanism", sort=False):
        colour, style = STYLE[str(name)]
        axis.plot(part["batch"], part["accuracy"], style, color=COLOURS[colour], label=name, linewidth=1.5)
        low, high = part["accuracy"] - 2 * part["standard error"], part["accuracy"] + 2 * part["standard error"]
        axis.fill_between(part["batch"], low, high, color=COLOURS[colour], alpha=0.15, linewidth=0)
    axis.set_xlabel("batch")
    axis.set_ylabel("accuracy on the training set")
    axis.legend(frameon=False, loc="lower right")
    return figure


_METHOD = (
    " Softmax regression from zero weights, one pass, every coordinate of every example's gradient clipped and "
    "quantized (ε = {epsilon} for a coordinate of one example), batch {batch}, clip {clip}, learning rate {rate} "
    "(chosen by us: the paper gives none), mean of {runs} runs with two standard errors. OPTM and RQM at the printed "
    "bins, MVU with 4 searched outputs for uniform inputs, exact quantizer with 4 bins optimised for the squared error "
    "of uniform inputs. A last batch that is not full is left out. No privacy: clipping only, which "
    "is also the limit no mechanism can pass on average."
)


def fig4c(full: bool) -> Artifact:
    """Breast cancer."""
    table, rate, runs = parameters()["table8"], 1.0, 30
    frame = _curves(breast_cancer(), table, Training(table["batch"], table["clip"], rate, runs), table["epsilon"])
    caption = "UCI breast cancer data as shipped with scikit-learn (569 examples, 30 standardised features)." + _METHOD
    caption = caption.format(rate=rate, runs=runs, **{k: table[k] for k in ("epsilon", "batch", "clip")})
    return Artifact("fig4c", "Fig. 4c: DP-SGD on breast cancer", frame, _draw, caption, digits=_DIGITS)


def fig4d(full: bool) -> Artifact:
    """MNIST when it is on the machine, else the bundled digits."""
    table = parameters()["table9"]
    try:
        data, runs, rate = mnist(), 5, 20.0
        what = "MNIST (60,000 training images, accuracy on the first 4000)."
    except CorruptFile:
        raise
    except WorkbenchError as error:
        data, runs, rate = digits(), 30 if full else 10, 20.0
        what = f"Stand-in: scikit-learn's bundled digits (1797 images of 8 x 8). {error}"
    frame = _curves(data, table, Training(table["batch"], table["clip"], rate, runs), table["epsilon"])
    method = _METHOD.format(rate=rate, runs=runs, **{k: table[k] for k in ("epsilon", "batch", "clip")})
    return Artifact("fig4d", "Fig. 4d: DP-SGD on MNIST (or digits)", frame, _draw, what + method, digits=_DIGITS)
