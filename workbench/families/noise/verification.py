"""The grid that noise on the integers and the reals is verified on: requests whose optimum a closed form knows.

question                 notion            judged by
integers, D = 1     dp, curve, tradeoff    canonical discrete noise (Awan and Ramasethu)
integers, D = 1          gdp               the rounded Gaussian, an optimum; D > 1: an upper bound
integers                 renyi, zcdp       the discrete Gaussian, an upper bound
integers, reals          pure              the staircase (Geng and Viswanath)
"""

from __future__ import annotations

from workbench.families.verification import Group
from workbench.mechanisms.integer_noise import IntegerNoise
from workbench.mechanisms.real_noise import RealNoise

__all__ = ["groups"]


def groups(small: bool) -> list[Group]:
    """Questions x notions, each at several budgets."""
    unit, double = IntegerNoise(1), IntegerNoise(2)
    small_groups = [
        Group(unit, {"notion": "dp"}, [{"epsilon": 1.0, "delta": 1e-3}, {"epsilon": 0.5, "delta": 1e-2}]),
        Group(unit, {"notion": "curve", "curve": "0.5:0.1,1:0.01"}, [{}]),
        Group(unit, {"notion": "curve", "curve": "0.5:0.1,2:0"}, [{}]),
        Group(unit, {"notion": "tradeoff", "tradeoff": "0:0.95,0.1:0.6,0.4:0.2,0.9:0"}, [{}]),
        Group(double, {"notion": "pure"}, [{"epsilon": 0.5}, {"epsilon": 1.0}]),
        Group(double, {"notion": "renyi", "alpha": 3}, [{"epsilon": 0.5}]),
        Group(RealNoise(1), {"notion": "pure", "loss": "absolute"}, [{"epsilon": 1.0}]),
    ]
    if small:
        return small_groups
    return [
        *small_groups,
        Group(unit, {"notion": "gdp", "mu": 1}, [{}]),
        Group(double, {"notion": "gdp", "mu": 1.5}, [{}]),
        Group(unit, {"notion": "zcdp", "rho": 0.05}, [{}]),
        Group(double, {"notion": "zcdp", "rho": 0.5, "loss": "absolute"}, [{}]),
        Group(unit, {"notion": "renyi", "alpha": 2}, [{"epsilon": 0.1}, {"epsilon": 1.0}]),
    ]
