"""Issues the certificates under which the gate answers stubs of an older installer, where they are switched on.

    ConfidentialCluster.spec.join.legacyStubs[], Secret legacy-stubs-ca  ─▶  Secret gate-legacy-certificates

Switched off, the Secret is emptied, and the gate answers to these names no more. Without an authority, or with one that cannot be
used, an event on the ConfidentialCluster says so and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.keys.authorities import SECRETS, first_content, named
from fastness.keys.legacy_stubs import IMPORTED, ISSUED, content, credentials, due, imported_authority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import legacy_stubs
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, metadata
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock, Entropy

LOOK_SECONDS: Final = 3600.0
NOT_SERVED: Final = "LegacyStubsNotServed"
_KEY: Final = ObjectName("", NAME)
_AS: Final = WriteOptions(manager="legacy-certificates")


def _all(_: Object) -> Iterable[ObjectName]:
    return (_KEY,)


class LegacyCertificates:
    """Keeps the certificates for legacy stubs good."""

    name = "legacy-certificates"
    writes: Sequence[Resource] = (SECRETS, EVENTS)
    sources: Sequence[Source] = (
        Source(CONFIDENTIAL_CLUSTER.resource, keys=_all),
        *(Source(SECRETS, keys=_all, scope=named(name)) for name in (IMPORTED, ISSUED)),
    )

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._imported = informers.of(SECRETS, named(IMPORTED))
        self._issued = informers.of(SECRETS, named(ISSUED))
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, _: ObjectName) -> Done:
        """Issue what is due, and take back what is not asked for any more; raises ApiError."""
        confidential = self._clusters.get("", NAME)
        names = sorted(name for name, pools in legacy_stubs(confidential).items() if pools)
        secret = self._issued.get(NAMESPACE, ISSUED)
        held = credentials(secret)
        if not names:
            await self._write(secret, {})
            return Done(again_after=LOOK_SECONDS)
        try:
            authority = imported_authority(self._imported.get(NAMESPACE, IMPORTED))
            certificates = (
                due(names, held, authority, self._clock.now(), self._entropy) if authority is not None else {}
            )
        except CryptoError as error:
            await self._warn(confidential, names, error.message)
            certificates = {}
        else:
            if authority is None:
                await self._warn(confidential, names, "the authority of their installer was not imported")
        await self._write(secret, content(certificates))
        return Done(again_after=LOOK_SECONDS)

    async def _write(self, secret: JsonObject | None, data: dict[str, str]) -> None:
        before = (secret or {}).get("data") or {}
        if before == data:
            return
        if secret is None:
            await first_content(self._cluster, ISSUED, None, data)
            return
        gone = dict.fromkeys(name for name in before if name not in data)
        patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": {**gone, **data}}
        try:
            await self._cluster.patch(SECRETS, ISSUED, patch, PatchType.MERGE, NAMESPACE, _AS)
        except (Conflict, NotFound):
            return

    async def _warn(self, confidential: JsonObject | None, names: Sequence[str], reason: str) -> None:
        message = (
            f"the gate does not answer to {', '.join(names)}: {reason}. Import its certificate and key as tls.crt and tls.key"
            f" of the Secret {NAMESPACE}/{IMPORTED}"
        )
        about = {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, **(confidential or {}),
        }  # fmt: skip
        await self._recorder.warning(about, NOT_SERVED, message)
