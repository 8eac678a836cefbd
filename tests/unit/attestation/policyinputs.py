"""Inputs that the built-in policies affirm, and the values that they need for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.kind import JsonObject

NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
PCRS: Final = (4, 7, 11, 12, 14)
AUTHENTIC: Final = {"authentic": True, "acceptable": True, "identity": None}


def reference_set(values: dict[str, list[str]], name: str = "set", **spec: Any) -> JsonObject:
    """A ReferenceValueSet with these values."""
    listed = [{"name": key, "value": value} for key, allowed in values.items() for value in allowed]
    return {"metadata": {"name": name}, "spec": {"source": "manual", "values": listed, **spec}}


def book(values: dict[str, list[str]]) -> ReferenceValues:
    """A book of these values."""
    return ReferenceValues.of([reference_set(values)], NOW)


def register(number: int, size: int = 64) -> str:
    """A value for a register."""
    return f"{number:0{size}x}"


GOOD_VALUES: Final[dict[str, dict[str, list[str]]]] = {
    "tpm": {f"tpm_pcr{number}": [register(number)] for number in PCRS},
    "snp": {"snp_launch_measurement": [register(5, 96)]},
    "tdx": {"mr_td": [register(9, 96)], **{f"rtmr_{n}": [register(n + 1, 96)] for n in range(3)}},
}


def good_input(tee: str) -> JsonObject:
    """An input that the built-in policy affirms with `GOOD_VALUES`."""
    return {"tpm": _tpm, "snp": _snp, "tdx": _tdx}[tee]()


def _tpm() -> JsonObject:
    registers = {f"pcr{number:02}": register(number) for number in PCRS}
    return {
        "tpm": {**registers, "pcr08": "0" * 64, "bank": "sha256", "ak": "sha256:00", "ak_public": "AA=="},
        "report_data": "00",
        "init_data": "",
        "runtime_data_claims": {"nonce": "n"},
        "init_data_claims": None,
        "appraisal": {**AUTHENTIC, "checks": {"attestation-key": "Pass", "signature": "Pass"}},
    }


def _snp() -> JsonObject:
    return {
        "snp": {
            "measurement": register(5, 96),
            "generation": "Genoa",
            "vmpl": 0,
            "policy_debug_allowed": False,
            "policy_migrate_ma": False,
            "policy_smt_allowed": True,
            "policy_single_socket": False,
            "policy_abi_major": 1,
            "policy_abi_minor": 51,
            "platform_smt_enabled": True,
            "platform_tsme_enabled": False,
            "reported_tcb_bootloader": 3,
            "reported_tcb_tee": 0,
            "reported_tcb_snp": 8,
            "reported_tcb_microcode": 115,
        },
        "init_data": "0" * 64,
        "init_data_claims": None,
        "runtime_data_claims": {},
        "appraisal": {**AUTHENTIC, "checks": {"signature": "Pass"}},
    }


def _tdx() -> JsonObject:
    body = {"mr_td": register(9, 96), "rtmr_3": "0" * 96, "xfam": "e742060000000000"}
    body |= {f"rtmr_{number}": register(number + 1, 96) for number in range(3)}
    return {
        "tdx": {
            "quote": {
                "header": {"tee_type": "81000000", "vendor_id": "939a7233f79c4ca9940a0db3957f0607"},
                "body": body,
            },
            "td_attributes": {"debug": False, "septve_disable": True},
            "tcb_status": "UpToDate",
            "collateral_expiration_status": "0",
        },
        "init_data": "0" * 96,
        "init_data_claims": None,
        "runtime_data_claims": {},
        "appraisal": {**AUTHENTIC, "checks": {"signature": "Pass"}},
    }
