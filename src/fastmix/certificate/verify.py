"""Check a certificate: recompute its account, its scaling, and the plan from its parameters."""

import math
import re
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

import numpy as np

from fastmix._validation import check_integer
from fastmix.accounting import NonPrivateEvent, PrivacySpent
from fastmix.certificate.certificate import FORMAT
from fastmix.certificate.documents import digest, jsonable, read_document
from fastmix.data.scaling import public_scaling
from fastmix.engine import Sizes, Target, default_delta, plan_fit
from fastmix.engine.compare import comparing_plan
from fastmix.engine.population import Population
from fastmix.paper import METHODS

#: Relative difference of recomputed numbers that rounding explains.
TOLERANCE = 1e-9

#: What a document raises that has not the entries of a certificate.
INCOMPLETE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

#: Entries of the document, and of its part about the data.
_ENTRIES = {
    *("format", "private", "leaks", "mechanism", "account", "parameters", "data", "noise"),
    *("versions", "kernels", "model", "digest"),
}
_FACTS = {
    *("n_samples", "n_features", "bounds_X", "bounds_y", "row_norm", "intercept_column"),
    *("taken_from_data", "residuals_clipped_at"),
}
#: Those that ``fastmix fit`` adds.
_TABLE_FACTS = {"missing", "encoding", "categories"}
#: Those of a fit that protects persons.
_PERSON_FACTS = {"n_persons", "max_rows_per_person"}
_PACKAGES = {"fastmix", "numpy", "scipy", "scikit-learn", "python"}
#: Entries about compiled kernels; without them there is the first one only.
_COMPILED = {"compiled", "instruction_set", "compiler", "check", "numpy"}

#: Parameters that every estimator has and a certificate states.
_COMMON = {
    *("epsilon", "delta", "data_norm", "fit_intercept", "inference", "noise"),
    "max_rows_per_group",
}

_SOURCE = "AES-128-CTR keyed by the OS"

#: What no computation on the certificate alone can confirm: fields, then why.
NOT_CHECKED = (
    "versions: nothing else in the certificate depends on the packages that made the fit",
    "kernels: nothing else in the certificate depends on the compiled code that made the fit",
    "noise: only the person who made the fit knows where the noise came from",
    "data.n_samples: checked only as far as delta and the noise depend on it",
    "data.bounds_X, data.bounds_y, data.encoding: only the person who made the fit knows whether "
    "the bounds and categories are public knowledge, and whether the fit used these",
    "parameters.literal, parameters.shrinkage, parameters.learning_rate: the noise does not depend "
    "on them",
    "parameters.n_steps, parameters.gaussian_size, parameters.sketch_size, "
    "parameters.failure_probability, parameters.inference: checked only where the method uses them",
    "data.chosen: what was chosen from released values, which the certificate does not hold",
    "account: nothing shows whether the fit released anything that the certificate does not list",
)


@dataclass(frozen=True)
class Verification:
    """What is wrong with a certificate, nothing if it verifies; what was not checked, and why."""

    complaints: tuple[str, ...]
    not_checked: tuple[str, ...] = NOT_CHECKED

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.complaints


def verify_certificate(text: str) -> Verification:
    """Check everything that a certificate, a JSON document, says and that can be recomputed.

    The account is recomputed from the events, the events, sizes and noise levels from the
    parameters, and the clipping from the bounds. The digest shows a change by accident; it is not a
    signature, because whoever changes a certificate can compute it anew.
    """
    try:
        data = read_document(text)
        if data["format"] != FORMAT:
            return Verification((f"its format is not {FORMAT}",))
        if (name := data["parameters"]["method_"]) not in METHODS:
            complaint = f"its method {name!r} is not known here: import the module that defines it"
            return Verification((complaint,))
        said = _Said(data)
        wrong = [*_entries(said), *_account(said), *_leaks(said), *_scaling(said), *_plan(said)]
        if data["digest"] != digest(data, without=("digest",)):
            wrong.append("its digest is not that of its contents: it was changed")
    except INCOMPLETE:
        return Verification(("it is not a complete certificate",))
    return Verification(tuple(wrong))


