"""Recompute Figs. 4c and 4d of Cai et al. 2024: SGD with clipped and quantized gradients.

The model is softmax regression. SGD makes one pass over the data in a random order. For every
example of a batch, each coordinate of its gradient is clipped to [-clip, clip], divided by clip,
quantized, and multiplied by clip. The mean over the batch is the direction of the step. All runs of
one mechanism advance together.

The data are those of scikit-learn and MNIST. MNIST is not bundled. To use it, put its files
(train-images-idx3-ubyte and train-labels-idx1-ubyte, gzipped or not) into a folder and name the
folder in the environment variable WORKBENCH_MNIST. Without them `load_mnist` raises an error, and
the experiment uses scikit-learn's digits instead.
"""

from __future__ import annotations

import gzip
import importlib
import os
from dataclasses import asdict, dataclass
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
from workbench.papers.optm.common import (
    design_quantizer,
    get_printed_numbers,
    list_published_mechanisms,
    simulate_quantizer,
)
from workbench.solvers.arrays import Vector

# Features and labels.
Data = tuple[Vector, NDArray[np.intp]]

_MAX_EVALUATED = 4000  # The accuracy is measured on at most this many examples, the first ones.
_SCORE_DECIMALS = 9  # Scores are rounded, so that ties do not depend on the machine's rounding.

# The first number of an IDX file of unsigned bytes, without the number of its dimensions.
_IDX_BYTES = 0x800


@dataclass(frozen=True)
class Training:
    """The parameters of one pass of SGD.

    Attributes:
        batch: The number of examples of a step.
        clip: The bound on the absolute value of every coordinate of a gradient.
        rate: The learning rate.
        runs: The number of runs, each with its own random order of the data.
    """

    batch: int
    clip: float
    rate: float
    runs: int


def train(x: Vector, y: Positions, quantizer: Quantizer | None, training: Training) -> Vector:
    """Return the accuracy on the training set after every batch of every run.

    Args:
        x: The features. Shape (n, d).
        y: The classes 0..k-1. Shape (n,).
        quantizer: A quantizer on [-1, 1], or None to clip only.
        training: The batch size, the clipping bound, the learning rate, and the number of runs.

    Returns:
        The accuracies. Shape (runs, batches). An incomplete last batch is dropped.
    """
    batch = training.batch
    clip = training.clip
    runs = training.runs
    n, d = x.shape
    class_count = int(y.max()) + 1
    step_count = n // batch

    rng = np.random.default_rng(0)
    orders = np.stack([rng.permutation(n) for _ in range(runs)])
    # The last feature is 1, so its weights are the intercepts.
    features = np.concatenate([x, np.ones((n, 1))], axis=1)
    evaluated_features = features[:_MAX_EVALUATED]
    evaluated_classes = y[:_MAX_EVALUATED]
    one_hot = np.eye(class_count)

    weights = np.zeros((runs, d + 1, class_count))
    accuracy = np.zeros((runs, step_count))
    for step in range(step_count):
        # Shape (runs, batch).
        batch_indices = orders[:, step * batch : (step + 1) * batch]
        inputs = features[batch_indices]
        # The gradient of the loss of an example is the product of its inputs and this difference.
        differences = softmax(inputs @ weights, axis=2) - one_hot[y[batch_indices]]
        # Shape (runs, batch, d + 1, classes).
        gradients = np.clip(inputs[..., :, None] * differences[..., None, :], -clip, clip)
        if quantizer:
            gradients = clip * simulate_quantizer(quantizer, gradients / clip, rng)
        weights -= training.rate * gradients.mean(axis=1)

        # Quantized steps give scores that are equal except for rounding.
        scores = np.round(evaluated_features @ weights, _SCORE_DECIMALS)
        accuracy[:, step] = (scores.argmax(axis=2) == evaluated_classes).mean(axis=1)
    return accuracy


def _compute_accuracy_curves(
    data: Data, table: str, training: Training, epsilon: str
) -> pd.DataFrame:
    """Return the accuracy curves without privacy and of the mechanisms of a printed table.

    The columns are mechanism, batch (its number, from 1), accuracy (the mean over runs) and
    "standard error" (of this mean). The 4 bins of the exact quantizer are optimised for the squared
    error of uniform inputs, because the variance of the noise matters for a step of SGD.
    """
    mechanisms: dict[str, Quantizer | None] = {
        "no privacy": None,
        "exact quantizer": design_quantizer(4, epsilon, loss="squared", starts=1),
    }
    mechanisms |= list_published_mechanisms(epsilon, table)
    curves = []
    for name, quantizer in mechanisms.items():
        accuracy = train(*data, quantizer, training)
        columns = {
            "mechanism": name,
            "batch": np.arange(1, accuracy.shape[1] + 1),
            "accuracy": accuracy.mean(axis=0),
            "standard error": accuracy.std(axis=0, ddof=1) / np.sqrt(training.runs),
        }
        curves.append(pd.DataFrame(columns))
    return pd.concat(curves, ignore_index=True)


