"""Design differential-privacy mechanisms by optimization, judge them by closed forms, audit them exactly.

    >>> import workbench as wb
    >>> d = wb.design(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5)
    >>> round(d.objective, 6)
    0.456808

Importing the workbench is cheap and needs neither a solver nor the model layer: every public name is loaded when it
is first used, so a saved mechanism can be audited and sampled inside somebody else's training code.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it; one line per name
_HOMES = {
    "AdditiveIntegerNoise": "workbench.mechanisms.integer_noise",
    "AdditiveNoise": "workbench.mechanisms.additive",
    "AdditiveRealNoise": "workbench.mechanisms.real_noise",
    "Certificate": "workbench.privacy.certificate",
    "Channel": "workbench.mechanisms.channel",
    "CorruptFile": "workbench.errors",
    "DataLaw": "workbench.mechanisms.dyadic_laplace.mean_length",
    "Design": "workbench.families.design",
    "DyadicLaplace": "workbench.mechanisms.dyadic_laplace.dyadic_laplace",
    "FiniteQuery": "workbench.mechanisms.finite_query",
    "Infeasible": "workbench.errors",
    "InsecureLocalStream": "workbench.mechanisms.dyadic_laplace.randomness",
    "InvalidRequest": "workbench.errors",
    "LaplaceDesign": "workbench.families.laplace.design",
    "LabelRandomizer": "workbench.mechanisms.label_randomizers.label_randomizer",
    "IntegerLaw": "workbench.exact.integer_law",
    "IntegerNoise": "workbench.mechanisms.integer_noise",
    "Labels": "workbench.mechanisms.label_randomizers.labels",
    "Ledger": "workbench.sweeps.ledger",
    "LicenceLimit": "workbench.errors",
    "LocalStream": "workbench.mechanisms.dyadic_laplace.randomness",
    "ModuloNoise": "workbench.mechanisms.additive",
    "NotCertified": "workbench.errors",
    "NotInstalled": "workbench.errors",
    "NotProven": "workbench.errors",
    "PiecewiseAffine": "workbench.mechanisms.piecewise_affine",
    "Privacy": "workbench.privacy.audit",
    "Quantization": "workbench.mechanisms.quantization",
    "QuantizedPiecewiseLinear": "workbench.mechanisms.dyadic_laplace.piecewise_linear",
    "SharedStream": "workbench.mechanisms.dyadic_laplace.randomness",
    "SolverUnavailable": "workbench.errors",
    "NoiseDesigner": "workbench.families.noise.design",
    "OracleVerdict": "workbench.families.design",
    "WorkbenchError": "workbench.errors",
    "delta_frontier": "workbench.families.noise.delta_frontier",
    "design": "workbench.families.api",
    "design_laplace": "workbench.families.laplace.design",
    "audit": "workbench.privacy.audit",
    "audit_channel": "workbench.privacy.audit",
    "budget_table": "workbench.frontiers.budget_table",
    "compare": "workbench.comparison.compare",
    "certify": "workbench.privacy.certify",
    "certify_channel": "workbench.privacy.certify",
    "certify_quantizer": "workbench.privacy.certify",
    "compose": "workbench.privacy.composition",
    "evaluate": "workbench.comparison.evaluate",
    "explore": "workbench.explorer.notebook",
    "error_at": "workbench.families.noise.delta_frontier",
    "frontier": "workbench.frontiers.run",
    "least_delta_at": "workbench.families.noise.delta_frontier",
    "list_families": "workbench.families.api",
    "load": "workbench.privacy.loading",
    "profile": "workbench.privacy.curve",
    "recommend": "workbench.comparison.recommend",
    "register": "workbench.io.plugins",
    "reproduce": "workbench.papers.reproduce",
    "RealNoise": "workbench.mechanisms.real_noise",
    "Result": "workbench.io.result",
    "Risk": "workbench.privacy.risk",
    "risk": "workbench.privacy.risk",
    "sample": "workbench.privacy.sampling",
    "sweep": "workbench.sweeps.run",
    "verify": "workbench.comparison.verify",
    "save": "workbench.privacy.certificate_file",
    "save_certificate": "workbench.privacy.certificate_file",
    "verify_certificate": "workbench.privacy.certificate_file",
    "audit_quantizer": "workbench.privacy.quantizer",
}

# earlier public name -> public name
_ALIASES = {"ChannelPairs": "Channel", "Quantizer": "PiecewiseAffine"}

__all__ = sorted([*_HOMES, *_ALIASES, "__version__"])


def __getattr__(name: str) -> Any:
    known = _ALIASES.get(name, name)
    if known not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    if _HOMES[known].startswith("workbench.errors"):
        value = getattr(importlib.import_module(_HOMES[known]), known)
    else:
        from workbench.io.extras import says_what_is_missing

        with says_what_is_missing(f"workbench.{known}"):
            value = getattr(importlib.import_module(_HOMES[known]), known)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
