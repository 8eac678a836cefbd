"""MachineConfigPool: machines that get the same rendered config, and how the rollout stands.

Users own the spec, with one exception: `spec.configuration` is written by rendering. The status counts machines and carries the
conditions; `Degraded` is the fold of the more precise ones.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.pinned_images import stream_name
from fastness.kinds.objects import Condition, LabelSelector, Metadata, View

CONDITIONS = (
    "Updated",
    "Updating",
    "Degraded",
    "NodeDegraded",
    "RenderDegraded",
    "RegistriesDegraded",
    "ImageBuildDegraded",
    "PinnedImageSetsDegraded",
    "PoolSynchronizerDegraded",
)


def _count(description: str) -> s.Fragment:
    return s.integer(description, format="int32")


def _object_reference(description: str) -> dict[str, s.Fragment]:
    return {
        "apiVersion": s.string("API version of the object."),
        "kind": s.string("Kind of the object."),
        "name": s.string(description),
        "namespace": s.string("Namespace of the object."),
        "uid": s.string("UID of the object."),
        "resourceVersion": s.string("Version of the object that is meant."),
        "fieldPath": s.string("Part of the object that is meant."),
    }


def _configuration(description: str) -> s.Fragment:
    source = s.obj(_object_reference("Name of the config."), "One of the configs that went in.")
    return s.obj(
        {
            **_object_reference("Name of the rendered config."),
            "source": s.array(source, "The configs that were merged, ordered by name.", **s.ATOMIC),
        },
        description,
    )


def _stream(description: str) -> s.Fragment:
    return s.obj({"name": stream_name("Name of the stream.")}, description, required=("name",))


_HOST_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_HOST_NAME = rf"^{_HOST_LABEL}(\.{_HOST_LABEL})*$"

_SPEC = s.obj(
    {
        "machineConfigSelector": s.label_selector("Which configs are merged for this pool."),
        "nodeSelector": s.label_selector("Which nodes belong to this pool."),
        "paused": s.boolean("Whether rollouts to the nodes of this pool are held."),
        "maxUnavailable": s.int_or_string(
            "How many nodes may be unavailable during a rollout, as a number or a percentage of the pool. One if not set."
        ),
        "configuration": _configuration("The rendered config that the nodes should have."),
        "pinnedImageSets": s.list_map(
            s.obj(
                {"name": s.string("Name of a PinnedImageSet.", minLength=1, maxLength=253, pattern=_HOST_NAME)},
                required=("name",),
            ),
            ("name",),
            "Sets of images that the nodes keep pulled.",
            maxItems=100,
        ),
        "osImageStream": _stream("The stream of operating system images that the pool follows."),
    },
    "What the pool should be.",
)


def _synchronized(description: str) -> s.Fragment:
    return s.integer(description, format="int64", minimum=0)


_COUNTS = {
    "machineCount": _synchronized("Machines in the pool."),
    "updatedMachineCount": _synchronized("Machines that have it."),
    "readyMachineCount": _synchronized("Machines that have it and are ready."),
    "availableMachineCount": _synchronized("Machines that could take it."),
    "unavailableMachineCount": _synchronized("Machines that are busy or failed."),
}


def _at_least(more: str, less: str) -> s.Fragment:
    return s.rule(f"self.{more} >= self.{less}", f"{more} must be greater than or equal to {less}")


_SYNCHRONIZER = s.with_rules(
    s.obj(
        {
            "poolSynchronizerType": s.enum("PinnedImageSets", description="What is being synchronized.", maxLength=256),
            **_COUNTS,
            "observedGeneration": s.with_rules(
                _synchronized("Generation that the counts speak of."),
                s.rule(
                    "self >= oldSelf || (self == 0 && oldSelf > 0)",
                    "observedGeneration must not move backwards except to zero",
                ),
            ),
        },
        "How one kind of content is doing in the pool.",
        required=("poolSynchronizerType", *_COUNTS),
    ),
    _at_least("machineCount", "updatedMachineCount"),
    _at_least("machineCount", "availableMachineCount"),
    _at_least("machineCount", "unavailableMachineCount"),
    _at_least("machineCount", "readyMachineCount"),
    _at_least("availableMachineCount", "readyMachineCount"),
)

_STATUS = s.obj(
    {
        "observedGeneration": s.integer("Generation that the status speaks of.", format="int64"),
        "configuration": _configuration("The rendered config that all nodes of the pool had last."),
        "machineCount": _count("Machines in the pool."),
        "updatedMachineCount": _count("Machines that run the config of the spec."),
        "readyMachineCount": _count("Machines that run the config of the spec and are ready."),
        "unavailableMachineCount": _count("Machines that are not ready or are being updated."),
        "degradedMachineCount": _count("Machines that could not be updated."),
        "conditions": s.conditions("Updated, Updating, Degraded and what Degraded is made of."),
        "certExpirys": s.array(
            s.obj(
                {
                    "bundle": s.string("Bundle that the certificate is in."),
                    "subject": s.string("Subject of the certificate."),
                    "expiry": s.timestamp("When it expires."),
                },
                required=("bundle", "subject"),
            ),
            "Certificates that the nodes trust and when they expire.",
            **s.ATOMIC,
        ),
        "poolSynchronizersStatus": s.list_map(
            _SYNCHRONIZER, ("poolSynchronizerType",), "Content that is brought to nodes beside the rendered config."
        ),
        "osImageStream": _stream("The stream that the nodes run."),
    },
    "What was observed.",
)


def _condition(kind: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].status'


MACHINE_CONFIG_POOL = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineConfigPool",
    plural="machineconfigpools",
    short_names=("mcp",),
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Machines that share one rendered configuration, and the state of its rollout.",
    schema=s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)),
    columns=(
        Column("Config", ".status.configuration.name"),
        Column("Updated", _condition("Updated"), description="All machines run the wanted config."),
        Column("Updating", _condition("Updating"), description="Machines are being updated."),
        Column("Degraded", _condition("Degraded"), description="Something blocks the update."),
        Column("MachineCount", ".status.machineCount", "number"),
        Column("ReadyMachineCount", ".status.readyMachineCount", "number"),
        Column("UpdatedMachineCount", ".status.updatedMachineCount", "number"),
        Column("DegradedMachineCount", ".status.degradedMachineCount", "number"),
        AGE,
    ),
    subresources=("status",),
)


class ObjectReference(View):
    """A reference to another object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class Configuration(View):
    """A rendered config and what it was made of."""

    name: str = ""
    source: tuple[ObjectReference, ...] = ()


class MachineConfigPoolSpec(View):
    """What the pool should be."""

    machine_config_selector: LabelSelector | None = None
    node_selector: LabelSelector | None = None
    paused: bool = False
    max_unavailable: int | str | None = None
    configuration: Configuration = Configuration()


class MachineConfigPoolStatus(View):
    """What was observed of the pool."""

    observed_generation: int = 0
    configuration: Configuration = Configuration()
    machine_count: int = 0
    updated_machine_count: int = 0
    ready_machine_count: int = 0
    unavailable_machine_count: int = 0
    degraded_machine_count: int = 0
    conditions: tuple[Condition, ...] = ()


class MachineConfigPool(View):
    """A pool as rendering and rollout see it."""

    metadata: Metadata = Metadata()
    spec: MachineConfigPoolSpec = MachineConfigPoolSpec()
    status: MachineConfigPoolStatus = MachineConfigPoolStatus()


KINDS = (MACHINE_CONFIG_POOL,)
