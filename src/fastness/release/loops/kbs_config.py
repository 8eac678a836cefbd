"""KbsConfig and TrusteeConfig: settings of a broker that somebody knew before, brought to the one that is built in.

A KbsConfig is ready when everything that it names exists, can be read and is in use: a policy that the engine refused is not.
Then its ConfigMaps are policies and values
(`release.kbs_config`), and its Secrets are resources (`release.live.resources`). What is derived follows every change and goes
with the config. A config that became bad keeps what it gave before: taking a policy away must be somebody's wish.

* Both count in the namespaces of the broker's settings only (`kube.places`). They change what a whole cluster trusts, so the
  right to write into just any namespace must not be enough.
* A TrusteeConfig is ready while a broker runs; it makes nothing, and says so.
* TrusteeConfig chooses a profile. Restricted is how the broker always is; Permissive is refused in a cluster that enforces, and
  elsewhere changes nothing, because policies here can only take away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fastness.attestation.live import collateral_report as collateralnews
from fastness.attestation.status.collateral import NOT_TOLD, freshness
from fastness.keys.authorities import HERE
from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG, TRUSTEE_CONFIG
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name, with_condition
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, Forbidden, Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.release.kbs_config import OWNER, PLACE, Derived, derive, named_objects, not_in_use, owner_label
from fastness.release.live.resources import owner_of
from fastness.runtime.clock import Clock

CONFIGS: Final = KBS_CONFIG.resource
TRUSTEES: Final = TRUSTEE_CONFIG.resource
POLICIES: Final = APPRAISAL_POLICY.resource
SETS: Final = REFERENCE_VALUE_SET.resource
MAPS: Final = CONFIG_MAP.resource
SECRETS: Final = SECRET.resource
CONFIDENTIAL: Final = CONFIDENTIAL_CLUSTER.resource
BROKERS: Final = ObjectName(NAMESPACE, collateralnews.NAME)
LOOK_SECONDS: Final = 60.0
MISSING_SECONDS: Final = 2.0
_AS: Final = WriteOptions(manager="kbs-configs")
_STATUS: Final = WriteOptions(manager="kbs-configs", subresource="status")


def _config_of_derived(obj: Object) -> Iterable[ObjectName]:
    """The KbsConfig that an object was derived from."""
    namespace, _, name = annotations_of(obj).get(PLACE, "").partition("/")
    return (ObjectName(namespace, name),) if name else ()


class KbsConfigs:
    """Brings KbsConfigs to the built-in broker."""

    name = "kbs-configs"
    writes: Sequence[Resource] = (CONFIGS, POLICIES, SETS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._told: dict[ObjectName, str] = {}
        self._configs = informers.of(CONFIGS)
        self._places = informers.places
        here = [Scope(namespace) for namespace in self._places.of(CONFIGS)]
        self.sources: Sequence[Source] = (
            Source(CONFIGS, keys=self._all_of_namespaces),
            *(Source(MAPS, keys=self._naming_map, scope=scope) for scope in here),
            Source(POLICIES, keys=_config_of_derived),
            Source(SETS, keys=_config_of_derived),
        )  # fmt: skip

    def _all_of_namespaces(self, config: Object) -> Iterable[ObjectName]:
        """The config itself, and those that may offer a Secret of the same name instead of it."""
        offered = set(named_objects(config)[1])
        others = (other for other in self._configs.list() if offered & set(named_objects(other)[1]))
        return {object_name(config), *(object_name(other) for other in others)}

    def _naming_map(self, obj: Object) -> Iterable[ObjectName]:
        namespace, name = object_name(obj)
        return [object_name(config) for config in self._configs.list(namespace) if name in named_objects(config)[0]]

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one config, or what is left of one that is gone, in step."""
        try:
            config = await self._cluster.get(CONFIGS, key.name, key.namespace)
        except NotFound:
            self._told.pop(key, None)
            await self._clear(key)
            return GONE
        if is_being_deleted(config):
            await self._clear(key)
            return Done()
        if not self._places.counts(CONFIGS, key.namespace):  # it did once, and something derived from it is left
            await self._clear(key)
            return Done()
        derived = derive(config, await self._maps(config), self._clock.now())
        missing = await self._missing_secrets(config)
        problems = [*derived.problems, *missing]
        if not derived.problems:
            problems += await self._write(key, derived)
            problems += [
                reason for policy in await self._derived(POLICIES, key) if (reason := not_in_use(policy)) is not None
            ]
        await self._tell(config, problems)
        return Done(again_after=self._next_look(config, derived, missing=bool(missing)))

    def _next_look(self, config: JsonObject, derived: Derived, *, missing: bool) -> float | None:
        """When to look again: at the end of a value, and at Secrets, which are asked for by name.

        Following them would take the right to read every Secret of the namespace, and the keys of the doors are in it.
        """
        dates = [(derived.until - self._clock.now()).total_seconds()] if derived.until else []
        looks = [MISSING_SECONDS if missing else LOOK_SECONDS] if named_objects(config)[1] else []
        return min([*dates, *looks], default=None)

    async def _maps(self, config: JsonObject) -> Mapping[str, JsonObject]:
        maps: dict[str, JsonObject] = {}
        for name in named_objects(config)[0]:
            try:
                maps[name] = await self._cluster.get(MAPS, name, object_name(config).namespace)
            except NotFound:
                continue
        return maps

    async def _missing_secrets(self, config: JsonObject) -> list[str]:
        problems = []
        for name in named_objects(config)[1]:
            try:
                await self._cluster.get(SECRETS, name, object_name(config).namespace)
            except NotFound:
                problems.append(f"the Secret {name} does not exist")
            # Told apart from missing: the right to read Secrets is given by name, and the one who forgot it needs to know which.
            except Forbidden:
                problems.append(
                    f"the Secret {name} may not be read: give fastness-broker and fastness-controllers the right to get it"
                )
            owner = owner_of(name, self._configs.list())
            if owner is not None and object_name(owner) != object_name(config):
                problems.append(f"the Secret {name} is offered by {object_name(owner)} already")
        return problems

    async def _write(self, key: ObjectName, derived: Derived) -> list[str]:
        """Make, change and delete what is derived; what the API refuses comes back as problems."""
        problems = []
        for resource, objects in ((POLICIES, derived.policies), (SETS, derived.sets)):
            stored = {object_name(obj).name: obj for obj in await self._derived(resource, key)}
            for name, made in objects.items():
                try:
                    await self._put(resource, stored.get(name), made)
                except Invalid as error:
                    problems.append(error.message)
            # Only what carries this config's label: what somebody else wrote under such a name stays.
            for name in stored.keys() - objects.keys():
                await self._drop(resource, name)
        return problems

    async def _put(self, resource: Resource, stored: JsonObject | None, made: JsonObject) -> None:
        if stored is None:
            try:
                await self._cluster.create(resource, made, _AS)
            except AlreadyExists:
                return
        elif any(stored["spec"].get(field) != made["spec"].get(field) for field in (*made["spec"], "validity")):
            spec = {**made["spec"], **({} if resource is POLICIES else {"validity": made["spec"].get("validity")})}
            await self._cluster.patch(resource, object_name(made).name, {"spec": spec}, PatchType.MERGE, "", _AS)

    async def _clear(self, key: ObjectName) -> None:
        for resource in (POLICIES, SETS):
            for obj in await self._derived(resource, key):
                await self._drop(resource, object_name(obj).name)

    async def _derived(self, resource: Resource, key: ObjectName) -> list[JsonObject]:
        return (await self._cluster.list(resource, Scope(labels=f"{OWNER}={owner_label(key)}"))).items

    async def _drop(self, resource: Resource, name: str) -> None:
        try:
            await self._cluster.delete(resource, name)
        except NotFound:
            return

    async def _tell(self, config: JsonObject, problems: Sequence[str]) -> None:
        """Say whether the broker runs with the config, and why not."""
        ready, place, text = not problems, object_name(config), "; ".join(problems)[:1000]
        if (config.get("status") or {}).get("isReady") is ready and self._told.get(place, text) == text:
            return
        self._told[place] = text
        if problems:
            await self._recorder.warning(config, "NotReady", text)
        else:
            await self._recorder.normal(config, "Ready", "the broker runs with these settings")
        patch = {"status": {"isReady": ready}}
        await self._cluster.patch(CONFIGS, place.name, patch, PatchType.MERGE, place.namespace, _STATUS)


