"""How new a TDX platform is: levels, statuses, and which component is behind.

Intel publishes levels per kind of platform, newest first. A platform is at the first level whose every component it
reaches: sixteen of the processor, the provisioning enclave, sixteen of TDX. The module and the quoting enclave have levels
of their own, and the worst of the three counts.

All sixteen components of TDX are compared, also for modules with an identity of their own, where Intel would skip the first
two: the stricter reading, and the one of the second implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.formats.evidence.tdx.body import EnclaveReport, TdReport
from fastness.formats.evidence.tdx.collateral import Component, EnclaveLevel, Module, PlatformLevel, QeIdentity, TcbInfo
from fastness.formats.evidence.tdx.pck import Pck

UP_TO_DATE: Final = "UpToDate"
# From best to worst; a status that is not listed is worse than all of them.
ORDER: Final = (
    UP_TO_DATE,
    "SWHardeningNeeded",
    "ConfigurationNeeded",
    "ConfigurationAndSWHardeningNeeded",
    "TDRelaunchAdvised",
    "TDRelaunchAdvisedConfigurationNeeded",
    "OutOfDate",
    "OutOfDateConfigurationNeeded",
    "Revoked",
)


@dataclass(frozen=True, slots=True)
class TcbStatus:
    """Where something stands: a status, since when that is known, and the advisories that apply. No status: no level."""

    status: str
    date: datetime | None = None
    advisories: tuple[str, ...] = ()


NO_LEVEL: Final = TcbStatus("")


def worst(standings: Sequence[TcbStatus]) -> TcbStatus:
    """The worst status of all, with everybody's advisories."""
    # No level at all is worse than every status, also than Revoked: nobody ever said anything about such a platform.
    if any(not standing.status for standing in standings):
        return NO_LEVEL
    low = max(standings, key=lambda standing: _rank(standing.status))
    advisories = sorted({advisory for standing in standings for advisory in standing.advisories})
    dates = [standing.date for standing in standings if standing.date]
    # The earliest date, as the platform is as old as its oldest part.
    return TcbStatus(low.status, min(dates) if dates else None, tuple(advisories))


def platform_standing(info: TcbInfo, pck: Pck, svn: bytes) -> TcbStatus:
    """The first level that the platform reaches with these versions of TDX."""
    # All components or none: with one of them behind, the flaw that the level closed is open.
    for level in _newest_first(info.levels):
        if not missing(level, pck, svn):
            return TcbStatus(level.status, level.date, level.advisories)
    return NO_LEVEL


def missing(level: PlatformLevel, pck: Pck, svn: bytes) -> list[str]:
    """What the platform lacks for a level, component by component."""
    lacks = _lacks("SGX", level.tcb.sgx, pck.components)
    if pck.pce_svn < level.tcb.pce_svn:
        lacks.append(f"PCE: {pck.pce_svn}, needs {level.tcb.pce_svn}")
    return lacks + _lacks("TDX", level.tcb.tdx, tuple(svn))


def behind(info: TcbInfo, pck: Pck, svn: bytes) -> list[str]:
    """What the platform lacks for the newest level that Intel calls up to date."""
    newest = next((level for level in _newest_first(info.levels) if level.status == UP_TO_DATE), None)
    return missing(newest, pck, svn) if newest else []


def versions(report: TdReport) -> tuple[bytes, ...]:
    """The versions of TDX that count: those at launch and, from TDX 1.5 on, those of the module that runs now."""
    # Both: the module can be updated under a running domain, which was built by the one before.
    return (report.tee_tcb_svn,) if report.tee_tcb_svn2 is None else (report.tee_tcb_svn, report.tee_tcb_svn2)


