"""The documents that Intel's provisioning service would publish about simulated platforms: TCB information and QE identity.

Levels come from `firmware.TDX_LEVELS`, newest first: one that is up to date, one that needs hardening, one that is out of date
with the advisories that follow. Dates move with the time that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.sim.tee.firmware import FMSPC, QE_SIGNER, TDX_LEVELS, TdxFirmware

LIFETIME: Final = timedelta(days=30)
EVALUATION: Final = 20
QE_SVN: Final = 6
_BIOS, _OS = "BIOS", "OS/VMM"
_SGX_PARTS: Final = (
    (_BIOS, "Early Microcode Update"), (_OS, "SGX Late Microcode Update"), (_OS, "TXT SINIT"), (_BIOS, ""), (_BIOS, ""),
    (_BIOS, ""), (_BIOS, ""), (_OS, "SEAMLDR ACM"),
)  # fmt: skip
_TDX_PARTS: Final = ((_OS, "TDX Module"), (_OS, "TDX Module"), (_OS, "TDX Late Microcode Update"))
_MODULE: Final = {"mrsigner": "00" * 48, "attributes": "00" * 8, "attributesMask": "FF" * 8}
Document = dict[str, Any]


def tcb_info(at: datetime, *, levels: Sequence[TdxFirmware] = (), **changes: Any) -> Document:
    """TCB information for TDX platforms of one kind; `changes` replace members."""
    chosen = levels or tuple(TDX_LEVELS.values())
    newest, oldest = chosen[0], chosen[-1]
    module = [_enclave(newest.module, newest), *([_enclave(oldest.module, oldest)] if len(chosen) > 1 else [])]
    return {
        "id": "TDX",
        "version": 3,
        **_dates(at),
        "fmspc": FMSPC.hex().upper(),
        "pceId": "0000",
        "tcbType": 0,
        "tcbEvaluationDataNumber": EVALUATION,
        "tdxModule": _MODULE,
        "tdxModuleIdentities": [{"id": "TDX_01", **_MODULE, "tcbLevels": module}],
        "tcbLevels": [_level(entry) for entry in chosen],
        **changes,
    }


def qe_identity(at: datetime, **changes: Any) -> Document:
    """The identity of the quoting enclave; `changes` replace members."""
    newest, oldest = TDX_LEVELS["current"], TDX_LEVELS["old"]
    return {
        "id": "TD_QE",
        "version": 2,
        **_dates(at),
        "tcbEvaluationDataNumber": EVALUATION,
        "miscselect": "00000000",
        "miscselectMask": "FFFFFFFF",
        "attributes": "11" + "00" * 15,
        "attributesMask": "FBFFFFFFFFFFFFFF0000000000000000",
        "mrsigner": QE_SIGNER.hex().upper(),
        "isvprodid": 2,
        "tcbLevels": [_enclave(QE_SVN, newest), _enclave(QE_SVN - 2, oldest)],
        **changes,
    }


def written(at: datetime) -> str:
    """A date as the documents write it."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _dates(at: datetime) -> dict[str, str]:
    return {"issueDate": written(at - timedelta(days=1)), "nextUpdate": written(at + LIFETIME)}


def _level(level: TdxFirmware) -> Document:
    # The major version of the module is not a level of its own: its identity is.
    tdx = (level.module, 0, level.loader, *(0,) * 13)
    tcb = {
        "sgxtcbcomponents": _components(level.components, _SGX_PARTS),
        "pcesvn": level.pce_svn,
        "tdxtcbcomponents": _components(tdx, _TDX_PARTS),
    }
    return {"tcb": tcb, **_status(level)}


def _components(versions: Sequence[int], parts: Sequence[tuple[str, str]]) -> list[Document]:
    named = [*parts, *[("", "")] * (len(versions) - len(parts))]
    return [
        {"svn": svn, **{key: text for key, text in (("category", category), ("type", kind)) if text}}
        for svn, (category, kind) in zip(versions, named, strict=True)
    ]


def _enclave(svn: int, level: TdxFirmware) -> Document:
    return {"tcb": {"isvsvn": svn}, **_status(level)}


def _status(level: TdxFirmware) -> Document:
    advisories = {"advisoryIDs": list(level.advisories)} if level.advisories else {}
    return {"tcbDate": level.date, "tcbStatus": level.status, **advisories}
