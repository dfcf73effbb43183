"""Tests that programs built without CVXPY equal those that CVXPY compiles, to the last bit.

Models are stated in the language of CVXPY. `workbench.models.statement` builds the program without
loading CVXPY; `compile_program(model.problem(cp), ...)` lets CVXPY compile the same statement.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from workbench.families.modulo.family import FAMILY
from workbench.models.channel.program import CONSTRAINTS, ChannelModel, consecutive_pairs
from workbench.models.convex.requirements import RATIO_BOUNDS
from workbench.models.modulo.constraints import (
    NoiseEquations,
    compile_constraints,
    is_stated_without_cvxpy,
)
from workbench.models.modulo.program import MASS_SCALE, ModuloModel, loss_vector
from workbench.questions.modulo_noise import ModuloNoise
from workbench.solvers.canonical import compile_program
from workbench.solvers.data import Data
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.program import Program


def describe_blocks(blocks) -> list[tuple]:
    """Return (name, start, shape) of blocks, without the numbers in names that CVXPY makes."""
    return [(re.sub("^aux.*", "aux", block.name), block.start, block.shape) for block in blocks]


def assert_equal_arrays(direct: np.ndarray, compiled: np.ndarray, field: str) -> None:
    """Check that two arrays have equal entries and the same kind of dtype."""
    assert direct.dtype.kind == compiled.dtype.kind, field
    assert np.array_equal(direct, compiled), field


def assert_equal_data(direct: Data, compiled: Data) -> None:
    """Check that the numbers of two programs are equal bit by bit."""
    assert direct.offset == compiled.offset
    assert direct.A.shape == compiled.A.shape
    for field in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert_equal_arrays(getattr(direct, field), getattr(compiled, field), field)
    for field in ("data", "indices", "indptr"):
        assert_equal_arrays(getattr(direct.A, field), getattr(compiled.A, field), field)


def assert_equal_programs(direct: Program, compiled: Program) -> None:
    """Check that a program built directly equals the one that CVXPY compiles.

    The numbers are compared at zero and at two random values of the parameters.
    """
    assert list(direct.parameters.items()) == list(compiled.parameters.items())
    assert direct.scale == compiled.scale
    assert direct.sense == compiled.sense
    assert describe_blocks(direct.variables) == describe_blocks(compiled.variables)
    assert describe_blocks(direct.rows) == describe_blocks(compiled.rows)
    assert direct.moves.keys() == compiled.moves.keys()
    for section, move in direct.moves.items():
        assert np.array_equal(move.positions, compiled.moves[section].positions)
    assert_equal_data(direct.template, compiled.template)
    size = sum(int(np.prod(shape, dtype=int)) for shape in direct.parameters.values())
    for values in np.random.default_rng(size).uniform(low=1, high=9, size=(2, size)):
        assert_equal_data(direct.data_at(values), compiled.data_at(values))


def list_constraints(sizes: tuple[int, ...]):
    """Return no constraints, mean zero, and equal masses, for noise on a group."""
    N = int(np.prod(sizes))
    return None, NoiseEquations(sizes), NoiseEquations(equal_mass_groups=((1, N - 1), (2, 0, 3)))


LOSSES = ("error-rate", "squared", "worst-squared", "random matrix")
# Each row has the sizes of a group and the shifts.
GROUPS = [
    ((5,), ((1,), (4,))),
    ((6,), ((1,), (2,), (3,), (5,))),
    ((2, 3), ((0, 1), (1, 1))),
    ((4,), ((0,), (2,))),
]


@pytest.mark.parametrize(
    ("requires", "minimise", "has_delta"),
    [
        ("hockey-stick", "loss", True),
        ("hockey-stick", "delta", True),
        *((kind, "loss", False) for kind in RATIO_BOUNDS),
        ("mass-above-ratio", "loss", True),
        ("mass-above-ratio", "delta", True),
    ],
)
def test_noise_programs_equal_their_cvxpy_statements(requires: str, minimise: str, has_delta: bool):
    rng = np.random.default_rng(3)
    for k, (loss, (sizes, shifts)) in enumerate(itertools.product(LOSSES, GROUPS)):
        N = int(np.prod(sizes))
        if loss == "random matrix":
            losses = rng.normal(size=(N, N)) * rng.integers(0, 2, (N, N))
        else:
            losses = loss_vector(loss, sizes)
        groups = tuple(range(len(shifts)))[::-1] if k % 2 else ()
        # Every third group has the same kind of constraint, every second one a budget per shift.
        constraint = list_constraints(sizes)[k % 3]
        model = ModuloModel(
            sizes,
            shifts,
            requires,
            loss=losses,
            minimise=minimise,
            has_delta=has_delta,
            groups=groups,
            constraints=constraint,
        )
        assert_equal_programs(
            model.program, compile_program(model.problem(cp), "stated", scale=MASS_SCALE)
        )


def make_model_of_pattern() -> ModuloModel:
    """Return the model of noise modulo 6 in which random pairs may be broken.

    It has only the masses as variables.
    """
    broken = np.random.default_rng(5).integers(0, 2, (4, 6)).astype(bool)
    broken[1] = False
    shifts = ((1,), (2,), (3,), (5,))
    return ModuloModel(
        (6,), shifts, RATIO_BOUNDS[1], loss_vector("squared", (6,)), broken_pairs=broken
    )


def test_programs_of_a_given_pattern_equal_their_cvxpy_statements():
    model = make_model_of_pattern()
    assert_equal_programs(
        model.program, compile_program(model.problem(cp), "stated", scale=MASS_SCALE)
    )


def test_an_exact_program_equals_the_program_of_floats_at_dyadic_parameters():
    """e^ε = 3 and δ = 1/4 are exact as floats, so no number is rounded."""
    model = make_model_of_pattern()
    exact = RationalLP.from_program(model.program, {"exp_epsilon": [3], "delta": [Fraction(1, 4)]})
    data = model.program.data({"exp_epsilon": [3.0], "delta": 0.25})
    from_floats = RationalLP.from_data(data)
    for field in ("rows", "sides", "bounds", "cost"):
        assert getattr(exact, field) == getattr(from_floats, field)
    uniform = [Fraction(1, 6)] * 6
    assert exact.max_violation(uniform) == from_floats.max_violation(uniform) > 0


# Each row has pairs, the budget of each pair, whether there is a delta, and the objective.
CHANNELS = [
    (None, (), False, "loss"),
    ((), (), False, "loss"),
    (consecutive_pairs(4), (), False, "loss"),
    (consecutive_pairs(4), (2, 0, 2), True, "loss"),
    (tuple(itertools.combinations(range(4), 2)), (0, 1, 2, 0, 1, 0), False, "loss"),
    (consecutive_pairs(4), (), True, "delta"),
]


@pytest.mark.parametrize(("pairs", "groups", "has_delta", "minimise"), CHANNELS)
@pytest.mark.parametrize("prior", [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 0.0], None])
def test_channel_programs_equal_their_cvxpy_statements(
    pairs, groups, has_delta: bool, minimise: str, prior
):
    labels = np.arange(4.0)
    outputs = np.arange(5.0)
    distances = np.abs(labels[:, None] - outputs)
    losses = distances.copy()
    losses[0, 4] = np.inf  # This output is forbidden.
    losses[1, 2] = 1e-12  # This loss is too small for a solver.
    weights = None if prior is None else np.array(prior)
    for loss, scale, support in ((distances, 1.0, None), (losses, 2.0**20, distances > 0)):
        model = ChannelModel(
            labels,
            outputs,
            prior=weights,
            loss=loss,
            pairs=pairs,
            groups=groups,
            has_delta=has_delta,
            minimise=minimise,
            scale=scale,
            support=support,
        )
        assert_equal_programs(
            model.program, compile_program(model.problem(cp), "stated", scale=scale)
        )


@pytest.mark.parametrize("groups", [(), (1, 0, 1)])
def test_a_channel_that_states_some_comparisons_equals_its_cvxpy_statement(groups):
    labels = np.arange(4.0)
    outputs = np.arange(5.0)
    loss = np.abs(labels[:, None] - outputs)
    is_stated = np.random.default_rng(0).random((6, 5)) < 0.5
    model = ChannelModel(
        labels,
        outputs,
        prior=None,
        loss=loss,
        pairs=consecutive_pairs(4),
        groups=groups,
        has_delta=True,
        stated_comparisons=is_stated,
    )
    assert_equal_programs(model.program, compile_program(model.problem(cp), "stated"))
    dual = np.zeros(model.program.shape[0])
    for block in model.program.rows:
        if block.name.startswith("ratio_"):
            dual[block.start : block.start + block.size] = -1.0
    # Only stated comparisons have a multiplier.
    assert np.array_equal(model.multipliers(dual)["ratio"], is_stated)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_named_constraints_equal_their_cvxpy_statements(name: str):
    labels = np.array([0.0, 1.0, 1.5, 4.0])
    outputs = np.array([-1.0, 0.0, 1.0, 1.5, 4.0])
    loss = np.abs(labels[:, None] - outputs)
    model = ChannelModel(
        labels, outputs, prior=None, loss=loss, pairs=consecutive_pairs(4), constraints=(name,)
    )
    assert_equal_programs(model.program, compile_program(model.problem(cp), "stated"))


def test_a_channel_with_binary_variables_equals_its_cvxpy_statement():
    labels = np.arange(4.0)
    loss = np.abs(labels[:, None] - labels)
    model = ChannelModel(
        labels,
        labels,
        prior=None,
        loss=loss,
        pairs=consecutive_pairs(4),
        has_delta=True,
        requires=RATIO_BOUNDS[1],
    )
    assert_equal_programs(model.program, compile_program(model.problem(cp), "stated"))


def test_compiled_constraints_equal_their_cvxpy_statements():
    for sizes in ((5,), (6,), (2, 3)):
        for constraint in list_constraints(sizes)[1:]:
            N = int(np.prod(sizes))
            assert_equal_programs(
                compile_constraints(constraint, N),
                compile_constraints(lambda f, equations=constraint: equations(f), N),
            )


def test_constraints_of_options_need_no_cvxpy():
    options = {"epsilon": 1, "zero_mean": True, "equal": "1=3,0=2"}
    constraint = FAMILY.make_request(ModuloNoise(n=4, max_shift=1), **options).aim.constraints
    assert isinstance(constraint, NoiseEquations)
    model = ModuloModel(
        sizes=(5,),
        shifts=((1,), (4,)),
        requires=RATIO_BOUNDS[0],
        loss=loss_vector("squared", (5,)),
        constraints=constraint,
    )
    assert [block.name for block in model.program.rows if block.is_user_constraint] == [
        "mean zero",
        "equal masses 1=3",
        "equal masses 0=2",
    ]
    assert_equal_programs(
        model.program, compile_program(model.problem(cp), "stated", scale=MASS_SCALE)
    )
    options["constraints"] = lambda f: [f[1] >= 0.1]
    mixed = FAMILY.make_request(ModuloNoise(n=4, max_shift=1), **options).aim.constraints
    assert not is_stated_without_cvxpy(mixed)
    model = ModuloModel(
        sizes=(5,),
        shifts=((1,), (4,)),
        requires=RATIO_BOUNDS[0],
        loss=loss_vector("squared", (5,)),
        constraints=mixed,
    )
    assert_equal_programs(
        model.program, compile_program(model.problem(cp), "stated", scale=MASS_SCALE)
    )


@pytest.mark.parametrize(
    "command",
    [
        "design modulo --n 6 --max-shift 1 --epsilon 1 --delta 0.05 --notion pdp --zero-mean",
        "design modulo --n 6 --max-shift 1 --epsilon 1 --delta 0.05 --notion dp --method literal",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
        "design labels --labels 0..9 --epsilon 1",
        "design channel --answers 0..5 --max-shift 1 --loss absolute --epsilon 1",
        "design channel --answers 0..5 --max-shift 1 --loss absolute --epsilon 1 --delta 0.01",
        "design noise --sensitivity 1 --epsilon 1",
        "recommend --answers 0..5 --max-shift 1 --epsilon 1 --loss absolute",
    ],
)
def test_a_command_loads_no_slow_package(command: str):
    script = f"""
import sys
from workbench.cli import main
try:
    main({command.split()!r})
except SystemExit as stop:
    assert not stop.code, stop.code
slow_packages = {{"cvxpy", "pandas", "matplotlib", "scipy.stats", "scipy.optimize", "gurobipy"}}
print(sorted(set(sys.modules) & slow_packages))
"""
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1:] == ["[]"]
