"""A statement about a release for data-protection officers: their questions, answered in one page.

The questions follow the layers of NIST SP 800-226: parameters and unit; algorithms and utility;
trust, access and collection.
"""

from typing import Any

from fastmix.certificate import PrivacyCertificate
from fastmix.certificate.explain import audited, odds_factor
from fastmix.engine.population import Population
from fastmix.estimators import PrivateModel
from fastmix.estimators.contrasts import public_range
from fastmix.files.report import lead, model_title
from fastmix.schema import PublicBounds
from fastmix.schema.features import Category
from fastmix.show import html
from fastmix.show.html import Safe, render

#: Answer to a question that only the data office can answer.
NOT_STATED = "Not stated."

_SUBGROUPS = (
    "Noise is the same for everyone, so it weighs more on small groups. Effects of rare categories "
    "that noise hides are not shown. Scores by group were not released."
)

Answers = list[tuple[str, list[tuple[str, str]]]]


def statement_page(model: PrivateModel) -> str:
    """Return the statement about a fit of a table as an HTML page."""
    certificate = model.privacy_
    title = certificate.papers.get("title", model_title(model))
    body = render(
        "statement.html",
        title=title,
        private=certificate.private,
        lead=lead(model, model.schema_),
        sections=[(name, _answered(found)) for name, found in answers(model)],
        curator="; ".join(certificate.papers.get("curator", [])),
        digest=certificate.digest,
    )
    return html.page(f"Statement: {title}", body)


def _answered(found: list[tuple[str, str]]) -> Safe:
    cells = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in found)
    return Safe(f'<dl class="answers">{cells}</dl>')


def answers(model: PrivateModel) -> Answers:
    """Return the questions of a data-protection officer with their answers, by layer."""
    certificate = model.privacy_
    return [
        ("Parameters and unit", _parameters(certificate)),
        ("Method and accuracy", _method(certificate, model)),
        ("Trust, access and data", _trust(certificate, model)),
    ]


def _parameters(certificate: PrivacyCertificate) -> list[tuple[str, str]]:
    terms, papers = certificate.guarantee, certificate.papers
    cost, replaced = terms["total"], terms["one_replaced"]
    one = Population.certified(certificate.data, certificate.parameters).unit
    several = "; ".join(
        f"{k} {one}s: epsilon {each['epsilon']:.4g}, delta {each['delta']:.2g}"
        for k, each in terms["together"].items()
    )
    meaning = (
        f"Seeing the release changes the odds that any one {one} was in the data by a factor of at "
        f"most {odds_factor(cost['epsilon'])}, and those of any other fact about it by at most "
        f"{odds_factor(replaced['epsilon'])}, except with probabilities {cost['delta']:.2g} and "
        f"{replaced['delta']:.2g}."
    )
    if not certificate.private:
        meaning = f"Nothing is guaranteed: {'; '.join(certificate.leaks)}."
    return [
        ("Privacy loss", f"epsilon {cost['epsilon']:.6g}, delta {cost['delta']:.3g}"),
        ("What this means", meaning),
        ("Reason for these values", papers.get("reason", NOT_STATED)),
        ("Who is protected", _sentence(terms["unit"])),
        ("Neighbouring tables", _sentence(terms["neighbours"])),
        (
            f"One {one} replaced by another",
            f"epsilon {replaced['epsilon']:.4g}, delta {replaced['delta']:.2g}",
        ),
        ("Several at once", several),
        ("Other releases from these data", _ledger(certificate)),
    ]


def _ledger(certificate: PrivacyCertificate) -> str:
    """Return what is known about other releases of the same data."""
    planned, ledger = certificate.papers.get("releases", ""), certificate.ledger
    if ledger is None:
        return planned or "Not stated; no ledger was charged."
    spent, most = ledger["spent"], ledger["budget"]
    so_far = (
        f"charges so far: {ledger['charges']}, together epsilon {spent['epsilon']:.6g} at delta "
        f"{spent['delta']:.3g}"
        if spent
        else "its charges could not be read"
    )
    return (
        f"Ledger {ledger['id']} (rule {ledger['rule']}, at most epsilon {most['epsilon']:g}): "
        f"{so_far}. {planned}"
    ).strip()


