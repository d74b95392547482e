"""What a filter costs against the joint account of the same list of fits.

For each method and number of equal fits: the epsilon of the smallest budget that covers them one by
one by the default rule, over the epsilon of the same fits declared together.

    python benchmarks/filters.py
"""

from scipy.optimize import brentq

from fastmix import (
    IHM,
    AdaSSP,
    BudgetAccountant,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    PrivateLinearRegression,
)
from fastmix.accounting import RdpAccountant
from fastmix.accounting.charge import merged
from fastmix.accounting.filters import make_filter

N, D = 100_000, 10
DELTA = 1e-6
METHODS = (PrivateLinearRegression, IHM, FastIHM, AdaSSP, DPGradientDescent, LinearMixing)
COUNTS = (2, 5, 20)


def smallest_budget(charges, highest):
    """Return the least epsilon of a budget whose filter takes all the charges."""

    def excess(epsilon):
        return make_filter("renyi", epsilon, DELTA).total(charges) - epsilon

    return brentq(excess, 1e-3 * highest, 2.0 * highest, rtol=1e-6)


def main():
    print("method", *(f"{count} fits" for count in COUNTS), sep="\t")
    for method in METHODS:
        worst = dict.fromkeys(COUNTS, 0.0)
        for epsilon in (0.05, 0.3, 1.0):
            for count in COUNTS:
                budget = BudgetAccountant(count * epsilon, DELTA)  # which fits are planned for
                model = method(epsilon=epsilon, delta=DELTA / 20, accountant=budget)
                spent = model.account(N, D)
                events = list(merged(event for _ in range(count) for event in spent.events))
                joint = RdpAccountant(events).get_epsilon(DELTA)
                needed = smallest_budget([spent] * count, count * epsilon)
                worst[count] = max(worst[count], needed / joint)
        print(method.__name__, *(f"{worst[count]:.2f}" for count in COUNTS), sep="\t")


if __name__ == "__main__":
    main()
