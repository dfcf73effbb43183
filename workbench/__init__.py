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
    "AdditiveNoise": "workbench.mechanisms.additive",
    "Certificate": "workbench.privacy.certificate",
    "ChannelPairs": "workbench.privacy.relation",
    "CorruptFile": "workbench.errors",
    "DataLaw": "workbench.mechanisms.dyadic_bits",
    "Design": "workbench.designing",
    "DyadicLaplace": "workbench.mechanisms.dyadic_laplace",
    "Infeasible": "workbench.errors",
    "InsecureLocalStream": "workbench.mechanisms.randomness",
    "InvalidRequest": "workbench.errors",
    "LaplaceDesign": "workbench.mechanisms.dyadic_design",
    "LabelDesign": "workbench.design_labels",
    "LabelRandomizer": "workbench.mechanisms.label_randomizer",
    "Labels": "workbench.mechanisms.labels",
    "Ledger": "workbench.ledger",
    "LicenceLimit": "workbench.errors",
    "LocalStream": "workbench.mechanisms.randomness",
    "ModuloNoise": "workbench.mechanisms.additive",
    "NotCertified": "workbench.errors",
    "NotProven": "workbench.errors",
    "PiecewiseAffine": "workbench.mechanisms.piecewise",
    "Privacy": "workbench.privacy.audit",
    "Quantization": "workbench.mechanisms.quantization",
    "Quantizer": "workbench.mechanisms.quantizer",
    "QuantizedPiecewiseLinear": "workbench.mechanisms.piecewise_linear",
    "SharedStream": "workbench.mechanisms.randomness",
    "SolverUnavailable": "workbench.errors",
    "NoiseDesigner": "workbench.design_noise",
    "OracleVerdict": "workbench.designing",
    "WorkbenchError": "workbench.errors",
    "delta_frontier": "workbench.frontier_exact",
    "design": "workbench.designing",
    "design_laplace": "workbench.mechanisms.dyadic_design",
    "audit": "workbench.privacy.audit",
    "audit_channel": "workbench.privacy.audit",
    "certify": "workbench.privacy.certify",
    "certify_channel": "workbench.privacy.certify",
    "certify_quantizer": "workbench.privacy.certify",
    "compose": "workbench.privacy.accounting",
    "error_at": "workbench.frontier_exact",
    "load": "workbench.privacy.loading",
    "profile": "workbench.privacy.curve",
    "sample": "workbench.privacy.sampling",
    "sweep": "workbench.sweeping",
    "save_certificate": "workbench.privacy.certificate_file",
    "verify_certificate": "workbench.privacy.certificate_file",
    "audit_quantizer": "workbench.privacy.quantizer",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
