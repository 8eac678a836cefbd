"""Intel's documents about platforms: TCB information, enclave identities, revocation lists, and who signed them.

A collateral file is one JSON object with nine members, as verifiers of quotes exchange it. The two inner documents are
signed as text: the text is kept as it came, because writing it anew would break the signature. Their contents are read into
types of fixed shape: sixteen components, known lengths, dates with a zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, TypeVar

import msgspec

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.envelope import read_object

# Documents are read before their signature is known to be good: lists have bounds like everything else.
MAX_LEVELS: Final = 256
_HINT: Final = "Fetch the collateral again from Intel's provisioning service or its cache."

Svn = Annotated[int, msgspec.Meta(ge=0, le=255)]
Svn16 = Annotated[int, msgspec.Meta(ge=0, le=65535)]
# With a zone: a date without one would be compared in the zone of this server.
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
Advisories = Annotated[tuple[str, ...], msgspec.Meta(max_length=256)]
Hex = Annotated[str, msgspec.Meta(pattern=r"^(?:[0-9A-Fa-f]{2})+$", max_length=128)]


class Component(msgspec.Struct, frozen=True):
    """One component of a TCB level: its version, and what it is."""

    svn: Svn
    category: str = ""
    type: str = ""


# Exactly sixteen: a level with fewer would be reached by platforms that lack the ones left out.
Components = Annotated[tuple[Component, ...], msgspec.Meta(min_length=16, max_length=16)]


class PlatformTcb(msgspec.Struct, frozen=True):
    """The versions that a platform needs for a level."""

    sgx: Components = msgspec.field(name="sgxtcbcomponents")
    tdx: Components = msgspec.field(name="tdxtcbcomponents")
    pce_svn: Svn16 = msgspec.field(name="pcesvn")


class PlatformLevel(msgspec.Struct, frozen=True):
    """A level of the platform and what Intel says about it."""

    tcb: PlatformTcb
    date: Instant = msgspec.field(name="tcbDate")
    status: str = msgspec.field(name="tcbStatus")
    advisories: Advisories = msgspec.field(name="advisoryIDs", default=())


class EnclaveTcb(msgspec.Struct, frozen=True):
    """The version that an enclave or module needs for a level."""

    isvsvn: Svn16


class EnclaveLevel(msgspec.Struct, frozen=True):
    """A level of an enclave or module."""

    tcb: EnclaveTcb
    date: Instant = msgspec.field(name="tcbDate")
    status: str = msgspec.field(name="tcbStatus")
    advisories: Advisories = msgspec.field(name="advisoryIDs", default=())


EnclaveLevels = Annotated[tuple[EnclaveLevel, ...], msgspec.Meta(max_length=MAX_LEVELS)]


class Module(msgspec.Struct, frozen=True):
    """Who signs the TDX module and which attributes it may have."""

    mrsigner: Hex
    attributes: Hex
    mask: Hex = msgspec.field(name="attributesMask")


class ModuleIdentity(Module, frozen=True, kw_only=True):
    """A version of the TDX module with levels of its own."""

    id: str
    levels: EnclaveLevels = msgspec.field(name="tcbLevels")


class TcbInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What Intel says about all platforms of one kind (FMSPC)."""

    id: str
    version: int
    issued: Instant = msgspec.field(name="issueDate")
    next_update: Instant = msgspec.field(name="nextUpdate")
    fmspc: Hex
    pce_id: Hex = msgspec.field(name="pceId")
    evaluation: int = msgspec.field(name="tcbEvaluationDataNumber")
    module: Module = msgspec.field(name="tdxModule")
    modules: Annotated[tuple[ModuleIdentity, ...], msgspec.Meta(max_length=64)] = msgspec.field(
        name="tdxModuleIdentities", default=()
    )
    levels: Annotated[tuple[PlatformLevel, ...], msgspec.Meta(max_length=MAX_LEVELS)] = msgspec.field(name="tcbLevels")


class QeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What Intel says about the quoting enclave."""

    id: str
    version: int
    issued: Instant = msgspec.field(name="issueDate")
    next_update: Instant = msgspec.field(name="nextUpdate")
    evaluation: int = msgspec.field(name="tcbEvaluationDataNumber")
    miscselect: Hex
    miscselect_mask: Hex = msgspec.field(name="miscselectMask")
    attributes: Hex
    attributes_mask: Hex = msgspec.field(name="attributesMask")
    mrsigner: Hex
    isvprodid: Svn16
    levels: EnclaveLevels = msgspec.field(name="tcbLevels")


@dataclass(frozen=True, slots=True)
class SignedText:
    """A document as it was signed: the exact text, r‖s, and the signer's certificates."""

    text: bytes
    signature: bytes
    chain: bytes


@dataclass(frozen=True, slots=True)
class Collateral:
    """The content of a collateral file; `raw` is the file itself."""

    raw: str
    tcb_info: TcbInfo
    tcb_text: SignedText
    qe_identity: QeIdentity
    qe_text: SignedText
    pck_crl: bytes
    pck_crl_chain: bytes
    root_crl: bytes


T = TypeVar("T")


def parse_collateral(data: bytes) -> Collateral:
    """Read a collateral file; raises EvidenceError."""
    value = read_object(data)
    tcb, qe = _text(value, "tcb_info"), _text(value, "qe_identity")
    return Collateral(
        data.decode("utf-8"),
        _typed(tcb, TcbInfo, "tcb_info"),
        SignedText(tcb, _hex(value, "tcb_info_signature", 64), _text(value, "tcb_info_issuer_chain")),
        _typed(qe, QeIdentity, "qe_identity"),
        SignedText(qe, _hex(value, "qe_identity_signature", 64), _text(value, "qe_identity_issuer_chain")),
        _hex(value, "pck_crl"),
        _text(value, "pck_crl_issuer_chain"),
        _hex(value, "root_ca_crl"),
    )


def _typed(text: bytes, shape: type[T], name: str) -> T:
    try:
        # Members that we do not know are passed over here: Intel adds some, and signs them with the rest.
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise EvidenceError(
            "bad-collateral", f"{name} of the collateral cannot be read: {error}", name, _HINT
        ) from error


def _text(value: dict[str, object], name: str) -> bytes:
    text = value.get(name)
    if not isinstance(text, str) or not text:
        raise EvidenceError("bad-collateral", f"the collateral lacks {name}", name, _HINT)
    return text.encode("utf-8")


def _hex(value: dict[str, object], name: str, size: int | None = None) -> bytes:
    try:
        raw = bytes.fromhex(_text(value, name).decode("utf-8"))
    except ValueError as error:
        raise EvidenceError("bad-collateral", f"{name} of the collateral is not hexadecimal", name, _HINT) from error
    if size is not None and len(raw) != size:
        raise EvidenceError("bad-collateral", f"{name} of the collateral has {len(raw)} bytes, not {size}", name, _HINT)
    return raw
