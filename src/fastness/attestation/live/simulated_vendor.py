"""The simulated vendor of a simulated cluster, as it is announced to every door: one ConfigMap, `simulated-vendor`.

    roots          fingerprints of its roots, by kind of evidence
    certificates   PEM of its TPM works, to complete chains
    tdx            what Intel would publish about its platforms
    revocations    what AMD would publish about its keys, by generation: base64 of DER

Announcing costs nothing and means nothing: a cluster that does not say `simulated` never looks here, and one that does says
so on every verdict. What cannot be read is not believed. Documents run out as real ones do: the vendor announces again in time.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from fastness.attestation.evidence.roots import NOT_SIMULATED, Anchors, SimulatedMaker
from fastness.attestation.live.appraisers import CollateralSource, NoCollateral
from fastness.attestation.status.collateral import CollateralState
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.x509 import Certificate
from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import JsonError
from fastness.formats.evidence.snp.report import Report
from fastness.formats.evidence.snp.tcb import Generation
from fastness.formats.evidence.tdx.collateral import Collateral, parse_collateral
from fastness.keys.authorities import HERE
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import AlreadyExists
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions

NAME: Final = "simulated-vendor"
SOURCE: Final = "a simulated vendor"
_AS: Final = WriteOptions(manager="simulator")


@dataclass(frozen=True, slots=True)
class Published:
    """What a simulated vendor publishes beside its roots."""

    certificates: str
    tdx: bytes
    revocations: Mapping[Generation, bytes]


async def announce(cluster: Cluster, roots: Anchors, published: Published) -> None:
    """Tell all doors of this cluster about its simulated vendor."""
    named = {"amd": dict(roots.amd), "intel": roots.intel, "tpm": sorted(roots.tpm)}
    lists = {str(generation): base64.b64encode(der).decode() for generation, der in published.revocations.items()}
    data = {
        "roots": json.canonical(named).decode(), "certificates": published.certificates, "tdx": published.tdx.decode(),
        "revocations": json.canonical(lists).decode(),
    }  # fmt: skip
    body: JsonObject = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data,
    }  # fmt: skip
    try:
        await cluster.create(CONFIG_MAP.resource, body, _AS)
    except AlreadyExists:
        await cluster.patch(CONFIG_MAP.resource, NAME, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)


class SimulatedVendor:
    """What was announced, read again when it changes."""

    def __init__(self, informers: Informers, real: CollateralSource | None = None) -> None:
        self._maps: Informer = informers.of(CONFIG_MAP.resource, HERE)
        self._real = real or NoCollateral()
        self._announced: JsonObject | None = None
        self._anchors: Anchors | None = None
        self._maker = NOT_SIMULATED
        self._tdx: Collateral | None = None
        self._lists: dict[Generation, RevocationList] = {}

    async def synced(self) -> None:
        """Wait until an announcement would have been heard."""
        await self._maps.synced()

    @property
    def anchors(self) -> Anchors | None:
        """Its roots; they count only where the cluster is simulated."""
        self._read()
        return self._anchors

    @property
    def maker(self) -> SimulatedMaker:
        """Its TPM works, for enrolment."""
        self._read()
        return self._maker

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors) -> Collateral | None:
        """The documents of whoever the anchors belong to."""
        if anchors.simulated:
            self._read()
            return self._tdx
        return await self._real.tdx(fmspc, ca, anchors)

    async def snp(self, report: Report, anchors: Anchors) -> Sequence[Certificate]:
        """Certificates of whoever the anchors belong to; simulated reports bring theirs."""
        return () if anchors.simulated else await self._real.snp(report, anchors)

    async def snp_authorities(self, generation: Generation, anchors: Anchors) -> Sequence[Certificate]:
        """Authorities of whoever the anchors belong to; simulated reports bring theirs."""
        return () if anchors.simulated else await self._real.snp_authorities(generation, anchors)

    async def snp_crl(self, generation: Generation, anchors: Anchors) -> RevocationList | None:
        """The list of whoever the anchors belong to."""
        if anchors.simulated:
            self._read()
            return self._lists.get(generation)
        return await self._real.snp_crl(generation, anchors)

    def look_after(self, staleness: timedelta) -> None:
        """Tell those who have real vendors' documents; the simulated vendor's are announced anew."""
        self._real.look_after(staleness)

    def state(self) -> CollateralState:
        """What is announced, and what real vendors' documents were asked for."""
        self._read()
        real = self._real.state()
        own = {f"{NAME}/snp/{generation}": listed.ends for generation, listed in self._lists.items()}
        if self._tdx is not None:
            own[f"{NAME}/tdx"] = min(self._tdx.tcb_info.next_update, self._tdx.qe_identity.next_update)
        return CollateralState({**real.documents, **own}, real.problems)

    def _read(self) -> None:
        announced = self._maps.get(NAMESPACE, NAME)
        if announced is self._announced:
            return
        self._announced = announced
        data = (announced or {}).get("data") or {}
        self._anchors = _anchors(data)
        self._maker = _maker(data, self._anchors)
        self._tdx = _collateral(data)
        self._lists = _revocations(data)


def _anchors(data: Mapping[str, Any]) -> Anchors | None:
    try:
        roots = json.decode(data["roots"].encode())
        return Anchors(dict(roots["amd"]), str(roots["intel"]), frozenset(roots["tpm"]), SOURCE, simulated=True)
    except (JsonError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _maker(data: Mapping[str, Any], anchors: Anchors | None) -> SimulatedMaker:
    if anchors is None:
        return NOT_SIMULATED
    try:
        return SimulatedMaker(anchors.tpm, tuple(load_certificates(str(data.get("certificates", "")).encode())))
    except CryptoError:
        return SimulatedMaker(anchors.tpm)


def _collateral(data: Mapping[str, Any]) -> Collateral | None:
    try:
        return parse_collateral(str(data["tdx"]).encode())
    except (KeyError, EvidenceError):
        return None


def _revocations(data: Mapping[str, Any]) -> dict[Generation, RevocationList]:
    try:
        lists = json.decode(str(data["revocations"]).encode())
        return {Generation(name): RevocationList(base64.b64decode(text)) for name, text in lists.items()}
    except (JsonError, CryptoError, KeyError, TypeError, ValueError, AttributeError):
        return {}
