"""Privacy accounting: scalars in, scalars out; nothing here sees data."""

from fastmix.accounting.account import Part, PrivacySpent, RdpAccountant, RenyiCurve
from fastmix.accounting.budget import BudgetAccountant
from fastmix.accounting.calibration import calibrate, calibrate_gaussian
from fastmix.accounting.charge import one_row_per_person
from fastmix.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from fastmix.accounting.events import (
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    ObjectiveEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
    event_from_dict,
)
from fastmix.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from fastmix.accounting.notes import noted
from fastmix.accounting.perturbation import (
    composing_eps_c,
    objective_delta,
    objective_mu,
    objective_split,
    rdp_objective,
)
from fastmix.accounting.rdp import (
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_gaussian,
    rdp_laplace,
)

__all__ = [
    "BudgetAccountant",
    "ComposedEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "NonPrivateEvent",
    "ObjectiveEvent",
    "Part",
    "PrivacyEvent",
    "PrivacySpent",
    "RdpAccountant",
    "RenyiCurve",
    "SketchEvent",
    "TailEvent",
    "calibrate",
    "calibrate_gaussian",
    "composing_eps_c",
    "event_from_dict",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "noted",
    "objective_delta",
    "objective_mu",
    "objective_split",
    "one_row_per_person",
    "rdp_fast_mix",
    "rdp_fast_mix_sharp",
    "rdp_fast_mix_unbounded",
    "rdp_gauss_mix",
    "rdp_gaussian",
    "rdp_laplace",
    "rdp_objective",
    "rdp_to_delta",
    "rdp_to_epsilon",
]
