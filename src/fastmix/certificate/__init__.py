"""Certificates: what a fit spent, in numbers, in words, and checked."""

from fastmix.certificate.certificate import FORMAT, PrivacyCertificate
from fastmix.certificate.documents import jsonable
from fastmix.certificate.explain import explain, explain_events, headline
from fastmix.certificate.verify import Verification, verify_certificate

__all__ = [
    "FORMAT",
    "PrivacyCertificate",
    "Verification",
    "explain",
    "explain_events",
    "headline",
    "jsonable",
    "verify_certificate",
]
