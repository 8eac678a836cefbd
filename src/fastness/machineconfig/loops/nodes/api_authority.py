"""The authority of the API server that nodes have in their kubeconfigs: ConfigMap `kubeconfig-data`.

It is a copy of what the cluster publishes, made when the original has not changed for a minute. A rotation writes it several
times in a row, and each copy would restart every kubelet. What is damaged is not copied: nodes that believed it would be
lost to the cluster. `service-ca-rotate` on the ControllerConfig tells that nodes follow; `false` there holds it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.objects import ObjectName, annotations_of
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.announcements import Announcements
from fastness.machineconfig.loops.nodes.published_maps import publish
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.trust.bundles import BadBundle, checked
from fastness.machineconfig.trust.node_trust import API_AUTHORITY
from fastness.machineconfig.trust.sources import BUNDLE_KEY, MANAGED
from fastness.runtime.clock import Clock

MAPS: Final = CONFIG_MAP.resource
CONTROLLERS: Final = CONTROLLER_CONFIG.resource
ALL: Final = ObjectName("", "*")
# OpenShift's own before what every Kubernetes publishes: the first place that there is counts.
ORIGINALS: Final = ((MANAGED, "kube-apiserver-server-ca", BUNDLE_KEY), ("kube-system", ROOT_CA, "ca.crt"))
_AS: Final = WriteOptions(manager="machine-config-api-authority")


def _all(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def _place(namespace: str, name: str) -> Scope:
    return Scope(namespace, fields=f"metadata.name={name}")


class ApiAuthority:
    """Keeps the copy."""

    name = "machine-config-api-authority"
    writes: Sequence[Resource] = (MAPS, CONTROLLERS, EVENTS)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        places = [_place(namespace, name) for namespace, name, _ in ORIGINALS]
        self.sources: Sequence[Source] = (
            *(Source(MAPS, keys=_all, scope=place) for place in (*places, _place(*API_AUTHORITY))),
            Source(CONTROLLERS, keys=_all),
        )
        self._originals = [informers.of(MAPS, place) for place in places]
        self._copy = informers.of(MAPS, _place(*API_AUTHORITY))
        self._controllers = informers.of(CONTROLLERS)
        self._cluster = cluster
        self._clock = clock
        self._quiet = timing.authority_quiet
        self._recorder = Recorder(cluster, self.name, clock)
        self._announcements = Announcements(cluster, self.name, clock)
        self._coming: tuple[str, float] = ("", 0.0)

    async def reconcile(self, key: ObjectName) -> Done:
        """Copy what has not changed for a while."""
        controller, (bundle, origin, wrong) = self._controllers.get("", SINGLETON), self._original()
        if controller is None:
            return Done()
        await self._announcements.warning(controller, names.Event.TRUST_SOURCE_MISSING, wrong)
        present = str(((self._copy.get(*API_AUTHORITY) or {}).get("data") or {}).get(BUNDLE_KEY) or "")
        if not bundle or bundle == present:
            self._coming = ("", 0.0)
            return Done()
        if present and (left := self._left(bundle)) > 0:
            return Done(again_after=left)
        await publish(self._cluster, *API_AUTHORITY, {BUNDLE_KEY: bundle}, _AS)
        await self._tell(controller, origin, first=not present)
        return Done()

    def _left(self, bundle: str) -> float:
        """For how long a bundle must stay as it is before it counts."""
        now = self._clock.monotonic()
        if self._coming[0] != bundle:
            self._coming = (bundle, now)
        return self._coming[1] + self._quiet - now

    def _original(self) -> tuple[str, str, str]:
        """The certificates, where they stand, and what is wrong with them."""
        for (namespace, name, key), informer in zip(ORIGINALS, self._originals, strict=True):
            text = str(((informer.get(namespace, name) or {}).get("data") or {}).get(key) or "")
            origin = f"ConfigMap {namespace}/{name}"
            if not text:
                continue
            try:
                return checked(text), origin, ""
            except BadBundle as error:
                return "", origin, f"{origin} {error}: nodes keep the authority that they have"
        return "", "", ""

    async def _tell(self, controller: JsonObject, origin: str, *, first: bool) -> None:
        if names.SERVICE_CA_ROTATE not in annotations_of(controller):
            patch = {"metadata": {"annotations": {names.SERVICE_CA_ROTATE: "true"}}}
            try:
                await self._cluster.patch(CONTROLLERS, SINGLETON, patch, PatchType.MERGE, "", _AS)
            except NotFound:
                return
        if not first:
            text = f"nodes get the authority of the API server anew, from {origin}"
            await self._recorder.normal(controller, names.Event.API_AUTHORITY_CHANGED, text)
