"""Vendors' documents at hand: Intel's about TDX platforms, AMD's certificates and revocation lists, makers of TPMs.

    documents = await collateral.tdx(fmspc, "platform")     # None: not at hand now, nothing can be granted

Memory, an imported directory, the directory of what was fetched before, the vendor's service: in this order, and the newest that
is good wins (layout: `attestation.live.collateral_files`). Rules:

- Nothing is believed because of where it lies. Each document must verify under the pinned root and be current before it is used,
  kept, or has its numbers remembered.
- A document with a lower number than one that was seen is refused, also after a restart.
- One that has run out is not used for a second longer. From half of its life, or when it is older than `staleness`, a newer one
  is looked for; until there is one, the good one stays.
- Many may wait for one document, and it is fetched once. What could not be had is not asked for again within a minute.
- `problems` says why something is missing, `state` what was asked for lately; conditions and metrics show it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.intel_documents import judge_documents
from fastness.attestation.evidence.roots import PINNED, Anchors
from fastness.attestation.live.appraisers import STALENESS
from fastness.attestation.live.collateral_files import Numbers, Shelf, authorities_file, crl_file, tdx_file, vcek_file
from fastness.attestation.live.vendor_services import VendorServices
from fastness.attestation.status.collateral import CollateralState
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import chain_to_pin, extension_values, issuer_name, load_certificates
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.x509 import Certificate
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.report import Report, SigningKey
from fastness.formats.evidence.snp.tcb import Generation, Tcb, read_tcb
from fastness.formats.evidence.snp.vek import read_vek
from fastness.formats.evidence.tdx.collateral import Collateral as TdxCollateral
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.keys.errors import CollateralUnavailable
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

# A vendor's service that is down is asked once a minute, however many machines come.
AGAIN: Final = 60.0
# Kinds of platforms and chips are named by machines; a stranger must not be able to make this grow without end.
MAX_HELD: Final = 4096
LATELY: Final = timedelta(hours=2)
_AUTHORITIES: Final = ("platform", "processor")
_HINT: Final = "Fetch the document again; check the clock of this server."
T = TypeVar("T")
Fetch = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Good(Generic[T]):
    """A document that verified: what it says, when it counts, and numbers that may only grow."""

    value: T
    begins: datetime | None = None
    ends: datetime | None = None
    numbers: tuple[tuple[str, int], ...] = ()

    def usable(self, at: datetime) -> bool:
        """Whether it counts at that time."""
        return (self.begins is None or self.begins <= at) and (self.ends is None or at <= self.ends)


@dataclass(frozen=True, slots=True)
class _Held:
    good: Good[Any]
    looked: float

    def due(self, at: datetime, monotonic: float, staleness: timedelta) -> bool:
        """Whether a newer one should be looked for."""
        if self.good.begins is None or self.good.ends is None or monotonic - self.looked < AGAIN:
            return False
        # Half of its life is left when the search begins: an outage of the vendor may last that long before a machine notices.
        return at - self.good.begins > min(staleness, (self.good.ends - self.good.begins) / 2)


class Collateral:
    """Finds vendors' documents. Without services only directories are looked at."""

    def __init__(
        self,
        clock: Clock,
        *,
        imported: Path | None = None,
        cache: Path | None = None,
        services: VendorServices | None = None,
        published: Anchors = PINNED,
        staleness: timedelta = STALENESS,
    ) -> None:
        """`published` are the roots of the services: documents under other roots come from directories only."""
        self._clock = clock
        self._imported = Shelf(imported) if imported else None
        self._cache = Shelf(cache) if cache else None
        self._numbers = Numbers(self._cache)
        self._services = services
        self._published = published
        self._staleness = staleness
        self._held = BoundedCache[tuple[str, str], _Held](MAX_HELD)
        self._missing = BoundedCache[tuple[str, str], float](MAX_HELD)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._requested = BoundedCache[tuple[str, str], datetime](MAX_HELD)
        self.problems: dict[str, str] = {}

    def look_after(self, staleness: timedelta) -> None:
        """From now on, look for newer documents once those at hand are so old."""
        self._staleness = staleness

    def state(self) -> CollateralState:
        """What was asked for lately: until when it counts, and what is missing for which reason."""
        now, documents, problems = self._clock.now(), dict[str, datetime | None](), dict[str, str]()
        for (name, root), request in self._requested.items():
            if now - request > LATELY:
                continue
            held = self._held.get((name, root))
            if held is not None:
                documents[name] = held.good.ends
            elif name in self.problems:
                problems[name] = self.problems[name]
        return CollateralState(documents, problems)

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors = PINNED) -> TdxCollateral | None:
        """Intel's documents for a kind of platform (`ca` is platform or processor)."""
        # It becomes the name of a file and part of an address, and comes out of a certificate that a machine sent.
        if len(fmspc) != 12 or not all(digit in "0123456789abcdef" for digit in fmspc) or ca not in _AUTHORITIES:
            return None
        services, fetch = self._services, None
        if services is not None and anchors.intel == self._published.intel:
            fetch = lambda: services.tdx(fmspc, ca)  # noqa: E731 - a closure over the platform
        accept = _documents(fmspc, ca, anchors.intel)
        return await self._document(tdx_file(fmspc, ca), anchors.intel, accept, fetch)

    async def snp(self, report: Report, anchors: Anchors = PINNED) -> Sequence[Certificate]:
        """Certificates that may complete the chain of a report: its endorsement key where AMD publishes it, and authorities."""
        certificates: list[Certificate] = []
        for generation in _generations(report):
            certificates += await self.snp_authorities(generation, anchors)
            if report.signing_key is SigningKey.VCEK and any(report.chip_id):
                chip_id = report.chip_id[: generation.chip_id_size]
                key = await self.snp_key(generation, chip_id, read_tcb(report.reported_tcb, generation), anchors)
                if key is not None:
                    return [key, *certificates]
        return certificates

    async def snp_key(
        self, generation: Generation, chip_id: bytes, tcb: Tcb, anchors: Anchors = PINNED
    ) -> Certificate | None:
        """The certificate of a chip's endorsement key at these firmware versions. It never changes."""
        authorities = await self.snp_authorities(generation, anchors)
        if not authorities:
            return None
        root, services, fetch = anchors.amd[generation], self._services, None
        if services is not None and root == self._published.amd[generation]:
            fetch = lambda: services.vcek(generation, chip_id, tcb)  # noqa: E731 - a closure over the chip
        accept = _endorsement(generation, chip_id, tcb, authorities, root)
        return await self._document(vcek_file(generation, chip_id, tcb), root, accept, fetch)

    async def snp_authorities(self, generation: Generation, anchors: Anchors = PINNED) -> list[Certificate]:
        """AMD's authorities of a generation, as far as they lead to the root."""
        root, services, fetch = anchors.amd[generation], self._services, None
        if services is not None and root == self._published.amd[generation]:
            fetch = lambda: services.authorities(generation)  # noqa: E731 - a closure over the generation
        certificates = await self._document(authorities_file(generation), root, _authorities(root), fetch)
        return certificates or []

    async def snp_crl(self, generation: Generation, anchors: Anchors = PINNED) -> RevocationList | None:
        """AMD's current revocation list of a generation."""
        root, services, fetch = anchors.amd[generation], self._services, None
        authorities = await self.snp_authorities(generation, anchors)
        issuer = next((entry for entry in authorities if entry.fingerprint.hex == root), None)
        if issuer is None:
            return None
        if services is not None and root == self._published.amd[generation]:
            fetch = lambda: services.crl(generation)  # noqa: E731 - a closure over the generation
        return await self._document(crl_file(generation), root, _revocations(generation, issuer), fetch)

    async def makers(self) -> list[Certificate]:
        """Certificates of makers of TPMs that were imported; pins decide which of them count."""
        return await asyncio.to_thread(self._imported.makers) if self._imported else []

    # ------------------------------------------------------------ one document

    async def _document(
        self, name: str, root: str, accept: Callable[[bytes, datetime], Good[T]], fetch: Fetch | None
    ) -> T | None:
        key = (name, root)
        self._note(key)
        held = self._fresh(key)
        if held is None:
            lock = self._locks.setdefault(key, asyncio.Lock())
            async with lock:
                # Looked at again under the lock: whoever waited finds what the first one fetched.
                held = self._fresh(key) or await self._look(key, accept, fetch)
        value: T | None = held.good.value if held else None
        return value

    def _note(self, key: tuple[str, str]) -> None:
        """Remember that somebody asked; of very many the oldest are forgotten, with their problems."""
        for (name, _), _ in self._requested.put(key, self._clock.now()):
            self.problems.pop(name, None)

    def _fresh(self, key: tuple[str, str]) -> _Held | None:
        """What memory holds, if there is no reason to look further."""
        held, now, monotonic = self._held.get(key), self._clock.now(), self._clock.monotonic()
        if held is None or not held.good.usable(now) or held.due(now, monotonic, self._staleness):
            return None
        self._held.use(key)
        return held

    async def _look(
        self, key: tuple[str, str], accept: Callable[[bytes, datetime], Good[T]], fetch: Fetch | None
    ) -> _Held | None:
        name, now = key[0], self._clock.now()
        held, missed = self._held.get(key), self._missing.get(key)
        best = held.good if held is not None and held.good.usable(now) else None
        # By the monotonic clock: setting the time of day back must not silence the search, nor set it free.
        if best is None and missed is not None and self._clock.monotonic() - missed < AGAIN:
            return None
        self.problems.pop(name, None)
        # Both are read although the first has one: an operator's import may be older than what the service said since.
        shelves = [shelf for shelf in (self._imported, self._cache) if shelf]
        for data in await asyncio.to_thread(lambda: [shelf.read(name) for shelf in shelves]):
            best = _newer(best, await self._accepted(name, data, accept, now) if data is not None else None)
        if fetch is not None and (best is None or _Held(best, -AGAIN).due(now, 0.0, self._staleness)):
            best = _newer(best, await self._fetched(name, accept, fetch, now))
        if best is None:
            self.problems.setdefault(name, "it is in no directory, and no service was asked")
            self._missing.put(key, self._clock.monotonic())
            return None
        self._missing.pop(key)
        return self._hold(key, best)

    async def _fetched(
        self, name: str, accept: Callable[[bytes, datetime], Good[T]], fetch: Fetch, now: datetime
    ) -> Good[T] | None:
        try:
            data = await fetch()
        except CollateralUnavailable as error:
            self.problems[name] = error.message
            return None
        good = await self._accepted(name, data, accept, now)
        # Only what verified goes to the disk: the directory is read again after a restart, but never believed.
        if good is not None and self._cache is not None:
            cache = self._cache
            try:
                await asyncio.to_thread(cache.write, name, data)
            except OSError as error:
                self.problems[name] = f"it cannot be kept: {error.strerror}"
        return good

    async def _accepted(
        self, name: str, data: bytes, accept: Callable[[bytes, datetime], Good[T]], now: datetime
    ) -> Good[T] | None:
        try:
            good = accept(data, now)
            # An older document is signed and may be current still: somebody between us and the vendor hides a revocation with it
            # (pitfall 19).
            older = self._numbers.behind(dict(good.numbers))
            if older:
                raise CollateralUnavailable(f"older than one that was seen: {', '.join(older)}", _HINT)
            # On the disk before it is used: after a restart the older document must not count again.
            await asyncio.to_thread(self._numbers.keep, dict(good.numbers))
        except (CryptoError, EvidenceError, CollateralUnavailable) as error:
            self.problems[name] = error.message
            return None
        except OSError as error:
            self.problems[name] = f"its number cannot be remembered: {error.strerror}"
            return None
        return good

    def _hold(self, key: tuple[str, str], good: Good[Any]) -> _Held:
        held = _Held(good, self._clock.monotonic())
        self._held.put(key, held)
        return held


