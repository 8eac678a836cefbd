"""Certificates of those who make TPMs.

A TPM carries the certificate of its endorsement key, at times those above it, never the root. The rest of the chain stands in a
ConfigMap of ours, `tpm-authorities`, each value some PEM text, and comes from the makers' sites. Nothing here is trusted for
standing here: a chain counts only when it ends in a pinned fingerprint or one of `extraRoots`.
"""

from __future__ import annotations

from typing import Final

from fastness.crypto.errors import BadCertificate
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.informers import Informer
from fastness.observe import logs

CONFIG_MAPS: Final = CONFIG_MAP.resource
NAME: Final = "tpm-authorities"
MOST: Final = 512
_log = logs.logger("tpm-makers")


class TpmMakers:
    """The certificates in the ConfigMap, read anew when it changes."""

    def __init__(self, maps: Informer) -> None:
        self._maps = maps
        self._version = ""
        self._found: tuple[Certificate, ...] = ()

    def certificates(self) -> tuple[Certificate, ...]:
        """All that can be read; a value that cannot is named in the log and left out."""
        config_map = self._maps.get(NAMESPACE, NAME)
        version = config_map["metadata"]["resourceVersion"] if config_map else ""
        if version != self._version:
            self._version = version
            self._found = _read((config_map or {}).get("data") or {})
        return self._found


def _read(data: dict[str, str]) -> tuple[Certificate, ...]:
    certificates: list[Certificate] = []
    for name, value in sorted(data.items()):
        try:
            certificates += load_certificates(value.encode())
        except BadCertificate as error:
            # One bad entry must not take the makers away from everybody else.
            _log.warning("tpm.authority_unreadable", entry=name, error=error.message)
    # Each is compared by name for every enrolment: a bound on what whoever writes the ConfigMap makes that cost.
    return tuple(certificates[:MOST])
