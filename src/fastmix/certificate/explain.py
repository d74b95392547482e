"""A certificate in plain words."""

import math
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from fastmix._text import label_text
from fastmix.accounting import (
    ChoiceEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    ObjectiveEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
)
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.engine.forecast import weak_guarantee
from fastmix.engine.last_stage import LEAST_KEPT
from fastmix.engine.population import Population


def headline(certificate: PrivacyCertificate) -> str:
    """Return the guarantee in one sentence, or that a fit is NOT PRIVATE."""
    if not certificate.private:
        return f"NOT PRIVATE: {'; '.join(certificate.leaks)}."
    population = Population.certified(certificate.data, certificate.parameters)
    return (
        f"({certificate.epsilon:.6g}, {certificate.delta:.3g})-differentially private, for one "
        f"{population.neighbour} present or absent."
    )


def explain(certificate: PrivacyCertificate) -> list[str]:
    """Return what a certificate says as paragraphs, from public and released values only."""
    data = certificate.data
    said = [headline(certificate)]
    epsilon, delta = certificate.epsilon, certificate.delta
    n = data.get("n_persons", data["n_samples"])
    unit = "person" if "n_persons" in data else "record"
    weak = weak_guarantee(epsilon, delta, n)
    if certificate.private:
        most = f"{math.exp(epsilon):.3g}" if epsilon < 700.0 else "infinity"
        learnt, bound = (
            ("The guarantee is weak. Whoever sees the coefficients may learn whether a", "up to")
            if weak
            else ("Whoever sees the coefficients learns little about whether any one", "at most")
        )
        said.append(
            f"{learnt} {unit} was in the data: the odds move by a factor of {bound} "
            f"e^{epsilon:.3g} = {most}, except with probability {delta:.3g}."
        )
        said += weak
    else:
        said.append(
            "The rest describes the noise that the fit added. For the reason above it guarantees "
            "nothing. Do not publish this fit as private."
        )
    absent = "An absent record counts as a row of zeros after scaling."
    if unit == "person":
        absent = (
            f"Each of the {n:,} persons, whose number is public too, counts as one record. The "
            f"rows of a person share its weight, and the fit dropped rows beyond "
            f"{data['max_rows_per_person']:,} at random. An absent person counts as rows of zeros "
            f"after scaling."
        )
    size = (
        f"The table has {data['n_samples']:,} rows and {data['n_features']} columns of features; "
    )
    size += f"we treat these numbers, the bounds and all settings as public. {absent}"
    if not certificate.parameters.get("public_rows", True):
        size = _hidden(data, unit)
    said.append(size)
    if data.get("missing") == "drop":
        said.append(
            "The fit dropped rows with a missing value; we treat the number of complete rows as "
            "public."
        )
    said.append(_clipping(data))
    if "max_weight" in data:
        said.append(_weights(data))
    if found := data.get("encoding", {}).get("found") or data.get("bounds_found"):
        said.append(
            f"The bounds were found privately, for epsilon {found['epsilon']:.6g} and delta "
            f"{found['delta']:.3g}. This certificate does not include that cost; a ledger adds "
            f"them up."
        )
    method = certificate.parameters.get("method_")
    named = f", method {method}" if method else ""
    said.append(f"The fit used {certificate.mechanism}{named}. It released:")
    said += [f"- {phrase}" for phrase in explain_events(certificate.events, unit)]
    if "rounds" in (chosen := data.get("chosen", {})):
        said.append(_choices(chosen))
    said.append(
        f"Noise: {certificate.noise}. The guarantee does not cover scores, residuals and plots "
        f"that are made from the raw data: keep them as secret as the data."
    )
    return said


def explain_events(events: Iterable[PrivacyEvent], unit: str = "record") -> list[str]:
    """Return releases in words, those of one kind together."""
    phrases = []
    for gaussian, group in groupby(events, lambda event: isinstance(event, GaussianEvent)):
        alike = list(group)
        if gaussian and len(alike) > 3:
            levels = [event.sigma / event.sensitivity for event in alike]  # type: ignore[attr-defined]
            count = sum(event.count for event in alike)  # type: ignore[attr-defined]
            phrases.append(
                f"{_times(count)} with Gaussian noise of {min(levels):.4g} to {max(levels):.4g} "
                f"times what one {unit} can change"
            )
        else:
            phrases += [explain_event(event, unit) for event in alike]
    return phrases


def explain_event(event: PrivacyEvent, unit: str = "record") -> str:
    """Return one release in words."""
    if isinstance(event, GaussianEvent):
        ratio = event.sigma / event.sensitivity if event.sensitivity else math.inf
        return (
            f"{_times(event.count)} with Gaussian noise of {ratio:.4g} times what one {unit} can "
            f"change"
        )
    if isinstance(event, LaplaceEvent):
        return f"{_times(event.count)} with Laplace noise, epsilon {event.pure_epsilon:.4g} in all"
    if isinstance(event, SketchEvent):
        return f"a random mixture of the records in {event.rows:,} rows, at level {event.gamma:.4g}"
    if isinstance(event, TailEvent):
        return f"a safety margin that fails with probability {event.tail:.3g}, counted in delta"
    if isinstance(event, ChoiceEvent):
        last = "; ".join(explain_events(event.options[-1], unit))
        return (
            f"{last} (or one of {len(event.options) - 1} settings that cost no more, chosen from "
            f"what was released before)"
        )
    if isinstance(event, ObjectiveEvent):
        return (
            f"the minimiser of an objective whose slope has Gaussian noise of {1.0 / event.mu:.4g} "
            f"times what one {unit} can change"
        )
    if isinstance(event, NonPrivateEvent):
        return "something without any noise"
    return f"an event of kind {event.kind}"