def module_of(info: TcbInfo, svn: bytes) -> Module | None:
    """The identity that the TDX module must have; None when Intel names none for this version."""
    # TEE_TCB_SVN: byte 1 is the version of the module, byte 0 its security version. Version 0 has the one identity of the
    # document, later ones are listed by name (`tdxModuleIdentities`, TDX_01).
    major = svn[1]
    if major == 0:
        return info.module
    return next((entry for entry in info.modules if entry.id.upper() == f"TDX_{major:02X}"), None)


def module_standing(info: TcbInfo, svn: bytes) -> TcbStatus | None:
    """Where the TDX module stands; None when it has no levels of its own."""
    module = module_of(info, svn)
    if module is None:
        return NO_LEVEL
    levels: Sequence[EnclaveLevel] | None = getattr(module, "levels", None)
    return None if levels is None else _enclave(levels, svn[0])


def module_matches(module: Module, report: TdReport) -> bool:
    """Whether signer and attributes are those of the identity."""
    mask = bytes.fromhex(module.mask)
    attributes = bytes.fromhex(module.attributes)
    # Lengths first: `zip` ends at the shorter side, and an empty mask would agree with everything (pitfall 20).
    if len(mask) != len(report.seam_attributes) or len(attributes) != len(mask):
        return False
    masked = bytes(left & right for left, right in zip(report.seam_attributes, mask, strict=True))
    return masked == attributes and report.mrsigner_seam == bytes.fromhex(module.mrsigner)


def qe_standing(identity: QeIdentity, report: EnclaveReport) -> TcbStatus:
    """Where the quoting enclave stands."""
    return _enclave(identity.levels, report.isv_svn)


def qe_differences(identity: QeIdentity, report: EnclaveReport) -> list[str]:
    """In what the quoting enclave differs from its published identity."""
    differences = []
    # Intel signs the identity of the enclave for SGX with the same key: it names another enclave.
    if identity.id != "TD_QE" or identity.version != 2:
        differences.append(f"the identity is of {identity.id} version {identity.version}")
    if report.mr_signer != bytes.fromhex(identity.mrsigner):
        differences.append("MRSIGNER")
    if report.isv_prod_id != identity.isvprodid:
        differences.append("ISVPRODID")
    if not _masked(report.miscselect, identity.miscselect_mask, identity.miscselect):
        differences.append("MISCSELECT")
    if not _masked(report.attributes, identity.attributes_mask, identity.attributes):
        differences.append("ATTRIBUTES")
    return differences


def _enclave(levels: Sequence[EnclaveLevel], svn: int) -> TcbStatus:
    for level in sorted(levels, key=lambda entry: entry.tcb.isvsvn, reverse=True):
        if level.tcb.isvsvn <= svn:
            return TcbStatus(level.status, level.date, level.advisories)
    return NO_LEVEL


def _masked(value: bytes, mask: str, expected: str) -> bool:
    # The same trap as in `module_matches`: a mask of another length would leave bits unlooked at.
    bits, masked = bytes.fromhex(mask), bytes.fromhex(expected)
    if len(bits) != len(value) or len(masked) != len(value):
        return False
    return bytes(left & right for left, right in zip(value, bits, strict=True)) == masked


def _lacks(family: str, needed: Sequence[Component], have: Sequence[int]) -> list[str]:
    lacking = []
    # Strict: a shorter side would leave components out, and what is not compared is reached (pitfall 20).
    for index, (component, svn) in enumerate(zip(needed, have, strict=True), start=1):
        if svn < component.svn:
            what = ", ".join(filter(None, (component.category, component.type)))
            lacking.append(f"{family} component {index}{f' ({what})' if what else ''}: {svn}, needs {component.svn}")
    return lacking


def _newest_first(levels: Sequence[PlatformLevel]) -> list[PlatformLevel]:
    return sorted(
        levels,
        key=lambda level: (
            tuple(component.svn for component in level.tcb.sgx),
            level.tcb.pce_svn,
            tuple(component.svn for component in level.tcb.tdx),
        ),
        reverse=True,
    )


def _rank(status: str) -> int:
    return ORDER.index(status) if status in ORDER else len(ORDER)
