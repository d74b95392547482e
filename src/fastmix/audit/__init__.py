"""Audits: lower bounds on epsilon by experiment.

An audit can refute a claim and never prove one: see docs/audit.md.
"""

from fastmix.audit.case import Case, Claim, Data, Pair
from fastmix.audit.estimators import estimator_case
from fastmix.audit.runner import AuditResult, audit, audit_all, full_only, registry
from fastmix.show.plot import plot_histograms

__all__ = [
    "AuditResult",
    "Case",
    "Claim",
    "Data",
    "Pair",
    "audit",
    "audit_all",
    "estimator_case",
    "full_only",
    "plot_histograms",
    "registry",
]
