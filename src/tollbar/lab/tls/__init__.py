"""TLS for every family whose servers speak it: settings, certificates, and requests for servers."""

from tollbar.lab.tls.certificates import Certificates, UnmadeCertificates, certificates_of
from tollbar.lab.tls.request import request, shown_request
from tollbar.lab.tls.settings import PLAINTEXT, Impossible, Settings, clients

__all__ = [
    "PLAINTEXT",
    "Certificates",
    "Impossible",
    "Settings",
    "UnmadeCertificates",
    "certificates_of",
    "clients",
    "request",
    "shown_request",
]
