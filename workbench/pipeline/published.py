"""Register the mechanisms that designs are compared with: published ones and baselines.

Every mechanism to compare with is one entry, a `Published`: its name, its source, which requests it
serves, and its expected loss at the budget of a request. Entries come from three places:

    a family     lists its own in its file `published.py`, which `published_mechanisms` returns
    a package    registers a `Baseline`, by `workbench.register` or an entry point of the group
                 workbench.baselines
    the user     gives a `Baseline` by `--baseline`, which `workbench.pipeline.user_baselines` reads

Frontiers and `recommend` ask for the entries of all three (`list_entries`). Reports of designs and
`reproduce published`, whose results must not depend on installed packages, ask for the entries of
the family (`published_for`).

An entry that does not apply to a request raises NotApplicable with the reason. The exact audit
decides whether a baseline is private at a budget. The probabilities of a baseline may be doubles
that exceed the budget only because they are rounded. The baseline is then repaired
(`workbench.privacy.certify`): the smallest share of a private law that makes it private is mixed
in. The loss is the loss of the mixture, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

from workbench.errors import InvalidRequest, NotApplicable, NotCertified, WorkbenchError
from workbench.exact.numbers import ONE, round_up
from workbench.exact.objects import Values
from workbench.io.plugins import load_plugins
from workbench.io.result import Row
from workbench.mechanisms.mechanism import Mechanism, as_mechanism, has_real_inputs
from workbench.pipeline.requirements import bounds_one_ratio
from workbench.privacy.audit import audit, audit_extremes, provably_satisfies_claim, satisfies_claim
from workbench.privacy.certify import certify
from workbench.privacy.claim import Claim
from workbench.solvers.search import Deadline

USER_PACKAGE = "own"  # Stands for the package in entries of baselines that the user gives.
# A law that is not private at its budget, but at a budget larger by this share, is repaired.
_BUDGET_ROUNDING = Fraction(1, 10**12)
# The same for δ, which is increased by this much.
_DELTA_ROUNDING = Fraction(1, 10**15)
# A repair that moves more probability than this is refused: it repairs more than rounding.
_MAX_MOVED_MASS = 1e-9


class ComparedFamily(Protocol):
    """What the registry needs of a `Family`."""

    name: str

    def published_mechanisms(self) -> Sequence[Published]:
        """List the mechanisms that designs are compared with (`Family.published_mechanisms`)."""

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the expected loss of a mechanism for a request (`Family.compute_loss`)."""

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Adapt a mechanism to the neighbours of a request (`Family.relate_mechanism`)."""


@dataclass(frozen=True)
class Reference:
    """The expected loss of a published mechanism at the budget of a request, and how it is known.

    Attributes:
        objective: Expected loss.
        is_certified: Whether exact arithmetic proves the mechanism private.
        mechanism: The audited mechanism. None for a closed form.
        symbol: Symbol of the mechanism's parameter. Empty if it has none.
        value: Value of that parameter.
        status: Status of the row in a frontier if there is no mechanism to audit.
        extra_columns: Further columns of that row.
        note: A sentence on what was done to the mechanism.
    """

    objective: float
    is_certified: bool = False
    mechanism: Any = None
    symbol: str = ""
    value: float | None = None
    status: str = "closed form"
    extra_columns: Values = field(default_factory=dict)
    note: str = ""

    @property
    def parameter_text(self) -> str:
        """Return the parameter as text, or the note."""
        if self.symbol:
            return f"{self.symbol} = {self.value:.6g}"
        return self.note

    def explain_shortfall(self, request: Any) -> str:
        """Return a sentence on the budget that the mechanism exceeds.

        Args:
            request: The request whose budget is exceeded.
        """
        claim = request.audited_claim
        if claim.is_epsilon_delta:
            privacy = audit(self.mechanism, claim.values["epsilon"])
            return privacy.describe_verdict(claim.adapt_to(self.mechanism))
        budget = f"{claim.notion.name}, {claim.describe_budget()}"
        return f"The mechanism is NOT private at the requested budget: {budget}"

    def row(self, request: Any) -> Row:
        """Return the columns of a frontier, with the exact audit of the mechanism.

        Args:
            request: The request, whose budget the audit compares with.

        Raises:
            NotApplicable: The mechanism is not private at the budget.
        """
        row: Row = {"objective": self.objective, "parameter": self.value, "status": self.status}
        if self.mechanism is None:
            return {**row, **self.extra_columns}
        audited: Row = {}
        if request.audited_claim.is_epsilon_delta:
            privacy = audit_extremes(self.mechanism, request.claim.epsilon)
            audited = {"dp_delta": privacy.dp_delta.upper, "pure_epsilon": privacy.pure_epsilon}
            # The PDP delta of a law with a parameter is left out. The law may be clamped after this
            # audit, and PDP does not survive post-processing.
            if not self.symbol and not has_real_inputs(self.mechanism):
                audited["pdp_delta"] = round_up(privacy.pdp_delta)
        if not self.is_certified:
            columns = {**audited, "private": False}
            raise NotApplicable(self.explain_shortfall(request), "not_certified", columns)
        notes = {"note": self.note} if self.note else {}
        return {
            **row,
            **audited,
            **self.extra_columns,
            "private": True,
            "status": "audited",
            "failure": None,
            **notes,
        }


@dataclass(frozen=True)
class Published:
    """One mechanism that designs of a family are compared with.

    Attributes:
        name: Name in tables and plots.
        source: Authors and year; of a baseline its package.
        make_reference: Function of a request of the family, or of a query with the same fields,
            that returns a `Reference` or raises NotApplicable.
        serves: Whether it is for the question of a request.
        any_budget: Whether it is also listed for several runs, and under notions that bound more
            than one ratio, such as zcdp.
        with_prior: Whether it is fitted to the prior of the query.
        is_unbiased: Whether the mean of its output is the true answer.
        fixed: Columns of its rows that are the same at every point of a frontier.
        package: Package that registered it, or `USER_PACKAGE`. Empty if a family lists it.
        parameter_meaning: What the letter in its note means, such as r in "r = 0.459".
    """

    name: str
    source: str
    make_reference: Callable[[Any], Reference]
    serves: Callable[[Any], bool] = lambda request: True
    any_budget: bool = False
    with_prior: bool = False
    is_unbiased: bool = False
    fixed: Values = field(default_factory=dict)
    package: str = ""
    parameter_meaning: str = ""

    def is_listed_for(self, request: Any) -> bool:
        """Whether frontiers and reports list it for a request.

        Args:
            request: A request of the family, or a query with the same fields.
        """
        has_usual_budget = request.aim.runs == 1 and bounds_one_ratio(request.claim.notion)
        return self.serves(request) and (self.any_budget or has_usual_budget)

    def row(self, request: Any) -> Row:
        """Return the columns of a frontier at one request.

        Args:
            request: A request of the family, or a query with the same fields.
        """
        clock = Deadline()
        return self.make_reference(request).row(request) | {"seconds": clock.elapsed_seconds}


@dataclass(frozen=True)
class Baseline:
    """A mechanism of a package or a user, which becomes a `Published` of the registry.

    The mechanism is audited exactly, and the family computes its expected loss.

    Attributes:
        name: Name in tables and plots.
        family: Name of the family.
        mechanism: Function of a request that returns the mechanism for its budget. None if there is
            none.
    """

    name: str
    family: str
    mechanism: Callable[[Any], Mechanism | None]

    def build(self, request: Any) -> Mechanism:
        """Return the mechanism for a request.

        Args:
            request: A request of the family.

        Raises:
            NotApplicable: There is none for its budget. The baseline's own code may raise anything
                else.
        """
        mechanism = self.mechanism(request)
        if mechanism is None:
            raise NotApplicable("no mechanism of it meets the budget", "infeasible")
        return as_mechanism(mechanism)

    def publish(self, family: ComparedFamily, package: str) -> Published:
        """Return the entry of the registry for this baseline.

        Args:
            family: The family of the baseline.
            package: Package that registered it, or `USER_PACKAGE`.
        """
        return Published(
            name=self.name,
            source=package,
            make_reference=partial(_audit_baseline, family, self, package),
            serves=lambda request: request.aim.runs == 1,  # The audit is of one run.
            any_budget=True,
            fixed={"package": package},
            package=package,
        )


def list_entries(
    family: ComparedFamily, user_baselines: Sequence[Baseline] = ()
) -> list[Published]:
    """List everything that designs of a family are compared with.

    Args:
        family: The `Family`.
        user_baselines: Baselines of the user for this family.

    Returns:
        The entries of the family, then those of packages, then those of the user.
    """
    registered = [
        plugin
        for plugin in load_plugins("baselines").values()
        if plugin.extension.family == family.name
    ]
    return [
        *family.published_mechanisms(),
        *(plugin.extension.publish(family, plugin.package) for plugin in registered),
        *(baseline.publish(family, USER_PACKAGE) for baseline in user_baselines),
    ]


def published_for(request: Any, family: ComparedFamily | None = None) -> list[Published]:
    """List the published mechanisms of a family that serve a request.

    Args:
        request: A request of the family, or a query with the same fields.
        family: The family. Default: the family of the request.
    """
    listed = (request.family if family is None else family).published_mechanisms()
    return [entry for entry in listed if entry.serves(request)]


def index_by_name(entries: Iterable[Published]) -> dict[str, Published]:
    """Index entries by their names.

    Args:
        entries: Entries of the registry.
    """
    return {entry.name: entry for entry in entries}


def compute_references(entries: Iterable[Published], request: Any) -> dict[str, Reference]:
    """Compute the losses, by name, of the entries that are listed for a request and apply to it.

    Args:
        entries: Entries of the registry.
        request: A request of the family, or a query with the same fields.
    """
    references = {}
    for entry in entries:
        if entry.is_listed_for(request):
            with suppress(NotApplicable):
                references[entry.name] = entry.make_reference(request)
    return references


# Baselines.


@contextmanager
def refuse_foreign_errors(package: str) -> Iterator[None]:
    """Turn every error in the code of a package or a user into NotApplicable.

    Errors of the workbench and Ctrl-C pass.

    Args:
        package: Name of the package in the message.
    """
    try:
        yield
    except (WorkbenchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise NotApplicable(f"{package}: {type(error).__name__}: {error}", "failed") from error


def _audit_baseline(
    family: ComparedFamily, baseline: Baseline, package: str, request: Any
) -> Reference:
    """Audit a baseline under the neighbours of a question, and compute its expected loss.

    Args:
        family: The family of the request.
        baseline: The baseline to audit.
        package: Name of the package that registered it, for errors.
        request: The request.

    Raises:
        NotApplicable: The baseline fails, or is not private at the budget.
    """
    with refuse_foreign_errors(package):
        mechanism = baseline.build(request)
        related = family.relate_mechanism(request, mechanism)
        if satisfies_claim(related, request.audited_claim.adapt_to(related)):
            return Reference(
                family.compute_loss(request, mechanism), is_certified=True, mechanism=related
            )
        repaired = _repair_rounding(related, request.audited_claim)
        if repaired is None:
            return Reference(
                family.compute_loss(request, mechanism), is_certified=False, mechanism=related
            )
        note = (
            "Its rounded probabilities exceed the budget by rounding alone. The loss is that of "
            "the repaired mechanism. The repair moves less than 1e-9 of the probability."
        )
        return Reference(
            family.compute_loss(request, repaired), is_certified=True, mechanism=repaired, note=note
        )


def _repair_rounding(mechanism: Mechanism, claim: Claim) -> Mechanism | None:
    """Return the repaired mechanism, if only the rounding of doubles exceeds the budget.

    None if the mechanism exceeds the budget by more, or if the budget is a curve of points.
    """
    wider_budget = {name: _widen(name, value) for name, value in claim.values.items()}
    if None in wider_budget.values():
        return None
    wider_claim = Claim(claim.notion, **wider_budget).adapt_to(mechanism)
    if not provably_satisfies_claim(mechanism, wider_claim):
        return None
    try:
        certificate = certify(mechanism, claim.notion, **claim.values)
    except (InvalidRequest, NotCertified):
        return None
    record_names = ("repair_mixed_in", "repair_moved_mass")
    moved_mass = max(certificate.record.get(name, 0.0) for name in record_names)
    if moved_mass > _MAX_MOVED_MASS:
        return None
    return certificate.mechanism


def _widen(name: str, value: Any) -> Any:
    """Enlarge a parameter of a budget by what rounding may change. None: it is no number.

    Args:
        name: Name of the parameter.
        value: A number, or a number for each pair of neighbours.
    """
    if name == "alpha":
        # A larger order would be a stricter budget.
        return value
    if isinstance(value, Mapping):
        return {label: _widen(name, number) for label, number in value.items()}
    if not isinstance(value, Fraction):
        return None
    if name == "delta" and value:
        return min(ONE, value + _DELTA_ROUNDING)
    return value * (1 + _BUDGET_ROUNDING)
