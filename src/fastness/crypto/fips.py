"""Whether cryptography here runs in FIPS mode, and what that would cover: for people who have to say so to an auditor.

Three libraries do the work, and each is validated or not by itself: the OpenSSL of Python (TLS of our listeners and clients),
the one inside the wheel of `cryptography` (signatures, certificates, sealing), and the one behind the Rust listener of the config
server.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KERNEL: Final = Path("/proc/sys/crypto/fips_enabled")


@dataclass(frozen=True, slots=True)
class FipsState:
    """What says that it is in FIPS mode."""

    kernel: bool
    tls: bool
    primitives: bool


def fips_state(kernel: Path = KERNEL) -> FipsState:
    """How it stands in this process."""
    try:
        asked = kernel.read_text().strip() == "1"
    except OSError:  # no Linux, or a container that hides it
        asked = False
    return FipsState(asked, _python_openssl(), _wheel_openssl())


def _python_openssl() -> bool:
    """In FIPS mode OpenSSL gives no MD5 for security."""
    try:
        hashlib.new("md5", b"", usedforsecurity=True)  # noqa: S324  # asked for, not used
    except ValueError:
        return True
    return False


def _wheel_openssl() -> bool:
    from cryptography.hazmat.backends.openssl import backend

    return bool(backend._fips_enabled)
