"""Check a certificate: build it once more from its public parameters, and compare."""

import datetime
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

import numpy as np

from fastmix._validation import check_integer
from fastmix.certificate.certificate import FORMAT
from fastmix.certificate.documents import digest, jsonable, read_document
from fastmix.certificate.guarantee import FOUND_OPENLY, bounds_found, guarantee
from fastmix.certificate.papers import check_papers
from fastmix.data.scaling import public_scaling
from fastmix.engine import Plan, Sizes, Target, default_delta, plan_fit
from fastmix.engine.compare import comparing_plan
from fastmix.engine.population import Population
from fastmix.paper import METHODS
from fastmix.releases import Noise

#: Relative difference of recomputed numbers that rounding explains.
TOLERANCE = 1e-9

#: Errors that a document without the entries of a certificate raises.
INCOMPLETE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

#: Facts about the data that a certificate has in some cases, and that cannot be recomputed.
_TABLE_FACTS = ("missing", "encoding", "categories")  # of ``fastmix fit``
_CLASS_FACTS = ("classes", "class_weight")

#: Parameters of every estimator that a certificate states, and those that some have.
_COMMON = ("epsilon", "delta", "data_norm", "fit_intercept", "inference",
           "max_rows_per_group")  # fmt: skip
_OPTIONAL = ("score_share", "min_listed", "compared", "max_weight")

_PACKAGES = ("fastmix", "numpy", "scipy", "scikit-learn", "python")
#: Entries about compiled kernels; without them there is the first one only.
_KERNELS = ("compiled", "instruction_set", "compiler", "check", "numpy")

#: Entries about the budget that paid for a fit.
_LEDGER = ("id", "rule", "charges", "spent", "budget")


#: Entries that no computation on the certificate alone can confirm, each with the reason.
NOT_CHECKED = (
    "versions: nothing else in the certificate depends on the packages that made the fit",
    "kernels: nothing else in the certificate depends on the compiled code that made the fit",
    "date, build, ledger, papers, audit: only the person who made the fit knows whether they are "
    "true; compare ledger with 'fastmix ledger show', and build with another installation",
    "noise: only the person who made the fit knows where the noise came from",
    "data.n_samples: checked only as far as delta and the noise depend on it",
    "data.bounds_X, data.bounds_y, data.encoding: only the person who made the fit knows whether "
    "the bounds and categories are public knowledge, and whether the fit used these",
    "parameters.literal, parameters.shrinkage, parameters.learning_rate: the noise does not depend "
    "on them",
    "parameters.n_steps, parameters.gaussian_size, parameters.sketch_size, "
    "parameters.failure_probability, parameters.inference: checked only where the method uses them",
    "parameters.min_listed, parameters.compared: the noise depends on whether they are stated, not "
    "on their values",
    "data.classes, data.class_weight, data.categories, data.dummies, data.missing: checked only as "
    "far as the noise and the encoding depend on them",
    "data.chosen: what was chosen from released values, which the certificate does not hold",
    "account: nothing shows whether the fit released anything that the certificate does not list",
)


@dataclass(frozen=True)
class Verification:
    """Complaints about a certificate, none if it verifies, and entries that were not checked."""

    complaints: tuple[str, ...]
    not_checked: tuple[str, ...] = NOT_CHECKED

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.complaints


def verify_certificate(text: str) -> Verification:
    """Check everything that a certificate, a JSON document, says and that can be recomputed.

    The certificate is built once more from its public parameters, sizes and bounds, and compared
    entry by entry. The digest shows a change by accident; it is not a signature, because whoever
    changes a certificate can compute it anew.
    """
    try:
        data = read_document(text)
        if data["format"] != FORMAT:
            return Verification((f"its format is not {FORMAT}",))
        if (name := data["parameters"]["method_"]) not in METHODS:
            complaint = f"its method {name!r} is not known here: import the module that defines it"
            return Verification((complaint,))
        again = _Rebuilt(data)
        wrong = [*again.complaints(), *_differences(data, again.document())]
        made_by = data["versions"]["fastmix"]
    except INCOMPLETE:
        return Verification(("it is not a complete certificate",))
    if wrong and made_by != version("fastmix"):
        # An older version may have planned otherwise, and a forger may say so.
        wrong.append(
            f"this is fastmix {version('fastmix')}: if version {made_by} made the certificate and "
            f"planned differently, verify it with that version"
        )
    return Verification(tuple(wrong))