class TrusteeConfigs:
    """Judges the profile of TrusteeConfigs."""

    name = "trustee-configs"
    writes: Sequence[Resource] = (TRUSTEES, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._trustees = informers.of(TRUSTEES)
        self._confidential = informers.of(CONFIDENTIAL)
        self._maps = informers.of(MAPS, HERE)
        self.sources: Sequence[Source] = (
            Source(TRUSTEES), Source(CONFIDENTIAL, keys=self._every), Source(MAPS, keys=self._if_broker, scope=HERE),
        )  # fmt: skip

    def _every(self, _obj: Object) -> Iterable[ObjectName]:
        return [object_name(config) for config in self._trustees.list()]

    def _if_broker(self, obj: Object) -> Iterable[ObjectName]:
        return self._every(obj) if object_name(obj) == BROKERS else ()

    def _broker_runs(self) -> bool:
        """Whether a broker said lately that it is there: each tells what documents it has, and silence means that it is gone."""
        brokers = ((self._maps.get(*BROKERS) or {}).get("data") or {}).values()
        return freshness(brokers, self._clock.now()).reason != NOT_TOLD

    async def reconcile(self, key: ObjectName) -> Done:
        """Say whether the broker runs as one config asks."""
        try:
            config = await self._cluster.get(TRUSTEES, key.name, key.namespace)
        except NotFound:
            return GONE
        reason, message = self._judged(config)
        ready = reason == "Accepted"
        status = config.get("status") or {}
        conditions = with_condition(
            status.get("conditions") or (), kind="Ready", status="True" if ready else "False", reason=reason,
            message=message, now=self._clock.now(), generation=config["metadata"].get("generation"),
        )  # fmt: skip
        if status.get("isReady") is not ready or status.get("conditions") != conditions:
            patch = {"status": {"isReady": ready, "conditions": conditions}}
            await self._cluster.patch(TRUSTEES, key.name, patch, PatchType.MERGE, key.namespace, _STATUS)
            if not ready:
                await self._recorder.warning(config, reason, message)
        return Done(again_after=LOOK_SECONDS)

    def _judged(self, config: JsonObject) -> tuple[str, str]:
        permissive = (config.get("spec") or {}).get("profileType") == "Permissive"
        # Refused aloud and not only ignored: whoever chose it believes that machines pass which will not.
        if permissive and mode_of(self._confidential.get("", "cluster")) is Mode.ENFORCE:
            return "PermissiveRefused", "this cluster enforces attestation: choose the profile Restricted"
        if not self._broker_runs():
            return (
                "NoBroker",
                "no broker runs, or none has said anything for half an hour: fastness serve --roles broker",
            )
        if permissive:
            return "Accepted", "accepted; the built-in policy still asks for a machine that is affirmed"
        return (
            "Accepted",
            "a broker runs and asks for a machine that is affirmed; no Service, Route or KbsConfig is made",
        )
