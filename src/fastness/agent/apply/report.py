"""What the agent tells the cluster: annotations of its Node, conditions of its MachineConfigNode, events.

Annotations are a merge patch of our keys only, conditions a server-side apply of the status in the name that users of this kind
know; both are left out when they would change nothing. An API that cannot answer is asked a few times more (`Persistent`).

Annotations are what others act on: if they cannot be written, that is raised and the agent's loop tries again. Conditions and
events are for people: if they cannot be written they are lost, because telling must never hold up doing; the next step writes
all conditions again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fastness.agent.apply.progress import PINS, Mark, differs, marked
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import EVENTS, NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.references import is_digested
from fastness.kinds.objects import annotations_of, rfc3339
from fastness.kube.errors import ApiError, Conflict, InternalError, NotFound, Timeout, TooManyRequests, Unavailable
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import retry

COMPONENT: Final = "machine-config-agent"
MAX_EVENT: Final = 1024
TRIES: Final = 5
PAUSE: Final = 0.1
_log = logger("agent")
_WRITE: Final = WriteOptions(manager="fastness-agent")
_STATUS: Final = WriteOptions(manager=names.NODE_FIELD_MANAGER, force=True, subresource="status")


class Persistent:
    """Asks an API server again when it could not answer: a few times, after a short pause."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def ask(self, call: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """What the call answers; raises ApiError for a refusal, and when nobody answers for long."""
        failures = 0

        def pause(error: ApiError) -> float:
            nonlocal failures
            failures += 1
            if failures >= TRIES:
                raise error
            return PAUSE

        return await retry(call, (Unavailable, Timeout, TooManyRequests, InternalError, Conflict), pause, self._clock)


class Reporter:
    """Tells about one node."""

    def __init__(self, cluster: Cluster, node: str, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._node = node
        self._clock = clock
        self._entropy = entropy
        self._persistent = Persistent(clock)
        self._observed: JsonObject = {}
        self._images: JsonObject = {}

    def images(self, booted: str, goal: str) -> None:
        """What the node booted and what it goes to, for the next step that is marked.

        An image that the field would refuse is left out: such a node still has its other facts to tell.
        """
        named = {"currentImage": booted, "desiredImage": goal}
        self._images = {field: image for field, image in named.items() if is_digested(image)}

    def observe(self, node: JsonObject) -> None:
        """The node as last observed: what it already says is not written again."""
        self._observed = node

    async def annotate(self, **values: str | None) -> JsonObject | None:
        """Set annotations, by the names of `KEYS`; None removes one; raises ApiError.

        The node as the API answered, or None when what was observed says it already and nothing was written.
        """
        annotations = {KEYS[key]: value for key, value in values.items()}
        present = annotations_of(self._observed)
        if all(present.get(key) == value for key, value in annotations.items()):
            return None
        patch = {"metadata": {"annotations": annotations}}
        self._observed = await self._persistent.ask(
            lambda: self._cluster.patch(NODES, self._node, patch, PatchType.MERGE, options=_WRITE)
        )
        return self._observed

    async def state(self, state: names.NodeState, reason: str = "") -> JsonObject | None:
        """Set state and reason, as `annotate`; raises ApiError."""
        return await self.annotate(state=state, reason=reason[: names.MAX_REASON_CHARS])

    async def progress(self, mark: Mark, *, current: str, desired: str) -> None:
        """Mark a step on the MachineConfigNode, if the control plane made one."""
        try:
            await self._persistent.ask(lambda: self._mark(mark, current, desired))
        except NotFound:
            return
        except ApiError as error:
            _log.warning("agent.interrupted", node=self._node, reason=error.reason, error=error)

    async def _mark(self, mark: Mark, current: str, desired: str) -> JsonObject:
        node = await self._cluster.get(MACHINE_CONFIG_NODE.resource, self._node)
        status = node.get("status") or {}
        before = [entry for entry in status.get("conditions") or () if entry.get("type") not in PINS]
        conditions = marked(before, mark, self._clock.now(), desired)
        version = {"desired": desired or names.NOT_YET_SET, **({"current": current} if current else {})}
        generation = node["metadata"].get("generation", 1)
        facts: JsonObject = {"configVersion": version, "observedGeneration": generation}
        if self._images:
            facts["configImage"] = self._images
        same = all(status.get(field) == facts.get(field) for field in (*facts, "configImage"))
        if same and not differs(before, conditions):
            return node
        applied = {
            "apiVersion": MACHINE_CONFIG_NODE.api_version, "kind": MACHINE_CONFIG_NODE.kind,
            "metadata": {"name": self._node},
            "status": {"conditions": conditions, **facts},
        }  # fmt: skip
        resource = MACHINE_CONFIG_NODE.resource
        return await self._cluster.patch(resource, self._node, applied, PatchType.APPLY, options=_STATUS)

    async def event(self, reason: names.Event, message: str, *, warning: bool = False) -> None:
        """Tell that something happened."""
        now = rfc3339(self._clock.now())
        involved = {"kind": "Node", "apiVersion": "v1", "name": self._node}
        if uid := (self._observed.get("metadata") or {}).get("uid"):
            involved["uid"] = uid
        event: JsonObject = {
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": f"{self._node[:200]}.{self._entropy.token(8).hex()}", "namespace": "default"},
            "involvedObject": involved, "reason": str(reason), "message": message[:MAX_EVENT],
            "type": "Warning" if warning else "Normal", "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT, "reportingInstance": self._node,
            "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        }  # fmt: skip
        try:
            await self._cluster.create(EVENTS, event, _WRITE)
        except ApiError:
            return


KEYS: Final[Mapping[str, str]] = {
    "current": names.CURRENT_CONFIG, "state": names.STATE, "reason": names.REASON, "drain": names.DESIRED_DRAIN,
    "action": names.POST_CONFIG_ACTION, "overlays": names.OVERLAYS, "overlay": names.CURRENT_OVERLAY,
    "booted": names.BOOTED_IMAGE, "base": names.BASE_IMAGE, "image": names.CURRENT_IMAGE, "trust": names.CURRENT_TRUST,
    "driver": names.OS_DRIVER,
}  # fmt: skip
