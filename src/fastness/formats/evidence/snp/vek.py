"""What AMD writes into the certificate of a versioned endorsement key (VCEK, VLEK).

The key is derived from the chip (or the cloud's secret) and the firmware versions, and the certificate says which: so a report
whose versions differ from its certificate's was not signed by that key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats import der
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.tcb import Generation, Tcb

_BASE: Final = "1.3.6.1.4.1.3704.1"
_COMPONENTS: Final = {"bootloader": "3.1", "tee": "3.2", "snp": "3.3", "microcode": "3.8"}
_ISSUERS: Final = {
    **{f"SEV-{generation}": (generation, False) for generation in Generation},
    **{f"SEV-VLEK-{generation}": (generation, True) for generation in Generation},
}


@dataclass(frozen=True, slots=True)
class Vek:
    """Generation, kind and versions of an endorsement key; a VCEK has a hardware id, a VLEK names a cloud."""

    generation: Generation
    shared: bool
    product: str
    tcb: Tcb
    hardware_id: bytes
    provider: str


def read_vek(issuer: str, extensions: Mapping[str, bytes]) -> Vek | None:
    """The facts of a certificate by its issuer's name and extensions; None if AMD's key authority did not issue it.

    Raises EvidenceError when it is one and its extensions are damaged.
    """
    # By issuer: VCEK certificates of AMD carry a common name that is the same for every chip.
    if issuer not in _ISSUERS:
        return None
    generation, shared = _ISSUERS[issuer]
    versions = {name: _version(extensions, number) for name, number in _COMPONENTS.items()}
    fmc = _version(extensions, "3.9") if generation is Generation.TURIN else None
    return Vek(
        generation,
        shared,
        _text(extensions, "2"),
        Tcb(**versions, fmc=fmc),
        b"" if shared else _hardware_id(extensions, generation),
        _text(extensions, "5") if shared else "",
    )


def _raw(extensions: Mapping[str, bytes], number: str) -> bytes:
    value = extensions.get(f"{_BASE}.{number}")
    if value is None:
        raise EvidenceError("bad-extension", f"the endorsement key's certificate lacks the extension {_BASE}.{number}")
    return value


def _version(extensions: Mapping[str, bytes], number: str) -> int:
    # DER and not a slice: from 128 on an INTEGER has a leading zero, and a reader of fixed places takes version 217 for 0.
    value = der.number(der.only(_raw(extensions, number), der.INTEGER))
    # A version is one byte of REPORTED_TCB: a larger number would be equal to none, or to one that was cut.
    if value > 255:
        raise EvidenceError("bad-extension", f"extension {_BASE}.{number} holds {value}; versions have one byte")
    return value


def _text(extensions: Mapping[str, bytes], number: str) -> str:
    content = der.only(_raw(extensions, number), der.IA5)
    if not content.isascii():
        raise EvidenceError("bad-extension", f"extension {_BASE}.{number} is not ASCII")
    return content.decode("ascii")


def _hardware_id(extensions: Mapping[str, bytes], generation: Generation) -> bytes:
    value, size = _raw(extensions, "4"), generation.chip_id_size
    # Most certificates hold the bare bytes; some wrap them in an OCTET STRING.
    if len(value) != size and value[:1] == bytes([der.OCTETS]):
        value = der.only(value, der.OCTETS)
    # The exact length: a shorter id compared as a prefix would be that of many chips.
    if len(value) != size:
        raise EvidenceError("bad-extension", f"the hardware id has {len(value)} bytes; {generation} has {size}")
    return value
