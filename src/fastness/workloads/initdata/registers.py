"""Where the digest of init data is found in evidence.

| where | register | bytes | rule |
| --- | --- | --- | --- |
| SEV-SNP | HOSTDATA | 32 | the digest, cut at the end or filled up with zeros |
| TDX | MRCONFIGID | 48 | the same |
| vTPM | PCR 8, SHA-256 bank | 32 | SHA-256 of 32 zero bytes and the digest |

PCR 8 exists for sha256 alone: a TPM extends its SHA-256 bank with 32 bytes and nothing else, so for longer digests there is no
value that a machine could ever show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.crypto.digests import Algorithm, digest, sha256
from fastness.formats.initdata import InitData
from fastness.kinds.kind import JsonObject

HOSTDATA_BYTES: Final = 32
MRCONFIGID_BYTES: Final = 48


@dataclass(frozen=True, slots=True)
class Registers:
    """The digest of a document and the values that evidence shows for it, in hex."""

    algorithm: str
    digest: str
    hostdata: str
    mrconfigid: str
    pcr8: str | None

    @property
    def pcr8_refusal(self) -> str | None:
        """Why there is no PCR 8; None where there is one."""
        return None if self.pcr8 else f"a TPM extends its SHA-256 bank with 32 bytes; {self.algorithm} has more"


def registers(document: InitData) -> Registers:
    """The values for a document."""
    algorithm = Algorithm(document.algorithm)
    value = digest(document.text, algorithm).value
    return Registers(
        str(algorithm),
        value.hex(),
        _fitted(value, HOSTDATA_BYTES).hex(),
        _fitted(value, MRCONFIGID_BYTES).hex(),
        sha256(bytes(32) + value).hex if algorithm is Algorithm.SHA256 else None,
    )


# The attestation agent in the guest compares with exactly this, and does not start if it differs.
def _fitted(value: bytes, size: int) -> bytes:
    return value[:size].ljust(size, b"\0")


def reference_value_set(registers: Registers, name: str) -> JsonObject:
    """A ReferenceValueSet with every value that evidence can show for the document."""
    values: list[JsonObject] = [
        {
            "name": "init_data",
            "register": "hostdata",
            "value": registers.hostdata,
            "note": "init data in an SNP report",
        },
        {
            "name": "init_data",
            "register": "mrconfigid",
            "value": registers.mrconfigid,
            "note": "init data in a TDX quote",
        },
    ]
    if registers.pcr8 is not None:
        values.append(
            {
                "name": "tpm_pcr8",
                "register": "pcr8",
                "algorithm": "sha256",
                "value": registers.pcr8,
                "note": "init data, vTPM",
            }
        )
    return {
        "apiVersion": "fastness.dev/v1alpha1",
        "kind": "ReferenceValueSet",
        "metadata": {"name": name, "labels": {"fastness.dev/init-data": registers.digest[:16]}},
        "spec": {"source": "manual", "values": values},
    }
