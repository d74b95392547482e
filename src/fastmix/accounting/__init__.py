"""Privacy accounting: scalars in, scalars out; nothing here sees data."""

from fastmix.accounting.accountant import RdpAccountant
from fastmix.accounting.budget import BudgetAccountant
from fastmix.accounting.calibration import (
    FastIHMCalibration,
    FastMixCalibration,
    GaussMixCalibration,
    IHMCalibration,
    calibrate_fast_ihm,
    calibrate_fast_mix,
    calibrate_gauss_mix,
    calibrate_ihm,
    fast_mix_epsilon,
)
from fastmix.accounting.closed_form import (
    closed_form_epsilon,
    closed_form_epsilon_unbounded,
    closed_form_gamma,
    closed_form_gradient_sigma,
    noise_upadhyay,
)
from fastmix.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from fastmix.accounting.events import (
    ChoiceEvent,
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
    event_from_dict,
)
from fastmix.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from fastmix.accounting.rdp import (
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_fast_mix_simple,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_gaussian,
    rdp_laplace,
)
from fastmix.accounting.spent import Part, PrivacySpent, RenyiCurve
from fastmix.accounting.tuned import (
    JointMixCalibration,
    TunedCalibration,
    TunedOption,
    calibrate_joint_mix,
    calibrate_tuned_fast_ihm,
    calibrate_tuned_ihm,
    step_noise,
)

__all__ = [
    "BudgetAccountant",
    "ChoiceEvent",
    "ComposedEvent",
    "FastIHMCalibration",
    "FastMixCalibration",
    "GaussMixCalibration",
    "GaussianEvent",
    "IHMCalibration",
    "JointMixCalibration",
    "LaplaceEvent",
    "NonPrivateEvent",
    "Part",
    "PrivacyEvent",
    "PrivacySpent",
    "RdpAccountant",
    "RenyiCurve",
    "SketchEvent",
    "TailEvent",
    "TunedCalibration",
    "TunedOption",
    "calibrate_fast_ihm",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "calibrate_ihm",
    "calibrate_joint_mix",
    "calibrate_tuned_fast_ihm",
    "calibrate_tuned_ihm",
    "closed_form_epsilon",
    "closed_form_epsilon_unbounded",
    "closed_form_gamma",
    "closed_form_gradient_sigma",
    "event_from_dict",
    "fast_mix_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "noise_upadhyay",
    "rdp_fast_mix",
    "rdp_fast_mix_sharp",
    "rdp_fast_mix_simple",
    "rdp_fast_mix_unbounded",
    "rdp_gauss_mix",
    "rdp_gaussian",
    "rdp_laplace",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "step_noise",
]