class _Rebuilt:
    """A certificate, built once more from the parameters, sizes and bounds that it states."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.facts, self.asked = data, data["data"], data["parameters"]
        kind = METHODS[self.asked["method_"]]
        self.method = kind(**{each.name: self.asked[each.name] for each in fields(kind)})
        self.method.check()
        self.epsilon = float(self.asked["epsilon"])
        self.rows = check_integer("n_samples", self.facts["n_samples"], at_least=1)
        self.d = check_integer("n_features", self.facts["n_features"], at_least=1, at_most=10**7)
        self.n, self.most = self.rows, self.asked["max_rows_per_group"]
        if self.most is not None:  # persons take the place of rows
            self.n = check_integer(
                "n_persons", self.facts["n_persons"], at_least=1, at_most=self.rows
            )
            self.most = check_integer("max_rows_per_group", self.most, at_least=1)
        self.sizes = Sizes.of(
            self.n,
            self.d,
            intercept=self.asked["fit_intercept"],
            bounds_X=self.facts["bounds_X"],
            data_norm=self.asked["data_norm"],
            population=Population(
                self.n,
                self.most,
                self.asked.get("max_weight"),
                not self.asked.get("public_rows", True),
            ),
            categories=tuple(map(int, self.facts.get("categories", map(len, self._dummies())))),
        )
        self.plan = self._planned()

    def _dummies(self) -> tuple[tuple[int, ...], ...]:
        """Return the columns of dummies of each category of a matrix."""
        return tuple(tuple(map(int, columns)) for columns in self.facts.get("dummies", ()))

    def _planned(self) -> Plan:
        asked, delta = self.asked, default_delta(self.asked["delta"], self.n)
        target = Target(self.epsilon, delta, order=asked.get("budget_order"))
        if "compared" in asked:
            given = {name: asked[name] for name in ("inference", "min_listed") if name in asked}
            return comparing_plan(self.method, self.sizes, target, **given)[0]
        names = ("inference", "score_share", "min_listed")
        given = {name: asked[name] for name in names if name in asked}
        return plan_fit(self.method, self.sizes, target, **given)

    def document(self) -> dict[str, Any]:
        """Return the entries that the certificate must have."""
        data, leaks, kernels = self.data, self._leaks(), self.data["kernels"]
        entries = _KERNELS if kernels["compiled"] else _KERNELS[:1]
        return {
            "format": FORMAT,
            "private": not leaks,
            "leaks": leaks,
            "mechanism": self.method.estimator,
            "guarantee": jsonable(guarantee(self.plan.spent, self.facts, self.asked)),
            "account": jsonable(self.plan.spent.to_dict()),
            "parameters": self._parameters(),
            "data": self._facts(),
            "noise": data["noise"],
            "versions": {name: str(data["versions"][name]) for name in _PACKAGES},
            "kernels": {name: kernels[name] for name in entries},
            "date": datetime.date.fromisoformat(data["date"]).isoformat(),
            "build": {name: data["build"][name] for name in ("source", "commit")},
            "ledger": data["ledger"] and {name: data["ledger"][name] for name in _LEDGER},
            "papers": check_papers(data["papers"]),
            "audit": data["audit"],
            "signer": data["signer"],
            "model": data["model"],
            "digest": digest(data, without=("digest",)),
        }

    def _leaks(self) -> list[str]:
        """Return the reasons why the fit is not private."""
        reasons = [f"{name} was taken from the data" for name in self.facts["taken_from_data"]]
        if (found := bounds_found(self.facts)) and math.isinf(found["epsilon"]):
            reasons.append(FOUND_OPENLY)
        if self.data["noise"] == "seeded":
            reasons.append("the noise was seeded by the caller")
        if not self.plan.is_private:
            reasons.append("the method adds no noise")
        return reasons

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters, and the sizes and noise levels that follow from them."""
        asked, method = self.asked, self.method
        stated = {name: asked[name] for name in _COMMON}
        stated |= {name: bool(asked[name]) for name in ("fit_intercept", "inference")}
        stated |= {name: asked[name] for name in _OPTIONAL if asked.get(name)}
        if "public_rows" in asked:
            stated["public_rows"] = False  # a public number of rows goes without saying
        stated |= {each.name: getattr(method, each.name) for each in fields(method)}
        derived = {**self.plan.settings, "method_": method.name, "epsilon": self.epsilon}
        return jsonable({**stated, **derived})  # type: ignore[no-any-return]

    def _facts(self) -> dict[str, Any]:
        """Return the facts about the data, with the clipping that the bounds call for."""
        facts, asked = self.facts, self.asked
        # Nothing is read from the rows: both bounds, or a norm in place of one, are given.
        made = public_scaling(
            np.zeros((1, self.d)),
            np.zeros(1),
            bounds_X=facts["bounds_X"],
            bounds_y=facts["bounds_y"],
            data_norm=asked["data_norm"],
            fit_intercept=asked["fit_intercept"],
            dummies=self._dummies(),
        )
        private, weighted = self.epsilon < math.inf, self.sizes.weighted
        said = {"n_samples": self.rows, "n_features": self.d, **made.describe()}
        said["taken_from_data"] = facts["taken_from_data"]
        if private and (self.method.clips or "residual_sigma" in asked):
            clip = asked.get("residual_clip")
            said["residuals_clipped_at"] = made.target_map.scale if clip is None else float(clip)
        if self.most is not None:
            said |= {"n_persons": self.n, "max_rows_per_person": self.most}
        if weighted:
            said["max_weight"] = asked["max_weight"]
        kept = ["chosen"] if weighted or (self.method.chooses and private) else []
        kept += _CLASS_FACTS if self.method.family == "logistic" else ()
        kept += _TABLE_FACTS if {*_TABLE_FACTS} & {*facts} else ()
        kept += ["dummies"] if "dummies" in facts else []
        kept += ["bounds_found"] if "bounds_found" in facts else []
        return {**said, **{name: facts[name] for name in kept}}

    def complaints(self) -> Iterator[str]:
        """Yield what is wrong with entries that are stated and not computed."""
        data, asked, spent = self.data, self.asked, self.plan.spent
        if data["noise"] not in ("seeded", Noise.source):
            yield "it names no source of noise that is known"
        if {*self.facts["taken_from_data"]} - {"bounds_X", "bounds_y", "classes"}:
            yield "it takes something from the data that is no bound"
        for name in ("model", "signer"):
            if data[name] is not None and not re.fullmatch("sha256:[0-9a-f]{64}", data[name]):
                yield f"its {name} is not a digest"
        if self.plan.is_private and spent.epsilon > self.epsilon * (1.0 + TOLERANCE):
            yield f"it spent more than the epsilon {self.epsilon:.6g} asked for"
        if asked["delta"] is not None and spent.delta > asked["delta"] * (1.0 + TOLERANCE):
            yield f"it spent more than the delta {asked['delta']:.6g} asked for"
        if "public_rows" in asked and asked["delta"] is None:
            yield "its delta must be given where the number of rows is not public"
        share, sets = asked.get("min_listed", 0.5), asked.get("compared", 2)
        if not (type(share) is float and 0.0 < share < 1.0 and type(sets) is int and sets > 1):
            yield "its min_listed or the number of compared sets is none that a fit can have"
        if self.method.family == "logistic" and not self._labelled():
            yield "its classes and their weights are not those of its mechanism"

    def _labelled(self) -> bool:
        """Whether classes and weights, the largest of which is 1, are as many as accounted for."""
        classes, weights = self.facts["classes"], self.facts["class_weight"]
        return (
            len(classes) == len(weights) == self.asked["n_classes"]
            and len(set(classes)) == len(classes)
            and all(0.0 < weight <= 1.0 for weight in weights)
            and max(weights) == 1.0
        )


def _differences(stored: Any, computed: Any, name: str = "") -> Iterator[str]:
    """Yield where two JSON values differ; numbers may differ by rounding, on another machine."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in {**computed, **stored}:
            path = f"{name}.{key}" if name else key
            if key not in computed:
                yield f"it has an entry {path!r}, which belongs to no certificate of this kind"
            elif key not in stored:
                yield f"it lacks the entry {path!r}"
            else:
                yield from _differences(stored[key], computed[key], path)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for at, (one, other) in enumerate(zip(stored, computed, strict=True)):
            yield from _differences(one, other, f"{name}[{at}]")
    elif not _same(stored, computed):
        found, wanted = (_shortened(repr(each)) for each in (stored, computed))
        yield f"its {name} is {found}; its other entries call for {wanted}"


def _shortened(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."


def _same(stored: Any, computed: Any) -> bool:
    kinds = {type(stored), type(computed)}
    if kinds <= {int, float} and float in kinds:
        return math.isclose(stored, computed, rel_tol=TOLERANCE, abs_tol=0.0)
    return len(kinds) == 1 and bool(stored == computed)