def _method(certificate: PrivacyCertificate, model: PrivateModel) -> list[tuple[str, str]]:
    terms, found = certificate.guarantee, certificate.guarantee["bounds_found"]
    scores = getattr(model, "scores_", None)
    utility = "; ".join(f"{name} {words}" for name, words in scores.in_words()) if scores else ""
    bounds = (
        f"Found with noise, for epsilon {found['epsilon']:.4g}, which the total includes."
        if found
        else certificate.papers.get("bounds", "Public knowledge, according to whoever ran the fit.")
    )
    return [
        (
            "Algorithm",
            f"{certificate.mechanism}, method {certificate.parameters['method_']}. The certificate "
            "lists every release with its noise.",
        ),
        (
            "Correctness",
            "'fastmix explain --verify' computes the account again from the settings. Proofs and "
            "tests are part of the software.",
        ),
        (
            "Audit of this version",
            NOT_STATED if certificate.audit is None else audited(certificate.audit),
        ),
        ("Floating point", _sentence(terms["floating_point"])),
        ("Bounds", bounds),
        ("Accuracy", _sentence(utility) if utility else "No private score was released."),
        ("Intervals", _intervals(certificate)),
        ("Groups of people", _SUBGROUPS),
        ("Computed from released values", _sentence(terms["post_processing"])),
    ]


def _intervals(certificate: PrivacyCertificate) -> str:
    if certificate.parameters["inference"]:
        return "Coefficients have intervals that include privacy noise and sampling error."
    return "None were computed."


def _trust(certificate: PrivacyCertificate, model: PrivateModel) -> list[tuple[str, str]]:
    terms, papers, made = certificate.guarantee, certificate.papers, certificate.build
    commit = f", commit {made['commit']}" if made["commit"] else ""
    kernels = certificate.kernels
    code = f"compiled for {kernels['instruction_set']}" if kernels["compiled"] else "NumPy"
    return [
        ("Purpose", papers.get("purpose", NOT_STATED)),
        ("Curator", "; ".join(papers.get("curator", [NOT_STATED]))),
        ("Contact", papers.get("contact", NOT_STATED)),
        ("Trust model", _sentence(terms["trust_model"])),
        ("Not protected", _sentence("; ".join(terms["not_protected"]))),
        ("Preparation and choice of settings", papers.get("preparation", NOT_STATED)),
        ("Access to the raw data", papers.get("access", NOT_STATED)),
        ("Sources of bounds", sources(model.schema_)),
        ("Date", papers.get("published", certificate.date)),
        (
            "Software",
            f"fastmix {certificate.versions['fastmix']}{commit}, sources {made['source']}, "
            f"kernels: {code}.",
        ),
        ("Signed with", certificate.signer or "Not signed."),
    ]


def sources(bounds: PublicBounds, longest: int = 12) -> str:
    """Return the public bounds with their notes, the first ones if there are many."""
    columns = [bounds.target, *(each for each in bounds.features if hasattr(each, "note"))]
    told = [f"{each.name}: {_range(each)} ({each.note or 'no source stated'})" for each in columns]
    rest = len(columns) - longest
    return (
        f"{'; '.join(told[:longest])}{f'; and {rest} more in the certificate' if rest > 0 else ''}."
    )


def _range(column: Any) -> str:
    """Return the public range of a column in words."""
    if isinstance(column, Category):
        return f"{len(column.categories)} categories"
    return public_range(column)[0]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def card_text(model: Any) -> str:
    """Return a model card in Markdown: the same answers, for whoever uses the model."""
    certificate = model.privacy_
    title = certificate.papers.get("title", model_title(model))
    parts = [f"# {title}", "", lead(model, model.schema_), ""]
    for name, found in answers(model):
        parts += [f"## {name}", ""]
        parts += [f"- **{question}:** {' '.join(text.split())}" for question, text in found]
        parts.append("")
    parts += ["## Use it", "", "```python", "import fastmix", ""]
    parts += ['model = fastmix.load("model")', "print(model.summary())", "```", ""]
    return "\n".join(parts)
