"""Fig. 4c and 4d: softmax regression by SGD whose per-example gradients are clipped and quantized.

One pass over the data in a random order. For every example of a batch each coordinate of its gradient is clipped to
[-clip, clip], divided by clip, quantized, multiplied by clip; the batch's mean is the step's direction. All runs of
one mechanism are advanced together.

Data: scikit-learn's bundled sets, and MNIST from files of its own format. MNIST is not bundled: put its four files
(train-images-idx3-ubyte, train-labels-idx1-ubyte, gzipped or not) into a folder and name it in the environment variable
WORKBENCH_MNIST. Without them `mnist` says so in one sentence, and the experiment runs on scikit-learn's bundled digits
instead.
"""

from __future__ import annotations

import gzip
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from workbench.errors import CorruptFile, WorkbenchError
from workbench.exact.arrays import Positions
from workbench.io.extras import require_extra
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact, make_artifact
from workbench.papers.optm.common import designed, parameters, published, simulated
from workbench.solvers.arrays import Vector

Data = tuple[Vector, NDArray[np.intp]]

_TEST = 4000  # training accuracy is taken on at most so many examples


@dataclass(frozen=True)
class Training:
    """One pass of SGD. batch: examples of a step; clip: of every gradient entry; rate: the learning rate; runs: with
    orders of their own."""

    batch: int
    clip: float
    rate: float
    runs: int = 30


def train(x: Vector, y: Positions, quantizer: Quantizer | None, training: Training) -> Vector:
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
        gap = softmax(here @ weights, axis=2) - unit[y[chosen]]
        gradients = np.clip(
            here[..., :, None] * gap[..., None, :], -clip, clip
        )  # (runs, batch, d + 1, classes)
        if quantizer:
            gradients = clip * simulated(quantizer, gradients / clip, rng)
        weights -= training.rate * gradients.mean(axis=1)
        # quantized steps tie scores exactly: rounding, not the machine's linear algebra, must break those ties
        accuracy[:, step] = (np.round(shown @ weights, 9).argmax(axis=2) == answers).mean(axis=1)
    return accuracy


def _curves(data: Data, table: str, training: Training, epsilon: str) -> pd.DataFrame:
    """Of clipping alone, and of mechanisms; 4 bins are optimised for the squared error of uniform inputs: a step of SGD
    feels the noise's variance."""
    best = designed(4, epsilon, loss="squared", starts=1)
    frames = []
    for name, quantizer in {
        "no privacy": None,
        "exact quantizer": best,
        **published(epsilon, table),
    }.items():
        accuracy = train(*data, quantizer, training)
        curve = pd.DataFrame({"mechanism": name, "batch": np.arange(1, accuracy.shape[1] + 1)})
        error = accuracy.std(axis=0, ddof=1) / np.sqrt(training.runs)
        frames.append(curve.assign(accuracy=accuracy.mean(axis=0), **{"standard error": error}))
    return pd.concat(frames, ignore_index=True)


def _trained(name: str, data: Data, table: str, rate: float, runs: int, **words: Any) -> Artifact:
    given = {key: parameters()[table][key] for key in ("epsilon", "batch", "clip")}
    frame = _curves(
        data, table, Training(given["batch"], given["clip"], rate, runs), given["epsilon"]
    )
    dimension = (data[0].shape[1] + 1) * np.unique(data[1]).size
    return make_artifact(
        "optm", name, frame, rate=rate, runs=runs, dimension=dimension, **given, **words
    )


def fig4c(full: bool) -> Artifact:
    """Breast cancer: 569 records with 30 features, standardised."""
    x, y = _sklearn("load_breast_cancer")
    return _trained("fig4c", ((x - x.mean(axis=0)) / x.std(axis=0), y), "table8", 1.0, 30)


def fig4d(full: bool) -> Artifact:
    """MNIST when it is on the machine, else the bundled digits."""
    try:
        return _trained(
            "fig4d",
            mnist(),
            "table9",
            20.0,
            5,
            what="MNIST (60,000 training images, accuracy on the first 4000).",
        )
    except CorruptFile:
        raise
    except WorkbenchError as error:
        what = f"Stand-in: scikit-learn's bundled digits (1797 images of 8 x 8). {error}"
    x, y = _sklearn("load_digits")
    return _trained("fig4d", (x / 16.0, y), "table9", 20.0, 30 if full else 10, what=what)


def _sklearn(name: str) -> Data:
    """Features and labels of data that ship with scikit-learn."""
    require_extra("learning", "DP-SGD on these data")
    bunch = getattr(importlib.import_module("sklearn.datasets"), name)()
    return np.asarray(bunch.data, dtype=float), np.asarray(bunch.target, dtype=np.intp)


def mnist() -> Data:
    """(pixels (60000, 784) in [0, 1], labels 0..9) of MNIST's training set, in the folder that WORKBENCH_MNIST names.

    Raises WorkbenchError when the data are not on this machine, CorruptFile when they are not MNIST.
    """
    named = os.environ.get("WORKBENCH_MNIST")
    if not named:
        raise WorkbenchError(
            "MNIST is not on this machine: put train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz) into a "
            "folder and name it in WORKBENCH_MNIST."
        )
    images, labels = (
        _idx(Path(named), f"train-{name}-ubyte", n)
        for name, n in (("images-idx3", 3), ("labels-idx1", 1))
    )
    if (
        images.shape[1:] != (28, 28)
        or labels.shape != images.shape[:1]
        or labels.max(initial=0) > 9
    ):
        raise CorruptFile(
            f"The files in {named} are not MNIST: images {images.shape}, labels {labels.shape}."
        )
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.intp)


def _idx(folder: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    """An array of unsigned bytes in the IDX format."""
    path = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
    if path is None:
        raise WorkbenchError(f"MNIST is not in the folder named: {name} (or {name}.gz) is missing.")
    try:
        with (open if path.suffix != ".gz" else gzip.open)(path, "rb") as file:
            content = bytes(file.read())
        kind, *shape = np.frombuffer(content, ">u4", dimensions + 1).tolist()
        if kind != 0x800 + dimensions:
            raise ValueError("another header")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (OSError, EOFError, ValueError) as error:
        raise CorruptFile(
            f"{path.name} must be an IDX file of unsigned bytes. Got {error}."
        ) from error
