"""OPTM, the linear programs of Cai et al. 2024: Theorem 5 (all pairs), Theorem 6 (reduced), Theorem 4 (asymmetric).

The mechanism draws a left bin by q^l_j and a right bin by q^r_{m-j} (mechanisms.baselines.two_bin in the workbench);
p(x, i) is a product of two q's. A linear program needs bounds o <= q <= u on one factor of each product: in z(x, i) >=
p(x, i) that factor is replaced by u, in w(x, i) <= p(x, i) by o, (11)-(12). The factor replaced is the one of the
shorter vector (q_j with j <= m/2), the own one q_j(i) when both have the same length; products with q_1(1) = 1 are
linear as they are. With m = 4 that leaves one number, q_2(1), and slices [l, l + 0.01] of it: 99 LPs for one choice of
bins.

    minimise    Σ_j Pr[B_j <= X < B_{j+1}] (ζ^r_{m-j} + B_{j+1} - B_j + ζ^l_j) / 2            (8); (7) when q^l = q^r
    subject to  z <= e^ε w  for every z of S̄_i and every w of S_i (Lemma 2), every i           Theorem 5
                q_i(i) >= q_j(i),  o <= q <= u,  Σ_i q_j(i) = 1

Theorem 5 is read as all pairs (z, w) of Lemma 2's two sets, as its proof needs; printed are only those with equal k,
and its "q_{m+1-j}(m+1-j)" must read q_{m+1-i}(m+1-i). All pairs of one i share a number t_i: z <= e^ε t_i, t_i <= w.
For a bin right of c the largest p is approached at the right ends of pieces (Lemma 2 prints p(B_k, i) there too,
which is harmless under its symmetry but not in Theorem 4's setting).

The authors' public code states other programs: models.optm_authors.

| paper              | here                                                        |
|--------------------|-------------------------------------------------------------|
| q^(l)_j, q^(r)_j   | columns ("l", j, k), ("r", j, k); symmetric: only "l"       |
| o_j(i), u_j(i)     | bounds: {(side, j): (o, u)}, arrays of length j             |
| ζ                  | in `losses`                                                  |
| Theorem 6          | `reduced`: bounds (u_{s-1}(s-1), o_{t-1}(1), o_t(1))        |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.arrays import Vector

from .entrywise_program import EntrywiseProgram

__all__ = ["Bounds", "Key", "TwoBinShape"]

Key = tuple[str, int]
Bounds = Mapping[Key, tuple[Vector, Vector]]
Term = tuple[int, Key | None, int, float]


@dataclass(frozen=True)
class TwoBinShape:
    """Bins and who may draw what: the columns, pieces and products of the two-bin family.

    Attributes:
        bins: B_1 < ... < B_m, floats.
        c: half the width of the inputs.
        masses: Pr[X in piece] for every piece, from left to right.
        symmetric: q^l = q^r (for symmetric bins and densities).
    """

    bins: tuple[float, ...]
    c: float
    masses: tuple[float, ...]
    symmetric: bool = True

    @property
    def m(self) -> int:
        """The number of bins."""
        return len(self.bins)

    @cached_property
    def pieces(self) -> list[tuple[int, float, float]]:
        """(j, a, b): for x in [a, b) there are j bins at or left of x."""
        inside = [b for b in self.bins if -self.c < b < self.c]
        ends = [-self.c, *inside, self.c]
        below = sum(b <= -self.c for b in self.bins)
        return [(below + k, ends[k], ends[k + 1]) for k in range(len(ends) - 1)]

    @cached_property
    def vectors(self) -> list[Key]:
        """The selection distributions that inputs use, as (side, length)."""
        left = {("l", j) for j, _, _ in self.pieces}
        right = {("l" if self.symmetric else "r", self.m - j) for j, _, _ in self.pieces}
        return sorted(left | right)

    @cached_property
    def column(self) -> dict[tuple[str, int, int], int]:
        """(side, j, k) -> column, k = 1..j."""
        names = [(side, j, k) for side, j in self.vectors for k in range(1, j + 1)]
        return {name: at for at, name in enumerate(names)}

    def chosen(self, j: int) -> Key | None:
        """Which factor of the products of piece j is replaced by its bounds; None: the own one."""
        if j < self.m - j:
            return "l", j
        if j > self.m - j:
            return "l" if self.symmetric else "r", self.m - j
        return None if self.symmetric else ("l", j)

    @cached_property
    def bounded(self) -> list[Key]:
        """The vectors of two entries or more that need bounds."""
        chosen_keys = {self.chosen(j) or ("l", j) for j, _, _ in self.pieces}
        return sorted(key for key in chosen_keys if key[1] > 1)

    def factors(
        self, j: int, i: int, x: float
    ) -> tuple[tuple[str, int, int], list[tuple[tuple[str, int, int], float]]]:
        """p(x, i) of eq. (4) on piece j as own factor and (other factor, coefficient) pairs."""
        m, B = self.m, self.bins
        right = "l" if self.symmetric else "r"
        if i <= j:
            others = [((right, m - j, m + 1 - r), (B[r - 1] - x) / (B[r - 1] - B[i - 1])) for r in range(j + 1, m + 1)]
            return ("l", j, i), others
        others = [(("l", j, l), (x - B[l - 1]) / (B[i - 1] - B[l - 1])) for l in range(1, j + 1)]
        return (right, m - j, m + 1 - i), others

    @cached_property
    def _known_terms(self) -> dict[tuple[int, int, float], tuple[int | None, list[Term]]]:
        return {}

    def _terms(self, j: int, i: int, x: float) -> tuple[int | None, list[Term]]:
        """What `replaced` computes from, worked out once for all bounds: the column of the own factor where it stays
        (else None), and terms (column, vector that is fixed or None for the value 1, its entry, coefficient)."""
        if (j, i, x) not in self._known_terms:
            own, others = self.factors(j, i, x)
            key = self.chosen(j)
            alone = not (key is None or own[:2] == key)
            terms: list[Term] = []
            for name, k in others:
                fixed = name if alone else own
                terms.append((self.column[name], None if fixed[1] == 1 else fixed[:2], fixed[2] - 1, k))
            self._known_terms[j, i, x] = self.column[own] if alone else None, terms
        return self._known_terms[j, i, x]

    def replaced(self, j: int, i: int, x: float, fixed: Mapping[Key, Vector]) -> tuple[list[int], list[float]]:
        """Columns and coefficients of p(x, i) when the chosen factor takes the values `fixed`."""
        own, parts = self._terms(j, i, x)
        values = [k if key is None else float(fixed[key][at]) * k for _, key, at, k in parts]
        return ([column for column, *_ in parts], values) if own is None else ([own], [sum(values)])

    @property
    def rows_of(self) -> range:
        """The bins whose privacy is stated: half of them when symmetric."""
        return range(1, (self.m + 1) // 2 + 1) if self.symmetric else range(1, self.m + 1)

    @cached_property
    def losses(self) -> tuple[Vector, float]:
        """(8) as costs of the columns and a constant."""
        loss, constant, B, m = np.zeros(len(self.column)), 0.0, self.bins, self.m
        right = "l" if self.symmetric else "r"
        for (j, _, _), mass in zip(self.pieces, self.masses, strict=True):
            constant += mass * (B[j] - B[j - 1]) / 2
            for l in range(1, j + 1):
                loss[self.column["l", j, l]] += mass * (B[j - 1] - B[l - 1]) / 2
            for r in range(j + 1, m + 1):
                loss[self.column[right, m - j, m + 1 - r]] += mass * (B[r - 1] - B[j]) / 2
        return loss, constant

    def program(self, extra: int, bounds: Bounds) -> EntrywiseProgram:
        """Σ q = 1 and these bounds, without losses; `extra` more columns in [0, 1]."""
        lp = EntrywiseProgram(len(self.column) + extra)
        for key, ends in bounds.items():
            first = self.column[(*key, 1)]
            for k, (low, high) in enumerate(zip(*ends, strict=True)):
                lp.lower[first + k], lp.upper[first + k] = low, high
        for side, j in self.vectors:
            lp.row([self.column[side, j, k] for k in range(1, j + 1)], [1.0] * j, 1.0, 1.0)
        return lp

    def _lp(self, extra: int, bounds: Bounds) -> EntrywiseProgram:
        """The same with the losses."""
        lp = self.program(extra, bounds)
        lp.c[: len(self.column)], lp.offset = self.losses
        return lp

    def theorem5(self, epsilon: float, bounds: Bounds, *, optimistic: bool = False) -> EntrywiseProgram:
        """The LP of Theorem 5 (Theorem 4 when not symmetric).

        bounds: (o, u) of every vector in `bounded`. optimistic: o and u change places in the products, which turns
        the restriction into a relaxation of every LP whose bounds lie within these: its value bounds theirs below.
        """
        n, m, B, c = len(self.column), self.m, self.bins, self.c
        lp = self._lp(m, bounds)
        high = {key: pair[0 if optimistic else 1] for key, pair in bounds.items()}
        low = {key: pair[1 if optimistic else 0] for key, pair in bounds.items()}
        odds = float(np.exp(epsilon))
        for i in self.rows_of:
            inside = -c < B[i - 1] < c
            for j, a, b in self.pieces:
                top, bottom = (a, b) if i <= j else (b, a)
                if not inside or top == B[i - 1]:
                    columns, values = self.replaced(j, i, top, high)
                    lp.row([*columns, n + i - 1], [*values, -odds], -np.inf, 0.0)  # z <= e^ε t
                columns, values = self.replaced(j, i, bottom, low)
                lp.row([*columns, n + i - 1], [-v for v in values] + [1.0], -np.inf, 0.0)  # t <= w
        for side, i in self.vectors:
            for side2, j in self.vectors:
                if side2 == side and j > i:
                    pair = [self.column[side, i, i], self.column[side, j, i]]
                    lp.row(pair, [-1.0, 1.0], -np.inf, 0.0)  # q_i(i) >= q_j(i)
        return lp

    def theorem6(self, epsilon: float, u: float, o_before: float, o_last: float) -> EntrywiseProgram:
        """The reduced LP of Theorem 6 for symmetric bins with at least two inside (-c, c).

        u, o_before, o_last: the bounds on q_{s-1}(s-1), q_{t-1}(1), q_t(1); B_s < B_t are the bins in (-c, c)
        closest to -c and c. (What is known to be 1 needs no bound.)
        """
        c, m, col = self.c, self.m, self.column
        inside = [k for k in range(1, m + 1) if -c < self.bins[k - 1] < c]
        if not self.symmetric or len(inside) < 2:
            raise ValueError("Theorem 6 must have symmetric bins with at least two inside (-c, c).")
        s, t = inside[0], inside[-1]
        lp = self._lp(0, {})
        self._ordered(lp, inside)
        odds = float(np.exp(epsilon))
        larger, smaller = self._reduced_products(s, t, u, o_before, o_last)
        for large in larger:
            for small in smaller:
                lp.row([*large, *small], [*large.values(), *(-odds * v for v in small.values())], -np.inf, 0.0)
        self._steeper(lp, s, t)
        for name, bound in ((("l", t - 1, 1), o_before), (("l", t, 1), o_last)):
            if name in col and (name[1] != t or m - t > 1):
                lp.lower[col[name]] = max(lp.lower[col[name]], bound)
        if s > 2:
            lp.upper[col["l", s - 1, s - 1]] = u
        return lp

    def _below(self, lp: EntrywiseProgram, small: tuple[int, int], large: tuple[int, int], factor: float = 1.0) -> None:
        """q(small) <= factor q(large), where there are both."""
        pair = [self.column.get(("l", *name)) for name in (small, large)]
        if pair[0] is not None and pair[1] is not None and pair[0] != pair[1]:
            lp.row([pair[0], pair[1]], [1.0, -factor], -np.inf, 0.0)

    def _ordered(self, lp: EntrywiseProgram, inside: Sequence[int]) -> None:
        """q_{j+1}(i) <= q_j(i) <= q_j(i+1), and q_{i+1}(i+1) <= q_i(i)."""
        for _, j in self.vectors:
            for i in range(1, j + 1):
                self._below(lp, (j + 1, i), (j, i))
                if i < j:
                    self._below(lp, (j, i), (j, i + 1))
        for i in inside:
            self._below(lp, (i + 1, i + 1), (i, i))

    def _reduced_products(
        self, s: int, t: int, u: float, o_before: float, o_last: float
    ) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
        """The two largest probabilities of an output, and the two smallest, each linear: column -> coefficient."""
        B, c, m, col = self.bins, self.c, self.m, self.column
        j0, jt = s - 1, t - 1  # x = -c has s - 1 bins at its left, x -> B_t from the left t - 1
        upper = 1.0 if j0 == 1 else u
        z0 = {col["l", m - j0, m + 1 - r]: upper * (B[r - 1] + c) / (B[r - 1] - B[j0 - 1]) for r in range(s, m + 1)}
        later = range(t + 1, m + 1)
        w1 = {col["l", m - jt, m + 1 - r]: o_before * (B[r - 1] - B[t - 1]) / (B[r - 1] - B[0]) for r in later}
        if m - t == 1:  # the other factor is q_1(1) = 1: no bound is needed
            w2 = {col["l", t, 1]: (B[m - 1] - c) / (B[m - 1] - B[0])}
        else:
            w2 = {col["l", m - t, m + 1 - r]: o_last * (B[r - 1] - c) / (B[r - 1] - B[0]) for r in later}
        return [{col["l", s, s]: 1.0}, z0], [w1, w2]

    def _steeper(self, lp: EntrywiseProgram, s: int, t: int) -> None:
        """What Theorem 6 asks of vectors of lengths that follow each other."""
        B, m = self.bins, self.m
        for k in range(s, t + 1):
            for r in range(k + 2, m + 1):
                factor = (B[r - 1] - B[k - 1]) / (B[r - 1] - B[k])
                for first, second in ((m - k + 1, m - k), (m - k, m - k - 1)):
                    self._below(lp, (second, m - r + 1), (first, m - r + 1), factor)

    def selection(self, x: Vector) -> tuple[list[Vector | None], list[Vector | None]]:
        """The left and right selection distributions of a point, for `two_bin`: None where no input uses one."""
        right = "l" if self.symmetric else "r"

        def read(side: str, j: int) -> Vector | None:
            if (side, j) not in self.vectors:
                return None
            first = self.column[side, j, 1]
            return np.maximum(x[first : first + j], 0.0)

        return [read("l", j) for j in range(1, self.m)], [read(right, j) for j in range(1, self.m)]
