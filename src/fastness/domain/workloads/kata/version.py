"""Which releases of the platform can host confidential containers on bare metal.

A release is compared within its own minor version; a minor above the last listed one is accepted, one below all of them is
not. A prerelease comes before its release. A cluster that has no release (plain Kubernetes, the embedded API) is not asked.
"""

from __future__ import annotations

import re
from typing import Final

from fastness.domain.workloads.kata.errors import Refused

MINIMUM: Final = ((4, 19, 28), (4, 20, 18), (4, 21, 9))
_SHAPE: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,6})(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\Z", re.ASCII)


def supports(version: str) -> bool:
    """Whether a release can; one that cannot be read counts as too old."""
    found = _SHAPE.match(version)
    if found is None:
        return False
    major, minor, patch = (int(found[part]) for part in (1, 2, 3))
    prerelease = bool(found[4])
    if (major, minor) > MINIMUM[-1][:2]:
        return True
    for least in MINIMUM:
        if (major, minor) == least[:2]:
            return patch > least[2] or (patch == least[2] and not prerelease)
    return False


def require(version: str) -> None:
    """Refuse a release that is too old; raises Refused."""
    if version and not supports(version):
        least = ", ".join(".".join(map(str, one)) for one in MINIMUM)
        raise Refused(
            "UnsupportedOCPVersion",
            f"OpenShift version {version} does not support CoCo bare metal (minimum required: {least} or higher)",
            "upgrade the cluster, or set confidential to false",
        )
