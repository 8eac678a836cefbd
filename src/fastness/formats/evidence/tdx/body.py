"""The TD report (584 bytes for TDX 1.0, 648 for 1.5) and the enclave report of the quoting enclave (384 bytes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TD10_SIZE: Final = 584
TD15_SIZE: Final = 648
ENCLAVE_SIZE: Final = 384


@dataclass(frozen=True, slots=True)
class TdAttributes:
    """The attributes of a trust domain."""

    raw: int

    def bit(self, number: int) -> bool:
        """One bit of the attributes."""
        return bool(self.raw >> number & 1)

    @property
    def debug(self) -> bool:
        """Whether the host may look inside."""
        return self.bit(0)

    @property
    def reserved_tud(self) -> int:
        """Bits 1 to 7, of the group that makes a domain untrusted; all reserved."""
        return self.raw & 0xFE

    @property
    def sept_ve_disable(self) -> bool:
        """Whether pages that the host takes away raise no exception inside."""
        return self.bit(28)

    @property
    def migratable(self) -> bool:
        """Whether a migration domain may take the memory to another platform."""
        return self.bit(29)

    def claims(self) -> dict[str, bool]:
        """The bits by name."""
        return {
            "debug": self.debug,
            "migratable": self.migratable,
            "septve_disable": self.sept_ve_disable,
            "protection_keys": self.bit(30),
            "key_locker": self.bit(31),
            "perfmon": self.bit(63),
        }


@dataclass(frozen=True, slots=True)
class TdReport:
    """What the TDX module says about a trust domain."""

    tee_tcb_svn: bytes
    mr_seam: bytes
    mrsigner_seam: bytes
    seam_attributes: bytes
    td_attributes: TdAttributes
    xfam: bytes
    mr_td: bytes
    mr_config_id: bytes
    mr_owner: bytes
    mr_owner_config: bytes
    rtmrs: tuple[bytes, bytes, bytes, bytes]
    report_data: bytes
    tee_tcb_svn2: bytes | None = None
    mr_servicetd: bytes | None = None


@dataclass(frozen=True, slots=True)
class EnclaveReport:
    """What the processor says about the quoting enclave."""

    raw: bytes
    miscselect: bytes
    attributes: bytes
    mr_signer: bytes
    isv_prod_id: int
    isv_svn: int
    report_data: bytes

    @property
    def debug(self) -> bool:
        """Whether the enclave can be debugged."""
        # SGX ATTRIBUTES: bit 1 is DEBUG (bit 0 is INIT).
        return bool(self.attributes[0] & 2)


def read_td_report(raw: bytes) -> TdReport:
    """The fields of 584 or 648 bytes; the caller has checked the length."""
    extended = len(raw) == TD15_SIZE
    return TdReport(
        tee_tcb_svn=raw[0:16],
        mr_seam=raw[16:64],
        mrsigner_seam=raw[64:112],
        seam_attributes=raw[112:120],
        td_attributes=TdAttributes(int.from_bytes(raw[120:128], "little")),
        xfam=raw[128:136],
        mr_td=raw[136:184],
        mr_config_id=raw[184:232],
        mr_owner=raw[232:280],
        mr_owner_config=raw[280:328],
        rtmrs=(raw[328:376], raw[376:424], raw[424:472], raw[472:520]),
        report_data=raw[520:584],
        tee_tcb_svn2=raw[584:600] if extended else None,
        mr_servicetd=raw[600:648] if extended else None,
    )


def read_enclave_report(raw: bytes) -> EnclaveReport:
    """The fields of 384 bytes that quoting uses; the caller has checked the length."""
    return EnclaveReport(
        raw=raw,
        miscselect=raw[16:20],
        attributes=raw[48:64],
        mr_signer=raw[128:160],
        isv_prod_id=int.from_bytes(raw[256:258], "little"),
        isv_svn=int.from_bytes(raw[258:260], "little"),
        report_data=raw[320:384],
    )
