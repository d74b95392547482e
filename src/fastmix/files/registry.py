"""A record for the public registry of deployments of differential privacy, as YAML of tier 3."""

import re
from decimal import ROUND_CEILING, Context
from importlib import import_module
from typing import Any

from fastmix._text import visible
from fastmix.certificate import PrivacyCertificate
from fastmix.certificate.explain import explain_events
from fastmix.engine.population import Population
from fastmix.estimators import PrivateModel
from fastmix.files.report import lead, model_title
from fastmix.files.statement import NOT_STATED, answers, sources

#: Entries of the papers that a record needs.
_NEEDED = ("curator", "purpose", "region")


def registry_record(model: PrivateModel) -> dict[str, Any]:
    """Return the record of a fit; refuse a fit that is not private or lacks papers."""
    certificate = model.privacy_
    if not certificate.private:
        raise ValueError("a record of the registry must be of a private fit; this one is not.")
    papers, terms = certificate.papers, certificate.guarantee
    if missing := [name for name in _NEEDED if name not in papers]:
        raise ValueError(
            f"a record of the registry needs {', '.join(missing)} in the papers of the fit. Write "
            "them to a TOML file, and pass it to 'fastmix fit --papers' or 'explain --papers'."
        )
    title = papers.get("title", model_title(model))
    date = papers.get("published", certificate.date)
    told = {question: text for _, found in answers(model) for question, text in found}
    one = Population.certified(certificate.data, certificate.parameters).unit
    return {
        "url_slug": _slug(title, papers["curator"], date),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": title,
                "data_curators": papers["curator"],
                "description": lead(model, model.schema_),
                "intended_use": papers["purpose"],
                "data_product_type": "Machine learning model",
                "data_product_region": papers["region"],
                "publication_date": date,
                **({"data_product_sector": papers["sector"]} if "sector" in papers else {}),
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": _domain(certificate),
                "unprotected_quantities": "; ".join(terms["not_protected"]),
            },
            "privacy_loss": {
                "privacy_unit": one,
                "privacy_unit_details": f"{terms['unit']}. Neighbours: {terms['neighbours']}.",
                "privacy_parameters": {k: _up(each) for k, each in terms["total"].items()},
                "privacy_parameters_details": f"One {one} replaced by another: "
                f"{told[f'One {one} replaced by another']}. {told['Several at once']}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": terms["trust_model"],
                "actors": f"{'; '.join(papers['curator'])}: trusted with the raw data. Everyone "
                "else: not trusted; sees the model, its certificate and its report. Access: "
                f"{told['Access to the raw data']}",
                "release_type": "One release",
                "release_type_details": told["Other releases from these data"],
                "data_source_type": "Static",
                "data_source_type_details": "The fit read the table as it was on that day.",
                "access_type": "Non-interactive",
                "access_type_details": "The files of one fit are published as they are.",
            },
            "accounting": {
                "post_processing": terms["post_processing"],
                "composition": _composition(certificate),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"{told[_PREPARED]} Bounds: "
                f"{told['Bounds']} {sources(model.schema_)}",
                "mechanisms": _mechanisms(certificate, one, told),
                "justification": f"{papers.get('reason', NOT_STATED)} Audit: "
                f"{told['Audit of this version']}",
            },
            "administrative": {
                **({"sources": papers["sources"]} if "sources" in papers else {}),
                "notes": f"Certificate {certificate.digest}. Signed with: {told['Signed with']}",
                "registry_authors": papers.get("authors", papers["curator"]),
            },
        },
    }


_PREPARED = "Preparation and choice of settings"


def _up(value: float) -> float:
    """Return a number with six digits, rounded up."""
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value))


def _slug(title: str, curators: list[str], date: str) -> str:
    """Return the address of a record as the registry forms it: name, curators and year."""
    words = [re.sub(r"\W+", "_", each.lower()) for each in (title, "-".join(curators), date[:4])]
    return "_".join(words).replace("_", "-")


def _domain(certificate: PrivacyCertificate) -> str:
    facts = certificate.data
    return (
        f"Tables with {facts['n_features']} columns of features after encoding and one target, of "
        f"{facts['n_samples']:,} rows. Values outside public bounds are moved to the nearest bound."
    )


def _composition(certificate: PrivacyCertificate) -> str:
    parts = "; ".join(
        f"{part.name}: epsilon {part.epsilon:.4g}, delta {part.delta:.2g}"
        for part in certificate.parts
    )
    found = certificate.guarantee["bounds_found"]
    cost = f" Finding bounds cost epsilon {found['epsilon']:.4g}, added to it." if found else ""
    return f"Sequential. The releases of each part are accounted jointly ({parts}).{cost}"


def _mechanisms(certificate: PrivacyCertificate, one: str, told: dict[str, str]) -> str:
    released = "\n".join(f"- {each}" for each in explain_events(certificate.events, one))
    return (
        f"{told['Algorithm']} It released:\n\n{released}\n\nNoise: {certificate.noise}. "
        f"{told['Floating point']} Running time is not hidden. {told['Software']}"
    )


def registry_yaml(model: PrivateModel) -> str:
    """Return the record of a fit as YAML; texts of several lines keep their lines."""
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise ImportError('the registry needs PyYAML: pip install "fastmix[papers]".') from None

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]
        """Writes texts of several lines as blocks, and a list twice rather than an alias."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        value = "\n".join(visible(line).rstrip() for line in value.splitlines())
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    given = {"sort_keys": False, "allow_unicode": True, "width": float("inf")}
    return str(yaml.dump(registry_record(model), Dumper=Dumper, **given))