class _Said:
    """What a certificate says, with its account and its algorithm rebuilt."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.facts, self.asked = data, data["data"], data["parameters"]
        self.spent = PrivacySpent.from_dict(data["account"])
        self.without_noise = any(isinstance(each, NonPrivateEvent) for each in self.spent.events)
        kind = METHODS[self.asked["method_"]]
        self.method = kind(**{each.name: self.asked[each.name] for each in fields(kind)})
        self.method.check()
        clips = self.method.clips or "residual_sigma" in self.asked
        self.clips = bool(clips) and self.asked["epsilon"] != "inf"


def _entries(said: _Said) -> list[str]:
    """Compare the names and kinds of entries with those of every certificate."""
    data, asked = said.data, said.asked
    expected = _FACTS if said.clips else _FACTS - {"residuals_clipped_at"}
    if said.method.chooses and asked["epsilon"] != "inf":
        expected = expected | {"chosen"}
    if said.method.family == "logistic":
        expected = expected | {"classes", "class_weight"}
    if asked["max_rows_per_group"] is not None:
        expected = expected | _PERSON_FACTS
    if asked.get("max_weight") is not None:
        expected = expected | {"max_weight", "chosen"}
    complete = (
        set(data) == _ENTRIES
        and {*said.facts} - {"bounds_found"} in (expected, expected | _TABLE_FACTS)
        and set(data["versions"]) == _PACKAGES
        and all(isinstance(value, str) for value in data["versions"].values())
        and set(data["kernels"]) in (_COMPILED, {"compiled"})
        and isinstance(data["private"], bool)
        and all(isinstance(asked[name], bool) for name in ("fit_intercept", "inference"))
        and asked["noise"] in ("float", "exact")
        and (asked["epsilon"] == "inf" or type(asked["epsilon"]) in (int, float))
        and (data["model"] is None or re.fullmatch("sha256:[0-9a-f]{64}", data["model"]))
    )
    return [] if complete else ["its entries are not those of a certificate"]


def _same(stored: Any, computed: Any) -> bool:
    """Compare plain JSON values; numbers may differ by rounding, on another machine."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        return stored.keys() == computed.keys() and all(
            _same(stored[key], computed[key]) for key in computed
        )
    if isinstance(stored, list) and isinstance(computed, list):
        return len(stored) == len(computed) and all(map(_same, stored, computed))
    if isinstance(stored, float) and isinstance(computed, float):
        return not _differs(stored, computed)
    return type(stored) is type(computed) and bool(stored == computed)


def _differs(stored: Any, computed: float) -> bool:
    return not math.isclose(float(stored), computed, rel_tol=TOLERANCE, abs_tol=0.0)


def _account(said: _Said) -> list[str]:
    """Compare epsilon and delta with what the events cost, and with what was asked for."""
    account, asked, spent = said.data["account"], said.asked, said.spent
    wrong = []
    if account["neighboring_relation"] != spent.neighboring_relation:
        wrong.append(f"its neighbouring relation is not {spent.neighboring_relation}")
    stated = [
        (f"part {part.name!r} states epsilon", one["epsilon"], part.epsilon)
        for one, part in zip(account["parts"], spent.parts, strict=True)
    ]
    stated.append(("it states epsilon", account["epsilon"], spent.epsilon))
    stated.append(("it states delta", account["delta"], spent.delta))
    wrong += [
        f"{what} {float(value):.6g}; its events cost {cost:.6g}"
        for what, value, cost in stated
        if _differs(value, cost)
    ]
    # A fit without noise promises nothing, and says so among its leaks.
    limits = {"epsilon": not said.without_noise, "delta": asked["delta"] is not None}
    for name, holds in limits.items():
        if holds and getattr(spent, name) > float(asked[name]) * (1.0 + TOLERANCE):
            wrong.append(f"it spent more than the {name} {float(asked[name]):.6g} asked for")
    return wrong


def _leaks(said: _Said) -> list[str]:
    """Derive the leaks from the other entries and compare."""
    taken, noise = said.facts["taken_from_data"], said.data["noise"]
    private, leaks = said.data["private"], said.data["leaks"]
    reasons = [f"{name} was taken from the data" for name in taken]
    if noise == "seeded":
        reasons.append("the noise was seeded by the caller")
    if said.without_noise:
        reasons.append("the method adds no noise")
    exact = f"OpenDP [0-9][0-9A-Za-z.+-]*; for sketches {_SOURCE}"
    known = _SOURCE if said.asked["noise"] == "float" else exact
    denied = reasons and private
    wrong = {
        "it names no source of noise that is known": noise != "seeded"
        and not re.fullmatch(known, noise),
        "it takes something from the data that is no bound": {*taken}
        - {"bounds_X", "bounds_y", "classes"},
        "what it says about leaks contradicts itself": private == bool(leaks),
        "it claims to be private, and its own entries say why it is not": denied,
        "its leaks are not those that follow from its other entries": leaks != reasons
        and not denied,
    }
    return [complaint for complaint, holds in wrong.items() if holds]


