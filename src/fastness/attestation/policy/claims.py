"""What a policy gets to see: the claims of an appraisal in the shape that policies of the field are written against.

    {"<tee>": {…}, "report_data": hex, "runtime_data_claims": {…}, "init_data": hex, "init_data_claims": {…} or null,
     "appraisal": {"authentic", "acceptable", "identity", "checks"}}

* `init_data` is the field of the evidence, whether or not the caller sent a text for it; `init_data_claims` is null unless the
  text was sent and its digest is what the hardware signed. A text that nobody measured tells a policy nothing.
* Events that no signed register confirms are left out, so that a rule that walks all events meets only true ones.
* TDX claims say `collateral_expiration_status`: "0" while Intel's documents were in date, "1" otherwise.
* `appraisal` is ours: how the checks went, for policies that want to rest on them. Of checks with one name the worst is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.crypto.silicon.registers import extend
from fastness.kinds.kind import JsonObject

EVENTS: Final = "uefi_event_logs"
INIT_DATA_PCR: Final = "pcr08"
_BADNESS: Final = (Result.PASS, Result.WARN, Result.NOT_ASSESSED, Result.FAIL)
_STALE: Final = frozenset({"collateral-expired", "collateral-from-the-future", "crl-expired"})
_LIFTED: Final = ("report_data", "init_data")


def policy_input(
    appraisal: Appraisal,
    runtime_claims: Mapping[str, Any],
    init_data: bytes | None = None,
    init_data_claims: Mapping[str, Any] | None = None,
) -> JsonObject:
    """The input of a policy. `init_data` is the digest of the text that the caller sent, `init_data_claims` what is in it."""
    claims: JsonObject = {name: _verified(value) for name, value in appraisal.claims.items() if name not in _LIFTED}
    if "tcb_status" in claims.get("tdx", {}):
        stale = any(check.code in _STALE for check in appraisal.checks)
        claims["tdx"] = {**claims["tdx"], "collateral_expiration_status": "1" if stale else "0"}
    bound = init_data is not None and init_data_bound(appraisal, init_data)
    return {
        **claims,
        "report_data": str(appraisal.claims.get("report_data", "")),
        "init_data": str(appraisal.claims.get("init_data", "")),
        "runtime_data_claims": dict(runtime_claims),
        "init_data_claims": dict(init_data_claims) if bound and init_data_claims is not None else None,
        "appraisal": _appraisal(appraisal),
    }


def init_data_bound(appraisal: Appraisal, digest: bytes) -> bool:
    """Whether the evidence carries this digest: in its field, cut or filled up with zeros, or for a TPM in PCR 8."""
    if not digest:
        return False
    if appraisal.tee == "tpm":
        tpm = appraisal.claims.get("tpm", {})
        if tpm.get("bank") != "sha256" or len(digest) != 32:
            return False
        return bool(tpm.get(INIT_DATA_PCR) == extend("sha256", bytes(32), digest).hex())
    field = bytes.fromhex(str(appraisal.claims.get("init_data", "")))
    return bool(field) and digest[: len(field)].ljust(len(field), b"\0") == field


def without_events(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Claims without event logs, as tokens carry them."""
    return {
        name: {key: part for key, part in value.items() if key != EVENTS} if isinstance(value, dict) else value
        for name, value in document.items()
    }


def _verified(value: Any) -> Any:
    """Claims of one TEE without the events that nothing confirms."""
    if not isinstance(value, dict) or EVENTS not in value:
        return value
    return {**value, EVENTS: [event for event in value[EVENTS] if event.get("verified") is True]}


def _appraisal(appraisal: Appraisal) -> JsonObject:
    checks: dict[str, Result] = {}
    for check in appraisal.checks:
        name, result = check.name, check.result
        checks[name] = max(checks[name], result, key=_BADNESS.index) if name in checks else result
    identity = appraisal.identity if appraisal.authentic else None
    return {
        "authentic": appraisal.authentic,
        "acceptable": appraisal.acceptable,
        "identity": {"kind": identity.kind, "value": identity.value} if identity else None,
        "checks": {name: str(result) for name, result in checks.items()},
    }
