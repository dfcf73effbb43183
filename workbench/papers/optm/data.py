"""Data of the DP-SGD experiments: scikit-learn's bundled sets, and MNIST from files of its own format.

MNIST is not bundled: put its four files (train-images-idx3-ubyte, train-labels-idx1-ubyte, gzipped or not) into a
folder and name it in the environment variable WORKBENCH_MNIST. Without them `mnist` says so in one sentence, and the
experiment runs on scikit-learn's bundled digits instead.
"""

from __future__ import annotations

import gzip
import importlib
import os
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorruptFile, WorkbenchError
from workbench.io.extras import need

__all__ = ["breast_cancer", "digits", "mnist"]

Data = tuple[NDArray[np.float64], NDArray[np.intp]]


def breast_cancer() -> Data:
    """(features (569, 30) standardised, labels 0..1) of the UCI breast cancer data that ship with scikit-learn."""
    x, y = _sklearn("load_breast_cancer")
    return (x - x.mean(axis=0)) / x.std(axis=0), y


def digits() -> Data:
    """(pixels (1797, 64) in [0, 1], labels 0..9) of scikit-learn's bundled digits."""
    x, y = _sklearn("load_digits")
    return x / 16.0, y


def _sklearn(name: str) -> Data:
    need("learning", "DP-SGD on these data")
    bunch = getattr(importlib.import_module("sklearn.datasets"), name)()
    return np.asarray(bunch.data, dtype=float), np.asarray(bunch.target, dtype=np.intp)


def mnist(folder: Path | None = None) -> Data:
    """(pixels (60000, 784) in [0, 1], labels 0..9) of MNIST's training set.

    folder: with its files; by default the one that WORKBENCH_MNIST names.
    Raises WorkbenchError when the data are not on this machine, CorruptFile when they are not MNIST.
    """
    named = os.environ.get("WORKBENCH_MNIST")
    where = folder if folder is not None else (Path(named) if named else None)
    if where is None:
        raise WorkbenchError(
            "MNIST is not on this machine: put train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz) into a "
            "folder and name it in WORKBENCH_MNIST."
        )
    images, labels = _idx(where, "train-images-idx3-ubyte", 3), _idx(where, "train-labels-idx1-ubyte", 1)
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1] or labels.max(initial=0) > 9:
        raise CorruptFile(f"The files in {where} are not MNIST: images {images.shape}, labels {labels.shape}.")
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.intp)


def _idx(folder: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    """An array of unsigned bytes in the IDX format."""
    for path, opened in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if not path.is_file():
            continue
        try:
            with opened(path, "rb") as file:
                content = bytes(file.read())
            zero, kind, count = struct.unpack(">HBB", content[:4])
            shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
            values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
            if (zero, kind, count) != (0, 8, dimensions) or values.size != np.prod(shape, dtype=np.int64):
                raise ValueError("wrong header or length")
            return values.reshape(shape)
        except (OSError, EOFError, ValueError, struct.error) as error:
            raise CorruptFile(f"{path.name} must be an IDX file of unsigned bytes. Got {error}.") from error
    raise WorkbenchError(f"MNIST is not in the folder named: {name} (or {name}.gz) is missing.")
