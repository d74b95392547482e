"""A certificate in plain words."""

import math
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from fastmix._text import label_text
from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    ObjectiveEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
)
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.certificate.guarantee import bounds_found, total
from fastmix.engine.choice import most_charged
from fastmix.engine.forecast import weak_guarantee
from fastmix.engine.last_stage import LEAST_KEPT
from fastmix.engine.population import Population


def headline(certificate: PrivacyCertificate) -> str:
    """Return the guarantee in one sentence, or that a fit is NOT PRIVATE."""
    if not certificate.private:
        return f"NOT PRIVATE: {'; '.join(certificate.leaks)}."
    population = Population.certified(certificate.data, certificate.parameters)
    cost, found = total(certificate.spent, certificate.data), bounds_found(certificate.data)
    return (
        f"({cost['epsilon']:.6g}, {cost['delta']:.3g})-differentially private, for one "
        f"{population.neighbour} {'added or removed' if population.hidden else 'present or absent'}"
        f"{', bounds included' if found else ''}."
    )


def odds_factor(epsilon: float) -> str:
    """Return the factor by which odds about one record can change, with three digits."""
    return f"{math.exp(epsilon):.3g}" if epsilon < 700.0 else "infinity"


def explain(certificate: PrivacyCertificate) -> list[str]:
    """Return a certificate in plain words, one paragraph per fact."""
    data, asked = certificate.data, certificate.parameters
    unit = "person" if "n_persons" in data else "record"
    said = [headline(certificate), *_meaning(certificate, unit)]
    said.append(_size(data) if asked.get("public_rows", True) else _hidden(data, unit))
    if data.get("missing") == "drop":
        said.append(
            "The fit dropped rows with a missing value; we treat the number of complete rows as "
            "public."
        )
    said.append(_clipping(data))
    if "min_listed" in asked:
        said.append(
            f"A noisy count did not show that fewer than {asked['min_listed']:.0%} of the "
            f"{unit}s have one of these labels; otherwise the fit would have stopped."
        )
    if "max_weight" in data:
        said.append(_weights(data))
    if (found := bounds_found(data)) and found["epsilon"] < math.inf:
        said.append(
            f"The bounds were found privately, for epsilon {found['epsilon']:.6g} and delta "
            f"{found['delta']:.3g}, and the fit itself took epsilon {certificate.epsilon:.6g} and "
            f"delta {certificate.delta:.3g}. The guarantee above adds them up."
        )
    named = f", method {asked['method_']}" if asked.get("method_") else ""
    said.append(f"The fit used {certificate.mechanism}{named}. It released:")
    said += [f"- {phrase}" for phrase in explain_events(certificate.events, unit)]
    if "budget_order" in asked:
        said.append(_composing(asked["budget_order"], asked["max_rows_per_group"]))
    if "rounds" in (chosen := data.get("chosen", {})):
        said.append(_choices(chosen))
    said.append(
        f"Noise: {certificate.noise}. The guarantee does not cover scores, residuals and plots "
        f"that are made from the raw data: keep them as secret as the data."
    )
    return said + context(certificate)


def _meaning(certificate: PrivacyCertificate, unit: str) -> list[str]:
    """Return what the guarantee means for one record or person, and why it is weak if it is."""
    if not certificate.private:
        return [
            "The rest describes the noise that the fit added. For the reason above it guarantees "
            "nothing. Do not publish this fit as private."
        ]
    data, terms = certificate.data, certificate.guarantee
    epsilon, delta = terms["total"]["epsilon"], terms["total"]["delta"]
    weak = weak_guarantee(epsilon, delta, data.get("n_persons", data["n_samples"]))
    replaced, ten = terms["one_replaced"], terms["together"]["10"]
    return [
        f"{'The guarantee is weak. ' if weak else ''}Seeing the coefficients changes the odds that "
        f"any one {unit} was in the data by a factor of at most e^{epsilon:.3g} = "
        f"{odds_factor(epsilon)}, except with probability {delta:.3g}.",
        *weak,
        f"For one {unit} replaced by another, epsilon is {replaced['epsilon']:.4g} and delta "
        f"{replaced['delta']:.2g}; for ten {unit}s at once, {ten['epsilon']:.4g} and "
        f"{ten['delta']:.2g}.",
    ]


def context(certificate: PrivacyCertificate) -> list[str]:
    """Return who is trusted, what is not protected, and where the fit comes from."""
    terms, ledger, made = certificate.guarantee, certificate.ledger, certificate.build
    said = [
        f"Trust model: {terms['trust_model']}.",
        f"Not protected: {'; '.join(terms['not_protected'])}.",
        f"Floating point: {terms['floating_point']}.",
        f"Post-processing: {terms['post_processing']}.",
    ]
    if ledger is not None and ledger["spent"] is not None:
        spent, count = ledger["spent"], ledger["charges"]
        said.append(
            f"Ledger {ledger['id'][:8]} paid for the fit. Charges so far: {count}, together "
            f"epsilon {spent['epsilon']:.6g} at delta {spent['delta']:.3g}."
        )
    if (audit := certificate.audit) is not None:
        said.append(audited(audit))
    version, commit = certificate.versions["fastmix"], made["commit"]
    said.append(
        f"Made on {certificate.date} by fastmix {version}, sources {str(made['source'])[7:19]}"
        f"{f', commit {commit[:12]}' if commit else ''}."
    )
    if certificate.signer is not None:
        said.append(f"Signed with the key {certificate.signer}; check it with --key.")
    return said + stated(certificate.papers)


