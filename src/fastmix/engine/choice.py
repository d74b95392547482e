"""How the objective release of a fit is calibrated: for the fit alone, or for a budget it shares.

A fit alone takes the largest ``eps_c`` that its epsilon allows, because a larger one needs a
smaller ridge. A budget of the rule "renyi" would charge nearly all of that ``eps_c`` for every fit.
There the fit takes an ``eps_c`` with which the release costs little more than a Gaussian release
with the same noise: more fits share the budget, and each of them has a larger ridge. The guarantee
of the fit is the same.
"""

from typing import Any, NamedTuple

from fastmix.accounting import composing_eps_c, objective_split
from fastmix.engine.plan import Plan, Target

#: What a budget charges an objective release at most, in units of the charge of a Gaussian release
#: with the same noise: for losses with slopes of both signs, and of one sign, which have less noise
#: to begin with. These are the largest twentieths with which a budget of (1, 1e-6) takes ten fits
#: of epsilon 0.3 and delta 1e-8, whatever their sizes.
MOST_CHARGED, MOST_ONE_SIDED = 1.25, 1.20


class Split(NamedTuple):
    """Ratios of an objective release and of the Gaussian releases beside it, and its ``eps_c``.

    ``order`` is the Rényi order of the budget that ``eps_c`` was chosen for; None for a fit alone.
    """

    mu: float
    eps_c: float
    mu_gaussian: float
    order: float | None


def chosen_split(
    target: Target, share: float, *, one_sided: bool = False, rows_per_person: int = 1
) -> Split:
    """Divide a budget between an objective release and Gaussian ones, which get a share of it."""
    form: Any = {"one_sided": one_sided, "rows_per_person": rows_per_person}
    mu, eps_c, mu_gaussian = objective_split(target.epsilon, target.delta, share, **form)
    if target.order is not None and eps_c > 0.0:
        most = MOST_ONE_SIDED if one_sided else MOST_CHARGED
        composing = composing_eps_c(mu, target.order, most, **form)
        if composing < eps_c:
            return Split(mu, composing, mu_gaussian, target.order)
    return Split(mu, eps_c, mu_gaussian, None)


def finish_reason(plan: Plan) -> str:
    """Return why a planned objective release is calibrated for a budget; empty if it is not."""
    if plan.budget_order is None:
        return ""
    return (
        "The budget adds up Rényi divergences, so the fit is calibrated to compose: its objective "
        f"release costs the budget {most_charged(plan.rows_per_person)}, for a larger ridge. Its "
        "epsilon and delta are those asked for."
    )


def most_charged(rows_per_person: int | None) -> str:
    """Return in words what an objective release that composes costs its budget."""
    if (rows_per_person or 1) > 1:
        return f"at most {MOST_CHARGED:g} times the least that it can cost for persons"
    return f"at most {MOST_CHARGED:g} times what a Gaussian release with the same noise costs"