def _scaling(said: _Said) -> list[str]:
    """Compare the clipping with what the bounds and parameters call for."""
    facts, asked = said.facts, said.asked
    # Nothing is read from the rows: both bounds, or a norm in place of one, are given.
    made = public_scaling(
        np.zeros((1, check_integer("n_features", facts["n_features"], at_least=1, at_most=10**7))),
        np.zeros(1),
        bounds_X=facts["bounds_X"],
        bounds_y=facts["bounds_y"],
        data_norm=asked["data_norm"],
        fit_intercept=asked["fit_intercept"],
    )
    computed = {"row_norm": made.row_map.row_norm, "intercept_column": made.row_map.constant}
    if said.clips:
        clip = asked.get("residual_clip")
        computed["residuals_clipped_at"] = made.target_map.scale if clip is None else float(clip)
    wrong = [
        f"its {name} is not the one that its bounds and parameters call for"
        for name, value in computed.items()
        if not isinstance(facts.get(name), float) or _differs(facts[name], value)
    ]
    described = made.describe()
    bounds = [name for name in ("bounds_X", "bounds_y") if described[name] != facts[name]]
    return wrong + [f"its {name} must be written in full" for name in bounds]


def _labelled(said: _Said) -> bool:
    """Whether classes and weights, the largest of which is 1, are as many as were accounted for."""
    classes, weights = said.facts["classes"], said.facts["class_weight"]
    return (
        len(classes) == len(weights) == said.asked["n_classes"]
        and len(set(classes)) == len(classes)
        and all(0.0 < weight <= 1.0 for weight in weights)
        and max(weights) == 1.0
    )


def _plan(said: _Said) -> list[str]:
    """Compare events, sizes and noise levels with the plan for the same public parameters."""
    data, stated, method = said.data, said.asked, said.method
    rows = check_integer("n_samples", said.facts["n_samples"], at_least=1)
    d = check_integer("n_features", said.facts["n_features"], at_least=1)
    most = stated["max_rows_per_group"]
    n = rows
    if most is not None:  # persons take the place of rows
        n = check_integer("n_persons", said.facts["n_persons"], at_least=1, at_most=rows)
        most = check_integer("max_rows_per_group", most, at_least=1)
    given = {"bounds_X": said.facts["bounds_X"], "data_norm": stated["data_norm"]}
    hidden = not stated.get("public_rows", True)
    given["population"] = Population(n, most, stated.get("max_weight"), hidden)
    given["categories"] = tuple(map(int, said.facts.get("categories", ())))
    sizes = Sizes.of(n, d, intercept=stated["fit_intercept"], **given)
    target = Target(float(stated["epsilon"]), default_delta(stated["delta"], n))
    share = stated.get("score_share", 0.0)
    given = {"inference": stated["inference"], "noise": stated["noise"], "score_share": share}
    if "compared" in stated:
        planned, _ = comparing_plan(method, sizes, target, inference=stated["inference"])
    else:
        planned = plan_fit(method, sizes, target, **given)
    derived = jsonable(planned.settings)
    names = {*_COMMON, *(f.name for f in fields(method)), *derived, "method_"}
    names |= {name for name in ("score_share", "compared", "max_weight") if stated.get(name)}
    wrong = []
    if "public_rows" in stated:
        names.add("public_rows")
        if stated["public_rows"] is not False or stated["delta"] is None:
            wrong.append("its delta must be given where the number of rows is not public")
    if not _same(stated.get("max_weight"), said.facts.get("max_weight")):
        wrong.append("its largest weight is not the one that was asked for")
    if most is not None and said.facts["max_rows_per_person"] != most:
        wrong.append("its rows per person are not those that were asked for")
    if not _same(data["account"], jsonable(planned.spent.to_dict())):
        wrong.append("its events are not those that its parameters call for")
    if data["mechanism"] != method.estimator:
        wrong.append("its method is not that of its mechanism")
    if method.family == "logistic" and not _labelled(said):
        wrong.append("its classes and their weights are not those of its mechanism")
    if set(stated) != names:
        wrong.append("its parameters are not those of its mechanism")
    wrong += [
        f"its {name} is not the one that its parameters call for"
        for name in derived
        if not _same(stated.get(name), derived[name])
    ]
    made_by = data["versions"]["fastmix"]
    if wrong and made_by != version("fastmix"):
        # An older version may have planned otherwise, and a forger may say so.
        wrong.append(
            f"this is fastmix {version('fastmix')}: if version {made_by} made the certificate and "
            f"planned differently, verify it with that version"
        )
    return wrong