def audited(audit: dict[str, Any]) -> str:
    """Return the findings of an audit of the same code in one sentence."""
    return (
        f"Audit of this code: {audit['survived']} of {audit['claims']} claims survived "
        f"{audit['releases']:,} releases, with confidence {audit['confidence']:.0%} each."
    )


def stated(papers: dict[str, Any]) -> list[str]:
    """Return what the data office states, one sentence per entry."""
    texts = {name: "; ".join(x) if isinstance(x, list) else x for name, x in papers.items()}
    return [f"{name.capitalize()}, as stated: {text}" for name, text in texts.items()]


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
    change = f"times what one {unit} can change"
    match event:
        case GaussianEvent():
            ratio = event.sigma / event.sensitivity if event.sensitivity else math.inf
            return f"{_times(event.count)} with Gaussian noise of {ratio:.4g} {change}"
        case LaplaceEvent():
            cost = f"epsilon {event.pure_epsilon:.4g} in all"
            return f"{_times(event.count)} with Laplace noise, {cost}"
        case SketchEvent():
            mixed = f"a random mixture of the records in {event.rows:,} rows"
            return f"{mixed}, at level {event.gamma:.4g}"
        case TailEvent():
            return f"a safety margin that fails with probability {event.tail:.3g}, counted in delta"
        case ObjectiveEvent():
            noise = f"Gaussian noise of {1.0 / event.mu:.4g} {change}"
            return f"the minimiser of an objective whose slope has {noise}"
        case NonPrivateEvent():
            return "something without any noise"
    return f"an event of kind {event.kind}"


def _composing(order: float, rows_per_person: int | None) -> str:
    """Return why the objective release was calibrated for a budget."""
    return (
        f"The fit shared a budget that adds up Rényi divergences of order {order:.4g}. So the "
        f"minimiser was calibrated to compose: it costs that budget "
        f"{most_charged(rows_per_person)}, for a larger ridge. The guarantee above holds for the "
        "fit by itself."
    )


def _times(count: int) -> str:
    return "one value or vector" if count == 1 else f"{count} values or vectors"


def _size(data: dict[str, Any]) -> str:
    """Return the public sizes of the table, and how an absent record counts."""
    absent = "An absent record counts as a row of zeros after scaling."
    if "n_persons" in data:
        absent = (
            f"Each of the {data['n_persons']:,} persons, whose number is public too, counts as one "
            f"record. The rows of a person share its weight, and the fit dropped rows beyond "
            f"{data['max_rows_per_person']:,} at random. An absent person counts as rows of zeros "
            f"after scaling."
        )
    return (
        f"The table has {data['n_samples']:,} rows and {data['n_features']} columns of features; "
        f"we treat these numbers, the bounds and all settings as public. {absent}"
    )


def _clipping(data: dict[str, Any]) -> str:
    """Return how values outside the bounds, or labels outside the list, count."""
    taken = ", ".join(data["taken_from_data"])
    source = f" ({taken} came from the data)" if taken else ""
    clip = data.get("residuals_clipped_at")
    residuals = "" if clip is None else f", residuals to at most {clip:g} either way"
    low, high = data["bounds_y"]
    rest = f": the target to [{low:g}, {high:g}]{residuals}."
    if "classes" in data:
        labels = ", ".join(map(label_text, data["classes"]))
        rest = f". The classes are {labels}; a record with another label counts as absent."
    return (
        f"The fit moved values outside the bounds to the nearest bound{source}{rest} The number "
        "of such values is not reported, because it is not private."
    )


def _hidden(data: dict[str, Any], unit: str) -> str:
    """Return the facts about a table whose number of rows is not public."""
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
    spread = (
        f"labels are off their probabilities by {chosen['slope_spread']:.2g} on average"
        if "slope_spread" in chosen
        else f"residuals have a standard deviation of {chosen['residual_spread']:.2g}, where 1 is "
        "half the width of the target's bounds"
    )
    said = [f"By the released second moments, {spread}."]
    if not chosen["rounds"]:
        said = [
            "There are too few rows for second moments, so the fit treated all directions alike "
            f"and assumed that {spread}."
        ]
    what = "residual" if "residual_clip" in chosen else "gradient"
    smoothed = f", a smoothing of {chosen['smoothing']:.2g}" if "smoothing" in chosen else ""
    said.append(
        f"From released values it chose a clipping level of {chosen[f'{what}_clip']:.3g} for "
        f"{what}s{smoothed} and a ridge of {chosen['ridge']:.3g}."
    )
    kept = chosen["kept"]
    if kept <= LEAST_KEPT:
        said.append("Noise alone explains the result, so the model predicts the target's mean.")
    elif kept > 1.0 and f"{kept:.0%}" != "100%":
        said.append(
            f"A line through predictions and targets made the coefficients {kept:.2f} times as "
            "large, to correct for clipping."
        )
    elif f"{kept:.0%}" != "100%":
        said.append(f"It shrank the coefficients to {kept:.0%}: noise alone explains the rest.")
    if chosen.get("shift"):
        said.append(f"Counts of residuals moved the intercept by {chosen['shift']:.2g}.")
    return " ".join(said)