def _newer(first: Good[Any] | None, other: Good[Any] | None) -> Good[Any] | None:
    if first is None or other is None:
        return first or other
    return other if first.begins is not None and other.begins is not None and other.begins > first.begins else first


def _generations(report: Report) -> tuple[Generation, ...]:
    """The generations that a report may come from; before version 3 it does not say, and only Turin has short chip ids."""
    if report.cpu is not None:
        return (report.generation,) if report.generation else ()
    # A guess where the report is silent: it chooses what to fetch, and the certificate that comes must fit the chip and its
    # versions.
    short = not any(report.chip_id[Generation.TURIN.chip_id_size :])
    return (Generation.TURIN,) if short and any(report.chip_id) else (Generation.MILAN, Generation.GENOA)


def _documents(fmspc: str, ca: str, root: str) -> Callable[[bytes, datetime], Good[TdxCollateral]]:
    def accept(data: bytes, at: datetime) -> Good[TdxCollateral]:
        documents, findings = parse_collateral(data), Findings()
        judge_documents(findings, documents, root, at)
        refused = next((check for check in findings.checks if check.refuses), None)
        if refused is not None:
            raise CollateralUnavailable(f"{refused.name}: {refused.code} ({refused.seen})", _HINT)
        # Genuine, but of another platform: under this name it would be kept, and hide that the right one is missing.
        if documents.tcb_info.fmspc.lower() != fmspc:
            raise CollateralUnavailable(f"it is about platforms {documents.tcb_info.fmspc}", _HINT)
        lists = {"pck": RevocationList(documents.pck_crl), "root": RevocationList(documents.root_crl)}
        numbers = {
            f"{root[:16]}/tdx/{fmspc}/tcb": documents.tcb_info.evaluation,
            f"{root[:16]}/tdx/qe": documents.qe_identity.evaluation,
            f"{root[:16]}/tdx/{ca}-crl": lists["pck"].number or 0,
            f"{root[:16]}/tdx/root-crl": lists["root"].number or 0,
        }
        ends = [
            documents.tcb_info.next_update,
            documents.qe_identity.next_update,
            *(listed.ends for listed in lists.values()),
        ]
        begins = max(documents.tcb_info.issued, documents.qe_identity.issued)
        return Good(documents, begins, min(end for end in ends if end), tuple(numbers.items()))

    return accept


