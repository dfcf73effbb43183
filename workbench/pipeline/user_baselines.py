"""Read the baselines of the user, with which frontiers and `recommend` compare designs.

`--baseline` and its keyword in Python accept:

    PMF        {noise value: probability}, or a CSV of two columns, noise and probability. The noise
               is added to the positions of the answers and clamped, wrapped around modulo a group,
               or used as it is on the integers
    matrix     rows of numbers, or a CSV: one row per answer, one column per output. Two columns
               whose rows all sum to 1 are a matrix, unless a header says noise. For labels, the
               outputs are the labels
    table      a CSV whose header is a text and the outputs, with rows of an input and its
               probabilities: all labels; or the knots of a quantizer from -c to c, between which
               the law is affine
    mechanism  any mechanism, a Design or Certificate of one, or a .json file of one
    function   (epsilon, delta) -> a PMF, a matrix or a mechanism; or a .py file, which is run, with
               a function `baseline`

Each becomes a `Baseline`, which `workbench.pipeline.published` registers and audits.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench.data.labels import align_entries
from workbench.data.laws import LawTable, Masses, read_law, read_law_rows
from workbench.data.points import rationals_or_none
from workbench.data.tables import read_table
from workbench.errors import must
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, nearest_float, read_number
from workbench.io.files import path_exists
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.mechanism import Mechanism, as_mechanism
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.pipeline.published import USER_PACKAGE, Baseline
from workbench.privacy.law_table import is_law_table, read_law_table
from workbench.privacy.loading import load
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.labels import Labels
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.quantization import Quantization
from workbench.questions.unbounded_noise import IntegerNoise

_ACCEPTED = (
    "a PMF {noise: probability}, a matrix, a mechanism, a function of (epsilon, delta), a file of "
    "the first three, or a mapping from names to such"
)
_TABLE = (
    "a CSV with the outputs in its header (x,-2,2) and rows of a knot and its probabilities, or a "
    "quantizer"
)


class _PublishedName(str):
    """The name of a published mechanism, as opposed to a file."""


NamedLaws = tuple[tuple[str, Any], ...]  # Pairs of a name and a law, a function, or None.
Law = Masses | LawTable | Mechanism
Function = Callable[..., Any]  # A function of epsilon and delta.


def read_baselines(value: Any, name: str) -> NamedLaws:
    """Read the option of baselines into pairs of a name and a law or function.

    Args:
        value: What the module header lists, a list of paths, or a mapping from names to them.
        name: Name of the option in errors.

    Returns:
        One pair for each baseline. The name of a published mechanism has None in place of a law.

    Raises:
        InvalidRequest: The value is none of these, or two baselines have one name.
    """
    if isinstance(value, Mapping) and value and all(isinstance(key, str) for key in value):
        return tuple((key, _read_baseline(item, key)) for key, item in value.items())
    # A list of numbers is one baseline, and a list of paths or names is several baselines.
    is_list_of_paths = (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(item, (str, Path)) for item in value)
    )
    given_items = value if is_list_of_paths else [value]
    items = [part for item in given_items for part in _split_names(item)]
    baselines = tuple((_name_of(item), _read_baseline(item, name)) for item in items)
    if len({key for key, _ in baselines}) < len(baselines):
        must(name, "files of different names", ", ".join(key for key, _ in baselines))
    return baselines


def make_baselines(given: NamedLaws, family: str) -> list[Baseline]:
    """Make baselines of a family.

    Args:
        given: What `read_baselines` returns.
        family: Name of the family.
    """
    return [Baseline(name, family, partial(_build_mechanism, law)) for name, law in given]


def _split_names(value: Any) -> list[Any]:
    """Split names that commas separate; return anything else as it is."""
    if isinstance(value, str) and not Path(value).suffix and not path_exists(value):
        return [_PublishedName(part.strip()) for part in value.split(",")]
    return [value]


def _name_of(value: Any) -> str:
    """Return the name of a baseline: of its file, or of its function."""
    if isinstance(value, (str, Path)):
        return str(value) if isinstance(value, _PublishedName) else Path(value).stem
    return str(getattr(value, "__name__", USER_PACKAGE)).replace("<lambda>", USER_PACKAGE)


def _read_baseline(value: Any, name: str) -> Any:
    """Read one baseline: a law or a function; None for the name of a published mechanism."""
    if isinstance(value, _PublishedName):
        return None
    if isinstance(value, (str, Path)):
        path = Path(value)
        return _READERS.get(path.suffix.lower(), _read_csv)(path, name)
    if callable(value):
        return value
    return _parse_law(value, name)


def _read_python(path: Path, name: str) -> Any:
    """Run a Python file and return its function `baseline`."""
    try:
        function = runpy.run_path(str(path)).get("baseline")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        must(name, f"a Python file that runs: {path.name}", f"{type(error).__name__}: {error}")
    if not callable(function):
        must(name, "a Python file with a function baseline(epsilon, delta)", path.name)
    return function


def _read_json(path: Path, name: str) -> Law:
    """Read the law or mechanism of a JSON file."""
    content = load(path)
    if isinstance(content, IntegerLaw):
        return _parse_law(dict(enumerate(content.weight_law, content.first)), name)
    if isinstance(content, Distribution):
        must(name, _ACCEPTED, f"a list of masses in {path.name}, whose noise values are not given")
    return _parse_law(content, name)


_READERS: dict[str, Callable[[Path, str], Any]] = {".json": _read_json, ".py": _read_python}


def _read_csv(path: Path, name: str) -> Law:
    """Read the law of a CSV file."""
    rows = read_table(path, name, keep_header=True)
    if rows and is_law_table(rows[0]):
        return _parse_law(read_law_table(rows[0], rows[1:]), name)
    return read_law_rows(rows, path.name, name, _ACCEPTED)


def _parse_law(value: Any, name: str) -> Law:
    """Read a law: a mechanism as it is, anything else as masses or a matrix."""
    if hasattr(getattr(value, "mechanism", value), "comparisons"):
        return as_mechanism(value)
    return read_law(value, name, _ACCEPTED)


def _build_mechanism(law: Law | Function, request: Any) -> Mechanism:
    """Build the mechanism of a law for a request. A function is called with its budget."""
    if callable(law):
        epsilon = request.claim.epsilon
        if epsilon is not None:
            epsilon = float(epsilon)
        value = law(epsilon, float(request.claim.delta or 0))
        if isinstance(value, (str, Path)) or callable(value):
            must("baseline", "a PMF, a matrix or a mechanism from a function", repr(value)[:80])
        law = _parse_law(value, "baseline")
    if isinstance(law, LawTable):
        return _build_channel(law, request.question)
    if isinstance(law, dict):
        return _build_noise(law, request.question)
    return law


def _build_channel(law: LawTable, question: Any) -> Mechanism:
    """Build the mechanism of a matrix or a table for a question."""
    rows = law.rows
    inputs = law.inputs
    outputs = law.outputs
    if isinstance(question, Quantization):
        if inputs is None or outputs is None or len(rows) < 2:
            got = "one row" if inputs else "a matrix, which names neither knots nor outputs"
            must("baseline", _TABLE, got)
        knots, published = _parse_numbers(inputs), _parse_numbers(outputs)
        return PiecewiseAffine.from_ends(
            "own", published, knots, [[*ends] for ends in pairwise(rows)]
        )
    if isinstance(question, Labels):
        if inputs is None and question.listed_order is not None:
            must(
                "labels",
                "in increasing order where a baseline is a matrix without labels",
                "another order",
            )
        rows = align_entries(
            rows,
            inputs,
            answers=[*map(Fraction, question.values.tolist())],
            name="the rows of baseline",
            points_name="labels",
        )
        if outputs is None and len(rows[0]) != question.k:
            rule = (
                f"a matrix of {question.k} columns, the labels, or a table with the outputs in its "
                "header"
            )
            must("baseline", rule, f"{len(rows[0])} columns")
        if len(rows) != question.k:
            rule = f"a matrix with a row for each of {question.k} labels"
            must("baseline", rule, f"{len(rows)} rows")
        output_labels = None
        if outputs is not None:
            output_labels = _parse_numbers(outputs)
        return _label_channel(question, output_labels, Channel.from_rows(rows))
    if isinstance(question, FiniteQuery):
        return Channel.from_rows(law.align(question.inputs, question.outputs, "answers"))
    if inputs is None and isinstance(question, ModuloNoise):
        return Channel.from_rows(rows)
    if inputs is None:
        return must("baseline", "a PMF where the answers have no largest one", "a matrix")
    return must("baseline", "a PMF or a matrix for this query", "a table of inputs and outputs")


def _label_channel(labels: Labels, outputs: Iterable[Fraction] | None, channel: Channel) -> Channel:
    """Give a channel the labels of a question as its inputs and, by default, as its outputs."""
    input_labels = tuple(map(Fraction, labels.values.tolist()))
    output_labels = input_labels
    if outputs is not None:
        output_labels = tuple(Fraction(nearest_float(output)) for output in outputs)
    return replace(channel, axis_labels=(input_labels, output_labels))


def _parse_numbers(labels: Iterable[Any]) -> list[Fraction]:
    """Read the labels of a table as numbers. Raises InvalidRequest."""
    return [read_number(label, "a label of the baseline") for label in labels]


def _build_noise(masses: Masses, question: Any) -> Mechanism:
    """Build the mechanism that adds noise with given masses, for a question."""
    first = min(masses)
    last = max(masses)
    weights = [masses.get(eta, ZERO) for eta in range(first, last + 1)]
    law = IntegerLaw(first=first, weights=weights)
    if isinstance(question, IntegerNoise):
        return AdditiveIntegerNoise(question, law)
    if isinstance(question, FiniteQuery) and question.outputs == question.inputs:
        x = rationals_or_none(question.inputs)
        if x is None or [*x] != sorted(x):
            rule = "numbers in increasing order beside a PMF of noise, which is added to positions"
            must("answers", rule, question)
        return Channel(_clamp_to_positions(law, question.k))
    if isinstance(question, Labels):
        return _label_channel(
            question, outputs=None, channel=Channel(_clamp_to_positions(law, question.k))
        )
    if isinstance(question, Quantization):
        must("baseline", _TABLE, "a PMF of noise, which is biased once it is clamped")
    if isinstance(question, ModuloNoise) and question.is_scalar:
        wrapped_masses = [ZERO] * question.order
        for eta, mass in masses.items():
            wrapped_masses[eta % question.order] += mass
        return AdditiveNoise(question, wrapped_masses)
    rule = "a mechanism of this family or its .json file, or for finitely many answers a matrix"
    return must("baseline", rule, "a PMF of noise")


def _clamp_to_positions(law: IntegerLaw, count: int) -> tuple[Distribution, ...]:
    """Return the laws of noise on the positions 0..count-1, clamped into them."""
    return tuple(law.clamp(-q, count - 1 - q) for q in range(count))
