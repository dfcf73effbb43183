"""Design differential-privacy mechanisms by optimization, and audit them exactly.

    >>> import workbench as wb
    >>> d = wb.design(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5)
    >>> round(d.objective, 6)
    0.456808

The import is fast and needs neither a solver nor a model, because every public name is loaded when
it is first used. A saved mechanism can therefore be audited and sampled inside other programs.
"""

from __future__ import annotations

import importlib
from typing import Any

from workbench.io import providers as _providers

__version__ = "0.1.0"

# The module that defines each public name.
_MODULE_BY_NAME = {
    "AdditiveIntegerNoise": "workbench.mechanisms.integer_noise",
    "AdditiveNoise": "workbench.mechanisms.additive",
    "AdditiveRealNoise": "workbench.mechanisms.real_noise",
    "Certificate": "workbench.privacy.certificate",
    "Channel": "workbench.mechanisms.channel",
    "CorruptFile": "workbench.errors",
    "DataLaw": "workbench.mechanisms.dyadic_laplace.mean_length",
    "Design": "workbench.pipeline.design",
    "DyadicLaplace": "workbench.mechanisms.dyadic_laplace.dyadic_laplace",
    "FiniteQuery": "workbench.questions.finite_query",
    "Infeasible": "workbench.errors",
    "InvalidRequest": "workbench.errors",
    "LabelRandomizer": "workbench.mechanisms.label_randomizers.label_randomizer",
    "IntegerNoise": "workbench.questions.unbounded_noise",
    "Labels": "workbench.questions.labels",
    "Ledger": "workbench.sweeps.ledger",
    "LicenceLimit": "workbench.errors",
    "ModuloNoise": "workbench.questions.modulo_noise",
    "NotApplicable": "workbench.errors",
    "NotCertified": "workbench.errors",
    "NotInstalled": "workbench.errors",
    "NotProven": "workbench.errors",
    "PiecewiseAffine": "workbench.mechanisms.piecewise_affine",
    "Quantization": "workbench.questions.quantization",
    "SolverUnavailable": "workbench.errors",
    "WorkbenchError": "workbench.errors",
    "denoise": "workbench.families.labels.denoising",
    "design": "workbench.pipeline.api",
    "audit": "workbench.privacy.public_audit",
    "compare": "workbench.comparison.compare",
    "check": "workbench.privacy.certificate_file",
    "certify": "workbench.privacy.certify",
    "compose": "workbench.privacy.composition",
    "explore": "workbench.explorer.notebook",
    "formula": "workbench.formulas.formula",
    "frontier": "workbench.frontiers.run",
    "measurement": "workbench.privacy.opendp",
    "load": "workbench.privacy.loading",
    "profile": "workbench.privacy.curve",
    "publish": "workbench.publishing.api",
    "recommend": "workbench.recommendation.recommend",
    "register": "workbench.io.plugins",
    "reproduce": "workbench.papers.reproduce",
    "RealNoise": "workbench.questions.unbounded_noise",
    "LedgerTerms": "workbench.privacy.release_ledger",
    "ReleaseLedger": "workbench.privacy.release_ledger",
    "Result": "workbench.io.result",
    "risk": "workbench.privacy.risk",
    "sample": "workbench.mechanisms.mechanism",
    "sweep": "workbench.sweeps.run",
    "verify": "workbench.comparison.verify",
    "save": "workbench.privacy.certificate_file",
}

__all__ = sorted([*_MODULE_BY_NAME, "__version__"])

# Where objects of higher layers are defined that lower layers load when they need them
# (`workbench.io.providers`). Only this file, the command line and the papers may name a module of a
# higher layer.
_PLACES_BY_KIND = {
    "families": {
        "modulo": "workbench.families.modulo.family:FAMILY",
        "noise": "workbench.families.noise.family:FAMILY",
        "channel": "workbench.families.channel.family:FAMILY",
        "quantizer": "workbench.families.quantizer.family:FAMILY",
        "labels": "workbench.families.labels.family:FAMILY",
        "laplace": "workbench.families.laplace.family:FAMILY",
    },
    # The modules of each family with `FRONTIER`, `instances()` and `candidates(query)`.
    "frontiers": {
        "modulo": "workbench.families.modulo.frontier_options",
        "noise": "workbench.families.noise.frontier_options",
        "channel": "workbench.families.channel.frontier_options",
        "quantizer": "workbench.families.quantizer.frontier_options",
        "labels": "workbench.families.labels.frontier_options",
        "laplace": "workbench.families.laplace.frontier_options",
    },
    "programs": {
        "modulo": "workbench.families.modulo.programs",
        "noise": "workbench.families.noise.programs",
        "quantizer": "workbench.families.quantizer.programs",
        "labels": "workbench.families.labels.programs",
    },
    "recommendations": {
        "modulo": "workbench.families.modulo.recommendation",
        "noise": "workbench.families.noise.recommendation",
        "channel": "workbench.families.channel.recommendation",
        "quantizer": "workbench.families.quantizer.recommendation",
        "labels": "workbench.families.labels.recommendation",
    },
    "published mechanisms": {
        "modulo": "workbench.families.modulo.published:PUBLISHED",
        "noise": "workbench.families.noise.published:PUBLISHED",
        "channel": "workbench.families.channel.published:PUBLISHED",
        "quantizer": "workbench.families.quantizer.published:PUBLISHED",
        "labels": "workbench.families.labels.published:PUBLISHED",
        "laplace": "workbench.families.laplace.published:PUBLISHED",
    },
    # Parts of certificate files and of designs that need the formulas.
    "proof readers": {
        "dp-workbench formula": "workbench.formulas.certificate:read_formula",
        "dp-workbench dyadic law": (
            "workbench.mechanisms.dyadic_laplace.exact_integers:read_dyadic_integers"
        ),
    },
    "design": {
        "shadow_prices": "workbench.formulas.shadow_prices:compute_shadow_prices",
        "only_optimum": "workbench.formulas.shadow_prices:is_only_optimum",
    },
    # For each group of plug-ins, the base class of its objects and the names of this package.
    "plugin bases": {
        "families": "workbench.pipeline.family:Family",
        "notions": "workbench.notions.notion:Notion",
        "backends": "workbench.solvers.contract:Backend",
        "baselines": "workbench.pipeline.published:Baseline",
    },
    "plugin names": {
        "families": "workbench.pipeline.registry:BUILTIN_FAMILIES",
        "notions": "workbench.notions:BUILT_IN_NOTIONS",
        "backends": "workbench.solvers.backend:CLASSES",
        "mechanisms": "workbench.privacy.certificate_file:BUILT_IN_KINDS",
    },
}

for _kind, _places in _PLACES_BY_KIND.items():
    _providers.register_places(_kind, _places)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    if _MODULE_BY_NAME[name].startswith("workbench.errors"):
        value = getattr(importlib.import_module(_MODULE_BY_NAME[name]), name)
    else:
        from workbench.io.extras import explaining_missing_modules

        with explaining_missing_modules(f"workbench.{name}"):
            value = getattr(importlib.import_module(_MODULE_BY_NAME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
