"""The vendors' own services: Intel's provisioning certification (or a cache of it) and AMD's key distribution.

Answers are material and nothing more: `fastness.attestation.live.collateral` checks signatures, dates and numbers before it
uses or keeps one. Requests name a kind of platform or a chip, so the base URLs can point to a mirror inside the site.

* Intel signs text: the inner document is cut out of the answer byte for byte.
* AMD answers about one request in ten seconds. When it says 429, nobody asks it again before the time that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import httpx
import msgspec

from fastness.attestation.live.collateral_files import MAX_FILE
from fastness.formats import json
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.keys.errors import CollateralUnavailable
from fastness.runtime.clock import Clock
from fastness.runtime.retries import retry_after

# Machines wait for the answer at the door: after this they are told to come again, which costs them less than a hanging request.
SECONDS: Final = 15.0
PAUSE: Final = 60.0
# A header of somebody else's must not silence a service for a day.
MAX_PAUSE: Final = 600.0
_PARAMETERS: Final = {"fmc": "fmcSPL", "bootloader": "blSPL", "tee": "teeSPL", "snp": "snpSPL", "microcode": "ucodeSPL"}
_CONFIGURE: Final = "Check the network, or import the documents into the collateral directory."


@dataclass(frozen=True, slots=True)
class Services:
    """Base URLs; empty means that this service is not asked. The root list of Intel has an address of its own."""

    intel: str = "https://api.trustedservices.intel.com"
    intel_root_crl: str = "https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"
    amd: str = "https://kdsintf.amd.com"


class _TcbAnswer(msgspec.Struct):
    document: msgspec.Raw = msgspec.field(name="tcbInfo")
    signature: str


class _QeAnswer(msgspec.Struct):
    document: msgspec.Raw = msgspec.field(name="enclaveIdentity")
    signature: str


class VendorServices:
    """Both services over one HTTP client."""

    def __init__(self, client: httpx.AsyncClient, clock: Clock, services: Services) -> None:
        self._client = client
        self._clock = clock
        self._services = services
        self._quiet_until: dict[str, float] = {}

    async def tdx(self, fmspc: str, ca: str) -> bytes:
        """Intel's documents for a kind of platform as one collateral file; raises CollateralUnavailable."""
        base = self._base(self._services.intel, "Intel's service")
        tcb = await self._get(f"{base}/tdx/certification/v4/tcb", fmspc=fmspc)
        qe = await self._get(f"{base}/tdx/certification/v4/qe/identity")
        crl = await self._get(f"{base}/sgx/certification/v4/pckcrl", ca=ca, encoding="der")
        root = await self._get(self._services.intel_root_crl or f"{base}/sgx/certification/v4/rootcacrl")
        try:
            # `Raw` keeps the bytes between the braces: decoded and written anew, the text has other blanks, and Intel's signature
            # is of this one.
            info = msgspec.json.decode(tcb.content, type=_TcbAnswer)
            identity = msgspec.json.decode(qe.content, type=_QeAnswer)
            document = {
                "pck_crl_issuer_chain": _chain(crl, "SGX-PCK-CRL-Issuer-Chain"),
                "root_ca_crl": _hexadecimal(root.content),
                "pck_crl": _hexadecimal(crl.content),
                "tcb_info_issuer_chain": _chain(tcb, "TCB-Info-Issuer-Chain", "SGX-TCB-Info-Issuer-Chain"),
                "tcb_info": bytes(info.document).decode(),
                "tcb_info_signature": info.signature,
                "qe_identity_issuer_chain": _chain(qe, "SGX-Enclave-Identity-Issuer-Chain"),
                "qe_identity": bytes(identity.document).decode(),
                "qe_identity_signature": identity.signature,
            }
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CollateralUnavailable(f"Intel's service answered something else: {error}", _CONFIGURE) from error
        return json.encode(document)

    async def authorities(self, generation: Generation) -> bytes:
        """AMD's authorities of a generation, PEM: those of chips, then those of clouds; raises CollateralUnavailable."""
        base = self._base(self._services.amd, "AMD's service")
        chips = await self._get(f"{base}/vcek/v1/{generation}/cert_chain")
        clouds = await self._get(f"{base}/vlek/v1/{generation}/cert_chain")
        return chips.content.rstrip(b"\n") + b"\n" + clouds.content

    async def crl(self, generation: Generation) -> bytes:
        """AMD's revocation list of a generation; raises CollateralUnavailable."""
        base = self._base(self._services.amd, "AMD's service")
        return (await self._get(f"{base}/vcek/v1/{generation}/crl")).content

    async def vcek(self, generation: Generation, chip_id: bytes, tcb: Tcb) -> bytes:
        """The endorsement key of a chip at these firmware versions, DER; raises CollateralUnavailable."""
        base = self._base(self._services.amd, "AMD's service")
        query = {_PARAMETERS[name]: f"{version:02d}" for name, version in tcb.components().items()}
        return (await self._get(f"{base}/vcek/v1/{generation}/{chip_id.hex()}", **query)).content

    def _base(self, url: str, what: str) -> str:
        if not url:
            raise CollateralUnavailable(
                f"{what} is switched off", "Import the documents into the collateral directory."
            )
        return url.rstrip("/")

    async def _get(self, url: str, **query: str) -> _Answer:
        host = httpx.URL(url).host
        if self._clock.monotonic() < self._quiet_until.get(host, 0.0):
            raise CollateralUnavailable(f"{host} asked not to be asked again yet", "Wait, or import the documents.")
        try:
            # Not redirected: an operator allowed these hosts, and a mirror must not lead elsewhere.
            async with self._client.stream("GET", url, params=query, timeout=SECONDS, follow_redirects=False) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise self._refused(host, answer)
                return _Answer(await _bounded(answer, host), answer.headers)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise CollateralUnavailable(f"{host} cannot be reached: {reason}", _CONFIGURE) from error

    def _refused(self, host: str, answer: httpx.Response) -> CollateralUnavailable:
        if answer.status_code in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
            seconds = retry_after(answer.headers.get("Retry-After"))
            pause = PAUSE if seconds is None else min(seconds, MAX_PAUSE)
            self._quiet_until[host] = self._clock.monotonic() + pause
        return CollateralUnavailable(f"{host} answered {answer.status_code} for {answer.url.path}", _CONFIGURE)


@dataclass(frozen=True, slots=True)
class _Answer:
    content: bytes
    headers: httpx.Headers


async def _bounded(answer: httpx.Response, host: str) -> bytes:
    parts, size = [], 0
    async for part in answer.aiter_bytes():
        # Counted as it comes in: a mirror that sends without end must not fill the memory first.
        size += len(part)
        if size > MAX_FILE:
            raise CollateralUnavailable(f"{host} sent more than {MAX_FILE} bytes", _CONFIGURE)
        parts.append(part)
    return b"".join(parts)


def _chain(answer: _Answer, *headers: str) -> str:
    header: Any = next((answer.headers[name] for name in headers if name in answer.headers), "")
    # Intel sends the chain of certificates as percent-encoded PEM in a header (Provisioning Certification Service, version 4).
    return unquote(header)


def _hexadecimal(content: bytes) -> str:
    """A list as hexadecimal text; caches of Intel's service send it so already."""
    try:
        return bytes.fromhex(content.decode("ascii")).hex()
    except (UnicodeDecodeError, ValueError):
        return content.hex()
