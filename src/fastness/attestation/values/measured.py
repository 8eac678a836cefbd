"""Which measured values of each kind of evidence are compared, what they are called, and where their claims are.

    seen_values("tpm", claims)          # {"tpm_pcr4": "a311…", …}: what a machine shows under the names of reference values
    is_measured("tpm", "tpm_pcr9")      # whether a name speaks of something that such a machine measures

A name that is measured belongs to an image (`tuples`); any other, such as an expected flag or the digest of init data, is
independent of what was booted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured value: its name in policies, where its claim is, what people call it, and the register of its events."""

    name: str
    claim: tuple[str, ...]
    title: str
    register: str = ""


def _pcr(number: int, what: str) -> Compared:
    return Compared(f"tpm_pcr{number}", ("tpm", f"pcr{number:02d}"), f"PCR {number} ({what})", f"pcr{number}")


def _rtmr(number: int, what: str) -> Compared:
    return Compared(
        f"rtmr_{number}", ("tdx", "quote", "body", f"rtmr_{number}"), f"RTMR {number} ({what})", f"rtmr{number}"
    )


# PCRs 0 to 3 are left out: they are the firmware's, differ by every model and update of a board, and no image can predict them.
# What the firmware started is in 4, and by whose keys in 7 (PC Client Platform Firmware Profile; 11 and 12 are systemd-stub's, 14
# is shim's).
COMPARED: Final[Mapping[str, tuple[Compared, ...]]] = {
    "tpm": (
        _pcr(4, "boot loader and kernel"),
        _pcr(7, "Secure Boot"),
        _pcr(11, "unified kernel image"),
        _pcr(12, "command line and credentials"),
        _pcr(14, "owner's keys"),
    ),
    "snp": (Compared("snp_launch_measurement", ("snp", "measurement"), "launch measurement"),),
    "tdx": (
        Compared("mr_td", ("tdx", "quote", "body", "mr_td"), "MRTD (firmware)"),
        _rtmr(0, "firmware configuration"),
        _rtmr(1, "boot loader and kernel"),
        _rtmr(2, "command line and initial disk"),
    ),
}
COMPARED_NAMES: Final = {tee: frozenset(compared.name for compared in registers) for tee, registers in COMPARED.items()}
_PCR: Final = re.compile(r"pcr[0-9]{2}\Z", re.ASCII)
_MEASURED: Final[Mapping[str, re.Pattern[str]]] = {
    "tpm": re.compile(r"tpm_pcr[0-9]+\Z", re.ASCII),
    "snp": re.compile(r"snp_launch_measurement\Z", re.ASCII),
    "tdx": re.compile(r"(?:mr_td|rtmr_[0-3])\Z", re.ASCII),
}


def is_measured(tee: str, name: str) -> bool:
    """Whether a name of a reference value is something that machines of this kind measure."""
    pattern = _MEASURED.get(tee)
    return pattern is not None and pattern.match(name) is not None


def seen_values(tee: str, claims: Mapping[str, Any]) -> dict[str, str]:
    """What a machine shows, by the names of reference values; empty text where the evidence lacks what is compared.

    Beside what is compared: the other registers, which policies of users may look at.
    """
    values = {compared.name: claim_at(claims, compared.claim) for compared in COMPARED.get(tee, ())}
    others = claims.get("tpm") if tee == "tpm" else None
    for name, value in others.items() if isinstance(others, Mapping) else ():
        if _PCR.match(name) and isinstance(value, str):
            values.setdefault(f"tpm_pcr{int(name[3:])}", value)
    if tee == "tdx":
        values["rtmr_3"] = claim_at(claims, ("tdx", "quote", "body", "rtmr_3"))
    return values


def claim_at(claims: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """The text at a path of claims; empty when there is none."""
    claim: Any = claims
    for part in path:
        claim = claim.get(part) if isinstance(claim, Mapping) else None
    return claim if isinstance(claim, str) else ""