def _authorities(root: str) -> Callable[[bytes, datetime], Good[list[Certificate]]]:
    def accept(data: bytes, _: datetime) -> Good[list[Certificate]]:
        pool = load_certificates(data)
        for entry in pool:
            chain_to_pin(entry, pool, [root])
        return Good(list({entry.der: entry for entry in pool}.values()))

    return accept


def _revocations(generation: Generation, issuer: Certificate) -> Callable[[bytes, datetime], Good[RevocationList]]:
    def accept(data: bytes, at: datetime) -> Good[RevocationList]:
        listed = RevocationList(data)
        if not listed.signed_by(issuer) or not listed.current(at):
            raise CollateralUnavailable(f"it is not AMD's, or not current ({listed.dates})", _HINT)
        # A list without a number (RFC 5280 §5.2.3 demands one) is ordered by the second at which it was issued.
        number = listed.number if listed.number is not None else int(listed.issued.timestamp())
        name = f"{issuer.fingerprint.hex[:16]}/snp/{generation}/crl"
        return Good(listed, listed.issued, listed.ends, ((name, number),))

    return accept


def _endorsement(
    generation: Generation, chip_id: bytes, tcb: Tcb, authorities: Sequence[Certificate], root: str
) -> Callable[[bytes, datetime], Good[Certificate]]:
    def accept(data: bytes, _: datetime) -> Good[Certificate]:
        certificate = load_certificates(data)[0]
        vek = read_vek(issuer_name(certificate), extension_values(certificate))
        if vek is None or (vek.generation, vek.hardware_id, vek.tcb) != (generation, chip_id, tcb):
            raise CollateralUnavailable("it belongs to another chip or to other firmware versions", _HINT)
        chain_to_pin(certificate, authorities, [root])
        return Good(certificate)

    return accept
