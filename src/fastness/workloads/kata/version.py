"""Which releases of the platform can host confidential containers on bare metal.

A release is compared within its own minor version; a minor above the last listed one is accepted, one below all of them is
not (`workloads.compat`). A prerelease comes before its release. A cluster that has no release (plain Kubernetes, the
embedded API) is not asked.
"""

from __future__ import annotations

from typing import Final

from fastness.workloads.compat.judge import column, parse_release
from fastness.workloads.compat.tables import RELEASES
from fastness.workloads.kata.errors import Refused

MINIMUM: Final = RELEASES


def supports(version: str) -> bool:
    """Whether a release can; one that cannot be read counts as too old."""
    release = parse_release(version)
    return release is not None and column(release) is not None


def require(version: str) -> None:
    """Refuse a release that is too old; raises Refused."""
    if version and not supports(version):
        least = ", ".join(".".join(map(str, one)) for one in MINIMUM)
        raise Refused(
            "UnsupportedOCPVersion",
            f"OpenShift version {version} does not support CoCo bare metal (minimum required: {least} or higher)",
            "upgrade the cluster, or set confidential to false",
            exact=True,
        )
