"""What Intel writes into the certificate of a platform's provisioning key (PCK): which platform, and how new its firmware
is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats import der
from fastness.formats.cursor import EvidenceError

EXTENSION: Final = "1.2.840.113741.1.13.1"
COMPONENTS: Final = 16


@dataclass(frozen=True, slots=True)
class Pck:
    """The platform as its certificate names it."""

    ppid: bytes
    components: tuple[int, ...]
    pce_svn: int
    pce_id: bytes
    fmspc: bytes
    sgx_type: int
    instance_id: bytes | None
    configuration: dict[str, bool]


def read_pck(extension: bytes) -> Pck:
    """The fields of the SGX extension; raises EvidenceError."""
    fields = _fields(der.only(extension, der.SEQUENCE), EXTENSION)
    tcb = _fields(_need(fields, "2", der.SEQUENCE), f"{EXTENSION}.2")
    components = tuple(der.number(_need(tcb, str(index), der.INTEGER)) for index in range(1, COMPONENTS + 1))
    # Levels compare bytes; a larger number would be above every level that Intel will ever publish.
    if any(value > 255 for value in components):
        raise EvidenceError("bad-extension", "a component of the platform's TCB does not fit one byte")
    return Pck(
        ppid=_octets(fields, "1", 16),
        components=components,
        pce_svn=der.number(_need(tcb, "17", der.INTEGER)),
        pce_id=_octets(fields, "3", 2),
        fmspc=_octets(fields, "4", 6),
        sgx_type=der.number(_need(fields, "5", der.ENUMERATED)),
        instance_id=_octets(fields, "6", 16) if "6" in fields else None,
        configuration=_configuration(fields),
    )


def _fields(data: bytes, base: str) -> dict[str, tuple[int, bytes]]:
    """Members of a sequence of (identifier, value), by the last part of the identifier."""
    fields: dict[str, tuple[int, bytes]] = {}
    for tag, content in der.elements(data):
        pair = list(der.elements(content)) if tag == der.SEQUENCE else []
        if len(pair) != 2 or pair[0][0] != der.OID:
            raise EvidenceError("bad-extension", "the SGX extension is not a sequence of named values")
        parent, _, last = der.dotted(pair[0][1]).rpartition(".")
        # Twice would leave open which one counts; under another parent it is a field of something else.
        if parent != base or last in fields:
            raise EvidenceError("bad-extension", "the SGX extension names a field that does not belong there, or twice")
        fields[last] = pair[1]
    return fields


def _need(fields: dict[str, tuple[int, bytes]], name: str, tag: int) -> bytes:
    entry = fields.get(name)
    if entry is None or entry[0] != tag:
        raise EvidenceError("bad-extension", f"the SGX extension lacks field {name}, or it is of another type")
    return entry[1]


def _octets(fields: dict[str, tuple[int, bytes]], name: str, size: int) -> bytes:
    value = _need(fields, name, der.OCTETS)
    if len(value) != size:
        raise EvidenceError("bad-extension", f"field {name} of the SGX extension has {len(value)} bytes, not {size}")
    return value


def _configuration(fields: dict[str, tuple[int, bytes]]) -> dict[str, bool]:
    if "7" not in fields:
        return {}
    named = {"1": "is_dynamic_platform", "2": "is_cached_keys", "3": "is_smt_enabled"}
    flags = _fields(_need(fields, "7", der.SEQUENCE), f"{EXTENSION}.7")
    return {text: any(_need(flags, number, der.BOOLEAN)) for number, text in named.items() if number in flags}