def _times(count: int) -> str:
    return "one value or vector" if count == 1 else f"{count} values or vectors"


def _clipping(data: dict[str, Any]) -> str:
    taken = ", ".join(data["taken_from_data"])
    source = f" ({taken} came from the data)" if taken else ""
    low, high = data["bounds_y"]
    clip = data.get("residuals_clipped_at")
    residuals = "" if clip is None else f", residuals to at most {clip:g} either way"
    if "classes" in data:
        labels = ", ".join(map(label_text, data["classes"]))
        return (
            f"The fit moved values outside the bounds to the nearest bound{source}. The classes "
            f"are {labels}; a record with another label counts as absent. "
            "The number of such values is not reported, because it is not private."
        )
    return (
        f"The fit moved values outside the bounds to the nearest bound{source}: the target to "
        f"[{low:g}, {high:g}]{residuals}. "
        f"The number of clipped values is not reported, because it is not private."
    )


def _hidden(data: dict[str, Any], unit: str) -> str:
    """Return what is known of a table whose number of rows is not public."""
    size = f"The number of {unit}s is not public. It was released with noise: {data['n_samples']:,}"
    persons = (
        f"The rows of a person share the weight of one record, and rows beyond "
        f"{data['max_rows_per_person']:,} were left out at random; the number of rows was not "
        "released. "
        if unit == "person"
        else ""
    )
    return (
        f"{size}. Everything that depends on it was chosen by the released number. {persons}The "
        f"guarantee is for one {unit} added or removed. The {data['n_features']} columns of "
        "features, the bounds and all settings are public. How long the fit took and how much "
        "memory it used are not hidden."
    )


def _weights(data: dict[str, Any]) -> str:
    """Return how rows were weighted."""
    most, mean = data["max_weight"], data["chosen"]["mean_weight"]
    return (
        f"Rows count by sample weights, such as survey weights; weights above {most:g}, a public "
        f"bound, count as {most:g}. The weight of a record is protected as its other values are. "
        f"The mean weight was released with noise: {mean * most:.3g}. The model describes the "
        "population that the weights stand for, as far as they were not clipped."
    )


def _choices(chosen: dict[str, Any]) -> str:
    """Return what an adaptive fit chose from released values."""
    if isinstance(chosen["rounds"], list):
        return (
            "For each class it chose coordinates, clipping level and ridge from released values: "
            f"clipping levels of {', '.join(f'{each:.3g}' for each in chosen['gradient_clip'])} "
            f"for gradients, ridges of {', '.join(f'{each:.3g}' for each in chosen['ridge'])}."
        )
    if chosen["rounds"] and "slope_spread" in chosen:
        source = (
            "From the released second moments it found that the label is off its probability by "
            f"{chosen['slope_spread']:.2g} on average, and from them and the counts it chose"
        )
    elif chosen["rounds"]:
        counts = "" if {"smoothing", "residual_clip"} & {*chosen} else " and the counts"
        source = (
            "From the released second moments it found residuals with a standard deviation of "
            f"{chosen['residual_spread']:.2g}, where 1 is half the width of the target's bounds, "
            f"and from them{counts} it chose"
        )
    else:
        assumed = (
            f"took the label to be off its probability by {chosen['slope_spread']:.2g} on average"
            if "slope_spread" in chosen
            else f"assumed a spread of {chosen['residual_spread']:.2g}, where 1 is half the width "
            "of the target's bounds"
        )
        source = (
            "There are too few rows for second moments, so it treated all directions alike. It "
            f"{assumed}, and chose"
        )
    kept = chosen["kept"]
    learned = (
        "Noise alone explains the result, so the model predicts the mean of the target."
        if kept <= LEAST_KEPT
        else ""
        if f"{kept:.0%}" == "100%"
        else f"It shrank the coefficients to {kept:.0%}, because noise alone explains the rest."
        if kept <= 1.0
        else f"A line through predictions and targets made the coefficients {kept:.2f} times as "
        "large, to correct for clipping."
    )
    level = (
        f"{chosen['residual_clip']:.3g} for residuals"
        if "residual_clip" in chosen
        else f"{chosen['gradient_clip']:.3g} for gradients"
    )
    smoothed = f", a smoothing of {chosen['smoothing']:.2g}" if "smoothing" in chosen else ""
    moved = (
        f" Counts of residuals moved the intercept by {chosen['shift']:.2g}, to the quantile."
        if chosen.get("shift")
        else ""
    )
    return (
        f"{source} a clipping level of {level}{smoothed} and a ridge of "
        f"{chosen['ridge']:.3g}. {learned}"
    ).rstrip() + moved
