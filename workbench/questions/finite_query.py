"""Define the question of a finite channel: its inputs, its outputs, its neighbours, and a prior.

A channel publishes the output o with a probability Pr[o | x] for each input x. There are k inputs
and m outputs:

    x in inputs, o in outputs    `inputs` (k,), `outputs` (m,): exact numbers, texts, or tuples of
                                 these
    neighbours x, x'             `pairs`: pairs of positions i < j, which stand for both orders. If
                                 `directed`, (i, j) stands for itself alone. None: every two inputs
    distance d(x, x')            `distances` of the pairs, for metric privacy
    prior probability p(x)       `prior` (k,), with the sum 1. None: the worst input counts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from workbench.data.neighbours import Neighbours, direct_pairs, read_neighbours
from workbench.data.points import (
    Point,
    format_point,
    list_point_values_and_weights,
    rationals_or_none,
    read_point_values,
)
from workbench.data.priors import read_prior
from workbench.data.projection import Projection
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Rationals
from workbench.exact.objects import Pair, Pairs, Record
from workbench.io.files import format_fraction
from workbench.io.shown import OneLine
from workbench.questions.neighbour_parts import describe_separation, label_connected_parts
from workbench.questions.places import are_planar, pairs_within_radius, reduce_metric_pairs

FREE = "free"  # The value of `outputs` for real outputs that a design chooses.


@dataclass(frozen=True, init=False, repr=False)
class FiniteQuery(OneLine):
    """A query with finitely many inputs and outputs, for the design of a channel.

    Args:
        inputs: Numbers (read as the decimals they show), texts or tuples, all different; also a
            text "0..100", "0..5:0.5" (LOW..HIGH:STEP), "a,b,c", or a CSV file of one column. Inputs
            may be places of the plane: pairs of numbers, or a CSV file of x, y[, weight], whose
            weights are the prior if none is given.
        outputs: The same, or "free" for any real numbers, which a design chooses. Default: the
            inputs.
        max_shift: Numbers that differ by at most this are neighbours.
        neighbours: Instead of max_shift: "all"; "consecutive" in the order given; {"max_distance":
            D}; a list of pairs of inputs; a CSV file of pairs (a third column: their distance); a
            symmetric matrix of distances (k, k), inf between inputs that are no neighbours, also as
            a CSV file. For places also "within R NORM" and "all NORM" with NORM L1, L2 or Linf,
            which is the distance of metric privacy too (default: L2).
        prior: None or "uniform", "worst", weights >= 0, or a CSV file of them (or of inputs and
            weights).
        projection: The inputs and outputs are longitudes and latitudes in degrees. They are
            projected onto a plane in metres. Neighbours are then "within R NORM" or "all NORM",
            with R in metres.
        directed: Neighbours are symmetric, so a pair in one order stands for both. If directed,
            only Pr[o | x] <= e^ε Pr[o | x'] + δ is required of every pair, x being the larger
            number (of other inputs the later one), or the first of a pair that is listed.

    Raises:
        InvalidRequest: If there are fewer than two inputs, if an input occurs twice, if not exactly
            one of max_shift and neighbours is given, or if the prior has a negative weight or
            another length.

    >>> FiniteQuery("0..3", max_shift=1).pairs
    ((0, 1), (1, 2), (2, 3))
    >>> FiniteQuery("0..3", max_shift=1, directed=True).pairs
    ((1, 0), (2, 1), (3, 2))
    """

    inputs: tuple[Point, ...]
    outputs: tuple[Point, ...]
    pairs: Pairs | None
    distances: Rationals | None
    prior: Rationals | None
    has_free_outputs: bool
    norm: str
    directed: bool
    projection: Projection | None = field(compare=False)

    def __init__(
        self,
        inputs: Any,
        outputs: Any = None,
        *,
        neighbours: Any = None,
        max_shift: Any = None,
        prior: Any = None,
        directed: bool = False,
        projection: Projection | None = None,
    ) -> None:
        in_degrees = projection is not None
        input_values, weights = list_point_values_and_weights(
            inputs, "inputs", in_degrees=in_degrees
        )
        values = read_point_values(input_values, "inputs")
        if projection is not None:
            values = _project(values, projection, "inputs")
            input_values = [*values]
            _check_projected_neighbours(neighbours)
        is_free = isinstance(outputs, str) and outputs == FREE
        output_values = values
        if outputs is not None and not is_free:
            given_outputs, _ = list_point_values_and_weights(
                outputs, "outputs", in_degrees=in_degrees
            )
            output_values = read_point_values(given_outputs, "outputs")
            if projection is not None:
                output_values = _project(output_values, projection, "outputs")
        # The neighbours of places are found with `is_planar`, which needs inputs and outputs.
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(
            inputs=values,
            outputs=output_values,
            has_free_outputs=is_free,
            norm="L2",
            directed=directed,
            projection=projection,
        )
        if not isinstance(directed, bool):
            must("directed", "True or False", directed)
        if len(values) < 2:
            must("inputs", "at least two for a neighbour relation", len(values))
        if (neighbours is None) == (max_shift is None):
            got = "none" if max_shift is None else "both"
            raise InvalidRequest(f"Give either max_shift or neighbours. Got {got}.")
        relation_argument = neighbours if max_shift is None else {"max_distance": max_shift}
        relation = read_neighbours(relation_argument, values, input_values, is_directed=directed)
        pairs = relation.pairs
        if relation.norm is not None:
            pairs = self._planar_neighbours(relation, relation_argument, input_values)
        if directed and relation.distances is not None:
            must("directed", "left out where neighbours have distances", directed)
        is_complete = pairs is not None and len(pairs) == self.k * (self.k - 1) // 2
        if is_complete and not directed and relation.distances is None:
            pairs = None
        chosen_prior = weights if prior is None else prior
        shares: Rationals | None = (Fraction(1, self.k),) * self.k
        if chosen_prior is not None:
            shares = read_prior(chosen_prior, values)
        self.__dict__.update(pairs=pairs, distances=relation.distances, prior=shares)

    def _planar_neighbours(
        self, relation: Neighbours, relation_argument: Any, entries: Sequence[Any]
    ) -> Pairs | None:
        """List the pairs of places within a radius, and store the norm.

        Args:
            relation: The relation, with its norm and radius.
            relation_argument: The argument from which the relation was read, for errors.
            entries: Objects that the inputs were read from. Their types decide the tolerance.

        Returns:
            Pairs of positions. None for every two inputs.

        Raises:
            InvalidRequest: If the inputs are no places of the plane.
        """
        if not self.is_planar or relation.norm is None:
            constraint = "without a norm for inputs that are no places of the plane"
            must("neighbours", constraint, repr(relation_argument))
        self.__dict__["norm"] = relation.norm
        pairs = None
        if relation.radius is not None:
            pairs = pairs_within_radius(self.inputs, relation.radius, relation.norm, entries)
        return direct_pairs(pairs, self.inputs) if self.directed else pairs

    @property
    def k(self) -> int:
        """Return the number of inputs."""
        return len(self.inputs)

    @property
    def m(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs)

    @cached_property
    def numbers(self) -> tuple[Rationals, Rationals] | None:
        """Return (inputs, outputs) as exact numbers, or None if some of them are no numbers."""
        inputs = rationals_or_none(self.inputs)
        outputs = rationals_or_none(self.outputs)
        if inputs is None or outputs is None:
            return None
        return inputs, outputs

    @cached_property
    def is_planar(self) -> bool:
        """Return whether inputs and outputs are places of the plane."""
        return self.numbers is None and are_planar(self.inputs) and are_planar(self.outputs)

    @property
    def coordinates(self) -> tuple[Vector, Vector]:
        """Return inputs (k,) and outputs (m,) as floats.

        If some of them are no numbers, their positions are returned instead.
        """
        inputs, outputs = self.numbers or (range(self.k), range(self.m))
        return np.array([float(x) for x in inputs]), np.array([float(o) for o in outputs])

    @cached_property
    def neighbour_pairs(self) -> Pairs:
        """Return every pair of neighbours, listed even if all inputs are neighbours."""
        if self.pairs is None:
            return tuple(combinations(range(self.k), 2))
        return self.pairs

    @property
    def ordered_pairs(self) -> Pairs:
        """Return every ordered pair (i, j) whose inputs are compared.

        For pure DP this means Pr[o | x_i] <= e^ε Pr[o | x_j].
        """
        if self.directed:
            return self.neighbour_pairs
        pairs: list[Pair] = []
        for i, j in self.neighbour_pairs:
            pairs += [(i, j), (j, i)]
        return tuple(pairs)

    @cached_property
    def is_line(self) -> bool:
        """Return whether exactly the consecutive inputs are neighbours, in both orders."""
        if self.directed:
            return False
        return self.neighbour_pairs == tuple((i, i + 1) for i in range(self.k - 1))

    @cached_property
    def components(self) -> list[list[int]]:
        """Return the connected parts of the neighbour relation, as lists of positions.

        No budget applies to inputs of different parts, so a channel may reveal the part.
        """
        if self.pairs is None or self.is_line:
            return [[*range(self.k)]]
        part = label_connected_parts(self.k, self.pairs)
        return [np.flatnonzero(part == number).tolist() for number in np.unique(part)]

    @property
    def separation(self) -> str | None:
        """Describe a neighbour relation of several connected parts. None if there is one part."""
        parts = len(self.components)
        return describe_separation(parts) if parts > 1 else None

    def with_outputs(self, outputs: tuple[Point, ...]) -> FiniteQuery:
        """Return the same question with other outputs.

        Args:
            outputs: The outputs, shape (m,).
        """
        # The constructor reads texts and relations, so the finished attributes are copied instead.
        query = object.__new__(FiniteQuery)
        for name in self.__dataclass_fields__:
            query.__dict__[name] = getattr(self, name)
        query.__dict__["outputs"] = outputs
        return query

    def with_free_outputs(self) -> FiniteQuery:
        """Return the same question with real outputs, which a design chooses."""
        query = self.with_outputs(self.inputs)
        query.__dict__["has_free_outputs"] = True
        return query

    def metric_pairs(self) -> tuple[Pairs, Rationals]:
        """Return pairs with their distances for metric privacy.

        They are the given pairs and distances. Without given distances they are |x - x'|. If all
        inputs are neighbours, only consecutive inputs in increasing order are returned, because
        their budgets add up to the budgets of all other pairs.

        Returns:
            (pairs of positions, distance of each pair).

        Raises:
            InvalidRequest: If inputs that are no numbers have no distances.
        """
        if self.distances is not None:
            assert self.pairs is not None
            return self.pairs, self.distances
        if self.is_planar:
            return self._planar_pairs
        x = rationals_or_none(self.inputs)
        if x is None:
            must(
                "neighbours",
                "a matrix or list of distances for metric privacy of inputs that are no numbers",
                "none",
            )
        pairs = self.pairs
        if pairs is None:
            order = sorted(range(self.k), key=x.__getitem__)
            pairs = tuple(sorted((min(i, j), max(i, j)) for i, j in pairwise(order)))
        return pairs, tuple(abs(x[j] - x[i]) for i, j in pairs)

    @cached_property
    def _planar_pairs(self) -> tuple[Pairs, Rationals]:
        """Return pairs of places that imply the budgets of all neighbours, and their distances."""
        return reduce_metric_pairs(self.inputs, self.pairs, self.norm)

    def to_dict(self) -> Record:
        """Return the question as data for JSON.

        Returns:
            inputs, outputs, neighbours ("all" or pairs of positions), distances (None or one for
            each pair), prior ("worst" or weights), and where they apply free (outputs), directed
            and norm. Exact numbers are texts.
        """
        record: Record = {
            "inputs": [*map(format_point, self.inputs)],
            "outputs": [*map(format_point, self.outputs)],
            "neighbours": "all",
            "distances": None,
            "prior": "worst",
        }
        if self.pairs is not None:
            record["neighbours"] = [list(pair) for pair in self.pairs]
        if self.distances is not None:
            record["distances"] = [*map(format_fraction, self.distances)]
        if self.prior is not None:
            record["prior"] = [*map(format_fraction, self.prior)]
        if self.has_free_outputs:
            record["free"] = True
        if self.directed:
            record["directed"] = True
        if self.is_planar:
            record["norm"] = self.norm
        return record

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        first = format_point(self.inputs[0])
        last = format_point(self.inputs[-1])
        if self.pairs is None:
            relation = f"every two neighbours ({self.k * (self.k - 1) // 2} pairs)"
        else:
            relation = f"{len(self.pairs)} pairs of neighbours"
        if self.directed:
            relation += ", directed"
        outputs = "real outputs" if self.has_free_outputs else f"{self.m} outputs"
        return f"{self.k} inputs {first}..{last}, {outputs}, {relation}"


def _project(points: Sequence[Point], projection: Projection, name: str) -> tuple[Point, ...]:
    """Project longitudes and latitudes. Raises InvalidRequest if the points are no such pairs."""
    if not are_planar(points):
        must(name, "pairs of longitude and latitude with a projection", format_point(points[0]))
    return tuple(projection.project(point) for point in points)  # type: ignore[arg-type]


def _check_projected_neighbours(neighbours: Any) -> None:
    """Raise InvalidRequest unless neighbours are named by a norm. Pairs would be in degrees."""
    is_named = isinstance(neighbours, str) and neighbours.split(" ")[0] in ("all", "within")
    if not is_named:
        must("neighbours", '"within R NORM" or "all NORM" with a projection', repr(neighbours))
