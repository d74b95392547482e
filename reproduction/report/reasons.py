"""Why a claim of the paper does not hold, from the noise levels of the runs."""

from __future__ import annotations

from itertools import pairwise

from reproduction.report.summary import UNKNOWN, Summary

__all__ = ["helpful_noise", "noise_throughout", "short_steps"]


def helpful_noise(summary: Summary, experiment: str, name: str, ratios: list[int]) -> str:
    """Return why more rows may cost accuracy: where they do, the sketch had noise that helped.

    Parameters
    ----------
    summary : Summary
        Results.
    experiment, name : str
        An experiment and one of its sets.
    ratios : list of int
        Ratios of k2 of the paper's FastIHM, from few rows to many.

    Returns
    -------
    str
        The reason.
    """
    eta, risk = summary.eta[experiment].get(name, {}), summary.risk[experiment][name]
    found = []
    for few, many in pairwise(("fast_ihm_paper", ratio) for ratio in ratios):
        found += [
            f"ε = {e:g} from r = {few[1]} to {many[1]}"
            for e, noise in eta.get(few, {}).items()
            if eta[many][e] < noise and risk[few][e].value < risk[many][e].value
        ]
    if not found:
        return UNKNOWN
    return (
        f"the risk grows at {', '.join(found)}, where more rows leave less noise in the sketch. "
        "That noise shortens steps that are too long without it (docs/questions.md)."
    )


def noise_throughout(summary: Summary, ratios: list[int]) -> str:
    """Return why the sphere may show no step in epsilon: its sketch never does without noise.

    Parameters
    ----------
    summary : Summary
        Results.
    ratios : list of int
        Ratios of k2 of the paper's FastIHM.

    Returns
    -------
    str
        The reason.
    """
    eta = summary.eta["figure2"].get("sphere", {})
    if not eta or not all(min(eta["fast_ihm_paper", ratio].values()) for ratio in ratios):
        return UNKNOWN
    n, d = summary.sizes["figure2"]["sphere"]
    return (
        f"with n = {n:,} rows λ_min is about {n / d:,.0f}, too little for a sketch without noise "
        "at any ε of this run. The risk rises with ε where the noise ends."
    )


def short_steps(summary: Summary, name: str, ratio: int, far: list[float]) -> str:
    """Return why FastIHM may be far from IHM in the Airline appendix: its steps are short.

    Parameters
    ----------
    summary : Summary
        Results.
    name : str
        The set.
    ratio : int
        Ratio of k2.
    far : list of float
        The epsilons at which it is far; the reason is given for the first.

    Returns
    -------
    str
        The reason.
    """
    eta, data = summary.eta["airline"].get(name), summary.datasets.get(name)
    if not far or not eta or not data:
        return UNKNOWN
    fast, ihm = (
        eta[method][far[0]] ** 2 / data["lambda_max"]
        for method in (("fast_ihm_paper", ratio), ("ihm_paper", None))
    )
    return (
        f"noise in the sketch shortens the steps. At ε = {far[0]:g} its η² is {fast:.2g} times "
        f"λ_max, where that of IHM is {ihm:.2g} times, and {summary.config['steps']} steps do not "
        "arrive."
    )
