"""Request for a TLS server: words for its templates, its OpenSSL, and the proof of the loaded library."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import Installed, NotStarted
from tollbar.core.records import Outcome
from tollbar.lab.servers import loading, masking
from tollbar.lab.servers.configuration import SHOWN, Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls.certificates import Certificates, UnmadeCertificates, certificates_of
from tollbar.lab.tls.settings import Impossible, Settings, server_configuration


def request(sandbox: Sandbox, found: Installed, provider: Provider, settings: Mapping[str, str | int]) -> Request:
    """Return the request for a server. Raises NotStarted if no server, or not this one, supports it.

    `settings` are those that `Settings` reads; `bytes` is the size of the requested document; `cpu` names the processor
    features to use.
    """
    try:
        asked = Settings.read(settings)
    except Impossible as impossible:
        raise NotStarted(Outcome.UNSUPPORTED, str(impossible)) from impossible
    able = found.server.runs_on if asked.encrypted else (*found.server.runs_on, *found.server.performs)
    if provider.kind not in able:
        raise NotStarted(Outcome.UNSUPPORTED, f"{found.server.title} does not run on {provider.kind}")
    mask = masking.mask(found, provider, str(settings.get("cpu", masking.NATIVE)))
    certificates = certificates_of(sandbox)
    size = settings.get("bytes")
    try:
        words = _words(asked, certificates, provider)
    except OSError as error:
        raise NotStarted(Outcome.FAILED, f"the certificates cannot be made: {error}") from error
    return Request(
        found,
        provider,
        settings,
        words=words,
        shown_words=_words(asked, UnmadeCertificates(certificates.directory), provider),
        environment={**loading.environment(found, provider, sandbox), **(mask.environment if mask else {})},
        sizes=(size,) if isinstance(size, int) else (),
        # Looked up at the call, because tests replace it.
        is_encrypted=asked.encrypted,
        check=partial(_check, found, provider, asked.encrypted, mask),
    )


def shown_request(found: Installed, provider: Provider, settings: Mapping[str, str | int]) -> Request:
    """Return the request for display, without a sandbox. Raises Impossible if no server supports the settings."""
    unmade = UnmadeCertificates(SHOWN / "certificates")
    return Request(found, provider, settings, words=_words(Settings.read(settings), unmade, provider))


def _check(
    found: Installed, provider: Provider, encrypted: bool, mask: masking.Mask | None, pid: int
) -> Mapping[str, str]:
    loaded = loading.prove(found, provider, pid, encrypted=encrypted)
    return {**loaded, **(mask.prove(pid) if mask else {})}


def _words(asked: Settings, certificates: Certificates, provider: Provider) -> dict[str, Any]:
    on_libcrypto = provider.kind == "libcrypto"
    configuration = server_configuration(
        asked,
        certificates,
        library="libssl" if on_libcrypto else "rustls",
        libcrypto=provider.path if on_libcrypto else None,
    )
    return {"tls": configuration}
