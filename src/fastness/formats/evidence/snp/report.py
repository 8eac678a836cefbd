"""The report: 1184 bytes, little-endian, signed over the first 672 (SEV-SNP ABI, table "ATTESTATION_REPORT").

Version 2 has no processor identification, versions 3 and 4 have it, version 5 adds mitigation vectors in bytes that were
reserved. A version that is not known is refused: its reserved bytes may mean something.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.tcb import Generation, generation_of_cpu

SIZE: Final = 0x4A0
SIGNED: Final = 0x2A0
VERSIONS: Final = (2, 3, 4, 5)
SIGNATURE_P384: Final = 1
_COMPONENT: Final = 72
# VERSION to LAUNCH_TCB in the order of the table; `x` are ids that no decision uses, and reserved bytes.
_LAYOUT: Final = Struct("<IIQ32xII8sQI4x64s48s32s48s48s32s32x8sBBB21x64s8s8x8s")
_P384: Final = 48


class SigningKey(IntEnum):
    """Which key signed, as KEY_INFO says it."""

    VCEK = 0
    VLEK = 1
    NONE = 7


_KEYS: Final = {int(key): key for key in SigningKey}


class Policy(NamedTuple):
    """The guest policy: what the owner allowed the host to do."""

    raw: int

    def bit(self, number: int) -> bool:
        """One bit of the policy."""
        return bool(self.raw >> number & 1)

    @property
    def debug_allowed(self) -> bool:
        """Whether the host may read the guest's memory."""
        return self.bit(19)

    @property
    def migration_allowed(self) -> bool:
        """Whether a migration agent may take the guest elsewhere."""
        return self.bit(18)

    def claims(self) -> dict[str, object]:
        """The bits by name."""
        return {
            "policy_abi_major": self.raw >> 8 & 0xFF,
            "policy_abi_minor": self.raw & 0xFF,
            "policy_smt_allowed": self.bit(16),
            "policy_migrate_ma": self.migration_allowed,
            "policy_debug_allowed": self.debug_allowed,
            "policy_single_socket": self.bit(20),
            "policy_cxl_allowed": self.bit(21),
            "policy_mem_aes_256_xts": self.bit(22),
            "policy_rapl_disabled": self.bit(23),
            "policy_ciphertext_hiding": self.bit(24),
            "policy_page_swap_disabled": self.bit(25),
        }


class Report(NamedTuple):
    """A parsed report; TCB versions stay raw because their layout depends on the generation."""

    raw: bytes
    version: int
    guest_svn: int
    policy: Policy
    vmpl: int
    signature_algorithm: int
    platform_info: int
    key_info: int
    signing_key: SigningKey
    report_data: bytes
    measurement: bytes
    host_data: bytes
    id_key_digest: bytes
    author_key_digest: bytes
    report_id: bytes
    current_tcb: bytes
    reported_tcb: bytes
    committed_tcb: bytes
    launch_tcb: bytes
    cpu: tuple[int, int, int] | None
    chip_id: bytes
    signature_r: int
    signature_s: int

    @property
    def signed(self) -> bytes:
        """What the signature covers."""
        return self.raw[:SIGNED]

    @property
    def generation(self) -> Generation | None:
        """The generation that the report itself names; None before version 3 and for unknown processors."""
        return generation_of_cpu(self.cpu[0], self.cpu[1]) if self.cpu else None

    @property
    def chip_key_masked(self) -> bool:
        """Whether the host hid the chip's key, so that nothing was signed with it."""
        return bool(self.key_info & 2)

    @property
    def author_key(self) -> bool:
        """Whether an author key signed the identity block."""
        return bool(self.key_info & 1)


def parse_report(data: bytes) -> Report:
    """Read a report; raises EvidenceError."""
    # Exactly: a longer one would have bytes that no signature covers, and callers that read them.
    if len(data) != SIZE:
        raise EvidenceError("bad-size", f"an SNP report has {SIZE} bytes, not {len(data)}")
    (
        version, guest_svn, policy, vmpl, algorithm, current, platform, key_info, report_data, measurement, host_data,
        id_key, author_key, report_id, reported, family, model, stepping, chip_id, committed, launch,
    ) = _LAYOUT.unpack_from(data)  # fmt: skip
    # The signature covers bytes that this version reserves: a later firmware may say "debug" in one of them.
    if version not in VERSIONS:
        raise EvidenceError(
            "unknown-version",
            f"SNP report version {version} is not known",
            hint=f"Versions {VERSIONS[0]} to {VERSIONS[-1]} are understood.",
        )
    r, s = _signature(data)
    # Reserved before version 3, and zero there: read as CPUID, that would name a processor.
    cpu = (family, model, stepping) if version >= 3 else None
    return Report(
        data, version, guest_svn, Policy(policy), vmpl, algorithm, platform, key_info, _signing_key(key_info), report_data,
        measurement, host_data, id_key, author_key, report_id, current, reported, committed, launch, cpu, chip_id, r, s,
    )  # fmt: skip


def _signing_key(key_info: int) -> SigningKey:
    number = key_info >> 2 & 7
    # Reserved kinds of keys are refused: another key than VCEK and VLEK chains to something that nobody pinned.
    key = _KEYS.get(number)
    if key is None:
        raise EvidenceError("unknown-key", f"the report was signed with a key of unknown kind {number}")
    return key


def _signature(data: bytes) -> tuple[int, int]:
    r, s = data[SIGNED : SIGNED + _COMPONENT], data[SIGNED + _COMPONENT : SIGNED + 2 * _COMPONENT]
    # The fields are wider than P-384 needs; what is not used must be zero, or one report would have many spellings.
    if any(r[_P384:]) or any(s[_P384:]) or any(data[SIGNED + 2 * _COMPONENT :]):
        raise EvidenceError("bad-signature-field", "the signature field of the report has bytes set that must be zero")
    return int.from_bytes(r, "little"), int.from_bytes(s, "little")
