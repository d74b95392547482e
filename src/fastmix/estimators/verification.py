"""Check a certificate: recompute its account, its scaling, and the plan from its parameters."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import fields
from importlib.metadata import version
from typing import Any

import numpy as np

from fastmix import estimators
from fastmix.accounting import NonPrivateEvent, PrivacySpent
from fastmix.estimators._scaling import public_scaling
from fastmix.estimators.certificate import FORMAT, jsonable

__all__ = ["same_version", "verify_certificate"]

#: Relative difference of recomputed numbers that rounding explains.
TOLERANCE = 1e-9


def verify_certificate(text: str) -> list[str]:
    """Return what is wrong with a certificate; nothing if it verifies.

    The account is recomputed from the events, and the clipping from the bounds. If the certificate
    was made by this version of fastmix, its events, sizes and noise levels are also compared with
    those that its parameters call for.

    Parameters
    ----------
    text : str
        The JSON document.

    Returns
    -------
    list of str
        Complaints.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            return [f"its format is not {FORMAT}"]
        return [*_account(data), *_leaks(data), *_scaling(data), *_plan(data)]
    except (AttributeError, KeyError, TypeError, ValueError):
        return ["it is not a complete certificate"]


def same_version(data: dict[str, Any]) -> bool:
    """Tell whether this version of fastmix made a certificate, given as plain JSON types."""
    return bool(data["versions"]["fastmix"] == version("fastmix"))


def _differs(stored: Any, computed: float) -> bool:
    return not math.isclose(float(stored), computed, rel_tol=TOLERANCE, abs_tol=0.0)


def _account(data: dict[str, Any]) -> list[str]:
    account = data["account"]
    spent = PrivacySpent.from_dict(account)
    wrong = []
    if account["neighboring_relation"] != spent.neighboring_relation:
        wrong.append(f"its neighbouring relation is not {spent.neighboring_relation}")
    for stored, part in zip(account["parts"], spent.parts, strict=True):
        if _differs(stored["epsilon"], part.epsilon):
            wrong.append(
                f"part {part.name!r} states epsilon {float(stored['epsilon']):.6g}; its "
                f"events cost {part.epsilon:.6g}"
            )
    for name in ("epsilon", "delta"):
        if _differs(account[name], getattr(spent, name)):
            wrong.append(
                f"it states {name} {float(account[name]):.6g}; its events cost "
                f"{getattr(spent, name):.6g}"
            )
    asked = data["parameters"]
    if spent.epsilon > float(asked["epsilon"]) * (1.0 + TOLERANCE):
        wrong.append(f"it spent more than the epsilon {float(asked['epsilon']):.6g} asked for")
    if asked["delta"] is not None and spent.delta > float(asked["delta"]) * (1.0 + TOLERANCE):
        wrong.append(f"it spent more than the delta {float(asked['delta']):.6g} asked for")
    return wrong


def _leaks(data: dict[str, Any]) -> list[str]:
    wrong = []
    events = PrivacySpent.from_dict(data["account"]).events
    reasons = (
        bool(data["data"]["taken_from_data"])
        or data["noise"] == "seeded"
        or any(isinstance(event, NonPrivateEvent) for event in events)
    )
    if data["noise"] != "seeded" and not data["noise"].endswith("AES-128-CTR keyed by the OS"):
        wrong.append("it names no source of noise that is known")
    if data["private"] == bool(data["leaks"]):
        wrong.append("what it says about leaks contradicts itself")
    if reasons and data["private"]:
        wrong.append("it claims to be private, and its own entries say why it is not")
    return wrong


def _scaling(data: dict[str, Any]) -> list[str]:
    """Compare the clipping with what the bounds and parameters call for."""
    facts, asked = data["data"], data["parameters"]
    # Nothing is read from the rows: both bounds, or a norm in place of one, are given.
    made = public_scaling(
        np.zeros((1, facts["n_features"])),
        np.zeros(1),
        bounds_X=facts["bounds_X"],
        bounds_y=facts["bounds_y"],
        data_norm=asked["data_norm"],
        fit_intercept=asked["fit_intercept"],
    )
    clip = asked["residual_clip"]
    computed: dict[str, float | None] = {
        "row_norm": made.row_map.row_norm,
        "intercept_column": made.row_map.constant,
        "residuals_clipped_at": made.target_map.scale if clip is None else float(clip),
    }
    if not _clips(data):
        computed["residuals_clipped_at"] = None
    return [
        f"its {name} is not the one that its bounds and parameters call for"
        for name, value in computed.items()
        if (name in facts) != (value is not None)
        or (value is not None and _differs(facts[name], value))
    ]


def _clips(data: dict[str, Any]) -> bool:
    """Whether a fit with these parameters clips residuals."""
    method = getattr(estimators, data["mechanism"])
    asked = data["parameters"]
    model = method(**{f.name: asked[f.name] for f in fields(method) if f.name in asked})
    columns = data["data"]["n_features"] + bool(asked["fit_intercept"])
    return "residual_clip" not in model._ignored(columns) and asked["epsilon"] != "inf"


def _plan(data: dict[str, Any]) -> list[str]:
    """Compare events, sizes and noise levels with the plan for the same public parameters."""
    if not same_version(data):
        return []
    method = getattr(estimators, data["mechanism"])
    given = {
        field.name: data["parameters"][field.name]
        for field in fields(method)
        if field.name in data["parameters"]
    }
    given["epsilon"] = float(given["epsilon"])
    sizes = data["data"]["n_samples"], data["data"]["n_features"]
    planned = method(**given)._make_plan(*sizes)
    claimed = PrivacySpent.from_dict(data["account"])
    wrong = []
    if Counter(planned.events) != Counter(claimed.events):
        wrong.append("its events are not those that its parameters call for")
    derived = jsonable(planned.parameters)
    wrong += [
        f"its {name} is not the one that its parameters call for"
        for name in derived
        if derived[name] != data["parameters"][name]
    ]
    return wrong