def _make_training_artifact(
    name: str, data: Data, table: str, training: Training, **values: Any
) -> Artifact:
    """Make a figure of accuracy curves with the ε and the mechanisms of a printed table.

    name: the name of the artifact. table: the key of the table, such as "table8". values: further
    values of the caption's template.
    """
    epsilon = get_printed_numbers()[table]["epsilon"]
    curves = _compute_accuracy_curves(data, table, training, epsilon)
    features, labels = data
    dimension = (features.shape[1] + 1) * np.unique(labels).size
    return make_artifact(
        "optm",
        name,
        curves,
        epsilon=epsilon,
        dimension=dimension,
        **asdict(training),
        **values,
    )


def train_on_breast_cancer(full: bool, **training: Any) -> Artifact:
    """Make Fig. 4c: 569 records with 30 standardised features.

    Args:
        full: Not used: the figure takes seconds.
        training: The attributes of `Training`.
    """
    x, y = _load_sklearn_data("load_breast_cancer")
    standardised_features = (x - x.mean(axis=0)) / x.std(axis=0)
    return _make_training_artifact(
        "fig4c", (standardised_features, y), "table8", Training(**training)
    )


def train_on_mnist(full: bool, **training: Any) -> Artifact:
    """Make Fig. 4d with MNIST, or with the bundled digits if MNIST is missing.

    Args:
        full: Not used.
        training: The attributes of `Training`.

    Raises:
        CorruptFile: The files are not MNIST.
    """
    try:
        data = load_mnist()
        data_sentence = "MNIST (60,000 training images, accuracy on the first 4000)."
    except CorruptFile:
        raise
    except WorkbenchError as error:
        x, y = _load_sklearn_data("load_digits")
        # The pixels are 0..16.
        data = x / 16.0, y
        data_sentence = f"Stand-in: scikit-learn's bundled digits (1797 images of 8 x 8). {error}"
    return _make_training_artifact(
        "fig4d", data, "table9", Training(**training), what=data_sentence
    )


def _load_sklearn_data(name: str) -> Data:
    """Return features and classes of scikit-learn's data. `name` is its loader, "load_digits"."""
    require_extra("learning", "DP-SGD on these data")
    bunch = getattr(importlib.import_module("sklearn.datasets"), name)()
    return np.asarray(bunch.data, dtype=float), np.asarray(bunch.target, dtype=np.intp)


def load_mnist() -> Data:
    """Return the pixels (60000, 784) in [0, 1] and the labels 0..9 of MNIST's training set.

    The environment variable WORKBENCH_MNIST names the folder.

    Raises:
        WorkbenchError: The data are not on this machine.
        CorruptFile: The files are not MNIST.
    """
    folder = os.environ.get("WORKBENCH_MNIST")
    if not folder:
        raise WorkbenchError(
            "MNIST is not on this machine: put train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte (or .gz) into a folder and name it in WORKBENCH_MNIST."
        )
    images = _read_idx(Path(folder), "train-images-idx3-ubyte", 3)
    labels = _read_idx(Path(folder), "train-labels-idx1-ubyte", 1)
    has_shape = images.shape[1:] == (28, 28) and labels.shape == images.shape[:1]
    if not has_shape or labels.max(initial=0) > 9:
        raise CorruptFile(
            f"The files in {folder} are not MNIST: images {images.shape}, labels {labels.shape}."
        )
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.intp)


def _read_idx(folder: Path, name: str, dimension_count: int) -> NDArray[np.uint8]:
    """Return the array of a file in the IDX format, MNIST's format for arrays of unsigned bytes.

    The header has the number `_IDX_BYTES` + dimensions, and the size of each dimension. All are
    big-endian integers of 4 bytes. Raises WorkbenchError if the file is missing, and CorruptFile.
    """
    candidates = (folder / name, folder / f"{name}.gz")
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise WorkbenchError(f"MNIST is not in the named folder: {name} (or {name}.gz) is missing.")
    try:
        open_file = gzip.open if path.suffix == ".gz" else open
        with open_file(path, "rb") as file:
            content = bytes(file.read())
        magic_number, *shape = np.frombuffer(content, ">u4", dimension_count + 1).tolist()
        if magic_number != _IDX_BYTES + dimension_count:
            raise ValueError("another header")
        offset = 4 + 4 * dimension_count
        return np.frombuffer(content, np.uint8, offset=offset).reshape(shape)
    except (OSError, EOFError, ValueError) as error:
        raise CorruptFile(
            f"{path.name} must be an IDX file of unsigned bytes. Got {error}."
        ) from error
