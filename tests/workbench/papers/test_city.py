"""Test the synthetic city: its files, and the artifacts of a smaller city."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from workbench.papers import frontier

SMALL = 4


def weight(x: int, y: int) -> int:
    near, far = (x - 7) ** 2 + (y - 9) ** 2, (x - 18) ** 2 + (y - 15) ** 2
    return 1 + math.floor(40 * math.exp(-near / 32)) + math.floor(15 * math.exp(-far / 12))


def test_the_file_is_the_formula() -> None:
    rows = (frontier.DATA / "city.csv").read_text().split()
    assert rows == [
        "x,y,weight",
        *(f"{x},{y},{weight(x, y)}" for x in range(24) for y in range(24)),
    ]


def test_the_coarse_file_is_two_by_two_cells() -> None:
    rows = (frontier.DATA / "city_coarse.csv").read_text().split()[1:]
    block = [
        sum(weight(x + i, y + j) for i in (0, 1) for j in (0, 1))
        for x in range(0, 24, 2)
        for y in range(0, 24, 2)
    ]
    assert [int(row.split(",")[2]) for row in rows] == block


def test_a_small_city_has_a_frontier_and_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{x},{y},{weight(6 * x, 6 * y)}" for x in range(SMALL) for y in range(SMALL)]
    (tmp_path / "city.csv").write_text("\n".join(["x,y,weight", *rows]))
    monkeypatch.setattr(frontier, "DATA", tmp_path)
    frontier._compute_frontier.cache_clear()
    curves = frontier._make_frontier_artifact("city_full", True).table
    frontier._compute_frontier.cache_clear()
    losses = curves.pivot(index="epsilon", columns="mechanism", values="objective")
    assert len(losses) == 5
    for other in ("planar Laplace, remapped", "planar exponential"):
        assert (losses["channel"] <= losses[other]).all()
    shown = frontier._make_city_map(True)
    assert shown.table[
        ["prior", "published", "from_the_likeliest"]
    ].sum().tolist() == pytest.approx([1, 1, 1], abs=1e-3)
    assert shown.caption.count("Mean distance") == 1
