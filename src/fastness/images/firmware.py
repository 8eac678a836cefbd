"""What the firmware of a machine brings to a measurement: the variables of Secure Boot.

    FirmwareVars.of_store(ovmf_vars)        the store of a virtual machine
    FirmwareVars.blank()                    no keys are enrolled

Firmware measures PK, KEK, db and dbx whether Secure Boot is on or not; one that is not there is measured as empty. `dbt` and
`dbr` are measured only where they exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fastness.formats.evidence.efi.signature_lists import GLOBAL, IMAGE_SECURITY, Signature, parse_siglists
from fastness.formats.evidence.efi.variables import parse_store

# Name, vendor, whether an absent one is measured; in the order of EDK2's MeasureAllSecureVariables.
KEYS: Final = (
    ("PK", GLOBAL, True),
    ("KEK", GLOBAL, True),
    ("db", IMAGE_SECURITY, True),
    ("dbx", IMAGE_SECURITY, True),
    ("dbt", IMAGE_SECURITY, False),
    ("dbr", IMAGE_SECURITY, False),
)


@dataclass(frozen=True, slots=True)
class FirmwareVars:
    """Variables by vendor GUID and name."""

    variables: Mapping[tuple[bytes, str], bytes] = field(default_factory=dict)

    @classmethod
    def blank(cls) -> FirmwareVars:
        """Firmware without enrolled keys."""
        return cls({})

    @classmethod
    def of_store(cls, data: bytes) -> FirmwareVars:
        """The variables of an EDK2 store such as OVMF_VARS.fd; raises ImageError."""
        return cls(parse_store(data))

    def measured_keys(self) -> list[tuple[bytes, str, bytes]]:
        """Vendor, name and value of what firmware measures about its keys, in order."""
        return [
            (vendor, name, self.variables.get((vendor, name), b""))
            for name, vendor, always in KEYS
            if always or self.variables.get((vendor, name))
        ]

    @property
    def owned(self) -> bool:
        """Whether a platform key is enrolled; without one Secure Boot cannot be on."""
        return bool(self.variables.get((GLOBAL, "PK")))

    @property
    def allowed(self) -> tuple[Signature, ...]:
        """The signature database (db); raises ImageError."""
        return parse_siglists(self.variables.get((IMAGE_SECURITY, "db"), b""))

    @property
    def forbidden(self) -> tuple[Signature, ...]:
        """The revoked signatures (dbx); raises ImageError."""
        return parse_siglists(self.variables.get((IMAGE_SECURITY, "dbx"), b""))
