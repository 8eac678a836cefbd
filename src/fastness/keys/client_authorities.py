"""The authorities of a cluster whose client certificates count, nodes' among them.

A Kubernetes API server publishes them for servers beside it: ConfigMap `kube-system/extension-apiserver-authentication`, key
`client-ca-file`. They are followed, so that an authority that was replaced is believed, and one that was taken out is not,
without a restart. A bundle that somebody damaged changes nothing; the log says so.

Where there is none, or our account may not read it, no certificate of a node counts, and the log says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate, split_pem
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, Scope
from fastness.observe import logs

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
KEY: Final = "client-ca-file"
PLACE: Final = Scope(NAMESPACE, fields=f"metadata.name={NAME}")
MAPS: Final = CONFIG_MAP.resource
_log = logs.logger("clientca")


class ClientAuthorities:
    """The authorities that the API server publishes, as this process knows them now."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._read: JsonObject | None = None
        self._known: Sequence[Certificate] = ()

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers) -> ClientAuthorities | None:
        """Follow what the API server publishes; None where there is nothing, or nothing for us; raises ApiError."""
        try:
            await cluster.get(MAPS, NAME, NAMESPACE)
        except (NotFound, Forbidden) as error:
            hint = "Apply the accounts of this release: fastness crds --accounts. Nodes that never attested get no configs."
            _log.warning("clientca.none", configmap=f"{NAMESPACE}/{NAME}", error=error, hint=hint)
            return None
        informer = informers.of(MAPS, PLACE)
        await informer.synced()
        return cls(informer)

    def __call__(self) -> Sequence[Certificate]:
        """The authorities now; the last good ones while the bundle cannot be read."""
        config_map = self._informer.get(NAMESPACE, NAME)
        if config_map is not None and config_map is not self._read:
            self._read = config_map
            try:
                # Replaced as a whole: an authority that was taken out stops to count.
                self._known = split_pem(str((config_map.get("data") or {}).get(KEY, "")).encode())
            except CryptoError as error:
                _log.warning("clientca.damaged", configmap=f"{NAMESPACE}/{NAME}", error=error)
        return self._known
